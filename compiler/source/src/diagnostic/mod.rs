//! Diagnostics and their rendering: [`render`] for terminals, [`to_json_lines`] for editors and CI. Must not decide
//! which are errors, or print.

mod declare;
mod fold;
mod hint;
mod json;
mod line_column;
mod render;
mod sink;
mod suggest;

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use line_column::Lines;

pub use fold::fold;
pub use hint::explain_hint;
pub use json::to_json_lines;
pub use line_column::LineColumn;
pub use render::harmless;
pub use render::{Colour, render, render_one};
pub use sink::Sink;
pub use suggest::{lacking_type, suggest, suggest_type};

/// Text with its path.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Path as the user wrote it.
    pub path: PathBuf,
    /// Whole text.
    pub text: String,
    lines: Lines,
}

impl Source {
    /// Creates a source.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { path: path.into(), text: text.into(), lines: Lines::default() })
    }

    /// Returns a byte's position, clamped to the text and characters.
    #[must_use]
    pub fn line_column(&self, byte: usize) -> LineColumn {
        self.lines.line_column(&self.text, byte)
    }
}

/// Byte range of a source, clamped when shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Source.
    pub source: Arc<Source>,
    /// Byte range.
    pub range: Range<usize>,
}

impl Span {
    /// Creates a span.
    #[must_use]
    pub fn new(source: &Arc<Source>, range: Range<usize>) -> Span {
        Span { source: Arc::clone(source), range }
    }
}

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The command fails.
    Error,
    /// The command continues.
    Warning,
}

/// Rule code, `C0101`, of [`crate::rules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Labelled span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Span.
    pub span: Span,
    /// Text: lower case, no full stop.
    pub text: String,
}

/// Message to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Violated rule of [`crate::rules`].
    pub code: Option<Code>,
    /// Problem: lower case, no full stop.
    pub message: String,
    /// Its location.
    pub primary: Option<Label>,
    /// Other relevant locations.
    pub related: Vec<Label>,
    /// Explanatory facts.
    pub notes: Vec<String>,
    /// Fix.
    pub help: Option<String>,
    /// Declaration, if a later check may replace it ([`Sink::supersede`]). Not shown.
    pub subject: Option<Span>,
}

impl Diagnostic {
    /// Creates an error without location.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: None,
            message: message.into(),
            primary: None,
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
            subject: None,
        }
    }

    /// Creates a warning without location.
    #[must_use]
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// Sets the violated rule.
    #[must_use]
    pub fn code(mut self, code: Code) -> Diagnostic {
        self.code = Some(code);
        self
    }

    /// Sets the location.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Sets the declaration.
    #[must_use]
    pub fn subject(mut self, subject: Span) -> Diagnostic {
        self.subject = Some(subject);
        self
    }

    /// Adds another location.
    #[must_use]
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.related.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Sets the fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// Sorts stably by source (first appearance) and position; diagnostics without location come last.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    let mut sources: Vec<Arc<Source>> = Vec::new();
    for label in diagnostics.iter().filter_map(|diagnostic| diagnostic.primary.as_ref()) {
        if !sources.iter().any(|source| same_source(source, &label.span.source)) {
            sources.push(Arc::clone(&label.span.source));
        }
    }
    diagnostics.sort_by_cached_key(|diagnostic| {
        let span = diagnostic.primary.as_ref().map(|label| &label.span);
        let index = |span: &Span| sources.iter().position(|source| same_source(source, &span.source));
        span.map_or((usize::MAX, 0), |span| (index(span).unwrap_or(usize::MAX), span.range.start))
    });
}

impl From<Diagnostic> for Vec<Diagnostic> {
    fn from(diagnostic: Diagnostic) -> Vec<Diagnostic> {
        vec![diagnostic]
    }
}

/// Removes later duplicates, because plugins share files.
pub fn dedup(diagnostics: &mut Vec<Diagnostic>) {
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
    let mut places: HashMap<(String, Option<usize>), Vec<usize>> = HashMap::new();
    for diagnostic in diagnostics.drain(..) {
        let start = diagnostic.primary.as_ref().map(|label| label.span.range.start);
        let alike = places.entry((diagnostic.message.clone(), start)).or_default();
        if !alike.iter().any(|place| kept.get(*place) == Some(&diagnostic)) {
            alike.push(kept.len());
            kept.push(diagnostic);
        }
    }
    *diagnostics = kept;
}

/// Removes diagnostics with a subject of `found`.
pub fn supersede(diagnostics: &mut Vec<Diagnostic>, found: &[Diagnostic]) {
    let is_judged_again = |earlier: &Diagnostic| {
        earlier.subject.is_some() && found.iter().any(|it| it.subject == earlier.subject)
    };
    diagnostics.retain(|earlier| !is_judged_again(earlier));
}

/// Returns whether one is an error.
#[must_use]
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

fn same_source(a: &Arc<Source>, b: &Arc<Source>) -> bool {
    Arc::ptr_eq(a, b) || (a.path == b.path && a.text == b.text)
}

#[cfg(test)]
mod tests;
