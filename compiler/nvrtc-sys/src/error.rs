//! What can go wrong, as values.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The oldest release that has every function: `nvrtcGetSupportedArchs` came with 11.2 (its release notes).
pub const OLDEST: (i32, i32) = (11, 2);

/// Why a file cannot serve as NVRTC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A library is never searched for by name.
    #[error("`{}` is not an absolute path", .0.display())]
    NotAbsolute(PathBuf),
    /// The loader refused the file, for this reason.
    #[error("cannot load `{path}`: {1}", path = .0.display())]
    Open(PathBuf, String),
    /// It is a library, but not NVRTC.
    #[error("`{}` is no NVRTC: it has no function `nvrtcVersion`", .0.display())]
    NotNvrtc(PathBuf),
    /// A release that lacks a function.
    #[error(
        "`{}` is NVRTC {}.{}, which has no function `{function}`; {}.{} or a later one is needed",
        path.display(), found.0, found.1, OLDEST.0, OLDEST.1
    )]
    TooOld {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        found: (i32, i32),
        /// The function.
        function: &'static str,
    },
    /// NVRTC cannot compile without its built-in headers: the library, and the file that is missing.
    #[error("`{}` needs `{}` beside it, which is not there", .0.display(), .1.display())]
    MissingBuiltins(PathBuf, PathBuf),
    /// A question about the library itself failed.
    #[error("`{call}` failed: {reason} ({code})")]
    Call {
        /// The function.
        call: &'static str,
        /// NVRTC's result code.
        code: i32,
        /// NVRTC's words for it.
        reason: String,
    },
}

/// Why a compile gave no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum CompileError {
    /// The program has errors, which this log says. NVRTC's code 6, `NVRTC_ERROR_COMPILATION`.
    #[error("the program does not compile")]
    Rejected(String),
    /// NVRTC does not take one of the options, which this log says. Its code 5, `NVRTC_ERROR_INVALID_OPTION`.
    #[error("an option is not accepted: {}", .0.trim())]
    Option(String),
    /// A text that NVRTC takes as a C string holds a NUL byte.
    #[error("the {0} holds a NUL byte")]
    Nul(Cow<'static, str>),
    /// Anything else.
    #[error("`{call}` failed: {reason} ({code})")]
    Failed {
        /// The function.
        call: Cow<'static, str>,
        /// NVRTC's result code.
        code: i32,
        /// NVRTC's words for it.
        reason: String,
        /// NVRTC's messages, if there are any.
        log: String,
    },
}
