//! Convolutions, poolings, matrix products.

use crate::Node;

use super::{broadcast, int, ints};
use crate::nodes::tensors::{Dim, Tensor};

pub(super) fn mat_mul(inputs: &[Tensor]) -> Option<Tensor> {
    let [left, right] = inputs else { return None };
    let dims = || {
        let (left, right) = (left.dims.as_ref()?, right.dims.as_ref()?);
        let (rows, columns) = (left.len() >= 2, right.len() >= 2);
        if left.is_empty() || right.is_empty() {
            return None;
        }
        let before = |dims: &[Dim]| dims[..dims.len().saturating_sub(2)].to_vec();
        let mut dims = broadcast(&before(left), &before(right))?;
        if rows {
            dims.push(left[left.len() - 2].clone());
        }
        if columns {
            dims.push(right[right.len() - 1].clone());
        }
        Some(dims)
    };
    Some(Tensor::new(left.element.or(right.element), dims()))
}

pub(super) fn gemm(node: &Node, inputs: &[Tensor]) -> Option<Tensor> {
    let (left, right) = (inputs.first()?, inputs.get(1)?);
    let turned = |name: &str| int(node, name).unwrap_or(0) != 0;
    let dim = |tensor: &Tensor, place: usize| match tensor.dims.as_deref() {
        Some(dims @ [_, _]) => dims[place].clone(),
        _ => Dim::Unknown,
    };
    let rows = dim(left, usize::from(turned("transA")));
    let columns = dim(right, usize::from(!turned("transB")));
    Some(Tensor::new(left.element.or(right.element), Some(vec![rows, columns])))
}

pub(super) fn conv(node: &Node, inputs: &[Tensor]) -> Option<Tensor> {
    let (input, weights) = (inputs.first()?, inputs.get(1)?);
    let channels = weights.dims.as_ref().and_then(|dims| dims.first().cloned()).unwrap_or(Dim::Unknown);
    let of_weights =
        || weights.dims.as_ref()?.get(2..)?.iter().map(Dim::extent).collect::<Option<Vec<i64>>>();
    let kernel = ints(node, "kernel_shape").map(<[i64]>::to_vec).or_else(of_weights);
    let mut output = places(input, |dims| windows(node, dims, kernel.as_deref()))?;
    if let Some(dims) = &mut output.dims {
        dims[1] = channels;
    }
    Some(output)
}

pub(super) fn pool(node: &Node, input: &Tensor) -> Option<Tensor> {
    places(input, |dims| windows(node, dims, ints(node, "kernel_shape")))
}

pub(super) fn global_pool(input: &Tensor) -> Option<Tensor> {
    places(input, |dims| Some(vec![Dim::Known(1); dims.len()]))
}

fn places(input: &Tensor, extents: impl Fn(&[Dim]) -> Option<Vec<Dim>>) -> Option<Tensor> {
    let dims = input.dims.as_ref().and_then(|dims| {
        let (head, rest) = dims.split_at_checked(2)?;
        Some([head, &extents(rest)?].concat())
    });
    Some(Tensor::new(input.element, dims))
}

fn windows(node: &Node, extents: &[Dim], kernel: Option<&[i64]>) -> Option<Vec<Dim>> {
    let count = extents.len();
    let list = |name: &str, default: i64| {
        let list = ints(node, name).filter(|list| !list.is_empty()).map(<[i64]>::to_vec);
        list.unwrap_or_else(|| vec![default; count])
    };
    let (strides, dilations) = (list("strides", 1), list("dilations", 1));
    let pads = ints(node, "pads").map_or_else(|| vec![0; 2 * count], <[i64]>::to_vec);
    let ceil = int(node, "ceil_mode").unwrap_or(0) != 0;
    let auto = node.attribute("auto_pad").map_or(&b"NOTSET"[..], |attribute| attribute.s());
    if strides.len() != count || dilations.len() != count || pads.len() != 2 * count {
        return None;
    }
    let one = |place: usize| {
        let extent = extents[place].extent()?;
        let kernel = *kernel?.get(place)?;
        let (stride, dilation) = (strides[place], dilations[place]);
        if stride < 1 || kernel < 1 || dilation < 1 {
            return None;
        }
        if auto.starts_with(b"SAME") {
            return extent.checked_add(stride - 1)?.checked_div(stride);
        }
        let padding = if auto == b"VALID" { 0 } else { pads[place].checked_add(pads[place + count])? };
        let window = (kernel - 1).checked_mul(dilation)?.checked_add(1)?;
        let free = extent.checked_add(padding)?.checked_sub(window)?;
        if free < 0 {
            return None;
        }
        let more = if ceil { stride - 1 } else { 0 };
        let windows = free.checked_add(more)? / stride + 1;
        // Windows that start in end padding count only before operator set 19.
        let begins_behind = (windows - 1).checked_mul(stride)? >= extent.checked_add(pads[place])?;
        // Without padding, the standard's formula drops partial windows; its inference counts them.
        let is_beyond = auto == b"VALID" && windows != free / stride + 1;
        (!ceil || !begins_behind && !is_beyond).then_some(windows)
    };
    Some((0..count).map(|place| one(place).map_or(Dim::Unknown, Dim::Known)).collect())
}
