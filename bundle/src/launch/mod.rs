//! From a node with its shapes to what is launched: everything that needs neither a GPU nor a driver.
//!
//! Owns: what expressions see of a node ([`Facts`]), what is refused before a launch ([`check_ranks`], [`check_limits`],
//! [`check_requirement`], [`check_attribute`]), the outputs' shapes ([`output_shapes`]), the choice of a variant ([`verdict`],
//! [`choose`]), and a launch evaluated into numbers ([`evaluate`]). The runtime launches by it and `cubinder eval` shows it, so
//! that both say the same, in the same words.
//! Never: no driver, no TensorRT, no loading of code, no number that was cut to fit, no panic.

mod error;
mod node;
mod numbers;
mod pack;

pub use error::{LaunchError, Limit, Problem, Role};
pub use node::{
    Facts, GuardVerdict, Unmet, check_attribute, check_limits, check_ranks, check_requirement, choose,
    full_name, missing_attribute, output_shapes, shape_text, verdict,
};
pub use numbers::{Evaluated, MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS, Passed, Takes, evaluate};
pub use pack::{alignment, append};

#[cfg(test)]
mod tests;
