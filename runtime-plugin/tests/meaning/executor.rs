//! A manifest's meaning on the CPU, without the runtime's code. Both names of an aliased output mean its memory,
//! initially the input's data.

use crate::manifest::{Action, Array, Condition, Manifest, Row, Tensor};

/// Byte offsets in device memory.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Meaning<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) binding: &'a Binding,
    pub(crate) extent: usize,
}

impl Meaning<'_> {
    /// Runs the node; false, without changes, if rejected.
    pub(crate) fn run(&self, memory: &mut [u8]) -> bool {
        if !self.can_be_bound() {
            return false;
        }
        let Some(row) = self.manifest.variants.iter().find(|row| self.may_run(row)) else { return false };
        let bytes = self.extent * 4;
        for (output, input) in self.manifest.aliased().enumerate() {
            let from = self.binding.inputs[input];
            memory.copy_within(from..from + bytes, self.binding.outputs[output]);
        }
        let mut scratch = vec![vec![0_u8; bytes]; row.scratch];
        for step in row.steps.iter().filter(|step| step.above.is_none_or(|above| self.extent > above)) {
            match &step.action {
                Action::Fill { array, byte } => self.bytes(memory, &mut scratch, *array).fill(*byte),
                Action::Blend { arrays, salt } => self.blend(memory, &mut scratch, arrays, *salt),
            }
        }
        true
    }

    fn can_be_bound(&self) -> bool {
        let bytes = self.extent * 4;
        self.manifest.aliased().enumerate().all(|(output, own)| {
            let place = self.binding.outputs[output];
            place == self.binding.inputs[own]
                || self.binding.inputs.iter().all(|input| input + bytes <= place || place + bytes <= *input)
        })
    }

    fn may_run(&self, row: &Row) -> bool {
        row.guard.as_ref().is_none_or(|guard| self.holds(guard))
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Aligned(tensor, bytes) => (self.place(*tensor) as u64).is_multiple_of(*bytes),
            Condition::Not(of) => !self.holds(of),
            Condition::And(one, other) => self.holds(one) && self.holds(other),
            Condition::Or(one, other) => self.holds(one) || self.holds(other),
        }
    }

    fn place(&self, tensor: Tensor) -> usize {
        match tensor {
            Tensor::Output(output) => self.binding.outputs[output],
            Tensor::Input(input) => match self.manifest.aliased().position(|aliased| aliased == input) {
                Some(output) => self.binding.outputs[output],
                None => self.binding.inputs[input],
            },
        }
    }

    fn bytes<'m>(&self, memory: &'m mut [u8], scratch: &'m mut [Vec<u8>], array: Array) -> &'m mut [u8] {
        match array {
            Array::Scratch(index) => &mut scratch[index],
            Array::Tensor(tensor) => &mut memory[self.place(tensor)..][..self.extent * 4],
        }
    }

    fn blend(&self, memory: &mut [u8], scratch: &mut [Vec<u8>], arrays: &[(Array, bool)], salt: u32) {
        for at in (0..self.extent * 4).step_by(4) {
            let mut mixed = salt;
            for (array, _) in arrays {
                let held = self.bytes(memory, scratch, *array)[at..at + 4].try_into().unwrap();
                mixed = mixed.wrapping_mul(2_654_435_761).wrapping_add(u32::from_le_bytes(held));
            }
            for (number, _) in (0_u32..).zip(arrays).filter(|(_, (_, writes))| *writes) {
                let (array, _) = arrays[number as usize];
                let written = mixed.wrapping_add(number).to_le_bytes();
                self.bytes(memory, scratch, array)[at..at + 4].copy_from_slice(&written);
            }
        }
    }
}
