//! Calls the CUDA driver with `cudarc`'s types. `cudarc`'s own functions panic if the driver lacks one, and its enum
//! lacks newer errors. [`call!`] returns errors.

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use cudarc::driver::sys::CUresult;
use libloading::Library;

use crate::error::{DriverError, NoDriver};

/// `cudarc` tries `libcuda.so` first, which may be the toolkit's stub.
const LIBRARY: &str = "libcuda.so.1";

/// Minimum CUDA: 1000 * major + 10 * minor.
const OLDEST: i32 = 12000;

const SUCCESS: c_int = 0;
const NOT_FOUND: c_int = 500;

static OPENED: OnceLock<Library> = OnceLock::new();

/// Looks up a function.
///
/// # Safety
/// `F` is an `unsafe extern "C" fn` with the signature of `name` in `cuda.h`.
unsafe fn find<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller guarantees that the symbol has type `F`, and the library stays open.
    let found = unsafe { OPENED.get()?.get::<F>(name.as_bytes()) };
    found.ok().map(|function| *function)
}

pub(crate) trait Declared {
    /// Unit tests distinguish the types.
    type Arguments: 'static;

    /// Returns `None` if the driver lacks the function.
    ///
    /// # Safety
    /// The arguments satisfy the contract of `name` in `cuda.h`.
    unsafe fn call(name: &str, arguments: Self::Arguments) -> Option<c_int>;
}

macro_rules! declared {
    ($(($($argument:ident)*))*) => {$(
        impl<$($argument: 'static),*> Declared for unsafe fn($($argument),*) -> CUresult {
            type Arguments = ($($argument,)*);

            #[allow(non_snake_case)]
            unsafe fn call(name: &str, ($($argument,)*): Self::Arguments) -> Option<c_int> {
                // SAFETY: `cudarc` generates declarations from `cuda.h`, where `CUresult` has the size of an `int`.
                let function = unsafe { find::<unsafe extern "C" fn($($argument),*) -> c_int>(name) }?;
                // SAFETY: the caller ensures `cuda.h`'s contract.
                Some(unsafe { function($($argument),*) })
            }
        }
    )*};
}

declared! { () (A) (A B) (A B C) (A B C D) (A B C D E F G H) }

/// Calls a driver function. Unsafe: the arguments must satisfy `cuda.h`.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let declared: unsafe fn($($crate::driver::call!(@ $argument)),*) -> _ =
            cudarc::driver::sys::$function;
        $crate::driver::invoke(stringify!($function), declared, ($($argument,)*))
    }};
    (@ $argument:expr) => { _ };
}
pub(crate) use call;

/// Calls a function of the driver, for [`call!`].
///
/// # Safety
/// The caller upholds the contract of [`Declared::call`].
pub(crate) unsafe fn invoke<F: Declared>(
    name: &'static str,
    _: F,
    arguments: F::Arguments,
) -> Result<(), DriverError> {
    // Plain names denote the newest version in `cuda.h`.
    let call = name.strip_suffix("_v2").unwrap_or(name);
    #[cfg(test)]
    if let Some(code) = stand_in::answer(call, &arguments) {
        return check(call, code);
    }
    // SAFETY: the caller ensures `Declared::call`'s contract.
    match unsafe { F::call(name, arguments) } {
        Some(code) => check(call, code),
        None => {
            let text = Some("the driver has no such function".to_owned());
            Err(DriverError { call, code: NOT_FOUND, name: None, text })
        }
    }
}

fn check(call: &'static str, code: c_int) -> Result<(), DriverError> {
    if code == SUCCESS {
        return Ok(());
    }
    let words = |function| {
        // SAFETY: both functions have this signature; the enum is an `int`.
        let function = unsafe { find::<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>(function) };
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: `text` has room for a pointer; any number is accepted.
        let status = unsafe { function?(code, &raw mut text) };
        if status != SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: on success it points to a constant C string.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    Err(DriverError { call, code, name: words("cuGetErrorName"), text: words("cuGetErrorString") })
}

fn unloaded(words: String) -> NoDriver {
    let is_absent = words.contains("libcuda.so.1: cannot open shared object file: No such file or directory");
    if is_absent { NoDriver::NotFound(words) } else { NoDriver::Unloadable(words) }
}

/// Initialized driver. Never closed: it starts threads.
#[derive(Debug, Clone, Copy)]
pub struct Driver(());

impl Driver {
    /// Finds and initializes the driver.
    pub fn load() -> Result<Driver, NoDriver> {
        // SAFETY: NVIDIA's initializers can run in any process.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|error| {
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
        // SAFETY: the call has no pointer arguments; its flags must be 0.
        unsafe { call!(cuInit(0)) }.map_err(NoDriver::Refused)?;
        Ok(driver)
    }

    /// Returns the driver's CUDA version: 1000 * major + 10 * minor.
    pub fn version(self) -> Result<i32, DriverError> {
        let mut version = 0;
        // SAFETY: `version` has room for an `int`.
        unsafe { call!(cuDriverGetVersion(&raw mut version)) }?;
        Ok(version)
    }

    /// Returns the number of visible devices.
    pub fn device_count(self) -> Result<u32, DriverError> {
        let mut count = 0;
        // SAFETY: `count` has room for an `int`.
        unsafe { call!(cuDeviceGetCount(&raw mut count)) }?;
        Ok(u32::try_from(count).unwrap_or(0))
    }
}

pub(crate) fn has_param_info() -> bool {
    // SAFETY: a function pointer can be read as an address; it is not called.
    unsafe { find::<*const ()>("cuKernelGetParamInfo") }.is_some()
}

#[cfg(test)]
pub(crate) mod stand_in {
    use std::any::Any;
    use std::cell::RefCell;

    use super::c_int;

    type Answer = Box<dyn Fn(&'static str, &dyn Any) -> c_int>;

    thread_local! {
        static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
    }

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
                    // SAFETY: the caller passes a pointer to a number of this type.
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
        let error = std::thread::spawn(|| Driver(()).version()).join().unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`cuDriverGetVersion` returned an unknown error (500): the driver has no such function"
        );
        assert!(!has_param_info());
    }
}
