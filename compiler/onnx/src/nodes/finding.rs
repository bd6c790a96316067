use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity};

/// Problem of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// Error if TensorRT would fail or compute wrong results.
    #[serde(serialize_with = "severity_text")]
    pub severity: Severity,
    /// Code of the problem: `attribute`.
    pub problem: &'static str,
    /// Message, lower case, no full stop.
    pub message: String,
    /// Facts that explain it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
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

    /// Converts to a diagnostic about a node.
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
