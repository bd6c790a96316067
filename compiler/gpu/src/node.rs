use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::{Device, Facts, tensor_bytes};
use cubinder_model::Plugin;

use crate::error::RunError;

/// A node's inputs, then outputs, with shapes.
#[derive(Debug, Clone, Copy)]
pub struct Node<'n> {
    /// Plugin.
    pub plugin: &'n Plugin,
    /// Attribute values.
    pub attributes: &'n [Value],
    /// Tensor types.
    pub types: &'n [DataType],
    /// Tensor formats.
    pub formats: &'n [Format],
    /// Tensor shapes; `launch::UNKNOWN_EXTENT` for data-dependent dimensions.
    pub shapes: &'n [Vec<i64>],
    /// Maximum shapes.
    pub largest: &'n [Vec<i64>],
    /// Values of shape inputs.
    pub values: &'n [Vec<i64>],
    /// Device facts.
    pub device: Device,
}

impl Node<'_> {
    /// Calls `work` with a launch's facts for these alignments.
    pub fn with_facts<T>(&self, alignments: &[u64], work: impl FnOnce(&Facts<'_>) -> T) -> T {
        let shapes: Vec<&[i64]> = self.shapes.iter().map(Vec::as_slice).collect();
        let values: Vec<&[i64]> = self.values.iter().map(Vec::as_slice).collect();
        work(&Facts {
            attributes: self.attributes,
            shapes: &shapes,
            values: &values,
            device: Some(self.device),
            alignments,
            ..Facts::default()
        })
    }

    pub(crate) fn bytes(&self, tensor: usize) -> Result<usize, RunError> {
        let format = self.formats.get(tensor).copied().unwrap_or_default();
        let tensor = self.types.get(tensor).zip(self.largest.get(tensor));
        let bytes = tensor.and_then(|(ty, shape)| tensor_bytes(*ty, format, shape));
        bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(RunError::TooLarge)
    }

    pub(crate) fn all_bytes(&self) -> Result<u64, RunError> {
        let is_on_host =
            |tensor: &usize| self.plugin.inputs.get(*tensor).is_some_and(|input| input.values.is_some());
        let tensors = (0..self.plugin.tensor_count()).filter(|tensor| !is_on_host(tensor));
        tensors
            .map(|tensor| self.bytes(tensor))
            .try_fold(0_u64, |all, bytes| Ok(all.saturating_add(bytes? as u64)))
    }
}
