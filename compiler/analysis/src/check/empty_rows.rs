//! Rows that no node can have: of nothing everything is true, so nothing is said of their launches.
//!
//! Owns why a row has no node, where that can be told: a format that an output's rank never has, a value of an attribute that rules
//! exclude.

use std::collections::BTreeSet;

use cubinder_expr::{Format, Value};
use cubinder_launch::proof::{Domain, Verdict};

use super::formula::{has_rank, has_value, truth};
use super::site::Site;
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::{InputDecl, OutputDecl};
use crate::rules;

/// An error for each output in a format that its rank never has, a warning for each value that no node has.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let mut rows = 0..site.plugin.variants.len();
    if !site.resolved.shapes_are_known || !rows.any(|row| site.has_no_node(row)) {
        return Vec::new();
    }
    let formats = misfits(site);
    if formats.is_empty() { dead_values(site) } else { formats }
}

fn is_empty(domain: &Domain<'_>) -> bool {
    domain.never(&truth()) == Verdict::Proved
}

/// Inputs are told before, by the ranks that they say themselves.
fn misfits(site: &Site<'_>) -> Vec<Diagnostic> {
    let inputs = site.plugin.inputs.len();
    let outputs = (inputs..).zip(&site.resolved.manifest.outputs);
    let misfit = |(tensor, decl): (usize, &OutputDecl)| {
        let place = decl.format.as_ref()?;
        let formats = site.plugin.variants.iter().filter_map(|variant| variant.formats.get(tensor));
        let most = formats.copied().max_by_key(|format: &Format| format.min_rank())?;
        let least = most.min_rank();
        let shares_format = |input: &InputDecl| {
            let name = input.format.as_ref().map(|name| &name.value);
            name == Some(&place.value) && usize::from(input.rank.1) < least
        };
        // Tensors that share a parameter share what is wrong with it.
        if site.resolved.manifest.inputs.iter().any(shares_format) {
            return None;
        }
        let has_it = has_rank(u32::try_from(tensor).ok()?, i64::try_from(least).ok()?);
        if !is_empty(&site.domain().hasty().assuming(&has_it)) {
            return None;
        }
        let message = format!("the format `{}` needs at least {least} dimensions", most.name());
        Some(
            Diagnostic::error(message)
                .code(rules::NO_SUCH_LAYOUT)
                .at(
                    Span::new(&site.resolved.source, place.range.clone()),
                    format!("the format of `{}`", decl.name.value),
                )
                .related(site.span(&decl.shape), "it always has fewer"),
        )
    };
    outputs.filter_map(misfit).collect()
}

fn dead_values(site: &Site<'_>) -> Vec<Diagnostic> {
    let attributes = (0..).zip(&site.resolved.manifest.attributes);
    let specialized = attributes.filter_map(|(index, decl)| Some((index, decl, decl.specialize.as_ref()?)));
    let mut found = Vec::new();
    for (index, decl, values) in specialized {
        let in_rows = site.plugin.variants.iter().flat_map(|variant| &variant.specialized);
        let kept: Vec<&Value> =
            in_rows.filter(|(attribute, _)| *attribute == index).map(|(_, value)| value).collect();
        let mut told: BTreeSet<String> = BTreeSet::new();
        for value in values.value.iter().filter(|value| kept.contains(value)) {
            let Some(has_it) = has_value(index, value) else { continue };
            let is_dead = is_empty(&site.domain().hasty().assuming(&has_it));
            if is_dead && told.insert(value.to_string()) {
                let message = format!("no node can have `{}` = `{value}`", decl.name.value);
                found.push(
                    Diagnostic::warning(message)
                        .code(rules::UNUSED)
                        .at(Span::new(&site.resolved.source, values.range.clone()), "compiled for nothing")
                        .help("leave it out, or correct what excludes it: `require`, `limits`, ranks"),
                );
            }
        }
    }
    found
}
