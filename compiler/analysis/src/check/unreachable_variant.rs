//! Reports rows after an unguarded one for the same types, formats and attributes.

use cubinder_launch as launch;
use cubinder_model::Plugin;

use super::draft_view::DraftView;
use super::errors::UnreachableVariant;
use crate::diagnostic::Diagnostic;

pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for rows in view.rows_of_variants() {
        let hidden: Vec<(usize, usize)> =
            rows.iter().filter_map(|&row| Some((row, hides(view, row)?))).collect();
        let Some(&(row, by)) = hidden.first() else { continue };
        let is_never_reached = hidden.len() == rows.len();
        let choices = match view.choices() {
            _ if is_never_reached => String::new(),
            choices if choices.contains(' ') => {
                format!(" for {} of its combinations of {choices}", hidden.len())
            }
            choices => format!(" for {} of its {choices}", hidden.len()),
        };
        let (variant, help) = (view.describe(row), help(view, is_never_reached));
        let (span, earlier) = (view.variant_span(row), view.variant_span(by));
        diagnostics.push(UnreachableVariant { choices, variant, help, span, earlier }.into());
    }
    diagnostics
}

fn help(view: &DraftView<'_>, is_never_reached: bool) -> String {
    let plain = "move the variant without a guard last, add a guard to it";
    let manifest = &view.resolved.manifest;
    let types = manifest.types.first().map(|ty| format!("`types = {{ {} = [...] }}`", ty.name.value));
    let formats = manifest.formats.first().map(|it| format!("`formats = {{ {} = [...] }}`", it.name.value));
    let restricted: Vec<String> = types.into_iter().chain(formats).collect();
    match is_never_reached || restricted.is_empty() {
        true => format!("{plain}, or remove one of them"),
        false => {
            format!("{plain}, or restrict the later one with {}", restricted.join(" or "))
        }
    }
}

fn hides(view: &DraftView<'_>, row: usize) -> Option<usize> {
    let is_asked_before = |before: usize| {
        let mut points = view.plugin.tuning.iter().flat_map(|device| &device.points);
        points.any(|point| is_asked_first(view.plugin, &point.ranking, row, before))
    };
    (0..row).find(|&before| {
        view.guard(before).is_none() && view.serve_alike(before, row) && !is_asked_before(before)
    })
}

fn is_asked_first(plugin: &Plugin, ranking: &[u32], row: usize, other: usize) -> bool {
    // Unmeasured rows stay before all later rows.
    if !ranking.iter().any(|named| *named as usize == other) {
        return false;
    }
    let mut rows: Vec<usize> = (0..plugin.variants.len()).collect();
    launch::put_in_order(&mut rows, ranking);
    rows.iter().find(|found| **found == row || **found == other) == Some(&row)
}
