//! TensorRT's logger, found through the `ILoggerFinder` that it passes to a plugin library.
//!
//! Owns the finders of this copy of the library, and their vtable generations. Never prints to stdout; prints warnings
//! and errors to stderr only if no logger exists.
//!
//! # Two generations
//! `ILogger::log` and `ILoggerFinder::findLogger` are slot 0 of interfaces without a base, or slot 4 of interfaces that
//! derive from `IVersionedInterface` (kinds `ILogger` and `ILoggerFinder`, version 1.0), according to the headers:
//!
//! | library | `getInferLibVersion` | `log`, `findLogger` |
//! |---|---|---|
//! | TensorRT-RTX 1.3, 1.4 | 10300, 10400 | slot 0 |
//! | TensorRT-RTX 1.5 to 1.7 | 10500 to 10799 | slot 4 |
//! | TensorRT Enterprise 10.x | 100000 to 109999 | slot 0 |
//! | TensorRT Enterprise 11.x | 110000 and up | slot 4 |
//!
//! The version is `major * 10000 + minor * 100 + patch` in both families (`NV_TENSORRT_VERSION_INT`); their ranges are
//! disjoint, because V3One plugins exist from Enterprise 10 on. Later releases count as the second generation, whose
//! kind and major version are checked first. Older ones are never called: a wrong slot would destroy the logger.
//!
//! # Whose finder
//! The finder's vptr points into the image of its TensorRT, whose version is used, because a program may contain
//! several releases, and `dlsym` also finds other images' symbols. In all releases seen (TensorRT-RTX 1.7, lean
//! runtimes 10.15 to 11.4) the finder is a static of its image. An application may close one TensorRT while another
//! uses this library, so an image is pinned during a call of its finder, and finders of unmapped images are not called.
//!
//! The calling TensorRT's finder comes first: the plugin's user reads that logger. Its image is on the call stack and
//! needs no pin, so such calls log without the loader's lock. Other finders wait for that lock.

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
    /// No base class: slot 0.
    Bare,
    /// Derived from `IVersionedInterface`: slot 4.
    Versioned,
}

impl Generation {
    /// Maps the value of `getInferLibVersion`; `None` for versions of unknown layout.
    fn of_version(version: i32) -> Option<Self> {
        match version {
            10_300..10_500 | 100_000..110_000 => Some(Self::Bare),
            10_500..100_000 | 110_000.. => Some(Self::Versioned),
            _ => None,
        }
    }

    /// Returns the method of an interface with one method.
    ///
    /// # Safety
    /// `this` is a live object of this generation, whose method is an `F`.
    unsafe fn method<F: Copy>(self, this: *mut c_void) -> F {
        // SAFETY: the caller's promise: the vptr points at such a vtable.
        unsafe {
            match self {
                Self::Bare => (*vptr::<BareSlots<F>>(this)).method,
                Self::Versioned => (*vptr::<DerivedSlots<F>>(this)).method,
            }
        }
    }
}

/// The first version of full TensorRT with V3One plugins; smaller numbers are TensorRT-RTX's.
const FIRST_FULL_VERSION: i32 = 100_000;

static FINDERS: Finders = Finders::new();

/// Before Enterprise 11.0 and RTX 1.5, `ILoggerFinder` and `ILogger` have no base; the destructor of `ILogger` follows
/// `log`.
#[repr(C)]
struct BareSlots<F> {
    method: F,
}

#[repr(C)]
struct DerivedSlots<F> {
    versioned: VersionedSlots,
    method: F,
}

/// `ILogger* findLogger()`: not `noexcept`.
type FindLogger = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
/// `void log(Severity severity, char const* msg) noexcept`
type Log = unsafe extern "C" fn(*mut c_void, Severity, *const c_char);

/// Stores TensorRT's finder. Null removes all finders.
///
/// # Safety
/// `finder` is null or an `ILoggerFinder`. A static of its image lives as long as that image is mapped; any other lives
/// until finders are removed or its image gets another finder, and no thread logs while it is destroyed.
pub unsafe fn set_finder(finder: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { FINDERS.set(finder) };
}

/// For closing the library: statics are never dropped.
pub(crate) fn forget_finders() {
    FINDERS.clear();
}

/// Walks the call stack and queries the loader, so not for `enqueue`.
pub(crate) fn caller() -> Caller {
    FINDERS.caller()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The nearest TensorRT on the call stack has this version.
    Release(i32),
    /// No TensorRT with a known finder is on the call stack. `oldest_full` is the oldest mapped full TensorRT that has
    /// loaded this library.
    Unknown { oldest_full: Option<i32> },
}

impl Caller {
    /// Returns the version of full TensorRT whose interfaces are offered. `None` for TensorRT-RTX, whose releases all
    /// have this crate's interfaces.
    pub(crate) fn full_version(self) -> Option<i32> {
        match self {
            Self::Release(version) => Some(version).filter(|version| *version >= FIRST_FULL_VERSION),
            Self::Unknown { oldest_full } => oldest_full,
        }
    }
}

/// Logs a message through TensorRT's logger, from any thread. Not for destructors, when TensorRT may be gone.
pub fn log(severity: Severity, text: &str) {
    let text = to_c_string(text);
    if let Some(line) = NOTES.line(FINDERS.log(severity, &text), severity, &text) {
        write_to_stderr(&line);
    }
}

/// Logs with [`Severity::VERBOSE`]. Without a finder, the message is not formatted.
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

/// Logs an error with the plugin's name before it.
#[cold]
pub fn error_of(plugin: &CStr, failure: &Error) {
    error(&format!("{}: {failure}", plugin.to_string_lossy()));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Logged,
    /// The application has not yet created a runtime or builder.
    NoLogger,
    NoFinder,
}

struct Finders {
    /// The latest is last. Unlocked while a finder or a logger is called, because a logger may load a library.
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
    /// As for [`set_finder`].
    unsafe fn set(&self, object: *mut c_void) {
        if object.is_null() {
            return self.clear();
        }
        // SAFETY: not null; the rest is the caller's promise.
        let Some(finder) = (unsafe { Finder::new(object) }) else { return };
        // Keeps one finder per mapped image, because applications may open and close TensorRT repeatedly. Querying the
        // loader may run destructors, so the lock is not held.
        let mut gone = self.list().clone();
        gone.retain(|known| known.image.pin().is_none());
        let mut list = self.list();
        let is_gone = |known: &Arc<Finder>| gone.iter().any(|gone| Arc::ptr_eq(gone, known));
        let is_old = |known: &mut Arc<Finder>| known.image == finder.image || is_gone(known);
        let old: Vec<_> = list.extract_if(.., is_old).collect();
        list.push(Arc::new(finder));
        // Dropping a pin may unload a library, whose destructors may log.
        drop(list);
        drop(old);
    }

    fn clear(&self) {
        let old = std::mem::take(&mut *self.list());
        // After unlocking, as in `set`.
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

    /// Logs through the first finder that returns a logger: the caller's, then the latest.
    fn log(&self, severity: Severity, text: &CStr) -> Delivery {
        let mut finders = self.list().clone();
        let caller = index_of_caller(&finders);
        if let Some(index) = caller {
            finders[index..].rotate_left(1);
        }
        // The caller's image stays mapped while its function is on the call stack.
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
    /// Keeps the image mapped if the object is outside of it, where its life cannot be checked.
    pin: Option<Pin>,
}

// SAFETY: TensorRT's finder may be called from any thread; the other fields are `Send` and `Sync`.
unsafe impl Send for Finder {}
// SAFETY: as above.
unsafe impl Sync for Finder {}

impl Finder {
    /// Returns `None` for a release of unknown layout.
    ///
    /// # Safety
    /// `object` is a live `ILoggerFinder`.
    unsafe fn new(object: *mut c_void) -> Option<Self> {
        // SAFETY: a live object starts with its vptr.
        let image = Image::holding(unsafe { vptr::<c_void>(object) })?;
        let pin = image.pin()?;
        let version = version_of(&pin)?;
        let generation = Generation::of_version(version)?;
        // SAFETY: this version's finder derives from `IVersionedInterface`.
        if generation == Generation::Versioned && !unsafe { is_first_version(object, c"ILoggerFinder") } {
            return None;
        }
        let pin = (!image.contains(object)).then_some(pin);
        Some(Self { object, generation, version, image, pin })
    }

    /// `is_mapped` promises that the image stays mapped during the call.
    fn log(&self, is_mapped: bool, severity: Severity, text: &CStr) -> Delivery {
        let pin = if is_mapped { None } else { self.image.pin() };
        if !is_mapped && pin.is_none() {
            return Delivery::NoFinder;
        }
        // SAFETY: the object is read only if it is in the image, which stays mapped during the call, or if `pin` keeps
        // it.
        let is_live = self.pin.is_some()
            || (self.image.contains(self.object) && self.image.contains(unsafe { vptr(self.object) }));
        if !is_live {
            // Another file of the same name was loaded at the same address.
            return Delivery::NoFinder;
        }
        // SAFETY: a live finder of this generation.
        unsafe { log_through(self.object, self.generation, severity, text) }
    }
}

/// # Safety
/// `finder` is a live `ILoggerFinder` of this generation, and stays so for the call.
unsafe fn log_through(
    finder: *mut c_void,
    generation: Generation,
    severity: Severity,
    text: &CStr,
) -> Delivery {
    // SAFETY: the caller answers for the generation, which determines the vtable; `this` is the finder, then its
    // logger, which TensorRT keeps alive while it can be found.
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
    // SAFETY: the first word of a polymorphic object is its vptr.
    unsafe { *this.cast::<*const Slots>() }
}

/// Returns whether an `IVersionedInterface` has this kind and major version 1.
///
/// # Safety
/// `this` is a live object that derives from `IVersionedInterface`.
unsafe fn is_first_version(this: *mut c_void, kind: &CStr) -> bool {
    // SAFETY: the caller's promise.
    let info: InterfaceInfo = unsafe { ((*vptr::<VersionedSlots>(this)).get_interface_info)(this) };
    // SAFETY: a kind is a NUL-terminated constant; null is checked.
    !info.kind.is_null() && info.major == 1 && unsafe { CStr::from_ptr(info.kind) } == kind
}

fn version_of(image: &Pin) -> Option<i32> {
    let symbol = image.symbol(c"getInferLibVersion")?;
    // SAFETY: `extern "C" int32_t getInferLibVersion() noexcept` in every header seen (`NvInferRuntimeBase.h`).
    let get: unsafe extern "C" fn() -> c_int = unsafe { std::mem::transmute(symbol) };
    // SAFETY: it has no arguments and only returns a number.
    Some(unsafe { get() })
}

/// Converts to a C string; a NUL becomes a space.
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

    /// Returns the line for stderr: warnings and errors while TensorRT has no logger, only the first if no finder can
    /// be called.
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

/// Uses `write(2)`, because Rust's streams keep thread-local state.
#[cold]
fn write_to_stderr(line: &[u8]) {
    // SAFETY: the buffer has this length. A failed write loses the message, which has no other destination.
    let _written = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

#[cfg(test)]
mod tests;
