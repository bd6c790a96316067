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

const NAME_BYTES: c_int = 256;

/// Bounds the number of parameters, which have at most this many bytes.
const MAX_PARAMS: usize = 32764;

impl Driver {
    pub(super) fn check(&self, call: &'static str, code: CUresult) -> Result<()> {
        if code == CUDA_SUCCESS {
            return Ok(());
        }
        let words = |of: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: `text` is writable, and the function accepts any code.
            let status = unsafe { of(code, &raw mut text) };
            if status != CUDA_SUCCESS || text.is_null() {
                return None;
            }
            // SAFETY: `text` now points to a constant C string of the driver.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        Err(DriverError { call, code, name: words(self.get_error_name), text: words(self.get_error_string) })
    }

    pub(super) fn read<T>(
        &self,
        call: &'static str,
        mut value: T,
        get: impl FnOnce(*mut T) -> CUresult,
    ) -> Result<T> {
        self.check(call, get(&raw mut value))?;
        Ok(value)
    }

    /// Returns the newest supported CUDA: 1000 * major + 10 * minor.
    pub fn version(&self) -> Result<i32> {
        // SAFETY: the pointer is writable.
        self.read("cuDriverGetVersion", 0, |version| unsafe { (self.driver_get_version)(version) })
    }

    /// Returns the device of the calling thread's context.
    pub fn current_device(&self) -> Result<CUdevice> {
        // SAFETY: the pointer is writable.
        self.read("cuCtxGetDevice", 0, |device| unsafe { (self.ctx_get_device)(device) })
    }

    /// Returns a `CU_DEVICE_ATTRIBUTE_` value.
    pub fn device_attribute(&self, device: CUdevice, attribute: c_int) -> Result<i32> {
        // SAFETY: `value` is writable; the driver returns an error for unknown attributes.
        let get = |value| unsafe { (self.device_get_attribute)(value, attribute, device) };
        self.read("cuDeviceGetAttribute", 0, get)
    }

    /// Returns a device's compute capability.
    pub fn compute_capability(&self, device: CUdevice) -> Result<ComputeCapability> {
        let part = |attribute| {
            let value = self.device_attribute(device, attribute)?;
            Ok(u8::try_from(value).unwrap_or(u8::MAX))
        };
        Ok(ComputeCapability {
            major: part(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: part(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        })
    }

    /// Returns whether the device supports clusters; by compute capability if unknown.
    #[must_use]
    pub fn has_clusters(&self, device: CUdevice, capability: ComputeCapability) -> bool {
        let flag = self.device_attribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
        flag.map_or(capability.major >= HAS_CLUSTERS, |value| value != 0)
    }

    /// Returns a device's name: `NVIDIA H200`.
    pub fn device_name(&self, device: CUdevice) -> Result<String> {
        let mut name = [0_u8; NAME_BYTES as usize];
        // SAFETY: `name` has room for `NAME_BYTES` bytes.
        let code = unsafe { (self.device_get_name)(name.as_mut_ptr().cast(), NAME_BYTES, device) };
        self.check("cuDeviceGetName", code)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// Loads a code object until [`Driver::unload_library`].
    ///
    /// # Safety
    /// `code` is a whole cubin, or PTX text with a final NUL; the driver copies it.
    pub unsafe fn load_library(&self, code: *const c_void) -> Result<CUlibrary> {
        let mut library = CUlibrary::NULL;
        // SAFETY: `library` is writable, no options are passed, and the caller guarantees valid code.
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
    /// # Safety
    /// Its kernels are not used afterwards, including by captured graphs.
    pub unsafe fn unload_library(&self, library: CUlibrary) -> Result<()> {
        // SAFETY: the caller upholds the callee's contract.
        self.check("cuLibraryUnload", unsafe { (self.library_unload)(library) })
    }

    /// Returns the kernel of this symbol, or `CUDA_ERROR_NOT_FOUND`.
    pub fn kernel(&self, library: CUlibrary, symbol: &CStr) -> Result<CUkernel> {
        // SAFETY: `kernel` is writable, `symbol` is a C string, and the handle is this driver's.
        let get = |kernel| unsafe { (self.library_get_kernel)(kernel, library, symbol.as_ptr()) };
        self.read("cuLibraryGetKernel", CUkernel::NULL, get)
    }

    /// Loads a kernel into the current context, before captures prevent it.
    pub fn load_into_current_context(&self, kernel: CUkernel) -> Result<()> {
        // SAFETY: the pointer is writable, and the handle is this driver's.
        let get = |function| unsafe { (self.kernel_get_function)(function, kernel) };
        let function = self.read("cuKernelGetFunction", CUfunction::NULL, get)?;
        match self.func_load {
            // SAFETY: the driver just returned the handle.
            Some(func_load) => self.check("cuFuncLoad", unsafe { func_load(function) }),
            None => Ok(()),
        }
    }

    /// Returns a kernel's `CU_FUNC_ATTRIBUTE_` value on a device.
    pub fn kernel_attribute(&self, kernel: CUkernel, device: CUdevice, attribute: c_int) -> Result<i32> {
        // SAFETY: the pointer is writable, and the handle is this driver's.
        let get = |value| unsafe { (self.kernel_get_attribute)(value, attribute, kernel, device) };
        self.read("cuKernelGetAttribute", 0, get)
    }

    /// Sets a kernel's `CU_FUNC_ATTRIBUTE_` value on a device; not concurrently per kernel.
    pub fn set_kernel_attribute(
        &self,
        kernel: CUkernel,
        device: CUdevice,
        attribute: c_int,
        value: i32,
    ) -> Result<()> {
        // SAFETY: the handle is this driver's, and the call has no pointer arguments.
        let code = unsafe { (self.kernel_set_attribute)(attribute, value, kernel, device) };
        self.check("cuKernelSetAttribute", code)
    }

    /// Returns parameter sizes in bytes; `None` before CUDA 12.4.
    pub fn kernel_param_sizes(&self, kernel: CUkernel) -> Result<Option<Vec<u32>>> {
        let Some(param_info) = self.kernel_get_param_info else {
            return Ok(None);
        };
        let mut sizes = Vec::new();
        while sizes.len() <= MAX_PARAMS {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: both pointers are writable, the handle is this driver's, and the driver accepts any index.
            let code = unsafe { param_info(kernel, sizes.len(), &raw mut offset, &raw mut size) };
            if code == CUDA_ERROR_INVALID_VALUE {
                break;
            }
            self.check("cuKernelGetParamInfo", code)?;
            sizes.push(u32::try_from(size).unwrap_or(u32::MAX));
        }
        Ok(Some(sizes))
    }

    pub(super) fn exchange_capture_mode(&self, mode: &mut CUstreamCaptureMode) -> Result<()> {
        // SAFETY: `mode` is writable and has a valid value.
        let code = unsafe { (self.thread_exchange_stream_capture_mode)(mode) };
        self.check("cuThreadExchangeStreamCaptureMode", code)
    }
}
