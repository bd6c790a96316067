use cubinder_gpu::measure::{Measured, Step};
use cubinder_node::trial::Trial;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Job {
    CopyRate,
    Node(Box<Trial>),
}

/// All but steps end the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// Bytes read and written per second; `None` if out of memory.
    CopyRate(Option<f64>),
    /// A step starts.
    Step(Step),
    /// With the node's code ([`cubinder_node::tuning::code_of`]).
    Measured { measured: Measured, code: String },
    /// If broken, no more can run.
    Failed { variant: Option<i32>, why: String, is_broken: bool },
}
