//! Owns the equality of errors: reports each once with its rows, which may word it differently.

use std::collections::HashMap;
use std::ops::Range;

use crate::diagnostic::Diagnostic;

#[derive(Debug, Default)]
pub(super) struct Messages {
    all: Vec<RowMessage>,
    /// Indices by position.
    places: HashMap<Option<Range<usize>>, Vec<usize>>,
}

#[derive(Debug)]
struct RowMessage {
    diagnostic: Diagnostic,
    /// Ascending; empty without a row.
    rows: Vec<usize>,
    varies: bool,
    checked: Option<usize>,
}

impl Messages {
    /// Equal diagnostics keep the first row's words.
    pub(super) fn add(&mut self, diagnostic: Diagnostic, row: Option<usize>) {
        let range = diagnostic.primary.as_ref().map(|label| label.span.range.clone());
        let here = self.places.entry(range).or_default();
        let find = |is_it: &dyn Fn(&RowMessage) -> bool| {
            here.iter().copied().find(|&index| self.all.get(index).is_some_and(is_it))
        };
        let same = find(&|message| message.diagnostic == diagnostic);
        let is_alike = |message: &RowMessage| {
            row.is_some_and(|row| !message.rows.is_empty() && message.rows.binary_search(&row).is_err())
                && is_same_error(&message.diagnostic, &diagnostic)
        };
        match same.or_else(|| find(&is_alike)).and_then(|index| self.all.get_mut(index)) {
            Some(message) => {
                if let Some(row) = row
                    && let Err(position) = message.rows.binary_search(&row)
                {
                    message.rows.insert(position, row);
                }
                message.varies |= same.is_none();
            }
            None => {
                here.push(self.all.len());
                let rows = row.into_iter().collect();
                self.all.push(RowMessage { diagnostic, rows, varies: false, checked: None });
            }
        }
    }

    pub(super) fn settle(&mut self, total: usize) {
        for message in &mut self.all {
            message.checked.get_or_insert(total);
        }
    }

    /// Returns all diagnostics. Those of some checked rows (`total`, unless settled) name the first: `variant 1 (T=f16)`.
    pub(super) fn finish(
        mut self,
        total: usize,
        describe: &dyn Fn(usize) -> Option<String>,
    ) -> Vec<Diagnostic> {
        self.settle(total);
        let with_rows = |message: RowMessage| {
            // Equal words in all rows are not about rows.
            let is_about_rows = message.varies || message.checked.is_some_and(|it| message.rows.len() < it);
            let first = message.rows.first().filter(|_| is_about_rows).and_then(|&row| describe(row));
            let Some(first) = first else { return message.diagnostic };
            let more = match message.rows.len() - 1 {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            message.diagnostic.note(format!("in {first}{more}"))
        };
        self.all.into_iter().map(with_rows).collect()
    }
}

fn is_same_error(a: &Diagnostic, b: &Diagnostic) -> bool {
    let place = |diagnostic: &Diagnostic| {
        let span = &diagnostic.primary.as_ref()?.span;
        Some((span.range.clone(), span.source.path.clone()))
    };
    a.code.is_some()
        && a.code == b.code
        && a.severity == b.severity
        && place(a).is_some_and(|a| Some(a) == place(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Source, Span};
    use crate::rules;

    fn at(message: &str, start: usize) -> Diagnostic {
        let source = Source::new("m.toml", "0123456789");
        Diagnostic::error(message).code(rules::NO_VALUE).at(Span::new(&source, start..start + 1), "")
    }

    fn finished(messages: Messages, total: usize) -> Vec<(String, Vec<String>)> {
        let describe = |row: usize| Some(format!("variant {row}"));
        let all = messages.finish(total, &describe);
        all.into_iter().map(|diagnostic| (diagnostic.message, diagnostic.notes)).collect()
    }

    #[test]
    fn one_error_in_other_words_is_reported_once() {
        let mut messages = Messages::default();
        for row in 0..3 {
            messages.add(at(&format!("BLOCK is {row}"), 4), Some(row));
        }
        assert_eq!(
            finished(messages, 3),
            [("BLOCK is 0".to_owned(), vec!["in variant 0 and 2 more".to_owned()])]
        );
    }

    #[test]
    fn two_errors_of_one_row_in_one_place_stay_two() {
        let mut messages = Messages::default();
        for row in 0..2 {
            messages.add(at(&format!("first {row}"), 4), Some(row));
            messages.add(at(&format!("second {row}"), 4), Some(row));
        }
        let found: Vec<String> = finished(messages, 2).into_iter().map(|(message, _)| message).collect();
        assert_eq!(found, ["first 0", "second 0"]);
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
            finished(messages, 2),
            [
                ("wrong".to_owned(), vec![]),
                ("elsewhere".to_owned(), vec!["in variant 1".to_owned()]),
                ("of no row".to_owned(), vec![]),
            ]
        );
    }

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
            finished(messages, 2),
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
        assert_eq!(finished(messages, 2).len(), 2);
    }
}
