//! Launch records: what one launch needs, computed once per change of shapes.
//!
//! Owns: the evaluation of a launch's expressions into numbers that the driver takes ([`LaunchRecord::evaluate`]), every
//! check of those numbers, and the launch itself ([`LaunchRecord::enqueue`]); and which variant's launches those are, where that
//! depends on shapes and addresses ([`Decided`], [`Choice`]).
//!
//! Never: in `enqueue` no allocation, no lock, no hashing, no string and no writing to anything shared, unless the driver
//! refuses; no launch with a number that was cut to fit; no loading of code.

#![allow(unsafe_code)] // hands addresses to the driver

mod choice;
mod error;
mod pack;
mod record;

pub use choice::{Choice, Decided, TooManyWays};
pub use cubinder_bundle::model::{MAX_ARGUMENTS, MAX_PARAMETER_BYTES};
pub use error::{EnqueueError, LaunchError, Limit, Problem, Refusal, Role};
pub use record::LaunchRecord;
