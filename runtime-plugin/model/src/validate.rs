//! Validates a model after reading: indices, lengths of lists. Running it relies only on that.

mod expressions;
mod tuning;

use cubinder_expr::sorted_set;
use std::collections::BTreeSet;

use crate::code::CodeObject;
use crate::container::Container;
use crate::model::{
    Arg, ArgValue, Fill, Input, Interval, Launch, MAX_ARGUMENTS, MAX_PARAMETER_BYTES, MAX_RANK,
    MAX_VARIANT_ID, Memory, Plugin, ShapeLimits, Variant, Work,
};
use cubinder_expr::data_type::ScalarType;
use cubinder_expr::value::Value;
use cubinder_expr::{Expr, Node};
use expressions::{ExprRole, validate_expr};
pub use tuning::{MAX_RANKED, MAX_TUNED_BYTES, MAX_TUNED_DEVICES, MAX_TUNED_EXTENTS, MAX_TUNED_POINTS};

/// Maximum inputs and outputs. Limits bound the work.
pub const MAX_TENSORS: usize = 256;
/// Maximum attributes of a plugin.
pub const MAX_ATTRIBUTES: usize = 1024;
/// Maximum requirements of a plugin.
pub const MAX_REQUIREMENTS: usize = 256;
const MAX_VARIANTS: usize = 4096;
/// Maximum steps of a variant.
pub const MAX_STEPS: usize = 256;
/// Maximum scratch buffers of a variant.
pub const MAX_SCRATCH: usize = 64;
const MAX_TARGETS: usize = 256;
/// Maximum allowed values of an attribute.
pub const MAX_ALLOWED_VALUES: usize = 1024;

/// Symbol comparisons for kernel references.
const MAX_SYMBOLS: usize = 1 << 22;

/// Maximum alignment checks in a guard, made by `enqueue`.
pub const MAX_ALIGNMENTS: usize = 16;

impl Container {
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

/// Checks that `attributes` has a valid value for each of the plugin's.
pub fn validate_attributes(plugin: &Plugin, attributes: &[Value]) -> Result<(), String> {
    if attributes.len() != plugin.attributes.len() {
        return Err(format!(
            "found {} attributes, `{}` has {}",
            attributes.len(),
            plugin.name,
            plugin.attributes.len()
        ));
    }
    let mut pairs = plugin.attributes.iter().zip(attributes);
    pairs.try_for_each(|(attribute, value)| attribute.check(value).map_err(|error| error.to_string()))
}

/// Checks that `ranks`, if known, has a valid rank for each input.
pub fn validate_ranks(plugin: &Plugin, ranks: Option<&[u8]>) -> Result<(), String> {
    let Some(ranks) = ranks else { return Ok(()) };
    let fits = |(input, rank): (&Input, &u8)| (input.rank_min..=input.rank_max).contains(rank);
    if ranks.len() == plugin.inputs.len() && plugin.inputs.iter().zip(ranks).all(fits) {
        Ok(())
    } else {
        Err(format!("the ranks {ranks:?} do not match the inputs of `{}`", plugin.name))
    }
}

/// Cubins do not record whether `sm_120` or `sm_120f` was requested: their bytes may be equal.
fn unique_code(code: &[CodeObject]) -> Result<(), String> {
    let mut keys = BTreeSet::new();
    match code.iter().find(|code| !keys.insert((code.digest, code.target))) {
        Some(code) => Err(format!("duplicate code object {}", code.digest.short())),
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
            return Err(within("a name contains a NUL".to_owned()));
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
            return Err(within(format!("input `{}` has invalid ranks", input.name)));
        }
        validate_limits(&input.name, &input.limits, (input.rank_min, input.rank_max)).map_err(within)?;
        expressions::validate_shape_input(input).map_err(within)?;
    }
    for output in &plugin.outputs {
        let rank = u8::try_from(output.limits.dims.len()).unwrap_or(u8::MAX);
        validate_limits(&output.name, &output.limits, (rank, rank)).map_err(within)?;
    }
    for attribute in &plugin.attributes {
        at_most("allowed values", attribute.one_of.len(), MAX_ALLOWED_VALUES).map_err(within)?;
        attribute.check_rules().map_err(within)?;
    }
    let check = |expr: &Expr, role: ExprRole| validate_expr(plugin, expr, role).map_err(within);
    plugin.outputs.iter().try_for_each(|output| check(&output.shape, ExprRole::Shape))?;
    plugin.require.iter().try_for_each(|require| check(&require.expr, ExprRole::Inputs))?;
    expressions::validate_outputs(plugin).map_err(within)?;
    validate_timing(plugin).map_err(within)?;
    at_most("symbols to search", symbols(plugin, code), MAX_SYMBOLS).map_err(within)?;
    for variant in &plugin.variants {
        validate_variant(plugin, variant, code).map_err(within)?;
    }
    tuning::validate_tuning(plugin).map_err(within)?;
    let key = |variant: &'_ Variant| {
        let specialized = variant.specialized.iter().map(|(index, value)| format!("{index} {value:?}"));
        (variant.id, variant.types.clone(), variant.formats.clone(), specialized.collect::<Vec<String>>())
    };
    let mut keys = BTreeSet::new();
    match plugin.variants.iter().find(|variant| !keys.insert(key(variant))) {
        Some(variant) => Err(within(format!("duplicate variant {} for the same types", variant.id))),
        None => Ok(()),
    }
}

fn validate_timing(plugin: &Plugin) -> Result<(), String> {
    let timing = plugin.timing.iter().flatten();
    match timing.clone().find(|index| **index as usize >= plugin.attributes.len()) {
        Some(index) => Err(format!("the time depends on attribute {index}, which does not exist")),
        None => Ok(()),
    }
}

fn validate_limits(name: &str, limits: &ShapeLimits, ranks: (u8, u8)) -> Result<(), String> {
    let can_be = |allowed: &Interval| 0 <= allowed.min && allowed.min <= allowed.max;
    if let Some(wrong) = limits.dims.iter().chain([&limits.every, &limits.numel]).find(|it| !can_be(it)) {
        return Err(format!("the limits of `{name}` allow {wrong}, which is impossible"));
    }
    let is_one_each = ranks.0 == ranks.1 && limits.dims.len() == usize::from(ranks.0);
    if limits.dims.is_empty() || (is_one_each && ranks.0 <= MAX_RANK) {
        return Ok(());
    }
    Err(format!("`{name}` has limits for {} dimensions, which does not match its rank", limits.dims.len()))
}

/// Returns an expression's distinct alignment checks: tensor and bytes.
#[must_use]
pub fn alignments(expr: &Expr) -> Vec<(u32, u32)> {
    let asked = expr.nodes.iter().filter_map(|node| match *node {
        Node::Aligned { tensor, bytes } => Some((tensor, bytes)),
        _ => None,
    });
    sorted_set(asked.collect())
}

fn validate_variant(plugin: &Plugin, variant: &Variant, code: &[CodeObject]) -> Result<(), String> {
    let check = |expr: &Expr| validate_expr(plugin, expr, ExprRole::Launch);
    if !(1..=MAX_VARIANT_ID).contains(&variant.id) {
        return Err(format!("variant id {}, expected 1 to {MAX_VARIANT_ID}", variant.id));
    }
    if variant.types.len() != plugin.tensor_count() {
        return Err(format!("{} types for {} tensors", variant.types.len(), plugin.tensor_count()));
    }
    if variant.formats.len() != plugin.tensor_count() {
        return Err(format!("{} formats for {} tensors", variant.formats.len(), plugin.tensor_count()));
    }
    validate_specialized(plugin, variant)?;
    expressions::validate_tensors(plugin, variant)?;
    if variant.launches().next().is_none() {
        return Err(format!("variant {} launches nothing", variant.id));
    }
    if let Some(guard) = &variant.guard {
        let within = |error: String| format!("the guard of variant {}: {error}", variant.id);
        validate_expr(plugin, &guard.expr, ExprRole::Guard).map_err(within)?;
        at_most("different `aligned`", alignments(&guard.expr).len(), MAX_ALIGNMENTS).map_err(within)?;
    }
    at_most("scratch buffers", variant.scratch.len(), MAX_SCRATCH)?;
    variant.scratch.iter().try_for_each(|scratch| check(&scratch.bytes))?;
    at_most("steps", variant.steps.len(), MAX_STEPS)?;
    for step in &variant.steps {
        if let Some(when) = &step.when {
            check(&when.expr)?;
        }
        if let Work::Fill(fill) = &step.work {
            validate_fill(plugin, variant, fill)?;
        }
    }
    for launch in variant.launches() {
        at_most("arguments", launch.args.len(), MAX_ARGUMENTS)?;
        let bytes = launch.args.iter().fold(0, |sum: u64, arg| sum.saturating_add(arg.value.size()));
        at_most("bytes of arguments", usize::try_from(bytes).unwrap_or(usize::MAX), MAX_PARAMETER_BYTES)?;
        at_most("code references", launch.code.len(), MAX_TARGETS)?;
        let cluster = launch.cluster.iter().flatten();
        for expr in launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]).chain(cluster) {
            check(expr)?;
        }
        launch.args.iter().try_for_each(|arg| validate_arg(plugin, variant, arg))?;
        validate_code(launch, code)?;
    }
    Ok(())
}

fn at_most(what: &str, found: usize, most: usize) -> Result<(), String> {
    if found <= most { Ok(()) } else { Err(format!("{found} {what}, the maximum is {most}")) }
}

fn validate_specialized(plugin: &Plugin, variant: &Variant) -> Result<(), String> {
    let mut least = 0;
    for (index, value) in &variant.specialized {
        let attribute = plugin.attributes.get(*index as usize).filter(|_| *index >= least);
        let attribute = attribute
            .ok_or_else(|| format!("variant {} is specialized for attribute {index}", variant.id))?;
        attribute.check(value).map_err(|error| error.to_string())?;
        least = index.saturating_add(1);
    }
    Ok(())
}

fn validate_fill(plugin: &Plugin, variant: &Variant, fill: &Fill) -> Result<(), String> {
    let is_there = match fill.memory {
        Memory::Output(index) => {
            plugin.outputs.get(index as usize).is_some_and(|output| !output.depends_on_data())
        }
        Memory::Scratch(index) => (index as usize) < variant.scratch.len(),
    };
    if is_there { Ok(()) } else { Err(format!("variant {} fills {:?}", variant.id, fill.memory)) }
}

fn validate_arg(plugin: &Plugin, variant: &Variant, arg: &Arg) -> Result<(), String> {
    let (ty, expr) = match &arg.value {
        ArgValue::Tensor(index) | ArgValue::ReadTensor(index)
            if plugin.inputs.get(*index as usize).is_some_and(|input| input.values.is_some()) =>
        {
            return Err(format!("argument `{}` is a shape input, which is in host memory", arg.name));
        }
        ArgValue::Tensor(index) | ArgValue::ReadTensor(index) => {
            return match (*index as usize) < plugin.tensor_count() {
                true => Ok(()),
                false => Err(format!("argument `{}` is tensor {index}", arg.name)),
            };
        }
        ArgValue::Scratch(index) if (*index as usize) < variant.scratch.len() => return Ok(()),
        ArgValue::Scratch(index) => return Err(format!("argument `{}` is scratch buffer {index}", arg.name)),
        ArgValue::Scalar { ty, expr } | ArgValue::Array { ty, expr, .. } => (ty, expr),
    };
    if !matches!(ty, ScalarType::F32 | ScalarType::F64 | ScalarType::Bool) && ty.integers().is_none() {
        return Err(format!("argument `{}` has the type {ty}", arg.name));
    }
    validate_expr(plugin, expr, ExprRole::Launch)
}

fn symbols(plugin: &Plugin, code: &[CodeObject]) -> usize {
    let launches = plugin.variants.iter().flat_map(Variant::launches);
    let objects = launches.flat_map(|launch| &launch.code).filter_map(|it| code.get(it.code as usize));
    objects.fold(0, |sum, object| sum.saturating_add(object.kernels.len()))
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

#[cfg(test)]
mod tests;
