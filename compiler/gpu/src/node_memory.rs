use std::marker::PhantomData;

use cubinder_model::{Output, Plugin};

use crate::error::RunError;
use crate::{Addresses, Context, Guarded, Node, Prepared};

/// Alignment of the driver's and TensorRT's memory, bytes.
pub const ALIGNMENT: usize = 256;

/// A node's buffers, shared by its variants.
#[derive(Debug)]
pub struct NodeMemory<'c> {
    context: &'c Context,
    /// Inputs; `None` for shape inputs.
    pub inputs: Vec<Option<Guarded<'c>>>,
    /// Outputs; `None` if in place.
    pub outputs: Vec<Option<Guarded<'c>>>,
    /// Scratch buffers at their maximum size.
    pub scratch: Vec<Guarded<'c>>,
    pattern: u8,
}

/// Addresses of existing buffers.
#[derive(Debug)]
pub struct NodeAddresses<'m> {
    inputs: Vec<u64>,
    outputs: Vec<u64>,
    scratch: Vec<u64>,
    _memory: PhantomData<&'m Guarded<'m>>,
}

impl NodeAddresses<'_> {
    /// Returns the addresses for a run.
    #[must_use]
    pub fn addresses(&self) -> Addresses<'_> {
        Addresses { inputs: &self.inputs, outputs: &self.outputs, scratch: &self.scratch }
    }
}

impl<'c> NodeMemory<'c> {
    /// Allocates tensors filled with `pattern`. Alignments are exact, except [`ALIGNMENT`], a minimum.
    pub fn new(
        context: &'c Context,
        node: &Node<'_>,
        alignments: &[u64],
        pattern: u8,
    ) -> Result<NodeMemory<'c>, RunError> {
        let buffer = |tensor: usize| {
            let alignment = alignments.get(tensor).and_then(|bytes| usize::try_from(*bytes).ok());
            let alignment = alignment.unwrap_or(ALIGNMENT);
            let bytes = node.bytes(tensor)?;
            Ok(Guarded::new(context, bytes, alignment, alignment != ALIGNMENT, pattern)?)
        };
        let Plugin { inputs, outputs, .. } = node.plugin;
        let of_input = |(tensor, input): (usize, &cubinder_model::Input)| {
            input.values.is_none().then(|| buffer(tensor)).transpose()
        };
        let of_output =
            |(tensor, output): (usize, &Output)| output.alias.is_none().then(|| buffer(tensor)).transpose();
        Ok(NodeMemory {
            context,
            inputs: inputs.iter().enumerate().map(of_input).collect::<Result<_, RunError>>()?,
            outputs: (inputs.len()..).zip(outputs).map(of_output).collect::<Result<_, RunError>>()?,
            scratch: Vec::new(),
            pattern,
        })
    }

    /// Enlarges the scratch buffers for a variant.
    pub fn extend(&mut self, prepared: &Prepared<'_>) -> Result<(), RunError> {
        for (index, bytes) in prepared.scratch_bytes().enumerate() {
            let bytes = usize::try_from(bytes).map_err(|_| RunError::TooLarge)?;
            if self.scratch.get(index).is_some_and(|known| known.len() >= bytes) {
                continue;
            }
            let larger = Guarded::new(self.context, bytes, ALIGNMENT, false, self.pattern)?;
            match self.scratch.get_mut(index) {
                Some(known) => *known = larger,
                None => self.scratch.push(larger),
            }
        }
        // Other streams do not wait for the fill.
        Ok(self.context.synchronize()?)
    }

    /// Returns the buffers' addresses for `plugin`.
    #[must_use]
    pub fn places(&self, plugin: &Plugin) -> NodeAddresses<'_> {
        let address = |buffer: &Option<Guarded<'_>>| buffer.as_ref().map_or(0, Guarded::address);
        let inputs: Vec<u64> = self.inputs.iter().map(address).collect();
        let place = |(buffer, output): (&Option<Guarded<'_>>, &Output)| match output.alias {
            Some(input) => inputs.get(input as usize).copied().unwrap_or(0),
            None => address(buffer),
        };
        let outputs = self.outputs.iter().zip(&plugin.outputs).map(place).collect();
        let scratch = self.scratch.iter().map(Guarded::address).collect();
        NodeAddresses { inputs, outputs, scratch, _memory: PhantomData }
    }
}
