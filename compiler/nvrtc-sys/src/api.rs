//! NVRTC's foreign functions, as in `nvrtc.h`, and the loaded library.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::error::LoadError;

/// `nvrtcResult`.
pub(crate) type ResultCode = c_int;
/// `NVRTC_SUCCESS`.
pub(crate) const SUCCESS: ResultCode = 0;
/// `NVRTC_ERROR_INVALID_OPTION`.
pub(crate) const INVALID_OPTION: ResultCode = 5;
/// `NVRTC_ERROR_COMPILATION`.
pub(crate) const COMPILATION: ResultCode = 6;

/// `nvrtcProgram`, an opaque pointer.
pub(crate) type ProgramHandle = *mut c_void;

macro_rules! api {
    ($($name:literal $visibility:vis $field:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Loaded NVRTC, usable from several threads. Never unloaded: it registers exit handlers.
        #[derive(Debug, Clone, Copy)]
        pub struct Nvrtc {
            version: (i32, i32),
            $($visibility $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Nvrtc {
            fn load_functions(path: &Path) -> Result<Nvrtc, LoadError> {
                let library = keep_loaded(path)?;
                let version = version_of(&library, path)?;
                let missing = |function| LoadError::TooOld { path: path.to_owned(), found: version, function };
                // SAFETY: fields have the functions' types in `nvrtc.h`; `keep_loaded` keeps the library.
                Ok(Nvrtc { version, $($field: *unsafe { library.get($name) }.map_err(|_| missing($name))?,)* })
            }
        }
    };
}

api! {
    "nvrtcCreateProgram" pub(crate) create_program: fn(
        *mut ProgramHandle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> ResultCode;
    "nvrtcDestroyProgram" pub(crate) destroy_program: fn(*mut ProgramHandle) -> ResultCode;
    "nvrtcCompileProgram" pub(crate) compile_program: fn(ProgramHandle, c_int, *const *const c_char) -> ResultCode;
    "nvrtcAddNameExpression" pub(crate) add_name_expression: fn(ProgramHandle, *const c_char) -> ResultCode;
    "nvrtcGetLoweredName" pub(crate) get_lowered_name: fn(ProgramHandle, *const c_char, *mut *const c_char) -> ResultCode;
    "nvrtcGetProgramLogSize" pub(crate) log_size: fn(ProgramHandle, *mut usize) -> ResultCode;
    "nvrtcGetProgramLog" pub(crate) log: fn(ProgramHandle, *mut c_char) -> ResultCode;
    "nvrtcGetCUBINSize" pub(crate) cubin_size: fn(ProgramHandle, *mut usize) -> ResultCode;
    "nvrtcGetCUBIN" pub(crate) cubin: fn(ProgramHandle, *mut c_char) -> ResultCode;
    "nvrtcGetPTXSize" pub(crate) ptx_size: fn(ProgramHandle, *mut usize) -> ResultCode;
    "nvrtcGetPTX" pub(crate) ptx: fn(ProgramHandle, *mut c_char) -> ResultCode;
    "nvrtcGetErrorString" error_string: fn(ResultCode) -> *const c_char;
    "nvrtcGetNumSupportedArchs" number_of_archs: fn(*mut c_int) -> ResultCode;
    "nvrtcGetSupportedArchs" archs: fn(*mut c_int) -> ResultCode;
}

impl Nvrtc {
    /// Loads the library at the absolute `path`, and `libnvrtc-builtins.so.<major>.<minor>` beside it, which NVRTC
    /// would search by bare name at the first compile. Fails if it is not NVRTC, or lacks a function or that file.
    pub fn load(path: &Path) -> Result<Nvrtc, LoadError> {
        if !path.is_absolute() {
            return Err(LoadError::NotAbsolute(path.to_owned()));
        }
        let nvrtc = Nvrtc::load_functions(path)?;
        let (major, minor) = nvrtc.version;
        let builtins = path.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
        if !builtins.is_file() {
            return Err(LoadError::MissingBuiltins(path.to_owned(), builtins));
        }
        keep_loaded(&builtins)?;
        Ok(nvrtc)
    }

    /// Returns the CUDA release as `(major, minor)`.
    #[must_use]
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Returns the supported architectures in ascending order (89), without suffixed ones (`90a`).
    pub fn supported_archs(&self) -> Result<Vec<u32>, LoadError> {
        let mut count = 0;
        // SAFETY: `count` is a live integer.
        let code = unsafe { (self.number_of_archs)(&raw mut count) };
        self.check("nvrtcGetNumSupportedArchs", code)?;
        let mut archs: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has the reported number of elements.
        let code = unsafe { (self.archs)(archs.as_mut_ptr()) };
        self.check("nvrtcGetSupportedArchs", code)?;
        Ok(archs.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect())
    }

    /// Returns NVRTC's description of a result code.
    pub(crate) fn describe(&self, code: ResultCode) -> String {
        // SAFETY: the function accepts any number, and returns a static string or null.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            return format!("NVRTC error {code}");
        }
        // SAFETY: `text` is not null, and NVRTC's strings are static and NUL-terminated.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    fn check(&self, call: &'static str, code: ResultCode) -> Result<(), LoadError> {
        if code == SUCCESS {
            Ok(())
        } else {
            Err(LoadError::Call { call, code, reason: self.describe(code) })
        }
    }
}

/// Returns the release. Called before other lookups, because every release has `nvrtcVersion`.
fn version_of(library: &Library, path: &Path) -> Result<(i32, i32), LoadError> {
    type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> ResultCode;
    // SAFETY: the function has this type in `nvrtc.h`, and the library stays loaded during the call.
    let Ok(function) = (unsafe { library.get::<Version>("nvrtcVersion") }) else {
        return Err(LoadError::NotNvrtc(path.to_owned()));
    };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers refer to live integers.
    match unsafe { function(&raw mut major, &raw mut minor) } {
        SUCCESS => Ok((major, minor)),
        code => Err(LoadError::Call { call: "nvrtcVersion", code, reason: format!("NVRTC error {code}") }),
    }
}

fn keep_loaded(path: &Path) -> Result<Library, LoadError> {
    let open = || {
        // SAFETY: loading runs initializers; NVRTC and its built-in headers initialize only their own state.
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| LoadError::Open(path.to_owned(), describe_load_error(&error, path)))
    };
    std::mem::forget(open()?);
    open()
}

/// Returns dlerror(3)'s message without the path, which the error has.
fn describe_load_error(error: &libloading::Error, path: &Path) -> String {
    let words = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    match words.strip_prefix(&format!("{}: ", path.display())) {
        Some(rest) => rest.to_owned(),
        None => words,
    }
}
