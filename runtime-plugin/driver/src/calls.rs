//! Safe wrappers: values in, values or errors out.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::fit::ComputeCapability;

use super::result::{DriverError, Result};
use super::sys::{
    CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUdevice,
    CUfunction, CUkernel, CUlibrary, CUresult, CUstreamCaptureMode,
};
use super::table::Driver;

/// Longest device name that is read, bytes.
const NAME_BYTES: c_int = 256;

/// More parameters than a kernel can have: all of them together take at most 32764 bytes.
const MAX_PARAMS: usize = 32764;

impl Driver {
    /// `Ok` for success, otherwise the error with the driver's own name and words for it.
    pub(super) fn check(&self, call: &'static str, code: CUresult) -> Result<()> {
        if code == CUDA_SUCCESS {
            return Ok(());
        }
        let words = |of: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: `text` is a place for one pointer; any number may be asked about.
            let status = unsafe { of(code, &raw mut text) };
            if status != CUDA_SUCCESS || text.is_null() {
                return None;
            }
            // SAFETY: on success it points to a constant C string of the driver.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        Err(DriverError { call, code, name: words(self.get_error_name), text: words(self.get_error_string) })
    }

    /// The value that a call writes over `value`.
    pub(super) fn read<T>(
        &self,
        call: &'static str,
        mut value: T,
        get: impl FnOnce(*mut T) -> CUresult,
    ) -> Result<T> {
        self.check(call, get(&raw mut value))?;
        Ok(value)
    }

    /// The newest CUDA that the driver knows: 1000 * major + 10 * minor.
    ///
    /// # Errors
    /// The driver's.
    pub fn version(&self) -> Result<i32> {
        // SAFETY: the pointer is to a place for one `int`.
        self.read("cuDriverGetVersion", 0, |version| unsafe { (self.driver_get_version)(version) })
    }

    /// The device of the calling thread's context.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_CONTEXT` where there is no context.
    pub fn current_device(&self) -> Result<CUdevice> {
        // SAFETY: the pointer is to a place for one handle.
        self.read("cuCtxGetDevice", 0, |device| unsafe { (self.ctx_get_device)(device) })
    }

    /// One of the `CU_DEVICE_ATTRIBUTE_` numbers of a device.
    ///
    /// # Errors
    /// The driver's, for a device or attribute that it does not know.
    pub fn device_attribute(&self, device: CUdevice, attribute: c_int) -> Result<i32> {
        // SAFETY: the pointer is to a place for one `int`; unknown attributes and devices are answered with an error.
        let get = |value| unsafe { (self.device_get_attribute)(value, attribute, device) };
        self.read("cuDeviceGetAttribute", 0, get)
    }

    /// A device's compute capability, as the driver reports it.
    ///
    /// # Errors
    /// The driver's.
    pub fn compute_capability(&self, device: CUdevice) -> Result<ComputeCapability> {
        let part = |attribute| {
            let value = self.device_attribute(device, attribute)?;
            // No capability is near 255; a driver that says so is not believed further than this.
            Ok(u8::try_from(value).unwrap_or(u8::MAX))
        };
        Ok(ComputeCapability {
            major: part(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: part(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        })
    }

    /// Whether a device of this compute capability has clusters. Where the driver does not say, because it does not know the question or
    /// for whatever other reason, the capability tells: most kernels have no clusters and are not to fail for it, and a launch with
    /// clusters that the device does not take is refused by the driver.
    #[must_use]
    pub fn has_clusters(&self, device: CUdevice, capability: ComputeCapability) -> bool {
        let flag = self.device_attribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
        flag.map_or(capability.major >= HAS_CLUSTERS, |value| value != 0)
    }

    /// A device's name: `NVIDIA H200`.
    ///
    /// # Errors
    /// The driver's.
    pub fn device_name(&self, device: CUdevice) -> Result<String> {
        let mut name = [0_u8; NAME_BYTES as usize];
        // SAFETY: `name` has room for the number of bytes said.
        let code = unsafe { (self.device_get_name)(name.as_mut_ptr().cast(), NAME_BYTES, device) };
        self.check("cuDeviceGetName", code)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// Loads a code object. It lives until [`Driver::unload_library`].
    ///
    /// # Errors
    /// Where the driver does not take it.
    ///
    /// # Safety
    /// `code` points to a whole cubin or to PTX text that ends with a NUL, and stays as it is during the call (the driver
    /// keeps a copy of its own: `CU_LIBRARY_BINARY_IS_PRESERVED` is not given).
    pub unsafe fn load_library(&self, code: *const c_void) -> Result<CUlibrary> {
        let mut library = CUlibrary::NULL;
        // SAFETY: `library` is a place for one handle; `code` is the caller's promise; no options, so their arrays may
        // be null.
        let code = unsafe {
            (self.library_load_data)(
                &raw mut library,
                code,
                null_mut(),
                null_mut(),
                0,
                null_mut(),
                null_mut(),
                0,
            )
        };
        self.check("cuLibraryLoadData", code)?;
        Ok(library)
    }

    /// Unloads a code object.
    ///
    /// # Errors
    /// `CUDA_ERROR_DEINITIALIZED` where the process is ending, among others.
    ///
    /// # Safety
    /// No kernel of it is used afterwards, by a captured graph neither.
    pub unsafe fn unload_library(&self, library: CUlibrary) -> Result<()> {
        // SAFETY: the caller's promise; a handle that is none is answered with an error.
        self.check("cuLibraryUnload", unsafe { (self.library_unload)(library) })
    }

    /// The kernel of a code object with this symbol.
    ///
    /// # Errors
    /// `CUDA_ERROR_NOT_FOUND` where there is none.
    pub fn kernel(&self, library: CUlibrary, symbol: &CStr) -> Result<CUkernel> {
        // SAFETY: the pointer is to a place for one handle, `symbol` is a C string, `library` a handle of this driver.
        let get = |kernel| unsafe { (self.library_get_kernel)(kernel, library, symbol.as_ptr()) };
        self.read("cuLibraryGetKernel", CUkernel::NULL, get)
    }

    /// Makes the driver load a kernel into the current context now, instead of at its first launch, where a refusal or a
    /// capture under way would be in the way.
    ///
    /// # Errors
    /// Where the kernel cannot run on the current context's device, among others.
    pub fn load_into_current_context(&self, kernel: CUkernel) -> Result<()> {
        // SAFETY: the pointer is to a place for one handle, `kernel` is a handle of this driver.
        let get = |function| unsafe { (self.kernel_get_function)(function, kernel) };
        let function = self.read("cuKernelGetFunction", CUfunction::NULL, get)?;
        match self.func_load {
            // SAFETY: a handle that the driver has just given; loading twice has no effect.
            Some(func_load) => self.check("cuFuncLoad", unsafe { func_load(function) }),
            None => Ok(()),
        }
    }

    /// One of the `CU_FUNC_ATTRIBUTE_` numbers of a kernel on a device.
    ///
    /// # Errors
    /// The driver's.
    pub fn kernel_attribute(&self, kernel: CUkernel, device: CUdevice, attribute: c_int) -> Result<i32> {
        // SAFETY: the pointer is to a place for one `int`, `kernel` is a handle of this driver; unknown attributes are answered with an error.
        let get = |value| unsafe { (self.kernel_get_attribute)(value, attribute, kernel, device) };
        self.read("cuKernelGetAttribute", 0, get)
    }

    /// Sets one of the `CU_FUNC_ATTRIBUTE_` numbers of a kernel on a device. Threads that do so for one kernel must take
    /// turns.
    ///
    /// # Errors
    /// The driver's: for a value beyond the device's limit, say.
    pub fn set_kernel_attribute(
        &self,
        kernel: CUkernel,
        device: CUdevice,
        attribute: c_int,
        value: i32,
    ) -> Result<()> {
        // SAFETY: `kernel` is a handle of this driver; what it does not allow is answered with an error.
        let code = unsafe { (self.kernel_set_attribute)(attribute, value, kernel, device) };
        self.check("cuKernelSetAttribute", code)
    }

    /// The sizes of a kernel's parameters in bytes, in order; none where the driver is older than CUDA 12.4.
    ///
    /// # Errors
    /// The driver's.
    pub fn kernel_param_sizes(&self, kernel: CUkernel) -> Result<Option<Vec<u32>>> {
        let Some(param_info) = self.kernel_get_param_info else {
            return Ok(None);
        };
        let mut sizes = Vec::new();
        while sizes.len() <= MAX_PARAMS {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: both are places for one `size_t`, `kernel` a handle of this driver. An index beyond the last
            // parameter is answered with this error, which is how the end is found.
            let code = unsafe { param_info(kernel, sizes.len(), &raw mut offset, &raw mut size) };
            if code == CUDA_ERROR_INVALID_VALUE {
                break;
            }
            self.check("cuKernelGetParamInfo", code)?;
            sizes.push(u32::try_from(size).unwrap_or(u32::MAX));
        }
        Ok(Some(sizes))
    }

    /// Swaps the calling thread's stream capture mode with `mode`.
    pub(super) fn exchange_capture_mode(&self, mode: &mut CUstreamCaptureMode) -> Result<()> {
        // SAFETY: `mode` is a place for one `int` that holds a mode.
        let code = unsafe { (self.thread_exchange_stream_capture_mode)(mode) };
        self.check("cuThreadExchangeStreamCaptureMode", code)
    }
}
