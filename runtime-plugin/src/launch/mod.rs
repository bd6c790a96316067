//! Launch records: what one launch needs, computed once per change of shapes.
//!
//! Owns: the numbers of a launch as the driver takes them ([`LaunchRecord::evaluate`]), and the launch itself
//! ([`LaunchRecord::enqueue`]). What the numbers are, and which variant's launches those are, is decided by
//! [`cubinder_bundle::launch`].
//!
//! Never: in `enqueue` no allocation, no lock, no hashing, no string and no writing to anything shared, unless the driver
//! refuses; no launch with a number that was cut to fit; no loading of code.

#![allow(unsafe_code)] // hands addresses to the driver

mod error;
mod record;

pub use cubinder_bundle::launch::{LaunchError, Limit, Problem, Role};
pub use cubinder_bundle::model::{MAX_ARGUMENTS, MAX_PARAMETER_BYTES};
pub use error::{EnqueueError, Refusal};
pub use record::LaunchRecord;
