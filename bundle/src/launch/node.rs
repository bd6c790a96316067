//! A node with its shapes: what is refused, what the outputs' shapes are, and which variant runs.

use crate::data_type::DataType;
use crate::expr::{self, Environment, EvalError};
use crate::model::{Attribute, Guard, Interval, Plugin, Requirement, ShapeLimits, Variant};
use crate::value::Value;

/// A node's attributes with as much of its tensors' shapes and addresses as is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// One value for each of the plugin's attributes.
    pub attributes: &'a [Value],
    /// The ranks of the inputs, then of the outputs, as far as they are known before the shapes.
    pub ranks: &'a [usize],
    /// The shapes of the inputs, then of the outputs as far as they are known.
    pub shapes: &'a [&'a [i64]],
    /// Of what each tensor's address is a multiple, bytes; empty while addresses are not known.
    pub alignments: &'a [u64],
}

impl Environment for Facts<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(index as usize)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.shapes.get(tensor as usize).copied()
    }

    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        let alignment = self.alignments.get(tensor as usize)?;
        Some(bytes != 0 && alignment % u64::from(bytes) == 0)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.ranks.get(tensor as usize).copied().or_else(|| self.shape(tensor).map(<[i64]>::len))
    }
}

/// What does not hold, in words for the person whose node it is: lower case, no full stop, without the node's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unmet(pub String);

/// The error for an attribute that a node lacks and that has no default.
#[must_use]
pub fn missing_attribute(attribute: &Attribute) -> Unmet {
    Unmet(format!(
        "the node lacks the attribute `{}` (`{}`), which has no default",
        attribute.name,
        attribute.ty.name()
    ))
}

/// Holds a value against the attribute's type and rules.
///
/// # Errors
/// The first that it breaks.
pub fn check_attribute(attribute: &Attribute, value: &Value) -> Result<(), Unmet> {
    attribute.check(value).map_err(|error| Unmet(format!("the {error}")))
}

/// Holds the inputs' ranks against those that the plugin takes; what `ranks` gives beyond the inputs is left alone.
///
/// # Errors
/// The first input with another rank.
pub fn check_ranks(plugin: &Plugin, ranks: impl Iterator<Item = usize>) -> Result<(), Unmet> {
    for (input, rank) in plugin.inputs.iter().zip(ranks) {
        let (min, max) = (usize::from(input.rank_min), usize::from(input.rank_max));
        if !(min..=max).contains(&rank) {
            let expected = if min == max { format!("{min}") } else { format!("{min} to {max}") };
            return Err(Unmet(format!("input `{}` has rank {rank}, expected {expected}", input.name)));
        }
    }
    Ok(())
}

/// Holds a tensor's shape against its limits; `place` says whose shape it is where that is not plain, beginning with a blank.
///
/// # Errors
/// The first dimension beyond them, else the number of elements.
pub fn check_limits(name: &str, shape: &[i64], limits: &ShapeLimits, place: &str) -> Result<(), Unmet> {
    let beyond = |what: String, allowed: Interval| {
        Unmet(format!("{what} in {}{place}, and the manifest limits that to {allowed}", shape_text(shape)))
    };
    for (axis, extent) in shape.iter().enumerate() {
        let allowed = limits.dim(axis);
        if !allowed.contains(*extent) {
            return Err(beyond(format!("dimension {axis} of `{name}` is {extent}"), allowed));
        }
    }
    // A 0 decides, whatever the others come to.
    let numel = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1_i64, |product, extent| product.checked_mul(*extent))
    };
    match numel {
        Some(numel) if limits.numel.contains(numel) => Ok(()),
        Some(numel) => Err(beyond(format!("the number of elements of `{name}` is {numel}"), limits.numel)),
        None if limits.numel.max == i64::MAX => Ok(()),
        None => Err(beyond(format!("the number of elements of `{name}` is beyond 64 bits"), limits.numel)),
    }
}

/// Holds a node against one requirement. None where `facts` cannot decide it yet.
///
/// # Errors
/// Where it does not hold, with the author's message and the facts.
pub fn check_requirement(
    plugin: &Plugin,
    require: &Requirement,
    facts: &Facts<'_>,
) -> Result<Option<()>, Unmet> {
    let why = match expr::evaluate(&require.expr, facts) {
        Ok(Value::Bool(true)) => return Ok(Some(())),
        Ok(_) => String::new(),
        Err(EvalError::UnknownAttribute(_) | EvalError::UnknownTensor(_)) => return Ok(None),
        Err(error) => format!(" ({error})"),
    };
    Err(Unmet(format!(
        "{}: `{}` does not hold{why}{}",
        require.message,
        require.text,
        describe(plugin, facts)
    )))
}

/// The shapes of the outputs, held against their limits. `facts` has the attributes and the inputs' shapes.
///
/// # Errors
/// The first output whose shape has no value, or one that no tensor has.
pub fn output_shapes(plugin: &Plugin, facts: &Facts<'_>) -> Result<Vec<Vec<i64>>, Unmet> {
    let shape = |output: &crate::model::Output| {
        let wrong = |what: String| {
            Unmet(format!("the shape of `{}`: {what}{}", output.name, describe(plugin, facts)))
        };
        let value = expr::evaluate(&output.shape, facts).map_err(|error| wrong(error.to_string()))?;
        let Some(shape) = value.as_ints() else {
            return Err(wrong(format!("found {value}, expected an array of integers")));
        };
        if shape.iter().any(|extent| *extent < 0) {
            return Err(wrong(format!("{value} has a negative dimension")));
        }
        check_limits(&output.name, &shape, &output.limits, "")?;
        Ok(shape)
    };
    plugin.outputs.iter().map(shape).collect()
}

/// Whether a variant may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardVerdict {
    /// Its guard holds, or it has none.
    Holds,
    /// Its guard is false.
    Fails,
    /// Its guard has no value; the variant is not run.
    NoValue(EvalError),
}

/// Whether a guard holds: only what is plainly true does.
#[must_use]
pub fn verdict(guard: Option<&Guard>, environment: &dyn Environment) -> GuardVerdict {
    match guard.map(|guard| expr::evaluate(&guard.expr, environment)) {
        None | Some(Ok(Value::Bool(true))) => GuardVerdict::Holds,
        Some(Ok(_)) => GuardVerdict::Fails,
        Some(Err(error)) => GuardVerdict::NoValue(error),
    }
}

/// The first variant of these types whose guard holds, with its index: what [`crate::model::AUTO_TACTIC`] runs.
#[must_use]
pub fn choose<'p>(
    plugin: &'p Plugin,
    types: &[DataType],
    environment: &dyn Environment,
) -> Option<(usize, &'p Variant)> {
    let mut variants = plugin.variants.iter().enumerate().filter(|(_, variant)| variant.types == types);
    variants.find(|(_, variant)| verdict(variant.guard.as_ref(), environment) == GuardVerdict::Holds)
}

/// The variants of these types that may run for some addresses: in order, up to the first that runs whatever they are. `facts` is taken
/// without alignments. The runtime evaluates the launches of all of them when shapes change.
#[must_use]
pub fn candidates(plugin: &Plugin, types: &[DataType], facts: &Facts<'_>) -> Vec<usize> {
    let unplaced = Facts { alignments: &[], ..*facts };
    let mut found = Vec::new();
    for (index, variant) in plugin.variants.iter().enumerate().filter(|(_, variant)| variant.types == types) {
        let residual = variant.guard.as_ref().map(|guard| expr::bind(&guard.expr, &unplaced));
        let depends = residual.as_ref().is_some_and(|residual| {
            residual.nodes.iter().any(|node| matches!(node, expr::Node::Aligned { .. }))
        });
        if depends {
            found.push(index);
        } else if verdict(variant.guard.as_ref(), &unplaced) == GuardVerdict::Holds {
            found.push(index);
            break;
        }
    }
    found
}

/// The error for shapes, and addresses where they are known, for which no variant of these types may run.
#[must_use]
pub fn none_holds(plugin: &Plugin, types: &[DataType], facts: &Facts<'_>) -> Unmet {
    let of_types = plugin.variants.iter().filter(|variant| variant.types == types);
    let guards: Vec<String> = of_types
        .filter_map(|variant| {
            let guard = variant.guard.as_ref()?;
            let outcome = match expr::evaluate(&guard.expr, facts) {
                Ok(Value::Bool(value)) => format!("is {value}"),
                Ok(value) => format!("is `{value}`, which is no boolean"),
                Err(error) => format!("has no value ({error})"),
            };
            Some(format!("variant {}: guard `{}` {outcome}", variant.id, guard.text))
        })
        .collect();
    let mut known = describe(plugin, facts);
    for (index, alignment) in facts.alignments.iter().enumerate() {
        let name = plugin.tensor_name(index).unwrap_or("?");
        // No kernel needs more, and nobody wants to read it.
        known.push_str(&format!(", {name} is aligned to {}", alignment.min(&4096)));
    }
    Unmet(format!("no variant can run: {}{known}", guards.join("; ")))
}

/// The attributes and shapes that an error is about, for its end.
fn describe(plugin: &Plugin, facts: &Facts<'_>) -> String {
    let attributes = plugin.attributes.iter().zip(facts.attributes);
    let mut known: Vec<String> =
        attributes.map(|(attribute, value)| format!("{} = {value}", attribute.name)).collect();
    for (index, shape) in facts.shapes.iter().enumerate() {
        known.push(format!("{} is {}", plugin.tensor_name(index).unwrap_or("?"), shape_text(shape)));
    }
    if facts.shapes.is_empty() {
        for (index, rank) in facts.ranks.iter().enumerate() {
            known.push(format!("{} has rank {rank}", plugin.tensor_name(index).unwrap_or("?")));
        }
    }
    if known.is_empty() { String::new() } else { format!("; {}", known.join(", ")) }
}

/// A shape as people write it: `10x3x32x32`, `a scalar` for rank 0.
#[must_use]
pub fn shape_text(shape: &[i64]) -> String {
    if shape.is_empty() {
        return "a scalar".to_owned();
    }
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// The plugin as ONNX and TensorRT users write it: `sample::circ_pad_plugin`.
#[must_use]
pub fn full_name(plugin: &Plugin) -> String {
    if plugin.namespace.is_empty() {
        plugin.name.clone()
    } else {
        format!("{}::{}", plugin.namespace, plugin.name)
    }
}
