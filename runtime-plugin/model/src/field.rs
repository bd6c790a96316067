//! The attributes of a node as they reach a plugin: from TensorRT's fields to the values that expressions read.
//!
//! Owns the one conversion that the runtime makes nodes with, and `cubinder onnx` holds models against. Knows no ONNX: what TensorRT's parser makes of
//! a node's attribute is the caller's business.
//!
//! The parser passes only declared fields, and its types follow the ONNX attribute, not the declaration
//! (TensorRT-RTX 1.7): INT and INTS arrive as INT32 (cut from 64 bits without a word), FLOAT and FLOATS as FLOAT32, STRING as CHAR
//! whose length counts a NUL, STRINGS as one CHAR with a NUL after each, a TENSOR as what it holds (FLOAT32 where that is double),
//! and an empty list as length 0 without data. A C++ application that calls the creator itself may pass any other type. So:
//!
//! | attribute | taken from |
//! |---|---|
//! | integers, `bool` | INT8, INT16, INT32, INT64, where every number fits the attribute's type |
//! | floats | FLOAT32, FLOAT64, BF16, rounded to the attribute's type; `f16` also from FLOAT16 |
//! | `string` | CHAR; one NUL at the end is not part of it |
//! | `string[]` | CHAR; NULs stand after the strings, or between them |
//! | `bytes` | CHAR, of which one NUL at the end is not part; INT8 as it is |
//!
//! FLOAT16 stands for wider floats no more than for integers: its number is 0, and that is also what the parser says where it
//! knows no type (TENSOR of i64, u8, bool), so its bytes may be something else entirely.
//! A field does not say whether it was a list: one value is taken for a list of one, and a list of one for a single value.

use crate::attribute_check::{Unmet, check_attribute, missing_attribute};
use crate::float;
use crate::model::{Attribute, AttributeElement, AttributeType};
use cubinder_expr::value::Value;

/// TensorRT's number for what a field holds (`nvinfer1::PluginFieldType`, `NvInferPluginBase.h`, TensorRT-RTX 1.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldType(pub i32);

impl FieldType {
    /// Floats of half precision; and what TensorRT's ONNX parser says where it knows no type.
    pub const FLOAT16: FieldType = FieldType(0);
    /// Floats of single precision.
    pub const FLOAT32: FieldType = FieldType(1);
    /// Floats of double precision.
    pub const FLOAT64: FieldType = FieldType(2);
    /// Integers of 8 bits.
    pub const INT8: FieldType = FieldType(3);
    /// Integers of 16 bits.
    pub const INT16: FieldType = FieldType(4);
    /// Integers of 32 bits.
    pub const INT32: FieldType = FieldType(5);
    /// Text.
    pub const CHAR: FieldType = FieldType(6);
    /// Brain floats.
    pub const BF16: FieldType = FieldType(9);
    /// Integers of 64 bits.
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
    /// What it holds.
    pub ty: FieldType,
    /// How many; of text bytes, and the ONNX parser counts a NUL.
    pub length: i32,
    /// The bytes, native endian; none where there are none that can be used.
    pub bytes: Option<&'a [u8]>,
}

/// The value of an attribute: that of the node's field, else the default.
///
/// # Errors
/// A required attribute that is missing, a field of another type, a value that breaks the attribute's rules.
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

/// The value of a field in the shape of its type; whether its numbers fit is not looked at, but that floats do.
///
/// # Errors
/// What the field holds instead, to follow the attribute's name.
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
        rounded.ok_or_else(|| format!("holds {value:?}, which is beyond what its type holds"))
    };
    values.into_iter().map(rounded).collect()
}

/// Copies, because nothing promises that TensorRT's data is aligned.
fn each<T, const SIZE: usize>(bytes: &[u8], read: fn([u8; SIZE]) -> T) -> Vec<T> {
    bytes.as_chunks::<SIZE>().0.iter().map(|chunk| read(*chunk)).collect()
}

fn strings(field: &Field<'_>, bytes: &[u8]) -> Result<Vec<String>, String> {
    if field.ty != FieldType::CHAR {
        return Err(holds(field.ty));
    }
    let text = str::from_utf8(bytes).map_err(|error| format!("is no UTF-8 ({error})"))?;
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
        other => Err(format!("holds {other}, and a boolean is 0 or 1")),
    }
}

fn single(mut values: Vec<Value>) -> Result<Value, String> {
    match (values.pop(), values.len()) {
        (Some(value), 0) => Ok(value),
        (last, before) => Err(format!("is a list of {} values", before + usize::from(last.is_some()))),
    }
}

/// What a field of this type holds, as an ONNX node says it.
fn holds(ty: FieldType) -> String {
    match ty {
        FieldType::INT8 | FieldType::INT16 | FieldType::INT32 | FieldType::INT64 => {
            "holds integers".to_owned()
        }
        FieldType::FLOAT32 | FieldType::FLOAT64 | FieldType::BF16 => {
            "holds floats".to_owned()
        }
        FieldType::CHAR => "holds text".to_owned(),
        FieldType::FLOAT16 => {
            "holds floats of half precision, or a tensor that TensorRT's ONNX parser cannot pass (i64, u8, bool)"
                .to_owned()
        }
        other => format!("holds values of TensorRT's type {other:?}"),
    }
}

fn unusable(field: &Field<'_>) -> String {
    format!("has no usable data (type {:?}, length {})", field.ty, field.length)
}

#[cfg(test)]
#[path = "field_tests.rs"]
mod tests;
