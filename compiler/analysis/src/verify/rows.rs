use cubinder_model::{Plugin, Variant};

use crate::diagnostic::Diagnostic;
use crate::resolve::Unit;
use crate::rules;

pub(crate) fn variant_name(variant: &Variant) -> String {
    match variant.label.as_str() {
        "" => format!("variant {}", variant.id),
        label => format!("variant {} ({label})", variant.id),
    }
}

/// Names a unit's row.
#[must_use]
pub fn row_name(plugin: &Plugin, unit: &Unit) -> String {
    plugin.variants.get(unit.variant).map(variant_name).unwrap_or_default()
}

struct Merged<'a> {
    diagnostic: &'a Diagnostic,
    rows: Vec<&'a str>,
    /// Whether rows word it differently.
    differs: bool,
}

/// Merges rows' diagnostics in order; names the rows if some lack or word an error differently.
#[must_use]
pub fn merge_rows(entries: &[(String, Vec<Diagnostic>)]) -> Vec<Diagnostic> {
    let mut rows: Vec<(&str, Vec<&Diagnostic>)> = Vec::new();
    for (row, diagnostics) in entries {
        let index = rows.iter().position(|(known, _)| known == row).unwrap_or(rows.len());
        match rows.get_mut(index) {
            None => rows.push((row, diagnostics.iter().collect())),
            Some((_, known)) => {
                let new: Vec<&Diagnostic> = diagnostics.iter().filter(|one| !known.contains(one)).collect();
                known.extend(new);
            }
        }
    }
    let mut merged: Vec<Merged<'_>> = Vec::new();
    for (row, diagnostics) in &rows {
        // A row that reports twice has two errors.
        let mut taken: Vec<usize> = Vec::new();
        for diagnostic in diagnostics {
            let is_new =
                |index: &usize| !taken.contains(index) && is_same(merged[*index].diagnostic, diagnostic);
            let index = (0..merged.len()).find(is_new).unwrap_or(merged.len());
            taken.push(index);
            match merged.get_mut(index) {
                Some(known) => {
                    known.differs |= known.diagnostic != *diagnostic;
                    known.rows.push(row);
                }
                None => merged.push(Merged { diagnostic, rows: vec![row], differs: false }),
            }
        }
    }
    merged.into_iter().map(|merged| merged.report(rows.len())).collect()
}

impl Merged<'_> {
    fn report(self, all: usize) -> Diagnostic {
        let diagnostic = self.diagnostic.clone();
        match (self.rows.as_slice(), self.rows.len() == all) {
            ([_] | [], true) => diagnostic,
            (_, true) if !self.differs => diagnostic,
            ([first], false) => diagnostic.note(format!("in {first} only")),
            ([first, others @ ..], _) => diagnostic.note(format!("in {first} and {} more", others.len())),
            ([], false) => diagnostic,
        }
    }
}

/// Compares rule and span; without a rule, or from a compiler, also words.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    let place = |one: &Diagnostic| one.primary.as_ref().map(|label| label.span.clone());
    let has_own_words = one.code.is_none_or(|code| code == rules::KERNEL_ERROR) || one.primary.is_none();
    (one.severity, one.code, place(one)) == (other.severity, other.code, place(other))
        && (!has_own_words || one.message == other.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Code, Source, Span};

    fn row(name: &str) -> String {
        name.to_owned()
    }

    fn problem(code: Code, at: usize, message: &str) -> Diagnostic {
        let source = Source::new("m.toml", "a text");
        Diagnostic::error(message).code(code).at(Span::new(&source, at..at + 1), "here")
    }

    fn told(rows: &[(String, Vec<Diagnostic>)]) -> Vec<(String, Vec<String>)> {
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
