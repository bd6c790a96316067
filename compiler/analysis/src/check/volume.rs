//! Detects counterexamples whose tensors TensorRT rejects.

use cubinder_expr::Interval;
use cubinder_launch::proof::Case;
use cubinder_model::{Plugin, ShapeLimits};

/// "The volume of the tensor must be less than 2^31 elements" (`nvinfer1::ITensor`, `NvInfer.h`, TensorRT 10).
const MOST_ELEMENTS: i64 = i32::MAX as i64;

/// Ignores zero dimensions.
pub(super) fn is_beyond(case: &Case) -> bool {
    let count = |shape: &Vec<i64>| {
        shape.iter().filter(|dim| **dim != 0).fold(1_i128, |all, &dim| all.saturating_mul(dim.into()))
    };
    case.shapes.iter().any(|shape| count(shape) > MOST_ELEMENTS.into())
}

pub(super) fn taken(plugin: &Plugin) -> Plugin {
    let mut plugin = plugin.clone();
    let inputs = plugin.inputs.iter_mut().map(|input| &mut input.limits);
    let outputs = plugin.outputs.iter_mut().map(|output| &mut output.limits);
    inputs.chain(outputs).for_each(narrow);
    plugin
}

fn narrow(limits: &mut ShapeLimits) {
    let ShapeLimits { every, dims, numel } = limits;
    for range in [every, numel].into_iter().chain(dims) {
        *range = Interval { min: range.min, max: range.max.min(MOST_ELEMENTS) };
    }
}
