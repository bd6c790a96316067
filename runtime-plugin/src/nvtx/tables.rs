//! What a profiler is handed to attach itself, and the two functions that it is asked for.
//!
//! The facts are those of NVTX 3.1.0, `c/include/nvtx3/nvtxDetail` of the public repository NVIDIA/NVTX: names, numbers and
//! structures of `nvtxTypes.h`, what the functions answer of `nvtxImpl.h`, and that a function which no profiler gave does nothing of
//! `nvtxImplCore.h`. A program has one such set of tables for each library that compiles those headers, so a profiler copes with
//! several. The functions of all modules have a place, because a profiler may take it for granted; two of them are called.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{self, null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where a profiler writes the address of its function; null means that there is none.
type Slot = AtomicPtr<c_void>;
/// An entry of a `NvtxFunctionTable`: the address of a slot, null at index 0 and behind the last one.
type Entry = Option<&'static Slot>;

/// `nvtxRangePushA`: `int (const char*)`.
type RangePush = unsafe extern "C" fn(*const c_char) -> c_int;
/// `nvtxRangePop`: `int (void)`.
type RangePop = unsafe extern "C" fn() -> c_int;

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

/// For each module its slots, and the table of their addresses, which is longer by an entry. The lengths are those of `NVTX_CBID_..._SIZE`.
macro_rules! modules {
    ($($slots:ident $table:ident $length:literal $longer:literal;)*) => {
        $(
            static $slots: [Slot; $length] = [const { Slot::new(null_mut()) }; $length];
            static $table: [Entry; $longer] = entries(&$slots);
        )*
    };
}

modules! {
    CORE CORE_TABLE 16 17;
    CUDA CUDA_TABLE 9 10;
    OPENCL OPENCL_TABLE 15 16;
    CUDART CUDART_TABLE 7 8;
    CORE2 CORE2_TABLE 16 17;
    SYNC SYNC_TABLE 7 8;
}

const fn entries<const SLOTS: usize, const ENTRIES: usize>(
    slots: &'static [Slot; SLOTS],
) -> [Entry; ENTRIES] {
    assert!(ENTRIES == SLOTS + 1);
    let mut entries = [None; ENTRIES];
    let mut index = 1;
    while index < SLOTS {
        entries[index] = Some(&slots[index]);
        index += 1;
    }
    entries
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    module_function_table: unsafe extern "C" fn(c_int, *mut *const Entry, *mut c_uint) -> c_int,
}

static CALLBACKS: Callbacks = Callbacks { struct_size: size_of::<Callbacks>(), module_function_table };

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_injection_version: extern "C" fn(u32),
}

static VERSION_INFO: VersionInfo = VersionInfo {
    struct_size: size_of::<VersionInfo>(),
    version: VERSION,
    reserved: 0,
    set_injection_version,
};

/// `NvtxGetExportTableFunc_t`: what a profiler's `InitializeInjectionNvtx2` is given. Null for tables that there are not.
pub(super) extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        CALLBACKS_TABLE => ptr::from_ref(&CALLBACKS).cast(),
        VERSION_TABLE => ptr::from_ref(&VERSION_INFO).cast(),
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
    // `NvtxCallbackModule`.
    let entries: &'static [Entry] = match module {
        1 => &CORE_TABLE,
        2 => &CUDA_TABLE,
        3 => &OPENCL_TABLE,
        4 => &CUDART_TABLE,
        5 => &CORE2_TABLE,
        6 => &SYNC_TABLE,
        _ => return 0,
    };
    if !size.is_null() {
        // SAFETY: not null, so writable. The last entry is not counted.
        unsafe { size.write(c_uint::try_from(entries.len() - 1).unwrap_or(0)) };
    }
    if !table.is_null() {
        // SAFETY: not null, so writable.
        unsafe { table.write(entries.as_ptr()) };
    }
    1
}

/// What it is told is ignored, as NVTX itself does.
extern "C" fn set_injection_version(_: u32) {}

/// Whether a profiler wants both ends of ranges.
pub(super) fn takes_ranges() -> bool {
    [RANGE_PUSH_A, RANGE_POP].iter().all(|slot| !CORE[*slot].load(Ordering::Relaxed).is_null())
}

/// Begins a range in the calling thread, where a profiler takes it.
///
/// # Safety
/// What is in the slots was put there by a profiler that keeps to NVTX. `name` is a C string.
#[inline]
pub(super) unsafe fn push(name: *const c_char) {
    let function = CORE[RANGE_PUSH_A].load(Ordering::Relaxed);
    if !function.is_null() {
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
    let function = CORE[RANGE_POP].load(Ordering::Relaxed);
    if !function.is_null() {
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
            let ask = CALLBACKS.module_function_table;
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
