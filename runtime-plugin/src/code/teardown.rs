//! Releases the driver's memory and the creators when the library is closed.
//!
//! The loader runs `.fini_array` in two situations:
//!
//! - `dlclose` unmaps the code, so nothing of the library is in use, and unreleased memory is lost.
//! - At process exit other threads may still launch, and TensorRT may call creators. Nothing is released.
//!
//! A handler registered with `__cxa_atexit` at load distinguishes them: `exit` runs it before `.fini_array`. It has the
//! library's own handle, and the `.fini_array` function removes it: C's `atexit` relies on start files for that, which
//! zig's LLD does not link. If the registration fails, nothing is released.
//!
//! Rust does not drop statics, and a `thread_local` with a destructor would keep the library mapped.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::table::CodeTable;
use crate::driver::Driver;

/// Unloads all code of this copy of the library. Reports nothing, because the logger is gone.
///
/// # Safety
/// No kernel loaded through [`CodeTable::process`] is used afterwards, including by captured graphs.
pub unsafe fn unload_everything() {
    if let Some(driver) = Driver::already_found() {
        // SAFETY: the caller's promise. We never close `libcuda`, so its code is mapped; after its own shutdown it
        // returns an error.
        unsafe { CodeTable::process().close(driver) };
    }
}

/// Whether the library is loaded and the process is not exiting.
static IN_USE: AtomicBool = AtomicBool::new(false);

// Itanium C++ ABI 3.3.5.3, "Runtime API", which glibc and musl follow.
unsafe extern "C" {
    fn __cxa_atexit(handler: extern "C" fn(*mut c_void), data: *mut c_void, library: *mut c_void) -> c_int;
    /// Calls and removes the handlers of `library` that have not run.
    fn __cxa_finalize(library: *mut c_void);
}

fn library_handle() -> *mut c_void {
    ptr::from_ref(&IN_USE).cast_mut().cast()
}

extern "C" fn at_load() {
    // SAFETY: the handler stays mapped until it has run or `at_close` has removed it. The handle is only compared.
    let registered = unsafe { __cxa_atexit(at_exit, ptr::null_mut(), library_handle()) } == 0;
    IN_USE.store(registered, Ordering::Release);
}

extern "C" fn at_exit(_: *mut c_void) {
    IN_USE.store(false, Ordering::Release);
}

/// Neither unwinds nor waits; code that a thread is loading stays.
extern "C" fn at_close() {
    if IN_USE.load(Ordering::Acquire) {
        // SAFETY: the process is not exiting, so this is `dlclose`: the code that could use a kernel or a creator is
        // unmapped next. A graph that outlives its library violates CUDA's rule on `cuLibraryUnload`.
        unsafe {
            unload_everything();
            crate::TENSORRT_LIBRARY.release();
        }
        crate::definition::forget_nodes();
    }
    // SAFETY: the handle is unique. If the handler has run, this does nothing.
    unsafe { __cxa_finalize(library_handle()) };
}

/// The loader's entries: System V ABI, "initialization and termination functions".
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_CLOSE: extern "C" fn() = at_close;
