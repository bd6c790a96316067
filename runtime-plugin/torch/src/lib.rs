//! `libcubinder_torch.so`: kernels for PyTorch's dispatcher that run plugins through their C interface
//! (`runtime-plugin/include/cubinder_runtime.h`). `cubinder.torch` loads it and passes the functions that it calls.
//!
//! Never launches a kernel, never computes a shape, never calls Python.
#![allow(unsafe_code)]

mod device;
mod error;
mod functions;
mod kernel;
mod tensor;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use functions::{Attribute, Check, Functions};
use kernel::{Kernel, Parameter};

/// Maximum operators with kernels in a process.
const MAX_KERNELS: usize = 256;

/// The kernels, by number: PyTorch passes a kernel no operator.
static KERNELS: [AtomicPtr<Kernel>; MAX_KERNELS] = [const { AtomicPtr::new(null_mut()) }; MAX_KERNELS];

/// The type of kernels in `aoti_torch_library_impl`.
type Function = unsafe extern "C-unwind" fn(*mut u64, u64, u64);

macro_rules! functions {
    ($($ten:literal)*) => { [$(
        function::<$ten, 0>, function::<$ten, 1>, function::<$ten, 2>, function::<$ten, 3>,
        function::<$ten, 4>, function::<$ten, 5>, function::<$ten, 6>, function::<$ten, 7>,
    )*] };
}

const FUNCTIONS: [Function; MAX_KERNELS] =
    functions!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// Has nothing to drop: C++ exceptions pass only through functions without landing pads, since this library's unwinder
/// may not be PyTorch's.
///
/// # Safety
/// PyTorch's dispatcher calls it with an operator's arguments, and room for its results.
unsafe extern "C-unwind" fn function<const ROW: usize, const COLUMN: usize>(
    stack: *mut u64,
    arguments: u64,
    results: u64,
) {
    // SAFETY: the caller upholds the callee's contract.
    let failure = unsafe { dispatch(8 * ROW + COLUMN, stack, arguments as usize, results as usize) };
    if let Some(Failure { check, text }) = failure {
        // SAFETY: all are C strings. The function throws.
        unsafe { check(false, c"kernel".as_ptr(), c"cubinder".as_ptr(), 0, text) }
    }
}

/// An error's text, which lives until the thread's next error, and the function that throws it.
struct Failure {
    check: Check,
    text: *const c_char,
}

/// # Safety
/// See [`function`].
#[inline(never)]
unsafe fn dispatch(number: usize, stack: *mut u64, arguments: usize, results: usize) -> Option<Failure> {
    thread_local! {
        static LAST: RefCell<CString> = RefCell::default();
    }
    let kernel = KERNELS.get(number).map_or(null_mut(), |kernel| kernel.load(Ordering::Acquire));
    // SAFETY: kernels are never destroyed.
    let kernel = unsafe { kernel.as_ref() }?;
    let call = || {
        // SAFETY: PyTorch passes room for all arguments and all results.
        let stack = unsafe { std::slice::from_raw_parts_mut(stack, arguments.max(results)) };
        // SAFETY: the caller passes an operator's arguments.
        unsafe { kernel.call(stack, arguments, results) }
    };
    let text = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => c_text(&error.to_string()),
        Err(_) => c_text("a kernel of cubinder.torch panicked"),
    };
    let address = text.as_ptr();
    // While the thread ends, the text leaks.
    let mut text = Some(text);
    if LAST.try_with(|last| last.replace(text.take().unwrap_or_default())).is_err() {
        std::mem::forget(text);
    }
    Some(Failure { check: kernel.functions.check, text: address })
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// Writes a kernel for `aoti_torch_library_impl` to `made`: null if all are used, or the table of functions has another
/// size. It implements operators with `tensors` tensors, the inputs of `plugin`, then attributes ([`Parameter`]); it
/// returns all `outputs`, none with a data-dependent size. Errors are C++ exceptions of PyTorch.
///
/// # Safety
/// `functions` are those of PyTorch, a plugin library and the driver in this process, which stay loaded; `plugin` and
/// the attributes' names are C strings; `attributes` has `count` elements; `made` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_torch_kernel(
    functions: *const Functions,
    function_count: usize,
    plugin: *const c_char,
    attributes: *const Attribute,
    count: usize,
    tensors: usize,
    outputs: usize,
    made: *mut Option<Function>,
) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if function_count != size_of::<Functions>() / size_of::<usize>() {
        // SAFETY: the caller guarantees the place.
        return unsafe { made.write(None) };
    }
    let attributes: &[Attribute] = match count {
        0 => &[],
        // SAFETY: the caller guarantees the elements.
        _ => unsafe { std::slice::from_raw_parts(attributes, count) },
    };
    let owned = |text| {
        // SAFETY: the caller guarantees a C string.
        unsafe { CStr::from_ptr(text) }.to_owned()
    };
    let attributes = attributes.iter().map(|one| Parameter { name: owned(one.name), ty: one.ty }).collect();
    // SAFETY: the caller guarantees the functions.
    let functions = unsafe { functions.read() };
    let kernel = Kernel::new(functions, owned(plugin), attributes, tensors, outputs);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    if let Some(place) = KERNELS.get(number) {
        place.store(Box::into_raw(Box::new(kernel)), Ordering::Release);
    }
    // SAFETY: the caller guarantees the place.
    unsafe { made.write(FUNCTIONS.get(number).copied()) };
}
