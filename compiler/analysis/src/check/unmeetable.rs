//! Manifests that no node can meet: then everything else would be proved of nothing.

use cubinder_launch::proof::Verdict;
use cubinder_model::{Plugin, ShapeLimits};

use super::formula::truth;
use super::require_is_constant;
use super::site::Site;
use crate::diagnostic::{Diagnostic, Span, has_errors};
use crate::rules;

/// Whether no node and no shape is possible.
pub(super) fn is_empty(site: &Site<'_>, plugin: &Plugin) -> bool {
    site.domain_of(plugin).sharing(site.pool).never(&truth()) == Verdict::Proved
}

/// Why that is so: a rule about nodes, else limits, else something that only all together do.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = require_is_constant::check(site);
    if has_errors(&diagnostics) {
        return diagnostics;
    }
    let manifest = &site.resolved.manifest;
    let inputs = manifest.inputs.iter().map(|input| (&input.name, &input.limits));
    let tensors = inputs.chain(manifest.outputs.iter().map(|output| (&output.name, &output.limits)));
    let limited = tensors.enumerate().filter(|(_, (_, limits))| !limits.range.is_empty());
    let limited: Vec<_> = limited.collect();
    // The last ones first: outputs follow from inputs.
    let culprit =
        limited.into_iter().rev().find(|(tensor, _)| !is_empty(site, &without_limits(site.plugin, *tensor)));
    diagnostics.push(match culprit {
        Some((_, (name, limits))) => Diagnostic::error(format!(
            "no node can keep the limits of `{}`",
            name.value
        ))
        .code(rules::BAD_CONSTRAINT)
        .at(
            Span::new(&site.resolved.source, limits.range.clone()),
            "nothing that the manifest allows otherwise does",
        )
        .help(
            "correct them, or what contradicts them: the shape, ranks, attributes, `require`, other limits",
        ),
        None => Diagnostic::error("no node can meet this manifest")
            .code(rules::BAD_CONSTRAINT)
            .at(site.resolved.name_span.clone(), "declared here")
            .help(
                "`limits`, `require`, attributes and ranks contradict each other: take them out one by one",
            ),
    });
    diagnostics
}

/// The plugin with any shape for one tensor.
fn without_limits(plugin: &Plugin, tensor: usize) -> Plugin {
    let mut plugin = plugin.clone();
    let outputs = plugin.inputs.len();
    let limits = match tensor.checked_sub(outputs) {
        None => plugin.inputs.get_mut(tensor).map(|input| &mut input.limits),
        Some(output) => plugin.outputs.get_mut(output).map(|output| &mut output.limits),
    };
    if let Some(limits) = limits {
        *limits = ShapeLimits::default();
    }
    plugin
}
