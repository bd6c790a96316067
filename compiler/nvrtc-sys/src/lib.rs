//! NVRTC's C interface, loaded at run time by absolute path.
//!
//! Two rungs: `api` holds the foreign functions as they are, in [`Nvrtc`]; `program` one compile from creation to destruction.
//!
//! Owns: finding the functions in a library file, calling them, turning every failure into a value.
//! Never: no search for the library (the caller names a file), no environment, no option of its own, no panic.
//!
//! Facts about the interface are from `nvrtc.h` of CUDA 13.0 and from trying the library of that release (13.0.88).

mod api;
mod error;
mod program;

pub use api::Nvrtc;
pub use error::{CompileError, LoadError, OLDEST};
pub use program::{Output, Program};
