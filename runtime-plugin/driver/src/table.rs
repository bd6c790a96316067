//! The driver's functions, found by name.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

use super::error::DriverMissing;
use super::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUfunction, CUkernel, CUlaunchConfig, CUlibrary, CUresult, CUstream,
    CUstreamCaptureMode,
};

/// The driver's file, which TensorRT and the CUDA runtime also open.
const LIBRARY: &CStr = c"libcuda.so.1";

macro_rules! function_at {
    ($address:expr, $ty:ty) => {{
        let address: *mut c_void = $address;
        // SAFETY: both are pointers of one size, and null is `None`. The caller of `Driver::from_lookup` promises that
        // other addresses have functions of this type.
        unsafe { std::mem::transmute::<*mut c_void, Option<$ty>>(address) }
    }};
}

macro_rules! driver_table {
    (
        required { $($(#[$doc:meta])* $field:ident: $symbol:literal ($($arg:ty),* $(,)?);)* }
        optional { $($(#[$opt_doc:meta])* $opt_field:ident: $opt_symbol:literal ($($opt_arg:ty),* $(,)?);)* }
    ) => {
        /// The driver's functions that we call, from `cuda.h` of CUDA 13.0, under their versioned names. `since` is
        /// their first release (`cudaTypedefs.h`).
        pub struct Driver {
            $($(#[$doc])* pub(super) $field: unsafe extern "C" fn($($arg),*) -> CUresult,)*
            $($(#[$opt_doc])* pub(super) $opt_field: Option<unsafe extern "C" fn($($opt_arg),*) -> CUresult>,)*
        }

        impl Driver {
            /// Returns the table of the functions that `lookup` finds; null is a missing function.
            ///
            /// # Errors
            /// [`DriverMissing::TooOld`] with all missing required functions.
            ///
            /// # Safety
            /// `lookup` returns null or the address of a function with the signature and contract of that name in
            /// `cuda.h`, valid as long as the table is used.
            pub unsafe fn from_lookup(
                mut lookup: impl FnMut(&'static CStr) -> *mut c_void,
            ) -> Result<Driver, DriverMissing> {
                let mut missing = Vec::new();
                $(
                    let $field = function_at!(
                        lookup($symbol), unsafe extern "C" fn($($arg),*) -> CUresult);
                    if $field.is_none() {
                        missing.push($symbol.to_str().unwrap_or_default());
                    }
                )*
                $(
                    let $opt_field = function_at!(
                        lookup($opt_symbol), unsafe extern "C" fn($($opt_arg),*) -> CUresult);
                )*
                match ($($field,)*) {
                    ($(Some($field),)*) => Ok(Driver { $($field,)* $($opt_field,)* }),
                    _ => Err(DriverMissing::TooOld { missing }),
                }
            }
        }
    };
}

driver_table! {
    required {
        /// `CUresult cuDriverGetVersion(int*)`: 1000 * major + 10 * minor of the newest supported CUDA.
        driver_get_version: c"cuDriverGetVersion"(*mut c_int);
        /// `CUresult cuCtxGetCurrent(CUcontext*)`, since 4.0: null without a context.
        ctx_get_current: c"cuCtxGetCurrent"(*mut CUcontext);
        /// `CUresult cuCtxGetDevice(CUdevice*)`.
        ctx_get_device: c"cuCtxGetDevice"(*mut CUdevice);
        /// `CUresult cuCtxPushCurrent(CUcontext)`, since 4.0.
        ctx_push_current: c"cuCtxPushCurrent_v2"(CUcontext);
        /// `CUresult cuCtxPopCurrent(CUcontext*)`, since 4.0.
        ctx_pop_current: c"cuCtxPopCurrent_v2"(*mut CUcontext);
        /// `CUresult cuStreamGetCtx(CUstream, CUcontext*)`, since 9.2. For the special handles (null, legacy, per thread) it returns the
        /// thread's current context.
        stream_get_ctx: c"cuStreamGetCtx"(CUstream, *mut CUcontext);
        /// `CUresult cuDeviceGetAttribute(int*, CUdevice_attribute, CUdevice)`.
        device_get_attribute: c"cuDeviceGetAttribute"(*mut c_int, c_int, CUdevice);
        /// `CUresult cuDeviceGetName(char*, int, CUdevice)`: ends with a NUL, shortened to fit.
        device_get_name: c"cuDeviceGetName"(*mut c_char, c_int, CUdevice);
        /// `CUresult cuLibraryLoadData(CUlibrary*, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
        /// void**, unsigned)`, since 12.0. Gets no length; copies the code by default.
        library_load_data: c"cuLibraryLoadData"(
            *mut CUlibrary, *const c_void,
            *mut c_int, *mut *mut c_void, c_uint,
            *mut c_int, *mut *mut c_void, c_uint,
        );
        /// `CUresult cuLibraryUnload(CUlibrary)`, since 12.0.
        library_unload: c"cuLibraryUnload"(CUlibrary);
        /// `CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char*)`, since 12.0.
        library_get_kernel: c"cuLibraryGetKernel"(*mut CUkernel, CUlibrary, *const c_char);
        /// `CUresult cuKernelGetFunction(CUfunction*, CUkernel)`, since 12.0: for the current context.
        kernel_get_function: c"cuKernelGetFunction"(*mut CUfunction, CUkernel);
        /// `CUresult cuKernelGetAttribute(int*, CUfunction_attribute, CUkernel, CUdevice)`, since 12.0.
        kernel_get_attribute: c"cuKernelGetAttribute"(*mut c_int, c_int, CUkernel, CUdevice);
        /// `CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice)`, since 12.0: concurrent calls
        /// for one attribute of one kernel race.
        kernel_set_attribute: c"cuKernelSetAttribute"(c_int, c_int, CUkernel, CUdevice);
        /// `CUresult cuLaunchKernel(CUfunction, unsigned grid[3], unsigned block[3], unsigned shared, CUstream, void**
        /// params, void** extra)`, since 4.0. Its null stream is the legacy stream.
        launch_kernel: c"cuLaunchKernel"(
            CUfunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint, CUstream, *mut *mut c_void, *mut *mut c_void,
        );
        /// `CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void** params, void** extra)`, since 11.8.
        launch_kernel_ex: c"cuLaunchKernelEx"(
            *const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void,
        );
        /// `CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t bytes, CUstream)`, since 3.2.
        memset_d8_async: c"cuMemsetD8Async"(CUdeviceptr, c_uchar, usize, CUstream);
        /// `CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream)`, since 3.2.
        memcpy_dtod_async: c"cuMemcpyDtoDAsync_v2"(CUdeviceptr, CUdeviceptr, usize, CUstream);
        /// `CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int threads, size_t shared)`, since 6.5.
        occupancy_max_active_blocks: c"cuOccupancyMaxActiveBlocksPerMultiprocessor"(
            *mut c_int, CUfunction, c_int, usize,
        );
        /// `CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*)`, since 11.8.
        occupancy_max_active_clusters: c"cuOccupancyMaxActiveClusters"(
            *mut c_int, CUfunction, *const CUlaunchConfig,
        );
        /// `CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*)`, since 10.1.
        thread_exchange_stream_capture_mode: c"cuThreadExchangeStreamCaptureMode"(*mut CUstreamCaptureMode);
        /// `CUresult cuGetErrorName(CUresult, const char**)`, since 6.0: null for an unknown number.
        get_error_name: c"cuGetErrorName"(CUresult, *mut *const c_char);
        /// `CUresult cuGetErrorString(CUresult, const char**)`, since 6.0: null for an unknown number.
        get_error_string: c"cuGetErrorString"(CUresult, *mut *const c_char);
    }
    optional {
        /// `CUresult cuFuncLoad(CUfunction)`, since 12.4: completes lazy loading.
        func_load: c"cuFuncLoad"(CUfunction);
        /// `CUresult cuKernelGetParamInfo(CUkernel, size_t index, size_t* offset, size_t* size)`, since 12.4.
        kernel_get_param_info: c"cuKernelGetParamInfo"(CUkernel, usize, *mut usize, *mut usize);
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// The driver of this process, once found. Failures are not cached.
static FOUND: OnceLock<Driver> = OnceLock::new();

impl Driver {
    /// Returns the driver of this process. Makes no CUDA call: an application with a context has called `cuInit`.
    ///
    /// # Errors
    /// [`DriverMissing`]; the next call searches again.
    pub fn find() -> Result<&'static Driver, DriverMissing> {
        if let Some(driver) = FOUND.get() {
            return Ok(driver);
        }
        let driver = open()?;
        Ok(FOUND.get_or_init(|| driver))
    }

    /// Returns the driver if [`Driver::find`] has found it. Opens nothing: for teardown.
    #[must_use]
    pub fn already_found() -> Option<&'static Driver> {
        FOUND.get()
    }
}

/// Prefers the driver in the process, which the application uses.
fn open() -> Result<Driver, DriverMissing> {
    let mut library = std::ptr::null_mut();
    for flags in [libc::RTLD_NOW | libc::RTLD_NOLOAD, libc::RTLD_NOW] {
        // SAFETY: the name is a C string. Loading runs the driver's initializers, as in any CUDA program.
        library = unsafe { libc::dlopen(LIBRARY.as_ptr(), flags) };
        if !library.is_null() {
            break;
        }
    }
    if library.is_null() {
        return Err(DriverMissing::NotFound { text: last_loader_error() });
    }
    // SAFETY: `library` is an open handle that is never closed. The names are those of `cuda.h`, whose declarations the
    // table repeats; a library called `libcuda.so.1` is NVIDIA's driver or stands in for it under the same contract.
    unsafe { Driver::from_lookup(|name| libc::dlsym(library, name.as_ptr())) }
}

/// What the loader said last in this thread.
pub fn last_loader_error() -> String {
    // SAFETY: `dlerror` has no preconditions; glibc keeps its answer per thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: not null, so a C string valid until the thread's next loader call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_function_is_named() {
        // SAFETY: no function is found, so none is called.
        let error = unsafe { Driver::from_lookup(|_| std::ptr::null_mut()) }.unwrap_err();
        let DriverMissing::TooOld { missing } = error else { panic!("{error}") };
        assert_eq!(missing.len(), 23);
        assert!(missing.contains(&"cuCtxPushCurrent_v2") && !missing.contains(&"cuFuncLoad"));
    }

    #[test]
    fn an_absent_driver_is_a_value_every_time() {
        let first = Driver::find().is_ok();
        assert_eq!(Driver::find().is_ok(), first);
        assert_eq!(Driver::already_found().is_some(), first);
    }
}
