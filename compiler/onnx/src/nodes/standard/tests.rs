use crate::proto::AttributeProto;
use crate::proto::tensor_proto::DataType as Element;
use crate::testing::*;
use crate::{Model, Node};

use super::outputs;
use crate::nodes::tensors::{Dim, Tensor};

fn made(op: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> Node {
    let bytes = model(graph(vec![], vec![node(("", op), inputs, outputs, attributes)], vec![]), &[]);
    let mut model = Model::read(std::io::Cursor::new(bytes)).expect("it is a model");
    model.graphs[0].nodes.remove(0)
}

fn dims(dims: &[i64]) -> Vec<Dim> {
    dims.iter().copied().map(Dim::Known).collect()
}

fn integers_of(element: Element, shape: &[i64], values: &[i64]) -> Tensor {
    Tensor { values: Some(dims(values)), ..Tensor::new(Some(element), Some(dims(shape))) }
}

fn first(op: &str, attributes: Vec<AttributeProto>, inputs: &[Tensor]) -> Tensor {
    let names = ["a", "b", "c", "d"];
    let node = made(op, &names[..inputs.len()], &["y"], attributes);
    outputs(&node, inputs).into_iter().next().unwrap_or_default()
}

#[test]
fn values_of_more_than_one_dimension_are_no_lists() {
    let column = integers_of(Element::Int64, &[2, 1], &[1, 2]);
    let row = integers_of(Element::Int64, &[1, 2], &[3, 3]);
    let product = first("Mul", vec![], &[column, row]);
    assert_eq!((product.dims, product.values), (Some(dims(&[2, 2])), None));
    let list = integers_of(Element::Int64, &[2], &[1, 2]);
    let one = integers_of(Element::Int64, &[], &[3]);
    assert_eq!(first("Mul", vec![], &[list, one]).values, Some(dims(&[3, 6])));
}

#[test]
fn values_beyond_a_type_are_not_known() {
    let wide = integers_of(Element::Int64, &[2], &[4, (1 << 32) + 3]);
    let narrow = first("Cast", vec![int("to", 6)], &[wide]);
    assert_eq!(narrow.values, Some(vec![Dim::Known(4), Dim::Unknown]));
    let most = integers_of(Element::Int32, &[1], &[i64::from(i32::MAX)]);
    assert_eq!(first("Add", vec![], &[most.clone(), most]).values, Some(vec![Dim::Unknown]));
}

#[test]
fn parts_that_do_not_come_out_are_not_known() {
    let parts = |extent, count: usize, attributes| -> Vec<Option<i64>> {
        let names = ["p", "q", "r", "s"];
        let node = made("Split", &["a"], &names[..count], attributes);
        let input = Tensor::new(Some(Element::Float), Some(dims(&[extent])));
        let parts = outputs(&node, &[input]);
        parts.iter().map(|part| part.dims.as_ref().and_then(|dims| dims[0].extent())).collect()
    };
    assert_eq!(parts(6, 3, vec![]), [Some(2), Some(2), Some(2)]);
    assert_eq!(parts(5, 3, vec![]), [None; 3]);
    assert_eq!(parts(5, 3, vec![int("num_outputs", 3)]), [Some(2), Some(2), Some(1)]);
    assert_eq!(parts(5, 4, vec![int("num_outputs", 4)]), [None; 4]);
    assert_eq!(parts(6, 2, vec![int("num_outputs", 3)]), []);
}

#[test]
fn sizes_that_keep_a_ratio_are_not_known() {
    let input = Tensor::new(Some(Element::Float), Some(dims(&[1, 3, 2, 4])));
    let sizes = integers_of(Element::Int64, &[4], &[1, 3, 7, 8]);
    let resized = |policy: &str| {
        let nothing = Tensor::default();
        let inputs = [input.clone(), nothing.clone(), nothing, sizes.clone()];
        first("Resize", vec![string("keep_aspect_ratio_policy", policy)], &inputs).dims
    };
    assert_eq!(resized("stretch"), Some(dims(&[1, 3, 7, 8])));
    assert_eq!(resized("not_larger"), Some(vec![Dim::Unknown; 4]));
}

#[test]
fn types_are_those_of_scales_and_of_what_is_said() {
    let of = |element| Tensor::new(Some(element), Some(dims(&[2, 3])));
    let half = [of(Element::Float), of(Element::Float16)];
    assert_eq!(first("RMSNormalization", vec![], &half).element, None);
    let bytes = [of(Element::Uint8), of(Element::Float)];
    assert_eq!(first("DequantizeLinear", vec![], &bytes).element, Some(Element::Float));
    assert_eq!(
        first("DequantizeLinear", vec![int("output_dtype", 10)], &bytes).element,
        Some(Element::Float16)
    );
}

#[test]
fn what_each_call_says_is_no_default() {
    let mut axis = int("axis", 0);
    axis.ref_attr_name = Some("axis".to_owned());
    let input = Tensor::new(Some(Element::Float), Some(dims(&[2, 3])));
    assert_eq!(first("Flatten", vec![axis], &[input]), Tensor::default());
}
