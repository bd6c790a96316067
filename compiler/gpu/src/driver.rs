//! The driver's functions, found by name.
//!
//! The table is our own: `cudarc` has all of the driver's functions, and panics where one of them is missing.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};

use libloading::Library;

use crate::error::{DriverError, NoDriver};
use crate::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUkernel, CUlaunchConfig,
    CUlibrary, CUresult, CUstream, SUCCESS,
};

/// The name under which the driver is installed.
const LIBRARY: &str = "libcuda.so.1";

macro_rules! table {
    (
        required { $($field:ident: $symbol:literal ($($arg:ty),* $(,)?);)* }
        optional { $($opt_field:ident: $opt_symbol:literal ($($opt_arg:ty),* $(,)?);)* }
    ) => {
        /// The driver: `cuda.h` of CUDA 13.0, functions under the versioned names that its macros expand to.
        pub struct Driver {
            $(pub(crate) $field: unsafe extern "C" fn($($arg),*) -> CUresult,)*
            $(pub(crate) $opt_field: Option<unsafe extern "C" fn($($opt_arg),*) -> CUresult>,)*
        }

        impl Driver {
            fn of(library: &Library) -> Result<Driver, NoDriver> {
                Ok(Driver {
                    $($field: {
                        // SAFETY: `cuda.h` gives the name this signature, and the library is never closed.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($arg),*) -> CUresult>($symbol.as_bytes())
                        };
                        *found.map_err(|_| NoDriver::TooOld($symbol))?
                    },)*
                    $($opt_field: {
                        // SAFETY: as above.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($opt_arg),*) -> CUresult>($opt_symbol.as_bytes())
                        };
                        found.ok().map(|found| *found)
                    },)*
                })
            }

            /// One without a device: every call succeeds and does nothing.
            #[cfg(test)]
            pub(crate) fn of_nothing() -> Driver {
                Driver {
                    $($field: {
                        unsafe extern "C" fn done($(_: $arg),*) -> CUresult {
                            SUCCESS
                        }
                        done
                    },)*
                    $($opt_field: None,)*
                }
            }
        }
    };
}

table! {
    required {
        init: "cuInit"(c_uint);
        driver_get_version: "cuDriverGetVersion"(*mut c_int);
        device_get: "cuDeviceGet"(*mut CUdevice, c_int);
        device_get_count: "cuDeviceGetCount"(*mut c_int);
        device_get_attribute: "cuDeviceGetAttribute"(*mut c_int, c_int, CUdevice);
        device_get_name: "cuDeviceGetName"(*mut c_char, c_int, CUdevice);
        device_primary_ctx_retain: "cuDevicePrimaryCtxRetain"(*mut CUcontext, CUdevice);
        device_primary_ctx_release: "cuDevicePrimaryCtxRelease_v2"(CUdevice);
        ctx_push_current: "cuCtxPushCurrent_v2"(CUcontext);
        ctx_pop_current: "cuCtxPopCurrent_v2"(*mut CUcontext);
        ctx_synchronize: "cuCtxSynchronize"();
        mem_get_info: "cuMemGetInfo_v2"(*mut usize, *mut usize);
        mem_alloc: "cuMemAlloc_v2"(*mut CUdeviceptr, usize);
        mem_free: "cuMemFree_v2"(CUdeviceptr);
        memcpy_htod: "cuMemcpyHtoD_v2"(CUdeviceptr, *const c_void, usize);
        memcpy_dtoh: "cuMemcpyDtoH_v2"(*mut c_void, CUdeviceptr, usize);
        memset_d8_async: "cuMemsetD8Async"(CUdeviceptr, c_uchar, usize, CUstream);
        memcpy_dtod_async: "cuMemcpyDtoDAsync_v2"(CUdeviceptr, CUdeviceptr, usize, CUstream);
        stream_create: "cuStreamCreate"(*mut CUstream, c_uint);
        stream_destroy: "cuStreamDestroy_v2"(CUstream);
        stream_synchronize: "cuStreamSynchronize"(CUstream);
        stream_begin_capture: "cuStreamBeginCapture_v2"(CUstream, c_int);
        stream_end_capture: "cuStreamEndCapture"(CUstream, *mut CUgraph);
        graph_instantiate: "cuGraphInstantiateWithFlags"(*mut CUgraphExec, CUgraph, c_ulonglong);
        graph_launch: "cuGraphLaunch"(CUgraphExec, CUstream);
        graph_destroy: "cuGraphDestroy"(CUgraph);
        graph_exec_destroy: "cuGraphExecDestroy"(CUgraphExec);
        event_create: "cuEventCreate"(*mut CUevent, c_uint);
        event_destroy: "cuEventDestroy_v2"(CUevent);
        event_record: "cuEventRecord"(CUevent, CUstream);
        event_synchronize: "cuEventSynchronize"(CUevent);
        // `cuEventElapsedTime_v2`, to which the macros of 12.8 and newer expand, is missing from older drivers; this one is in all of them.
        event_elapsed_time: "cuEventElapsedTime"(*mut f32, CUevent, CUevent);
        library_load_data: "cuLibraryLoadData"(
            *mut CUlibrary, *const c_void,
            *mut c_int, *mut *mut c_void, c_uint,
            *mut c_int, *mut *mut c_void, c_uint,
        );
        library_unload: "cuLibraryUnload"(CUlibrary);
        library_get_kernel: "cuLibraryGetKernel"(*mut CUkernel, CUlibrary, *const c_char);
        kernel_get_function: "cuKernelGetFunction"(*mut CUfunction, CUkernel);
        kernel_get_attribute: "cuKernelGetAttribute"(*mut c_int, c_int, CUkernel, CUdevice);
        kernel_set_attribute: "cuKernelSetAttribute"(c_int, c_int, CUkernel, CUdevice);
        launch_kernel_ex: "cuLaunchKernelEx"(
            *const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void,
        );
        get_error_name: "cuGetErrorName"(CUresult, *mut *const c_char);
        get_error_string: "cuGetErrorString"(CUresult, *mut *const c_char);
    }
    optional {
        kernel_get_param_info: "cuKernelGetParamInfo"(CUkernel, usize, *mut usize, *mut usize);
    }
}

/// What the loader says, in glibc's words: the driver is not there, or it is, and cannot be loaded (a file of another architecture, a
/// library that it needs and that is missing, no permission).
fn unloaded(words: String) -> NoDriver {
    let is_absent = words.contains("libcuda.so.1: cannot open shared object file: No such file or directory");
    if is_absent { NoDriver::NotFound(words) } else { NoDriver::Unloadable(words) }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// Finds and initializes the driver. It stays in the process until that ends: it runs threads of its own, and unloading it under
    /// them is defined nowhere.
    ///
    /// # Errors
    /// Where there is none, or one that is too old or has no usable device.
    pub fn load() -> Result<Driver, NoDriver> {
        // SAFETY: what runs when the library is loaded is NVIDIA's, made to be loaded into any process.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|error| {
            // The loader's own words are behind those of the crate.
            let words = std::error::Error::source(&error).map(ToString::to_string);
            unloaded(words.unwrap_or_else(|| error.to_string()))
        })?;
        let driver = Driver::of(&library)?;
        std::mem::forget(library);
        // SAFETY: flags must be 0.
        driver.check("cuInit", unsafe { (driver.init)(0) }).map_err(NoDriver::Refused)?;
        Ok(driver)
    }

    /// `Ok` for success, otherwise the error with the driver's own name and words for it.
    pub(crate) fn check(&self, call: &'static str, code: CUresult) -> Result<(), DriverError> {
        if code == SUCCESS {
            return Ok(());
        }
        let words = |of: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: `text` is a place for one pointer; any number may be asked about.
            let status = unsafe { of(code, &raw mut text) };
            if status != SUCCESS || text.is_null() {
                return None;
            }
            // SAFETY: on success it points to a constant C string of the driver.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        Err(DriverError { call, code, name: words(self.get_error_name), text: words(self.get_error_string) })
    }

    /// The newest CUDA that the driver knows: 1000 * major + 10 * minor.
    ///
    /// # Errors
    /// The driver's.
    pub fn version(&self) -> Result<i32, DriverError> {
        let mut version = 0;
        // SAFETY: `version` is a place for one `int`.
        self.check("cuDriverGetVersion", unsafe { (self.driver_get_version)(&raw mut version) })?;
        Ok(version)
    }

    /// How many devices the process sees.
    ///
    /// # Errors
    /// The driver's.
    pub fn device_count(&self) -> Result<u32, DriverError> {
        let mut count = 0;
        // SAFETY: `count` is a place for one `int`.
        self.check("cuDeviceGetCount", unsafe { (self.device_get_count)(&raw mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_driver_that_is_not_there_is_not_found() {
        let of = |words: &str| matches!(unloaded(words.to_owned()), NoDriver::NotFound(_));
        assert!(of("libcuda.so.1: cannot open shared object file: No such file or directory"));
        for words in [
            "libcuda.so.1: cannot open shared object file: Permission denied",
            "libnvidia-glcore.so: cannot open shared object file: No such file or directory",
            "/usr/lib/libcuda.so.1: file too short",
        ] {
            assert!(!of(words), "{words}");
        }
    }
}
