//! Tensors that TensorRT does not take: what only they refute is nothing that people meet.

use cubinder_bundle::proof::Case;
use cubinder_bundle::{Interval, Plugin, ShapeLimits};

/// The most elements of a tensor: "the volume of the tensor must be less than 2^31 elements" (`nvinfer1::ITensor`, `NvInfer.h`,
/// TensorRT 10). A tensor without elements has no dimension beyond that either. The runtime does not rely on it: it checks what is
/// not proved without it.
pub(super) const MOST_ELEMENTS: i64 = i32::MAX as i64;

/// Whether a tensor of a case is larger than TensorRT takes.
pub(super) fn is_beyond(case: &Case) -> bool {
    let count =
        |shape: &Vec<i64>| shape.iter().fold(1_i128, |all, &dim| all.saturating_mul(dim.max(1).into()));
    case.shapes.iter().any(|shape| count(shape) > MOST_ELEMENTS.into())
}

/// The plugin with limits under which TensorRT takes every tensor.
pub(super) fn taken(plugin: &Plugin) -> Plugin {
    let mut plugin = plugin.clone();
    plugin.inputs.iter_mut().for_each(|input| narrow(&mut input.limits));
    plugin.outputs.iter_mut().for_each(|output| narrow(&mut output.limits));
    plugin
}

fn narrow(limits: &mut ShapeLimits) {
    let most = |range: &mut Interval| range.max = range.max.min(MOST_ELEMENTS);
    most(&mut limits.every);
    most(&mut limits.numel);
    limits.dims.iter_mut().for_each(most);
}
