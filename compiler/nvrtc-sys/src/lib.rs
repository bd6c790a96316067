//! NVRTC's C interface, loaded at run time by absolute path.
//!
//! Three rungs: `api` holds the foreign functions as they are, `program` one compile from creation to destruction,
//! and [`Nvrtc`] the library as safe Rust sees it.
//!
//! Owns: finding the functions in a library file, calling them, turning every failure into a value.
//! Never: no search for the library (the caller names a file), no environment, no option of its own, no panic.
//!
//! Facts about the interface are from `nvrtc.h` of CUDA 13.0 and from trying the library of that release (13.0.88).

mod api;
mod error;
mod program;

pub use error::{CompileError, LoadError, OLDEST};
pub use program::{Output, Program};

use std::path::{Path, PathBuf};

/// A loaded NVRTC. NVRTC may be called from any number of threads at once, and so may this.
///
/// The library stays in the process until it ends: NVRTC registers handlers at exit, and unloading gains nothing.
#[derive(Debug)]
pub struct Nvrtc {
    api: api::Api,
    version: (i32, i32),
    path: PathBuf,
}

impl Nvrtc {
    /// Loads the library file at `path`, which has to be absolute, and the built-in headers
    /// (`libnvrtc-builtins.so.<major>.<minor>`) that lie beside it.
    ///
    /// NVRTC opens its built-in headers by bare name at the first compile. They are loaded here by absolute path, so that
    /// the loader already knows the name and no search path is needed.
    ///
    /// # Errors
    /// Where the file is no NVRTC, lacks a function, or has no built-in headers beside it.
    pub fn load(path: &Path) -> Result<Nvrtc, LoadError> {
        if !path.is_absolute() {
            return Err(LoadError::NotAbsolute { path: path.to_owned() });
        }
        let api = api::Api::load(path)?;
        let version = api.version;
        let (major, minor) = version;
        let builtins = path.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
        if !builtins.is_file() {
            return Err(LoadError::MissingBuiltins { path: path.to_owned(), builtins });
        }
        api::keep_loaded(&builtins)?;
        Ok(Nvrtc { api, version, path: path.to_owned() })
    }

    /// The release of CUDA it belongs to, as `(major, minor)`.
    #[must_use]
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// The file it was loaded from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The architectures it can compile for, ascending, as numbers such as 89. Targets with a suffix (`90a`) are not listed.
    ///
    /// # Errors
    /// Where NVRTC refuses to tell.
    pub fn supported_archs(&self) -> Result<Vec<u32>, LoadError> {
        self.api.supported_archs()
    }

    /// Compiles one program.
    ///
    /// # Errors
    /// With NVRTC's log where it rejects the program or an option, and where a text holds a NUL byte.
    pub fn compile(&self, program: &Program) -> Result<Output, CompileError> {
        program::compile(&self.api, program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_refused() {
        let error = Nvrtc::load(Path::new("libnvrtc.so")).unwrap_err();
        assert_eq!(error.to_string(), "`libnvrtc.so` is not an absolute path");
    }

    #[test]
    fn what_is_no_library_is_an_error() {
        let error = Nvrtc::load(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, LoadError::Open { .. }), "{error}");
        let error = Nvrtc::load(Path::new("/no/such/libnvrtc.so.13")).unwrap_err();
        // In the words of glibc's loader (tried with 2.36), without the path that stands before them.
        let why = "cannot open shared object file: No such file or directory";
        assert_eq!(error.to_string(), format!("cannot load `/no/such/libnvrtc.so.13`: {why}"));
    }
}
