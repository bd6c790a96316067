//! Scratch memory: its size is not negative, no more than any GPU has, not 0 for a kernel that gets it, and a whole number of what a
//! kernel keeps there.

use cubinder_expr::Interval;
use cubinder_expr::{BinaryOp, Expr, Node};
use cubinder_launch::proof::Verdict;
use cubinder_model::Scratch;

use super::Compiled;
use super::claim::{Claim, What, When, verdict};
use super::formula::joined;
use super::site::Site;
use crate::diagnostic::{Diagnostic, Span};
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
                otherwise: "",
                what: What::Within(allowed),
                expr: scratch.bytes.clone(),
                span: site.span(text),
                when: When::Chosen(row),
            });
        }
    }
    claims
}

/// A claim for each scratch buffer whose size is refuted to be a multiple of the numbers that a kernel's pointer points to. No run checks
/// this, so open claims are left out.
pub(super) fn of_numbers(site: &Site<'_>, compiled: &[Compiled<'_>]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for (unit, compiled) in site.units().iter().zip(compiled) {
        for arg in &unit.args {
            let ArgDraftValue::Scratch(index) = arg.value else { continue };
            let name = site.variant(unit.variant).and_then(|variant| variant.scratch.get(index as usize));
            let buffer =
                name.and_then(|of| site.scratch(unit.variant).find(|(scratch, _)| scratch.name == of.name));
            let Some((scratch, text)) = buffer else { continue };
            for (_, bytes) in compiled.number_bytes.iter().filter(|(name, _)| *name == arg.name) {
                let Some(claim) = whole_numbers(unit.variant, scratch, site.span(text), *bytes) else {
                    continue;
                };
                let is_known = |known: &Claim| {
                    known.subject == claim.subject && known.must == claim.must && known.row() == claim.row()
                };
                if !claims.iter().any(is_known)
                    && let Verdict::Refuted(_) = verdict(&claim.narrow(site, site.domain()), &claim)
                {
                    claims.push(claim);
                }
            }
        }
    }
    claims
}

fn whole_numbers(row: usize, scratch: &Scratch, span: Span, bytes: u32) -> Option<Claim> {
    let number = |value: i64| Expr { nodes: vec![Node::Int(value)] };
    let rest = joined(BinaryOp::Mod, [&scratch.bytes, &number(i64::from(bytes))])?;
    Some(Claim {
        rule: rules::SCRATCH_LIMIT,
        subject: format!("the size of the scratch buffer `{}`", scratch.name),
        must: format!("is a multiple of {bytes}, the bytes of a number that a kernel keeps there"),
        otherwise: "",
        what: What::Holds(joined(BinaryOp::Eq, [&rest, &number(0)])?),
        expr: scratch.bytes.clone(),
        span,
        when: When::Chosen(row),
    })
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
