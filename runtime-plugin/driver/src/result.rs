//! Errors of NVIDIA's driver as values, for whoever calls it.
//!
//! Owns: what a call that did not succeed says, and what follows from its number. Never calls the driver: the runtime and the tools have
//! bindings of their own, because one lives in processes of others and the other in its own.
//!
//! Source of the numbers and of what they mean: `cuda.h` of CUDA 13.0, `CUresult`.

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: i32 = 2;
/// `CUDA_ERROR_NO_DEVICE`: "no CUDA-capable devices were detected".
pub const NO_DEVICE: i32 = 100;
/// `CUDA_ERROR_CONTEXT_IS_DESTROYED`: somebody did that, and no kernel.
const CONTEXT_IS_DESTROYED: i32 = 709;
/// `CUDA_ERROR_UNKNOWN`: nobody knows what still works.
const UNKNOWN: i32 = 999;

/// After these "the process must be terminated and relaunched", or the context is gone with everything in it.
const LASTING: [i32; 17] = [
    214, // ECC_UNCORRECTABLE
    220, // NVLINK_UNCORRECTABLE
    226, // CONTAINED
    700, // ILLEGAL_ADDRESS
    702, // LAUNCH_TIMEOUT
    CONTEXT_IS_DESTROYED,
    710, // ASSERT
    714, // HARDWARE_STACK_ERROR
    715, // ILLEGAL_INSTRUCTION
    716, // MISALIGNED_ADDRESS
    717, // INVALID_ADDRESS_SPACE
    718, // INVALID_PC
    719, // LAUNCH_FAILED
    721, // TENSOR_MEMORY_LEAK
    810, // MPS_CLIENT_TERMINATED
    911, // EXTERNAL_DEVICE
    UNKNOWN,
];

/// What comes of a call of the driver.
pub type Result<T, E = DriverError> = std::result::Result<T, E>;

/// A driver call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{call}` returned {} ({code}){}", name_of(name), detail(text))]
pub struct DriverError {
    /// The function: `cuLibraryLoadData`.
    pub call: &'static str,
    /// What it returned: a `CUresult`.
    pub code: i32,
    /// The driver's name for that: `CUDA_ERROR_NO_BINARY_FOR_GPU`; absent where the driver has none.
    pub name: Option<String>,
    /// The driver's own words; absent where it has none.
    pub text: Option<String>,
}

impl DriverError {
    /// Whether it may tell of a kernel that was launched before the call: CUDA reports such failures late.
    #[must_use]
    pub fn may_come_from_earlier_work(&self) -> bool {
        self.lasts() && ![CONTEXT_IS_DESTROYED, UNKNOWN].contains(&self.code)
    }

    /// Whether later calls in the process will be answered with it, too. Drivers get new errors: one that is not known here may last as
    /// well, which asking the driver again shows.
    #[must_use]
    pub fn lasts(&self) -> bool {
        LASTING.contains(&self.code)
    }

    /// Whether the device has not enough memory left.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.code == OUT_OF_MEMORY
    }
}

fn name_of(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or("an error that the driver has no name for")
}

fn detail(text: &Option<String>) -> String {
    text.as_ref().map_or_else(String::new, |text| format!(": {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> DriverError {
        DriverError { call: "cuCtxSynchronize", code, name: None, text: None }
    }

    #[test]
    fn errors_say_call_name_number_and_text() {
        let known = DriverError {
            call: "cuLibraryLoadData",
            code: 209,
            name: Some("CUDA_ERROR_NO_BINARY_FOR_GPU".to_owned()),
            text: Some("no kernel image is available for execution on the device".to_owned()),
        };
        let expected = "`cuLibraryLoadData` returned CUDA_ERROR_NO_BINARY_FOR_GPU (209): no kernel image is available for \
                        execution on the device";
        assert_eq!(known.to_string(), expected);
        let expected = "`cuCtxSynchronize` returned an error that the driver has no name for (4711)";
        assert_eq!(error(4711).to_string(), expected);
    }

    #[test]
    fn what_kernels_do_lasts_and_what_launches_lack_does_not() {
        for code in [214, 226, 700, 702, 715, 716, 719, 721, 810, 911] {
            assert!(error(code).lasts(), "{code}");
        }
        for code in [1, 2, 209, 701, 720, 801] {
            assert!(!error(code).lasts(), "{code}");
        }
        for (code, expected) in
            [(700, true), (719, true), (721, true), (226, true), (720, false), (701, false), (2, false)]
        {
            assert_eq!(error(code).may_come_from_earlier_work(), expected, "{code}");
        }
        assert!(error(2).is_out_of_memory());
    }
}
