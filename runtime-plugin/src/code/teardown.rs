//! Giving the driver its memory back when the library goes.
//!
//! The loader runs the functions of `.fini_array` on `dlclose` and when the process ends. `atexit` would not do: a
//! handler without the library's own handle would be called after the library is gone. A destructor of a Rust static does
//! not exist, and a `thread_local` with one would keep the library mapped.
//!
//! When the process ends the driver may have shut itself down already. It then answers the first call with
//! `CUDA_ERROR_DEINITIALIZED`, and nothing more is asked of it. `libcuda` is never closed by us, so its code is still mapped.

use super::table::CodeTable;
use crate::driver::Driver;

/// Unloads all code that this copy of the library has loaded. Nothing is reported: nobody is left to hear it.
///
/// # Safety
/// No kernel that was loaded through [`CodeTable::process`] is used afterwards, by a captured graph neither.
pub unsafe fn unload_everything() {
    if let Some(driver) = Driver::already_found() {
        // SAFETY: the caller's promise.
        let _ = unsafe { CodeTable::process().unload_all(driver) };
    }
}

/// Called by the loader. It neither unwinds nor waits: a table that a thread is still working on stays as it is.
extern "C" fn at_library_teardown() {
    // SAFETY: the library is being unmapped or the process is ending, so the plugins, which alone know the kernels, are
    // gone. A graph that outlives the library it was captured from breaks CUDA's own rule on `cuLibraryUnload`.
    unsafe { unload_everything() };
}

/// The loader's entry: System V ABI, "initialization and termination functions".
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_LIBRARY_TEARDOWN: extern "C" fn() = at_library_teardown;
