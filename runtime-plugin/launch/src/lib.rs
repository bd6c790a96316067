//! Evaluates a node with its shapes to launches, without a driver.
//!
//! Owns [`proof`]s, launches by TensorRT ([`native`]), rules ([`check`]), [`output_shapes`], the choice of a variant
//! ([`in_order`], [`decide`]), evaluated steps ([`sequence`]). Bounds its work ([`Steps`]): engines are untrusted.
//! Never truncates numbers or panics.

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
