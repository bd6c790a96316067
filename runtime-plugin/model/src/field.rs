//! Converts TensorRT's fields to a node's attributes.
//!
//! The ONNX parser passes declared fields with the node's types (TensorRT-RTX 1.7): INT and INTS as INT32 (truncated
//! from 64 bits), FLOAT and FLOATS as FLOAT32, STRING as a CHAR whose length counts a NUL, STRINGS as one CHAR with a
//! NUL after each, a TENSOR as its element type (FLOAT32 for double), an empty list with length 0 and without data.
//! Applications may pass any type. Accepted:
//!
//! - integers, `bool`: INT8, INT16, INT32, INT64, if every number fits the attribute's type
//! - floats: FLOAT32, FLOAT64, BF16, rounded to the attribute's type; `f16` also FLOAT16
//! - `string`: CHAR; a final NUL is dropped
//! - `string[]`: CHAR; NULs after or between the strings
//! - `bytes`: CHAR, a final NUL is dropped; INT8
//!
//! The parser also uses FLOAT16, 0, for unknown types (TENSOR of i64, u8, bool). A value and a list of one are
//! interchangeable.

use crate::attribute_check::{Unmet, check_attribute, missing_attribute};
use crate::float;
use crate::model::{Attribute, AttributeElement, AttributeType};
use cubinder_expr::value::Value;

/// The type of a field (`nvinfer1::PluginFieldType`, `NvInferPluginBase.h`, TensorRT-RTX 1.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldType(pub i32);

impl FieldType {
    /// Half-precision floats; unknown ONNX types.
    pub const FLOAT16: FieldType = FieldType(0);
    /// Single-precision floats.
    pub const FLOAT32: FieldType = FieldType(1);
    /// Double-precision floats.
    pub const FLOAT64: FieldType = FieldType(2);
    /// 8-bit integers.
    pub const INT8: FieldType = FieldType(3);
    /// 16-bit integers.
    pub const INT16: FieldType = FieldType(4);
    /// 32-bit integers.
    pub const INT32: FieldType = FieldType(5);
    /// Text.
    pub const CHAR: FieldType = FieldType(6);
    /// Brain floats.
    pub const BF16: FieldType = FieldType(9);
    /// 64-bit integers.
    pub const INT64: FieldType = FieldType(10);

    const NAMES: [&'static str; 14] = [
        "FLOAT16", "FLOAT32", "FLOAT64", "INT8", "INT16", "INT32", "CHAR", "DIMS", "UNKNOWN", "BF16",
        "INT64", "FP8", "INT4", "FP4",
    ];
}

impl std::fmt::Debug for FieldType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match usize::try_from(self.0).ok().and_then(|number| FieldType::NAMES.get(number)) {
            Some(name) => write!(f, "PluginFieldType::{name}"),
            None => write!(f, "PluginFieldType({})", self.0),
        }
    }
}

/// A field of a node.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Type of the elements.
    pub ty: FieldType,
    /// Number of elements; of text bytes, possibly with a NUL.
    pub length: i32,
    /// Bytes, native endian; `None` if unusable.
    pub bytes: Option<&'a [u8]>,
}

/// Returns an attribute's checked value: the node's field, otherwise the default.
pub fn attribute_value(attribute: &Attribute, field: Option<&Field<'_>>) -> Result<Value, Unmet> {
    let value = match (field, &attribute.default) {
        (Some(field), _) => convert(attribute.ty, field).map_err(|why| {
            Unmet(format!("the attribute `{}` {why}, expected `{}`", attribute.name, attribute.ty.name()))
        })?,
        (None, Some(default)) => return Ok(default.clone()),
        (None, None) => return Err(missing_attribute(attribute)),
    };
    check_attribute(attribute, &value)?;
    Ok(value)
}

/// Errors continue the attribute's name.
fn convert(ty: AttributeType, field: &Field<'_>) -> Result<Value, String> {
    let bytes = if field.length == 0 { &[] } else { field.bytes.ok_or_else(|| unusable(field))? };
    if ty.element == AttributeElement::Bytes {
        return octets(field, bytes);
    }
    if field.length == 0 && ty.list {
        return Ok(Value::Array(Vec::new()));
    }
    if field.length == 0 && field.ty != FieldType::CHAR {
        return single(Vec::new());
    }
    let values: Vec<Value> = match ty.element {
        AttributeElement::String => strings(field, bytes)?.into_iter().map(Value::Str).collect(),
        AttributeElement::Bool => {
            integers(field, bytes)?.into_iter().map(boolean).collect::<Result<_, _>>()?
        }
        element if element.is_float() => floats(element, field, bytes)?,
        _ => integers(field, bytes)?.into_iter().map(Value::Int).collect(),
    };
    if ty.list { Ok(Value::Array(values)) } else { single(values) }
}

fn integers(field: &Field<'_>, bytes: &[u8]) -> Result<Vec<i64>, String> {
    Ok(match field.ty {
        FieldType::INT8 => each(bytes, |bytes| i8::from_ne_bytes(bytes).into()),
        FieldType::INT16 => each(bytes, |bytes| i16::from_ne_bytes(bytes).into()),
        FieldType::INT32 => each(bytes, |bytes| i32::from_ne_bytes(bytes).into()),
        FieldType::INT64 => each(bytes, i64::from_ne_bytes),
        other => return Err(holds(other)),
    })
}

fn floats(element: AttributeElement, field: &Field<'_>, bytes: &[u8]) -> Result<Vec<Value>, String> {
    let values: Vec<f64> = match field.ty {
        FieldType::FLOAT32 => each(bytes, |bytes| f32::from_ne_bytes(bytes).into()),
        FieldType::FLOAT64 => each(bytes, f64::from_ne_bytes),
        FieldType::BF16 => each(bytes, |bytes| float::from_bf16(u16::from_ne_bytes(bytes))),
        FieldType::FLOAT16 if element == AttributeElement::F16 => {
            each(bytes, |bytes| float::from_f16(u16::from_ne_bytes(bytes)))
        }
        other => return Err(holds(other)),
    };
    let rounded = |value: f64| {
        let rounded = element.rounded(value).map(Value::Float);
        rounded.ok_or_else(|| format!("contains {value:?}, which exceeds the range of its type"))
    };
    values.into_iter().map(rounded).collect()
}

/// Reads elements, possibly unaligned.
fn each<T, const SIZE: usize>(bytes: &[u8], read: fn([u8; SIZE]) -> T) -> Vec<T> {
    bytes.as_chunks::<SIZE>().0.iter().map(|chunk| read(*chunk)).collect()
}

fn strings(field: &Field<'_>, bytes: &[u8]) -> Result<Vec<String>, String> {
    if field.ty != FieldType::CHAR {
        return Err(holds(field.ty));
    }
    let text = str::from_utf8(bytes).map_err(|error| format!("is not UTF-8 ({error})"))?;
    Ok(text.strip_suffix('\0').unwrap_or(text).split('\0').map(str::to_owned).collect())
}

fn octets(field: &Field<'_>, bytes: &[u8]) -> Result<Value, String> {
    let octets = match field.ty {
        FieldType::CHAR => bytes.strip_suffix(&[0]).unwrap_or(bytes),
        FieldType::INT8 => bytes,
        _ if bytes.is_empty() => bytes,
        other => return Err(holds(other)),
    };
    Ok(Value::Array(octets.iter().map(|byte| Value::Int((*byte).into())).collect()))
}

fn boolean(value: i64) -> Result<Value, String> {
    match value {
        0 => Ok(Value::Bool(false)),
        1 => Ok(Value::Bool(true)),
        other => Err(format!("contains {other}, but a boolean must be 0 or 1")),
    }
}

fn single(mut values: Vec<Value>) -> Result<Value, String> {
    match (values.pop(), values.len()) {
        (Some(value), 0) => Ok(value),
        (last, before) => Err(format!("is a list of {} values", before + usize::from(last.is_some()))),
    }
}

fn holds(ty: FieldType) -> String {
    match ty {
        FieldType::INT8 | FieldType::INT16 | FieldType::INT32 | FieldType::INT64 => {
            "contains integers".to_owned()
        }
        FieldType::FLOAT32 | FieldType::FLOAT64 | FieldType::BF16 => {
            "contains floats".to_owned()
        }
        FieldType::CHAR => "contains text".to_owned(),
        FieldType::FLOAT16 => {
            "contains floats of half precision, or a tensor that TensorRT's ONNX parser cannot pass (i64, u8, bool)"
                .to_owned()
        }
        other => format!("contains values of TensorRT's type {other:?}"),
    }
}

fn unusable(field: &Field<'_>) -> String {
    format!("has no usable data (type {:?}, length {})", field.ty, field.length)
}

#[cfg(test)]
#[path = "field_tests.rs"]
mod tests;
