//! Whether a model that was read makes sense: every index in range, every list as long as others say.
//!
//! The format's digest proves that nothing was damaged, not that an honest writer made it. Whoever runs a model relies
//! on what is checked here and on nothing else.

use crate::code::CodeObject;
use crate::container::Container;
use crate::expr::Expr;
use crate::model::{Arg, ArgValue, Launch, Plugin, Variant};
use crate::value::Value;

/// TensorRT's highest rank (`nvinfer1::Dims::MAX_DIMS`, `NvInferRuntimeBase.h`).
const MAX_RANK: u8 = 8;

impl Container {
    /// Checks the contents; the error says what is wrong.
    pub(crate) fn validate(&self) -> Result<(), String> {
        match self {
            Container::Bundle(bundle) => {
                unique_code(&bundle.code)?;
                bundle.plugins.iter().try_for_each(|plugin| validate_plugin(plugin, &bundle.code))
            }
            Container::Node(node) => {
                unique_code(&node.code)?;
                validate_plugin(&node.plugin, &node.code)?;
                validate_attributes(&node.plugin, &node.attributes)
            }
            Container::NodeReference(_) => Ok(()),
        }
    }
}

/// Whether `attributes` are one value of the right type for each of the plugin's attributes.
///
/// # Errors
/// What is wrong, for people.
pub fn validate_attributes(plugin: &Plugin, attributes: &[Value]) -> Result<(), String> {
    if attributes.len() != plugin.attributes.len() {
        return Err(format!(
            "{} attributes where `{}` has {}",
            attributes.len(),
            plugin.name,
            plugin.attributes.len()
        ));
    }
    match plugin.attributes.iter().zip(attributes).find(|(attribute, value)| !attribute.ty.admits(value)) {
        Some((attribute, value)) => {
            Err(format!("attribute `{}` is `{value}`, expected `{}`", attribute.name, attribute.ty.name()))
        }
        None => Ok(()),
    }
}

/// Two targets may have the same bytes: a cubin does not say whether it was asked for as `sm_120` or `sm_120f`.
fn unique_code(code: &[CodeObject]) -> Result<(), String> {
    let mut keys: Vec<_> = code.iter().map(|code| (code.digest, code.target)).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("code object {} is there twice", pair[0].0.short())),
        None => Ok(()),
    }
}

fn validate_plugin(plugin: &Plugin, code: &[CodeObject]) -> Result<(), String> {
    let within = |error: String| format!("plugin `{}`: {error}", plugin.name);
    for name in [&plugin.name, &plugin.namespace, &plugin.version]
        .into_iter()
        .chain(plugin.attributes.iter().map(|attribute| &attribute.name))
    {
        if name.contains('\0') {
            return Err(within("a name holds a NUL".to_owned()));
        }
    }
    if plugin.outputs.is_empty() || plugin.variants.is_empty() {
        return Err(within("no outputs or no variants".to_owned()));
    }
    for input in &plugin.inputs {
        if input.rank_min > input.rank_max || input.rank_max > MAX_RANK {
            return Err(within(format!("input `{}` has ranks that cannot be", input.name)));
        }
    }
    for attribute in &plugin.attributes {
        if attribute.default.as_ref().is_some_and(|value| !attribute.ty.admits(value)) {
            return Err(within(format!("attribute `{}` has a default of another type", attribute.name)));
        }
    }
    let check = |expr: &Expr, tensors: usize| {
        expr.validate(plugin.attributes.len(), tensors).map_err(|error| within(error.to_string()))
    };
    plugin.outputs.iter().try_for_each(|output| check(&output.shape, plugin.inputs.len()))?;
    plugin.require.iter().try_for_each(|require| check(&require.expr, plugin.inputs.len()))?;
    for variant in &plugin.variants {
        validate_variant(plugin, variant, code, &check).map_err(within)?;
    }
    Ok(())
}

fn validate_variant(
    plugin: &Plugin,
    variant: &Variant,
    code: &[CodeObject],
    check: &dyn Fn(&Expr, usize) -> Result<(), String>,
) -> Result<(), String> {
    if variant.id < 1 {
        return Err(format!("variant id {}, expected at least 1", variant.id));
    }
    if variant.types.len() != plugin.tensor_count() {
        return Err(format!("{} types for {} tensors", variant.types.len(), plugin.tensor_count()));
    }
    if variant.launches.is_empty() {
        return Err(format!("variant {} launches nothing", variant.id));
    }
    for launch in &variant.launches {
        for expr in launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]) {
            check(expr, plugin.tensor_count())?;
        }
        launch.args.iter().try_for_each(|arg| validate_arg(plugin, arg, check))?;
        validate_code(launch, code)?;
    }
    Ok(())
}

fn validate_arg(
    plugin: &Plugin,
    arg: &Arg,
    check: &dyn Fn(&Expr, usize) -> Result<(), String>,
) -> Result<(), String> {
    let (ty, expr) = match &arg.value {
        ArgValue::Tensor(index) if (*index as usize) < plugin.tensor_count() => return Ok(()),
        ArgValue::Tensor(index) => return Err(format!("argument `{}` is tensor {index}", arg.name)),
        ArgValue::Scalar { ty, expr } | ArgValue::Array { ty, expr, .. } => (ty, expr),
    };
    if !matches!(ty.size(), 1 | 2 | 4 | 8) {
        return Err(format!("argument `{}` has elements of {} bytes", arg.name, ty.size()));
    }
    check(expr, plugin.tensor_count())
}

fn validate_code(launch: &Launch, code: &[CodeObject]) -> Result<(), String> {
    if launch.code.is_empty() {
        return Err(format!("kernel `{}` has no code", launch.kernel));
    }
    for reference in &launch.code {
        let Some(object) = code.get(reference.code as usize) else {
            return Err(format!("kernel `{}` refers to code object {}", launch.kernel, reference.code));
        };
        if reference.target != object.target
            || !object.kernels.iter().any(|kernel| kernel.symbol == reference.symbol)
            || reference.symbol.contains('\0')
        {
            return Err(format!(
                "code object {} for {} has no kernel `{}`",
                object.digest.short(),
                reference.target,
                reference.symbol
            ));
        }
    }
    Ok(())
}
