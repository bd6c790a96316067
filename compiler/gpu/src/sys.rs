//! Types and numbers of the CUDA driver API, under NVIDIA's names.
//!
//! Source of every fact here: `cuda.h` of CUDA 13.0 (`CUDA_VERSION` 13000), where nothing else is said.

use std::ffi::{c_int, c_uint, c_void};

/// `CUresult`: 0 is success.
pub(crate) type CUresult = c_int;
/// `CUdevice`: a handle that is a small number.
pub(crate) type CUdevice = c_int;
/// `CUdeviceptr`: an address on the device.
pub(crate) type CUdeviceptr = u64;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) *mut c_void);

        impl $name {
            /// The handle of nothing.
            pub(crate) const NULL: $name = $name(std::ptr::null_mut());
        }
    )*};
}

handles! {
    /// `CUcontext`.
    CUcontext,
    /// `CUlibrary`: loaded code, independent of any context.
    CUlibrary,
    /// `CUkernel`: a kernel of a library, independent of any context.
    CUkernel,
    /// `CUfunction`: a kernel in one context. What launches takes a `CUkernel` in its place, for the current context.
    CUfunction,
    /// `CUstream`; null is the default stream of the current context.
    CUstream,
    /// `CUgraph`: work that was captured.
    CUgraph,
    /// `CUgraphExec`: such work, ready to be queued as one.
    CUgraphExec,
    /// `CUevent`: a point in a stream, and when it was reached.
    CUevent,
}

/// `CUlaunchAttribute`: an id (`CUlaunchAttributeID`), padded to 8 bytes, and a union of 64 bytes, of which every member that is used
/// here starts with words.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CUlaunchAttribute {
    id: c_int,
    pad: [u8; 4],
    value: [u32; 16],
}

const _: () =
    assert!(size_of::<CUlaunchAttribute>() == 72 && std::mem::offset_of!(CUlaunchAttribute, value) == 8);

impl CUlaunchAttribute {
    /// An attribute whose value is these words, then zeros.
    pub(crate) fn new(id: c_int, words: [u32; 3]) -> CUlaunchAttribute {
        let mut value = [0; 16];
        value[..3].copy_from_slice(&words);
        CUlaunchAttribute { id, pad: [0; 4], value }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CUlaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: CUstream,
    pub(crate) attributes: *mut CUlaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

const _: () = assert!(
    size_of::<CUlaunchConfig>() == 56
        && std::mem::offset_of!(CUlaunchConfig, stream) == 32
        && std::mem::offset_of!(CUlaunchConfig, attributes) == 40
        && std::mem::offset_of!(CUlaunchConfig, attribute_count) == 48
);

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`: an `int`, not 0.
pub(crate) const LAUNCH_COOPERATIVE: c_int = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`: three `unsigned`, each a divisor of the grid's.
pub(crate) const LAUNCH_CLUSTER: c_int = 4;
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: an `int`, not 0.
pub(crate) const LAUNCH_PROGRAMMATIC: c_int = 6;

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the default one, nor that for it.
pub(crate) const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`: a capture forbids no other call to this thread.
pub(crate) const CAPTURE_RELAXED: c_int = 2;

/// `CUDA_SUCCESS`.
pub(crate) const SUCCESS: CUresult = 0;
/// `CUDA_ERROR_INVALID_VALUE`.
pub(crate) const INVALID_VALUE: CUresult = 1;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
pub(crate) const DEVICE_MULTIPROCESSORS: c_int = 16;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub(crate) const DEVICE_MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub(crate) const DEVICE_MINOR: c_int = 76;
/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`: static and dynamic together, for a kernel that asks.
pub(crate) const DEVICE_SHARED_BYTES: c_int = 97;
/// `CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH`, since 11.8: whether the device has clusters.
pub(crate) const DEVICE_CLUSTERS: c_int = 120;

/// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`: depends on the kernel's registers and launch bounds and on the device.
pub(crate) const FUNC_MAX_THREADS: c_int = 0;
/// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES`: static shared memory.
pub(crate) const FUNC_STATIC_SHARED_BYTES: c_int = 1;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`: what a launch may ask for.
pub(crate) const FUNC_DYNAMIC_SHARED_BYTES: c_int = 8;
