//! Attributes that decide which variants a node has, and that `timing` leaves out. The run time counts them all the same, so that nodes that
//! share what was measured have the same variants; the manifest should say so.

use cubinder_model::timing::{Decider, attributes_of, deciders};

use super::site::Site;
use crate::diagnostic::{Diagnostic, Span};
use crate::rules;

/// A warning for each attribute, at the first expression that reads it.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let (Some(named), Some(timing)) = (&site.plugin.timing, &site.resolved.manifest.plugin.timing) else {
        return Vec::new();
    };
    let mut told: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for (decider, expr) in deciders(site.plugin) {
        let Some(place) = place(site, decider) else { continue };
        for attribute in attributes_of(expr).filter(|attribute| !named.contains(attribute)) {
            let decl = site.plugin.attributes.get(attribute as usize);
            let Some(name) = decl.map(|decl| &decl.name).filter(|_| !told.contains(&attribute)) else {
                continue;
            };
            told.push(attribute);
            let message = match decider {
                Decider::Guard(_) => {
                    format!("`{name}` decides which variants a node has, and `timing` leaves it out")
                }
                _ => format!("`{name}` may decide which variants a node has, and `timing` leaves it out"),
            };
            found.push(
                Diagnostic::warning(message)
                    .code(rules::TIMING_LEAVES_OUT)
                    .at(Span::new(&site.resolved.source, timing.range.clone()), "the attributes that time depends on")
                    .related(place.clone(), format!("`{name}` is read here{}", why(decider)))
                    .note("it counts all the same: nodes that share what TensorRT measured have to have the same variants")
                    .help(format!("add `\"{name}\"` to `timing`")),
            );
        }
    }
    found
}

/// Where the expression is; an output without a shape of its own has none that reads attributes.
fn place(site: &Site<'_>, decider: Decider) -> Option<Span> {
    let manifest = &site.resolved.manifest;
    match decider {
        Decider::Guard(row) => site.guard_span(row),
        Decider::Requirement(index) => Some(site.span(&manifest.plugin.require.get(index)?.expr)),
        Decider::Shape(index) => Some(site.span(&manifest.outputs.get(index)?.shape)),
        Decider::Size(index) => Some(site.span(&manifest.outputs.get(index)?.size.as_ref()?.upper)),
    }
}

fn why(decider: Decider) -> &'static str {
    match decider {
        Decider::Guard(_) => "",
        Decider::Requirement(_) => ", and guards are proved with every rule about tensors",
        Decider::Shape(_) | Decider::Size(_) => ", and guards are proved with the shapes of the outputs",
    }
}
