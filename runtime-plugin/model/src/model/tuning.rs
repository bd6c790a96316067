//! Measured times of a plugin: fast variants for nodes and shapes.

use serde::{Deserialize, Serialize};

use cubinder_expr::value::Value;

/// Measurements on one kind of GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedDevice {
    /// The GPU's name, for messages.
    pub name: String,
    /// Compute capability: 90 for 9.0.
    pub capability: u16,
    /// Number of multiprocessors.
    pub sms: u32,
    /// Points, in the files' order.
    pub points: Vec<TunedPoint>,
}

/// A node with its shapes, and variants ordered by time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedPoint {
    /// Attributes that affect times, by ascending index, unless specialized.
    pub attributes: Vec<(u32, Value)>,
    /// Shapes of inputs, then outputs; negative if data-dependent.
    pub shapes: Vec<Vec<i64>>,
    /// Variants for equal types, formats and attributes, fastest first.
    pub ranking: Vec<u32>,
}

impl TunedPoint {
    /// Returns the bytes of its attributes' text, and 8 for every other value.
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

/// Returns the kept variants' measurements; `row` maps old indices to new.
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
