//! What the command and the process that measures say to each other.

use cubinder_gpu::measure::{Measured, Step};
use cubinder_node::trial::Trial;
use serde::{Deserialize, Serialize};

/// Something to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Job {
    /// How fast the device copies.
    CopyRate,
    /// The variants of a node.
    Node(Box<Trial>),
}

/// What comes of it, one line of JSON each. A step means that the one before it has ended; everything else ends a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// Bytes that are read and written in a second; `None` if there is not enough memory for it.
    CopyRate(Option<f64>),
    /// A step starts.
    Step(Step),
    /// All of a node was measured: this code ([`cubinder_node::tuning::code_of`]).
    Measured { measured: Measured, code: String },
    /// It was not, and why; if it is broken, nothing can be measured any more.
    Failed { variant: Option<i32>, why: String, is_broken: bool },
}
