//! TensorRT's logger, found through the `ILoggerFinder` that it hands to a plugin library.
//!
//! Owns: the finder of this copy of the library, and the decision which generation of vtable it has. Never:
//! no print to stdout; stderr only when there is no logger, and then once.
//!
//! # Two generations
//! `ILogger::log` and `ILoggerFinder::findLogger` are slot 0 of interfaces without a base, or slot 4 of
//! interfaces that derive from `IVersionedInterface` (kinds `ILogger` and `ILoggerFinder`, version 1.0). Read
//! from the headers:
//!
//! | library | `getInferLibVersion` | `log`, `findLogger` |
//! |---|---|---|
//! | TensorRT-RTX 1.3, 1.4 | 10300, 10400 | slot 0 |
//! | TensorRT-RTX 1.5 to 1.7 | 10500 to 10799 | slot 4 |
//! | TensorRT Enterprise 10.x | 100000 to 109999 | slot 0 |
//! | TensorRT Enterprise 11.x | 110000 and up | slot 4 |
//!
//! The version is `major * 10000 + minor * 100 + patch` in both families (`NV_TENSORRT_VERSION_INT`). They
//! cannot be confused: V3One plugins exist from Enterprise 10 on, and RTX counts from 1. Later releases are
//! taken for the second generation, whose kind and major version are asked before anything is called through
//! it; a change would show there. Anything older is left alone: calling a wrong slot would destroy the
//! logger.
//!
//! # Finding the version
//! `dlsym(RTLD_DEFAULT, "getInferLibVersion")` finds nothing in Python or trtexec, where TensorRT is loaded
//! with local visibility. The finder's vptr points into the library that made it: `dladdr` names its file,
//! `dlopen` with `RTLD_NOLOAD` gives its handle. Where there is none (the main program apart), there is no version.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::error::Error;
use crate::raw::InterfaceInfo;
pub use crate::raw::Severity;
use crate::vtable::VersionedSlots;

/// Which vtables the library in this process has.
#[repr(usize)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// No logger that could be called.
    Unknown = 0,
    /// No base class: slot 0.
    Bare = 1,
    /// Derived from `IVersionedInterface`: slot 4.
    Versioned = 2,
}

impl Generation {
    fn from_bits(bits: usize) -> Self {
        match bits {
            1 => Self::Bare,
            2 => Self::Versioned,
            _ => Self::Unknown,
        }
    }

    /// By the value of `getInferLibVersion`.
    fn of_version(version: i32) -> Self {
        match version {
            10_300..10_500 | 100_000..110_000 => Self::Bare,
            10_500..100_000 | 110_000.. => Self::Versioned,
            _ => Self::Unknown,
        }
    }
}

/// Where [`FINDER`] keeps a [`Generation`].
const GENERATION_BITS: usize = 0b11;

/// The finder, with its generation in the lowest two bits, so that both change together. C++ objects with a
/// vptr are aligned to 8 bytes.
static FINDER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static SAID_ON_STDERR: AtomicBool = AtomicBool::new(false);

/// Vtable of `ILoggerFinder` without a base.
#[repr(C)]
struct BareFinderSlots {
    find_logger: FindLogger,
}

/// Vtable of `ILoggerFinder` from Enterprise 11.0 and RTX 1.5 on.
#[repr(C)]
struct VersionedFinderSlots {
    versioned: VersionedSlots,
    find_logger: FindLogger,
}

/// Vtable of `ILogger` without a base; its destructor comes after `log`.
#[repr(C)]
struct BareLoggerSlots {
    log: Log,
}

/// Vtable of `ILogger` from Enterprise 11.0 and RTX 1.5 on.
#[repr(C)]
struct VersionedLoggerSlots {
    versioned: VersionedSlots,
    log: Log,
}

/// `ILogger* findLogger()`: not `noexcept`.
type FindLogger = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
/// `void log(Severity severity, char const* msg) noexcept`
type Log = unsafe extern "C" fn(*mut c_void, Severity, *const c_char);

/// Keeps the finder that TensorRT hands over. Null takes the logger away again.
///
/// # Safety
/// `finder` is null or an `ILoggerFinder` that lives until it is replaced, or until the library is not called
/// any more.
pub unsafe fn set_finder(finder: *mut c_void) {
    // SAFETY: null is checked; a live finder starts with a vptr.
    let generation = if finder.is_null() { Generation::Unknown } else { unsafe { generation_of(finder) } };
    FINDER.store(finder.map_addr(|address| address | generation as usize), Ordering::Release);
}

/// Says something to TensorRT's user. Safe to call from any thread; not from destructors, when TensorRT may
/// be gone.
pub fn log(severity: Severity, text: &str) {
    let text = to_c_string(text);
    // SAFETY: the finder is live (`set_finder`'s contract) and of the generation stored with it.
    let logged = unsafe { log_through(finder_in_use(), severity, &text) };
    if !logged {
        say_once_on_stderr(&text);
    }
}

/// [`log`] with [`Severity::VERBOSE`], where there is a logger: the text is made only then.
pub fn verbose(text: impl FnOnce() -> String) {
    let finder = finder_in_use();
    if !finder.0.is_null() && !matches!(finder.1, Generation::Unknown) {
        log(Severity::VERBOSE, &text());
    }
}

/// [`log`] with [`Severity::ERROR`].
#[cold]
pub fn error(text: &str) {
    log(Severity::ERROR, text);
}

/// An error with the plugin's name before it.
#[cold]
pub fn error_of(plugin: &CStr, failure: &Error) {
    error(&format!("{}: {failure}", plugin.to_string_lossy()));
}

fn finder_in_use() -> (*mut c_void, Generation) {
    let tagged = FINDER.load(Ordering::Acquire);
    (
        tagged.map_addr(|address| address & !GENERATION_BITS),
        Generation::from_bits(tagged.addr() & GENERATION_BITS),
    )
}

/// Whether the text reached a logger.
///
/// # Safety
/// The finder is null or live and of this generation.
unsafe fn log_through(
    (finder, generation): (*mut c_void, Generation),
    severity: Severity,
    text: &CStr,
) -> bool {
    if finder.is_null() {
        return false;
    }
    // SAFETY: the caller answers for the generation, which decides what the vptr points at; `this` is the
    // finder, then the logger that it returned, which TensorRT keeps alive while the library is in use.
    unsafe {
        match generation {
            Generation::Unknown => false,
            Generation::Bare => {
                let logger = ((*vptr::<BareFinderSlots>(finder)).find_logger)(finder);
                if logger.is_null() {
                    return false;
                }
                ((*vptr::<BareLoggerSlots>(logger)).log)(logger, severity, text.as_ptr());
                true
            }
            Generation::Versioned => {
                let logger = ((*vptr::<VersionedFinderSlots>(finder)).find_logger)(finder);
                if logger.is_null() || !is_first_version(logger, c"ILogger") {
                    return false;
                }
                ((*vptr::<VersionedLoggerSlots>(logger)).log)(logger, severity, text.as_ptr());
                true
            }
        }
    }
}

/// # Safety
/// `this` is a live C++ object whose vtable starts with `Slots`.
unsafe fn vptr<Slots>(this: *mut c_void) -> *const Slots {
    // SAFETY: the first word of a polymorphic object is its vptr.
    unsafe { *this.cast::<*const Slots>() }
}

/// Asks an `IVersionedInterface` for kind and major version.
///
/// # Safety
/// `this` is a live object that derives from `IVersionedInterface`.
unsafe fn is_first_version(this: *mut c_void, kind: &CStr) -> bool {
    // SAFETY: the caller's promise.
    let info: InterfaceInfo = unsafe { ((*vptr::<VersionedSlots>(this)).get_interface_info)(this) };
    // SAFETY: a kind is a NUL-terminated constant; null is checked.
    !info.kind.is_null() && info.major == 1 && unsafe { CStr::from_ptr(info.kind) } == kind
}

/// # Safety
/// `finder` is a live `ILoggerFinder`.
unsafe fn generation_of(finder: *mut c_void) -> Generation {
    // SAFETY: a live object starts with its vptr, which lies in the library that made it.
    let version = unsafe { library_version(vptr::<c_void>(finder)) };
    match version.map_or(Generation::Unknown, Generation::of_version) {
        // SAFETY: this version's finder derives from `IVersionedInterface`.
        Generation::Versioned if !unsafe { is_first_version(finder, c"ILoggerFinder") } => {
            Generation::Unknown
        }
        generation => generation,
    }
}

/// `getInferLibVersion()` of the library that holds `address`, looked up there and in what it is linked with.
///
/// # Safety
/// `address` lies in a loaded library.
unsafe fn library_version(address: *const c_void) -> Option<i32> {
    let scope = Scope::of(address)?;
    // SAFETY: the scope is a live handle or a constant, the name a text.
    let symbol = unsafe { libc::dlsym(scope.handle(), c"getInferLibVersion".as_ptr()) };
    (!symbol.is_null()).then(|| {
        // SAFETY: `extern "C" int32_t getInferLibVersion() noexcept` in every header seen
        // (`NvInferRuntimeBase.h`).
        let get: unsafe extern "C" fn() -> c_int = unsafe { std::mem::transmute(symbol) };
        // SAFETY: it takes nothing and only answers.
        unsafe { get() }
    })
}

/// Where `dlsym` looks for a symbol that belongs to an address.
#[derive(Debug, PartialEq, Eq)]
enum Scope {
    /// The main program, which has no handle of its own: what is visible to everybody, the program first.
    Program,
    /// A library and what it is linked with. The reference to it is given back when the scope goes.
    Library(NonNull<c_void>),
}

impl Scope {
    /// `None` where the address lies in no library that the loader hands out. What is visible to everybody would then be the
    /// answer of another TensorRT, and a call through the wrong slot.
    fn of(address: *const c_void) -> Option<Self> {
        let info = place_of(address)?;
        // SAFETY: `dli_fname` is a text of the loader's, as `place_of` has checked. NOLOAD runs no code; it only counts a
        // reference.
        let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        NonNull::new(handle).map(Self::Library).or_else(|| is_program(&info).then_some(Self::Program))
    }

    fn handle(&self) -> *mut c_void {
        match self {
            Self::Program => libc::RTLD_DEFAULT,
            Self::Library(handle) => handle.as_ptr(),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Self::Library(handle) = self {
            // SAFETY: gives back the reference that `of` took; the library stays, since it is calling us.
            unsafe { libc::dlclose(handle.as_ptr()) };
        }
    }
}

/// The file that an address was loaded from: its name, which is not null, and where it begins in memory.
fn place_of(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: `Dl_info` is made of pointers, for which null is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` only compares the address; `info` is writable.
    let found = unsafe { libc::dladdr(address, &raw mut info) } != 0;
    (found && !info.dli_fname.is_null()).then_some(info)
}

/// Whether this is where the main program lies, in which the kernel shows its program headers (`getauxval(3)`).
fn is_program(info: &libc::Dl_info) -> bool {
    // SAFETY: it takes a number and answers with one, 0 where there is none.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    let program =
        usize::try_from(headers).ok().and_then(|headers| place_of(ptr::without_provenance(headers)));
    program.is_some_and(|program| program.dli_fbase == info.dli_fbase)
}

/// A text for C; a NUL in it would end it early, so it becomes a space.
fn to_c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// For a process without a logger: one line, by `write(2)`, because Rust's own streams keep thread-local
/// state.
#[cold]
fn say_once_on_stderr(text: &CStr) {
    if SAID_ON_STDERR.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut line = text.to_bytes().to_vec();
    line.extend_from_slice(
        b"\n(TensorRT's logger cannot be reached from this plugin library; later messages are dropped)\n",
    );
    // SAFETY: the buffer has this length. A short or failed write loses a message that has no other way out.
    let _written = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

#[cfg(test)]
mod tests;
