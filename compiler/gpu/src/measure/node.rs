//! The node to measure.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::Device;
use cubinder_model::Plugin;

/// A node with its shapes, in the plugin's order: tensors are its inputs, then its outputs.
#[derive(Debug, Clone, Copy)]
pub struct Node<'n> {
    /// Its plugin.
    pub plugin: &'n Plugin,
    /// One value for each attribute.
    pub attributes: &'n [Value],
    /// The tensors' types.
    pub types: &'n [DataType],
    /// The tensors' formats.
    pub formats: &'n [Format],
    /// The tensors' shapes; a dimension that the kernels decide is `launch::UNKNOWN_EXTENT`.
    pub shapes: &'n [&'n [i64]],
    /// The tensors' shapes where the kernels write as much as they may.
    pub largest: &'n [&'n [i64]],
    /// What shape inputs hold, by input; nothing for others.
    pub values: &'n [&'n [i64]],
    /// Facts of the device.
    pub device: Device,
}
