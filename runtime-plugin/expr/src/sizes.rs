//! Data-dependent sizes. Only valid as dimensions: TensorRT rejects expressions with results of
//! `IExprBuilder::declareSizeTensor` (observed with TensorRT-RTX 1.7.1).

use super::error::{ErrorClass, ExprError};
use super::node::{Expr, Node, NodeId};
use super::print::Names;
use super::scope::Scope;
use crate::error::Span;
use crate::sorting::sorted_set;

/// Returns whether every size is an element of the root array.
#[must_use]
pub fn sizes_are_dimensions(expr: &Expr) -> bool {
    misplaced_nodes(expr).next().is_none()
}

/// Returns the distinct size tensors, in order.
#[must_use]
pub fn sizes_of(expr: &Expr) -> Vec<u32> {
    let size = |node: &Node| match node {
        Node::Size(tensor) => Some(*tensor),
        _ => None,
    };
    sorted_set(expr.nodes.iter().filter_map(size).collect())
}

fn misplaced_nodes(expr: &Expr) -> impl Iterator<Item = (usize, u32)> {
    let dimensions: &[NodeId] = match expr.nodes.last() {
        Some(Node::Array(items)) => items,
        _ => &[],
    };
    expr.nodes.iter().enumerate().filter_map(move |(index, node)| match node {
        Node::Size(tensor) if !dimensions.iter().any(|item| *item as usize == index) => {
            Some((index, *tensor))
        }
        _ => None,
    })
}

pub(super) fn misplaced(source: &Expr, spans: &[Span], whole: &Span, scope: &Scope) -> ExprError {
    let (index, tensor) = misplaced_nodes(source).next().unwrap_or_default();
    let span = spans.get(index).unwrap_or(whole).clone();
    let name = Names::tensor(scope, tensor).unwrap_or("size");
    let message = format!("the size `{name}` cannot be used in computations");
    ExprError::new(ErrorClass::OutOfPlace, span, message, "known after the kernels have run").help(format!(
        "use it only as an entire dimension, such as in `[{name}, 4]`; let a kernel write a size that needs no arithmetic"
    ))
}
