//! What the driver refuses, and what is wrong where there is none.

use std::fmt;

use super::sys::{
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
    CUresult,
};

/// A driver call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    /// The function: `cuLibraryLoadData`.
    pub call: &'static str,
    /// What it returned.
    pub code: CUresult,
    /// The driver's name for that: `CUDA_ERROR_NO_BINARY_FOR_GPU`; absent where the driver has none.
    pub name: Option<String>,
    /// The driver's own words; absent where it has none.
    pub text: Option<String>,
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("an error that the driver has no name for");
        write!(f, "`{}` returned {name} ({})", self.call, self.code)?;
        match &self.text {
            Some(text) => write!(f, ": {text}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DriverError {}

impl DriverError {
    /// Whether it may tell of a kernel that was launched before the call: CUDA reports such failures late.
    #[must_use]
    pub fn may_come_from_earlier_work(&self) -> bool {
        (CUDA_ERROR_ILLEGAL_ADDRESS..=CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE).contains(&self.code)
            && self.code != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    }
}

/// Why there is no driver to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverMissing {
    /// The loader does not find `libcuda.so.1`.
    NotFound {
        /// The loader's own words.
        text: String,
    },
    /// It is there and lacks functions.
    TooOld {
        /// The functions.
        missing: Vec<&'static str>,
    },
}

impl fmt::Display for DriverMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverMissing::NotFound { text } => write!(
                f,
                "no CUDA driver: the loader does not find `libcuda.so.1` ({text}); running a kernel needs NVIDIA's driver \
                 for CUDA 12.0 or newer"
            ),
            DriverMissing::TooOld { missing } => {
                f.write_str("the CUDA driver lacks ")?;
                for (index, name) in missing.iter().enumerate() {
                    write!(f, "{}`{name}`", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("; running a kernel needs NVIDIA's driver for CUDA 12.0 or newer")
            }
        }
    }
}

impl std::error::Error for DriverMissing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_call_name_number_and_text() {
        let known = DriverError {
            call: "cuLibraryLoadData",
            code: 209,
            name: Some("CUDA_ERROR_NO_BINARY_FOR_GPU".to_owned()),
            text: Some("no kernel image is available for execution on the device".to_owned()),
        };
        let unknown = DriverError { call: "cuInit", code: 4711, name: None, text: None };
        insta::assert_snapshot!(format!("{known}\n{unknown}"));
    }

    #[test]
    fn a_missing_driver_says_what_is_needed() {
        let absent = DriverMissing::NotFound {
            text: "libcuda.so.1: cannot open shared object file: No such file or directory".to_owned(),
        };
        let old = DriverMissing::TooOld { missing: vec!["cuLibraryLoadData", "cuLibraryUnload"] };
        insta::assert_snapshot!(format!("{absent}\n{old}"));
    }
}
