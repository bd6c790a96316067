//! Which tactics a plugin has, and what the log is told of the variants that run in their place.

use cubinder_launch::proof::Domain;
use cubinder_launch::{Facts, GuardDecision, describe};
use cubinder_model::{AUTO_TACTIC, Variant};
use trt_abi::Severity;

use super::node::NodeData;
use super::profile::Profile;

/// Guards without a value that are told; an engine may have thousands.
const MAX_LISTED: usize = 8;

/// The tactics that a plugin offers: first the one that leaves the choice to the shapes of each run, because TensorRT-RTX takes
/// the first, then the variants that may run for every shape of the profile, in their order. A plugin with a single variant offers no
/// choice, so it has no tactics.
pub(super) fn tactics<'a>(
    node: &NodeData,
    reachable: impl Iterator<Item = &'a Variant>,
    profile: Option<&Profile>,
) -> Vec<i32> {
    let mut domain = Domain::new(node.definition.plugin()).with_attributes(&node.attributes);
    if let Some(profile) = profile {
        domain = domain.with_profile(&profile.inputs);
    }
    let always = |variant: &Variant| variant.guard.as_ref().is_none_or(|guard| domain.proves(&guard.expr));
    // Rows that differ in types alone share an id; before types are settled all of them have to hold.
    let mut ids: Vec<(i32, bool)> = Vec::new();
    for variant in reachable {
        match ids.iter_mut().find(|(id, _)| *id == variant.id) {
            Some((_, holds)) => *holds = *holds && always(variant),
            None => ids.push((variant.id, always(variant))),
        }
    }
    if ids.len() < 2 {
        return Vec::new();
    }
    let proved = ids.into_iter().filter(|(_, holds)| *holds).map(|(id, _)| id);
    std::iter::once(AUTO_TACTIC).chain(proved).collect()
}

/// Says, where somebody asked to be told everything, that another variant runs than the one that was chosen.
pub(super) fn log_replaced(node: &NodeData, chosen: usize, running: usize, facts: &Facts<'_>) {
    let plugin = node.definition.plugin();
    let (Some(chosen), Some(running)) = (plugin.variants.get(chosen), plugin.variants.get(running)) else {
        return;
    };
    let guard = chosen.guard.as_ref().map_or("", |guard| &guard.text);
    let (running, chosen, facts) = (running.id, chosen.id, describe(plugin, facts));
    let text = format_args!(
        "variant {running} runs in place of variant {chosen}, whose guard `{guard}` does not hold{facts}"
    );
    node.log(Severity::VERBOSE, text);
}

/// Says that guards have no value; their variants do not run, which is safe and surely not what was meant.
pub(super) fn log_without_value(node: &NodeData, decided: &GuardDecision, facts: &Facts<'_>) {
    let plugin = node.definition.plugin();
    for (variant, error) in decided.without_value.iter().take(MAX_LISTED) {
        let Some(variant) = plugin.variants.get(*variant) else { continue };
        let guard = variant.guard.as_ref().map_or("", |guard| &guard.text);
        let (id, facts) = (variant.id, describe(plugin, facts));
        let text = format_args!(
            "variant {id} does not run, because its guard `{guard}` has no value: {error}{facts}"
        );
        node.log(Severity::WARNING, text);
    }
}
