//! A guard that every case meets, in all rows of its variant. In some rows only it may well be meant so: `sizeof(T) == 2 or ...`, and
//! where it took rows out it is what says so.

use std::collections::HashMap;

use cubinder_launch::proof::{Devices, Verdict};

use super::draft_view::{DraftView, within};
use super::errors::GuardNeverFails;
use super::format_words;
use super::formula::ExprKey;
use super::guard_never_holds::rows_of_variants;
use crate::diagnostic::Diagnostic;

/// The rows whose guard always holds.
pub(super) fn check(view: &DraftView<'_>, never: &[usize], diagnostics: &mut Vec<Diagnostic>) -> Vec<usize> {
    let mut always = Vec::new();
    // On every device: the same manifest may be compiled for other targets.
    let domain = view.domain().on_devices(Devices::ANY).hasty();
    let mut known = HashMap::new();
    let mut holds = |row: usize| {
        let guard = view.guard(row).filter(|_| !never.contains(&row));
        guard.is_some_and(|guard| {
            let (given, guard) = (ExprKey::from(view.of_nodes(row)), ExprKey(vec![guard]));
            *known.entry((given, guard)).or_insert_with_key(|(given, guard)| {
                guard.0.iter().all(|guard| within(&domain, &given.0).always(guard) == Verdict::Proved)
            })
        })
    };
    for rows in rows_of_variants(view) {
        let holding: Vec<usize> = rows.iter().copied().filter(|&row| holds(row)).collect();
        // A guard that is always true where it took out the rest says for which values the variant is.
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
