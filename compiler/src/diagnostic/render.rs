//! Messages as a terminal shows them, in the manner of rustc.
//!
//! A label that spans several lines is shown on its first: what matters is where it begins, and a table of a manifest
//! may be long. Control characters of the text never reach the terminal.

use std::borrow::Cow;
use std::sync::Arc;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::place::on_one_line;
use super::{Diagnostic, Label, Severity, Source, same_source};

/// Whether escape sequences colour the text. The words are the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Bare text.
    Plain,
    /// ANSI escape sequences.
    Ansi,
}

/// All messages, each followed by an empty line.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], colour: Colour) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&render_one(diagnostic, colour));
        text.push_str("\n\n");
    }
    text
}

/// One message, without a line end behind it.
#[must_use]
pub fn render_one(diagnostic: &Diagnostic, colour: Colour) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(harmless(&diagnostic.message, false));
    let mut group = Group::with_title(match diagnostic.code {
        Some(code) => title.id(code.0),
        None => title,
    });
    for (source, labels) in by_source(diagnostic) {
        let snippet = Snippet::source(harmless_source(&source.text))
            .path(harmless(&source.path.to_string_lossy(), true))
            .annotations(labels.into_iter().map(|(kind, label)| annotation(kind, label)));
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(harmless(note, false)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(harmless(help, false)));
    }
    let renderer = match colour {
        Colour::Plain => Renderer::plain(),
        // Links around file names would make the text depend on the terminal.
        Colour::Ansi => Renderer::styled().hyperlink(false),
    };
    renderer.render(&[group])
}

fn annotation(kind: AnnotationKind, label: &Label) -> Annotation<'_> {
    let span = on_one_line(&label.span.source.text, &label.span.range);
    let text = (!label.text.is_empty()).then(|| harmless(&label.text, true));
    kind.span(span).label(text)
}

type Labels<'a> = Vec<(AnnotationKind, &'a Label)>;

/// The labels of each text, the primary one's first.
fn by_source(diagnostic: &Diagnostic) -> Vec<(&Arc<Source>, Labels<'_>)> {
    let primary = diagnostic.primary.iter().map(|label| (AnnotationKind::Primary, label));
    let related = diagnostic.related.iter().map(|label| (AnnotationKind::Context, label));
    let mut groups: Vec<(&Arc<Source>, Labels<'_>)> = Vec::new();
    for (kind, label) in primary.chain(related) {
        let source = &label.span.source;
        match groups.iter_mut().find(|(known, _)| same_source(known, source)) {
            Some((_, labels)) => labels.push((kind, label)),
            None => groups.push((source, vec![(kind, label)])),
        }
    }
    groups
}

/// Words that may quote the user's text: control characters become visible, in one-line texts line ends too.
pub(crate) fn harmless(text: &str, one_line: bool) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' if !one_line => result.push(c),
            c if c.is_control() => result.extend(c.escape_default()),
            c => result.push(c),
        }
    }
    result
}

/// An excerpt's text. The renderer replaces the ASCII control characters; the others (`U+0080` to `U+009F`, of which
/// one begins escape sequences) become dots of the same length, so that no byte moves.
fn harmless_source(text: &str) -> Cow<'_, str> {
    let is_c1 = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(is_c1) { Cow::Owned(text.replace(is_c1, "\u{b7}")) } else { Cow::Borrowed(text) }
}
