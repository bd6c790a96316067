//! What a person who made a mistake is told: place, cause, what was found, what was expected, how to mend it.
//!
//! Owns the value types and how they are rendered: [`render`] for people, [`to_json_lines`] for editors and CI. Never
//! decides what is an error, and never prints: texts are values.

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

/// A text that diagnostics can point into.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it came from, as the user named it.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
    lines: Lines,
}

impl Source {
    /// A source from its parts.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { path: path.into(), text: text.into(), lines: Lines::default() })
    }

    /// The position of a byte. A byte beyond the end is the end; one inside a character is that character.
    #[must_use]
    pub fn line_column(&self, byte: usize) -> LineColumn {
        self.lines.line_column(&self.text, byte)
    }
}

/// A place in a source: a range of bytes. A range that does not fit the text is clamped to it when shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub source: Arc<Source>,
    /// Bytes of it.
    pub range: Range<usize>,
}

impl Span {
    /// A span from its parts.
    #[must_use]
    pub fn new(source: &Arc<Source>, range: Range<usize>) -> Span {
        Span { source: Arc::clone(source), range }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The work cannot be finished.
    Error,
    /// The work goes on; the user should look.
    Warning,
}

/// The name of a rule: `C0101`. The rules are [`crate::rules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// A place with a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there, lower case, no full stop.
    pub text: String,
}

/// One message to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The rule that was broken, where it is one of the catalogue's ([`crate::rules`]).
    pub code: Option<Code>,
    /// What is wrong, lower case, no full stop.
    pub message: String,
    /// The place, where there is one.
    pub primary: Option<Label>,
    /// Other places that explain it.
    pub related: Vec<Label>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// How to mend it.
    pub help: Option<String>,
    /// The declaration that it judges, if a check that knows more judges that again ([`Sink::supersede`]). It is not shown.
    pub subject: Option<Span>,
}

impl Diagnostic {
    /// An error without a place.
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

    /// A warning without a place.
    #[must_use]
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// Says which rule was broken.
    #[must_use]
    pub fn code(mut self, code: Code) -> Diagnostic {
        self.code = Some(code);
        self
    }

    /// Adds the place it is about.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Names the declaration that it judges.
    #[must_use]
    pub fn subject(mut self, subject: Span) -> Diagnostic {
        self.subject = Some(subject);
        self
    }

    /// Adds another place.
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

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// Orders messages by place: sources in the order in which they first appear, then by position; what has no place comes
/// last. Messages about one place keep their order.
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

/// `?` returns a single error where several are expected.
impl From<Diagnostic> for Vec<Diagnostic> {
    fn from(diagnostic: Diagnostic) -> Vec<Diagnostic> {
        vec![diagnostic]
    }
}

/// Keeps each message once, where it came first: plugins share files, and so their mistakes.
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

/// Removes the diagnostics whose subject is that of one of `found`, which comes from a check that knows more.
pub fn supersede(diagnostics: &mut Vec<Diagnostic>, found: &[Diagnostic]) {
    let is_judged_again = |earlier: &Diagnostic| {
        earlier.subject.is_some() && found.iter().any(|it| it.subject == earlier.subject)
    };
    diagnostics.retain(|earlier| !is_judged_again(earlier));
}

/// Whether any of them is an error.
#[must_use]
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Whether two sources are one text: the same object, or the same path and text.
fn same_source(a: &Arc<Source>, b: &Arc<Source>) -> bool {
    Arc::ptr_eq(a, b) || (a.path == b.path && a.text == b.text)
}

#[cfg(test)]
mod tests;
