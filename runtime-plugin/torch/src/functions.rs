//! The functions that kernels call.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::error::{Error, Reason};

/// `AtenTensorHandle`: the address of an `at::Tensor`, which contains the address of a `c10::TensorImpl`.
pub(crate) type Handle = *mut c_void;

pub(crate) type Get<T> = unsafe extern "C" fn(Handle, *mut T) -> i32;

/// `aoti_torch_check`: throws if the condition is false.
pub(crate) type Check = unsafe extern "C-unwind" fn(bool, *const c_char, *const c_char, u32, *const c_char);

/// `CubinderOperator*`.
pub(crate) type Operator = *mut c_void;

/// `CubinderAttribute`; its types are those of `nvinfer1::PluginFieldType`.
#[repr(C)]
pub(crate) struct Attribute {
    pub(crate) name: *const c_char,
    pub(crate) data: *const c_void,
    pub(crate) ty: i32,
    pub(crate) length: i32,
}

/// `CubinderCall`.
#[repr(C)]
pub(crate) struct Call {
    pub(crate) ranks: *const i32,
    pub(crate) extents: *const i64,
    pub(crate) inputs: *const *mut c_void,
    pub(crate) outputs: *const *mut c_void,
    pub(crate) workspace: *mut c_void,
    pub(crate) workspace_bytes: u64,
    pub(crate) stream: *mut c_void,
    pub(crate) rank_count: i32,
    pub(crate) extent_count: i32,
    pub(crate) input_count: i32,
    pub(crate) output_count: i32,
}

/// The functions, in the order of `cubinder.torch`. Fields without a prefix are `aoti_torch_` functions of PyTorch's
/// stable C interface (`torch/csrc/inductor/aoti_torch/c/shim.h`; PyTorch 2.11 and 2.15), which return 0 on success.
#[repr(C)]
pub(crate) struct Functions {
    pub(crate) check: Check,
    grad_mode_is_enabled: unsafe extern "C" fn() -> bool,
    /// `c10::TensorImpl::requires_grad() const`; the stable interface lacks it.
    pub(crate) requires_grad: unsafe extern "C" fn(*const c_void) -> bool,
    pub(crate) delete_tensor_object: unsafe extern "C" fn(Handle) -> i32,
    pub(crate) get_dim: Get<i64>,
    pub(crate) get_sizes: Get<*mut i64>,
    pub(crate) get_dtype: Get<i32>,
    pub(crate) get_device_type: Get<i32>,
    pub(crate) get_device_index: Get<i32>,
    pub(crate) get_data_ptr: Get<*mut c_void>,
    pub(crate) is_contiguous: Get<bool>,
    pub(crate) empty_strided:
        unsafe extern "C" fn(i64, *const i64, *const i64, i32, i32, i32, *mut Handle) -> i32,
    pub(crate) copy_: unsafe extern "C" fn(Handle, Handle, i32) -> i32,
    get_current_cuda_stream: unsafe extern "C" fn(i32, *mut *mut c_void) -> i32,
    cubinder_free_message: unsafe extern "C" fn(*mut c_char),
    pub(crate) cubinder_operator_create: unsafe extern "C" fn(
        *const c_char,
        *const Attribute,
        i32,
        *const i32,
        i32,
        *mut Operator,
    ) -> *mut c_char,
    pub(crate) cubinder_operator_destroy: unsafe extern "C" fn(Operator),
    pub(crate) cubinder_operator_output_types: unsafe extern "C" fn(Operator, *mut i32, i32) -> *mut c_char,
    pub(crate) cubinder_operator_output_shapes: unsafe extern "C" fn(
        Operator,
        *const i32,
        i32,
        *const i64,
        i32,
        *const i64,
        *mut i32,
        *mut i64,
        i32,
    ) -> *mut c_char,
    pub(crate) cubinder_operator_run: unsafe extern "C" fn(Operator, *const Call, *mut u64) -> *mut c_char,
    cu_ctx_get_device: unsafe extern "C" fn(*mut c_int) -> i32,
    cu_device_primary_ctx_retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> i32,
    cu_device_primary_ctx_release: unsafe extern "C" fn(c_int) -> i32,
    cu_ctx_push_current: unsafe extern "C" fn(*mut c_void) -> i32,
    cu_ctx_pop_current: unsafe extern "C" fn(*mut *mut c_void) -> i32,
    /// The text of the thread's last exception, since PyTorch 2.13.
    torch_exception_get_what_without_backtrace: Option<unsafe extern "C" fn() -> *const c_char>,
}

impl Functions {
    pub(crate) fn is_grad_enabled(&self) -> bool {
        // SAFETY: the function has no arguments.
        unsafe { (self.grad_mode_is_enabled)() }
    }

    pub(crate) fn torch_error(&self, function: &'static str, code: i32) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let text = self.torch_exception_get_what_without_backtrace.and_then(|get| {
            // SAFETY: the function has no arguments.
            let text = unsafe { get() };
            // SAFETY: it returns null or a C string, which lives until the thread's next exception.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        Err(Error::Torch { function, reason: Reason(text) })
    }

    pub(crate) fn current_stream(&self, device: i32) -> Result<*mut c_void, Error> {
        let mut stream = null_mut();
        // SAFETY: `stream` is writable.
        let code = unsafe { (self.get_current_cuda_stream)(device, &raw mut stream) };
        self.torch_error("aoti_torch_get_current_cuda_stream", code)?;
        Ok(stream)
    }

    pub(crate) fn plugin_error(&self, message: *mut c_char) -> Result<(), Error> {
        if message.is_null() {
            return Ok(());
        }
        // SAFETY: messages are C strings.
        let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        // SAFETY: the library returned the message, which is not used again.
        unsafe { (self.cubinder_free_message)(message) };
        Err(Error::Plugin(text))
    }

    /// Makes a device's primary context current until the result is dropped. `None` if a context of the device is
    /// current: the primary one, unless another library made its own.
    pub(crate) fn enter(&self, device: i32) -> Result<Option<Entered<'_>>, Error> {
        let mut current = -1;
        // SAFETY: `current` is writable; without a context it is unchanged.
        let code = unsafe { (self.cu_ctx_get_device)(&raw mut current) };
        if code == 0 && current == device {
            return Ok(None);
        }
        let mut context = null_mut();
        // SAFETY: `context` is writable; the driver checks the device.
        Error::of_driver("cuDevicePrimaryCtxRetain", unsafe {
            (self.cu_device_primary_ctx_retain)(&raw mut context, device)
        })?;
        // SAFETY: the driver just returned the context.
        let pushed = unsafe { (self.cu_ctx_push_current)(context) };
        let entered = (pushed == 0).then_some(Entered(self));
        // SAFETY: it was retained above. PyTorch keeps it alive.
        let released = unsafe { (self.cu_device_primary_ctx_release)(device) };
        Error::of_driver("cuDevicePrimaryCtxRelease", released)?;
        Error::of_driver("cuCtxPushCurrent", pushed)?;
        Ok(entered)
    }
}

pub(crate) struct Entered<'f>(&'f Functions);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: `context` is writable. An error cannot be reported here.
        let _error = unsafe { (self.0.cu_ctx_pop_current)(&raw mut context) };
    }
}
