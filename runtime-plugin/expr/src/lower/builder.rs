//! TensorRT's shape operations and their builder.

use crate::node::NodeId;
use crate::ops::{self, EvalError};

/// TensorRT's operations on dimensions (`nvinfer1::DimensionOperation`, `NvInferRuntime.h`, TensorRT-RTX 1.3
/// to 1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ShapeOp {
    /// The sum.
    Sum = 0,
    /// The product.
    Prod = 1,
    /// The maximum.
    Max = 2,
    /// The minimum.
    Min = 3,
    /// The difference.
    Sub = 4,
    /// 1 if equal, else 0.
    Equal = 5,
    /// 1 if the first is less, else 0.
    Less = 6,
    /// The floor of the quotient, also if negative: undocumented; `tests/tests/it/lowering.rs` verifies it
    /// with TensorRT-RTX 1.7.1's builder.
    FloorDiv = 7,
    /// The ceiling of the quotient, also if negative, verified likewise.
    CeilDiv = 8,
}

impl ShapeOp {
    /// Computes as TensorRT does, wrapping in 64 bits. `None` for a division by zero, which it rejects.
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

/// Builds dimensions: TensorRT's expression builder, or a test double.
pub trait ShapeBuilder {
    /// A possibly unknown dimension.
    type Dim: Clone;
    /// The builder's error.
    type Error;

    /// Returns a constant.
    ///
    /// # Errors
    /// The builder fails.
    fn constant(&mut self, value: i64) -> Result<Self::Dim, Self::Error>;

    /// Returns a dimension of a tensor, indexed over inputs, then outputs; `axis` is less than the rank.
    ///
    /// # Errors
    /// The builder fails, for instance for an output's shape.
    fn dim(&mut self, tensor: u32, axis: usize) -> Result<Self::Dim, Self::Error>;

    /// Returns the number of values of a shape input, which is fixed by the network.
    ///
    /// # Errors
    /// The builder fails, for instance for another tensor.
    fn value_count(&mut self, tensor: u32) -> Result<usize, Self::Error>;

    /// Returns a value of a shape input; `index` is less than [`ShapeBuilder::value_count`].
    ///
    /// # Errors
    /// The builder fails.
    fn value(&mut self, tensor: u32, index: usize) -> Result<Self::Dim, Self::Error>;

    /// Returns a size tensor's value.
    ///
    /// # Errors
    /// The builder fails, for instance for another tensor.
    fn size(&mut self, tensor: u32) -> Result<Self::Dim, Self::Error>;

    /// Applies an operation to two dimensions.
    ///
    /// # Errors
    /// The builder fails.
    fn operation(&mut self, op: ShapeOp, a: &Self::Dim, b: &Self::Dim) -> Result<Self::Dim, Self::Error>;
}

/// Why an expression cannot be lowered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LowerError<E> {
    /// It never has a value.
    #[error(transparent)]
    Evaluate(#[from] EvalError),
    /// TensorRT cannot express a part.
    #[error("`{text}` cannot be computed by TensorRT's shape operations: {reason}")]
    Unsupported {
        /// The part; [`super::print_node`] prints it with names.
        node: NodeId,
        /// The part, with numbers for names.
        text: String,
        /// The reason.
        reason: &'static str,
    },
    /// The builder failed.
    #[error("{0}")]
    Builder(E),
}
