//! Records of steps: a launch, fill or copy, computed once per shape change.
//!
//! Owns a step's numbers as the driver takes them ([`StepRecord::all`], [`AliasRecord::all`]), and the step itself
//! ([`StepRecord::enqueue`]). [`cubinder_launch`] computes the numbers and chooses the variant.
//!
//! Never allocates, locks, hashes, formats or writes shared memory in `enqueue`, unless the driver refuses; never
//! truncates a number or loads code.

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
