//! Records of steps, computed once per shape change by [`cubinder_launch`].
//!
//! `enqueue` never allocates, locks, hashes, formats or writes shared memory, unless the driver refuses.

#![allow(unsafe_code)] // hands addresses to the driver

mod addresses;
mod error;
mod record;
mod step;

pub use addresses::{Addresses, Positions};
pub use cubinder_launch::{LaunchError, Limit, Problem, Role};
pub use cubinder_model::model::{MAX_ARGUMENTS, MAX_PARAMETER_BYTES};
pub use error::{EnqueueError, LaunchDescription, MemoryRefusal, Overlap, Refusal};
pub use record::{LaunchRecord, takes};
pub use step::{AliasRecord, FillRecord, StepRecord};
