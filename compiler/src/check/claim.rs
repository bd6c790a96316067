//! Statements about expressions, settled: proved, refuted by the smallest case, or open.
//!
//! Owns what becomes of a claim: rows of the table that say the same are settled once, and what one case refutes is told in one
//! message.

use cubinder_bundle::Interval;
use cubinder_bundle::expr::Expr;
use cubinder_bundle::proof::{Case, Domain, Verdict};

use super::formula::{constant, is_within};
use super::remedy;
use super::site::Site;
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
    /// The row whose guard holds then; none for what is the same for all rows.
    pub(super) row: Option<usize>,
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
}

/// Claims of several rows that are settled together.
struct Group {
    claim: Claim,
    rows: Vec<usize>,
    verdict: Verdict,
    /// No case is as it must be.
    is_always_wrong: bool,
}

/// Settles claims: obligations, an error for what is always wrong, a warning for what some case refutes.
pub(super) fn settle(site: &Site<'_>, claims: Vec<Claim>, checked: &mut Checked) {
    let mut groups: Vec<Group> = Vec::new();
    for claim in claims {
        let guard = |row: Option<usize>| row.and_then(|row| site.guard(row));
        let same = |group: &&mut Group| {
            let known = &group.claim;
            known.span == claim.span
                && known.rule == claim.rule
                && known.subject == claim.subject
                && known.what == claim.what
                && known.expr == claim.expr
                && guard(known.row) == guard(claim.row)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.rows.extend(claim.row),
            None => {
                let (verdict, is_always_wrong) = settle_one(site, &claim);
                let rows = claim.row.into_iter().collect();
                groups.push(Group { claim, rows, verdict, is_always_wrong });
            }
        }
    }
    checked.diagnostics.extend(told_once(site, &groups));
    for group in groups {
        oblige(group, &mut checked.obligations);
    }
}

fn settle_one(site: &Site<'_>, claim: &Claim) -> (Verdict, bool) {
    if let (What::Within(allowed), Some(value)) = (&claim.what, constant(&claim.expr)) {
        let case = Case { attributes: Vec::new(), shapes: Vec::new() };
        return match allowed.contains(value) {
            true => (Verdict::Proved, false),
            false => (Verdict::Refuted(case), true),
        };
    }
    let domain = claim.row.map_or_else(|| site.domain(), |row| site.domain_of(row));
    let verdict = verdict(&domain, claim);
    let is_always_wrong = match (&claim.what, &verdict) {
        (What::Within(allowed), Verdict::Refuted(case)) if !is_array(&claim.expr, case) => {
            domain.never(&is_within(&claim.expr, *allowed)) == Verdict::Proved
        }
        (What::Holds(condition), Verdict::Refuted(_)) => domain.never(condition) == Verdict::Proved,
        _ => false,
    };
    (verdict, is_always_wrong)
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
    }
}

fn is_array(expr: &Expr, case: &Case) -> bool {
    matches!(value(expr, case), Ok(cubinder_bundle::Value::Array(_)))
}

/// One obligation for a place and a statement: the worst over the rows.
fn oblige(group: Group, obligations: &mut Vec<Obligation>) {
    let statement = format!("{} {}", group.claim.subject, group.claim.must);
    let (rule, span, verdict) = (group.claim.rule, group.claim.span, group.verdict);
    let known = obligations
        .iter_mut()
        .find(|known| known.span == span && known.rule == rule && known.statement == statement);
    match known {
        Some(known) if severity(&verdict) > severity(&known.verdict) => known.verdict = verdict,
        Some(_) => {}
        None => obligations.push(Obligation { rule, statement, span, verdict }),
    }
}

fn severity(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Proved => 0,
        Verdict::Open => 1,
        Verdict::Refuted(_) => 2,
    }
}

/// A message for each cause: places that the same case refutes are told together, and of the rows that break one place the first.
fn told_once(site: &Site<'_>, groups: &[Group]) -> Vec<Diagnostic> {
    let refuted = |group: &Group| match &group.verdict {
        Verdict::Refuted(case) => Some(case.clone()),
        _ => None,
    };
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
                && other.is_always_wrong == group.is_always_wrong
                && *known == case
        });
        let found = found(site, group, &case);
        match together {
            Some((_, _, diagnostic)) => {
                *diagnostic = diagnostic.clone().related(group.claim.span.clone(), found);
            }
            None => {
                let others = groups.iter().filter(|other| is_same_place(other) && refuted(other).is_some());
                let mut rows: Vec<usize> = others.flat_map(|group| group.rows.iter().copied()).collect();
                rows.sort_unstable();
                let diagnostic = message(site, group, &case, found, &rows);
                told.push((group, case, diagnostic));
            }
        }
    }
    told.into_iter().map(|(.., diagnostic)| diagnostic).collect()
}

fn message(site: &Site<'_>, group: &Group, case: &Case, found: String, rows: &[usize]) -> Diagnostic {
    let claim = &group.claim;
    let what = match (&claim.what, group.is_always_wrong) {
        (What::HasValue, _) => format!("{} may have no value", claim.subject),
        (_, true) => format!("it never holds that {} {}", claim.subject, claim.must),
        (_, false) => format!("it does not always hold that {} {}", claim.subject, claim.must),
    };
    let diagnostic = if group.is_always_wrong { Diagnostic::error(what) } else { Diagnostic::warning(what) };
    let mut diagnostic = diagnostic.code(claim.rule).at(claim.span.clone(), found);
    if !rows.is_empty() && rows.len() < site.plugin.variants.len() {
        diagnostic = diagnostic.note(format!("in {}", site.describe_all(rows)));
    }
    if !group.is_always_wrong {
        diagnostic = diagnostic.note(refused(claim.rule));
    }
    match remedy::help(site, claim, case) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// What comes of such a case when the engine runs.
fn refused(rule: Code) -> &'static str {
    if rule == rules::NEGATIVE_DIMENSION {
        "such a node is refused when the engine is built, such a shape at run time"
    } else {
        "such a launch is refused at run time, with a message that says this"
    }
}

/// `for x = [1, 65536] this would be 65536`.
fn found(site: &Site<'_>, group: &Group, case: &Case) -> String {
    let claim = &group.claim;
    let told = describe(site.plugin, case, &[&claim.expr]);
    let prefix = if told.is_empty() { String::new() } else { format!("for {told} ") };
    match &claim.what {
        What::Within(allowed) | What::Fits(allowed) => match outside(&claim.expr, case, *allowed) {
            Some((Some(index), found)) => format!("{prefix}element {index} would be {found}"),
            Some((None, found)) => format!("{prefix}this would be {found}"),
            None => format!("{prefix}it does not hold"),
        },
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
