use crate::node::NodeId;
use crate::ops::{self, EvalError};

/// `nvinfer1::DimensionOperation` (`NvInferRuntime.h`, TensorRT-RTX 1.3 to 1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ShapeOp {
    /// Sum.
    Sum = 0,
    /// Product.
    Prod = 1,
    /// Maximum.
    Max = 2,
    /// Minimum.
    Min = 3,
    /// Difference.
    Sub = 4,
    /// 1 if equal, else 0.
    Equal = 5,
    /// 1 if the first is less, else 0.
    Less = 6,
    /// The floor, also if negative: undocumented; `tests/tests/it/lowering.rs` verifies it (TensorRT-RTX 1.7.1).
    FloorDiv = 7,
    /// The ceiling, verified likewise.
    CeilDiv = 8,
}

impl ShapeOp {
    /// Computes as TensorRT does, wrapping in 64 bits; `None` for a division by zero.
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

/// Builds dimensions. Tensors are indexed over inputs, then outputs.
pub trait ShapeBuilder {
    /// A possibly unknown dimension.
    type Dim: Clone;
    /// The builder's error.
    type Error;

    /// Returns a constant.
    fn constant(&mut self, value: i64) -> Result<Self::Dim, Self::Error>;

    /// Returns a dimension; `axis` is below the rank. Fails for outputs.
    fn dim(&mut self, tensor: u32, axis: usize) -> Result<Self::Dim, Self::Error>;

    /// Returns a shape input's number of values, fixed by the network.
    fn value_count(&mut self, tensor: u32) -> Result<usize, Self::Error>;

    /// Returns a shape input's value; `index` is below [`ShapeBuilder::value_count`].
    fn value(&mut self, tensor: u32, index: usize) -> Result<Self::Dim, Self::Error>;

    /// Returns a size tensor's value.
    fn size(&mut self, tensor: u32) -> Result<Self::Dim, Self::Error>;

    /// Applies an operation.
    fn operation(&mut self, op: ShapeOp, a: &Self::Dim, b: &Self::Dim) -> Result<Self::Dim, Self::Error>;
}

/// Why an expression cannot be lowered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LowerError<E> {
    /// It never has a value.
    #[error(transparent)]
    Evaluate(#[from] EvalError),
    /// TensorRT cannot express this part.
    #[error("`{text}` cannot be computed by TensorRT's shape operations: {reason}")]
    Unsupported {
        /// [`super::print_node`] prints it with names.
        node: NodeId,
        /// The operation's text, without names.
        text: String,
        /// Reason.
        reason: &'static str,
    },
    /// The builder failed.
    #[error("{0}")]
    Builder(E),
}
