//! What the driver refuses, and what is wrong where there is none.

/// Why there is no driver to call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverMissing {
    /// The loader does not find `libcuda.so.1`.
    #[error(
        "no CUDA driver: the loader does not find `libcuda.so.1` ({text}); running a kernel needs NVIDIA's driver \
                 for CUDA 12.0 or newer"
    )]
    NotFound {
        /// The loader's own words.
        text: String,
    },
    /// It is there and lacks functions.
    #[error("the CUDA driver lacks `{}`; running a kernel needs NVIDIA's driver for CUDA 12.0 or newer", missing.join("`, `"))]
    TooOld {
        /// The functions.
        missing: Vec<&'static str>,
    },
}

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
