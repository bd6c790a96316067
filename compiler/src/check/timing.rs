//! Guards that read attributes which `timing` leaves out. The run time counts them all the same, so that nodes that share what was measured
//! have the same variants; the manifest should say so.

use cubinder_bundle::expr::Node;

use super::site::Site;
use crate::diagnostic::{Diagnostic, Span};
use crate::rules;

/// A warning for each attribute, at its first guard.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let (Some(named), Some(timing)) = (&site.plugin.timing, &site.resolved.manifest.plugin.timing) else {
        return Vec::new();
    };
    let mut told: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for row in 0..site.plugin.variants.len() {
        let (Some(guard), Some(place)) = (site.guard(row), site.guard_span(row)) else { continue };
        let attributes = guard.nodes.iter().filter_map(|node| match node {
            Node::Attribute(attribute) => Some(*attribute),
            _ => None,
        });
        for attribute in attributes.filter(|attribute| !named.contains(attribute)) {
            let decl = site.plugin.attributes.get(attribute as usize);
            let Some(name) = decl.map(|decl| &decl.name).filter(|_| !told.contains(&attribute)) else {
                continue;
            };
            told.push(attribute);
            let message = format!("`{name}` decides which variants a node has, and `timing` leaves it out");
            found.push(
                Diagnostic::warning(message)
                    .code(rules::TIMING_LEAVES_OUT)
                    .at(Span::new(&site.resolved.source, timing.range.clone()), "the attributes that time depends on")
                    .related(place.clone(), format!("`{name}` is read here"))
                    .note("it counts all the same: nodes that share what TensorRT measured have to have the same variants")
                    .help(format!("add `\"{name}\"` to `timing`")),
            );
        }
    }
    found
}
