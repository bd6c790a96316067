//! Choosing and loading code objects.
//!
//! Owns: what must hold of their bytes before the driver
//! sees them (`image`), the table of what is loaded ([`CodeTable`]), and its teardown (`teardown`).
//!
//! Never: no launch; no context of its own; no verdict on a digest (who reads a container has compared it) or
//! on an author; no code object
//! loaded twice by one copy of the library, however many nodes, contexts and threads want it; no code unloaded before the
//! library itself goes, because a captured graph may hold its kernels.

#![allow(unsafe_code)] // hands code to the driver

mod error;
mod image;
mod table;
mod teardown;

pub use error::{DeviceFacts, LoadError, Reason, Refused};
pub use image::Malformed;
pub use table::{Candidate, CodeTable, KernelLimits, LoadedKernel, Loading, candidates};
pub use teardown::unload_everything;
