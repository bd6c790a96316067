use cubinder_expr::Value;
use cubinder_launch::proof::{Case, Verdict};

use super::Obligation;
use super::claim::{Claim, Group, Must, Predicate, When};
use super::draft_view::DraftView;
use super::remedy;
use super::witness::{NamedCase, describe, outside, value};
use crate::diagnostic::{Diagnostic, Label};
use crate::manifest::Route;
use crate::rules;

pub(super) fn oblige(view: &DraftView<'_>, group: Group<'_>) -> Obligation {
    let (found, case) = match &group.settled.verdict {
        Verdict::Refuted(case) => {
            (Some(found(view, group.claim, case)), Some(NamedCase::new(view.plugin, case)))
        }
        _ => (None, None),
    };
    let Group { claim, settled, .. } = group;
    Obligation {
        rule: claim.rule,
        statement: format!("{} {}", claim.term.subject, claim.must),
        span: claim.term.span.clone(),
        verdict: settled.verdict,
        is_beyond: settled.is_beyond,
        found,
        case,
        route: view.route,
    }
}

/// Returns one message per cause, with all spans and each one's first row; rows that always fail first.
pub(super) fn report(view: &DraftView<'_>, groups: &[Group<'_>]) -> Vec<Diagnostic> {
    let refuted = groups.iter().filter_map(|group| match &group.settled.verdict {
        Verdict::Refuted(case) if !group.settled.is_beyond => Some((group, case)),
        _ => None,
    });
    let refuted: Vec<(&Group<'_>, &Case)> = refuted.collect();
    let is_same_place = |one: &Group<'_>, other: &Group<'_>| {
        one.claim.term.span == other.claim.term.span && one.claim.rule == other.claim.rule
    };
    let mut reported: Vec<(&Group<'_>, &Case, Diagnostic)> = Vec::new();
    for (group, case) in refuted.iter().copied() {
        let is_error = group.settled.is_always_wrong;
        let mut same_place = refuted.iter().map(|(other, _)| *other).filter(|it| is_same_place(it, group));
        if reported.iter().any(|(other, ..)| is_same_place(other, group))
            || (!is_error && same_place.clone().any(|other| other.settled.is_always_wrong))
        {
            continue;
        }
        let together = reported.iter_mut().find(|(other, known, _)| {
            other.claim.rule == group.claim.rule
                && other.settled.is_always_wrong == is_error
                // Types may be too narrow in different ways.
                && (group.claim.rule != rules::ARGUMENT_OVERFLOW || other.claim.must == group.claim.must)
                && *known == case
        });
        if let Some((.., diagnostic)) = together {
            let text = found(view, group.claim, case);
            diagnostic.related.push(Label { span: group.claim.term.span.clone(), text });
            continue;
        }
        let mut rows: Vec<usize> = same_place
            .by_ref()
            .filter(|other| other.settled.is_always_wrong == is_error)
            .flat_map(|other| other.rows.iter().copied())
            .collect();
        rows.sort_unstable();
        reported.push((group, case, message(view, group, case, &rows)));
    }
    reported.into_iter().map(|(.., diagnostic)| diagnostic).collect()
}

fn message(view: &DraftView<'_>, group: &Group<'_>, case: &Case, rows: &[usize]) -> Diagnostic {
    let claim = group.claim;
    let is_always = group.settled.is_always_wrong;
    let broken = match (&claim.must, is_always) {
        _ if claim.predicate == Predicate::HasValue && is_always => "never has a value".to_owned(),
        _ if claim.predicate == Predicate::HasValue => "may have no value".to_owned(),
        (Must::Be(rest), _) if claim.term.expr.constant().is_some() => format!("must be {rest}"),
        (Must::Be(rest), true) => format!("is never {rest}"),
        (Must::Be(rest), false) => format!("is not always {rest}"),
        (Must::Have(rest), true) => format!("never has {rest}"),
        (Must::Have(rest), false) => format!("does not always have {rest}"),
        (Must::HaveNo(rest), true) => format!("always has a {rest}"),
        (Must::HaveNo(rest), false) => format!("may have a {rest}"),
        (Must::Fit(rest), true) => format!("never fits {rest}"),
        (Must::Fit(rest), false) => format!("does not always fit {rest}"),
    };
    let message = format!("{} {broken}", claim.term.subject);
    let code = if claim.predicate == Predicate::HasValue && is_always { rules::NO_VALUE } else { claim.rule };
    let diagnostic = if is_always { Diagnostic::error(message) } else { Diagnostic::warning(message) };
    let mut diagnostic = diagnostic.code(code).at(claim.term.span.clone(), found(view, claim, case));
    diagnostic = view.note_rows(diagnostic, rows);
    if is_always {
        return diagnostic.help(remedy::change(claim));
    }
    diagnostic
        .note(claim.consequence.unwrap_or_else(|| consequence(view.route, claim)))
        .help(remedy::help(view, claim, case))
}

fn consequence(route: Route, claim: &Claim) -> &'static str {
    match (route, claim.term.when, &claim.predicate) {
        (Route::Plugin, When::BeforeOutputs, _) => {
            "such nodes are rejected when the engine is built, such shapes at run time"
        }
        (Route::Plugin, When::Guarded(_), _) => {
            "a guard without a value is false: the next variant whose guard is true runs instead"
        }
        (Route::Plugin, ..) => "such launches are rejected at run time with this message",
        (Route::Native, When::BeforeOutputs, Predicate::HasValue) => {
            "such nodes are rejected when the engine is built; shapes of a profile are not checked when the engine runs"
        }
        (Route::Native, When::BeforeOutputs, _) => {
            "such nodes are rejected when the engine is built; for such shapes of a profile the kernel returns at once and \
             writes no output"
        }
        (Route::Native, When::Guarded(_), _) => {
            "TensorRT is offered only variants whose guard is proved for all shapes of the profile, and chooses one of these"
        }
        (Route::Native, ..) => {
            "TensorRT launches it without a check; building the engine warns about anything not proved for the profile"
        }
    }
}

fn found(view: &DraftView<'_>, claim: &Claim, case: &Case) -> String {
    let expr = &claim.term.expr;
    let inputs = describe(view.plugin, case, &[expr]);
    let prefix = if inputs.is_empty() { String::new() } else { format!("for {inputs}, ") };
    match (&claim.predicate, value(expr, case)) {
        (Predicate::Misfit(found), _) => found.clone(),
        (Predicate::Within(allowed) | Predicate::Fits(allowed), _) => {
            match (expr.constant(), outside(expr, case, *allowed)) {
                (Some(constant), _) => format!("this is {constant}"),
                (None, Some((Some(index), found))) => format!("{prefix}element {index} is {found}"),
                (None, Some((None, found))) => format!("{prefix}this is {found}"),
                (None, None) => format!("{prefix}this is violated"),
            }
        }
        (_, Err(error)) => format!("{prefix}{error}"),
        (Predicate::HasValue, Ok(_)) => format!("{prefix}this has no value"),
        (Predicate::Holds(_), Ok(Value::Array(items))) => {
            format!("{prefix}this has length {}", items.len())
        }
        (Predicate::Holds(_), Ok(found)) => format!("{prefix}this is {found}"),
    }
}
