//! The exports of a plugin library. Owns its creators from the first `getCreators` to [`Library::release`]. Never
//! calls TensorRT's registry, whose vtable differs between releases.
//!
//! `IPluginRegistry::loadLibrary` calls `setLoggerFinder`, which must exist, then `getCreators`. Deregistering calls
//! only `getCreators`.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::creator::CreatorList;
use crate::error::Result;
use crate::logger::Caller;
use crate::thunk::{caught, run_report_hook};
use crate::vtable::This;
use crate::{logger, panics};

/// The state behind [`plugin_library!`](crate::plugin_library).
pub struct Library {
    list: fn() -> Result<CreatorList>,
    creators: OnceLock<Owned>,
    /// Whether the next `getCreators` registers.
    is_loading: AtomicBool,
    has_given_quick: AtomicBool,
}

struct Owned(NonNull<CreatorList>);

// SAFETY: the value owns the list, which is `Send`.
unsafe impl Send for Owned {}
// SAFETY: shared references only lend the list, which is `Sync`.
unsafe impl Sync for Owned {}

impl Library {
    /// Declares a library; an error of `list` is logged and leaves it empty.
    pub const fn new(list: fn() -> Result<CreatorList>) -> Self {
        Self {
            list,
            creators: OnceLock::new(),
            is_loading: AtomicBool::new(true),
            has_given_quick: AtomicBool::new(false),
        }
    }

    /// Returns the creators, equal for all threads.
    pub fn creators(&self) -> &CreatorList {
        let list =
            self.creators.get_or_init(|| Owned(NonNull::from(Box::leak(Box::new(self.make_creators())))));
        // SAFETY: the list lives until `release`, whose caller guarantees that no call follows.
        unsafe { list.0.as_ref() }
    }

    /// Returns the creators for registering if TensorRT has set a finder since the last call, otherwise for
    /// deregistering: registries would call remaining ones in unmapped memory.
    pub(crate) fn creators_for(&self, caller: Caller) -> &[This] {
        let is_loading = self.is_loading.swap(false, Ordering::Relaxed);
        let creators = self.creators();
        let too_old = caller.full_version().filter(|version| *version < FIRST_WITH_QUICK);
        if is_loading {
            self.has_given_quick.fetch_or(too_old.is_none(), Ordering::Relaxed);
            if let Some(version) = too_old {
                for op in creators.quick_names() {
                    run_report_hook(|| logger::error(&left_out(op, version)));
                }
            }
            return creators.for_registering(too_old.is_none());
        }
        let has_quick = match caller {
            Caller::Release(_) => too_old.is_none(),
            // Any registry may be calling.
            Caller::Unknown { .. } => self.has_given_quick.load(Ordering::Relaxed),
        };
        creators.for_deregistering(has_quick)
    }

    /// Frees the creators and removes the logger finders.
    ///
    /// # Safety
    /// No function or creator of this library runs any more.
    pub unsafe fn release(&self) {
        logger::forget_finders();
        let Some(list) = self.creators.get() else { return };
        let _silent = caught(|| {
            // SAFETY: the pointer is from a `Box`; the caller guarantees that the list is not used later.
            drop(unsafe { Box::from_raw(list.0.as_ptr()) });
            Ok(())
        });
    }

    fn make_creators(&self) -> CreatorList {
        caught(self.list).unwrap_or_else(|error| {
            run_report_hook(|| {
                logger::error(&format!("cubinder: cannot register the plugins of this library: {error}"));
            });
            CreatorList::new()
        })
    }

    /// Implements `getCreators`.
    ///
    /// # Safety
    /// `count` is null or writable.
    pub unsafe fn get_creators(&self, count: *mut i32) -> *const This {
        panics::install_silent_hook();
        let creators = caught(|| Ok(self.creators_for(logger::caller()))).unwrap_or(&[]);
        if !count.is_null() {
            // SAFETY: not null; the caller guarantees the rest.
            unsafe { count.write(i32::try_from(creators.len()).unwrap_or(0)) };
        }
        creators.as_ptr()
    }

    /// Implements `setLoggerFinder`.
    ///
    /// # Safety
    /// As [`logger::set_finder`].
    pub unsafe fn set_logger_finder(&self, finder: *mut c_void) {
        panics::install_silent_hook();
        let _silent = caught(|| {
            // SAFETY: the caller upholds the callee's contract.
            unsafe { logger::set_finder(finder) };
            Ok(())
        });
        self.expect_loading();
    }

    pub(crate) fn expect_loading(&self) {
        self.is_loading.store(true, Ordering::Relaxed);
    }
}

const FIRST_WITH_QUICK: i32 = 100_900;

fn left_out(op: &str, version: i32) -> String {
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    format!(
        "cubinder: `{op}` is not registered: it requires TensorRT 10.9, found {major}.{minor}.{patch}\n\
         compile it with `route = \"plugin\"`, or use TensorRT 10.9 or later"
    )
}

/// Exports TensorRT's entry points from a `fn() -> Result<CreatorList>`, once per `cdylib`.
#[macro_export]
macro_rules! plugin_library {
    ($list:path) => {
        static TENSORRT_LIBRARY: $crate::Library = $crate::Library::new($list);

        /// # Safety
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn getCreators(count: *mut i32) -> *const $crate::vtable::This {
            // SAFETY: TensorRT passes null or a pointer to its own integer.
            unsafe { TENSORRT_LIBRARY.get_creators(count) }
        }

        /// # Safety
        /// Only TensorRT may call the functions.
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn setLoggerFinder(finder: *mut ::std::ffi::c_void) {
            // SAFETY: TensorRT passes null or a finder that outlives its registration.
            unsafe { TENSORRT_LIBRARY.set_logger_finder(finder) }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::tests::{Mood, ProbeCreator, QuickProbeCreator};

    fn two() -> Result<CreatorList> {
        let mut list = CreatorList::new();
        list.push(ProbeCreator::new(Mood::Well));
        list.push(ProbeCreator::new(Mood::Failing));
        Ok(list)
    }

    #[test]
    fn all_threads_see_the_same_creators() {
        static LIBRARY: Library = Library::new(two);
        let addresses = || LIBRARY.creators().as_slice().iter().map(|this| this.addr()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(addresses)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), addresses());
        }
        assert_eq!(addresses().len(), 2);
    }

    #[test]
    fn creators_that_share_a_name_are_deregistered_from_the_last_to_the_first() {
        fn different() -> Result<CreatorList> {
            let mut list = CreatorList::new();
            list.push(ProbeCreator::new(Mood::Well));
            list.push(ProbeCreator::new(Mood::Panicking));
            Ok(list)
        }
        for (list, turns) in [(two as fn() -> _, true), (different, false)] {
            let library = Library::new(list);
            let asked = || library.creators_for(Caller::Release(10_701)).to_vec();
            let registered = asked();
            assert_eq!(registered, library.creators().as_slice());
            let mut deregistered = registered.clone();
            if turns {
                deregistered.reverse();
            }
            assert_eq!([asked(), asked()], [deregistered.clone(), deregistered.clone()]);
            // `setLoggerFinder` would silence all tests' panics.
            library.expect_loading();
            assert_eq!([asked(), asked()], [registered, deregistered]);
        }
    }

    #[test]
    fn quick_creators_are_left_out_for_a_tensorrt_without_them() {
        let both = || {
            let mut list = CreatorList::new();
            list.push_quick(QuickProbeCreator::new(Mood::Well));
            list.push(ProbeCreator::new(Mood::Well));
            Ok(list)
        };
        let unknown = |oldest_full| Caller::Unknown { oldest_full };
        for (caller, count) in [
            (unknown(None), 2),
            (unknown(Some(100_900)), 2),
            (unknown(Some(100_899)), 1),
            (Caller::Release(10_300), 2),
            (Caller::Release(100_900), 2),
            (Caller::Release(110_400), 2),
            (Caller::Release(100_801), 1),
        ] {
            let library = Library::new(both);
            let asked = || library.creators_for(caller).to_vec();
            let (registered, deregistered) = (asked(), asked());
            assert_eq!((registered.len(), &registered), (count, &deregistered), "{caller:?}");
            assert_eq!(registered, library.creators().as_slice()[2 - count..]);
        }
        let library = Library::new(both);
        assert_eq!(library.creators().quick_names(), ["sample::quick_probe"]);
        let message = left_out("sample::quick_probe", 100_801);
        assert!(message.lines().next().unwrap().len() <= 100);
        assert_eq!(
            message,
            "cubinder: `sample::quick_probe` is not registered: it requires TensorRT 10.9, found 10.8.1\n\
             compile it with `route = \"plugin\"`, or use TensorRT 10.9 or later"
        );
    }

    #[test]
    fn released_creators_are_freed() {
        static SEEN: OnceLock<std::sync::Arc<std::sync::Mutex<Vec<String>>>> = OnceLock::new();
        fn one_creator() -> Result<CreatorList> {
            let creator = ProbeCreator::new(Mood::Well);
            let _ = SEEN.set(creator.seen.clone());
            let mut list = CreatorList::new();
            list.push(creator);
            Ok(list)
        }
        let _turn = crate::tests::PROCESS_FINDERS.lock().unwrap();
        let library = Library::new(one_creator);
        // SAFETY: no list exists yet, so none is used later.
        unsafe { library.release() };
        assert_eq!(library.creators().as_slice().len(), 1);
        let holders = || std::sync::Arc::strong_count(SEEN.get().unwrap());
        assert_eq!(holders(), 2);
        // SAFETY: the list is not used afterwards.
        unsafe { library.release() };
        assert_eq!(holders(), 1);
    }

    #[test]
    fn a_list_that_fails_is_empty_and_stays_so() {
        for list in [|| Err(Error::internal("no")), || panic!("no")] as [fn() -> Result<CreatorList>; 2] {
            let library = Library::new(list);
            assert_eq!(library.creators().as_slice().len(), 0);
            assert_eq!(library.creators().as_slice().len(), 0);
        }
    }
}
