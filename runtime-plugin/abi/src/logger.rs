//! TensorRT's logger, found through the `ILoggerFinder` that it passes to a plugin library. Prints to stderr only while
//! no logger exists.
//!
//! # Two generations
//! `ILogger::log` and `ILoggerFinder::findLogger` are slot 0 of interfaces without a base in TensorRT-RTX 1.3 and 1.4
//! (`getInferLibVersion` 10300, 10400) and Enterprise 10.x (100000 to 109999), and slot 4 of interfaces derived from
//! `IVersionedInterface` (version 1.0) in TensorRT-RTX 1.5 to 1.7 (10500 to 10799) and Enterprise 11.x (from 110000).
//!
//! Later releases count as the second; their kind and major version are checked first. Older ones are never called: a
//! wrong slot would destroy the logger.
//!
//! # Several TensorRTs
//! A finder's version is that of its vptr's image, pinned during calls (waiting for the loader's lock), because another
//! thread may close it. The calling TensorRT's finder comes first, without a pin: the call stack keeps its image.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::image::{self, Image, Pin};
use crate::raw::InterfaceInfo;
pub use crate::raw::Severity;
use crate::vtable::VersionedSlots;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    Bare,
    Versioned,
}

impl Generation {
    /// `None` if the layout is unknown.
    fn of_version(version: i32) -> Option<Self> {
        match version {
            10_300..10_500 | 100_000..110_000 => Some(Self::Bare),
            10_500..100_000 | 110_000.. => Some(Self::Versioned),
            _ => None,
        }
    }

    /// # Safety
    /// `this` is a live object of this generation whose one method is an `F`.
    unsafe fn method<F: Copy>(self, this: *mut c_void) -> F {
        // SAFETY: the caller upholds the callee's contract.
        unsafe {
            match self {
                Self::Bare => (*vptr::<BareSlots<F>>(this)).method,
                Self::Versioned => (*vptr::<DerivedSlots<F>>(this)).method,
            }
        }
    }
}

/// The first full TensorRT with V3One plugins.
const FIRST_FULL_VERSION: i32 = 100_000;

static FINDERS: Finders = Finders::new();

#[repr(C)]
struct BareSlots<F> {
    method: F,
}

#[repr(C)]
struct DerivedSlots<F> {
    versioned: VersionedSlots,
    method: F,
}

/// `findLogger`, which is not `noexcept`.
type FindLogger = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Log = unsafe extern "C" fn(*mut c_void, Severity, *const c_char);

/// Stores TensorRT's finder. Null removes all finders.
///
/// # Safety
/// `finder` is null, or an `ILoggerFinder` that lives while its image is mapped, or until removed or replaced; no
/// thread logs while it is destroyed.
pub unsafe fn set_finder(finder: *mut c_void) {
    // SAFETY: the caller upholds the callee's contract.
    unsafe { FINDERS.set(finder) };
}

/// Statics are never dropped.
pub(crate) fn forget_finders() {
    FINDERS.clear();
}

/// Walks the call stack: not for `enqueue`.
pub(crate) fn caller() -> Caller {
    FINDERS.caller()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The nearest TensorRT on the call stack.
    Release(i32),
    /// `oldest_full`: the oldest mapped full TensorRT that has loaded this library.
    Unknown { oldest_full: Option<i32> },
}

impl Caller {
    /// Returns full TensorRT's version; `None` for TensorRT-RTX, which always has this crate's interfaces.
    pub(crate) fn full_version(self) -> Option<i32> {
        match self {
            Self::Release(version) => Some(version).filter(|version| *version >= FIRST_FULL_VERSION),
            Self::Unknown { oldest_full } => oldest_full,
        }
    }
}

/// Logs a message from any thread. Not for destructors: TensorRT may be gone.
pub fn log(severity: Severity, text: &str) {
    let text = to_c_string(text);
    if let Some(line) = NOTES.line(FINDERS.log(severity, &text), severity, &text) {
        write_to_stderr(&line);
    }
}

/// Logs with [`Severity::VERBOSE`]. Formats only with a finder.
pub fn verbose(text: impl FnOnce() -> String) {
    if !FINDERS.list().is_empty() {
        log(Severity::VERBOSE, &text());
    }
}

/// Logs with [`Severity::ERROR`].
#[cold]
pub fn error(text: &str) {
    log(Severity::ERROR, text);
}

/// Logs an error after the plugin's name.
#[cold]
pub fn error_of(plugin: &CStr, failure: &Error) {
    error(&format!("{}: {failure}", plugin.to_string_lossy()));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Logged,
    /// The application has created no runtime or builder yet.
    NoLogger,
    NoFinder,
}

struct Finders {
    /// Latest last. Not locked during calls: a logger may load a library.
    list: Mutex<Vec<Arc<Finder>>>,
}

impl Finders {
    const fn new() -> Self {
        Self { list: Mutex::new(Vec::new()) }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Finder>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// As [`set_finder`].
    unsafe fn set(&self, object: *mut c_void) {
        if object.is_null() {
            return self.clear();
        }
        // SAFETY: not null; the caller guarantees a live finder.
        let Some(finder) = (unsafe { Finder::new(object) }) else { return };
        // Applications may reopen TensorRT. Loader queries may run destructors, hence unlocked.
        let mut gone = self.list().clone();
        gone.retain(|known| known.image.pin().is_none());
        let mut list = self.list();
        let is_gone = |known: &Arc<Finder>| gone.iter().any(|gone| Arc::ptr_eq(gone, known));
        let is_old = |known: &mut Arc<Finder>| known.image == finder.image || is_gone(known);
        let old: Vec<_> = list.extract_if(.., is_old).collect();
        list.push(Arc::new(finder));
        // Dropping a pin may unload a library whose destructors log.
        drop(list);
        drop(old);
    }

    fn clear(&self) {
        let old = std::mem::take(&mut *self.list());
        // Dropped after unlocking, as in `set`.
        drop(old);
    }

    fn caller(&self) -> Caller {
        let finders = self.list().clone();
        if let Some(index) = index_of_caller(&finders) {
            return Caller::Release(finders[index].version);
        }
        let full = finders.iter().filter(|finder| finder.version >= FIRST_FULL_VERSION);
        let mapped = full.filter(|finder| finder.image.pin().is_some());
        Caller::Unknown { oldest_full: mapped.map(|finder| finder.version).min() }
    }

    fn log(&self, severity: Severity, text: &CStr) -> Delivery {
        let mut finders = self.list().clone();
        let caller = index_of_caller(&finders);
        if let Some(index) = caller {
            finders[index..].rotate_left(1);
        }
        // The caller's image is mapped while on the call stack.
        let mut is_mapped = caller.is_some();
        let mut delivery = Delivery::NoFinder;
        for finder in finders.iter().rev() {
            match finder.log(std::mem::take(&mut is_mapped), severity, text) {
                Delivery::Logged => return Delivery::Logged,
                Delivery::NoLogger => delivery = Delivery::NoLogger,
                Delivery::NoFinder => {}
            }
        }
        delivery
    }
}

fn index_of_caller(finders: &[Arc<Finder>]) -> Option<usize> {
    let mut index = None;
    image::search_callers(&mut |image| {
        index = finders.iter().position(|finder| finder.image == *image);
        index.is_some()
    });
    index
}

#[derive(Debug)]
struct Finder {
    object: *mut c_void,
    generation: Generation,
    version: i32,
    image: Image,
    /// Keeps the image mapped if it does not contain the object.
    pin: Option<Pin>,
}

// SAFETY: TensorRT's finder may be called in any thread, and the pointer is only passed to it.
unsafe impl Send for Finder {}
// SAFETY: as above.
unsafe impl Sync for Finder {}

impl Finder {
    /// # Safety
    /// `object` is a live `ILoggerFinder`.
    unsafe fn new(object: *mut c_void) -> Option<Self> {
        // SAFETY: the object is live, and starts with its vptr.
        let image = Image::holding(unsafe { vptr::<c_void>(object) })?;
        let pin = image.pin()?;
        let version = version_of(&pin)?;
        let generation = Generation::of_version(version)?;
        // SAFETY: finders of this generation derive from `IVersionedInterface`.
        if generation == Generation::Versioned && !unsafe { is_first_version(object, c"ILoggerFinder") } {
            return None;
        }
        let pin = (!image.contains(object)).then_some(pin);
        Some(Self { object, generation, version, image, pin })
    }

    /// Logs through the finder; `is_mapped`: its image stays mapped.
    fn log(&self, is_mapped: bool, severity: Severity, text: &CStr) -> Delivery {
        let pin = if is_mapped { None } else { self.image.pin() };
        if !is_mapped && pin.is_none() {
            return Delivery::NoFinder;
        }
        // SAFETY: the object is in the image, which stays mapped by `is_mapped` or `pin`.
        let is_live = self.pin.is_some()
            || (self.image.contains(self.object) && self.image.contains(unsafe { vptr(self.object) }));
        if !is_live {
            // Another file of this name is at this address.
            return Delivery::NoFinder;
        }
        // SAFETY: the finder is live, and of this generation.
        unsafe { log_through(self.object, self.generation, severity, text) }
    }
}

/// # Safety
/// `finder` is a live `ILoggerFinder` of this generation.
unsafe fn log_through(
    finder: *mut c_void,
    generation: Generation,
    severity: Severity,
    text: &CStr,
) -> Delivery {
    // SAFETY: the finder is live, the generation determines both vtables, and TensorRT keeps its logger alive.
    unsafe {
        let logger = generation.method::<FindLogger>(finder)(finder);
        if logger.is_null() {
            return Delivery::NoLogger;
        }
        if generation == Generation::Versioned && !is_first_version(logger, c"ILogger") {
            return Delivery::NoFinder;
        }
        generation.method::<Log>(logger)(logger, severity, text.as_ptr());
    }
    Delivery::Logged
}

/// # Safety
/// `this` is a live C++ object whose vtable starts with `Slots`.
unsafe fn vptr<Slots>(this: *mut c_void) -> *const Slots {
    // SAFETY: the first word of a live polymorphic object is its vptr.
    unsafe { *this.cast::<*const Slots>() }
}

/// # Safety
/// `this` derives from `IVersionedInterface` and is live.
unsafe fn is_first_version(this: *mut c_void, kind: &CStr) -> bool {
    // SAFETY: the caller upholds the callee's contract.
    let info: InterfaceInfo = unsafe { ((*vptr::<VersionedSlots>(this)).get_interface_info)(this) };
    // SAFETY: `kind` is not null, as checked before, and a constant C string.
    !info.kind.is_null() && info.major == 1 && unsafe { CStr::from_ptr(info.kind) } == kind
}

fn version_of(image: &Pin) -> Option<i32> {
    let symbol = image.symbol(c"getInferLibVersion")?;
    // SAFETY: the symbol is `extern "C" int32_t getInferLibVersion() noexcept` (`NvInferRuntimeBase.h`).
    let get: unsafe extern "C" fn() -> c_int = unsafe { std::mem::transmute(symbol) };
    // SAFETY: as above.
    Some(unsafe { get() })
}

/// NULs become spaces.
fn to_c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

struct Notes {
    without_logger: AtomicBool,
    without_finder: AtomicBool,
}

static NOTES: Notes = Notes::new();

impl Notes {
    const fn new() -> Self {
        Self { without_logger: AtomicBool::new(false), without_finder: AtomicBool::new(false) }
    }

    /// Line for stderr; without a finder only the first.
    fn line(&self, delivery: Delivery, severity: Severity, text: &CStr) -> Option<Vec<u8>> {
        if severity.0 > Severity::WARNING.0 {
            return None;
        }
        let is_first = |flag: &AtomicBool| !flag.swap(true, Ordering::Relaxed);
        let note: &[u8] = match delivery {
            Delivery::Logged => return None,
            Delivery::NoLogger if is_first(&self.without_logger) => {
                b"\n(TensorRT has no logger yet; until it has one, warnings and errors of this plugin library go to stderr)\n"
            }
            Delivery::NoLogger => b"\n",
            Delivery::NoFinder if is_first(&self.without_finder) => {
                b"\n(TensorRT's logger cannot be reached from this plugin library; later messages are dropped)\n"
            }
            Delivery::NoFinder => return None,
        };
        Some([text.to_bytes(), note].concat())
    }
}

/// Writes without Rust's streams, which keep thread-local state.
#[cold]
fn write_to_stderr(line: &[u8]) {
    // SAFETY: the buffer has this length.
    let _written = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

#[cfg(test)]
mod tests;
