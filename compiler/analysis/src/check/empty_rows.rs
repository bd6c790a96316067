//! Reports rows without nodes: an output's rank excludes the format, or rules exclude an attribute value.

use std::collections::BTreeSet;

use cubinder_expr::{BinaryOp, Format, Value};
use cubinder_launch::proof::{Domain, Verdict};

use super::draft_view::DraftView;
use super::errors::{RankTooLow, ValueWithoutNodes};
use super::formula::{has_value, rank, truth};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::{InputDecl, OutputDecl};

pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let mut rows = 0..view.plugin.variants.len();
    if !view.resolved.shapes_are_known || !rows.any(|row| view.has_no_node(row)) {
        return Vec::new();
    }
    let formats = misfits(view);
    if formats.is_empty() { dead_values(view) } else { formats }
}

fn is_empty(domain: &Domain<'_>) -> bool {
    domain.never(&truth()) == Verdict::Proved
}

fn misfits(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let inputs = view.plugin.inputs.len();
    let outputs = (inputs..).zip(&view.resolved.manifest.outputs);
    let misfit = |(tensor, decl): (usize, &OutputDecl)| {
        let format = decl.format.as_ref()?;
        let formats = view.plugin.variants.iter().filter_map(|variant| variant.formats.get(tensor));
        let most = formats.copied().max_by_key(|format: &Format| format.min_rank())?;
        let least = most.min_rank();
        let shares_format = |input: &InputDecl| {
            let name = input.format.as_ref().map(|name| &name.value);
            name == Some(&format.value) && usize::from(input.rank.1) < least
        };
        // Reported for the input with this parameter.
        if view.resolved.manifest.inputs.iter().any(shares_format) {
            return None;
        }
        let has_it = rank(u32::try_from(tensor).ok()?, BinaryOp::Ge, i64::try_from(least).ok()?);
        let span = Span::new(&view.resolved.source, format.range.clone());
        let (output, shape) = (decl.name.value.clone(), view.span(&decl.shape));
        let found = RankTooLow { format: most.name(), least, output, span, shape };
        is_empty(&view.domain().hasty().assuming(&has_it)).then(|| found.into())
    };
    outputs.filter_map(misfit).collect()
}

fn dead_values(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let attributes = (0..).zip(&view.resolved.manifest.attributes);
    let specialized = attributes.filter_map(|(index, decl)| Some((index, decl, decl.specialize.as_ref()?)));
    let mut found = Vec::new();
    for (index, decl, values) in specialized {
        let in_rows = view.plugin.variants.iter().flat_map(|variant| &variant.specialized);
        let kept: Vec<&Value> =
            in_rows.filter(|(attribute, _)| *attribute == index).map(|(_, value)| value).collect();
        let mut reported: BTreeSet<String> = BTreeSet::new();
        for value in values.value.iter().filter(|value| kept.contains(value)) {
            let Some(has_it) = has_value(index, value) else { continue };
            let is_dead = is_empty(&view.domain().hasty().assuming(&has_it));
            if is_dead && reported.insert(value.to_string()) {
                let span = Span::new(&view.resolved.source, values.range.clone());
                let (attribute, value) = (decl.name.value.clone(), value.to_string());
                found.push(ValueWithoutNodes { attribute, value, span }.into());
            }
        }
    }
    found
}
