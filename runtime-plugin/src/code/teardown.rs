//! Giving back what the library holds when it is closed: the driver's memory, and the creators.
//!
//! The loader runs the functions of `.fini_array` on `dlclose` and when the process ends, and these two are different:
//!
//! - `dlclose` unmaps the library's code, so whoever closes it has given up every creator and every plugin object: a call of
//!   one would crash with or without this. Nobody is left who launches, and what is not given back now is lost for good.
//! - When the process ends, other threads may still be launching, and TensorRT may still ask for creators. Nothing is
//!   touched then: it goes with the process.
//!
//! What tells them apart is a handler that is registered with `__cxa_atexit` when the library is loaded: `exit` runs it before any
//! function of `.fini_array`, so if it has run, the process is ending. The handler stands under a handle of this library's own, and
//! the function in `.fini_array` takes it away again. C's `atexit` leaves that to a function of the compiler's start files, which are not
//! there in every library: LLD as zig calls it links none, and the process would call an unmapped handler when it ends. Should the
//! registration fail, nothing is given back.
//!
//! Rust has no destructors of statics, and a `thread_local` with one would keep the library mapped.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::table::CodeTable;
use crate::driver::Driver;

/// Unloads all code that this copy of the library has loaded. Nothing is reported: no logger is left.
///
/// # Safety
/// No kernel that was loaded through [`CodeTable::process`] is used afterwards, by a captured graph neither.
pub unsafe fn unload_everything() {
    if let Some(driver) = Driver::already_found() {
        // SAFETY: the caller's promise. `libcuda` is never closed by us, so its code is still mapped; where it has shut
        // itself down it answers with an error.
        unsafe { CodeTable::process().close(driver) };
    }
}

/// Whether the library is loaded and the process has not begun to end.
static IN_USE: AtomicBool = AtomicBool::new(false);

// Itanium C++ ABI 3.3.5.3, "Runtime API", which glibc and musl follow.
unsafe extern "C" {
    fn __cxa_atexit(handler: extern "C" fn(*mut c_void), data: *mut c_void, library: *mut c_void) -> c_int;
    /// Calls the handlers of `library` that have not run, and takes them away.
    fn __cxa_finalize(library: *mut c_void);
}

/// What the handler is registered under: an address that nothing else has.
fn library_handle() -> *mut c_void {
    ptr::from_ref(&IN_USE).cast_mut().cast()
}

extern "C" fn at_load() {
    // SAFETY: the handler stays mapped until it has run or `at_close` has taken it away. The handle is only compared.
    let registered = unsafe { __cxa_atexit(at_exit, ptr::null_mut(), library_handle()) } == 0;
    IN_USE.store(registered, Ordering::Release);
}

extern "C" fn at_exit(_: *mut c_void) {
    IN_USE.store(false, Ordering::Release);
}

/// It neither unwinds nor waits: what a thread is still loading stays as it is.
extern "C" fn at_close() {
    if IN_USE.load(Ordering::Acquire) {
        // SAFETY: the process is not ending, so this is `dlclose`: nobody uses a kernel or a creator any more, because the
        // code that could is unmapped next. A graph that outlives the library that it was captured from breaks CUDA's own
        // rule on `cuLibraryUnload`.
        unsafe {
            unload_everything();
            crate::TENSORRT_LIBRARY.release();
        }
        crate::definition::forget_nodes();
    }
    // SAFETY: no other library has this handle. Where the handler has run, there is nothing to do.
    unsafe { __cxa_finalize(library_handle()) };
}

/// The loader's entries: System V ABI, "initialization and termination functions".
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_CLOSE: extern "C" fn() = at_close;
