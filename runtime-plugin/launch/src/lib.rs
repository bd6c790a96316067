//! From a node with its shapes to what is launched: everything that needs neither a GPU nor a driver.
//!
//! Owns: proofs about them for all shapes ([`proof`]), the launches that TensorRT makes itself ([`native`]), what expressions see of a node ([`Facts`]), what is refused before a launch and in which order ([`rules_of_attributes`],
//! [`rules_of_shapes`], [`check`]), the outputs' shapes ([`output_shapes`]), which variant runs ([`in_order`], [`nearest_point`], [`decide`],
//! [`Choice`]), and what its steps come to in numbers ([`sequence`]). The runtime launches by it and `cubinder eval` shows it, so that
//! both say the same, in the same words. How much work all of that may be is bounded ([`Steps`]), because models come from engines.
//! Never: no driver, no TensorRT, no loading of code, no number that was cut to fit, no panic.

mod choice;
mod device;
mod error;
mod evaluation;
mod facts;
pub mod native;
mod pack;
pub mod proof;
mod rules;
mod sequence;
mod signature;
mod steps;
mod tuned;
mod value_bounds;
mod variants;
mod workspace;

pub use choice::{Choice, GuardDecision, UndecidedGuards};
pub use device::{Device, PerDeviceFact};
pub use error::{LaunchError, Limit, Problem, Role, Subject};
pub use evaluation::{Clusters, EvaluatedArgument, EvaluatedLaunch, LaunchLimits};
pub use facts::{Facts, UNKNOWN_EXTENT, describe, shape_text};
pub use pack::{alignment, append};
pub use rules::{
    Rule, check, check_limits, check_output_limits, output_shape, output_shapes, rules_of_attributes,
    rules_of_shapes,
};
pub use sequence::{EvaluatedStep, Sequence, Sequencing, sequence, tensor_bytes, too_many_at_once};
pub use signature::{Signature, check_specialized, is_compiled_for, no_variant, serving};
pub use steps::{NODE_STEP_LIMIT, Steps};
pub use tuned::{is_served, nearest_point, put_in_order, tuned_device};
pub use value_bounds::{AnyValues, extents_for_any_values};
pub use variants::{
    GuardVerdict, asks_for_device, decide, in_order, is_automatic, is_excluded, none_holds, verdict,
};
pub use workspace::{ScratchRange, Unbounded, workspace_bound};

#[cfg(test)]
mod tests;
