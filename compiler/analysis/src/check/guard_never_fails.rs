//! Reports guards that are always satisfied in all rows of a variant; in some, `sizeof(T) == 2 or ...` is intended.

use cubinder_launch::proof::Verdict;

use super::draft_view::DraftView;
use super::errors::GuardNeverFails;
use super::format_words;
use super::guard_never_holds::of_guards;
use crate::diagnostic::Diagnostic;

/// Returns the rows with such guards.
pub(super) fn check(view: &DraftView<'_>, never: &[usize], diagnostics: &mut Vec<Diagnostic>) -> Vec<usize> {
    let mut always = Vec::new();
    let mut is_proved = of_guards(view, |domain, guard| domain.always(guard) == Verdict::Proved);
    let mut holds = |row: usize| !never.contains(&row) && is_proved(row);
    for rows in view.rows_of_variants() {
        let holding: Vec<usize> = rows.iter().copied().filter(|&row| holds(row)).collect();
        // Guards that exclude other rows are useful.
        let narrows = rows.first().and_then(|&row| view.variant(row));
        let narrows = narrows.is_some_and(|it| view.resolved.draft.narrowed.contains(&it.id));
        let span = rows.first().filter(|_| !narrows).and_then(|&row| view.guard_span(row));
        if let Some(span) = span.filter(|_| holding.len() == rows.len()) {
            diagnostics.push(format_words::explain(view, &rows, GuardNeverFails { span }.into()));
        }
        always.extend(holding);
    }
    always
}
