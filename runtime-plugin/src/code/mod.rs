//! Choosing, checking, loading and unloading code objects.
//!
//! Never loads one twice per library copy, or unloads it before the library: captured graphs may use it.

#![allow(unsafe_code)] // hands code to the driver

mod error;
mod image;
mod table;
mod teardown;

pub use error::{DeviceFacts, LoadError, Reason, Refused};
pub use image::Malformed;
pub use table::{Candidate, CodeTable, KernelLimits, LoadedKernel, Loading, candidates};
pub use teardown::unload_everything;
