//! Checks a plugin before its kernels are compiled: one file per rule. An obligation is proved
//! ([`cubinder_launch::proof`]), refuted, or left to the runtime. A claim that is false for some shapes is a warning,
//! for all an error. Never compiles, reads files or reports undecided claims.

mod arguments;
mod claim;
mod cluster;
mod code_limits;
mod cooperative;
mod devices;
mod dimensions;
mod draft_view;
mod empty_rows;
mod errors;
mod expressible;
mod fill;
mod format_words;
mod formula;
mod guard_never_fails;
mod guard_never_holds;
mod inexact_attribute;
mod inexpressible_shape;
mod limits;
mod memory;
mod remedy;
mod report;
mod require_is_constant;
mod route;
mod scratch;
mod syntax;
mod timing;
mod unreachable_variant;
mod unsatisfiable;
mod value;
mod variant_without_guard;
mod verdicts;
mod volume;
mod witness;

use cubinder_model::{Arg, KernelFacts, Target};

pub use cluster::has_clusters;
pub use cubinder_launch::proof::{Case, Verdict};
pub use route::{can_be_chosen, check_route};
pub use witness::NamedCase;

use crate::diagnostic::{Code, Diagnostic, Span, has_errors, sort};
use crate::manifest::Route;
use crate::resolve::Resolved;
use crate::verify::BoundArgs;
use claim::{Claim, When};
use draft_view::{DraftView, Pools};

/// Result of [`check`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedDraft {
    /// Ordered by position.
    pub diagnostics: Vec<Diagnostic>,
    /// Ordered by position.
    pub obligations: Vec<Obligation>,
}

/// A condition of every launch. Plugin libraries check unproved ones; the native route reports them.
#[derive(Debug, Clone, PartialEq)]
pub struct Obligation {
    /// Violated rule.
    pub rule: Code,
    /// Description: `grid y is from 0 to 65535`.
    pub statement: String,
    /// Span of the expression.
    pub span: Span,
    /// Worst verdict of all rows.
    pub verdict: Verdict,
    /// Whether all known violations exceed TensorRT's limit of 2^31 elements; these are not reported.
    pub is_beyond: bool,
    /// Counterexample's value: `for x = [1, 65536], this is 65536`.
    pub found: Option<String>,
    /// Counterexample.
    pub case: Option<NamedCase>,
    /// Launching component.
    pub route: Route,
}

impl Obligation {
    fn open(rule: Code, statement: String, span: Span, route: Route) -> Obligation {
        let verdict = Verdict::Open;
        Obligation { rule, statement, span, verdict, is_beyond: false, found: None, case: None, route }
    }

    /// Higher is worse.
    pub(crate) fn severity(&self) -> u8 {
        match (&self.verdict, self.is_beyond) {
            (Verdict::Proved, _) => 0,
            (Verdict::Open, true) => 1,
            (Verdict::Refuted(_), true) => 2,
            (Verdict::Open, false) => 3,
            (Verdict::Refuted(_), false) => 4,
        }
    }
}

/// Checks all but arguments, for `targets` (default: the manifest's, else the largest GPUs' limits) and `route`.
#[must_use]
pub fn check(resolved: &Resolved, targets: &[Target], route: Route) -> CheckedDraft {
    check_within(resolved, targets, route, &Pools::new())
}

fn check_within(resolved: &Resolved, targets: &[Target], route: Route, pools: &Pools) -> CheckedDraft {
    let view = DraftView::new(resolved, targets, route, pools);
    let mut checked = CheckedDraft::default();
    let inexpressible = inexpressible_shape::check(&view, &mut checked);
    let mut claims = value::claims(&view, &inexpressible);
    claims.extend(dimensions::claims(&view, &inexpressible));
    claims.extend(dimensions::sizes(&view));
    claims.extend(view.launches().flat_map(|launch| limits::grid(&launch, inexpressible.is_empty())));
    claims.extend(view.launches().flat_map(|launch| limits::block(&launch)));
    claims.extend(view.launches().flat_map(|launch| limits::shared_memory(&view, &launch)));
    claims.extend(scratch::claims(&view));
    // TensorRT's launches: see [`check_route`].
    if !view.is_native() {
        let cooperative: Vec<_> = view.launches().filter(|launch| launch.launch.cooperative).collect();
        claims.extend(view.launches().flat_map(|launch| limits::cluster(&launch)));
        claims.extend(cooperative.iter().filter_map(cooperative::claim));
        checked.diagnostics.extend(cooperative::check(&view, &cooperative));
        checked.obligations.extend(cooperative::obligations(&view, &cooperative));
        checked.diagnostics.extend(cluster::targets(&view));
    }
    let (of_shapes, claims): (Vec<Claim>, Vec<Claim>) =
        claims.into_iter().partition(|claim| claim.term.when == When::BeforeOutputs);
    verdicts::decide(&view, of_shapes, &mut checked);
    checked.diagnostics.extend(inexact_attribute::check(&view));
    checked.diagnostics.extend(fill::check(&view));
    checked.diagnostics.extend(scratch::check(&view));
    checked.diagnostics.extend(dimensions::limits(&view));
    checked.diagnostics.extend(timing::check(&view));
    checked.diagnostics.extend(memory::outputs(&view, &inexpressible));
    if unsatisfiable::is_empty(&view, view.plugin) {
        if !has_errors(&checked.diagnostics) {
            checked.diagnostics.extend(unsatisfiable::check(&view));
        }
        return finish(checked);
    }
    checked.diagnostics.extend(empty_rows::check(&view));
    // Cheap rules that find errors run first.
    let mut rules = require_is_constant::check(&view);
    let never = guard_never_holds::check(&view, &mut rules);
    let always = guard_never_fails::check(&view, &never, &mut rules);
    rules.extend(unreachable_variant::check(&view));
    rules.extend(variant_without_guard::check(&view, &never, &always));
    verdicts::decide(&view, claims, &mut checked);
    checked.diagnostics.extend(rules);
    finish(checked)
}

/// A unit's compile results.
#[derive(Debug, Clone)]
pub struct UnitCode<'a> {
    /// Arguments in the kernel's order.
    pub args: &'a [Arg],
    /// Parameters that are pointers to `const`.
    pub read_only: &'a [String],
    /// See [`crate::verify::number_bytes`].
    pub number_bytes: &'a [(String, u32)],
    /// Kernel's cluster size, unless the manifest's.
    pub cluster: Option<[u32; 3]>,
    /// Kernel facts by target.
    pub codes: Vec<(Target, &'a KernelFacts)>,
}

/// Checks units against their compiled kernels, as [`check`].
#[must_use]
pub fn check_compiled(
    resolved: &Resolved,
    targets: &[Target],
    route: Route,
    compiled: &[UnitCode<'_>],
) -> CheckedDraft {
    let pools = Pools::new();
    let view = DraftView::new(resolved, targets, route, &pools);
    let mut checked = CheckedDraft::default();
    let mut claims = arguments::claims(&view, compiled);
    claims.extend(code_limits::claims(&view, compiled));
    claims.extend(scratch::whole_numbers(&view, compiled));
    verdicts::decide(&view, claims, &mut checked);
    checked.diagnostics.extend(memory::compiled(&view, compiled));
    finish(checked)
}

/// Checks each unit's arguments with known parameter types, as [`check`].
#[must_use]
pub fn check_arguments(
    resolved: &Resolved,
    targets: &[Target],
    route: Route,
    bound: &[BoundArgs],
) -> CheckedDraft {
    let compiled = bound.iter().map(|BoundArgs { args, read_only, number_bytes }| UnitCode {
        args,
        read_only,
        number_bytes,
        cluster: None,
        codes: Vec::new(),
    });
    let compiled: Vec<UnitCode<'_>> = compiled.collect();
    check_compiled(resolved, targets, route, &compiled)
}

/// Rows share text.
fn once_per_place<T>(
    places: impl IntoIterator<Item = (Span, T)>,
    check: impl Fn(Span, T) -> Option<Diagnostic>,
) -> Vec<Diagnostic> {
    let mut reported: Vec<Span> = Vec::new();
    let found = places.into_iter().filter_map(|(span, part)| {
        let found = if reported.contains(&span) { None } else { check(span.clone(), part) };
        reported.extend(found.is_some().then_some(span));
        found
    });
    found.collect()
}

fn finish(mut checked: CheckedDraft) -> CheckedDraft {
    sort(&mut checked.diagnostics);
    checked.obligations.sort_by_key(|obligation| obligation.span.range.start);
    checked
}

#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod tests;
