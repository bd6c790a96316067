//! Jobs are self-contained: a faulty kernel can end the worker.

use std::collections::BTreeSet;

use cubinder_node::trial::{Mismatch, Trial};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) trial: Trial,
    pub(super) case: Option<usize>,
    pub(super) skip: Vec<i32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    Refused(String),
    Differs(Vec<String>),
    Starts(i32),
    /// The guard rejects all tried addresses.
    Unfit(i32),
    /// Id 0 for the node itself.
    Ran(VariantResult),
    Done,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct VariantResult {
    pub(super) id: i32,
    pub(super) label: String,
    pub(super) addresses: usize,
    /// Hexadecimal digests of all outputs; more than one if results depend on addresses.
    pub(super) digests: BTreeSet<String>,
    /// Output names with the expected values' source.
    pub(super) held_against: Vec<(String, String)>,
    pub(super) faults: Vec<Fault>,
    pub(super) notes: Vec<String>,
    pub(super) is_broken: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) tensor: Option<String>,
    pub(super) text: String,
    pub(super) elements: Option<Mismatch>,
    /// `x aligned to 4 bytes`; `None` with full alignment.
    pub(super) addresses: Option<String>,
}

impl Fault {
    pub(super) fn new(kind: Kind, text: String) -> Fault {
        Fault { kind, tensor: None, text, elements: None, addresses: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Wrong,
    Unwritten,
    Outside,
    InputChanged,
    NotRepeatable,
    Size,
    Shape,
    Data,
    Refused,
    Memory,
    Driver,
    Crash,
    GpuLost,
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
