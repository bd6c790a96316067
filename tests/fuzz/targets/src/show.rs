use cubinder_source::diagnostic::{Colour, Diagnostic, render, sort, to_json_lines};

/// Messages lack control characters, JSON has one line each, spans are in their text.
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

pub(crate) fn show_refusal(diagnostics: &[Diagnostic]) {
    assert!(!diagnostics.is_empty(), "rejected without a message");
    show(diagnostics);
}

pub(crate) fn show_table(text: &str) {
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "a control character: {text:?}");
}
