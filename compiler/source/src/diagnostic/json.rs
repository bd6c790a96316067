//! Diagnostics as JSON, one object per line.

use serde::Serialize;

use super::line_column::clamp;
use super::{Colour, Diagnostic, Label, Severity, render_one};
use crate::reported_path::ReportedPath;

/// Fields are only ever added.
#[derive(Serialize)]
struct Message<'a> {
    severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary: Option<Location<'a>>,
    related: Vec<Location<'a>>,
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    rendered: String,
}

/// Lines and columns (characters) count from 1, bytes of the range from 0.
#[derive(Serialize)]
struct Location<'a> {
    path: ReportedPath,
    byte_start: usize,
    byte_end: usize,
    line_start: usize,
    column_start: usize,
    line_end: usize,
    column_end: usize,
    label: &'a str,
}

/// Returns all diagnostics as lines.
pub fn to_json_lines(diagnostics: &[Diagnostic]) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&serde_json::to_string(&message(diagnostic))?);
        text.push('\n');
    }
    Ok(text)
}

fn message(diagnostic: &Diagnostic) -> Message<'_> {
    Message {
        severity: match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        code: diagnostic.code.map(|code| code.0),
        message: &diagnostic.message,
        primary: diagnostic.primary.as_ref().map(location),
        related: diagnostic.related.iter().map(location).collect(),
        notes: &diagnostic.notes,
        help: diagnostic.help.as_deref(),
        rendered: render_one(diagnostic, Colour::Plain),
    }
}

fn location(label: &Label) -> Location<'_> {
    let source = &label.span.source;
    let range = clamp(&source.text, &label.span.range);
    let (start, end) = (source.line_column(range.start), source.line_column(range.end));
    Location {
        path: ReportedPath::from(&source.path),
        byte_start: range.start,
        byte_end: range.end,
        line_start: start.line,
        column_start: start.column,
        line_end: end.line,
        column_end: end.column,
        label: &label.text,
    }
}
