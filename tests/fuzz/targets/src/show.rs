//! Diagnostics, shown in every way there is.

use cubinder_source::diagnostic::{Colour, Diagnostic, render, sort, to_json_lines};

/// Claims that messages can be shown: no control characters of the input reach a terminal, JSON has a line for each, and every
/// place lies in its text.
pub(crate) fn show(diagnostics: &[Diagnostic]) {
    let mut sorted = diagnostics.to_vec();
    sort(&mut sorted);
    let plain = render(&sorted, Colour::Plain);
    assert!(render(&sorted, Colour::Ansi).len() >= plain.len());
    let json = to_json_lines(&sorted).expect("every message can be written as JSON");
    assert_eq!(json.lines().count(), sorted.len());
    show_table(&plain);
    for diagnostic in &sorted {
        for label in diagnostic.primary.iter().chain(&diagnostic.related) {
            let span = &label.span;
            assert!(span.source.text.get(span.range.clone()).is_some(), "a place outside: {diagnostic:?}");
        }
    }
}

/// As [`show`], for what was refused: that needs a reason.
pub(crate) fn show_refusal(diagnostics: &[Diagnostic]) {
    assert!(!diagnostics.is_empty(), "refused without a word");
    show(diagnostics);
}

/// Claims that a text for people has no control characters, which are commands to a terminal.
pub(crate) fn show_table(text: &str) {
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "a control character: {text:?}");
}
