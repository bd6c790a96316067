use std::ffi::c_void;

use super::error::{EnqueueError, Result};

/// The addresses of one enqueue.
#[derive(Debug, Clone, Copy)]
pub struct Addresses<'a> {
    /// The inputs'.
    pub inputs: &'a [*const c_void],
    /// The outputs'.
    pub outputs: &'a [*mut c_void],
    /// The workspace's.
    pub workspace: *mut c_void,
}

impl Addresses<'_> {
    #[inline]
    pub(super) fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        let [found_inputs, found_outputs] = [self.inputs.len(), self.outputs.len()];
        if found_inputs != inputs {
            return Err(EnqueueError::Tensors { which: "inputs", found: found_inputs, expected: inputs });
        }
        if found_outputs != outputs {
            return Err(EnqueueError::Tensors { which: "outputs", found: found_outputs, expected: outputs });
        }
        Ok(())
    }
}

/// Positions of the plugin's inputs among the given ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positions {
    /// `None` if not given.
    inputs: Box<[Option<usize>]>,
    given: usize,
}

impl Positions {
    /// Creates positions among `given` inputs; larger ones count as `None`.
    #[must_use]
    pub fn new(inputs: Vec<Option<usize>>, given: usize) -> Positions {
        let inputs = inputs.into_iter().map(|place| place.filter(|place| *place < given));
        Positions { inputs: inputs.collect(), given }
    }

    /// Returns an input's position, below [`Positions::given`].
    #[inline]
    #[must_use]
    pub fn position(&self, input: usize) -> Option<usize> {
        self.inputs.get(input).copied().flatten()
    }

    /// Returns a tensor's address, by index over inputs, then outputs; `None` if not given.
    #[inline]
    #[must_use]
    pub fn address(&self, at: &Addresses<'_>, tensor: usize) -> Option<u64> {
        match tensor.checked_sub(self.inputs.len()) {
            None => at.inputs.get(self.position(tensor)?).map(|input| input.addr() as u64),
            Some(output) => at.outputs.get(output).map(|output| output.addr() as u64),
        }
    }

    /// Returns the number of given inputs.
    #[must_use]
    pub fn given(&self) -> usize {
        self.given
    }
}
