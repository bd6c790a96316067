//! Operators that move, drop or combine elements.

use crate::Node;
use crate::proto::tensor_proto::DataType as Element;

use super::{MOST_VALUES, axis, broadcast, int, ints, known_dim, like};
use crate::nodes::tensors::{Dim, Tensor};

pub(super) fn output(node: &Node, inputs: &[Tensor]) -> Option<Tensor> {
    let input = inputs.first()?;
    match node.op_type() {
        "Reshape" => Some(with(input, reshape(node, inputs), input.values.clone())),
        "Flatten" => Some(with(input, flatten(node, input), None)),
        "Squeeze" => Some(with(input, squeeze(node, inputs), input.values.clone())),
        "Unsqueeze" => Some(with(input, unsqueeze(node, inputs), input.values.clone())),
        "Transpose" => Some(with(input, transpose(node, input), None)),
        "Expand" => {
            let wanted = shape_of_values(inputs.get(1)?);
            let dims = input.dims.as_ref().and_then(|dims| broadcast(dims, &wanted?));
            Some(with(input, dims, None))
        }
        "Concat" => Some(concat(node, inputs)),
        "Gather" => Some(gather(node, inputs)),
        "GatherElements" => Some(Tensor::new(input.element, inputs.get(1)?.dims.clone())),
        "Slice" => Some(slice(node, inputs)),
        "Pad" => Some(with(input, pad(node, inputs), None)),
        "Tile" => Some(with(input, tile(inputs), None)),
        "Resize" => Some(with(input, resize(node, inputs), None)),
        "DepthToSpace" => Some(with(input, blocks(node, input, true), None)),
        "SpaceToDepth" => Some(with(input, blocks(node, input, false), None)),
        _ => None,
    }
}

fn with(input: &Tensor, dims: Option<Vec<Dim>>, values: Option<Vec<Dim>>) -> Tensor {
    Tensor { element: input.element, dims, values }
}

pub(super) fn shape_of_values(tensor: &Tensor) -> Option<Vec<Dim>> {
    if let Some(values) = &tensor.values {
        let extent = |value: &Dim| {
            if value.extent().is_some_and(|extent| extent < 0) { Dim::Unknown } else { value.clone() }
        };
        return Some(values.iter().map(extent).collect());
    }
    match tensor.dims.as_deref() {
        Some([Dim::Known(rank)]) => {
            let rank = usize::try_from(*rank).ok().filter(|rank| *rank <= MOST_VALUES)?;
            Some(vec![Dim::Unknown; rank])
        }
        _ => None,
    }
}

fn product(dims: &[Dim]) -> Option<i64> {
    dims.iter().try_fold(1_i64, |product, dim| product.checked_mul(dim.extent()?))
}

fn reshape(node: &Node, inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let (input, shape) = (inputs.first()?, inputs.get(1)?);
    let Some(wanted) = &shape.values else { return shape_of_values(shape) };
    let copies = int(node, "allowzero").unwrap_or(0) == 0;
    let copied =
        |place: usize| input.dims.as_ref().and_then(|dims| dims.get(place).cloned()).unwrap_or(Dim::Unknown);
    let mut dims: Vec<Dim> = Vec::with_capacity(wanted.len());
    let mut rest = None;
    for (place, dim) in wanted.iter().enumerate() {
        dims.push(match dim {
            Dim::Known(0) if copies => copied(place),
            Dim::Known(-1) => {
                rest = Some(place);
                Dim::Unknown
            }
            other => other.clone(),
        });
    }
    if let Some(rest) = rest {
        dims[rest] = left_over(input, &dims, rest);
    }
    Some(dims)
}

/// Names on both sides cancel.
fn left_over(input: &Tensor, dims: &[Dim], rest: usize) -> Dim {
    let Some(before) = &input.dims else { return Dim::Unknown };
    let mut before: Vec<Dim> = before.clone();
    let mut after: Vec<Dim> =
        dims.iter().enumerate().filter(|(place, _)| *place != rest).map(|(_, dim)| dim.clone()).collect();
    after.retain(|dim| {
        let same = before.iter().position(|other| other == dim && matches!(dim, Dim::Named(_)));
        same.map(|place| before.swap_remove(place)).is_none()
    });
    match (product(&before), product(&after)) {
        (Some(all), Some(others @ 1..)) if all % others == 0 => Dim::Known(all / others),
        _ => match (before.as_slice(), product(&after)) {
            ([one], Some(1)) => one.clone(),
            _ => Dim::Unknown,
        },
    }
}

fn flatten(node: &Node, input: &Tensor) -> Option<Vec<Dim>> {
    let dims = input.dims.as_ref()?;
    let stated = int(node, "axis").unwrap_or(1);
    let rank = i64::try_from(dims.len()).ok()?;
    let place = usize::try_from(if stated < 0 { stated.checked_add(rank)? } else { stated }).ok()?;
    let (before, after) = dims.split_at_checked(place)?;
    let extent = |dims: &[Dim]| match dims {
        [one] => one.clone(),
        dims => product(dims).map_or(Dim::Unknown, Dim::Known),
    };
    Some(vec![extent(before), extent(after)])
}

fn stated_ints(node: &Node, name: &str, inputs: &[Tensor], place: usize) -> Option<Vec<i64>> {
    match ints(node, name) {
        Some(list) => Some(list.to_vec()),
        None => inputs.get(place)?.known_values(),
    }
}

fn has_input(node: &Node, place: usize) -> bool {
    node.proto.input.get(place).is_some_and(|name| !name.is_empty())
}

/// `Some(None)` if attribute and input are absent.
fn axes(node: &Node, inputs: &[Tensor], place: usize) -> Option<Option<Vec<i64>>> {
    match ints(node, "axes").is_some() || has_input(node, place) && inputs.len() > place {
        true => stated_ints(node, "axes", inputs, place).map(Some),
        false => Some(None),
    }
}

fn squeeze(node: &Node, inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let dims = inputs.first()?.dims.as_ref()?;
    let gone: Vec<usize> = match axes(node, inputs, 1)? {
        Some(axes) => axes.into_iter().map(|stated| axis(stated, dims.len())).collect::<Option<_>>()?,
        None if dims.iter().all(|dim| dim.extent().is_some()) => {
            (0..dims.len()).filter(|place| dims[*place] == Dim::Known(1)).collect()
        }
        None => return None,
    };
    let left = dims.iter().enumerate().filter(|(place, _)| !gone.contains(place));
    Some(left.map(|(_, dim)| dim.clone()).collect())
}

fn unsqueeze(node: &Node, inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let dims = inputs.first()?.dims.as_ref()?;
    let stated = axes(node, inputs, 1)??;
    if stated.len() > MOST_VALUES {
        return None;
    }
    let rank = dims.len() + stated.len();
    let places: Vec<usize> = stated.into_iter().map(|stated| axis(stated, rank)).collect::<Option<_>>()?;
    let mut left = dims.iter();
    let dim = |place: usize| if places.contains(&place) { Some(Dim::Known(1)) } else { left.next().cloned() };
    (0..rank).map(dim).collect()
}

fn transpose(node: &Node, input: &Tensor) -> Option<Vec<Dim>> {
    let dims = input.dims.as_ref()?;
    match ints(node, "perm") {
        None => Some(dims.iter().rev().cloned().collect()),
        Some(order) if order.len() == dims.len() => {
            order.iter().map(|place| dims.get(usize::try_from(*place).ok()?).cloned()).collect()
        }
        Some(_) => None,
    }
}

fn concat(node: &Node, inputs: &[Tensor]) -> Tensor {
    let element = inputs.iter().find_map(|input| input.element);
    let dims = || {
        let shapes: Option<Vec<&Vec<Dim>>> = inputs.iter().map(|input| input.dims.as_ref()).collect();
        let shapes = shapes?;
        let first = *shapes.first()?;
        let place = axis(int(node, "axis")?, first.len())?;
        let mut dims = first.clone();
        let total =
            shapes.iter().try_fold(0_i64, |total, dims| total.checked_add(dims.get(place)?.extent()?));
        dims[place] = total.map_or(Dim::Unknown, Dim::Known);
        for (other, dim) in dims.iter_mut().enumerate().filter(|(other, _)| *other != place) {
            // All extents are equal.
            let mut known = shapes.iter().filter_map(|dims| dims.get(other));
            if let Some(found) = known.find(|dim| dim.extent().is_some()) {
                *dim = found.clone();
            }
        }
        Some(dims)
    };
    let is_flat = |input: &Tensor| input.rank() == Some(1);
    let values = || {
        let all: Option<Vec<Dim>> = inputs
            .iter()
            .filter(|input| is_flat(input))
            .map(|input| input.values.clone())
            .try_fold(Vec::new(), |mut all, values| {
                all.extend(values?);
                (all.len() <= MOST_VALUES).then_some(all)
            });
        all.filter(|_| inputs.iter().all(is_flat))
    };
    Tensor { element, dims: dims(), values: values() }
}

fn gather(node: &Node, inputs: &[Tensor]) -> Tensor {
    let (Some(data), Some(indices)) = (inputs.first(), inputs.get(1)) else { return Tensor::default() };
    let dims = || {
        let (data, indices) = (data.dims.as_ref()?, indices.dims.as_ref()?);
        let place = axis(int(node, "axis").unwrap_or(0), data.len())?;
        Some([data.get(..place)?, indices, data.get(place + 1..)?].concat())
    };
    let values = || {
        let (data_values, chosen) = (data.values.as_ref()?, indices.known_values()?);
        if data.rank() != Some(1) {
            return None;
        }
        chosen.into_iter().map(|index| data_values.get(axis(index, data_values.len())?).cloned()).collect()
    };
    Tensor { element: data.element, dims: dims(), values: values() }
}

fn slice(node: &Node, inputs: &[Tensor]) -> Tensor {
    let Some(data) = inputs.first() else { return Tensor::default() };
    let stated = |name: &str, place: usize| stated_ints(node, name, inputs, place);
    let unknown = || Tensor::new(data.element, data.rank().map(|rank| vec![Dim::Unknown; rank]));
    let (Some(starts), Some(ends)) = (stated("starts", 1), stated("ends", 2)) else { return unknown() };
    let (axes, steps) = (stated("axes", 3), stated("steps", 4));
    let are_unknown = (has_input(node, 3) && axes.is_none()) || (has_input(node, 4) && steps.is_none());
    if are_unknown || starts.len() != ends.len() {
        return unknown();
    }
    let Some(dims) = &data.dims else { return Tensor::new(data.element, None) };
    let (mut dims, mut values) = (dims.clone(), data.values.clone().filter(|_| data.rank() == Some(1)));
    for (index, (start, end)) in starts.iter().zip(&ends).enumerate() {
        let stated = axes.as_ref().map_or(i64::try_from(index).ok(), |axes| axes.get(index).copied());
        let step = steps.as_ref().map_or(Some(1), |steps| steps.get(index).copied());
        let (Some(place), Some(step)) = (stated.and_then(|stated| axis(stated, dims.len())), step) else {
            return unknown();
        };
        let Some(extent) = dims[place].extent() else {
            // The full range keeps the extent.
            if !(*start == 0 && *end >= i64::from(i32::MAX) && step == 1) {
                dims[place] = Dim::Unknown;
                values = None;
            }
            continue;
        };
        let Some((first, count)) = kept(extent, *start, *end, step) else { return unknown() };
        dims[place] = known_dim(count);
        values = values.filter(|_| count <= MOST_VALUES).and_then(|values| {
            (0..count)
                .map(|at| values.get(usize::try_from(first + i64::try_from(at).ok()? * step).ok()?).cloned())
                .collect()
        });
    }
    Tensor { element: data.element, dims: Some(dims), values }
}

/// First element and count, by Python's slicing rules.
fn kept(extent: i64, start: i64, end: i64, step: i64) -> Option<(i64, usize)> {
    if extent == 0 || step == 0 {
        return (step != 0).then_some((0, 0));
    }
    let from_front = |stated: i64| if stated < 0 { stated.saturating_add(extent) } else { stated };
    let (start, end) = (from_front(start), from_front(end));
    let (first, distance) = if step > 0 {
        let first = start.clamp(0, extent);
        (first, end.clamp(0, extent) - first)
    } else {
        let first = start.clamp(0, extent - 1);
        (first, first - end.clamp(-1, extent - 1))
    };
    let step = step.checked_abs()?;
    let count = if distance <= 0 { 0 } else { (distance - 1) / step + 1 };
    Some((first, usize::try_from(count).ok()?))
}

fn pad(node: &Node, inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let dims = inputs.first()?.dims.as_ref()?;
    let pads = stated_ints(node, "pads", inputs, 1);
    let places: Option<Vec<usize>> = match has_input(node, 3) {
        false => Some((0..dims.len()).collect()),
        true => {
            let stated = inputs.get(3)?.known_values()?;
            stated.into_iter().map(|stated| axis(stated, dims.len())).collect()
        }
    };
    let (Some(pads), Some(places)) = (pads, places) else { return Some(vec![Dim::Unknown; dims.len()]) };
    if pads.len() != 2 * places.len() {
        return None;
    }
    let mut dims = dims.clone();
    for (index, place) in places.iter().enumerate() {
        let more = pads[index].checked_add(pads[index + places.len()])?;
        dims[*place] = match &dims[*place] {
            Dim::Known(extent) => Dim::Known(extent.checked_add(more).filter(|extent| *extent >= 0)?),
            other if more == 0 => other.clone(),
            _ => Dim::Unknown,
        };
    }
    Some(dims)
}

fn tile(inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let dims = inputs.first()?.dims.as_ref()?;
    let Some(times) = inputs.get(1).and_then(Tensor::known_values).filter(|times| times.len() == dims.len())
    else {
        return Some(vec![Dim::Unknown; dims.len()]);
    };
    let dim = |(dim, times): (&Dim, i64)| match dim {
        Dim::Known(extent) => extent.checked_mul(times).map_or(Dim::Unknown, Dim::Known),
        other if times == 1 => other.clone(),
        _ => Dim::Unknown,
    };
    Some(dims.iter().zip(times).map(dim).collect())
}

/// Only for explicit sizes: scales and aspect-ratio policies need floats.
fn resize(node: &Node, inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let rank = inputs.first()?.rank()?;
    let policy = node.attribute("keep_aspect_ratio_policy").map_or(&b"stretch"[..], |policy| policy.s());
    if policy != b"stretch" {
        return Some(vec![Dim::Unknown; rank]);
    }
    let sizes = inputs
        .get(3)
        .and_then(shape_of_values)
        .filter(|sizes| sizes.len() == rank && ints(node, "axes").is_none());
    Some(sizes.unwrap_or_else(|| vec![Dim::Unknown; rank]))
}

fn blocks(node: &Node, input: &Tensor, to_space: bool) -> Option<Vec<Dim>> {
    let dims = input.dims.as_ref().filter(|dims| dims.len() == 4)?;
    let size = int(node, "blocksize").filter(|size| (1..=i64::from(u16::MAX)).contains(size))?;
    let extent = |dim: &Dim, by: i64, grows: bool| {
        let extent =
            dim.extent().and_then(|extent| if grows { extent.checked_mul(by) } else { Some(extent / by) });
        extent.map_or(Dim::Unknown, Dim::Known)
    };
    let channels = extent(&dims[1], size * size, !to_space);
    Some(vec![dims[0].clone(), channels, extent(&dims[2], size, to_space), extent(&dims[3], size, to_space)])
}

pub(super) fn reduce(node: &Node, inputs: &[Tensor]) -> Option<Tensor> {
    let input = inputs.first()?;
    let keeps = int(node, "keepdims").unwrap_or(1) != 0;
    let dims = || {
        let dims = input.dims.as_ref()?;
        let stated = axes(node, inputs, 1);
        let places: Option<Vec<usize>> = match stated {
            None => None,
            Some(None) if int(node, "noop_with_empty_axes").unwrap_or(0) != 0 => return Some(dims.clone()),
            Some(None) => Some((0..dims.len()).collect()),
            Some(Some(axes)) if axes.is_empty() => return None,
            Some(Some(axes)) => axes.into_iter().map(|stated| axis(stated, dims.len())).collect(),
        };
        match places {
            None => keeps.then(|| vec![Dim::Unknown; dims.len()]),
            Some(places) => Some(reduced(dims, &places, keeps)),
        }
    };
    Some(Tensor::new(input.element, dims()))
}

fn reduced(dims: &[Dim], places: &[usize], keeps: bool) -> Vec<Dim> {
    let dim = |(place, dim): (usize, &Dim)| match places.contains(&place) {
        true => keeps.then_some(Dim::Known(1)),
        false => Some(dim.clone()),
    };
    dims.iter().enumerate().filter_map(dim).collect()
}

pub(super) fn arg(node: &Node, input: &Tensor) -> Option<Tensor> {
    let keeps = int(node, "keepdims").unwrap_or(1) != 0;
    let dims = input.dims.as_ref().and_then(|dims| {
        let place = axis(int(node, "axis").unwrap_or(0), dims.len())?;
        Some(reduced(dims, &[place], keeps))
    });
    Some(Tensor::new(Some(Element::Int64), dims))
}

pub(super) fn split(node: &Node, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let input = inputs.first()?;
    let count = Some(node.proto.output.len()).filter(|count| *count <= MOST_VALUES)?;
    let Some(dims) = &input.dims else { return Some(vec![like(input); count]) };
    let place = axis(int(node, "axis").unwrap_or(0), dims.len())?;
    let sizes: Vec<Dim> = match stated_ints(node, "split", inputs, 1) {
        Some(sizes) if sizes.len() == count => sizes.into_iter().map(Dim::Known).collect(),
        None if !has_input(node, 1) => {
            let counted = int(node, "num_outputs");
            if counted.is_some_and(|counted| usize::try_from(counted) != Ok(count)) {
                return None;
            }
            equal_parts(&dims[place], count, counted.is_some())
        }
        _ => vec![Dim::Unknown; count],
    };
    let part = |size: Dim| {
        let mut dims = dims.clone();
        dims[place] = size;
        Tensor::new(input.element, Some(dims))
    };
    Some(sizes.into_iter().map(part).collect())
}

/// Since operator set 18, with an explicit count (`is_uneven`), the last part may be smaller.
fn equal_parts(extent: &Dim, count: usize, is_uneven: bool) -> Vec<Dim> {
    let unknown = vec![Dim::Unknown; count];
    let (Some(extent), Ok(parts @ 1..)) = (extent.extent(), i64::try_from(count)) else { return unknown };
    let size = extent / parts + i64::from(extent % parts != 0);
    let Some(last) = size.checked_mul(parts - 1).map(|others| extent - others) else { return unknown };
    if last < 0 || (last != size && !is_uneven) {
        return unknown;
    }
    let part = |index: i64| Dim::Known(if index + 1 == parts { last } else { size });
    (0..parts).map(part).collect()
}

pub(super) fn top_k(node: &Node, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let input = inputs.first()?;
    let count = int(node, "k").or_else(|| inputs.get(1)?.known_values()?.first().copied());
    let dims = input.dims.as_ref().and_then(|dims| {
        let place = axis(int(node, "axis").unwrap_or(-1), dims.len())?;
        let mut dims = dims.clone();
        dims[place] = count.filter(|count| *count >= 0).map_or(Dim::Unknown, Dim::Known);
        Some(dims)
    });
    Some(vec![Tensor::new(input.element, dims.clone()), Tensor::new(Some(Element::Int64), dims)])
}
