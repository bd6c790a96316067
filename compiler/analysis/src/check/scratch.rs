//! Checks scratch sizes: at most a GPU's memory, above 0 if passed, whole elements.

use cubinder_expr::Interval;
use cubinder_launch::proof::Verdict;

use super::claim::{Claim, Must, Predicate, Remedy, Term, When};
use super::draft_view::DraftView;
use super::errors::EmptyScratch;
use super::formula::{int, is_multiple};
use super::{UnitCode, once_per_place};
use crate::diagnostic::Diagnostic;
use crate::resolve::{ArgDraft, ArgDraftValue};
use crate::rules;

/// 288 GiB (NVIDIA B300, data sheet of 2025).
const MOST: i64 = 288 << 30;

fn sizes(view: &DraftView<'_>, row: usize) -> impl Iterator<Item = Term> {
    view.scratch(row).map(move |(scratch, text)| {
        let subject = format!("the size of the scratch buffer `{}`", scratch.name);
        view.term(subject, &scratch.bytes, text, When::Chosen(row))
    })
}

pub(super) fn claims(view: &DraftView<'_>) -> Vec<Claim> {
    let allowed = Interval { min: 0, max: MOST };
    let sizes = (0..view.plugin.variants.len()).flat_map(|row| sizes(view, row));
    sizes
        .filter_map(|size| size.limit(rules::SCRATCH_LIMIT, allowed, " bytes, the maximum of any GPU"))
        .collect()
}

/// Keeps only refuted claims: the runtime does not check this.
pub(super) fn whole_numbers(view: &DraftView<'_>, compiled: &[UnitCode<'_>]) -> Vec<Claim> {
    const WHOLE_NUMBERS: Remedy = Remedy::Fix(
        "multiply by the size of the kernel's type, such as `8 * n` for `n` elements of `double`; for untyped bytes use `void*` in the kernel",
    );
    const UNCHECKED: &str = "this is not checked at run time: a kernel that stores one number per element writes past the end of the buffer";
    let mut claims: Vec<Claim> = Vec::new();
    for (unit, compiled) in view.units().iter().zip(compiled) {
        let scratch = unit.args.iter().filter_map(|arg| match arg.value {
            ArgDraftValue::Scratch(index) => Some((arg, sizes(view, unit.variant).nth(index as usize)?)),
            _ => None,
        });
        for (arg, size) in scratch {
            for (_, bytes) in compiled.number_bytes.iter().filter(|(name, _)| *name == arg.name) {
                let must = format!("a multiple of {bytes}, the bytes per element in the kernel");
                let holds = Predicate::Holds(is_multiple(&size.expr, &int(i64::from(*bytes))));
                let claim = size.claim(rules::SCRATCH_LIMIT, Must::Be(must), holds);
                let is_known = |known: &Claim| {
                    known.term.subject == size.subject
                        && known.must == claim.must
                        && known.row() == claim.row()
                };
                if !claims.iter().any(is_known)
                    && let Verdict::Refuted(_) = claim.verdict(&view.narrow(&claim, view.domain()))
                {
                    claims.push(Claim { remedy: WHOLE_NUMBERS, consequence: Some(UNCHECKED), ..claim });
                }
            }
        }
    }
    claims
}

pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let rows = || 0..view.plugin.variants.len();
    let is_empty = |buffer: &str| {
        let mut all = rows().flat_map(|row| view.scratch(row)).filter(|(scratch, _)| scratch.name == buffer);
        all.all(|(scratch, _)| scratch.bytes.constant() == Some(0))
    };
    let buffers = rows().flat_map(|row| {
        let buffers = view.scratch(row).enumerate();
        buffers.map(move |(index, (scratch, text))| (view.span(text), (row, index, &scratch.name)))
    });
    once_per_place(buffers, |span, (row, index, buffer)| {
        let is_passed =
            |arg: &&ArgDraft| matches!(arg.value, ArgDraftValue::Scratch(passed) if passed as usize == index);
        let units = view.resolved.draft.units_of(row);
        let argument = units.iter().flat_map(|unit| &unit.args).find(is_passed)?.value_span.clone();
        is_empty(buffer).then(|| EmptyScratch { buffer: buffer.clone(), span, argument }.into())
    })
}
