//! Reports attributes that affect the choice of variants but are missing in `timing`; the runtime counts them anyway.

use cubinder_model::timing::{Decider, attributes_of, deciders};

use super::draft_view::DraftView;
use super::errors::TimingWithout;
use crate::diagnostic::{Diagnostic, Span};

pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let (Some(named), Some(timing)) = (&view.plugin.timing, &view.resolved.manifest.plugin.timing) else {
        return Vec::new();
    };
    let span = Span::new(&view.resolved.source, timing.range.clone());
    let mut reported: Vec<u32> = Vec::new();
    let mut found: Vec<Diagnostic> = Vec::new();
    for (decider, expr) in deciders(view.plugin) {
        let Some(place) = place(view, decider) else { continue };
        let (decides, reason) = match decider {
            Decider::Guard(_) => ("decides", ""),
            Decider::Requirement(_) => ("may decide", "; guards are proved using all rules about tensors"),
            Decider::Shape(_) | Decider::Size(_) => ("may decide", "; guards are proved using output shapes"),
        };
        for index in attributes_of(expr).filter(|attribute| !named.contains(attribute)) {
            let Some(attribute) = view.plugin.attributes.get(index as usize) else { continue };
            if reported.contains(&index) {
                continue;
            }
            reported.push(index);
            let (attribute, timing, expr) = (attribute.name.as_str(), span.clone(), place.clone());
            found.push(TimingWithout { attribute, decides, reason, timing, expr }.into());
        }
    }
    found
}

fn place(view: &DraftView<'_>, decider: Decider) -> Option<Span> {
    let manifest = &view.resolved.manifest;
    match decider {
        Decider::Guard(row) => view.guard_span(row),
        Decider::Requirement(index) => Some(view.span(&manifest.plugin.require.get(index)?.expr)),
        Decider::Shape(index) => Some(view.span(&manifest.outputs.get(index)?.shape)),
        Decider::Size(index) => Some(view.span(&manifest.outputs.get(index)?.size.as_ref()?.upper)),
    }
}
