//! Warns about types and formats without an unguarded variant: all may fail.

use std::collections::HashMap;

use cubinder_expr::{BinaryOp, Expr};
use cubinder_launch::proof::Verdict;

use super::draft_view::{DraftView, within};
use super::errors::NoVariantWithoutGuard;
use super::formula::{ExprKey, joined};
use super::witness::describe;
use crate::diagnostic::Diagnostic;
use crate::manifest::Route;

pub(super) fn check(view: &DraftView<'_>, never: &[usize], always: &[usize]) -> Option<Diagnostic> {
    let domain = view.domain();
    let hasty = domain.clone().hasty();
    let mut known: HashMap<(ExprKey<'_>, ExprKey<'_>), Verdict> = HashMap::new();
    let mut without: Vec<usize> = Vec::new();
    let mut case = None;
    for rows in view.rows_of_nodes() {
        // The others serve them or were reported.
        if rows.iter().any(|row| always.contains(row)) || rows.iter().all(|row| never.contains(row)) {
            continue;
        }
        let guards: Option<Vec<&Expr>> = rows.iter().map(|&row| view.guard(row)).collect();
        let (Some(guards), Some(&first), Some(&last)) = (guards, rows.first(), rows.last()) else { continue };
        let Some(any) = joined(BinaryOp::Or, guards.iter().copied()) else { continue };
        let given = ExprKey::from(view.of_nodes(first));
        let domain = if without.is_empty() { &domain } else { &hasty };
        let key = (given, ExprKey(guards));
        match known.entry(key).or_insert_with_key(|(given, _)| within(domain, &given.0).always(&any)) {
            Verdict::Proved => continue,
            Verdict::Refuted(found) if without.is_empty() => {
                case = Some(describe(view.plugin, found, &[&any]));
            }
            Verdict::Refuted(_) | Verdict::Open => {}
        }
        without.push(last);
    }
    let row = *without.first()?;
    let label = match case.filter(|case| !case.is_empty()) {
        Some(case) => format!("for {case}, this and all earlier guards are false"),
        None => "this and all earlier guards may be false".to_owned(),
    };
    let consequence = match view.route {
        Route::Plugin => "a launch without a true guard is rejected at run time",
        Route::Native => {
            "TensorRT chooses one variant at build time: the build fails if no guard is proved for all shapes of the profile"
        }
    };
    let span = view.guard_span(row).unwrap_or_else(|| view.variant_span(row));
    let diagnostic = Diagnostic::from(NoVariantWithoutGuard { span, label, consequence });
    Some(match without.len() < view.rows_of_nodes().len() {
        true => diagnostic.note(format!("for the {} of {}", view.choices(), view.describe_all(&without))),
        false => diagnostic,
    })
}
