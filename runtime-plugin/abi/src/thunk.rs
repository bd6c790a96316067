use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Result;
use crate::panics;
use crate::raw::{PluginField, PluginFieldCollection};

/// Converts a panic to an error. Asserts unwind safety: implementors' locks are poisoned; this crate's state changes
/// later.
#[inline]
pub fn caught<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => Err(panics::to_error(payload)),
    }
}

/// Ignores panics, which cannot be reported.
#[cold]
pub(crate) fn run_report_hook(report: impl FnOnce()) {
    let _silent = caught(|| {
        report();
        Ok(())
    });
}

/// Returns the array as a slice; empty for null or a nonpositive count.
///
/// # Safety
/// `data` is null or `count` initialized elements, unchanged for `'a`.
#[inline]
pub(crate) unsafe fn slice<'a, T>(data: *const T, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: not null; the caller guarantees the rest.
        Ok(count) if !data.is_null() => unsafe { std::slice::from_raw_parts(data, count) },
        _ => &[],
    }
}

/// Sets every element: C++ may pass uninitialized memory.
///
/// # Safety
/// `data` is null or room for `count` elements, only accessed here for `'a`.
pub(crate) unsafe fn slice_to_fill<'a, T: Copy>(data: *mut T, count: i32, initial: T) -> &'a mut [T] {
    match usize::try_from(count) {
        Ok(count) if !data.is_null() => {
            for index in 0..count {
                // SAFETY: `index` is below `count`, for which the caller guarantees room; `write` reads nothing.
                unsafe { data.add(index).write(initial) };
            }
            // SAFETY: all elements are initialized; the caller guarantees exclusive access for `'a`.
            unsafe { std::slice::from_raw_parts_mut(data, count) }
        }
        _ => &mut [],
    }
}

pub(crate) struct Foreign<T>(pub(crate) T);

// SAFETY: the value is only read, and its pointers are null or refer to constants.
unsafe impl Sync for Foreign<PluginField> {}

// SAFETY: as above.
unsafe impl Sync for Foreign<PluginFieldCollection> {}
