//! The CUDA driver's C interface, found at run time: types and numbers ([`sys`]), functions ([`Driver`]), safe
//! wrappers, errors ([`DriverError`]).
//!
//! Never links against `libcuda`, caches a failure (a driver may appear later), decides what to load or launch, or
//! closes the driver, whose threads may run.

#![allow(unsafe_code)] // calls into C

mod calls;
mod capture;
mod context;
mod error;
mod queue;
pub mod result;
pub mod sys;
mod table;

pub use capture::{RelaxedCapture, in_relaxed_capture_mode};
pub use context::EnteredContext;
pub use cubinder_model::fit::ComputeCapability;
pub use error::DriverMissing;
pub use queue::{Configuration, MAX_LAUNCH_ATTRIBUTES};
pub use result::{DriverError, Result};
pub use table::{Driver, last_loader_error};
