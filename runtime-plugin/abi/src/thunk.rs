//! What every thunk needs: stopping panics, and slices from foreign pointers.
//!
//! Owns: the `catch_unwind` of this crate. Never: no interface-specific knowledge.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Result;
use crate::panics;

/// Runs `body`; a panic becomes an error with the panic's text.
///
/// Asserting unwind safety: after a panic the implementor's own state may be half changed, but that is safe
/// memory, and its locks are poisoned. What this crate keeps is written after the implementor has returned.
#[inline]
pub(crate) fn caught<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => Err(panics::to_error(payload)),
    }
}

/// Runs a report hook, which is the implementor's code too: a panic in it has nowhere left to go.
#[cold]
pub(crate) fn run_report_hook(report: impl FnOnce()) {
    let _silent = caught(|| {
        report();
        Ok(())
    });
}

/// A foreign array; null or a count that is not positive is an empty one.
///
/// # Safety
/// `data` is null or points at `count` initialized elements, unchanged for `'a`.
#[inline]
pub(crate) unsafe fn slice<'a, T>(data: *const T, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: not null; the caller answers for the elements.
        Ok(count) if !data.is_null() => unsafe { std::slice::from_raw_parts(data, count) },
        _ => &[],
    }
}

/// A foreign array to be written, with every element set to `initial` first, since C++ may hand over raw
/// memory.
///
/// # Safety
/// `data` is null or points at room for `count` elements that nobody else touches for `'a`.
pub(crate) unsafe fn slice_to_fill<'a, T: Copy>(data: *mut T, count: i32, initial: T) -> &'a mut [T] {
    match usize::try_from(count) {
        Ok(count) if !data.is_null() => {
            for index in 0..count {
                // SAFETY: within the room that the caller answers for; `write` reads nothing.
                unsafe { data.add(index).write(initial) };
            }
            // SAFETY: all elements are initialized now.
            unsafe { std::slice::from_raw_parts_mut(data, count) }
        }
        _ => &mut [],
    }
}

/// A constant of NVIDIA's that holds pointers.
pub(crate) struct Foreign<T>(pub(crate) T);

// SAFETY: a shared one is only read, as are the constants that its pointers lead to.
unsafe impl<T> Sync for Foreign<T> {}
