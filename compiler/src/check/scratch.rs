//! Scratch memory: of no negative size, of none that no GPU has, and of some for a kernel that gets it.

use cubinder_bundle::Interval;

use super::claim::{Claim, What, When};
use super::site::Site;
use crate::diagnostic::Diagnostic;
use crate::resolve::ArgDraftValue;
use crate::rules;

/// The most memory of any GPU that is known, bytes: 288 GiB (NVIDIA B300, data sheet of 2025).
const MOST: i64 = 288 << 30;

/// A claim for each scratch buffer of each row that is no constant within the limits.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    let allowed = Interval { min: 0, max: MOST };
    let mut claims = Vec::new();
    for row in 0..site.plugin.variants.len() {
        for (scratch, text) in site.scratch(row) {
            if scratch.bytes.constant().is_some_and(|bytes| allowed.contains(bytes)) {
                continue;
            }
            claims.push(Claim {
                rule: rules::SCRATCH_LIMIT,
                subject: format!("the size of the scratch buffer `{}`", scratch.name),
                must: format!("is from 0 to {MOST} bytes, the most of any GPU"),
                what: What::Within(allowed),
                expr: scratch.bytes.clone(),
                span: site.span(text),
                when: When::Chosen(row),
            });
        }
    }
    claims
}

/// A warning for each scratch buffer that has no bytes in any row and that a kernel gets. Where it has some in another row, its kernel may
/// know that.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let of_rows = || {
        (0..site.plugin.variants.len()).flat_map(|row| {
            let scratch = site.scratch(row).enumerate();
            scratch.map(move |(index, (scratch, text))| (row, index, scratch, text))
        })
    };
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for (row, index, scratch, text) in
        of_rows().filter(|(.., scratch, _)| scratch.bytes.constant() == Some(0))
    {
        let mut same = of_rows().filter(|(.., other, _)| other.name == scratch.name);
        let is_passed =
            |value: &ArgDraftValue| matches!(value, ArgDraftValue::Scratch(at) if *at as usize == index);
        let units = site.resolved.draft.units_of(row);
        let Some(arg) = units.iter().flat_map(|unit| &unit.args).find(|arg| is_passed(&arg.value)) else {
            continue;
        };
        if told.contains(&scratch.name.as_str())
            || same.any(|(.., other, _)| other.bytes.constant() != Some(0))
        {
            continue;
        }
        told.push(&scratch.name);
        found.push(
            Diagnostic::warning(format!("the scratch buffer `{}` has no memory", scratch.name))
                .code(rules::SCRATCH_LIMIT)
                .at(site.span(text), "this is 0")
                .related(arg.value_span.clone(), "a kernel gets it")
                .help("say how many bytes the kernel needs of it, or take it out of the arguments"),
        );
    }
    found
}
