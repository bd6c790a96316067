//! Small models for tests.

use prost::Message;

use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor, Value as Kind};
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto,
};

/// ONNX's number for `float` (`TensorProto.DataType`).
pub const FLOAT: i32 = 1;
/// ONNX's number for `uint8`.
pub const UINT8: i32 = 2;
/// ONNX's number for `int32`.
pub const INT32: i32 = 6;
/// ONNX's number for `int64`.
pub const INT64: i32 = 7;
/// ONNX's number for `float16`.
pub const FLOAT16: i32 = 10;
/// ONNX's number for `double`.
pub const DOUBLE: i32 = 11;

/// Creates a node named after its first output.
#[must_use]
pub fn node(
    (domain, op_type): (&str, &str),
    inputs: &[&str],
    outputs: &[&str],
    attributes: Vec<AttributeProto>,
) -> NodeProto {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    NodeProto {
        input: texts(inputs),
        output: texts(outputs),
        name: outputs.first().map(|name| (*name).to_owned()),
        op_type: Some(op_type.to_owned()),
        domain: (!domain.is_empty()).then(|| domain.to_owned()),
        attribute: attributes,
        ..NodeProto::default()
    }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind as i32), ..AttributeProto::default() }
}

/// Creates an INT attribute.
#[must_use]
pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::Int) }
}

/// Creates an INTS attribute.
#[must_use]
pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

/// Creates a FLOAT attribute.
#[must_use]
pub fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, AttributeType::Float) }
}

/// Creates a FLOATS attribute.
#[must_use]
pub fn floats(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto { floats: values.to_vec(), ..attribute(name, AttributeType::Floats) }
}

/// Creates a STRING attribute.
#[must_use]
pub fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.as_bytes().to_vec()), ..attribute(name, AttributeType::String) }
}

/// Creates a STRINGS attribute.
#[must_use]
pub fn strings(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|value| value.as_bytes().to_vec()).collect();
    AttributeProto { strings, ..attribute(name, AttributeType::Strings) }
}

/// Creates a TENSOR attribute.
#[must_use]
pub fn tensor_attribute(name: &str, tensor: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(tensor), ..attribute(name, AttributeType::Tensor) }
}

/// Creates a GRAPH attribute.
#[must_use]
pub fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(graph), ..attribute(name, AttributeType::Graph) }
}

/// Creates a tensor with raw little-endian data.
#[must_use]
pub fn tensor(name: &str, element: i32, dims: &[i64], raw: &[u8]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(element),
        dims: dims.to_vec(),
        raw_data: Some(raw.to_vec()),
        ..TensorProto::default()
    }
}

/// Creates a one-dimensional tensor of 64-bit integers.
#[must_use]
pub fn integers(name: &str, values: &[i64]) -> TensorProto {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, INT64, &[values.len() as i64], &raw)
}

/// Creates a tensor description of shape `2,3,height`; `?` is unknown.
#[must_use]
pub fn value(name: &str, element: i32, shape: &str) -> ValueInfoProto {
    let dimension = |word: &str| {
        let value = match word.parse() {
            Ok(extent) => Some(dimension::Value::DimValue(extent)),
            Err(_) if word == "?" => None,
            Err(_) => Some(dimension::Value::DimParam(word.to_owned())),
        };
        Dimension { denotation: None, value }
    };
    let dims = shape.split(',').filter(|word| !word.is_empty()).map(dimension).collect();
    let shape = (shape != "?").then_some(TensorShapeProto { dim: dims });
    let tensor = Tensor { elem_type: Some(element), shape };
    let ty = TypeProto { denotation: None, value: Some(Kind::TensorType(tensor)) };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// Creates a graph.
#[must_use]
pub fn graph(inputs: Vec<ValueInfoProto>, nodes: Vec<NodeProto>, outputs: Vec<ValueInfoProto>) -> GraphProto {
    GraphProto {
        node: nodes,
        name: Some("graph".to_owned()),
        input: inputs,
        output: outputs,
        ..GraphProto::default()
    }
}

/// Encodes a model: ONNX operator set 17, version 1 of the domains.
#[must_use]
pub fn model(graph: GraphProto, domains: &[&str]) -> Vec<u8> {
    let import = |domain: &str, version| OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    };
    let mut opset_import = vec![import("", 17)];
    opset_import.extend(domains.iter().map(|domain| import(domain, 1)));
    let model = ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, ..ModelProto::default() };
    model.encode_to_vec()
}
