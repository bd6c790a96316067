use std::cell::RefCell;

use super::{Diagnostic, dedup};

/// The warnings of a run, which phases report beside their results.
///
/// It is not `Sync`: code that runs in parallel returns its warnings, so that their order does not depend on threads.
#[derive(Debug, Default)]
pub struct Sink(RefCell<Vec<Diagnostic>>);

impl Sink {
    /// Appends diagnostics.
    pub fn report(&self, found: impl IntoIterator<Item = Diagnostic>) {
        // The iterator may report, too.
        let found: Vec<Diagnostic> = found.into_iter().collect();
        self.0.borrow_mut().extend(found);
    }

    /// Changes what was reported.
    pub fn revise(&self, change: impl FnOnce(&mut Vec<Diagnostic>)) {
        let mut all = self.0.take();
        change(&mut all);
        self.0.replace(all);
    }

    /// All of them, each once.
    #[must_use]
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut all = self.0.into_inner();
        dedup(&mut all);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_kept_once_in_order_and_can_be_revised() {
        let sink = Sink::default();
        let warning = Diagnostic::warning;
        sink.report([warning("one"), warning("two"), warning("one")]);
        // An iterator that reports, too.
        sink.report((0..1).map(|_| {
            sink.report([warning("inner")]);
            warning("outer")
        }));
        sink.revise(|all| all.retain(|found| found.message != "two"));
        let messages: Vec<String> = sink.into_diagnostics().into_iter().map(|found| found.message).collect();
        assert_eq!(messages, ["one", "inner", "outer"]);
    }
}
