//! The NVTX function tables that a profiler fills, and the two functions we call.
//!
//! Source: NVTX 3.1.0, `c/include/nvtx3/nvtxDetail` of NVIDIA/NVTX: `nvtxTypes.h`, `nvtxImpl.h`, `nvtxImplCore.h`.
//! Profilers may rely on all modules' slots.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{self, null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the profiler; null if missing.
type Slot = AtomicPtr<c_void>;
/// Null at index 0 and after the last slot.
type Entry = Option<&'static Slot>;

/// `nvtxRangePushA`.
type RangePush = unsafe extern "C" fn(*const c_char) -> c_int;
/// `nvtxRangePop`.
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

/// `NVTX_CBID_..._SIZE` in the order of `NvtxCallbackModule`: core, CUDA, OpenCL, CUDA run time, core 2, sync.
const SLOTS: [usize; 6] = [16, 9, 15, 7, 16, 7];

/// Never freed: a profiler may write to the tables later.
struct Tables {
    callbacks: Callbacks,
    version: VersionInfo,
    modules: [Module; SLOTS.len()],
}

struct Module {
    slots: &'static [Slot],
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

static TABLES: OnceLock<&'static Tables> = OnceLock::new();

fn tables() -> &'static Tables {
    TABLES.get_or_init(|| {
        let callbacks = Callbacks { struct_size: size_of::<Callbacks>(), module_function_table };
        let struct_size = size_of::<VersionInfo>();
        let version = VersionInfo { struct_size, version: VERSION, reserved: 0, set_injection_version };
        Box::leak(Box::new(Tables { callbacks, version, modules: SLOTS.map(Module::new) }))
    })
}

/// Implements `NvtxGetExportTableFunc_t`; null for unknown tables.
pub(super) extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        CALLBACKS_TABLE => ptr::from_ref(&tables().callbacks).cast(),
        VERSION_TABLE => ptr::from_ref(&tables().version).cast(),
        _ => null(),
    }
}

/// Implements `GetModuleFunctionTable`: writes a module's table and length and returns 1, or returns 0.
///
/// # Safety
/// `table` and `size` are null or writable.
unsafe extern "C" fn module_function_table(
    module: c_int,
    table: *mut *const Entry,
    size: *mut c_uint,
) -> c_int {
    let index = usize::try_from(module).ok().and_then(|module| module.checked_sub(CORE));
    let Some(found) = index.and_then(|index| tables().modules.get(index)) else { return 0 };
    if !size.is_null() {
        // SAFETY: not null, so the profiler passed a writable pointer.
        unsafe { size.write(c_uint::try_from(found.slots.len()).unwrap_or(0)) };
    }
    if !table.is_null() {
        // SAFETY: as above.
        unsafe { table.write(found.table.as_ptr()) };
    }
    1
}

/// Ignored, as by NVTX itself.
extern "C" fn set_injection_version(_: u32) {}

#[inline]
fn function(slot: usize) -> Option<*mut c_void> {
    let core = TABLES.get()?.modules.first()?;
    let function = core.slots.get(slot)?.load(Ordering::Relaxed);
    (!function.is_null()).then_some(function)
}

pub(super) fn takes_ranges() -> bool {
    [RANGE_PUSH_A, RANGE_POP].into_iter().all(|slot| function(slot).is_some())
}

/// Starts a range in this thread.
///
/// # Safety
/// Slots are empty or filled by a profiler that follows NVTX. `name` is a C string.
#[inline]
pub(super) unsafe fn push(name: *const c_char) {
    if let Some(function) = function(RANGE_PUSH_A) {
        // SAFETY: profilers store a function of this type in this slot.
        let function = unsafe { std::mem::transmute::<*mut c_void, RangePush>(function) };
        // SAFETY: `name` is a C string.
        unsafe { function(name) };
    }
}

/// Ends this thread's last range.
///
/// # Safety
/// As [`push`], which this thread called before.
#[inline]
pub(super) unsafe fn pop() {
    if let Some(function) = function(RANGE_POP) {
        // SAFETY: profilers store a function of this type in this slot.
        let function = unsafe { std::mem::transmute::<*mut c_void, RangePop>(function) };
        // SAFETY: the caller guarantees that this thread started a range.
        unsafe { function() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lie_as_the_headers_say() {
        let callbacks = export_table(1).cast::<usize>();
        let version = export_table(3).cast::<usize>();
        // SAFETY: both tables start with their sizes.
        unsafe {
            assert_eq!((*callbacks, *version), (16, 24));
            assert_eq!(version.add(1).read(), 3);
        }
        assert_eq!([0, 2, 4].map(|id| export_table(id)), [null(); 3]);
        for (module, length) in [(1, 16), (2, 9), (3, 15), (4, 7), (5, 16), (6, 7)] {
            let (mut table, mut size) = (null(), 0);
            let ask = tables().callbacks.module_function_table;
            // SAFETY: both pointers are writable.
            assert_eq!(unsafe { ask(module, &raw mut table, &raw mut size) }, 1);
            assert_eq!(size, length, "module {module}");
            // SAFETY: the table has `size` entries and a final null.
            let entries = unsafe { std::slice::from_raw_parts(table, size as usize + 1) };
            let are_there: Vec<bool> = entries.iter().map(Option::is_some).collect();
            let inner = vec![true; size as usize - 1];
            assert_eq!(are_there, [&[false], inner.as_slice(), &[false]].concat(), "module {module}");
        }
        // SAFETY: the function accepts null.
        unsafe {
            assert_eq!(module_function_table(1, null_mut(), null_mut()), 1);
            assert_eq!(module_function_table(0, null_mut(), null_mut()), 0);
            assert_eq!(module_function_table(7, null_mut(), null_mut()), 0);
        }
        assert_eq!(size_of::<Entry>(), size_of::<*const c_void>());
    }
}
