//! What holds of a plugin before any of its kernels is compiled: one rule a file.
//!
//! Owns the rules that need the whole resolved manifest, and the list of obligations: what must hold for every launch, and
//! whether it is proved, refuted by a case, or left to the runtime, which holds every launch against the same limits. The
//! proofs themselves are the model's ([`cubinder_launch::proof`]). Never compiles, never reads a file, and never says of
//! something that cannot be decided that it is wrong: what is wrong for some shapes is a warning, what is wrong for all an error.

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

/// What came of the checks of one plugin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedDraft {
    /// What is wrong and what the author should look at, in order of place.
    pub diagnostics: Vec<Diagnostic>,
    /// Everything that must hold for every launch, in order of place.
    pub obligations: Vec<Obligation>,
}

/// Something that must hold for every launch of a plugin. What is not proved a plugin library checks when shapes are known, and
/// refuses the launch where it does not hold; where TensorRT launches itself, it is told when an engine is built for shapes for which it is not proved.
#[derive(Debug, Clone, PartialEq)]
pub struct Obligation {
    /// The rule it belongs to.
    pub rule: Code,
    /// What must hold, for people: `the grid's y is from 0 to 65535`.
    pub statement: String,
    /// The place of the expression that it is about.
    pub span: Span,
    /// The worst that is known, over the rows of the table of variants.
    pub verdict: Verdict,
    /// Whether it holds wherever every tensor has fewer than 2^31 elements, as TensorRT asks for, as far as it is known; nothing is
    /// said of it then.
    pub is_beyond: bool,
    /// What the case that refutes it comes to: `for x = [1, 65536] this would be 65536`.
    pub found: Option<String>,
    /// The case that refutes it, by name.
    pub case: Option<NamedCase>,
    /// Who launches, and so what comes of it where it is not proved.
    pub route: Route,
}

impl Obligation {
    /// What must hold, neither proved nor refuted.
    fn open(rule: Code, statement: String, span: Span, route: Route) -> Obligation {
        let verdict = Verdict::Open;
        Obligation { rule, statement, span, verdict, is_beyond: false, found: None, case: None, route }
    }

    /// The higher, the less is known for good.
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

/// Checks everything but arguments, which need the kernel's signature, for a plugin that is compiled for `targets` and launched on
/// `route`; without any targets, for those that the manifest names. If there are none either, the limits are those of the largest GPUs.
#[must_use]
pub fn check(resolved: &Resolved, targets: &[Target], route: Route) -> CheckedDraft {
    check_within(resolved, targets, route, &Pools::new())
}

/// [`check`] with these steps.
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
    // What TensorRT launches itself has neither, and nothing is said of what has no such launch ([`check_route`]).
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
    // Of nothing everything is true: what is said of launches would be proved and wrong.
    if unsatisfiable::is_empty(&view, view.plugin) {
        if !has_errors(&checked.diagnostics) {
            checked.diagnostics.extend(unsatisfiable::check(&view));
        }
        return finish(checked);
    }
    checked.diagnostics.extend(empty_rows::check(&view));
    // What finds errors comes before what needs many steps.
    let mut rules = require_is_constant::check(&view);
    let never = guard_never_holds::check(&view, &mut rules);
    let always = guard_never_fails::check(&view, &never, &mut rules);
    rules.extend(unreachable_variant::check(&view));
    rules.extend(variant_without_guard::check(&view, &never, &always));
    verdicts::decide(&view, claims, &mut checked);
    checked.diagnostics.extend(rules);
    finish(checked)
}

/// What the compile of a unit told.
#[derive(Debug, Clone)]
pub struct UnitCode<'a> {
    /// The arguments in the order of the kernel's parameters.
    pub args: &'a [Arg],
    /// The parameters that are pointers to `const`.
    pub read_only: &'a [String],
    /// The bytes of the numbers that pointers point to: see [`crate::verify::number_bytes`].
    pub number_bytes: &'a [(String, u32)],
    /// The clusters that the kernel itself asks for, where the manifest does not say them.
    pub cluster: Option<[u32; 3]>,
    /// What the code for each target says about the kernel.
    pub codes: Vec<(Target, &'a KernelFacts)>,
}

/// Checks what needs the compiled kernels: that arguments fit their parameters, and that launches keep to what the code can have.
/// One item for each of the draft's units, in their order. `targets` and `route` are those of [`check`].
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

/// Checks that arguments fit the parameters whose types are known without a compile: one list for each of the draft's units, in their
/// order. `targets` and `route` are those of [`check`].
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

/// The first finding of each place: rows share the text of a launch. A place with a finding is not checked again.
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
