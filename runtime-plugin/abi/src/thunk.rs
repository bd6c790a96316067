//! Helpers of all thunks: catching panics, and slices from foreign pointers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Result;
use crate::panics;
use crate::raw::{PluginField, PluginFieldCollection};

/// A panic becomes an error with its text. Unwind safety is asserted: the implementor's locks are poisoned, and this
/// crate updates its own state afterwards.
#[inline]
pub(crate) fn caught<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => Err(panics::to_error(payload)),
    }
}

/// A panic of the hook cannot be reported.
#[cold]
pub(crate) fn run_report_hook(report: impl FnOnce()) {
    let _silent = caught(|| {
        report();
        Ok(())
    });
}

/// Empty for null or a count that is not positive.
///
/// # Safety
/// `data` is null or `count` initialized elements, unchanged for `'a`.
#[inline]
pub(crate) unsafe fn slice<'a, T>(data: *const T, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: not null; otherwise the caller's promise.
        Ok(count) if !data.is_null() => unsafe { std::slice::from_raw_parts(data, count) },
        _ => &[],
    }
}

/// Sets every element, because C++ may pass uninitialized memory.
///
/// # Safety
/// `data` is null or room for `count` elements, only accessed here for `'a`.
pub(crate) unsafe fn slice_to_fill<'a, T: Copy>(data: *mut T, count: i32, initial: T) -> &'a mut [T] {
    match usize::try_from(count) {
        Ok(count) if !data.is_null() => {
            for index in 0..count {
                // SAFETY: within the caller's room; `write` reads nothing.
                unsafe { data.add(index).write(initial) };
            }
            // SAFETY: all elements are initialized.
            unsafe { std::slice::from_raw_parts_mut(data, count) }
        }
        _ => &mut [],
    }
}

pub(crate) struct Foreign<T>(pub(crate) T);

// SAFETY: a field is only read, and its pointers refer to constants or are null.
unsafe impl Sync for Foreign<PluginField> {}

// SAFETY: a collection is only read, and its pointer refers to a constant or is null.
unsafe impl Sync for Foreign<PluginFieldCollection> {}
