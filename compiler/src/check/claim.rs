//! Statements about expressions, settled: proved, refuted by the smallest case, or open.
//!
//! Owns what becomes of a claim: rows of the table that say the same are settled once, and what one case refutes is told in one
//! message.

use std::borrow::Cow;

use cubinder_bundle::expr::Expr;
use cubinder_bundle::proof::{Case, Domain, Verdict};
use cubinder_bundle::{Interval, Plugin};

use super::formula::{constant, element_is_within, is_there, is_within};
use super::grid;
use super::remedy;
use super::site::Site;
use super::volume::{is_beyond, taken};
use super::witness::{describe, outside, value};
use super::{Checked, Obligation};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::rules;

/// Something that must hold for every launch.
pub(super) struct Claim {
    pub(super) rule: Code,
    /// What it is about: `the grid's y`.
    pub(super) subject: String,
    /// What must hold: `is from 0 to 65535`.
    pub(super) must: String,
    pub(super) what: What,
    pub(super) expr: Expr,
    pub(super) span: Span,
    pub(super) when: When,
}

/// The cases that a claim is about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum When {
    /// The guard of this row holds.
    Launched(usize),
    /// That, and no output is empty.
    Written(usize),
    /// All cases: what is the same for all rows.
    Always,
    /// Also those in which the outputs have no shapes, or none within their limits: for what is said of these shapes themselves.
    BeforeOutputs,
}

impl When {
    /// Whether it is the same of another row.
    fn is_like(self, other: When) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Claim {
    fn row(&self) -> Option<usize> {
        match self.when {
            When::Launched(row) | When::Written(row) => Some(row),
            When::Always | When::BeforeOutputs => None,
        }
    }

    /// The condition under which the claim is made.
    fn guard<'r>(&self, site: &Site<'r>) -> Option<&'r Expr> {
        site.guard(self.row()?)
    }

    /// The plugin with the limits that the claim is about.
    pub(super) fn plugin<'r>(&self, site: &Site<'r>) -> Cow<'r, Plugin> {
        match self.when {
            When::Written(_) => Cow::Owned(grid::written(site.plugin)),
            _ => Cow::Borrowed(site.plugin),
        }
    }

    /// The cases that the claim is about, of `plugin`: the claim's, or one that differs in its limits.
    pub(super) fn domain<'p>(&self, site: &Site<'p>, plugin: &'p Plugin) -> Domain<'p> {
        let domain = Domain::of(plugin);
        match (self.when, self.guard(site)) {
            (When::BeforeOutputs, _) => domain.before_outputs(),
            (_, Some(guard)) => domain.assuming(guard),
            (_, None) => domain,
        }
    }
}

/// What is said of the expression.
#[derive(Clone, PartialEq)]
pub(super) enum What {
    /// Integers are among these.
    Within(Interval),
    /// It is among these where that is proved; beyond them a value may fit or not.
    Fits(Interval),
    /// There is a value.
    HasValue,
    /// A boolean about the expression holds.
    Holds(Expr),
    /// It holds in no case: what is found instead.
    Misfit(String),
}

/// Claims of several rows that are settled together.
struct Group {
    claim: Claim,
    rows: Vec<usize>,
    settled: Settled,
}

/// What is known of a claim.
struct Settled {
    verdict: Verdict,
    /// No case is as it must be.
    is_always_wrong: bool,
    /// No case is known against it but those that TensorRT does not take.
    is_beyond: bool,
}

impl Settled {
    /// A case that people should hear of.
    fn told(&self) -> Option<&Case> {
        match &self.verdict {
            Verdict::Refuted(case) if !self.is_beyond => Some(case),
            _ => None,
        }
    }
}

/// Settles claims: obligations, an error for what is always wrong, a warning for what a case refutes that can be met. False where
/// the shape of an output is always wrong, so that there is no case of which anything else could be said.
pub(super) fn settle(site: &Site<'_>, claims: Vec<Claim>, checked: &mut Checked) -> bool {
    let mut groups: Vec<Group> = Vec::new();
    for claim in claims {
        let same = |group: &&mut Group| {
            let known = &group.claim;
            known.span == claim.span
                && known.rule == claim.rule
                && known.subject == claim.subject
                && known.what == claim.what
                && known.expr == claim.expr
                && known.when.is_like(claim.when)
                && known.guard(site) == claim.guard(site)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.rows.extend(claim.row()),
            None => {
                let settled = settle_one(site, &claim);
                let rows = claim.row().into_iter().collect();
                groups.push(Group { claim, rows, settled });
            }
        }
    }
    checked.diagnostics.extend(told_once(site, &groups));
    let is_without_shape =
        |group: &Group| group.claim.when == When::BeforeOutputs && group.settled.is_always_wrong;
    let has_cases = !groups.iter().any(is_without_shape);
    for group in groups {
        oblige(site, group, &mut checked.obligations);
    }
    has_cases
}

fn settle_one(site: &Site<'_>, claim: &Claim) -> Settled {
    if let (What::Within(allowed), Some(value)) = (&claim.what, constant(&claim.expr)) {
        let is_right = allowed.contains(value);
        let case = Case { attributes: Vec::new(), shapes: Vec::new() };
        let verdict = if is_right { Verdict::Proved } else { Verdict::Refuted(case) };
        return Settled { verdict, is_always_wrong: !is_right, is_beyond: false };
    }
    if let What::Misfit(_) = claim.what {
        return Settled { verdict: verdict(&site.domain(), claim), is_always_wrong: true, is_beyond: false };
    }
    let plugin = claim.plugin(site);
    let domain = claim.domain(site, &plugin);
    let verdict = verdict(&domain, claim);
    let is_always_wrong = match (&claim.what, &verdict) {
        (What::Within(allowed), Verdict::Refuted(case)) => {
            let right = match outside(&claim.expr, case, *allowed) {
                Some((Some(index), _)) => element_is_within(&claim.expr, index, *allowed),
                _ => is_within(&claim.expr, *allowed),
            };
            domain.never(&right) == Verdict::Proved
        }
        (What::Holds(condition), Verdict::Refuted(_)) => domain.never(condition) == Verdict::Proved,
        (What::HasValue, Verdict::Refuted(_)) => domain.never(&is_there(&claim.expr)) == Verdict::Proved,
        _ => false,
    };
    match verdict {
        Verdict::Refuted(case) if !is_always_wrong && is_beyond(&case) => settle_taken(site, claim, case),
        verdict => Settled { verdict, is_always_wrong, is_beyond: false },
    }
}

/// Looks for a case among the tensors that TensorRT takes, where the one that is known is not among them.
fn settle_taken(site: &Site<'_>, claim: &Claim, beyond: Case) -> Settled {
    let plugin = taken(&claim.plugin(site));
    let domain = claim.domain(site, &plugin);
    match verdict(&domain, claim) {
        Verdict::Refuted(case) => {
            Settled { verdict: Verdict::Refuted(case), is_always_wrong: false, is_beyond: false }
        }
        _ => Settled { verdict: Verdict::Refuted(beyond), is_always_wrong: false, is_beyond: true },
    }
}

/// Whether a claim holds over a domain.
pub(super) fn verdict(domain: &Domain<'_>, claim: &Claim) -> Verdict {
    match &claim.what {
        What::Within(allowed) => domain.within(&claim.expr, *allowed),
        What::Fits(allowed) => match domain.within(&claim.expr, *allowed) {
            Verdict::Refuted(_) => Verdict::Open,
            verdict => verdict,
        },
        What::HasValue => domain.has_value(&claim.expr),
        What::Holds(condition) => domain.always(condition),
        What::Misfit(_) => Verdict::Refuted(Case { attributes: Vec::new(), shapes: Vec::new() }),
    }
}

/// One obligation for a place and a statement: the worst over the rows.
fn oblige(site: &Site<'_>, group: Group, obligations: &mut Vec<Obligation>) {
    let found = match &group.settled.verdict {
        Verdict::Refuted(case) => Some(found(site, &group, case)),
        _ => None,
    };
    let obligation = Obligation {
        rule: group.claim.rule,
        statement: format!("{} {}", group.claim.subject, group.claim.must),
        span: group.claim.span,
        verdict: group.settled.verdict,
        is_beyond: group.settled.is_beyond,
        found,
    };
    let same = |known: &&mut Obligation| {
        known.span == obligation.span
            && known.rule == obligation.rule
            && known.statement == obligation.statement
    };
    match obligations.iter_mut().find(same) {
        Some(known) if obligation.severity() > known.severity() => *known = obligation,
        Some(_) => {}
        None => obligations.push(obligation),
    }
}

/// A message for each cause: places that the same case refutes are told together, and of the rows that break one place the first.
fn told_once(site: &Site<'_>, groups: &[Group]) -> Vec<Diagnostic> {
    let refuted = |group: &Group| group.settled.told().cloned();
    let mut told: Vec<(&Group, Case, Diagnostic)> = Vec::new();
    for group in groups {
        let Some(case) = refuted(group) else { continue };
        let is_same_place =
            |other: &Group| other.claim.span == group.claim.span && other.claim.rule == group.claim.rule;
        if told.iter().any(|(other, ..)| is_same_place(other)) {
            continue;
        }
        let together = told.iter_mut().find(|(other, known, _)| {
            other.claim.rule == group.claim.rule
                && other.settled.is_always_wrong == group.settled.is_always_wrong
                // One type may be too narrow, and the other is another.
                && (group.claim.rule != rules::ARGUMENT_OVERFLOW || other.claim.must == group.claim.must)
                && *known == case
        });
        match together {
            Some((_, _, diagnostic)) => {
                let found = found(site, group, &case);
                *diagnostic = diagnostic.clone().related(group.claim.span.clone(), found);
            }
            None => {
                let others = groups.iter().filter(|other| is_same_place(other) && refuted(other).is_some());
                let mut rows: Vec<usize> = others.flat_map(|group| group.rows.iter().copied()).collect();
                rows.sort_unstable();
                let diagnostic = message(site, group, &case, &rows);
                told.push((group, case, diagnostic));
            }
        }
    }
    told.into_iter().map(|(.., diagnostic)| diagnostic).collect()
}

fn message(site: &Site<'_>, group: &Group, case: &Case, rows: &[usize]) -> Diagnostic {
    let claim = &group.claim;
    let found = found(site, group, case);
    let must = claim.must.strip_prefix("is ").filter(|_| constant(&claim.expr).is_some());
    let what = match (&claim.what, must) {
        (_, Some(rest)) => format!("{} must be {rest}", claim.subject),
        (What::HasValue, _) if group.settled.is_always_wrong => {
            format!("{} never has a value", claim.subject)
        }
        (What::HasValue, _) => format!("{} may have no value", claim.subject),
        (_, None) => format!("{} {}", claim.subject, contrary(&claim.must, group.settled.is_always_wrong)),
    };
    let diagnostic =
        if group.settled.is_always_wrong { Diagnostic::error(what) } else { Diagnostic::warning(what) };
    let code = match claim.what {
        What::HasValue if group.settled.is_always_wrong => rules::NO_VALUE,
        _ => claim.rule,
    };
    let mut diagnostic = diagnostic.code(code).at(claim.span.clone(), found);
    if !rows.is_empty() && rows.len() < site.plugin.variants.len() {
        diagnostic = diagnostic.note(format!("in {}", site.describe_all(rows)));
    }
    if !group.settled.is_always_wrong {
        diagnostic = diagnostic.note(refused(claim));
    }
    diagnostic.help(match group.settled.is_always_wrong {
        true => remedy::change(claim),
        false => remedy::help(site, claim, case),
    })
}

/// The contrary of what must hold: always, or for some cases.
fn contrary(must: &str, is_always: bool) -> String {
    let adverb = if is_always { "never" } else { "not always" };
    if let Some(rest) = must.strip_prefix("is ") {
        return format!("is {adverb} {rest}");
    }
    if let Some(rest) = must.strip_prefix("has no ") {
        let verb = if is_always { "always has" } else { "may have" };
        return format!("{verb} a {rest}");
    }
    let (verb, rest) = must.split_once(' ').unwrap_or((must, ""));
    let verb = match (verb, is_always) {
        (verb, true) => format!("never {verb}"),
        ("has", false) => "does not always have".to_owned(),
        ("fits", false) => "does not always fit".to_owned(),
        (verb, false) => format!("not always {verb}"),
    };
    format!("{verb} {rest}")
}

/// What comes of such a case when the engine runs.
fn refused(claim: &Claim) -> &'static str {
    match claim.when {
        When::BeforeOutputs => "such a node is refused when the engine is built, such a shape at run time",
        // Of guards alone something is said of every launch.
        When::Always => {
            "a guard without a value does not hold: the next variant whose guard holds runs instead"
        }
        When::Launched(_) | When::Written(_) => {
            "such a launch is refused at run time, with a message that says this"
        }
    }
}

/// `for x = [1, 65536] this would be 65536`.
fn found(site: &Site<'_>, group: &Group, case: &Case) -> String {
    let claim = &group.claim;
    let told = describe(site.plugin, case, &[&claim.expr]);
    let prefix = if told.is_empty() { String::new() } else { format!("for {told} ") };
    match &claim.what {
        What::Within(_) if let Some(value) = constant(&claim.expr) => format!("this is {value}"),
        What::Within(allowed) | What::Fits(allowed) => match outside(&claim.expr, case, *allowed) {
            Some((Some(index), found)) => format!("{prefix}element {index} would be {found}"),
            Some((None, found)) => format!("{prefix}this would be {found}"),
            None => format!("{prefix}it does not hold"),
        },
        What::Misfit(found) => found.clone(),
        What::HasValue => match value(&claim.expr, case) {
            Err(error) => format!("{prefix}{error}"),
            Ok(_) => format!("{prefix}there is none"),
        },
        What::Holds(_) => match value(&claim.expr, case) {
            Ok(cubinder_bundle::Value::Array(items)) => {
                format!("{prefix}this would have {} elements", items.len())
            }
            Ok(found) => format!("{prefix}this would be {found}"),
            Err(error) => format!("{prefix}{error}"),
        },
    }
}
