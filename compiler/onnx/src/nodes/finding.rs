//! What is wrong with a node, for people and for programs.

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity};

/// Something that is wrong with a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// Whether TensorRT would fail or give wrong results, or it is only odd.
    #[serde(serialize_with = "severity_text")]
    pub severity: Severity,
    /// What kind of thing is wrong, for programs: `attribute`.
    pub problem: &'static str,
    /// What is wrong, lower case, no full stop.
    pub message: String,
    /// Facts that explain it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde gives it so
fn severity_text<S: serde::Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    })
}

impl Finding {
    pub(super) fn new(problem: &'static str, diagnostic: Diagnostic) -> Finding {
        let Diagnostic { severity, message, notes, help, .. } = diagnostic;
        Finding { severity, problem, message, notes, help }
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Finding {
        self.notes.push(note.into());
        self
    }

    pub(super) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The finding as a message about a node.
    #[must_use]
    pub fn diagnostic(&self, node: &str) -> Diagnostic {
        let message = format!("{node}: {}", self.message);
        Diagnostic {
            severity: self.severity,
            notes: self.notes.clone(),
            help: self.help.clone(),
            ..Diagnostic::error(message)
        }
    }
}
