//! NVRTC's C interface, loaded by absolute path, as [`Nvrtc`]. Every failure is a value.
//!
//! Never searches for libraries, reads the environment, adds options or panics. Source: `nvrtc.h` of CUDA 13.0, tested with 13.0.88.

mod api;
mod error;
mod program;

pub use api::Nvrtc;
pub use error::{CompileError, LoadError, OLDEST};
pub use program::{Output, Program};
