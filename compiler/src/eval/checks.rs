//! What must hold of a node before its outputs' shapes are computed, each with its verdict.

use cubinder_bundle::launch::{Facts, Unmet, check_attribute, check_limits, check_ranks, check_requirement};
use cubinder_bundle::{Attribute, Input, Interval, ShapeLimits};

use super::report::Check;
use super::subject::Subject;

/// Everything that is looked at, in the order of the runtime. `facts` has the attributes and the inputs' shapes.
pub(super) fn checks(subject: &Subject, facts: &Facts<'_>) -> Vec<Check> {
    let plugin = &subject.plugin;
    let mut list = Vec::new();
    for (attribute, value) in plugin.attributes.iter().zip(facts.attributes) {
        // That a value is of its type is plain; that it is not has to be said.
        let result = check_attribute(attribute, value);
        let rules = rules(attribute);
        match (rules.is_empty(), result.is_ok()) {
            (true, true) => {}
            (true, false) => {
                list.push(check(format!("`{}` is `{}`", attribute.name, attribute.ty.name()), result));
            }
            (false, _) => list.push(check(format!("`{}` {rules}", attribute.name), result)),
        }
    }
    let shapes = || plugin.inputs.iter().zip(facts.shapes.iter().copied()).enumerate();
    for (index, (input, shape)) in shapes() {
        list.push(check(
            format!("`{}` has rank {}", input.name, allowed_ranks(input)),
            rank(subject, index, shape),
        ));
        list.extend(built_rank(subject, index, input, shape));
    }
    // What a rank out of bounds does to a rule says nothing.
    if list.iter().any(|check| !check.holds) {
        return list;
    }
    for require in &plugin.require {
        let result = check_requirement(plugin, require, facts).map(drop);
        list.push(check(format!("`{}`", require.text), result));
    }
    for (_, (input, shape)) in shapes() {
        if input.limits != ShapeLimits::default() {
            let text = format!("`{}` {}", input.name, limits(&input.limits));
            list.push(check(text, check_limits(&input.name, shape, &input.limits, "")));
        }
    }
    list
}

fn check(text: String, result: Result<(), Unmet>) -> Check {
    Check { text, holds: result.is_ok(), why: result.err().map(|Unmet(why)| why) }
}

fn allowed_ranks(input: &Input) -> String {
    match (input.rank_min, input.rank_max) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// Whether one input has a rank that the plugin takes; the others are given one that they may have.
fn rank(subject: &Subject, index: usize, shape: &[i64]) -> Result<(), Unmet> {
    let inputs = subject.plugin.inputs.iter().enumerate();
    let ranks = inputs.map(|(other, input)| if other == index { shape.len() } else { input.rank_min.into() });
    check_ranks(&subject.plugin, ranks)
}

/// Whether an input has the rank for which an engine was built: TensorRT lets no other through.
fn built_rank(subject: &Subject, index: usize, input: &Input, shape: &[i64]) -> Option<Check> {
    let built = *subject.input_ranks.as_ref()?.get(index)?;
    let (name, found) = (&input.name, shape.len());
    let result = if usize::from(built) == found {
        Ok(())
    } else {
        Err(Unmet(format!("input `{name}` has rank {found}, and the engine was built for rank {built}")))
    };
    Some(check(format!("`{name}` has rank {built}, for which the engine was built"), result))
}

/// What an attribute may be beside its type, in words; empty where it may be anything.
fn rules(attribute: &Attribute) -> String {
    let mut parts = Vec::new();
    if let Some(length) = attribute.length {
        parts.push(format!("has length {length}"));
    }
    match (&attribute.minimum, &attribute.maximum) {
        (Some(least), Some(most)) => parts.push(format!("is from {least} to {most}")),
        (Some(least), None) => parts.push(format!("is at least {least}")),
        (None, Some(most)) => parts.push(format!("is at most {most}")),
        (None, None) => {}
    }
    if !attribute.one_of.is_empty() {
        let choices: Vec<String> = attribute.one_of.iter().map(ToString::to_string).collect();
        parts.push(format!("is one of {}", choices.join(", ")));
    }
    parts.join(", ")
}

fn limits(limits: &ShapeLimits) -> String {
    let mut parts = Vec::new();
    if !limits.dims.is_empty() {
        let dims: Vec<String> = limits.dims.iter().map(ToString::to_string).collect();
        parts.push(format!("has dimensions of {}", dims.join(", ")));
    } else if limits.every != Interval::ANY_SIZE {
        parts.push(format!("has dimensions of {}", limits.every));
    }
    if limits.numel != Interval::ANY_SIZE {
        parts.push(format!("has {} elements", limits.numel));
    }
    parts.join(", ")
}
