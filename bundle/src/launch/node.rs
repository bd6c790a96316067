//! A node with its shapes: what is refused, what the outputs' shapes are, and which variant runs.

use std::cmp::Ordering;

use crate::data_type::DataType;
use crate::expr::{self, Environment, EvalError};
use crate::model::{Attribute, AttributeElement, Guard, Interval, Plugin, Requirement, ShapeLimits, Variant};
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

/// Holds a value against the attribute's type, length, range and choices.
///
/// # Errors
/// The first of them that it does not meet.
pub fn check_attribute(attribute: &Attribute, value: &Value) -> Result<(), Unmet> {
    let name = &attribute.name;
    if !attribute.ty.admits(value) {
        return Err(Unmet(format!("the attribute `{name}` is {value}, expected `{}`", attribute.ty.name())));
    }
    if let Some(length) = attribute.length {
        let (found, what) = match value {
            Value::Array(items) if attribute.ty.element == AttributeElement::Bytes => (items.len(), "bytes"),
            Value::Array(items) => (items.len(), "elements"),
            Value::Str(text) => (text.len(), "bytes"),
            _ => return Ok(()),
        };
        if !i64::try_from(found).is_ok_and(|found| length.contains(found)) {
            return Err(Unmet(format!("the attribute `{name}` has {found} {what}, expected {length}")));
        }
    }
    match value {
        Value::Array(items) if attribute.ty.element != AttributeElement::Bytes => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| check_element(attribute, &format!("{name}[{index}]"), item)),
        value => check_element(attribute, name, value),
    }
}

fn check_element(attribute: &Attribute, name: &str, value: &Value) -> Result<(), Unmet> {
    let below = |least: &Value| number_below(value, least);
    if let Some(least) = attribute.minimum.as_ref().filter(|least| below(least)) {
        return Err(Unmet(format!("the attribute `{name}` is {value}, the least is {least}")));
    }
    if let Some(most) = attribute.maximum.as_ref().filter(|most| number_below(most, value)) {
        return Err(Unmet(format!("the attribute `{name}` is {value}, the most is {most}")));
    }
    if attribute.one_of.is_empty() || attribute.one_of.contains(value) {
        return Ok(());
    }
    let choices: Vec<String> = attribute.one_of.iter().map(ToString::to_string).collect();
    Err(Unmet(format!("the attribute `{name}` is {value}, expected one of {}", choices.join(", "))))
}

/// NaN is below and above everything: it is within no range.
fn number_below(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left < right,
        (Value::Float(left), Value::Float(right)) => {
            !matches!(left.partial_cmp(right), Some(Ordering::Equal | Ordering::Greater))
        }
        _ => false,
    }
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

/// Holds a tensor's shape against its limits.
///
/// # Errors
/// The first dimension beyond them, then the number of elements.
pub fn check_limits(name: &str, shape: &[i64], limits: &ShapeLimits) -> Result<(), Unmet> {
    for (axis, extent) in shape.iter().enumerate() {
        let allowed = limits.dim(axis);
        if !allowed.contains(*extent) {
            return Err(Unmet(format!(
                "dimension {axis} of `{name}` is {extent}, expected {allowed}; `{name}` is {}",
                shape_text(shape)
            )));
        }
    }
    if limits.numel == Interval::ANY_SIZE {
        return Ok(());
    }
    // A 0 decides, whatever the others come to.
    let elements = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1_i64, |product, extent| product.checked_mul(*extent))
    };
    match elements {
        Some(elements) if limits.numel.contains(elements) => Ok(()),
        found => Err(Unmet(format!(
            "`{name}` has {} elements, expected {}; `{name}` is {}",
            found.map_or_else(|| format!("more than {}", i64::MAX), |elements| elements.to_string()),
            limits.numel,
            shape_text(shape)
        ))),
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
        check_limits(&output.name, &shape, &output.limits)?;
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
