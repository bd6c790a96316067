//! What a profiler is handed to attach itself, and the two functions that it is asked for.
//!
//! The facts are those of NVTX 3.1.0, `c/include/nvtx3/nvtxDetail` of the public repository NVIDIA/NVTX: names, numbers and
//! structures of `nvtxTypes.h`, what the functions answer of `nvtxImpl.h`, and that a function which no profiler gave does nothing of
//! `nvtxImplCore.h`. A program has one such set of tables for each library that compiles those headers, so a profiler copes with
//! several. The functions of all modules have a place, because a profiler may take it for granted; two of them are called.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{self, null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where a profiler writes the address of its function; null means that there is none.
type Slot = AtomicPtr<c_void>;
/// An entry of a `NvtxFunctionTable`: the address of a slot, null at index 0 and behind the last one.
type Entry = Option<&'static Slot>;

/// `nvtxRangePushA`: `int (const char*)`.
type RangePush = unsafe extern "C" fn(*const c_char) -> c_int;
/// `nvtxRangePop`: `int (void)`.
type RangePop = unsafe extern "C" fn() -> c_int;

/// `NVTX_CB_MODULE_CORE`.
const CORE: usize = 1;
/// `NVTX_CBID_CORE_RangePushA`.
const RANGE_PUSH_A: usize = 9;
/// `NVTX_CBID_CORE_RangePop`.
const RANGE_POP: usize = 11;
/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS_TABLE: u32 = 1;
/// `NVTX_ETID_VERSIONINFO`.
const VERSION_TABLE: u32 = 3;
/// `NVTX_VERSION`.
const VERSION: u32 = 3;

/// How many slots the modules have, in the order of `NvtxCallbackModule`: the numbers `NVTX_CBID_..._SIZE` of core, CUDA, OpenCL, CUDA run
/// time, core 2 and sync. The first module has the number 1.
const SLOTS: [usize; 6] = [16, 9, 15, 7, 16, 7];

/// Everything that a profiler is told addresses of.
///
/// The library may be unloaded while the profiler lives, and NVTX has no word for that; a profiler may keep what it was told, to change its
/// functions later. So these lie in memory that is never given back, once for each copy of the library that a profiler is attached to: what
/// is written there after the library has gone reaches nobody and harms nobody. The functions that a profiler is given are for the call
/// that attaches it.
struct Tables {
    callbacks: Callbacks,
    version: VersionInfo,
    modules: [Module; SLOTS.len()],
}

struct Module {
    slots: &'static [Slot],
    /// The addresses of the slots; longer by an entry.
    table: &'static [Entry],
}

impl Module {
    fn new(length: usize) -> Module {
        let slots: &'static [Slot] = Vec::leak((0..length).map(|_| Slot::new(null_mut())).collect());
        let entry = |index: usize| slots.get(index).filter(|_| index > 0);
        Module { slots, table: Vec::leak((0..=length).map(entry).collect()) }
    }
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    module_function_table: unsafe extern "C" fn(c_int, *mut *const Entry, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_injection_version: extern "C" fn(u32),
}

/// The tables of this copy of the library, made when a profiler is to be attached.
static TABLES: OnceLock<&'static Tables> = OnceLock::new();

fn tables() -> &'static Tables {
    TABLES.get_or_init(|| {
        let callbacks = Callbacks { struct_size: size_of::<Callbacks>(), module_function_table };
        let struct_size = size_of::<VersionInfo>();
        let version = VersionInfo { struct_size, version: VERSION, reserved: 0, set_injection_version };
        Box::leak(Box::new(Tables { callbacks, version, modules: SLOTS.map(Module::new) }))
    })
}

/// `NvtxGetExportTableFunc_t`: what a profiler's `InitializeInjectionNvtx2` is given. Null for tables that there are not.
pub(super) extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        CALLBACKS_TABLE => ptr::from_ref(&tables().callbacks).cast(),
        VERSION_TABLE => ptr::from_ref(&tables().version).cast(),
        _ => null(),
    }
}

/// `GetModuleFunctionTable`: 1, and where the table of a module lies and how many entries it has; 0 for a module that there is not.
///
/// # Safety
/// `table` and `size` are each null or writable.
unsafe extern "C" fn module_function_table(
    module: c_int,
    table: *mut *const Entry,
    size: *mut c_uint,
) -> c_int {
    let index = usize::try_from(module).ok().and_then(|module| module.checked_sub(CORE));
    let Some(found) = index.and_then(|index| tables().modules.get(index)) else { return 0 };
    if !size.is_null() {
        // SAFETY: not null, so writable. The last entry is not counted.
        unsafe { size.write(c_uint::try_from(found.slots.len()).unwrap_or(0)) };
    }
    if !table.is_null() {
        // SAFETY: not null, so writable.
        unsafe { table.write(found.table.as_ptr()) };
    }
    1
}

/// What it is told is ignored, as NVTX itself does.
extern "C" fn set_injection_version(_: u32) {}

/// The profiler's function in a slot of the core module, where it gave one.
#[inline]
fn function(slot: usize) -> Option<*mut c_void> {
    let core = TABLES.get()?.modules.first()?;
    let function = core.slots.get(slot)?.load(Ordering::Relaxed);
    (!function.is_null()).then_some(function)
}

/// Whether a profiler wants both ends of ranges.
pub(super) fn takes_ranges() -> bool {
    [RANGE_PUSH_A, RANGE_POP].into_iter().all(|slot| function(slot).is_some())
}

/// Begins a range in the calling thread, where a profiler takes it.
///
/// # Safety
/// What is in the slots was put there by a profiler that keeps to NVTX. `name` is a C string.
#[inline]
pub(super) unsafe fn push(name: *const c_char) {
    if let Some(function) = function(RANGE_PUSH_A) {
        // SAFETY: whoever fills this slot puts a function of this type there.
        let function = unsafe { std::mem::transmute::<*mut c_void, RangePush>(function) };
        // SAFETY: a C string, as it wants; the answer is the depth, which nobody asks for.
        unsafe { function(name) };
    }
}

/// Ends the range that was begun last in the calling thread, where a profiler takes it.
///
/// # Safety
/// What is in the slots was put there by a profiler that keeps to NVTX. [`push`] came before.
#[inline]
pub(super) unsafe fn pop() {
    if let Some(function) = function(RANGE_POP) {
        // SAFETY: whoever fills this slot puts a function of this type there.
        let function = unsafe { std::mem::transmute::<*mut c_void, RangePop>(function) };
        // SAFETY: it has no preconditions but the range.
        unsafe { function() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a profiler that was written in C sees them.
    #[test]
    fn tables_lie_as_the_headers_say() {
        let callbacks = export_table(1).cast::<usize>();
        let version = export_table(3).cast::<usize>();
        // SAFETY: both begin with their sizes; the number and the reserved word of the version follow.
        unsafe {
            assert_eq!((*callbacks, *version), (16, 24));
            assert_eq!(version.add(1).read(), 3);
        }
        assert_eq!([0, 2, 4].map(|id| export_table(id)), [null(); 3]);
        for (module, length) in [(1, 16), (2, 9), (3, 15), (4, 7), (5, 16), (6, 7)] {
            let (mut table, mut size) = (null(), 0);
            let ask = tables().callbacks.module_function_table;
            // SAFETY: both can be written.
            assert_eq!(unsafe { ask(module, &raw mut table, &raw mut size) }, 1);
            assert_eq!(size, length, "module {module}");
            // SAFETY: so many entries and one more.
            let entries = unsafe { std::slice::from_raw_parts(table, size as usize + 1) };
            let are_there: Vec<bool> = entries.iter().map(Option::is_some).collect();
            let inner = vec![true; size as usize - 1];
            assert_eq!(are_there, [&[false], inner.as_slice(), &[false]].concat(), "module {module}");
        }
        // SAFETY: null is allowed.
        unsafe {
            assert_eq!(module_function_table(1, null_mut(), null_mut()), 1);
            assert_eq!(module_function_table(0, null_mut(), null_mut()), 0);
            assert_eq!(module_function_table(7, null_mut(), null_mut()), 0);
        }
        assert_eq!(size_of::<Entry>(), size_of::<*const c_void>());
    }
}
