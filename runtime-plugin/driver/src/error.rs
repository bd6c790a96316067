/// Why no driver can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverMissing {
    /// The loader finds no `libcuda.so.1`.
    #[error(
        "no CUDA driver: cannot load `libcuda.so.1` ({text}); kernels require NVIDIA's driver for CUDA 12.0 or later"
    )]
    NotFound {
        /// The loader's message.
        text: String,
    },
    /// It lacks functions.
    #[error("the CUDA driver lacks `{}`; kernels require NVIDIA's driver for CUDA 12.0 or later", missing.join("`, `"))]
    TooOld {
        /// Missing functions.
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
