//! The foreign functions, by the names and types of `nvrtc.h`, and the library that holds them.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::error::LoadError;

/// `nvrtcResult`: 0 is success.
pub(crate) type ResultCode = c_int;
/// `NVRTC_SUCCESS`.
pub(crate) const SUCCESS: ResultCode = 0;
/// `NVRTC_ERROR_INVALID_OPTION`.
pub(crate) const INVALID_OPTION: ResultCode = 5;
/// `NVRTC_ERROR_COMPILATION`.
pub(crate) const COMPILATION: ResultCode = 6;

/// `nvrtcProgram`: a pointer to something that only NVRTC knows.
pub(crate) type ProgramHandle = *mut c_void;

type SizeOf = unsafe extern "C" fn(ProgramHandle, *mut usize) -> ResultCode;
type CopyOut = unsafe extern "C" fn(ProgramHandle, *mut c_char) -> ResultCode;

/// The functions that a compile needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Api {
    pub(crate) create_program: unsafe extern "C" fn(
        *mut ProgramHandle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> ResultCode,
    pub(crate) destroy_program: unsafe extern "C" fn(*mut ProgramHandle) -> ResultCode,
    pub(crate) compile_program:
        unsafe extern "C" fn(ProgramHandle, c_int, *const *const c_char) -> ResultCode,
    pub(crate) add_name_expression: unsafe extern "C" fn(ProgramHandle, *const c_char) -> ResultCode,
    pub(crate) get_lowered_name:
        unsafe extern "C" fn(ProgramHandle, *const c_char, *mut *const c_char) -> ResultCode,
    pub(crate) log_size: SizeOf,
    pub(crate) log: CopyOut,
    pub(crate) cubin_size: SizeOf,
    pub(crate) cubin: CopyOut,
    pub(crate) ptx_size: SizeOf,
    pub(crate) ptx: CopyOut,
    error_string: unsafe extern "C" fn(ResultCode) -> *const c_char,
    pub(crate) version: (i32, i32),
    number_of_archs: unsafe extern "C" fn(*mut c_int) -> ResultCode,
    archs: unsafe extern "C" fn(*mut c_int) -> ResultCode,
}

impl Api {
    /// Loads the library at `path` for good and looks up every function.
    pub(crate) fn load(path: &Path) -> Result<Api, LoadError> {
        let library = keep_loaded(path)?;
        let version = version_of(&library, path)?;
        let missing = |function| LoadError::TooOld { path: path.to_owned(), found: version, function };
        // SAFETY: each field's type is the function's type in `nvrtc.h`, C calling convention, and the library stays
        // loaded: its handle is forgotten below, and `keep_loaded` holds a reference of its own.
        let api = unsafe {
            Api {
                create_program: function(&library, "nvrtcCreateProgram", missing)?,
                destroy_program: function(&library, "nvrtcDestroyProgram", missing)?,
                compile_program: function(&library, "nvrtcCompileProgram", missing)?,
                add_name_expression: function(&library, "nvrtcAddNameExpression", missing)?,
                get_lowered_name: function(&library, "nvrtcGetLoweredName", missing)?,
                log_size: function(&library, "nvrtcGetProgramLogSize", missing)?,
                log: function(&library, "nvrtcGetProgramLog", missing)?,
                cubin_size: function(&library, "nvrtcGetCUBINSize", missing)?,
                cubin: function(&library, "nvrtcGetCUBIN", missing)?,
                ptx_size: function(&library, "nvrtcGetPTXSize", missing)?,
                ptx: function(&library, "nvrtcGetPTX", missing)?,
                error_string: function(&library, "nvrtcGetErrorString", missing)?,
                version,
                number_of_archs: function(&library, "nvrtcGetNumSupportedArchs", missing)?,
                archs: function(&library, "nvrtcGetSupportedArchs", missing)?,
            }
        };
        Ok(api)
    }

    /// `nvrtcGetSupportedArchs`.
    pub(crate) fn supported_archs(&self) -> Result<Vec<u32>, LoadError> {
        let mut count = 0;
        // SAFETY: the pointer is to a live integer that the function writes.
        let code = unsafe { (self.number_of_archs)(&raw mut count) };
        self.check("nvrtcGetNumSupportedArchs", code)?;
        let mut archs: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has as many elements as the library has just said it will write.
        let code = unsafe { (self.archs)(archs.as_mut_ptr()) };
        self.check("nvrtcGetSupportedArchs", code)?;
        Ok(archs.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect())
    }

    /// NVRTC's words for a result code.
    pub(crate) fn describe(&self, code: ResultCode) -> String {
        // SAFETY: the function takes any number and returns a static text or null.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            return format!("NVRTC error {code}");
        }
        // SAFETY: not null, and NVRTC returns static texts that end in NUL.
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

/// `nvrtcVersion`, which every release has; asked before any other function is looked up.
fn version_of(library: &Library, path: &Path) -> Result<(i32, i32), LoadError> {
    type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> ResultCode;
    // SAFETY: the type is the function's in `nvrtc.h`, and it is called while the library is loaded.
    let Ok(function) = (unsafe { library.get::<Version>("nvrtcVersion") }) else {
        return Err(LoadError::NotNvrtc { path: path.to_owned() });
    };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers are to live integers that the function writes.
    match unsafe { function(&raw mut major, &raw mut minor) } {
        SUCCESS => Ok((major, minor)),
        code => Err(LoadError::Call { call: "nvrtcVersion", code, reason: format!("NVRTC error {code}") }),
    }
}

/// The function `name` of a library.
///
/// # Safety
/// `F` is the type of the function, and the library is never unloaded.
unsafe fn function<F: Copy>(
    library: &Library,
    name: &'static str,
    missing: impl FnOnce(&'static str) -> LoadError,
) -> Result<F, LoadError> {
    // SAFETY: the caller answers for the type and for the library staying loaded.
    unsafe { library.get::<F>(name) }.map(|symbol| *symbol).map_err(|_| missing(name))
}

/// Loads a library that is never unloaded again, and returns a handle that counts as one more reference.
pub(crate) fn keep_loaded(path: &Path) -> Result<Library, LoadError> {
    let open = || {
        // SAFETY: loading runs the library's initializers. The caller names NVRTC or its built-in headers; both are meant
        // to be loaded at run time and set up only their own state.
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| LoadError::Open {
            path: path.to_owned(),
            reason: describe_load_error(&error, path),
        })
    };
    std::mem::forget(open()?);
    open()
}

/// The loader's own words (dlerror(3)), which stand behind those of the crate. Where they begin with the path, without it: it is said already.
fn describe_load_error(error: &libloading::Error, path: &Path) -> String {
    let words = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    match words.strip_prefix(&format!("{}: ", path.display())) {
        Some(rest) => rest.to_owned(),
        None => words,
    }
}
