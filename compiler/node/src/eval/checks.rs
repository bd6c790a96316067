//! Checks a node before output shapes are computed, in the order of [`cubinder_launch`].

use cubinder_expr::Interval;
use cubinder_launch::{Facts, Rule, Steps, rules_of_attributes, rules_of_shapes};
use cubinder_model::attribute_check::Unmet;
use cubinder_model::{Attribute, Input, ShapeLimits};

use super::report::Check;
use super::subject::Subject;

pub(super) fn checks(subject: &Subject, facts: &Facts<'_>, steps: &mut Steps) -> Vec<Check> {
    let plugin = &subject.plugin;
    let alone = Facts { attributes: facts.attributes, ..Facts::default() };
    let mut list = Vec::new();
    let mut decided = Vec::new();
    let mut of_attributes = Steps::default();
    for rule in rules_of_attributes(plugin) {
        // Later results are meaningless.
        if matches!(rule, Rule::Require(_) | Rule::Specialized)
            && list.iter().any(|check: &Check| !check.holds)
        {
            break;
        }
        let result = rule.check(plugin, &alone, &mut of_attributes);
        if result != Ok(None) {
            decided.push(rule);
            list.extend(shown(&rule, result.map(drop)));
        }
    }
    let by_shapes = || rules_of_shapes(plugin).filter(|rule| !decided.contains(rule));
    for rule in by_shapes().filter(|rule| matches!(rule, Rule::Rank(..))) {
        let result = rule.check(plugin, facts, steps).map(drop);
        list.extend(shown(&rule, result));
        list.extend(built_rank(subject, &rule, facts));
    }
    // Later results are consequences.
    if list.iter().any(|check: &Check| !check.holds) {
        return list;
    }
    for rule in by_shapes().filter(|rule| !matches!(rule, Rule::Rank(..))) {
        let result = rule.check(plugin, facts, steps).map(drop);
        list.extend(shown(&rule, result));
    }
    list
}

/// `None` if trivially satisfied.
fn shown(rule: &Rule<'_>, result: Result<(), Unmet>) -> Option<Check> {
    let text = match *rule {
        Rule::Attribute(_, attribute) => match rules(attribute) {
            rules if rules.is_empty() && result.is_ok() => return None,
            rules if rules.is_empty() => format!("`{}` is `{}`", attribute.name, attribute.ty.name()),
            rules => format!("`{}` {rules}", attribute.name),
        },
        Rule::Specialized => "the attributes have specialized code".to_owned(),
        Rule::Rank(_, input) => format!("`{}` has rank {}", input.name, allowed_ranks(input)),
        Rule::Require(require) => format!("`{}`", require.text),
        Rule::Limits(_, input) if input.limits == ShapeLimits::default() => return None,
        Rule::Limits(_, input) => format!("`{}` {}", input.name, limits(&input.limits)),
        Rule::Values(_, input) => {
            let allowed =
                input.values.filter(|allowed| *allowed != Interval { min: i64::MIN, max: i64::MAX })?;
            format!("`{}` has values of {allowed}", input.name)
        }
    };
    Some(check(text, result))
}

fn check(text: String, result: Result<(), Unmet>) -> Check {
    Check { text, holds: result.is_ok(), why: result.err().map(|Unmet(why)| why) }
}

/// Formats `2`, `1 to 4`.
pub(super) fn allowed_ranks(input: &Input) -> String {
    match (input.rank_min, input.rank_max) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

fn built_rank(subject: &Subject, rule: &Rule<'_>, facts: &Facts<'_>) -> Option<Check> {
    let Rule::Rank(index, input) = *rule else { return None };
    let built = *subject.input_ranks.as_ref()?.get(index)?;
    let (name, found) = (&input.name, facts.shapes.get(index)?.len());
    let result = if usize::from(built) == found {
        Ok(())
    } else {
        Err(Unmet(format!("input `{name}` has rank {found}, but the engine was built for rank {built}")))
    };
    Some(check(format!("`{name}` has the rank of the engine's build, {built}"), result))
}

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
