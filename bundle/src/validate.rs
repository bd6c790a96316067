//! Whether a model that was read makes sense: every index in range, every list as long as others say.
//!
//! The format's digest proves that nothing was damaged, not that an honest writer made it. Whoever runs a model relies
//! on what is checked here and on nothing else.

use crate::code::CodeObject;
use crate::container::Container;
use crate::expr::Expr;
use crate::model::{Arg, ArgValue, Input, Launch, MAX_ARGUMENTS, MAX_PARAMETER_BYTES, Plugin, Variant};
use crate::value::Value;

/// TensorRT's highest rank (`nvinfer1::Dims::MAX_DIMS`, `NvInferRuntimeBase.h`).
const MAX_RANK: u8 = 8;

/// More than any plugin has. What is read bounds the work that it can ask for.
const MAX_TENSORS: usize = 256;
const MAX_ATTRIBUTES: usize = 1024;
const MAX_REQUIREMENTS: usize = 256;
const MAX_VARIANTS: usize = 4096;
const MAX_LAUNCHES: usize = 256;
const MAX_TARGETS: usize = 256;

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
                validate_attributes(&node.plugin, &node.attributes)?;
                validate_ranks(&node.plugin, node.input_ranks.as_deref())
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

/// Whether `ranks`, where they are known, are one for each input and within what the plugin takes.
///
/// # Errors
/// What is wrong, for people.
pub fn validate_ranks(plugin: &Plugin, ranks: Option<&[u8]>) -> Result<(), String> {
    let Some(ranks) = ranks else { return Ok(()) };
    let fits = |(input, rank): (&Input, &u8)| (input.rank_min..=input.rank_max).contains(rank);
    if ranks.len() == plugin.inputs.len() && plugin.inputs.iter().zip(ranks).all(fits) {
        Ok(())
    } else {
        Err(format!("the ranks {ranks:?} are not those of inputs of `{}`", plugin.name))
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
    for (what, found, most) in [
        ("tensors", plugin.tensor_count(), MAX_TENSORS),
        ("attributes", plugin.attributes.len(), MAX_ATTRIBUTES),
        ("requirements", plugin.require.len(), MAX_REQUIREMENTS),
        ("variants", plugin.variants.len(), MAX_VARIANTS),
    ] {
        at_most(what, found, most).map_err(within)?;
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
    at_most("launches", variant.launches.len(), MAX_LAUNCHES)?;
    for launch in &variant.launches {
        at_most("arguments", launch.args.len(), MAX_ARGUMENTS)?;
        let bytes = launch.args.iter().fold(0, |sum: u64, arg| sum.saturating_add(arg.value.size()));
        at_most("bytes of arguments", usize::try_from(bytes).unwrap_or(usize::MAX), MAX_PARAMETER_BYTES)?;
        at_most("code references", launch.code.len(), MAX_TARGETS)?;
        for expr in launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]) {
            check(expr, plugin.tensor_count())?;
        }
        launch.args.iter().try_for_each(|arg| validate_arg(plugin, arg, check))?;
        validate_code(launch, code)?;
    }
    Ok(())
}

fn at_most(what: &str, found: usize, most: usize) -> Result<(), String> {
    if found <= most { Ok(()) } else { Err(format!("{found} {what}, the most is {most}")) }
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
