//! Infers types, shapes and small integer values of ordinary operators.
//!
//! Element-wise operators and shape arithmetic; [`moving`] and [`windows`] have others. Follows ONNX operator sets 7 to
//! 27 with NumPy's broadcasting. Never guesses.

mod moving;
mod windows;

use crate::Node;
use crate::proto::AttributeProto;
use crate::proto::tensor_proto::DataType as Element;

use super::plugin_fields::reference;
use super::tensors::{Dim, MOST_VALUES, Tensor, constant, known_element};

/// Only for default-domain nodes; empty if unknown.
pub(super) fn outputs(node: &Node, inputs: &[Tensor]) -> Vec<Tensor> {
    if node.proto.attribute.iter().any(|stated| reference(stated).is_some()) {
        return Vec::new();
    }
    let outputs = match node.op_type() {
        "Split" => moving::split(node, inputs),
        "Dropout" => inputs
            .first()
            .map(|input| vec![like(input), Tensor::new(Some(Element::Bool), input.dims.clone())]),
        "TopK" => moving::top_k(node, inputs),
        _ => single_output(node, inputs).map(|tensor| vec![tensor]),
    };
    outputs.unwrap_or_default()
}

/// Output type and shape equal the first input's.
const SAME_SHAPE: &str = "Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitwiseNot Ceil Celu Clip Cos Cosh CumSum Elu Erf \
     Exp Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization LRN LayerNormalization LeakyRelu Log \
     LogSoftmax LpNormalization Mish Neg PRelu Reciprocal Relu Round ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh \
     Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu";

fn single_output(node: &Node, inputs: &[Tensor]) -> Option<Tensor> {
    let first = || inputs.first();
    match node.op_type() {
        "Identity" => first().cloned(),
        op if SAME_SHAPE.split(' ').any(|known| known == op) => first().map(like),
        "RMSNormalization" => {
            // The standard uses the scale's type; its inference the input's.
            let (input, scale) = (first()?, inputs.get(1)?);
            Some(Tensor::new(input.element.filter(|_| input.element == scale.element), input.dims.clone()))
        }
        "Not" | "IsNaN" | "IsInf" => Some(Tensor::new(Some(Element::Bool), first()?.dims.clone())),
        "Add" | "Sub" | "Mul" | "Div" => arithmetic(node.op_type(), inputs),
        "Pow" | "Mod" | "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "Max" | "Min" | "Mean"
        | "Sum" => Some(Tensor::new(first()?.element, broadcast_all(inputs))),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Xor" => {
            Some(Tensor::new(Some(Element::Bool), broadcast_all(inputs)))
        }
        "Where" => {
            let [_, then, otherwise] = inputs else { return None };
            Some(Tensor::new(then.element.or(otherwise.element), broadcast_all(inputs)))
        }
        "Cast" => cast(node, first()?),
        "CastLike" => Some(Tensor::new(inputs.get(1)?.element, first()?.dims.clone())),
        "QuantizeLinear" => {
            let zero = inputs.get(2).and_then(|zero| zero.element);
            Some(Tensor::new(zero.or_else(|| stated_element(node, "output_dtype")), first()?.dims.clone()))
        }
        "DequantizeLinear" => {
            let stated = stated_element(node, "output_dtype");
            Some(Tensor::new(stated.or(inputs.get(1)?.element), first()?.dims.clone()))
        }
        "Constant" => of_constant(node),
        "ConstantOfShape" => constant_of_shape(node, first()?),
        "Shape" => shape(node, first()?),
        "Size" => Some(Tensor { values: size(first()?).map(|size| vec![size]), ..scalar(Element::Int64) }),
        "Range" => range(inputs),
        "MatMul" => windows::mat_mul(inputs),
        "Gemm" => windows::gemm(node, inputs),
        "Conv" => windows::conv(node, inputs),
        "AveragePool" | "MaxPool" | "LpPool" => windows::pool(node, first()?),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => windows::global_pool(first()?),
        op if op.starts_with("Reduce") => moving::reduce(node, inputs),
        "ArgMax" | "ArgMin" => moving::arg(node, first()?),
        _ => moving::output(node, inputs),
    }
}

fn like(tensor: &Tensor) -> Tensor {
    Tensor::new(tensor.element, tensor.dims.clone())
}

fn scalar(element: Element) -> Tensor {
    Tensor::new(Some(element), Some(Vec::new()))
}

fn int(node: &Node, name: &str) -> Option<i64> {
    node.attribute(name).and_then(|attribute| attribute.i)
}

fn ints<'n>(node: &'n Node, name: &str) -> Option<&'n [i64]> {
    node.attribute(name).map(|attribute| attribute.ints.as_slice())
}

fn stated_element(node: &Node, name: &str) -> Option<Element> {
    int(node, name).and_then(|stated| i32::try_from(stated).ok()).and_then(known_element)
}

/// Not negative; `None` if out of range.
fn axis(stated: i64, rank: usize) -> Option<usize> {
    let rank_signed = i64::try_from(rank).ok()?;
    let place = if stated < 0 { stated.checked_add(rank_signed)? } else { stated };
    usize::try_from(place).ok().filter(|place| *place < rank)
}

fn known_dim(extent: usize) -> Dim {
    i64::try_from(extent).map_or(Dim::Unknown, Dim::Known)
}

fn broadcast_all(inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let mut shapes = inputs.iter().map(|input| input.dims.as_ref());
    let first = shapes.next()??.clone();
    shapes.try_fold(first, |all, dims| broadcast(&all, dims?))
}

/// Broadcasts by NumPy's rule; `None` if extents mismatch.
pub(super) fn broadcast(left: &[Dim], right: &[Dim]) -> Option<Vec<Dim>> {
    let rank = left.len().max(right.len());
    let at = |dims: &[Dim], place: usize| {
        let missing = rank - dims.len();
        if place < missing { Dim::Known(1) } else { dims[place - missing].clone() }
    };
    (0..rank).map(|place| together(at(left, place), at(right, place))).collect()
}

fn together(left: Dim, right: Dim) -> Option<Dim> {
    match (left, right) {
        (left, right) if left == right => Some(left),
        (Dim::Known(1), other) | (other, Dim::Known(1)) => Some(other),
        (Dim::Known(_), Dim::Known(_)) => None,
        // The unknown extent is 1 or equal.
        (Dim::Known(extent), _) | (_, Dim::Known(extent)) => Some(Dim::Known(extent)),
        _ => Some(Dim::Unknown),
    }
}

fn arithmetic(op: &str, inputs: &[Tensor]) -> Option<Tensor> {
    let [left, right] = inputs else { return None };
    let dims = broadcast_all(inputs);
    let values = values_of(op, left, right);
    Some(Tensor { values, ..Tensor::new(left.element.or(right.element), dims) })
}

fn values_of(op: &str, left: &Tensor, right: &Tensor) -> Option<Vec<Dim>> {
    let is_list = |tensor: &Tensor| tensor.rank().is_some_and(|rank| rank <= 1);
    if ![left, right].into_iter().all(|tensor| tensor.is_integer() && is_list(tensor)) {
        return None;
    }
    let element = left.element?;
    let (left, right) = (left.values.as_ref()?, right.values.as_ref()?);
    let count = match (left.len(), right.len()) {
        (1, count) | (count, 1) => count,
        (one, other) if one == other => one,
        _ => return None,
    };
    let at = |values: &[Dim], place: usize| values.get(if values.len() == 1 { 0 } else { place }).cloned();
    (0..count).map(|place| Some(within(element, number(op, &at(left, place)?, &at(right, place)?)))).collect()
}

fn within(element: Element, value: Dim) -> Dim {
    match value {
        Dim::Known(value) if element == Element::Int32 && i32::try_from(value).is_err() => Dim::Unknown,
        value => value,
    }
}

fn number(op: &str, left: &Dim, right: &Dim) -> Dim {
    let result = match (op, left, right) {
        ("Add", Dim::Known(left), Dim::Known(right)) => left.checked_add(*right),
        ("Sub", Dim::Known(left), Dim::Known(right)) => left.checked_sub(*right),
        ("Mul", Dim::Known(left), Dim::Known(right)) => left.checked_mul(*right),
        // Integer division truncates towards zero.
        ("Div", Dim::Known(left), Dim::Known(right)) => left.checked_div(*right),
        ("Add" | "Sub", other, Dim::Known(0)) | ("Mul" | "Div", other, Dim::Known(1)) => {
            return other.clone();
        }
        ("Add", Dim::Known(0), other) | ("Mul", Dim::Known(1), other) => return other.clone(),
        _ => None,
    };
    result.map_or(Dim::Unknown, Dim::Known)
}

fn cast(node: &Node, input: &Tensor) -> Option<Tensor> {
    let element = stated_element(node, "to");
    let integers = element.filter(|element| matches!(element, Element::Int64 | Element::Int32));
    // Float values are never known: no rounding.
    let values = integers.and_then(|element| {
        Some(input.values.as_ref()?.iter().map(|value| within(element, value.clone())).collect())
    });
    Some(Tensor { element, dims: input.dims.clone(), values })
}

fn of_constant(node: &Node) -> Option<Tensor> {
    let whole = |values: &[i64], dims: Vec<Dim>| Tensor {
        values: Some(values.iter().copied().map(Dim::Known).collect()),
        ..Tensor::new(Some(Element::Int64), Some(dims))
    };
    let attribute = |name: &str| node.attribute(name);
    if let Some(tensor) = attribute("value").and_then(|value| value.t.as_ref()) {
        return Some(constant(tensor));
    }
    if let Some(value) = attribute("value_int") {
        return Some(whole(&[value.i()], Vec::new()));
    }
    if let Some(value) = attribute("value_ints") {
        return Some(whole(&value.ints, vec![known_dim(value.ints.len())]));
    }
    let floats =
        |value: &AttributeProto| Tensor::new(Some(Element::Float), Some(vec![known_dim(value.floats.len())]));
    attribute("value_floats").map(floats).or_else(|| attribute("value_float").map(|_| scalar(Element::Float)))
}

fn constant_of_shape(node: &Node, shape: &Tensor) -> Option<Tensor> {
    let value = node.attribute("value").and_then(|value| value.t.as_ref()).map(constant);
    let element = value.as_ref().map_or(Some(Element::Float), |value| value.element);
    let mut tensor = Tensor::new(element, moving::shape_of_values(shape));
    if let (Some(value), Some(dims)) =
        (value.as_ref().and_then(|value| value.values.as_ref()?.first()), &tensor.dims)
        && let [Dim::Known(count @ 0..)] = dims.as_slice()
    {
        let count = usize::try_from(*count).ok().filter(|count| *count <= MOST_VALUES);
        tensor.values = count.map(|count| vec![value.clone(); count]);
    }
    Some(tensor)
}

fn shape(node: &Node, input: &Tensor) -> Option<Tensor> {
    let Some(dims) = &input.dims else {
        return Some(Tensor::new(Some(Element::Int64), Some(vec![Dim::Unknown])));
    };
    let rank = i64::try_from(dims.len()).ok()?;
    let place = |name: &str, default: i64| {
        let stated = int(node, name).unwrap_or(default);
        let from_front = if stated < 0 { stated.saturating_add(rank) } else { stated };
        usize::try_from(from_front.clamp(0, rank)).unwrap_or(0)
    };
    let values = dims.get(place("start", 0)..place("end", rank)).unwrap_or_default().to_vec();
    let dims = Some(vec![known_dim(values.len())]);
    Some(Tensor { values: Some(values), ..Tensor::new(Some(Element::Int64), dims) })
}

fn size(input: &Tensor) -> Option<Dim> {
    let dims = input.dims.as_ref()?;
    let size = dims.iter().try_fold(1_i64, |size, dim| size.checked_mul(dim.extent()?));
    Some(size.map_or(Dim::Unknown, Dim::Known))
}

fn range(inputs: &[Tensor]) -> Option<Tensor> {
    let element = inputs.first()?.element;
    let value = |index: usize| inputs.get(index)?.known_values()?.first().copied();
    let count = || {
        let (start, limit, delta) = (value(0)?, value(1)?, value(2)?);
        let distance = i128::from(limit) - i128::from(start);
        let delta = i128::from(delta);
        if delta == 0 {
            return None;
        }
        let count =
            (distance / delta + i128::from(distance % delta != 0 && (distance > 0) == (delta > 0))).max(0);
        i64::try_from(count).ok()
    };
    Some(Tensor::new(element, Some(vec![count().map_or(Dim::Unknown, Dim::Known)])))
}

#[cfg(test)]
mod tests;
