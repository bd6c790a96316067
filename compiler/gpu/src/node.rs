//! A node to run or to measure.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::{Device, Facts, tensor_bytes};
use cubinder_model::Plugin;

use crate::error::RunError;

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
    pub shapes: &'n [Vec<i64>],
    /// The tensors' shapes if the kernels write as much as they may.
    pub largest: &'n [Vec<i64>],
    /// The values of shape inputs, by input; empty for others.
    pub values: &'n [Vec<i64>],
    /// Facts of the device.
    pub device: Device,
}

impl Node<'_> {
    /// Calls `work` with everything that a launch can depend on, for tensors with these alignments.
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

    /// The most bytes of a tensor.
    pub(crate) fn bytes(&self, tensor: usize) -> Result<usize, RunError> {
        let format = self.formats.get(tensor).copied().unwrap_or_default();
        let tensor = self.types.get(tensor).zip(self.largest.get(tensor));
        let bytes = tensor.and_then(|(ty, shape)| tensor_bytes(*ty, format, shape));
        bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(RunError::TooLarge)
    }

    /// The bytes of all inputs and outputs on the device. The memory of an output in place counts twice, as it is read and written.
    pub(crate) fn all_bytes(&self) -> Result<u64, RunError> {
        let is_on_host =
            |tensor: &usize| self.plugin.inputs.get(*tensor).is_some_and(|input| input.values.is_some());
        let tensors = (0..self.plugin.tensor_count()).filter(|tensor| !is_on_host(tensor));
        tensors
            .map(|tensor| self.bytes(tensor))
            .try_fold(0_u64, |all, bytes| Ok(all.saturating_add(bytes? as u64)))
    }
}
