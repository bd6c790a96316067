//! TensorRT's shape operations, and what builds them.

use crate::node::NodeId;
use crate::ops::{self, EvalError};

/// TensorRT's operations on dimensions (`nvinfer1::DimensionOperation`, `NvInferRuntime.h`, TensorRT-RTX 1.3 to 1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ShapeOp {
    /// The sum.
    Sum = 0,
    /// The product.
    Prod = 1,
    /// The larger.
    Max = 2,
    /// The smaller.
    Min = 3,
    /// The first less the second.
    Sub = 4,
    /// 1 where both are equal, else 0.
    Equal = 5,
    /// 1 where the first is less than the second, else 0.
    Less = 6,
    /// The quotient rounded down, below zero too: the mathematical floor. The header does not say so; `tests/tests/it/lowering.rs`
    /// confirms it with TensorRT-RTX 1.7.1's own builder, for every pair of signs.
    FloorDiv = 7,
    /// The quotient rounded up, below zero too: the mathematical ceiling, confirmed likewise.
    CeilDiv = 8,
}

impl ShapeOp {
    /// The operation on numbers, as TensorRT computes it: wrapping in 64 bits. None where it refuses, a division by zero.
    #[must_use]
    pub fn apply(self, a: i64, b: i64) -> Option<i64> {
        Some(match self {
            ShapeOp::Sum => a.wrapping_add(b),
            ShapeOp::Prod => a.wrapping_mul(b),
            ShapeOp::Max => a.max(b),
            ShapeOp::Min => a.min(b),
            ShapeOp::Sub => a.wrapping_sub(b),
            ShapeOp::Equal => i64::from(a == b),
            ShapeOp::Less => i64::from(a < b),
            ShapeOp::FloorDiv => return ops::floor_div(a, b),
            ShapeOp::CeilDiv => return ops::ceil_div(a, b),
        })
    }
}

/// What makes dimensions: TensorRT's expression builder, or a stand-in for tests.
pub trait ShapeBuilder {
    /// A dimension that is not known yet.
    type Dim: Clone;
    /// Why the builder refused.
    type Error;

    /// A known number.
    ///
    /// # Errors
    /// Where the builder refuses.
    fn constant(&mut self, value: i64) -> Result<Self::Dim, Self::Error>;

    /// A dimension of a tensor, by its index over inputs, then outputs; `axis` is below the tensor's rank.
    ///
    /// # Errors
    /// Where the builder refuses, for instance the shape of an output.
    fn dim(&mut self, tensor: u32, axis: usize) -> Result<Self::Dim, Self::Error>;

    /// How many values a shape input has, by its index: it has as many elements, and no other number once the network is known.
    ///
    /// # Errors
    /// Where the builder refuses, for instance a tensor that is no shape input.
    fn value_count(&mut self, tensor: u32) -> Result<usize, Self::Error>;

    /// A value of a shape input, by its index; `index` is below [`ShapeBuilder::value_count`].
    ///
    /// # Errors
    /// Where the builder refuses.
    fn value(&mut self, tensor: u32, index: usize) -> Result<Self::Dim, Self::Error>;

    /// The size that a size tensor holds, by its index over inputs, then outputs.
    ///
    /// # Errors
    /// Where the builder refuses, for instance a tensor that is none.
    fn size(&mut self, tensor: u32) -> Result<Self::Dim, Self::Error>;

    /// An operation on two dimensions.
    ///
    /// # Errors
    /// Where the builder refuses.
    fn operation(&mut self, op: ShapeOp, a: &Self::Dim, b: &Self::Dim) -> Result<Self::Dim, Self::Error>;
}

/// Why an expression cannot be lowered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LowerError<E> {
    /// It has no value, whatever the shapes.
    #[error(transparent)]
    Evaluate(#[from] EvalError),
    /// TensorRT cannot express a part.
    #[error("`{text}` cannot be computed by TensorRT's shape operations: {reason}")]
    Unsupported {
        /// The part; [`super::print_node`] prints it with names.
        node: NodeId,
        /// The part, with numbers for names.
        text: String,
        /// Why.
        reason: &'static str,
    },
    /// The builder refused.
    #[error("{0}")]
    Builder(E),
}
