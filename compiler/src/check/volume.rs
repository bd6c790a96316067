//! Tensors that TensorRT does not take: what only they refute is nothing that people meet.

use cubinder_bundle::expr::{BinaryOp, Expr, Node};
use cubinder_bundle::proof::Case;
use cubinder_bundle::{Interval, Plugin};

use super::formula::{is_within, joined, truth};

/// The most elements of a tensor: "the volume of the tensor must be less than 2^31 elements" (`nvinfer1::ITensor`, `NvInfer.h`,
/// TensorRT 10). The runtime does not rely on it: it checks what is not proved without it.
pub(super) const MOST_ELEMENTS: i64 = i32::MAX as i64;

/// Whether a tensor of a case has more elements than TensorRT takes.
pub(super) fn is_beyond(case: &Case) -> bool {
    let count = |shape: &Vec<i64>| shape.iter().fold(1_i128, |all, &dim| all.saturating_mul(dim.into()));
    case.shapes.iter().any(|shape| count(shape) > MOST_ELEMENTS.into())
}

/// No tensor of a plugin has more elements than TensorRT takes.
pub(super) fn is_taken(plugin: &Plugin) -> Expr {
    let tensors = plugin.inputs.len() + plugin.outputs.len();
    let allowed = Interval { min: 0, max: MOST_ELEMENTS };
    let numel = |tensor| is_within(&Expr { nodes: vec![Node::Numel(tensor)] }, allowed);
    let each: Vec<Expr> = (0..u32::try_from(tensors).unwrap_or(u32::MAX)).map(numel).collect();
    joined(BinaryOp::And, &each).unwrap_or_else(truth)
}
