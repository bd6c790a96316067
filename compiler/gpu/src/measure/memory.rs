//! The memory of a node's tensors and scratch buffers, which all variants share: they run one after the other.

use std::marker::PhantomData;

use cubinder_launch::tensor_bytes;

use super::failure::Why;
use super::node::Node;
use crate::{Addresses, Context, Guarded, Prepared};

/// Of what every buffer's address is a multiple, bytes: what the driver gives, and TensorRT too.
pub(super) const ALIGNMENT: usize = 256;

/// The buffers of a node.
pub(super) struct Memory<'c> {
    context: &'c Context,
    /// Those of inputs; none for a shape input.
    inputs: Vec<Option<Guarded<'c>>>,
    /// Those of outputs; none for one that has its input's.
    outputs: Vec<Option<Guarded<'c>>>,
    /// Those of scratch buffers: each as large as any variant asks for.
    scratch: Vec<Guarded<'c>>,
}

/// Where they lie, for as long as they do.
pub(super) struct Places<'m> {
    inputs: Vec<u64>,
    outputs: Vec<u64>,
    scratch: Vec<u64>,
    _memory: PhantomData<&'m Guarded<'m>>,
}

impl Places<'_> {
    pub(super) fn addresses(&self) -> Addresses<'_> {
        Addresses { inputs: &self.inputs, outputs: &self.outputs, scratch: &self.scratch }
    }
}

impl<'c> Memory<'c> {
    /// Memory for the tensors, inputs filled with what they hold. What an input holds is written again and again where it is less.
    pub(super) fn new(context: &'c Context, node: &Node<'_>, held: &[Vec<u8>]) -> Result<Memory<'c>, Why> {
        let mut memory = Memory { context, inputs: Vec::new(), outputs: Vec::new(), scratch: Vec::new() };
        for (index, input) in node.plugin.inputs.iter().enumerate() {
            let buffer = match input.values {
                Some(_) => None,
                None => {
                    let mut buffer = memory.buffer(bytes(node, index)?)?;
                    buffer.repeat(held.get(index).map_or(&[][..], Vec::as_slice))?;
                    Some(buffer)
                }
            };
            memory.inputs.push(buffer);
        }
        for (index, output) in node.plugin.outputs.iter().enumerate() {
            let tensor = node.plugin.inputs.len().saturating_add(index);
            let buffer = match output.alias {
                Some(_) => None,
                None => Some(memory.buffer(bytes(node, tensor)?)?),
            };
            memory.outputs.push(buffer);
        }
        // What fills it goes through the default stream, and no other waits for that.
        context.synchronize()?;
        Ok(memory)
    }

    /// Makes the scratch buffers large enough for a variant too.
    pub(super) fn extend(&mut self, prepared: &Prepared<'_>) -> Result<(), Why> {
        for (index, bytes) in prepared.scratch_bytes().enumerate() {
            let bytes = usize::try_from(bytes).map_err(|_| Why::TooLarge)?;
            if self.scratch.get(index).is_some_and(|known| known.len() >= bytes) {
                continue;
            }
            let larger = self.buffer(bytes)?;
            match self.scratch.get_mut(index) {
                Some(known) => *known = larger,
                None => self.scratch.push(larger),
            }
        }
        self.context.synchronize()?;
        Ok(())
    }

    fn buffer(&self, bytes: usize) -> Result<Guarded<'c>, Why> {
        Guarded::new(self.context, bytes, ALIGNMENT, false, 0).map_err(Why::Driver)
    }

    pub(super) fn places(&self, node: &Node<'_>) -> Places<'_> {
        let address = |buffer: &Option<Guarded<'_>>| buffer.as_ref().map_or(0, Guarded::address);
        let inputs: Vec<u64> = self.inputs.iter().map(address).collect();
        let place = |(buffer, output): (&Option<Guarded<'_>>, &cubinder_model::Output)| match output.alias {
            Some(input) => inputs.get(input as usize).copied().unwrap_or(0),
            None => address(buffer),
        };
        let outputs = self.outputs.iter().zip(&node.plugin.outputs).map(place).collect();
        let scratch = self.scratch.iter().map(Guarded::address).collect();
        Places { inputs, outputs, scratch, _memory: PhantomData }
    }
}

/// The bytes of a tensor, by its number over inputs, then outputs.
fn bytes(node: &Node<'_>, tensor: usize) -> Result<usize, Why> {
    let (ty, format) = (node.types.get(tensor), node.formats.get(tensor));
    let shape = node.largest.get(tensor);
    let bytes =
        ty.zip(shape).and_then(|(ty, shape)| tensor_bytes(*ty, format.copied().unwrap_or_default(), shape));
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(Why::TooLarge)
}

/// The bytes of all inputs and outputs that lie on the device; what an output in place shares counts once as an input and once as an
/// output, as it is read and written.
pub(super) fn all_bytes(node: &Node<'_>) -> Result<u64, Why> {
    let is_on_host =
        |tensor: &usize| node.plugin.inputs.get(*tensor).is_some_and(|input| input.values.is_some());
    let tensors = (0..node.plugin.tensor_count()).filter(|tensor| !is_on_host(tensor));
    tensors
        .map(|tensor| bytes(node, tensor))
        .try_fold(0_u64, |all, bytes| Ok(all.saturating_add(bytes? as u64)))
}
