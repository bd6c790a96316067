//! This crate's error. Never formats on success.

use std::borrow::Cow;
use std::fmt;

/// The result of a call from TensorRT.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a plugin or creator failed: TensorRT's code and a log message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: i32,
    text: Cow<'static, str>,
}

impl Error {
    /// `ErrorCode::kINTERNAL_ERROR` (`NvInferRuntimeBase.h`).
    pub const INTERNAL: i32 = 2;
    /// `ErrorCode::kINVALID_ARGUMENT`.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// `ErrorCode::kFAILED_INITIALIZATION`: unusable driver or code.
    pub const FAILED_INITIALIZATION: i32 = 6;
    /// `ErrorCode::kFAILED_EXECUTION`: a launch failed.
    pub const FAILED_EXECUTION: i32 = 7;
    /// `ErrorCode::kINVALID_STATE`: called out of order.
    pub const INVALID_STATE: i32 = 9;

    /// Creates an error. Code 0 becomes [`Error::INTERNAL`].
    pub fn new(code: i32, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code: if code == 0 { Self::INTERNAL } else { code }, text: text.into() }
    }

    /// Creates an [`Error::INVALID_ARGUMENT`].
    pub fn invalid(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_ARGUMENT, text)
    }

    /// Creates an [`Error::INTERNAL`].
    pub fn internal(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INTERNAL, text)
    }

    /// Returns TensorRT's code, never 0.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// Returns the message: lower case, no full stop.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_not_an_error_code() {
        assert_eq!(Error::new(0, "x").code(), Error::INTERNAL);
        assert_eq!(Error::new(-4, "x").code(), -4);
    }
}
