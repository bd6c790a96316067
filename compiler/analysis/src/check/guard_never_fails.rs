//! A guard that every case meets, in all rows of its variant. In some rows only it may well be meant so: `sizeof(T) == 2 or ...`, and
//! where it took rows out it is what says so.

use cubinder_launch::proof::{Devices, Verdict};

use super::format_words;
use super::guard_never_holds::{Answers, rows_of_variants};
use super::site::Site;
use super::variant_without_guard::within;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// The rows whose guard always holds.
pub(super) fn check(site: &Site<'_>, never: &[usize], diagnostics: &mut Vec<Diagnostic>) -> Vec<usize> {
    let mut always = Vec::new();
    // On every device: the same manifest may be compiled for other targets.
    let domain = site.domain().on_devices(Devices::ANY).hasty();
    let mut answers = Answers::new(|given, guard| within(&domain, given).always(guard) == Verdict::Proved);
    let mut holds = |row: usize| {
        let guard = site.guard(row).filter(|_| !never.contains(&row));
        guard.is_some_and(|guard| answers.of(site.of_nodes(row), guard))
    };
    for rows in rows_of_variants(site) {
        let holding: Vec<usize> = rows.iter().copied().filter(|&row| holds(row)).collect();
        // A guard that is always true where it took out the rest says for which values the variant is.
        let narrows = rows.first().and_then(|&row| site.variant(row));
        let narrows = narrows.is_some_and(|it| site.resolved.draft.narrowed.contains(&it.id));
        let span = rows.first().filter(|_| !narrows).and_then(|&row| site.guard_span(row));
        if let Some(span) = span.filter(|_| holding.len() == rows.len()) {
            let diagnostic = Diagnostic::warning("this guard never fails")
                .code(rules::GUARD_NEVER_FAILS)
                .at(span, "true for every node and shape that the manifest allows")
                .help("drop it: a variant without a guard can always run");
            diagnostics.push(format_words::explain(site, &rows, diagnostic));
        }
        always.extend(holding);
    }
    always
}
