//! Giving the driver its memory back when the library goes.
//!
//! The loader runs the functions of `.fini_array` on `dlclose` and when the process ends. `atexit` would not do: a
//! handler without the library's own handle would be called after the library is gone. A destructor of a Rust static does
//! not exist, and a `thread_local` with one would keep the library mapped.
//!
//! `dlclose` and the end of the process are different things, and the loader does not say which it is:
//!
//! - `dlclose` unmaps the library's code, so whoever closes it has given up every plugin object before: a call of one
//!   would crash with or without this. Nobody is left who launches.
//! - When the process ends, other threads may still be launching. Nothing is unloaded under them: the driver registers its
//!   own shutdown when it is initialized, and `exit` runs such handlers before `.fini_array`. Its answer to the first call is
//!   then `CUDA_ERROR_DEINITIALIZED`, and nothing more is asked of it (seen with the driver of CUDA 13.0, whichever library
//!   was opened first; `cuLibraryUnload` on `dlclose` succeeds). A driver that did otherwise would unload kernels that a
//!   thread may be launching at that moment: this much is relied on. `libcuda` is never closed by us, so its code is
//!   still mapped.

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

/// Called by the loader. It neither unwinds nor waits: what a thread is still loading stays as it is.
extern "C" fn at_library_teardown() {
    // SAFETY: on `dlclose` nobody uses a kernel any more, because what could is unmapped next; a graph that outlives the
    // library that it was captured from breaks CUDA's own rule on `cuLibraryUnload`. At the end of the process the driver
    // has shut itself down and unloads nothing, as the module says.
    unsafe { unload_everything() };
}

/// The loader's entry: System V ABI, "initialization and termination functions".
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_LIBRARY_TEARDOWN: extern "C" fn() = at_library_teardown;
