//! Renders diagnostics like rustc, without control characters. Labels appear on their first line: tables can be long.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::line_column::on_one_line;
use super::{Diagnostic, Label, Severity, Source, same_source};

/// Whether to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// No escape sequences.
    Plain,
    /// ANSI escape sequences.
    Ansi,
}

const MOST: usize = 100;

/// Renders diagnostics up to a maximum, separated by empty lines, and counts the others.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], colour: Colour) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(MOST) {
        text.push_str(&render_one(diagnostic, colour));
        text.push_str("\n\n");
    }
    let others = diagnostics.iter().skip(MOST);
    let errors = others.clone().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let (severity, more) =
        if errors > 0 { (Severity::Error, errors) } else { (Severity::Warning, others.count()) };
    if more > 0 {
        let words = if severity == Severity::Error { "error" } else { "warning" };
        let plural = if more == 1 { "" } else { "s" };
        let rest = Diagnostic { severity, ..Diagnostic::error(format!("{more} more {words}{plural}")) };
        text.push_str(&render_one(&rest, colour));
        text.push_str("\n\n");
    }
    text
}

/// Renders one diagnostic without a final line end.
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
        let window = window(&source.text, &labels);
        let text = source.text.get(window.clone()).unwrap_or_default();
        let snippet = Snippet::source(harmless_source(text))
            .path(harmless(&source.path.to_string_lossy(), true))
            .line_start(source.line_column(window.start).line)
            .annotations(labels.into_iter().map(|(kind, label)| annotation(kind, label, window.start)));
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
        // Links depend on the terminal.
        Colour::Ansi => Renderer::styled().hyperlink(false),
    };
    renderer.render(&[group])
}

/// Only labelled lines and neighbours, to bound the time.
fn window(text: &str, labels: &Labels<'_>) -> Range<usize> {
    let spans = labels.iter().map(|(_, label)| on_one_line(text, &label.span.range));
    let all = spans.reduce(|all, span| all.start.min(span.start)..all.end.max(span.end));
    let Some(all) = all else { return 0..text.len() };
    let begin =
        |at: usize| text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let end = |at: usize| {
        text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| at + newline + 1)
    };
    begin(begin(all.start).saturating_sub(1))..end(end(all.end))
}

fn annotation(kind: AnnotationKind, label: &Label, offset: usize) -> Annotation<'_> {
    let span = on_one_line(&label.span.source.text, &label.span.range);
    let span = span.start.saturating_sub(offset)..span.end.saturating_sub(offset);
    let text = (!label.text.is_empty()).then(|| harmless(&label.text, true));
    kind.span(span).label(text)
}

type Labels<'a> = Vec<(AnnotationKind, &'a Label)>;

/// The primary label's source comes first.
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

/// Makes control characters visible; with `one_line` also line ends.
pub fn harmless(text: &str, one_line: bool) -> String {
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

/// Replaces `U+0080` to `U+009F`, which can start escape sequences, by equally long dots. The renderer replaces ASCII controls.
fn harmless_source(text: &str) -> Cow<'_, str> {
    let is_c1 = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(is_c1) { Cow::Owned(text.replace(is_c1, "\u{b7}")) } else { Cow::Borrowed(text) }
}
