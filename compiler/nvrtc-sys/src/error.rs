use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Oldest supported release: 11.2 added `nvrtcGetSupportedArchs` (its release notes).
pub const OLDEST: (i32, i32) = (11, 2);

/// Why a file cannot be used as NVRTC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The path is relative; libraries are not searched for by name.
    #[error("`{}` is not an absolute path", .0.display())]
    NotAbsolute(PathBuf),
    /// The loader failed for this reason.
    #[error("cannot load `{path}`: {1}", path = .0.display())]
    Open(PathBuf, String),
    /// Library other than NVRTC.
    #[error("`{}` is not NVRTC: it has no function `nvrtcVersion`", .0.display())]
    NotNvrtc(PathBuf),
    /// The release lacks a function.
    #[error(
        "`{}` is NVRTC {}.{}, which has no function `{function}`; {}.{} or later is required",
        path.display(), found.0, found.1, OLDEST.0, OLDEST.1
    )]
    TooOld {
        /// File.
        path: PathBuf,
        /// Release.
        found: (i32, i32),
        /// Function.
        function: &'static str,
    },
    /// Library, and its missing file of built-in headers.
    #[error("`{}` requires `{}`, which is missing", .0.display(), .1.display())]
    MissingBuiltins(PathBuf, PathBuf),
    /// A query failed.
    #[error("`{call}` failed: {reason} ({code})")]
    Call {
        /// Function.
        call: &'static str,
        /// NVRTC's result code.
        code: i32,
        /// NVRTC's description of the code.
        reason: String,
    },
}

/// Why a compile failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum CompileError {
    /// `NVRTC_ERROR_COMPILATION` (6) with the log.
    #[error("the program does not compile")]
    Rejected(String),
    /// `NVRTC_ERROR_INVALID_OPTION` (5) with the log.
    #[error("invalid option: {}", .0.trim())]
    Option(String),
    /// A C string for NVRTC contains a NUL byte.
    #[error("the {0} contains a NUL byte")]
    Nul(Cow<'static, str>),
    /// Another error.
    #[error("`{call}` failed: {reason} ({code})")]
    Failed {
        /// Function.
        call: Cow<'static, str>,
        /// NVRTC's result code.
        code: i32,
        /// NVRTC's description of the code.
        reason: String,
        /// NVRTC's messages, possibly empty.
        log: String,
    },
}
