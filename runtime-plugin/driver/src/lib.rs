//! The CUDA driver's C interface, found in the process at run time.
//!
//! Owns: the types and numbers of `cuda.h` that we use ([`sys`]), the table of its functions ([`Driver`]), safe
//! wrappers around them and their errors as values ([`DriverError`]).
//!
//! Never: no link against `libcuda`, no panic where there is no driver (a machine that only builds engines has none),
//! no failure that is remembered (a driver that appears later is found), no decision about what to load or launch, no
//! printing. Never closes the driver: it runs threads of its own, and unloading it under them is defined nowhere.

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
