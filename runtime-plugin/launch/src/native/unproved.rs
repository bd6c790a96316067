//! Properties that TensorRT does not check.

use super::SHARED_BYTES;
use crate::Role;
use crate::proof::{Domain, Verdict};
use cubinder_expr::data_type::ScalarType;
use cubinder_expr::{BinaryOp, BindingTime, Expr, Node, binding_time, is_within, joined};
use cubinder_model::cuda_limits::{MAX_BLOCK, MAX_GRID, MAX_THREADS};
use cubinder_model::model::{ArgValue, Guard, Interval, Launch, Output, Plugin};

/// A part without a proof of its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unproved {
    /// Part.
    pub role: Role,
    /// Valid range.
    pub range: Interval,
    /// Whether it is always out of range.
    pub never: bool,
}

/// Returns when the kernel runs: the step's condition and a grid without 0.
#[must_use]
pub fn running(when: Option<&Guard>, launch: &Launch) -> Option<Expr> {
    let some = Interval { min: 1, max: i64::MAX };
    let grid = launch.grid.iter().filter(|extent| extent.constant().is_none_or(|blocks| blocks < 1));
    let parts: Vec<Expr> = grid.map(|extent| is_within(extent, some)).collect();
    joined(BinaryOp::And, parts.iter().chain(when.map(|when| &when.expr)))
}

/// Returns, per written output, that the kernel runs unless it is empty. Empty if it always runs.
#[must_use]
pub fn writes(plugin: &Plugin, when: Option<&Guard>, launch: &Launch) -> Vec<(String, Expr)> {
    let Some(running) = running(when, launch) else { return Vec::new() };
    let first = u32::try_from(plugin.inputs.len()).unwrap_or(u32::MAX);
    let is_written = |tensor: u32| launch.args.iter().any(|arg| arg.value == ArgValue::Tensor(tensor));
    let outputs = (first..).zip(&plugin.outputs);
    let written = outputs.filter(|(tensor, output)| output.alias.is_none() && is_written(*tensor));
    let statement = |(tensor, output): (u32, &Output)| {
        let numel = Expr { nodes: vec![Node::Numel(tensor)] };
        let is_empty = is_within(&numel, Interval { min: 0, max: 0 });
        Some((output.name.clone(), joined(BinaryOp::Or, [&is_empty, &running])?))
    };
    written.filter_map(statement).collect()
}

/// Returns parts without a proof where [`running`]: TensorRT keeps 32 of 64 bits. `declared`: static shared bytes.
#[must_use]
pub fn unproved(domain: &Domain<'_>, launch: &Launch, declared: u32) -> Vec<Unproved> {
    let fits = |expr: &Expr, range| {
        domain.within(expr, range) == Verdict::Proved && domain.has_value(expr) == Verdict::Proved
    };
    let is = |expr: &Expr, min, max| domain.within(expr, Interval { min, max }) == Verdict::Proved;
    let parts = extents(launch, declared).into_iter().chain(arguments(launch));
    let open = parts.filter(|(_, expr, range)| !fits(expr, *range));
    open.map(|(role, expr, range)| {
        let below = range.min.checked_sub(1).is_some_and(|max| is(&expr, i64::MIN, max));
        let above = range.max.checked_add(1).is_some_and(|min| is(&expr, min, i64::MAX));
        Unproved { role, range, never: below != above }
    })
    .collect()
}

fn extents(launch: &Launch, declared: u32) -> Vec<(Role, Expr, Interval)> {
    let axes = ['x', 'y', 'z'];
    let within = |min, most: [i64; 3]| most.map(|max| Interval { min, max });
    let grid = launch.grid.iter().zip(within(0, MAX_GRID)).zip(axes);
    let grid = grid.map(|((expr, range), axis)| (Role::Grid(axis), expr.clone(), range));
    let block = launch.block.iter().zip(within(1, MAX_BLOCK)).zip(axes);
    let block = block.map(|((expr, range), axis)| (Role::Block(axis), expr.clone(), range));
    let axes: Vec<&Expr> = launch.block.iter().filter(|axis| axis.constant() != Some(1)).collect();
    let is_product = axes.len() > 1 && axes.iter().any(|axis| axis.constant().is_none());
    let threads = joined(BinaryOp::Mul, axes).filter(|_| is_product);
    let threads = threads.map(|threads| (Role::Threads, threads, Interval { min: 1, max: MAX_THREADS }));
    // ptxas rejects larger `declared`.
    let left = (SHARED_BYTES - i64::from(declared)).max(0);
    let shared = (Role::SharedBytes, launch.shared_bytes.clone(), Interval { min: 0, max: left });
    grid.chain(block).chain(threads).chain([shared]).collect()
}

fn arguments(launch: &Launch) -> impl Iterator<Item = (Role, Expr, Interval)> {
    launch.args.iter().filter_map(|arg| match &arg.value {
        ArgValue::Scalar { ty, expr } | ArgValue::Array { ty, expr, .. } => {
            let is_of_shapes = binding_time(expr) == BindingTime::Shape;
            Some((Role::Argument(arg.name.clone()), expr.clone(), range(*ty).filter(|_| is_of_shapes)?))
        }
        ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => None,
    })
}

fn range(ty: ScalarType) -> Option<Interval> {
    let (least, greatest) = ty.integers()?;
    let end = |end: i128| i64::try_from(end).unwrap_or(i64::MAX);
    Some(Interval { min: end(least), max: end(greatest) })
}
