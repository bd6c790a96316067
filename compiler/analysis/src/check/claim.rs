//! Statements about expressions, and how it is told what came of them.
//!
//! Owns the words: what one case refutes is told in one message. How claims are settled is [`super::settle`]'s.

use cubinder_expr::Expr;
use cubinder_expr::Interval;
use cubinder_launch::proof::{Case, Domain, Verdict};

use super::Obligation;
use super::remedy;
use super::settle::Group;
use super::site::{At, Site};
use super::witness::{NamedCase, describe, outside, value};
use crate::diagnostic::{Code, Diagnostic, Label, Span};
use crate::manifest::Route;
use crate::rules;

/// Something that must hold for every launch.
pub(super) struct Claim {
    pub(super) rule: Code,
    /// What it is about: `the grid's y`.
    pub(super) subject: String,
    /// What must hold: `is from 0 to 65535`.
    pub(super) must: String,
    /// Another fix than limits of shapes, as the end of a help: `, or take a wider type in the kernel`; may be empty.
    pub(super) otherwise: &'static str,
    pub(super) what: What,
    pub(super) expr: Expr,
    pub(super) span: Span,
    pub(super) when: When,
}

/// The cases that a claim is about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum When {
    /// The guard of this row holds.
    Chosen(usize),
    /// This step is done: the guard of its row holds and its own condition.
    Launched(At),
    /// This step launches blocks: it is done and no axis of its grid is 0. Where one is, nothing else is computed.
    Running(At),
    /// This step is done and no other axis of its grid than this one is 0.
    Beside(At, usize),
    /// This step is done, no output is empty and nothing that it is given.
    Written(At),
    /// The guard of this row is asked: all cases that the row is compiled for.
    Asked(usize),
    /// Also those in which the outputs have no shapes, or none within their limits: for what is said of these shapes themselves.
    BeforeOutputs,
}

impl Claim {
    pub(super) fn row(&self) -> Option<usize> {
        match self.when {
            When::Chosen(row) => Some(row),
            When::Launched(at) | When::Running(at) | When::Beside(at, _) | When::Written(at) => Some(at.row),
            // Of guards alone something is said of the manifest.
            When::Asked(_) | When::BeforeOutputs => None,
        }
    }

    /// The row of which the claim is made, of its guard too.
    pub(super) fn of_row(&self) -> Option<usize> {
        match self.when {
            When::Asked(row) => Some(row),
            _ => self.row(),
        }
    }

    /// The conditions under which the claim is made.
    pub(super) fn conditions<'s>(&self, site: &'s Site<'_>) -> Vec<&'s Expr> {
        let row = match self.when {
            When::Asked(row) => return site.of_nodes(row).iter().collect(),
            When::BeforeOutputs => return Vec::new(),
            When::Chosen(row) => row,
            When::Launched(at) | When::Running(at) | When::Beside(at, _) | When::Written(at) => at.row,
        };
        let step = match self.when {
            When::Launched(at) | When::Running(at) | When::Beside(at, _) | When::Written(at) => Some(at),
            When::Chosen(_) | When::Asked(_) | When::BeforeOutputs => None,
        };
        let is_wanted = |axis: usize| match self.when {
            When::Running(_) => true,
            When::Beside(_, own) => axis != own,
            _ => false,
        };
        let axes = step
            .map_or(&[][..], |at| site.filled(at))
            .iter()
            .enumerate()
            .filter(|(axis, _)| is_wanted(*axis));
        let filled = axes.filter_map(|(_, filled)| filled.as_ref());
        let written = step.and_then(|at| site.given(at)).filter(|_| matches!(self.when, When::Written(_)));
        let when = step.and_then(|at| site.when(at));
        site.of_nodes(row).iter().chain(site.guard(row)).chain(when).chain(filled).chain(written).collect()
    }

    /// The cases that the claim is about, of those of a whole plugin: the site's, or one that differs in its limits.
    pub(super) fn narrow<'p>(&self, site: &'p Site<'_>, domain: Domain<'p>) -> Domain<'p> {
        match self.when {
            When::BeforeOutputs => domain.before_outputs(),
            _ => self.conditions(site).into_iter().fold(domain, Domain::assuming),
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
        What::Misfit(_) => Verdict::Refuted(Case::default()),
    }
}

/// What must hold, and what is known of it.
pub(super) fn oblige(site: &Site<'_>, group: Group) -> Obligation {
    let (found, case) = match &group.settled.verdict {
        Verdict::Refuted(case) => (Some(found(site, &group, case)), Some(NamedCase::of(site.plugin, case))),
        _ => (None, None),
    };
    Obligation {
        rule: group.claim.rule,
        statement: format!("{} {}", group.claim.subject, group.claim.must),
        span: group.claim.span,
        verdict: group.settled.verdict,
        is_beyond: group.settled.is_beyond,
        found,
        case,
        route: site.route,
    }
}

/// Returns one message for each cause: it names all places that the same case refutes, and the first row that breaks a place. Rows that
/// are always wrong take precedence over rows that are wrong for some cases.
pub(super) fn told_once(site: &Site<'_>, groups: &[Group]) -> Vec<Diagnostic> {
    let refuted = |group: &Group| group.settled.told().cloned();
    let always_wrong: Vec<&Group> =
        groups.iter().filter(|group| group.settled.is_always_wrong && refuted(group).is_some()).collect();
    let mut told: Vec<(&Group, Case, Diagnostic)> = Vec::new();
    for group in groups {
        let Some(case) = refuted(group) else { continue };
        let is_same_place =
            |other: &Group| other.claim.span == group.claim.span && other.claim.rule == group.claim.rule;
        let is_error = group.settled.is_always_wrong;
        if told.iter().any(|(other, ..)| is_same_place(other))
            || (!is_error && always_wrong.iter().any(|other| is_same_place(other)))
        {
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
                diagnostic.related.push(Label { span: group.claim.span.clone(), text: found });
            }
            None => {
                let is_alike = |other: &&Group| {
                    is_same_place(other)
                        && other.settled.is_always_wrong == is_error
                        && refuted(other).is_some()
                };
                let others = groups.iter().filter(is_alike);
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
    let must = claim.must.strip_prefix("is ").filter(|_| claim.expr.constant().is_some());
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
        diagnostic = diagnostic.note(what_comes(site, claim));
    }
    diagnostic.help(match group.settled.is_always_wrong {
        true => remedy::change(site, claim),
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
fn what_comes(site: &Site<'_>, claim: &Claim) -> &'static str {
    if remedy::is_of_numbers(claim) {
        return "nothing checks this at run time: a kernel that stores one number per element writes past the end of the buffer";
    }
    match (claim.rule == rules::SIZE_TENSOR, site.route) {
        (true, _) => "TensorRT believes what it is told of sizes",
        (false, Route::Plugin) => refused(claim.when),
        (false, Route::Native) => unchecked(claim),
    }
}

/// What a plugin library does.
fn refused(when: When) -> &'static str {
    match when {
        When::BeforeOutputs => "such a node is refused when the engine is built, such a shape at run time",
        // Of guards alone something is said of every launch.
        When::Asked(_) => {
            "a guard without a value does not hold: the next variant whose guard holds runs instead"
        }
        When::Chosen(_) | When::Launched(_) | When::Running(_) | When::Beside(..) | When::Written(_) => {
            "such a launch is refused at run time, with a message that says this"
        }
    }
}

/// What TensorRT does where it launches itself.
fn unchecked(claim: &Claim) -> &'static str {
    match (claim.when, &claim.what) {
        (When::BeforeOutputs, What::HasValue) => {
            "such a node is refused when the engine is built; of shapes of a profile nobody checks it when the engine runs"
        }
        (When::BeforeOutputs, _) => {
            "such a node is refused when the engine is built; for such shapes of a profile the kernel leaves at once, and the outputs keep what their \
             memory held"
        }
        (When::Asked(_), _) => {
            "TensorRT is offered no variant whose guard is not proved for all shapes of the profile: it takes one of the others"
        }
        _ => {
            "TensorRT launches it all the same, and checks nothing: what is not proved for the profile is a warning when the engine is built"
        }
    }
}

/// `for x = [1, 65536] this would be 65536`.
fn found(site: &Site<'_>, group: &Group, case: &Case) -> String {
    let claim = &group.claim;
    let told = describe(site.plugin, case, &[&claim.expr]);
    let prefix = if told.is_empty() { String::new() } else { format!("for {told} ") };
    let constant = claim.expr.constant();
    match &claim.what {
        What::Within(_) if constant.is_some() => {
            format!("this is {}", constant.unwrap_or_default())
        }
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
            Ok(cubinder_expr::Value::Array(items)) => {
                format!("{prefix}this would have {} elements", items.len())
            }
            Ok(found) => format!("{prefix}this would be {found}"),
            Err(error) => format!("{prefix}{error}"),
        },
    }
}
