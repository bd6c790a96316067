//! CUDA driver types and numbers under NVIDIA's names. Source unless stated: `cuda.h` of CUDA 13.0.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;

/// `CUresult`: 0 is success.
pub type CUresult = c_int;
/// `CUdevice`: a small number.
pub type CUdevice = c_int;
/// `CUstreamCaptureMode`.
pub type CUstreamCaptureMode = c_int;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name(*mut c_void);

        impl $name {
            /// The null handle.
            pub const NULL: $name = $name(std::ptr::null_mut());

            /// Wraps a C handle.
            ///
            /// # Safety
            /// The driver's valid handle of this kind; or only a stand-in driver gets it.
            #[must_use]
            pub const unsafe fn from_raw(raw: *mut c_void) -> $name {
                $name(raw)
            }

            /// Returns the C handle.
            #[must_use]
            pub const fn as_raw(self) -> *mut c_void {
                self.0
            }

            /// Returns whether it is null.
            #[must_use]
            pub fn is_null(self) -> bool {
                self.0.is_null()
            }
        }

        // SAFETY: only the driver dereferences handles, in any thread (CUDA programming guide, "thread safety").
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    )*};
}

handles! {
    /// `CUcontext`.
    CUcontext,
    /// `CUlibrary`: loaded code.
    CUlibrary,
    /// `CUkernel`: a kernel of a library.
    CUkernel,
    /// `CUfunction`: a kernel in one context. `cuLaunchKernel` also accepts a `CUkernel`.
    CUfunction,
    /// `CUstream`.
    CUstream,
}

impl CUkernel {
    pub(crate) const fn as_function(self) -> CUfunction {
        CUfunction(self.0)
    }
}

impl CUstream {
    /// Returns whether it is a default stream: null, `CU_STREAM_LEGACY` (1), `CU_STREAM_PER_THREAD` (2).
    #[must_use]
    pub fn is_default(self) -> bool {
        self.0.addr() <= 2
    }
}

/// `CUdeviceptr`: an address on the device.
pub type CUdeviceptr = u64;

/// `CUlaunchAttribute`: an id padded to 8 bytes, and a union of 64 bytes.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CUlaunchAttribute {
    /// One of the `CU_LAUNCH_ATTRIBUTE_` numbers.
    pub id: c_int,
    pad: [u8; 4],
    value: [u32; 16],
}

const _: () = assert!(size_of::<CUlaunchAttribute>() == 72 && offset_of!(CUlaunchAttribute, value) == 8);

impl CUlaunchAttribute {
    /// An attribute that the driver ignores.
    pub const IGNORED: CUlaunchAttribute = CUlaunchAttribute::new(CU_LAUNCH_ATTRIBUTE_IGNORE, [0; 3]);

    /// Creates an attribute with these words, then zeros.
    #[must_use]
    pub const fn new(id: c_int, words: [u32; 3]) -> CUlaunchAttribute {
        let mut value = [0; 16];
        value[0] = words[0];
        value[1] = words[1];
        value[2] = words[2];
        CUlaunchAttribute { id, pad: [0; 4], value }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUlaunchConfig {
    /// `gridDimX` to `gridDimZ`.
    pub grid: [c_uint; 3],
    /// `blockDimX` to `blockDimZ`.
    pub block: [c_uint; 3],
    /// `sharedMemBytes`.
    pub shared_bytes: c_uint,
    /// `hStream`.
    pub stream: CUstream,
    /// `attrs`.
    pub attributes: *mut CUlaunchAttribute,
    /// `numAttrs`.
    pub attribute_count: c_uint,
}

const _: () = assert!(
    size_of::<CUlaunchConfig>() == 56
        && offset_of!(CUlaunchConfig, stream) == 32
        && offset_of!(CUlaunchConfig, attributes) == 40
        && offset_of!(CUlaunchConfig, attribute_count) == 48
);

/// Ignored.
pub const CU_LAUNCH_ATTRIBUTE_IGNORE: c_int = 0;
/// An `int`, not 0.
pub const CU_LAUNCH_ATTRIBUTE_COOPERATIVE: c_int = 2;
/// Three `unsigned`, each a divisor of the grid's.
pub const CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: c_int = 4;
/// An `int`, not 0.
pub const CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: c_int = 6;

/// `CUDA_SUCCESS`.
pub const CUDA_SUCCESS: CUresult = 0;
/// `CUDA_ERROR_INVALID_VALUE`.
pub const CUDA_ERROR_INVALID_VALUE: CUresult = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const CUDA_ERROR_OUT_OF_MEMORY: CUresult = 2;
/// `cuInit` was not called.
pub const CUDA_ERROR_NOT_INITIALIZED: CUresult = 3;
/// The driver has shut down at process exit.
pub const CUDA_ERROR_DEINITIALIZED: CUresult = 4;
/// `CUDA_ERROR_DEVICE_UNAVAILABLE`.
pub const CUDA_ERROR_DEVICE_UNAVAILABLE: CUresult = 46;
/// `CUDA_ERROR_NO_DEVICE`.
pub const CUDA_ERROR_NO_DEVICE: CUresult = 100;
/// `CUDA_ERROR_INVALID_IMAGE`.
pub const CUDA_ERROR_INVALID_IMAGE: CUresult = 200;
/// `CUDA_ERROR_INVALID_CONTEXT`.
pub const CUDA_ERROR_INVALID_CONTEXT: CUresult = 201;
/// `CUDA_ERROR_NO_BINARY_FOR_GPU`.
pub const CUDA_ERROR_NO_BINARY_FOR_GPU: CUresult = 209;
/// `CUDA_ERROR_INVALID_PTX`.
pub const CUDA_ERROR_INVALID_PTX: CUresult = 218;
/// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND`.
pub const CUDA_ERROR_JIT_COMPILER_NOT_FOUND: CUresult = 221;
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
pub const CUDA_ERROR_UNSUPPORTED_PTX_VERSION: CUresult = 222;
/// `CUDA_ERROR_JIT_COMPILATION_DISABLED`.
pub const CUDA_ERROR_JIT_COMPILATION_DISABLED: CUresult = 223;
/// `CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC`.
pub const CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC: CUresult = 225;
/// `CUDA_ERROR_INVALID_SOURCE`.
pub const CUDA_ERROR_INVALID_SOURCE: CUresult = 300;
/// `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`.
pub const CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: CUresult = 302;
/// `CUDA_ERROR_NOT_FOUND`.
pub const CUDA_ERROR_NOT_FOUND: CUresult = 500;
/// The first error (700 to 720) of kernels and lost contexts.
pub const CUDA_ERROR_ILLEGAL_ADDRESS: CUresult = 700;
/// About the launch itself.
pub const CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: CUresult = 701;
/// The last of 700 to 720.
pub const CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: CUresult = 720;
/// The first error (802 to 810) about installation and MPS.
pub const CUDA_ERROR_SYSTEM_NOT_READY: CUresult = 802;
/// The last of 802 to 810.
pub const CUDA_ERROR_MPS_CLIENT_TERMINATED: CUresult = 810;
/// The first error (900 to 908) about captures.
pub const CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: CUresult = 900;
/// The last of 900 to 908.
pub const CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: CUresult = 908;

/// Allows calls that other threads' captures forbid.
pub const CU_STREAM_CAPTURE_MODE_RELAXED: CUstreamCaptureMode = 2;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
pub const CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: c_int = 16;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: c_int = 76;
/// Static plus dynamic bytes, if opted in.
pub const CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
/// Whether the device supports clusters; since 11.8.
pub const CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: c_int = 120;

/// Depends on registers, launch bounds and device.
pub const CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: c_int = 0;
/// Static shared memory.
pub const CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: c_int = 1;
/// The launch limit; by default 48 KiB less the static part.
pub const CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
