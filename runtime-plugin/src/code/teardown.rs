//! Releases the driver's memory and the creators when the library closes.
//!
//! The loader runs `.fini_array` after `dlclose`, and at process exit, when everything must stay: other threads may
//! launch, TensorRT may call creators. A `__cxa_atexit` handler distinguishes them: `exit` runs it before
//! `.fini_array`, which removes it. Its handle is the library's: zig's LLD does not link the start files for C's
//! `atexit`. If registering fails, all stays.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::table::CodeTable;
use crate::driver::Driver;

/// Unloads all code of this library copy silently.
///
/// # Safety
/// Kernels of [`CodeTable::process`] are not used afterwards, including by captured graphs.
pub unsafe fn unload_everything() {
    if let Some(driver) = Driver::already_found() {
        // SAFETY: the caller guarantees that no kernel is used later; `libcuda` stays mapped.
        unsafe { CodeTable::process().close(driver) };
    }
}

/// False at process exit.
static IN_USE: AtomicBool = AtomicBool::new(false);

// Itanium C++ ABI 3.3.5.3, "Runtime API".
unsafe extern "C" {
    fn __cxa_atexit(handler: extern "C" fn(*mut c_void), data: *mut c_void, library: *mut c_void) -> c_int;
    fn __cxa_finalize(library: *mut c_void);
}

fn library_handle() -> *mut c_void {
    ptr::from_ref(&IN_USE).cast_mut().cast()
}

extern "C" fn at_load() {
    // SAFETY: `at_exit` stays mapped until it has run or `at_close` has removed it.
    let registered = unsafe { __cxa_atexit(at_exit, ptr::null_mut(), library_handle()) } == 0;
    IN_USE.store(registered, Ordering::Release);
}

extern "C" fn at_exit(_: *mut c_void) {
    IN_USE.store(false, Ordering::Release);
}

/// Unloads everything; neither unwinds nor waits.
extern "C" fn at_close() {
    if IN_USE.load(Ordering::Acquire) {
        // SAFETY: the library is closing: nothing uses kernels or creators later.
        unsafe {
            unload_everything();
            crate::TENSORRT_LIBRARY.release();
        }
    }
    // SAFETY: the handle is this library's, so only its own functions run.
    unsafe { __cxa_finalize(library_handle()) };
}

/// System V ABI, "initialization and termination functions".
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_CLOSE: extern "C" fn() = at_close;
