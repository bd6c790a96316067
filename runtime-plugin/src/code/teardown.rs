//! Releases the driver's memory and the creators when the library is closed.
//!
//! The loader runs `.fini_array` after `dlclose`, and at process exit, when other threads may still launch and
//! TensorRT may call creators, so that all stays.
//!
//! A handler registered with `__cxa_atexit` at load distinguishes them: `exit` runs it before `.fini_array`, which
//! removes it. It has the library's own handle, because zig's LLD does not link the start files that C's `atexit`
//! relies on. If the registration fails, all stays.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::table::CodeTable;
use crate::driver::Driver;

/// Unloads all code of this copy of the library, without a report.
///
/// # Safety
/// No kernel of [`CodeTable::process`] is used afterwards, including by captured graphs.
pub unsafe fn unload_everything() {
    if let Some(driver) = Driver::already_found() {
        // SAFETY: the caller's promise. `libcuda` stays mapped.
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
    // SAFETY: the handler stays mapped until it has run or `at_close` has removed it.
    let registered = unsafe { __cxa_atexit(at_exit, ptr::null_mut(), library_handle()) } == 0;
    IN_USE.store(registered, Ordering::Release);
}

extern "C" fn at_exit(_: *mut c_void) {
    IN_USE.store(false, Ordering::Release);
}

/// Neither unwinds nor waits.
extern "C" fn at_close() {
    if IN_USE.load(Ordering::Acquire) {
        // SAFETY: `dlclose` unmaps the code that could use a kernel or a creator.
        unsafe {
            unload_everything();
            crate::TENSORRT_LIBRARY.release();
        }
        crate::definition::forget_nodes();
    }
    // SAFETY: the handle is unique.
    unsafe { __cxa_finalize(library_handle()) };
}

/// System V ABI, "initialization and termination functions".
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_CLOSE: extern "C" fn() = at_close;
