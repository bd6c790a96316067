//! Records of steps: what a launch, a fill or a copy needs, computed once per change of shapes.
//!
//! Owns: the numbers of a step as the driver takes them ([`StepRecord::all`], [`AliasRecord::all`]), and the step itself
//! ([`StepRecord::enqueue`]). What the numbers are, and which variant's steps those are, is decided by
//! [`cubinder_launch`].
//!
//! Never: in `enqueue` no allocation, no lock, no hashing, no string and no writing to anything shared, unless the driver
//! refuses; no launch with a number that was cut to fit; no loading of code.

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
