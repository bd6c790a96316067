use super::device::Device;
use cubinder_expr::value::Value;
use cubinder_expr::{DeviceFact, Environment};
use cubinder_model::model::Plugin;

/// TensorRT's data-dependent extent (observed with TensorRT-RTX 1.7.1).
pub const UNKNOWN_EXTENT: i64 = -1;

/// A node's attributes; its shapes and addresses when known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// One value per plugin attribute.
    pub attributes: &'a [Value],
    /// Ranks of inputs, then outputs, if known before the shapes.
    pub ranks: &'a [usize],
    /// Shapes of inputs, then outputs. With a negative dimension, only the rank is known.
    pub shapes: &'a [&'a [i64]],
    /// Values of shape inputs, by input; empty if unknown.
    pub values: &'a [&'a [i64]],
    /// Values of size tensors, by tensor; `None` before a run.
    pub sizes: &'a [Option<i64>],
    /// The launches' device, when known.
    pub device: Option<Device>,
    /// Addresses or alignments in bytes; 0 for null. Empty if unknown.
    pub alignments: &'a [u64],
}

impl Environment for Facts<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(index as usize)
    }

    /// Returns the shape; `None` also for unknown dimensions.
    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        let shape = self.shapes.get(tensor as usize).copied();
        shape.filter(|shape| shape.iter().all(|extent| *extent >= 0))
    }

    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        let alignment = self.alignments.get(tensor as usize)?;
        Some(bytes != 0 && alignment % u64::from(bytes) == 0)
    }

    fn device(&self, fact: DeviceFact) -> Option<i64> {
        self.device.as_ref().map(|device| device.fact(fact))
    }

    fn values(&self, tensor: u32) -> Option<&[i64]> {
        self.values.get(tensor as usize).copied()
    }

    fn size(&self, tensor: u32) -> Option<i64> {
        self.sizes.get(tensor as usize).copied().flatten()
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        let shape = || self.shapes.get(tensor as usize).map(|shape| shape.len());
        self.ranks.get(tensor as usize).copied().or_else(shape)
    }
}

const SHOWN: usize = 64;

/// Formats attributes and known shapes as a message's end.
#[must_use]
pub fn describe(plugin: &Plugin, facts: &Facts<'_>) -> String {
    let attributes = plugin.attributes.iter().zip(facts.attributes);
    let mut known: Vec<String> =
        attributes.map(|(attribute, value)| format!("{} = {}", attribute.name, brief(value))).collect();
    for (index, shape) in facts.shapes.iter().enumerate() {
        let name = plugin.tensor_name(index).unwrap_or("?");
        let is_shape_input = plugin.inputs.get(index).is_some_and(|input| input.values.is_some());
        known.push(match shape.contains(&UNKNOWN_EXTENT) && is_shape_input {
            true => format!("{name}: unknown shape"),
            false => format!("{name} is {}", shape_text(shape)),
        });
    }
    for (index, values) in facts.values.iter().enumerate() {
        if plugin.inputs.get(index).is_some_and(|input| input.values.is_some()) {
            let values = Value::Array(values.iter().copied().map(Value::Int).collect());
            known.push(format!("{} contains {}", plugin.tensor_name(index).unwrap_or("?"), brief(&values)));
        }
    }
    if facts.shapes.is_empty() {
        for (index, rank) in facts.ranks.iter().enumerate() {
            known.push(format!("{} has rank {rank}", plugin.tensor_name(index).unwrap_or("?")));
        }
    }
    for (index, alignment) in facts.alignments.iter().enumerate() {
        let name = plugin.tensor_name(index).unwrap_or("?");
        known.push(match alignment.trailing_zeros() {
            _ if *alignment == 0 => format!("{name} is null"),
            zeros => format!("{name} is aligned to {}", 1_u32 << zeros.min(12)),
        });
    }
    if known.is_empty() { String::new() } else { format!("; {}", known.join(", ")) }
}

fn brief(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() > SHOWN => {
            let shown: Vec<String> = items.iter().take(SHOWN).map(brief).collect();
            format!("[{}, ... {} elements]", shown.join(", "), items.len())
        }
        Value::Array(items) => {
            let shown: Vec<String> = items.iter().map(brief).collect();
            format!("[{}]", shown.join(", "))
        }
        Value::Str(text) => match text.char_indices().nth(SHOWN) {
            Some((end, _)) => {
                format!("{}... {} bytes", Value::Str(text[..end].to_owned()), text.len())
            }
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// Formats a shape: `10x3x32x32`, `a scalar` for rank 0.
#[must_use]
pub fn shape_text(shape: &[i64]) -> String {
    if shape.is_empty() {
        return "a scalar".to_owned();
    }
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}
