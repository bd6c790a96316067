//! Messages about rows of the table of variants: one mistake is told once, with the rows in which it shows.
//!
//! Every row is looked at by itself, so one mistake comes back from many of them, often in other words: a message may name the
//! row's type or constant. Owns what counts as one mistake. Never makes a message of its own.

use std::collections::HashMap;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Span};

/// Messages, each with the rows in which it shows.
#[derive(Debug, Default)]
pub(super) struct Messages {
    found: Vec<Found>,
    /// What was found at each place, so that only that is compared.
    places: HashMap<Option<Range<usize>>, Vec<usize>>,
}

#[derive(Debug)]
struct Found {
    diagnostic: Diagnostic,
    /// Ascending; none where the message belongs to no row.
    rows: Vec<usize>,
    /// Whether another row says it in other words.
    varies: bool,
    /// How many rows were looked at, once that is known.
    of: Option<usize>,
}

impl Messages {
    /// Adds a message of a row, or of none. One that another row gives with the same rule and place is the same mistake; the
    /// first row's words are kept.
    pub(super) fn add(&mut self, diagnostic: Diagnostic, row: Option<usize>) {
        let range = diagnostic.primary.as_ref().map(|label| label.span.range.clone());
        let here = self.places.entry(range).or_default();
        let mut all = here.iter().copied();
        let same = all.find(|&at| self.found.get(at).is_some_and(|found| found.diagnostic == diagnostic));
        // One row can make two mistakes in one place.
        let is_alike = |found: &Found| {
            row.is_some_and(|row| !found.rows.is_empty() && found.rows.binary_search(&row).is_err())
                && is_same_mistake(&found.diagnostic, &diagnostic)
        };
        let mut all = here.iter().copied();
        let alike = same.or_else(|| all.find(|&at| self.found.get(at).is_some_and(is_alike)));
        match alike.and_then(|at| self.found.get_mut(at)) {
            Some(found) => {
                found.add(row);
                found.varies |= same.is_none();
            }
            None => {
                here.push(self.found.len());
                self.found.push(Found {
                    diagnostic,
                    rows: row.into_iter().collect(),
                    varies: false,
                    of: None,
                });
            }
        }
    }

    /// The messages so far come from looking at `total` rows: the next ones may come from fewer.
    pub(super) fn settle(&mut self, total: usize) {
        for found in &mut self.found {
            found.of.get_or_insert(total);
        }
    }

    /// All messages. Those about some of the rows that were looked at, which are `total` where nothing else was said of it, name the first
    /// of these by what `describe` says: `variant 1 (T=f16)`.
    pub(super) fn finish(
        mut self,
        total: usize,
        describe: &dyn Fn(usize) -> Option<String>,
    ) -> Vec<Diagnostic> {
        self.settle(total);
        let with_rows = |found: Found| {
            // What is wrong in every row in the same words is not about rows.
            let is_about_rows = found.varies || found.of.is_some_and(|total| found.rows.len() < total);
            let first = found.rows.first().filter(|_| is_about_rows).and_then(|&row| describe(row));
            let Some(first) = first else { return found.diagnostic };
            let more = match found.rows.len() - 1 {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            found.diagnostic.note(format!("in {first}{more}"))
        };
        self.found.into_iter().map(with_rows).collect()
    }
}

impl Found {
    fn add(&mut self, row: Option<usize>) {
        let Some(row) = row else { return };
        if let Err(at) = self.rows.binary_search(&row) {
            self.rows.insert(at, row);
        }
    }
}

/// Whether both break one rule in one place. Without a code it cannot be told.
fn is_same_mistake(a: &Diagnostic, b: &Diagnostic) -> bool {
    let place = |diagnostic: &Diagnostic| diagnostic.primary.as_ref().map(|label| label.span.clone());
    let same_place = |a: &Span, b: &Span| a.range == b.range && a.source.path == b.source.path;
    a.code.is_some()
        && a.code == b.code
        && a.severity == b.severity
        && match (place(a), place(b)) {
            (Some(a), Some(b)) => same_place(&a, &b),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;
    use crate::rules;

    fn at(message: &str, start: usize) -> Diagnostic {
        let source = Source::new("m.toml", "0123456789");
        Diagnostic::error(message).code(rules::NO_VALUE).at(Span::new(&source, start..start + 1), "")
    }

    fn told(messages: Messages, total: usize) -> Vec<(String, Vec<String>)> {
        let describe = |row: usize| Some(format!("variant {row}"));
        let all = messages.finish(total, &describe);
        all.into_iter().map(|diagnostic| (diagnostic.message, diagnostic.notes)).collect()
    }

    #[test]
    fn one_mistake_in_other_words_is_told_once() {
        let mut messages = Messages::default();
        for row in 0..3 {
            messages.add(at(&format!("BLOCK is {row}"), 4), Some(row));
        }
        assert_eq!(
            told(messages, 3),
            [("BLOCK is 0".to_owned(), vec!["in variant 0 and 2 more".to_owned()])]
        );
    }

    #[test]
    fn two_mistakes_of_one_row_in_one_place_stay_two() {
        let mut messages = Messages::default();
        for row in 0..2 {
            messages.add(at(&format!("first {row}"), 4), Some(row));
            messages.add(at(&format!("second {row}"), 4), Some(row));
        }
        let told: Vec<String> = told(messages, 2).into_iter().map(|(message, _)| message).collect();
        assert_eq!(told, ["first 0", "second 0"]);
    }

    #[test]
    fn what_every_row_says_alike_names_none() {
        let mut messages = Messages::default();
        for row in 0..2 {
            messages.add(at("wrong", 4), Some(row));
        }
        messages.add(at("elsewhere", 5), Some(1));
        messages.add(at("of no row", 6), None);
        assert_eq!(
            told(messages, 2),
            [
                ("wrong".to_owned(), vec![]),
                ("elsewhere".to_owned(), vec!["in variant 1".to_owned()]),
                ("of no row".to_owned(), vec![]),
            ]
        );
    }

    /// Guards are looked at in rows that they then leave out.
    #[test]
    fn rows_are_counted_by_who_looked_at_them() {
        let mut messages = Messages::default();
        messages.add(at("guard", 4), Some(0));
        messages.add(at("guard", 4), Some(2));
        for row in 0..3 {
            messages.add(at("guards", 5), Some(row));
        }
        messages.settle(3);
        for row in 0..2 {
            messages.add(at("launch", 6), Some(row));
        }
        assert_eq!(
            told(messages, 2),
            [
                ("guard".to_owned(), vec!["in variant 0 and 1 more".to_owned()]),
                ("guards".to_owned(), vec![]),
                ("launch".to_owned(), vec![]),
            ]
        );
    }

    #[test]
    fn without_a_code_only_equal_messages_are_one() {
        let mut messages = Messages::default();
        for row in 0..2 {
            messages.add(Diagnostic { code: None, ..at(&format!("{row}"), 4) }, Some(row));
        }
        assert_eq!(told(messages, 2).len(), 2);
    }
}
