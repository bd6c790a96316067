//! What the command and the process that measures say to each other.

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

/// What comes of it, one line of JSON each. That a variant or a round begins says that the one before has ended; everything else ends a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// Bytes that are read and written in a second; none where there is not enough memory for it.
    CopyRate(Option<f64>),
    /// A variant runs for the first time.
    Begins(i32),
    /// All variants run in turn: if it does not end, that is about none of them more than the others.
    Round,
    /// All of a node was measured.
    Measured(Measurement),
    /// It was not, and why; where it is broken, nothing can be measured any more.
    Failed { variant: Option<i32>, why: String, is_broken: bool },
}

/// What was measured of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Measurement {
    /// The bytes of all inputs and outputs that lie on the device.
    pub(super) bytes: u64,
    /// The variant that a run takes now.
    pub(super) automatic: i32,
    /// Which code was measured ([`cubinder_node::tuning::code_of`]).
    pub(super) code: String,
    /// In the order of the manifest.
    pub(super) variants: Vec<Timed>,
}

/// What a variant takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Timed {
    pub(super) variant: i32,
    /// Types, formats and constants for people.
    pub(super) label: String,
    /// The median.
    pub(super) microseconds: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    /// A quarter is below it, and above the other.
    pub(super) lower_quartile: f64,
    pub(super) upper_quartile: f64,
    /// How many kernels a run launches.
    pub(super) launches: usize,
    /// How many runs each time is the mean of.
    pub(super) runs: u32,
}

impl Measurement {
    /// The variants, the fastest first.
    pub(super) fn ranking(&self) -> Vec<&Timed> {
        let mut order: Vec<&Timed> = self.variants.iter().collect();
        order.sort_by(|one, other| one.microseconds.total_cmp(&other.microseconds));
        order
    }
}
