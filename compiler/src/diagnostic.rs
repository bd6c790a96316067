//! What a person who made a mistake is told: place, cause, what was found, what was expected, how to mend it.
//!
//! Owns the value types and how they are rendered. Never decides what is an error.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A text that diagnostics can point into.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it came from, as the user named it.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
}

/// A place in a source: a range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub source: Arc<Source>,
    /// Bytes of it.
    pub range: Range<usize>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The work cannot be finished.
    Error,
    /// The work goes on; the user should look.
    Warning,
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
}

impl Diagnostic {
    /// An error without a place.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            primary: None,
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning without a place.
    #[must_use]
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// Adds the place it is about.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.primary = Some(Label { span, text: text.into() });
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
