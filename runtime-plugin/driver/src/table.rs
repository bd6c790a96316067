//! The driver's functions, found by name.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

use super::error::DriverMissing;
use super::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUfunction, CUkernel, CUlaunchConfig, CUlibrary, CUresult, CUstream,
    CUstreamCaptureMode,
};

const LIBRARY: &CStr = c"libcuda.so.1";

macro_rules! function_at {
    ($address:expr, $ty:ty) => {{
        let address: *mut c_void = $address;
        // SAFETY: both types are pointers, null is `None`; the caller of `Driver::from_lookup` guarantees the type.
        unsafe { std::mem::transmute::<*mut c_void, Option<$ty>>(address) }
    }};
}

macro_rules! driver_table {
    (
        required { $($(#[$doc:meta])* $field:ident: $symbol:literal ($($arg:ty),* $(,)?);)* }
        optional { $($(#[$opt_doc:meta])* $opt_field:ident: $opt_symbol:literal ($($opt_arg:ty),* $(,)?);)* }
    ) => {
        /// The functions that we call, from `cuda.h` of CUDA 13.0; "since": first release (`cudaTypedefs.h`).
        pub struct Driver {
            $($(#[$doc])* pub(super) $field: unsafe extern "C" fn($($arg),*) -> CUresult,)*
            $($(#[$opt_doc])* pub(super) $opt_field: Option<unsafe extern "C" fn($($opt_arg),*) -> CUresult>,)*
        }

        impl Driver {
            /// Returns the table of functions that `lookup` finds; [`DriverMissing::TooOld`] lists missing required
            /// ones.
            ///
            /// # Safety
            /// `lookup` returns null or the function of that name in `cuda.h`, valid while the table is used.
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
        driver_get_version: c"cuDriverGetVersion"(*mut c_int);
        /// Since 4.0: returns null without a context.
        ctx_get_current: c"cuCtxGetCurrent"(*mut CUcontext);
        /// Since 12.0.
        ctx_get_id: c"cuCtxGetId"(CUcontext, *mut u64);
        ctx_get_device: c"cuCtxGetDevice"(*mut CUdevice);
        /// Since 4.0.
        ctx_push_current: c"cuCtxPushCurrent_v2"(CUcontext);
        /// Since 4.0.
        ctx_pop_current: c"cuCtxPopCurrent_v2"(*mut CUcontext);
        /// Since 9.2: the thread's context for default streams.
        stream_get_ctx: c"cuStreamGetCtx"(CUstream, *mut CUcontext);
        device_get_attribute: c"cuDeviceGetAttribute"(*mut c_int, c_int, CUdevice);
        /// Shortened to fit.
        device_get_name: c"cuDeviceGetName"(*mut c_char, c_int, CUdevice);
        /// Since 12.0. Copies the code by default.
        library_load_data: c"cuLibraryLoadData"(
            *mut CUlibrary, *const c_void,
            *mut c_int, *mut *mut c_void, c_uint,
            *mut c_int, *mut *mut c_void, c_uint,
        );
        /// Since 12.0.
        library_unload: c"cuLibraryUnload"(CUlibrary);
        /// Since 12.0.
        library_get_kernel: c"cuLibraryGetKernel"(*mut CUkernel, CUlibrary, *const c_char);
        /// Since 12.0: for the current context.
        kernel_get_function: c"cuKernelGetFunction"(*mut CUfunction, CUkernel);
        /// Since 12.0.
        kernel_get_attribute: c"cuKernelGetAttribute"(*mut c_int, c_int, CUkernel, CUdevice);
        /// Since 12.0: concurrent calls for one kernel race.
        kernel_set_attribute: c"cuKernelSetAttribute"(c_int, c_int, CUkernel, CUdevice);
        /// Since 4.0. Its null stream is the legacy stream.
        launch_kernel: c"cuLaunchKernel"(
            CUfunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint, CUstream, *mut *mut c_void, *mut *mut c_void,
        );
        /// Since 11.8.
        launch_kernel_ex: c"cuLaunchKernelEx"(
            *const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void,
        );
        /// Since 3.2.
        memset_d8_async: c"cuMemsetD8Async"(CUdeviceptr, c_uchar, usize, CUstream);
        /// Since 3.2: to, from, bytes.
        memcpy_dtod_async: c"cuMemcpyDtoDAsync_v2"(CUdeviceptr, CUdeviceptr, usize, CUstream);
        /// Since 6.5.
        occupancy_max_active_blocks: c"cuOccupancyMaxActiveBlocksPerMultiprocessor"(
            *mut c_int, CUfunction, c_int, usize,
        );
        /// Since 11.8.
        occupancy_max_active_clusters: c"cuOccupancyMaxActiveClusters"(
            *mut c_int, CUfunction, *const CUlaunchConfig,
        );
        /// Since 10.1.
        thread_exchange_stream_capture_mode: c"cuThreadExchangeStreamCaptureMode"(*mut CUstreamCaptureMode);
        /// Since 6.0: null if unknown.
        get_error_name: c"cuGetErrorName"(CUresult, *mut *const c_char);
        /// Since 6.0: null if unknown.
        get_error_string: c"cuGetErrorString"(CUresult, *mut *const c_char);
    }
    optional {
        /// Since 12.4: completes lazy loading.
        func_load: c"cuFuncLoad"(CUfunction);
        /// Since 12.4: index, offset, size.
        kernel_get_param_info: c"cuKernelGetParamInfo"(CUkernel, usize, *mut usize, *mut usize);
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// Failures are not cached.
static FOUND: OnceLock<Driver> = OnceLock::new();

impl Driver {
    /// Returns this process's driver, without a CUDA call.
    pub fn find() -> Result<&'static Driver, DriverMissing> {
        if let Some(driver) = FOUND.get() {
            return Ok(driver);
        }
        let driver = open()?;
        Ok(FOUND.get_or_init(|| driver))
    }

    /// Returns the driver that [`Driver::find`] found.
    #[must_use]
    pub fn already_found() -> Option<&'static Driver> {
        FOUND.get()
    }
}

/// Prefers the driver that the application has loaded.
fn open() -> Result<Driver, DriverMissing> {
    let mut library = std::ptr::null_mut();
    for flags in [libc::RTLD_NOW | libc::RTLD_NOLOAD, libc::RTLD_NOW] {
        // SAFETY: a C string. Loading runs the driver's initializers, as in every CUDA program.
        library = unsafe { libc::dlopen(LIBRARY.as_ptr(), flags) };
        if !library.is_null() {
            break;
        }
    }
    if library.is_null() {
        return Err(DriverMissing::NotFound { text: last_loader_error() });
    }
    // SAFETY: the library is never closed; its functions have the types of `cuda.h`, which the table repeats.
    unsafe { Driver::from_lookup(|name| libc::dlsym(library, name.as_ptr())) }
}

/// Returns this thread's `dlerror` message.
pub fn last_loader_error() -> String {
    // SAFETY: the function has no preconditions; its result belongs to this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader reports no reason".to_owned();
    }
    // SAFETY: not null, and a C string until this thread's next loader call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_function_is_named() {
        // SAFETY: the lookup finds no functions, so none is called.
        let error = unsafe { Driver::from_lookup(|_| std::ptr::null_mut()) }.unwrap_err();
        let DriverMissing::TooOld { missing } = error else { panic!("{error}") };
        assert_eq!(missing.len(), 24);
        assert!(missing.contains(&"cuCtxPushCurrent_v2") && !missing.contains(&"cuFuncLoad"));
    }

    #[test]
    fn an_absent_driver_is_a_value_every_time() {
        let first = Driver::find().is_ok();
        assert_eq!(Driver::find().is_ok(), first);
        assert_eq!(Driver::already_found().is_some(), first);
    }
}
