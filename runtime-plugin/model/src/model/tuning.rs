//! What was measured of a plugin: for some nodes with their shapes, which of the variants are fast.

use serde::{Deserialize, Serialize};

use cubinder_expr::value::Value;

/// What was measured on GPUs of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedDevice {
    /// What the GPU is called, for people.
    pub name: String,
    /// Its compute capability: 90 for 9.0.
    pub capability: u16,
    /// How many multiprocessors it has.
    pub sms: u32,
    /// What was measured, in the order of the files.
    pub points: Vec<TunedPoint>,
}

/// A node with its shapes, and the variants in the order of their times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedPoint {
    /// The attributes on which times depend, by index, with the values of the node, in order of index. Those for which the variants were
    /// compiled are not among them.
    pub attributes: Vec<(u32, Value)>,
    /// The shapes of the inputs, then of the outputs; negative where a dimension depends on data.
    pub shapes: Vec<Vec<i64>>,
    /// Rows of the table of variants by index, the fastest first: rows for one choice of types, formats and attributes, each once.
    pub ranking: Vec<u32>,
}

impl TunedPoint {
    /// How much the values of its attributes take: the bytes of text, and 8 for every other value.
    #[must_use]
    pub fn attribute_bytes(&self) -> usize {
        self.attributes.iter().fold(0, |sum, (_, value)| sum.saturating_add(bytes(value)))
    }
}

fn bytes(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).fold(0, usize::saturating_add),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => 8,
    }
}

/// What is left of measurements where rows of the table are left out; `row` says where a row is then. Points and devices of which nothing is left are
/// left out too.
#[must_use]
pub fn of_rows(
    tuning: &[TunedDevice],
    row: impl Fn(u32) -> Option<u32>,
    is_kept: impl Fn(&TunedPoint) -> bool,
) -> Vec<TunedDevice> {
    let point = |point: &TunedPoint| {
        let ranking: Vec<u32> = point.ranking.iter().filter_map(|old| row(*old)).collect();
        (!ranking.is_empty() && is_kept(point)).then(|| TunedPoint { ranking, ..point.clone() })
    };
    let device = |device: &TunedDevice| {
        let points: Vec<TunedPoint> = device.points.iter().filter_map(point).collect();
        let TunedDevice { name, capability, sms, .. } = device;
        (!points.is_empty()).then(|| TunedDevice {
            name: name.clone(),
            capability: *capability,
            sms: *sms,
            points,
        })
    };
    tuning.iter().filter_map(device).collect()
}
