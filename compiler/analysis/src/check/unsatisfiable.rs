//! Reports manifests that no node satisfies: all claims would hold vacuously.

use cubinder_launch::proof::Verdict;
use cubinder_model::{Plugin, ShapeLimits};

use super::draft_view::DraftView;
use super::errors::{UnsatisfiableLimits, UnsatisfiableManifest};
use super::formula::truth;
use super::require_is_constant;
use crate::diagnostic::{Diagnostic, Span, has_errors};

pub(super) fn is_empty(view: &DraftView<'_>, plugin: &Plugin) -> bool {
    view.domain_of(plugin).sharing(&view.pools.proofs).never(&truth()) == Verdict::Proved
}

/// Blames a rule, else limits, else their combination.
pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = require_is_constant::check(view);
    if has_errors(&diagnostics) {
        return diagnostics;
    }
    let manifest = &view.resolved.manifest;
    let inputs = manifest.inputs.iter().map(|input| (&input.name, &input.limits));
    let tensors = inputs.chain(manifest.outputs.iter().map(|output| (&output.name, &output.limits)));
    let limited = tensors.enumerate().filter(|(_, (_, limits))| !limits.range.is_empty());
    let limited: Vec<_> = limited.collect();
    let culprit =
        limited.into_iter().rev().find(|(tensor, _)| !is_empty(view, &without_limits(view.plugin, *tensor)));
    diagnostics.push(match culprit {
        Some((_, (name, limits))) => {
            let span = Span::new(&view.resolved.source, limits.range.clone());
            UnsatisfiableLimits { tensor: name.value.clone(), span }.into()
        }
        None => UnsatisfiableManifest { span: view.resolved.name_span.clone() }.into(),
    });
    diagnostics
}

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
