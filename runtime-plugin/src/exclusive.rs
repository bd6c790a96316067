//! A cell for one thread at a time that never waits: if TensorRT breaks its promise about execution contexts, an error
//! results, not undefined behavior.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Exclusive<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` lends one `&mut T` at a time; `T: Send` allows any thread.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    #[inline]
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let _release = Release(&self.busy);
        // SAFETY: the flag was false: no other reference exists; `_release` resets it after `use_it`.
        Some(use_it(unsafe { &mut *self.value.get() }))
    }
}

struct Release<'a>(&'a AtomicBool);

impl Drop for Release<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_user_is_turned_away_and_the_next_is_not() {
        let cell = Exclusive::<i32>::default();
        let inner = cell.with(|value| {
            *value = 1;
            cell.with(|_| ()).is_none()
        });
        assert_eq!(inner, Some(true));
        assert_eq!(cell.with(|value| *value), Some(1));
    }

    #[test]
    fn a_panic_does_not_keep_it_busy() {
        let cell = Exclusive::<i32>::default();
        let caught =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cell.with(|_| panic!("on purpose"))));
        assert!(caught.is_err());
        assert!(cell.with(|_| ()).is_some());
    }

    #[test]
    fn threads_never_meet_inside() {
        let cell = Exclusive::<u64>::default();
        let done: u64 = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..1000).filter(|_| cell.with(|value| *value += 1).is_some()).count() as u64
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(cell.with(|value| *value), Some(done));
    }
}
