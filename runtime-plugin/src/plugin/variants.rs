use cubinder_launch::proof::Domain;
use cubinder_launch::{Facts, GuardDecision, describe};
use cubinder_model::{AUTO_TACTIC, Variant};
use trt_abi::Severity;

use super::node::NamedNode;
use super::profile::Profile;

const MAX_LISTED: usize = 8;

/// Returns the automatic tactic, the first for TensorRT-RTX; then variants that may run for every shape of the profile.
/// Empty for one variant.
pub(super) fn tactics<'a>(
    node: &NamedNode,
    reachable: impl Iterator<Item = &'a Variant>,
    profile: Option<&Profile>,
) -> Vec<i32> {
    let mut domain = Domain::new(node.definition.plugin()).with_attributes(&node.attributes);
    if let Some(profile) = profile {
        domain = domain.with_profile(&profile.inputs);
    }
    let always = |variant: &Variant| variant.guard.as_ref().is_none_or(|guard| domain.proves(&guard.expr));
    // Rows that differ only in types share an id; until types settle all need proofs.
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

pub(super) fn log_replaced(node: &NamedNode, chosen: usize, running: usize, facts: &Facts<'_>) {
    let plugin = node.definition.plugin();
    let (Some(chosen), Some(running)) = (plugin.variants.get(chosen), plugin.variants.get(running)) else {
        return;
    };
    let guard = chosen.guard.as_ref().map_or("", |guard| &guard.text);
    let (running, chosen, facts) = (running.id, chosen.id, describe(plugin, facts));
    let text = format_args!(
        "variant {running} runs instead of variant {chosen}, whose guard `{guard}` is false{facts}"
    );
    node.log(Severity::VERBOSE, text);
}

/// Warns about guards without a value: hardly intended.
pub(super) fn log_without_value(node: &NamedNode, decided: &GuardDecision, facts: &Facts<'_>) {
    let plugin = node.definition.plugin();
    for (variant, error) in decided.without_value.iter().take(MAX_LISTED) {
        let Some(variant) = plugin.variants.get(*variant) else { continue };
        let guard = variant.guard.as_ref().map_or("", |guard| &guard.text);
        let (id, facts) = (variant.id, describe(plugin, facts));
        let text =
            format_args!("variant {id} is skipped, because its guard `{guard}` has no value: {error}{facts}");
        node.log(Severity::WARNING, text);
    }
}
