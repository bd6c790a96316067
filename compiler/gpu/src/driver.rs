//! Calls of the CUDA driver, with the types and function signatures that `cudarc` declares.
//!
//! `cudarc`'s functions themselves are not called: they panic if the driver lacks one of them, and they return a Rust enum, which has no
//! value for the errors of newer drivers. [`call!`] looks the function up by name and returns errors as values.

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use cudarc::driver::sys::CUresult;
use libloading::Library;

use crate::error::{DriverError, NoDriver};

/// The name under which the driver is installed. `cudarc` tries `libcuda.so` first, which may be the CUDA toolkit's stub.
const LIBRARY: &str = "libcuda.so.1";

/// The oldest CUDA whose driver has all functions that are called here: 1000 * major + 10 * minor.
const OLDEST: i32 = 12000;

/// `CUDA_SUCCESS`.
const SUCCESS: c_int = 0;
/// `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: c_int = 500;

/// The library, once [`Driver::load`] has opened it.
static OPENED: OnceLock<Library> = OnceLock::new();

/// Looks a function of the driver up.
///
/// # Safety
/// `F` is an `unsafe extern "C" fn` with the signature that `cuda.h` gives to the name.
unsafe fn find<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller's promise; the library is never closed.
    let found = unsafe { OPENED.get()?.get::<F>(name.as_bytes()) };
    found.ok().map(|function| *function)
}

/// A function as `cudarc` declares it.
pub(crate) trait Declared {
    /// `'static` so that unit tests can tell the types apart.
    type Arguments: 'static;

    /// Calls the driver's function; `None` if it has no such function.
    ///
    /// # Safety
    /// `name` is the function's, and the arguments satisfy its contract in `cuda.h`.
    unsafe fn call(name: &str, arguments: Self::Arguments) -> Option<c_int>;
}

macro_rules! declared {
    ($(($($argument:ident)*))*) => {$(
        impl<$($argument: 'static),*> Declared for unsafe fn($($argument),*) -> CUresult {
            type Arguments = ($($argument,)*);

            #[allow(non_snake_case)]
            unsafe fn call(name: &str, ($($argument,)*): Self::Arguments) -> Option<c_int> {
                // SAFETY: `cudarc` generates its declarations from `cuda.h`, where `CUresult` is as large as an `int`.
                let function = unsafe { find::<unsafe extern "C" fn($($argument),*) -> c_int>(name) }?;
                // SAFETY: the caller's promise.
                Some(unsafe { function($($argument),*) })
            }
        }
    )*};
}

declared! { () (A) (A B) (A B C) (A B C D) (A B C D E F G H) }

/// Calls a function of the driver by its name in the library. Unsafe: the arguments have to satisfy its contract in `cuda.h`.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let declared: unsafe fn($($crate::driver::call!(@ $argument)),*) -> _ =
            cudarc::driver::sys::$function;
        $crate::driver::invoke(stringify!($function), declared, ($($argument,)*))
    }};
    (@ $argument:expr) => { _ };
}
pub(crate) use call;

/// What [`call!`] expands to.
///
/// # Safety
/// As for [`Declared::call`].
pub(crate) unsafe fn invoke<F: Declared>(
    name: &'static str,
    _: F,
    arguments: F::Arguments,
) -> Result<(), DriverError> {
    // The name that `cuda.h` gives to the newest version.
    let call = name.strip_suffix("_v2").unwrap_or(name);
    #[cfg(test)]
    if let Some(code) = stand_in::answer(call, &arguments) {
        return check(call, code);
    }
    // SAFETY: the caller's promise.
    match unsafe { F::call(name, arguments) } {
        Some(code) => check(call, code),
        None => {
            let text = Some("the driver has no such function".to_owned());
            Err(DriverError { call, code: NOT_FOUND, name: None, text })
        }
    }
}

/// `Ok` for success, otherwise the error with the driver's own name and words for it.
fn check(call: &'static str, code: c_int) -> Result<(), DriverError> {
    if code == SUCCESS {
        return Ok(());
    }
    let words = |function| {
        // SAFETY: this is the signature of both functions, but for the enum.
        let function = unsafe { find::<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>(function) };
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: `text` is a place for one pointer; any number may be asked about.
        let status = unsafe { function?(code, &raw mut text) };
        if status != SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: on success it points to a constant C string of the driver.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    Err(DriverError { call, code, name: words("cuGetErrorName"), text: words("cuGetErrorString") })
}

/// Classifies the loader's message, which is glibc's: the driver is absent, or it exists and cannot be loaded (a file of another
/// architecture, a missing library that it needs, no permission).
fn unloaded(words: String) -> NoDriver {
    let is_absent = words.contains("libcuda.so.1: cannot open shared object file: No such file or directory");
    if is_absent { NoDriver::NotFound(words) } else { NoDriver::Unloadable(words) }
}

/// The driver, open and initialized. It is never closed: it starts threads, and unloading it under
/// them is defined nowhere.
#[derive(Debug, Clone, Copy)]
pub struct Driver(());

impl Driver {
    /// Finds and initializes the driver.
    ///
    /// # Errors
    /// Where there is none, or one that is too old or has no usable device.
    pub fn load() -> Result<Driver, NoDriver> {
        // SAFETY: what runs when the library is loaded is NVIDIA's, made to be loaded into any process.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|error| {
            // The loader's own words are behind those of the crate.
            let words = std::error::Error::source(&error).map(ToString::to_string);
            unloaded(words.unwrap_or_else(|| error.to_string()))
        })?;
        OPENED.get_or_init(|| library);
        Driver::initialize()
    }

    fn initialize() -> Result<Driver, NoDriver> {
        let driver = Driver(());
        let version = driver.version().map_err(NoDriver::Refused)?;
        if version < OLDEST {
            return Err(NoDriver::TooOld(version));
        }
        // SAFETY: flags must be 0.
        unsafe { call!(cuInit(0)) }.map_err(NoDriver::Refused)?;
        Ok(driver)
    }

    /// The newest CUDA that the driver supports: 1000 * major + 10 * minor.
    ///
    /// # Errors
    /// The driver's.
    pub fn version(self) -> Result<i32, DriverError> {
        let mut version = 0;
        // SAFETY: `version` is a place for one `int`.
        unsafe { call!(cuDriverGetVersion(&raw mut version)) }?;
        Ok(version)
    }

    /// How many devices the process sees.
    ///
    /// # Errors
    /// The driver's.
    pub fn device_count(self) -> Result<u32, DriverError> {
        let mut count = 0;
        // SAFETY: `count` is a place for one `int`.
        unsafe { call!(cuDeviceGetCount(&raw mut count)) }?;
        Ok(u32::try_from(count).unwrap_or(0))
    }
}

/// Whether the driver has `cuKernelGetParamInfo`, which is new in CUDA 12.4.
pub(crate) fn has_param_info() -> bool {
    // SAFETY: a function of any signature is an address, and this one is not called.
    unsafe { find::<*const ()>("cuKernelGetParamInfo") }.is_some()
}

/// Replaces the driver in unit tests.
#[cfg(test)]
pub(crate) mod stand_in {
    use std::any::Any;
    use std::cell::RefCell;

    use super::c_int;

    type Answer = Box<dyn Fn(&'static str, &dyn Any) -> c_int>;

    thread_local! {
        static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
    }

    /// Answers the calls of this thread with the result of `answer`, which gets the function's name and the tuple of its arguments.
    pub(crate) fn install(answer: impl Fn(&'static str, &dyn Any) -> c_int + 'static) {
        ANSWER.set(Some(Box::new(answer)));
    }

    pub(super) fn answer(call: &'static str, arguments: &dyn Any) -> Option<c_int> {
        ANSWER.with_borrow(|answer| answer.as_ref().map(|answer| answer(call, arguments)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_driver_that_is_not_there_is_not_found() {
        let of = |words: &str| matches!(unloaded(words.to_owned()), NoDriver::NotFound(_));
        assert!(of("libcuda.so.1: cannot open shared object file: No such file or directory"));
        for words in [
            "libcuda.so.1: cannot open shared object file: Permission denied",
            "libnvidia-glcore.so: cannot open shared object file: No such file or directory",
            "/usr/lib/libcuda.so.1: file too short",
        ] {
            assert!(!of(words), "{words}");
        }
    }

    #[test]
    fn drivers_are_too_old_before_12_0() {
        for (version, is_too_old) in [(11080, true), (12000, false), (13000, false)] {
            stand_in::install(move |_, arguments| {
                if let Some((to,)) = arguments.downcast_ref::<(*mut c_int,)>() {
                    // SAFETY: the caller's place for a number.
                    unsafe { to.write(version) };
                }
                SUCCESS
            });
            let refused = Driver::initialize().err();
            assert_eq!(refused, is_too_old.then_some(NoDriver::TooOld(version)));
        }
    }

    #[test]
    fn a_missing_function_is_an_error() {
        // No test opens a driver. A new thread has no stand-in.
        let error = std::thread::spawn(|| Driver(()).version()).join().unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`cuDriverGetVersion` returned an error that the driver has no name for (500): the driver has no such function"
        );
        assert!(!has_param_info());
    }
}
