//! Errors of the client. Never contain headers, tokens or keys.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

/// Why a server cannot be used, or a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file of the settings is unreadable or invalid.
    #[error("cannot use `{}` as {role}: {reason}", path.display())]
    File {
        /// The file's role: `the CA certificate`.
        role: &'static str,
        /// File.
        path: PathBuf,
        /// Reason, without the file's content.
        reason: String,
    },
    /// The credential helper failed, or printed an invalid answer.
    #[error("the credential helper `{}` {reason}", program.display())]
    Helper {
        /// Program.
        program: PathBuf,
        /// Reason, without the helper's output.
        reason: String,
    },
    /// The connection cannot be prepared.
    #[error("cannot prepare the connection: {0}")]
    Connection(String),
    /// The server lacks a required feature.
    #[error("the server does not support {0}")]
    Unsupported(Cow<'static, str>),
    /// The server does not let this client store results.
    #[error("the server does not accept results from this client")]
    ReadOnly,
    /// A call failed.
    #[error("{call} failed: {message} ({code:?})")]
    Call {
        /// The call's name in the protocol.
        call: &'static str,
        /// The status code.
        code: Code,
        /// The server's message, shortened.
        message: String,
    },
    /// A call did not finish in time.
    #[error("{call} did not finish in {:.1} s", limit.as_secs_f64())]
    Timeout {
        /// The call's name in the protocol.
        call: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// No worker took the action in time.
    #[error("no worker took the action in {:.1} s", limit.as_secs_f64())]
    NoWorker {
        /// The time limit.
        limit: Duration,
    },
    /// A worker could not run the command, or the command failed for a reason of the worker.
    #[error("a worker's command failed: {stderr} (exit code {exit_code})")]
    Command {
        /// The exit code.
        exit_code: i32,
        /// The command's messages, shortened.
        stderr: String,
    },
    /// An input of an action is unreadable or has changed.
    #[error("cannot send an input: {0}")]
    Input(String),
    /// The server sent data that contradicts the protocol or its digest.
    #[error("the server sent invalid data: {0}")]
    Invalid(String),
}

/// Maximum characters of a server's message.
const MAX_MESSAGE: usize = 500;

impl Error {
    pub(crate) fn of_call(call: &'static str, status: &Status) -> Error {
        let message = match std::error::Error::source(status) {
            Some(cause) => describe(cause),
            None => status.message().to_owned(),
        };
        let message = shorten(&message);
        Error::Call { call, code: status.code(), message }
    }

    pub(crate) fn code(&self) -> Option<Code> {
        if let Error::Call { code, .. } = self { Some(*code) } else { None }
    }

    /// Returns whether an action ran too long.
    #[must_use]
    pub fn is_late(&self) -> bool {
        match self {
            Error::Timeout { call, .. } => *call == "Execute",
            error => error.code() == Some(Code::DeadlineExceeded),
        }
    }

    /// Returns whether the server rejects stores of this client, but may allow reads.
    pub(crate) fn is_of_uploads(&self) -> bool {
        match self {
            Error::ReadOnly => true,
            Error::Call { call, .. } => *call != "GetCapabilities" && self.is_permanent(),
            _ => false,
        }
    }

    /// Returns whether the same error must be expected of every later call.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Error::File { .. } | Error::Helper { .. } | Error::Connection(_) => true,
            Error::Unsupported(_) | Error::ReadOnly => true,
            Error::Call { code, .. } => {
                matches!(code, Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented)
            }
            Error::Timeout { .. }
            | Error::NoWorker { .. }
            | Error::Command { .. }
            | Error::Input(_)
            | Error::Invalid(_) => false,
        }
    }
}

pub(crate) fn shorten(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(MAX_MESSAGE).collect()
}

/// Joins an error with its causes, which `tonic` does not print.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}
