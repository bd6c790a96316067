//! What the driver refuses, and what is wrong where there is none.

use std::fmt;

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
    fn a_missing_driver_says_what_is_needed() {
        let absent = DriverMissing::NotFound {
            text: "libcuda.so.1: cannot open shared object file: No such file or directory".to_owned(),
        };
        let old = DriverMissing::TooOld { missing: vec!["cuLibraryLoadData", "cuLibraryUnload"] };
        insta::assert_snapshot!(format!("{absent}\n{old}"));
    }
}
