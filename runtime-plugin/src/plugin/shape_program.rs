//! Output shapes as a list of operations, for TensorRT's builder ([`super::shapes`]) and the C interface.

use cubinder_expr::{ShapeBuilder, ShapeOp};
use trt_abi::{Error, Result};

pub(super) type Index = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    Constant(i64),
    /// Extent of an input, or value of a shape input.
    Extent {
        input: usize,
        index: usize,
    },
    /// Data-dependent size in an output.
    Size {
        output: usize,
    },
    Operation(ShapeOp, Index, Index),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct InputPart {
    pub(super) length: usize,
    pub(super) has_values: bool,
}

#[derive(Debug)]
pub(super) struct ShapeProgram {
    inputs: Vec<InputPart>,
    pub(super) instructions: Vec<Instruction>,
    /// Of outputs, for later shapes and launches.
    pub(super) outputs: Vec<Vec<Index>>,
}

impl ShapeProgram {
    pub(super) fn new(inputs: Vec<InputPart>) -> ShapeProgram {
        ShapeProgram { inputs, instructions: Vec::new(), outputs: Vec::new() }
    }

    fn push(&mut self, instruction: Instruction) -> Result<Index> {
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    /// Counts a shape input's values.
    fn count(&self, tensor: u32) -> Result<usize> {
        let part = self.inputs.get(tensor as usize).filter(|part| part.has_values);
        let count = part.map(|part| part.length);
        count.ok_or_else(|| Error::internal(format!("a shape reads the values of tensor {tensor}")))
    }
}

impl ShapeBuilder for ShapeProgram {
    type Dim = Index;
    type Error = Error;

    fn constant(&mut self, value: i64) -> Result<Index> {
        self.push(Instruction::Constant(value))
    }

    fn dim(&mut self, tensor: u32, axis: usize) -> Result<Index> {
        let input = tensor as usize;
        let found = match self.inputs.get(input) {
            Some(InputPart { length, has_values: true }) => {
                i64::try_from(*length).ok().filter(|_| axis == 0).map(Instruction::Constant)
            }
            Some(InputPart { length, has_values: false }) => {
                Some(Instruction::Extent { input, index: axis }).filter(|_| axis < *length)
            }
            None => {
                let output = self.outputs.get(input.saturating_sub(self.inputs.len()));
                if let Some(index) = output.and_then(|extents| extents.get(axis)) {
                    return Ok(*index);
                }
                None
            }
        };
        let missing = || Error::internal(format!("a shape reads dimension {axis} of tensor {tensor}"));
        self.push(found.ok_or_else(missing)?)
    }

    fn value_count(&mut self, tensor: u32) -> Result<usize> {
        self.count(tensor)
    }

    fn value(&mut self, tensor: u32, index: usize) -> Result<Index> {
        let count = self.count(tensor)?;
        if index >= count {
            return Err(Error::internal(format!("a shape reads value {index} of {count}")));
        }
        self.push(Instruction::Extent { input: tensor as usize, index })
    }

    fn size(&mut self, tensor: u32) -> Result<Index> {
        let output = (tensor as usize).checked_sub(self.inputs.len());
        let missing = || Error::internal(format!("a shape reads the size in tensor {tensor}"));
        self.push(Instruction::Size { output: output.ok_or_else(missing)? })
    }

    fn operation(&mut self, op: ShapeOp, first: &Index, second: &Index) -> Result<Index> {
        self.push(Instruction::Operation(op, *first, *second))
    }
}
