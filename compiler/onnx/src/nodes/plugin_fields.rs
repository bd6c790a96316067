//! Plugin fields that TensorRT's ONNX parser creates from attributes (observed with TensorRT-RTX 1.7.1).
//!
//! The type follows the node, not the plugin; integers silently lose their upper 32 bits; few tensor types exist.
//! [`cubinder_model::field`] interprets the fields.

use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_proto::DataType;
use crate::proto::{AttributeProto, TensorProto};
use cubinder_model::field::{Field, FieldType};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParsedField {
    ty: FieldType,
    length: usize,
    bytes: Vec<u8>,
}

/// Why an attribute arrives changed, as a predicate for messages.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Loss {
    #[error("is truncated to 32 bits")]
    Cut {
        /// Index in a list.
        element: Option<usize>,
        value: i64,
    },
    /// Refers to an unknown value of a function's call.
    #[error("is set to `{0}` by each call of the function")]
    OfCalls(String),
    #[error("is a tensor of {0} elements, whose data are not read: they are too large or in another file")]
    UnreadData(usize),
    #[error("has the type TENSOR, but no tensor")]
    NoTensor,
    #[error("has the ONNX type {0}, which TensorRT's parser does not pass")]
    Kind(&'static str),
    #[error("is a tensor of {0}, which TensorRT's parser does not pass unchanged")]
    Element(String),
    #[error("is a tensor with negative or too many dimensions")]
    Dimensions,
}

impl ParsedField {
    pub(super) fn field(&self) -> Field<'_> {
        let length = i32::try_from(self.length).unwrap_or(i32::MAX);
        Field { ty: self.ty, length, bytes: Some(&self.bytes) }
    }
}

/// Fails if the field would differ from the attribute.
pub(super) fn parsed_field(attribute: &AttributeProto) -> Result<ParsedField, Loss> {
    if let Some(name) = reference(attribute) {
        return Err(Loss::OfCalls(name.to_owned()));
    }
    match kind(attribute) {
        AttributeType::Int => integers(&[attribute.i()], false),
        AttributeType::Ints => integers(&attribute.ints, true),
        AttributeType::Float => Ok(floats(&[attribute.f()])),
        AttributeType::Floats => Ok(floats(&attribute.floats)),
        AttributeType::String => Ok(text(&[attribute.s()])),
        AttributeType::Strings => Ok(text(&attribute.strings.iter().map(Vec::as_slice).collect::<Vec<_>>())),
        AttributeType::Tensor => of_tensor(attribute.t.as_ref().ok_or(Loss::NoTensor)?),
        AttributeType::Undefined => Ok(ParsedField { ty: FieldType::FLOAT16, length: 0, bytes: Vec::new() }),
        other => Err(Loss::Kind(other.as_str_name())),
    }
}

pub(super) fn kind(attribute: &AttributeProto) -> AttributeType {
    AttributeType::try_from(attribute.r#type.unwrap_or_default()).unwrap_or(AttributeType::Undefined)
}

pub(super) fn reference(attribute: &AttributeProto) -> Option<&str> {
    Some(attribute.ref_attr_name()).filter(|name| !name.is_empty())
}

fn integers(values: &[i64], is_list: bool) -> Result<ParsedField, Loss> {
    let mut bytes = Vec::with_capacity(values.len() * 4);
    for (index, value) in values.iter().enumerate() {
        let Ok(kept) = i32::try_from(*value) else {
            return Err(Loss::Cut { element: is_list.then_some(index), value: *value });
        };
        bytes.extend(kept.to_ne_bytes());
    }
    Ok(ParsedField { ty: FieldType::INT32, length: values.len(), bytes })
}

fn floats(values: &[f32]) -> ParsedField {
    let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    ParsedField { ty: FieldType::FLOAT32, length: values.len(), bytes }
}

fn text(texts: &[&[u8]]) -> ParsedField {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend(*text);
        bytes.push(0);
    }
    ParsedField { ty: FieldType::CHAR, length: bytes.len(), bytes }
}

fn of_tensor(tensor: &TensorProto) -> Result<ParsedField, Loss> {
    let element = DataType::try_from(tensor.data_type()).unwrap_or(DataType::Undefined);
    let ty = match element {
        DataType::Float | DataType::Double => FieldType::FLOAT32,
        DataType::Int32 => FieldType::INT32,
        DataType::Int8 => FieldType::INT8,
        DataType::Bfloat16 => FieldType::BF16,
        DataType::Float16 => FieldType::FLOAT16,
        other => return Err(Loss::Element(element_name(other))),
    };
    let count = elements(tensor).ok_or(Loss::Dimensions)?;
    let bytes = data(tensor, element);
    let size = match element {
        DataType::Int8 => 1,
        DataType::Bfloat16 | DataType::Float16 => 2,
        _ => 4,
    };
    if bytes.len() != count.saturating_mul(size) {
        return Err(Loss::UnreadData(count));
    }
    Ok(ParsedField { ty, length: count, bytes })
}

pub(super) fn elements(tensor: &TensorProto) -> Option<usize> {
    let extents = tensor.dims.iter().map(|extent| usize::try_from(*extent).ok());
    extents.into_iter().try_fold(1_usize, |product, extent| product.checked_mul(extent?))
}

/// Doubles become 32-bit floats.
fn data(tensor: &TensorProto, element: DataType) -> Vec<u8> {
    let raw = tensor.raw_data();
    let numbers = || tensor.int32_data.iter();
    match element {
        DataType::Double => {
            let raw = raw.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk));
            raw.chain(tensor.double_data.iter().copied())
                .flat_map(|value| (value as f32).to_ne_bytes())
                .collect()
        }
        // ONNX is little endian, as are TensorRT-RTX's machines.
        _ if !raw.is_empty() => raw.to_vec(),
        DataType::Float => tensor.float_data.iter().flat_map(|value| value.to_ne_bytes()).collect(),
        DataType::Int8 => numbers().map(|value| *value as u8).collect(),
        DataType::Bfloat16 | DataType::Float16 => {
            numbers().flat_map(|value| (*value as u16).to_ne_bytes()).collect()
        }
        _ => numbers().flat_map(|value| value.to_ne_bytes()).collect(),
    }
}

pub(super) fn element_name(element: DataType) -> String {
    element.as_str_name().to_ascii_lowercase()
}
