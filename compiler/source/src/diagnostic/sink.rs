use std::cell::RefCell;

use super::{Diagnostic, dedup, has_errors, supersede};

/// Collects diagnostics. Not `Sync`: one per parallel task makes the order deterministic.
#[derive(Debug, Default)]
pub struct Sink(RefCell<Vec<Diagnostic>>);

impl Sink {
    /// Appends diagnostics.
    pub fn report(&self, found: impl IntoIterator<Item = Diagnostic>) {
        // The iterator may report too.
        let found: Vec<Diagnostic> = found.into_iter().collect();
        self.0.borrow_mut().extend(found);
    }

    /// Removes diagnostics with a subject of `found`.
    pub fn supersede(&self, found: &[Diagnostic]) {
        supersede(&mut self.0.borrow_mut(), found);
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Returns all diagnostics if one is an error.
    pub fn into_result(self) -> Result<(), Vec<Diagnostic>> {
        let all = self.into_diagnostics();
        if has_errors(&all) { Err(all) } else { Ok(()) }
    }

    /// Returns all diagnostics without duplicates.
    #[must_use]
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut all = self.0.into_inner();
        dedup(&mut all);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Source, Span};
    use super::*;

    #[test]
    fn warnings_are_kept_once_in_order_and_can_be_superseded() {
        let sink = Sink::default();
        let warning = Diagnostic::warning;
        let source = Source::new("m.toml", "x y");
        let about = |range| Span::new(&source, range);
        sink.report([warning("one"), warning("two").subject(about(0..1)), warning("one")]);
        sink.report([warning("three").subject(about(2..3))]);
        sink.report((0..1).map(|_| {
            sink.report([warning("inner")]);
            warning("outer")
        }));
        sink.supersede(&[warning("otherwise").subject(about(0..1)), warning("one")]);
        let messages: Vec<String> = sink.into_diagnostics().into_iter().map(|found| found.message).collect();
        assert_eq!(messages, ["one", "three", "inner", "outer"]);
    }
}
