use std::sync::Arc;

use cubinder_expr::{DataType, Format, Interval, Value};
use cubinder_expr::{Expr, Node as ExprNode};
use cubinder_launch::{NODE_STEP_LIMIT, Steps};
use cubinder_model::model::SizeBound;
use cubinder_model::{Input, Node, Output, Plugin, ShapeLimits, Variant};
use trt_abi::{Dims, PluginTensorDesc, TensorFormat};

use super::node::{NamedNode, NodeData};
use super::tensor_descs::TensorDescs;
use crate::definition::Definition;
use crate::identity;
use crate::plugin::Form;

/// Inputs `x`, the shape input `target` (one number from 0 to 100), and `b`; `y` has the shape `target.values`.
pub(super) fn node(types: [DataType; 4]) -> NamedNode {
    with_outputs(&types, vec![output("y", vec![ExprNode::Values(1)])])
}

fn output(name: &str, shape: Vec<ExprNode>) -> Output {
    Output {
        name: name.to_owned(),
        shape: Expr { nodes: shape },
        limits: ShapeLimits::default(),
        alias: None,
        size: None,
        doc: String::new(),
    }
}

fn with_outputs(types: &[DataType], outputs: Vec<Output>) -> NamedNode {
    let input = |name: &str, rank: u8, values| Input {
        name: name.to_owned(),
        rank_min: rank,
        rank_max: rank,
        limits: ShapeLimits::default(),
        values,
        doc: String::new(),
    };
    let variant = Variant {
        id: 1,
        label: String::new(),
        types: types.to_vec(),
        formats: vec![Format::Linear; types.len()],
        specialized: Vec::new(),
        guard: None,
        scratch: Vec::new(),
        steps: Vec::new(),
    };
    let plugin = Plugin {
        name: "shaped".to_owned(),
        namespace: String::new(),
        version: "1".to_owned(),
        summary: String::new(),
        attributes: Vec::new(),
        inputs: vec![
            input("x", 1, None),
            Input {
                limits: ShapeLimits { dims: vec![Interval { min: 1, max: 1 }], ..ShapeLimits::default() },
                ..input("target", 1, Some(Interval { min: 0, max: 100 }))
            },
            input("b", 1, None),
        ],
        outputs,
        require: Vec::new(),
        timing: None,
        tuning: Vec::new(),
        variants: vec![variant],
    };
    let node = Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin,
        attributes: Vec::new(),
        input_ranks: None,
        code: Vec::new(),
    };
    let definition = Definition::bare(Arc::new(node));
    let attributes: Vec<Value> = Vec::new();
    let data = NodeData::new(definition, attributes, Form::Fields, identity::generic());
    NamedNode::new(Arc::new(data), "n")
}

pub(super) const OWN: [DataType; 4] = [DataType::F32, DataType::I64, DataType::F32, DataType::F32];

pub(super) fn desc(ty: DataType, shape: &[i64]) -> PluginTensorDesc {
    PluginTensorDesc {
        dims: Dims::from_slice(shape).unwrap(),
        data_type: trt_abi::DataType(ty.tensorrt()),
        format: TensorFormat::LINEAR,
        scale: 1.0,
    }
}

fn announced(inputs: &[(DataType, &[i64])], output: &[i64]) -> TensorDescs {
    let inputs: Vec<PluginTensorDesc> = inputs.iter().map(|(ty, shape)| desc(*ty, shape)).collect();
    let mut announced = TensorDescs::default();
    announced.set(&inputs, &[desc(DataType::F32, output)]);
    assert!(announced.is(&inputs, &[desc(DataType::F32, output)]));
    announced
}

#[test]
fn shape_inputs_are_not_among_the_inputs() {
    use DataType::{F32, I64};
    let node = node(OWN);
    let of = |inputs: &[(DataType, &[i64])]| {
        let found = announced(inputs, &[1]).positions(&node);
        found
            .map(|positions| [0, 1, 2].map(|input| positions.position(input)))
            .map_err(|error| error.text().to_owned())
    };
    assert_eq!(of(&[(F32, &[4]), (F32, &[5])]), Ok([Some(0), None, Some(1)]));
    for inputs in [&[(F32, [4].as_slice())][..], &[(F32, &[4]), (F32, &[5]), (I64, &[1])]] {
        let count = inputs.len();
        assert_eq!(
            of(inputs).unwrap_err(),
            format!(
                "shaped `n`: TensorRT passes {count} inputs and 1 outputs, the plugin has 2 and 1 plus 1 shape inputs"
            )
        );
    }
}

#[test]
fn a_tensor_without_dimensions_gets_its_shape_back() {
    let mut plugin = node(OWN).definition.plugin().clone();
    plugin.inputs[0].rank_min = 0;
    let definition = Definition::bare(Arc::new(Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin,
        attributes: Vec::new(),
        input_ranks: None,
        code: Vec::new(),
    }));
    let name = identity::generic();
    let node = NamedNode::new(Arc::new(NodeData::new(definition, Vec::new(), Form::Fields, name)), "n");
    let shape_of_x = |announced_as: &[i64], ranks: Option<&[u8]>| {
        let found = announced(&[(DataType::F32, announced_as), (DataType::F32, &[5])], &[7]);
        let positions = found.positions(&node).unwrap();
        found.shapes(&node, ranks, &positions, &mut Steps::default()).unwrap()[0].to_vec()
    };
    assert_eq!(shape_of_x(&[1], Some(&[0, 1, 1])), [0_i64; 0]);
    assert_eq!(shape_of_x(&[1], Some(&[1, 1, 1])), [1]);
    assert_eq!(shape_of_x(&[1], None), [1]);
    assert_eq!(shape_of_x(&[], Some(&[0, 1, 1])), [0_i64; 0]);
}

#[test]
fn a_tensor_of_another_rank_is_another_tensor() {
    use DataType::F32;
    let long = [1_i64; 8];
    for (shape, ranks) in [(&long[..], [8, 9]), (&[][..], [0, -1])] {
        let found = announced(&[(F32, shape)], &[1]);
        let [mut same, mut impossible] = [desc(F32, shape), desc(F32, shape)];
        [same.dims.nb_dims, impossible.dims.nb_dims] = ranks;
        assert!(found.is(&[same], &[desc(F32, &[1])]));
        assert!(!found.is(&[impossible], &[desc(F32, &[1])]), "{ranks:?}");
    }
}

#[test]
fn unspecified_extents_do_not_distinguish_tensors() {
    use DataType::F32;
    let set = |extents: [i64; 3]| {
        let mut tensor = desc(F32, &extents);
        tensor.dims.nb_dims = 2;
        let mut descs = TensorDescs::default();
        descs.set(&[tensor], &[tensor]);
        descs
    };
    assert!(set([4, 5, 6]) == set([4, 5, 7]));
    assert!(set([4, 5, 6]) != set([4, 6, 6]));
}

#[test]
fn shapes_that_values_decide_are_taken_from_tensorrt() {
    use DataType::F32;
    let node = node(OWN);
    let shapes = |output: &[i64]| {
        let announced = announced(&[(F32, &[4]), (F32, &[5])], output);
        let positions = announced.positions(&node).unwrap();
        let found = announced.shapes(&node, None, &positions, &mut Steps::default());
        found
            .map(|shapes| shapes.iter().map(|shape| shape.to_vec()).collect::<Vec<_>>())
            .map_err(|error| error.text().to_owned())
    };
    assert_eq!(shapes(&[7]), Ok(vec![vec![4], vec![-1], vec![5], vec![7]]));
    let texts = [
        ([101].as_slice(), "found 101, expected 0..=100; x is 4, target: unknown shape, b is 5"),
        (&[-1], "`y` is -1"),
        (&[7, 7], "found 7x7, expected 0..=100"),
    ];
    for (output, expected) in texts {
        let error = shapes(output).unwrap_err();
        assert!(error.starts_with("shaped `n`: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn bounds_for_any_values_are_counted() {
    let node = node(OWN);
    let announced = announced(&[(DataType::F32, &[4]), (DataType::F32, &[5])], &[7]);
    let positions = announced.positions(&node).unwrap();
    let mut steps = Steps::default();
    announced.shapes(&node, None, &positions, &mut steps).unwrap();
    assert!(steps.charge(NODE_STEP_LIMIT).is_err());
}

#[test]
fn sizes_stand_beside_values() {
    use DataType::{F32, I64};
    let index = ExprNode::Index { array: 0, index: 1 };
    let both =
        vec![ExprNode::Values(1), ExprNode::Int(0), index, ExprNode::Size(4), ExprNode::Array(vec![3, 2])];
    let bound = || Expr { nodes: vec![ExprNode::Int(9)] };
    let count = Output {
        size: Some(SizeBound { upper: bound(), opt: bound() }),
        ..output("count", vec![ExprNode::Array(vec![])])
    };
    let node = with_outputs(&[F32, I64, F32, F32, I64], vec![output("y", both), count]);
    let shapes = |y: &[i64]| {
        let mut announced = TensorDescs::default();
        announced.set(&[desc(F32, &[4]), desc(F32, &[5])], &[desc(F32, y), desc(I64, &[])]);
        let positions = announced.positions(&node).unwrap();
        let found = announced.shapes(&node, None, &positions, &mut Steps::default());
        found.map(|shapes| shapes[3].to_vec()).map_err(|error| error.text().to_owned())
    };
    assert_eq!(shapes(&[-1, 5]), Ok(vec![-1, 5]));
    assert_eq!(shapes(&[0, 5]), Ok(vec![0, 5]), "TensorRT passes this for tensors without elements");
    for wrong in [&[-1, 101][..], &[-1, -1], &[-2, 5], &[-1]] {
        assert!(shapes(wrong).is_err(), "{wrong:?}");
    }
}
