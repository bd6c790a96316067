use super::facts::{Facts, UNKNOWN_EXTENT, describe, shape_text};
use super::signature::check_specialized;
use super::steps::Steps;
use cubinder_expr::value::Value;
use cubinder_expr::{Environment as _, EvalError, Node};
use cubinder_model::attribute_check::{Unmet, check_attribute};
use cubinder_model::model::{Attribute, Input, Interval, MAX_RANK, Output, Plugin, Requirement, ShapeLimits};

/// A rule for nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule<'p> {
    /// An attribute meets type and constraints.
    Attribute(usize, &'p Attribute),
    /// Code exists for specialized attributes. After requirements: their messages are better.
    Specialized,
    /// An input's rank is supported.
    Rank(usize, &'p Input),
    /// A requirement.
    Require(&'p Requirement),
    /// Limits of a shape.
    Limits(usize, &'p Input),
    /// Limits of a shape input's values.
    Values(usize, &'p Input),
}

/// Returns a new node's rules: attributes, requirements on them, code.
pub fn rules_of_attributes(plugin: &Plugin) -> impl Iterator<Item = Rule<'_>> {
    let attributes = plugin.attributes.iter().enumerate();
    let attributes = attributes.map(|(index, attribute)| Rule::Attribute(index, attribute));
    let is_specialized = plugin.variants.iter().any(|variant| !variant.specialized.is_empty());
    let specialized = is_specialized.then_some(Rule::Specialized);
    attributes.chain(plugin.require.iter().map(Rule::Require)).chain(specialized)
}

/// Returns new shapes' rules: ranks, requirements, limits.
pub fn rules_of_shapes(plugin: &Plugin) -> impl Iterator<Item = Rule<'_>> {
    let inputs = || plugin.inputs.iter().enumerate();
    let ranks = inputs().map(|(index, input)| Rule::Rank(index, input));
    let limits = inputs().map(|(index, input)| Rule::Limits(index, input));
    let values = inputs().filter(|(_, input)| input.values.is_some());
    let values = values.map(|(index, input)| Rule::Values(index, input));
    ranks.chain(plugin.require.iter().map(Rule::Require)).chain(limits).chain(values)
}

/// Checks rules in order, skipping undecided ones, up to the first violation.
pub fn check<'p>(
    plugin: &Plugin,
    mut rules: impl Iterator<Item = Rule<'p>>,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<(), Unmet> {
    rules.try_for_each(|rule| rule.check(plugin, facts, steps).map(drop))
}

impl Rule<'_> {
    /// Checks the rule; `None` if `facts` cannot decide it.
    pub fn check(&self, plugin: &Plugin, facts: &Facts<'_>, steps: &mut Steps) -> Result<Option<()>, Unmet> {
        match *self {
            Rule::Attribute(index, attribute) => {
                let value = facts.attributes.get(index);
                value.map(|value| check_attribute(attribute, value)).transpose()
            }
            Rule::Specialized if facts.attributes.is_empty() => Ok(None),
            Rule::Specialized => check_specialized(plugin, facts.attributes).map(Some),
            Rule::Rank(index, input) => {
                let shape = || facts.shapes.get(index).map(|shape| shape.len());
                let rank = facts.ranks.get(index).copied().or_else(shape);
                rank.map(|rank| check_rank(input, rank)).transpose()
            }
            Rule::Require(require) => check_requirement(plugin, require, facts, steps),
            Rule::Limits(index, input) => {
                let shape = facts.shapes.get(index);
                shape.map(|shape| check_limits(&input.name, shape, &input.limits, "")).transpose()
            }
            Rule::Values(index, input) => {
                let values = facts.values.get(index);
                values.map(|values| check_values(input, values)).transpose()
            }
        }
    }
}

fn check_values(input: &Input, values: &[i64]) -> Result<(), Unmet> {
    let allowed = input.values.unwrap_or(Interval { min: i64::MIN, max: i64::MAX });
    match values.iter().enumerate().find(|(_, value)| !allowed.contains(**value)) {
        None => Ok(()),
        Some((index, value)) => Err(Unmet(format!(
            "value {index} of the shape input `{}` is {value}; the manifest limits it to {allowed}",
            input.name
        ))),
    }
}

fn check_rank(input: &Input, rank: usize) -> Result<(), Unmet> {
    let (min, max) = (usize::from(input.rank_min), usize::from(input.rank_max));
    if (min..=max).contains(&rank) {
        return Ok(());
    }
    let expected = if min == max { format!("{min}") } else { format!("{min} to {max}") };
    Err(Unmet(format!("input `{}` has rank {rank}, expected {expected}", input.name)))
}

/// Checks dimensions, then elements. `place` follows the name, after a blank or comma.
pub fn check_limits(name: &str, shape: &[i64], limits: &ShapeLimits, place: &str) -> Result<(), Unmet> {
    check_known_limits(name, shape, limits, place, &|_| false)
}

/// Checks an output as [`check_limits`], but not [`UNKNOWN_EXTENT`]s.
pub fn check_output_limits(output: &Output, shape: &[i64], place: &str) -> Result<(), Unmet> {
    let is_open = |axis: usize| shape.get(axis) == Some(&UNKNOWN_EXTENT) && size_at(output, axis).is_some();
    check_known_limits(&output.name, shape, &output.limits, place, &is_open)
}

fn check_known_limits(
    name: &str,
    shape: &[i64],
    limits: &ShapeLimits,
    place: &str,
    is_open: &dyn Fn(usize) -> bool,
) -> Result<(), Unmet> {
    let beyond = |what: String, allowed: Interval| {
        Unmet(format!("{what} in {}{place}; the manifest limits it to {allowed}", shape_text(shape)))
    };
    for (axis, extent) in shape.iter().enumerate().filter(|(axis, _)| !is_open(*axis)) {
        let allowed = limits.dim(axis);
        if !allowed.contains(*extent) {
            return Err(beyond(format!("dimension {axis} of `{name}` is {extent}"), allowed));
        }
    }
    if (0..shape.len()).any(is_open) {
        return Ok(());
    }
    // A 0 makes the count 0 despite overflows.
    let numel = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1_i64, |product, extent| product.checked_mul(*extent))
    };
    match numel {
        Some(numel) if limits.numel.contains(numel) => Ok(()),
        Some(numel) => Err(beyond(format!("the number of elements of `{name}` is {numel}"), limits.numel)),
        None if limits.numel.max == i64::MAX => Ok(()),
        None => Err(beyond(format!("the number of elements of `{name}` exceeds 64 bits"), limits.numel)),
    }
}

fn check_requirement(
    plugin: &Plugin,
    require: &Requirement,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<Option<()>, Unmet> {
    let why = match steps.value(&require.expr, facts) {
        Ok(Value::Bool(true)) => return Ok(Some(())),
        Ok(_) => String::new(),
        Err(EvalError::UnknownAttribute(_) | EvalError::UnknownTensor(_) | EvalError::UnknownValues(_)) => {
            return Ok(None);
        }
        Err(error) => format!(" ({})", steps.why(&error)),
    };
    Err(Unmet(format!("{}: `{}` is false{why}{}", require.message, require.text, describe(plugin, facts))))
}

/// Returns the outputs' shapes, checked against limits.
pub fn output_shapes(plugin: &Plugin, facts: &Facts<'_>, steps: &mut Steps) -> Result<Vec<Vec<i64>>, Unmet> {
    let shape = |output: &Output| {
        let shape = output_shape(plugin, output, facts, steps)?;
        check_output_limits(output, &shape, "")?;
        Ok(shape)
    };
    plugin.outputs.iter().map(shape).collect()
}

/// Returns an output's unchecked shape; data-dependent dimensions may be [`UNKNOWN_EXTENT`].
pub fn output_shape(
    plugin: &Plugin,
    output: &Output,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<Vec<i64>, Unmet> {
    let wrong =
        |what: String| Unmet(format!("the shape of `{}`: {what}{}", output.name, describe(plugin, facts)));
    // Never an operand: a size is a complete dimension.
    let size = |tensor: usize| facts.sizes.get(tensor).copied().flatten().or(Some(UNKNOWN_EXTENT));
    let sizes: Vec<Option<i64>> = (0..plugin.tensor_count()).map(size).collect();
    let announced = Facts { sizes: &sizes, ..*facts };
    let value = steps.value(&output.shape, &announced).map_err(|error| wrong(steps.why(&error)))?;
    let Some(shape) = value.as_ints() else {
        return Err(wrong(format!("found {value}, expected an array of integers")));
    };
    let is_open = |axis: usize| size_at(output, axis).is_some_and(|tensor| facts.size(tensor).is_none());
    if shape.iter().enumerate().any(|(axis, extent)| *extent < 0 && !is_open(axis)) {
        return Err(wrong(format!("{value} has a negative dimension")));
    }
    if shape.len() > usize::from(MAX_RANK) {
        return Err(wrong(format!("{value} has more than {MAX_RANK} dimensions")));
    }
    Ok(shape)
}

pub(super) fn size_at(output: &Output, axis: usize) -> Option<u32> {
    let Some(Node::Array(items)) = output.shape.nodes.last() else { return None };
    match output.shape.nodes.get(*items.get(axis)? as usize) {
        Some(Node::Size(tensor)) => Some(*tensor),
        _ => None,
    }
}
