//! Which memory a tensor's name means.

use super::{Output, Plugin};

impl Plugin {
    /// Returns the tensor that holds the memory of `tensor`, both by index over inputs, then outputs: the output that shares an
    /// input's memory, otherwise the tensor itself. Every address of a tensor is the address of its storage.
    #[must_use]
    pub fn storage_of(&self, tensor: usize) -> usize {
        let shares = |output: &Output| output.alias.is_some_and(|input| input as usize == tensor);
        self.outputs.iter().position(shares).map_or(tensor, |output| self.inputs.len() + output)
    }
}
