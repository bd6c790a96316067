//! The attributes of a node: from what TensorRT's ONNX parser passes to the values that expressions read.
//!
//! The parser passes only declared fields, and its types follow the ONNX attribute, not the declaration
//! (TensorRT-RTX 1.7): INT and INTS arrive as INT32, FLOAT and FLOATS as FLOAT32, STRING as CHAR, and an empty list as length 0
//! without data.

use cubinder_bundle::{Attribute, AttributeType, Plugin, Value};
use trt_abi::{Error, Field, PluginFieldType};

/// The name of TensorRT's own attribute that asks for ahead-of-time (1) or just-in-time (0) code.
pub(crate) const AOT: &std::ffi::CStr = c"aot";

/// One value for each of the plugin's attributes, in its order, defaults filled in.
///
/// # Errors
/// A required attribute that is missing, or a field of another type; the text names attribute, found and expected.
pub(crate) fn from_fields(plugin: &Plugin, fields: &[Field<'_>]) -> Result<Vec<Value>, Error> {
    plugin.attributes.iter().map(|attribute| from_field(attribute, fields)).collect()
}

/// What the node's `aot` says, if it says anything.
pub(crate) fn aot(fields: &[Field<'_>]) -> Option<bool> {
    let field = fields.iter().find(|field| field.name() == AOT)?;
    field.i32s().ok()?.first().map(|value| *value != 0)
}

/// The type that a creator declares for an attribute.
pub(crate) fn declared_type(ty: AttributeType) -> PluginFieldType {
    match ty {
        AttributeType::I32 | AttributeType::I32Array | AttributeType::Bool => PluginFieldType::INT32,
        AttributeType::F32 | AttributeType::F32Array => PluginFieldType::FLOAT32,
        AttributeType::String => PluginFieldType::CHAR,
    }
}

fn from_field(attribute: &Attribute, fields: &[Field<'_>]) -> Result<Value, Error> {
    let mut named = fields.iter().filter(|field| field.name().to_bytes() == attribute.name.as_bytes());
    let first = named.next();
    if named.next().is_some() {
        return Err(Error::invalid(format!("the attribute `{}` is there twice", attribute.name)));
    }
    match (first, &attribute.default) {
        (Some(field), _) => convert(attribute.ty, field).map_err(|error| {
            Error::invalid(format!(
                "the attribute `{}` {error}, expected `{}`",
                attribute.name,
                attribute.ty.name()
            ))
        }),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(Error::invalid(format!(
            "the node lacks the attribute `{}` (`{}`), which has no default",
            attribute.name,
            attribute.ty.name()
        ))),
    }
}

fn convert(ty: AttributeType, field: &Field<'_>) -> Result<Value, Error> {
    let list = matches!(ty, AttributeType::I32Array | AttributeType::F32Array);
    if list && field.length() == 0 {
        return Ok(Value::Array(Vec::new()));
    }
    if field.field_type() != declared_type(ty) {
        return Err(Error::invalid(format!("holds {}", kind(field.field_type()))));
    }
    match ty {
        AttributeType::I32 => single(&field.i32s()?).map(|value| Value::Int(value.into())),
        AttributeType::I32Array => {
            Ok(Value::Array(field.i32s()?.into_iter().map(|value| Value::Int(value.into())).collect()))
        }
        AttributeType::F32 => single(&field.f32s()?).map(|value| Value::Float(value.into())),
        AttributeType::F32Array => {
            Ok(Value::Array(field.f32s()?.into_iter().map(|value| Value::Float(value.into())).collect()))
        }
        AttributeType::Bool => match single(&field.i32s()?)? {
            0 => Ok(Value::Bool(false)),
            1 => Ok(Value::Bool(true)),
            other => Err(Error::invalid(format!("is {other}, and a boolean is 0 or 1"))),
        },
        AttributeType::String => field.text().map(|text| Value::Str(text.to_owned())),
    }
}

/// What an ONNX node held for the parser to pass this type.
fn kind(ty: PluginFieldType) -> String {
    match ty {
        PluginFieldType::INT32 => "integers".to_owned(),
        PluginFieldType::FLOAT32 => "floats".to_owned(),
        PluginFieldType::CHAR => "text".to_owned(),
        other => format!("values of TensorRT's type {other:?}"),
    }
}

fn single<T: Copy>(values: &[T]) -> Result<T, Error> {
    match values {
        [value] => Ok(*value),
        _ => Err(Error::invalid(format!("is a list of {} values", values.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(ty: AttributeType) -> Attribute {
        Attribute { name: "a".to_owned(), ty, default: None }
    }

    fn ints(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    #[test]
    fn each_type_takes_what_the_parser_sends() {
        let bytes = ints(&[3, -1]);
        let list = Field::new(c"a", PluginFieldType::INT32, 2, &bytes);
        let one = Field::new(c"a", PluginFieldType::INT32, 1, &bytes[..4]);
        let text = Field::new(c"a", PluginFieldType::CHAR, 5, b"wrap\0");
        let check = |ty, field: &Field<'_>| from_field(&attribute(ty), std::slice::from_ref(field));
        assert_eq!(
            check(AttributeType::I32Array, &list),
            Ok(Value::Array(vec![Value::Int(3), Value::Int(-1)]))
        );
        assert_eq!(check(AttributeType::I32, &one), Ok(Value::Int(3)));
        assert_eq!(check(AttributeType::String, &text), Ok(Value::Str("wrap".to_owned())));
        let empty = Field::new(c"a", PluginFieldType(0), 0, &[]);
        assert_eq!(check(AttributeType::F32Array, &empty), Ok(Value::Array(vec![])));
        assert!(check(AttributeType::I32, &list).unwrap_err().text().contains("list of 2 values"));
        let error = check(AttributeType::I32Array, &text).unwrap_err();
        assert_eq!(error.text(), "the attribute `a` holds text, expected `i32[]`");
        assert!(check(AttributeType::F32, &one).is_err());
        assert!(check(AttributeType::Bool, &one).unwrap_err().text().contains("is 3"));
    }

    #[test]
    fn an_attribute_that_is_there_twice_is_refused() {
        let one = Field::new(c"a", PluginFieldType::INT32, 1, &[0; 4]);
        let error = from_field(&attribute(AttributeType::I32), &[one, one]).unwrap_err();
        assert_eq!(error.text(), "the attribute `a` is there twice");
    }

    #[test]
    fn a_missing_attribute_is_named() {
        let error = from_field(&attribute(AttributeType::I32), &[]).unwrap_err();
        assert_eq!(error.text(), "the node lacks the attribute `a` (`i32`), which has no default");
    }
}
