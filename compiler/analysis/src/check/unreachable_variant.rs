//! Rows behind one that has no guard, for the same types, formats and attributes.

use cubinder_launch as launch;
use cubinder_model::Plugin;

use super::guard_never_holds::rows_of_variants;
use super::site::Site;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// A warning for each variant that is never reached: for all its types, or for some.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for rows in rows_of_variants(site) {
        let hidden: Vec<(usize, usize)> =
            rows.iter().filter_map(|&row| Some((row, hides(site, row)?))).collect();
        let Some(&(row, by)) = hidden.first() else { continue };
        let message = match hidden.len() == rows.len() {
            true => "this variant is never reached".to_owned(),
            false => {
                let (count, choices) = (hidden.len(), site.choices());
                // Each row is one of several together.
                let choices =
                    if choices.contains(' ') { format!("choices of {choices}") } else { choices.to_owned() };
                format!("this variant is never reached for {count} of its {choices}")
            }
        };
        diagnostics.push(
            Diagnostic::warning(message)
                .code(rules::UNREACHABLE_VARIANT)
                .at(site.variant_span(row), format!("{} comes too late", site.describe(row)))
                .related(site.variant_span(by), "this one has no guard and takes every such node")
                .note(
                    "TensorRT-RTX takes the first variant whose guard holds; TensorRT can still choose another when it times \
                     them while an engine is built",
                )
                .help(help(site, hidden.len() == rows.len())),
        );
    }
    diagnostics
}

/// What mends it. A variant that is reached for some choices may be meant for these alone.
fn help(site: &Site<'_>, is_never_reached: bool) -> String {
    let plain = "put the variant without a guard last, give it a guard";
    let manifest = &site.resolved.manifest;
    let types = manifest.types.first().map(|ty| format!("`types = {{ {} = [...] }}`", ty.name.value));
    let formats = manifest.formats.first().map(|it| format!("`formats = {{ {} = [...] }}`", it.name.value));
    let restricted: Vec<String> = types.into_iter().chain(formats).collect();
    match is_never_reached || restricted.is_empty() {
        true => format!("{plain}, or take one of them out"),
        false => {
            format!("{plain}, or say with {} which choices the later one is for", restricted.join(" or "))
        }
    }
}

/// The first row before this one that takes every node that it serves, wherever it runs.
fn hides(site: &Site<'_>, row: usize) -> Option<usize> {
    let is_asked_before = |before: usize| {
        let mut points = site.plugin.tuning.iter().flat_map(|device| &device.points);
        points.any(|point| is_asked_first(site.plugin, &point.ranking, row, before))
    };
    (0..row).find(|&before| {
        site.guard(before).is_none() && site.serve_alike(before, row) && !is_asked_before(before)
    })
}

/// Whether a row is asked by what was measured before another, which the table has before it. Rows that serve other nodes stand between them without
/// changing that.
fn is_asked_first(plugin: &Plugin, ranking: &[u32], row: usize, other: usize) -> bool {
    // What was not measured stays before all that the table has after it.
    if !ranking.iter().any(|named| *named as usize == other) {
        return false;
    }
    let mut rows: Vec<usize> = (0..plugin.variants.len()).collect();
    launch::put_in_order(&mut rows, ranking);
    rows.iter().find(|found| **found == row || **found == other) == Some(&row)
}
