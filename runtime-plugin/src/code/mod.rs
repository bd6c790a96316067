//! Choosing and loading code objects.
//!
//! Owns the checks of their bytes before the driver reads them (`image`), the table of loaded code ([`CodeTable`]), and
//! its teardown (`teardown`).
//!
//! Never launches, creates a context or judges digests (the container's reader compared them); never loads a code
//! object twice in one copy of the library, or unloads it before the library, because a captured graph may use its
//! kernels.

#![allow(unsafe_code)] // hands code to the driver

mod error;
mod image;
mod table;
mod teardown;

pub use error::{DeviceFacts, LoadError, Reason, Refused};
pub use image::Malformed;
pub use table::{Candidate, CodeTable, KernelLimits, LoadedKernel, Loading, candidates};
pub use teardown::unload_everything;
