use std::cell::RefCell;

use super::{Diagnostic, dedup, has_errors};

/// The diagnostics of a run, which phases report beside their results.
///
/// It is not `Sync`: each parallel task has its own, so that the order does not depend on threads.
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

    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// All of them if one is an error.
    ///
    /// # Errors
    /// The diagnostics.
    pub fn into_result(self) -> Result<(), Vec<Diagnostic>> {
        let all = self.into_diagnostics();
        if has_errors(&all) { Err(all) } else { Ok(()) }
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
