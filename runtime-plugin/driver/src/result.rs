//! The driver's errors as values. Source: `CUresult` in `cuda.h` of CUDA 13.0.

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: i32 = 2;
/// `CUDA_ERROR_NO_DEVICE`.
pub const NO_DEVICE: i32 = 100;
/// An error that no kernel causes.
const CONTEXT_IS_DESTROYED: i32 = 709;
const UNKNOWN: i32 = 999;

/// "The process must be terminated and relaunched", or the context is lost.
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

/// The result of a driver call.
pub type Result<T, E = DriverError> = std::result::Result<T, E>;

/// A failed driver call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{call}` returned {} ({code}){}", name_of(name), detail(text))]
pub struct DriverError {
    /// The function: `cuLibraryLoadData`.
    pub call: &'static str,
    /// Returned `CUresult`.
    pub code: i32,
    /// Name: `CUDA_ERROR_NO_BINARY_FOR_GPU`.
    pub name: Option<String>,
    /// The driver's description.
    pub text: Option<String>,
}

impl DriverError {
    /// Returns whether earlier work may have caused it.
    #[must_use]
    pub fn may_come_from_earlier_work(&self) -> bool {
        self.lasts() && ![CONTEXT_IS_DESTROYED, UNKNOWN].contains(&self.code)
    }

    /// Returns whether the process's later calls fail, too.
    #[must_use]
    pub fn lasts(&self) -> bool {
        LASTING.contains(&self.code)
    }

    /// Returns whether the device is out of memory.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.code == OUT_OF_MEMORY
    }
}

fn name_of(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or("an unknown error")
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
        let expected = "`cuCtxSynchronize` returned an unknown error (4711)";
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
