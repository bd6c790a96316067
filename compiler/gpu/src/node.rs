//! A node to run or to measure.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::{Device, Facts, tensor_bytes};
use cubinder_model::Plugin;

use crate::error::RunError;

/// A node with its shapes. Tensors are the plugin's inputs, then its outputs.
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
    /// The tensors' shapes; `launch::UNKNOWN_EXTENT` for dimensions that kernels decide.
    pub shapes: &'n [Vec<i64>],
    /// The tensors' largest possible shapes.
    pub largest: &'n [Vec<i64>],
    /// The values of shape inputs; empty for other inputs.
    pub values: &'n [Vec<i64>],
    /// Facts of the device.
    pub device: Device,
}

impl Node<'_> {
    /// Calls `work` with all facts for a launch, for tensors with these alignments.
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

    /// Returns the bytes of all device inputs and outputs; outputs in place count twice.
    pub(crate) fn all_bytes(&self) -> Result<u64, RunError> {
        let is_on_host =
            |tensor: &usize| self.plugin.inputs.get(*tensor).is_some_and(|input| input.values.is_some());
        let tensors = (0..self.plugin.tensor_count()).filter(|tensor| !is_on_host(tensor));
        tensors
            .map(|tensor| self.bytes(tensor))
            .try_fold(0_u64, |all, bytes| Ok(all.saturating_add(bytes? as u64)))
    }
}
