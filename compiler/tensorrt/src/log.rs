//! TensorRT's log, from events of the scripts or output of `trtexec`.

use serde::Deserialize;

/// A line of TensorRT's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Whether it is an error.
    pub is_error: bool,
    /// Whether it is a warning.
    pub is_warning: bool,
    /// Text, possibly of several lines.
    pub text: String,
}

/// A step of a build phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Phase: `Optimizing graph`.
    pub name: String,
    /// Completed steps.
    pub step: u64,
    /// Steps of the phase; 0 if unknown.
    pub steps: u64,
}

impl LogLine {
    pub(crate) fn new(severity: &str, text: &str) -> LogLine {
        let is_error = matches!(severity, "ERROR" | "INTERNAL_ERROR" | "E" | "F");
        LogLine {
            is_error,
            is_warning: matches!(severity, "WARNING" | "W"),
            text: text.trim_end().to_owned(),
        }
    }

    /// Parses `[11/28/2026-05:29:53] [E] [TRT] text` of `trtexec`.
    pub(crate) fn of_program(line: &str) -> LogLine {
        let parts = line.split_once("] [").and_then(|(_, rest)| rest.split_once("] "));
        match parts.filter(|(severity, _)| severity.len() == 1 && line.starts_with('[')) {
            Some((severity, text)) => LogLine::new(severity, text.strip_prefix("[TRT] ").unwrap_or(text)),
            None => LogLine::new("", line),
        }
    }
}

/// An event of `builder.py` or `runner.py`.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    Found(Modules),
    Loaded,
    Log { severity: String, text: String },
    Step { name: String, step: u64, steps: u64 },
    Failed { stage: String, texts: Vec<String> },
    Built { outputs: Vec<(String, Vec<i64>)> },
    Tensors { tensors: Vec<Tensor> },
    Ran { shapes: Vec<Vec<i64>>, microseconds: Vec<f64> },
}

/// An engine's input or output, with data.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tensor {
    /// Name.
    pub name: String,
    /// Whether it is an input.
    pub is_input: bool,
    /// Whether it is in host memory: its values are shapes.
    pub is_host: bool,
    /// TensorRT's type name: `FLOAT`.
    #[serde(rename = "type")]
    pub ty: String,
    /// Shape (-1: dynamic, before the run).
    pub shape: Vec<i64>,
    /// TensorRT's format name: `LINEAR`.
    pub format: String,
    /// Minimum, optimum and maximum of an input's shape; empty if unknown.
    pub profile: Vec<Vec<i64>>,
    /// The same for the values of an input in host memory.
    pub values: Vec<Vec<i64>>,
    /// Data, in row-major order.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct Modules {
    pub(crate) python: String,
    pub(crate) modules: Vec<FoundModule>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct FoundModule {
    pub(crate) module: String,
    pub(crate) folder: std::path::PathBuf,
    pub(crate) version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_trtexec_have_a_severity() {
        let line = LogLine::of_program("[11/28/2026-05:29:53] [E] [TRT] ModelImporter.cpp:140: [x]");
        assert_eq!(line, LogLine::new("E", "ModelImporter.cpp:140: [x]"));
        assert!(line.is_error);
        assert!(LogLine::of_program("[11/28/2026-05:29:53] [W] option").is_warning);
        for text in ["&&&& FAILED TensorRT.trtexec", "", "] [", "[a] [b", "[1] [EE] x"] {
            assert_eq!(LogLine::of_program(text), LogLine::new("", text), "{text}");
        }
    }
}
