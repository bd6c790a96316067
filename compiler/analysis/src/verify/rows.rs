//! Telling a mistake once that several rows of the table of variants have.
//!
//! Owns when two diagnostics are one. Rows differ in types and constants, so the same mistake has other words in each:
//! `scale<float>` in one and `scale<__half>` in the next.

use cubinder_model::Plugin;

use crate::diagnostic::{Diagnostic, Label};
use crate::resolve::Unit;
use crate::rules;

/// A row of the table of variants, as messages call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(String);

impl Row {
    /// The row of a unit.
    #[must_use]
    pub fn of(plugin: &Plugin, unit: &Unit) -> Row {
        let Some(variant) = plugin.variants.get(unit.variant) else { return Row(String::new()) };
        Row(match variant.label.as_str() {
            "" => format!("variant {}", variant.id),
            label => format!("variant {} ({label})", variant.id),
        })
    }
}

/// One mistake and the rows that have it.
struct Merged<'a> {
    diagnostic: &'a Diagnostic,
    rows: Vec<&'a Row>,
    /// Whether the rows have other words for it.
    differs: bool,
}

/// The diagnostics of several rows, each mistake once, in the order in which they first appear. One that not all rows have, or
/// that reads differently in each, says which rows have it.
#[must_use]
pub fn merge_rows(rows: &[(Row, Vec<Diagnostic>)]) -> Vec<Diagnostic> {
    let rows = &by_row(rows);
    let mut merged: Vec<Merged<'_>> = Vec::new();
    for (row, diagnostics) in rows {
        // What one row says twice is two things.
        let mut taken: Vec<usize> = Vec::new();
        for diagnostic in diagnostics {
            let known = merged
                .iter()
                .enumerate()
                .find(|(index, known)| !taken.contains(index) && is_same(known.diagnostic, diagnostic));
            match known.map(|(index, _)| index) {
                Some(index) => {
                    taken.push(index);
                    merged[index].differs |= merged[index].diagnostic != diagnostic;
                    merged[index].rows.push(row);
                }
                None => {
                    taken.push(merged.len());
                    merged.push(Merged { diagnostic, rows: vec![row], differs: false });
                }
            }
        }
    }
    merged.into_iter().map(|merged| merged.told(rows.len())).collect()
}

/// One entry for each row: of several launches of a row, what they say in the same words is one mistake.
fn by_row(entries: &[(Row, Vec<Diagnostic>)]) -> Vec<(Row, Vec<Diagnostic>)> {
    let mut rows: Vec<(Row, Vec<Diagnostic>)> = Vec::new();
    for (row, diagnostics) in entries {
        match rows.iter_mut().find(|(known, _)| known == row) {
            None => rows.push((row.clone(), diagnostics.clone())),
            Some((_, known)) => {
                let new: Vec<Diagnostic> =
                    diagnostics.iter().filter(|diagnostic| !known.contains(diagnostic)).cloned().collect();
                known.extend(new);
            }
        }
    }
    rows
}

impl Merged<'_> {
    fn told(self, all: usize) -> Diagnostic {
        let diagnostic = self.diagnostic.clone();
        let is_everywhere = self.rows.len() == all;
        match self.rows.as_slice() {
            [_] if is_everywhere => diagnostic,
            [first] => diagnostic.note(format!("in {} only", first.0)),
            _ if is_everywhere && !self.differs => diagnostic,
            [first, others @ ..] => diagnostic.note(format!("in {} and {} more", first.0, others.len())),
            [] => diagnostic,
        }
    }
}

/// Whether two diagnostics of different rows are about one mistake: the same rule at the same place. Of what a compiler says
/// about a kernel, and of what is no rule's, the words must be the same too.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    let place = |label: &Option<Label>| label.as_ref().map(|label| label.span.clone());
    let has_own_words = one.code.is_none_or(|code| code == rules::KERNEL_ERROR) || one.primary.is_none();
    one.severity == other.severity
        && one.code == other.code
        && place(&one.primary) == place(&other.primary)
        && (!has_own_words || one.message == other.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Code, Source, Span};

    fn row(name: &str) -> Row {
        Row(name.to_owned())
    }

    fn problem(code: Code, at: usize, message: &str) -> Diagnostic {
        let source = Source::new("m.toml", "a text");
        Diagnostic::error(message).code(code).at(Span::new(&source, at..at + 1), "here")
    }

    fn told(rows: &[(Row, Vec<Diagnostic>)]) -> Vec<(String, Vec<String>)> {
        merge_rows(rows).into_iter().map(|diagnostic| (diagnostic.message, diagnostic.notes)).collect()
    }

    #[test]
    fn a_mistake_of_all_rows_is_told_once() {
        let unknown = |kernel: &str| problem(rules::UNKNOWN_PARAMETER, 1, &format!("`{kernel}` has no `n`"));
        let rows = [
            (row("variant 1 (T=f32)"), vec![unknown("k<float>")]),
            (row("variant 1 (T=f16)"), vec![unknown("k<__half>")]),
        ];
        assert_eq!(
            told(&rows),
            [("`k<float>` has no `n`".to_owned(), vec!["in variant 1 (T=f32) and 1 more".to_owned()])]
        );
        let same = rows.map(|(row, _)| (row, vec![unknown("k")]));
        assert_eq!(told(&same), [("`k` has no `n`".to_owned(), Vec::new())]);
    }

    #[test]
    fn what_differs_stays_apart() {
        let misfit = |at| problem(rules::ARGUMENT_MISFIT, at, "misfit");
        let said = |text| problem(rules::KERNEL_ERROR, 3, text);
        let rows = [
            (row("variant 1"), vec![misfit(1), misfit(1), said("one thing")]),
            (row("variant 2"), vec![misfit(1), misfit(2), said("another")]),
        ];
        let only = |row: &str| vec![format!("in {row} only")];
        assert_eq!(
            told(&rows),
            [
                ("misfit".to_owned(), Vec::new()),
                ("misfit".to_owned(), only("variant 1")),
                ("one thing".to_owned(), only("variant 1")),
                ("misfit".to_owned(), only("variant 2")),
                ("another".to_owned(), only("variant 2")),
            ]
        );
        assert_eq!(told(&[(row("variant 1"), vec![misfit(1)])]), [("misfit".to_owned(), Vec::new())]);
    }
}
