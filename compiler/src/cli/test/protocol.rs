//! What the command and the process that runs kernels say to each other.
//!
//! A kernel that writes where it should not takes its process with it: the command reports that and goes on in a new one. So the
//! process is told everything with each job, and keeps nothing that matters.

use std::collections::BTreeSet;

use cubinder_node::trial::{Mismatch, Trial};
use serde::{Deserialize, Serialize};

/// One thing to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) trial: Trial,
    /// The case of the file whose expectations about the launch are looked at first.
    pub(super) case: Option<usize>,
    /// Variants that have run already.
    pub(super) skip: Vec<i32>,
}

/// What the process says, one line of JSON each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// The runtime refuses the node, and why.
    Refused(String),
    /// The case expects something else of the launch.
    Differs(Vec<String>),
    /// A variant is run.
    Starts(i32),
    /// Its guard holds for no addresses that are tried: it was not run.
    Unfit(i32),
    /// The result of the variant that was started; without one (id 0), of the node itself.
    Ran(VariantResult),
    /// A job is done.
    Done,
}

/// The result of a variant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct VariantResult {
    pub(super) id: i32,
    pub(super) label: String,
    /// With how many choices of addresses it ran.
    pub(super) addresses: usize,
    /// Of what all outputs held after a first run, hexadecimal: one where it does not depend on addresses.
    pub(super) digests: BTreeSet<String>,
    /// What its outputs were compared with: each output's name and a text.
    pub(super) held_against: Vec<(String, String)>,
    pub(super) faults: Vec<Fault>,
    pub(super) notes: Vec<String>,
    /// Whether nothing can be run in the process any more.
    pub(super) is_broken: bool,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    /// The tensor or scratch buffer, where it is about one.
    pub(super) tensor: Option<String>,
    pub(super) text: String,
    /// The elements, where it is about some.
    pub(super) elements: Option<Mismatch>,
    /// The addresses with which it shows, where not all are aligned alike: `x aligned to 4 bytes`.
    pub(super) addresses: Option<String>,
}

impl Fault {
    /// A fault that is about no tensor and no addresses.
    pub(super) fn new(kind: Kind, text: String) -> Fault {
        Fault { kind, tensor: None, text, elements: None, addresses: None }
    }
}

/// What kind of mistake it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// An element is not what is expected.
    Wrong,
    /// An element is not written.
    Unwritten,
    /// Something was written outside of a buffer.
    Outside,
    /// An input was changed.
    InputChanged,
    /// Two runs come to different results.
    NotRepeatable,
    /// A size that the kernels wrote is none.
    Size,
    /// An output has another shape than is expected.
    Shape,
    /// The data or what is expected cannot be made.
    Data,
    /// The runtime would refuse it.
    Refused,
    /// The device has not enough memory.
    Memory,
    /// The driver reports an error.
    Driver,
    /// The process ended.
    Crash,
    /// The GPU could not be used any more: nothing was run.
    GpuLost,
    /// It took too long.
    Timeout,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::gpu::protocol::{receive, send};

    #[test]
    fn jobs_come_through() {
        use cubinder_expr::Value;
        use cubinder_node::query::RawAttributeValue;
        use cubinder_node::trial::{InputData, Number};
        let mut trial = Trial { name: "a".to_owned(), seed: 7, ..Trial::default() };
        trial
            .inputs
            .push(("x".to_owned(), InputData::Numbers(vec![Number::Float(f64::INFINITY), Number::Int(3)])));
        let list = Value::Array(vec![Value::Int(1)]);
        trial.query.attributes.push(("k".to_owned(), RawAttributeValue::Value(list)));
        let job = Job { trial, case: Some(2), skip: vec![1] };
        let mut bytes = Vec::new();
        send(&mut bytes, &job).unwrap();
        send(&mut bytes, &job).unwrap();
        let mut bytes = bytes.as_slice();
        assert_eq!(receive(&mut bytes), Some(job.clone()));
        assert_eq!(receive(&mut bytes), Some(job));
        assert_eq!(receive::<Job>(&mut bytes), None);
    }
}
