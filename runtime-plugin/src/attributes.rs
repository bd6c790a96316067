//! The attributes of a node: from TensorRT's fields to values.
//!
//! What becomes of a field is [`cubinder_bundle::field`]'s business; here are names, and what a creator declares.

use cubinder_bundle::field::{Field as Passed, FieldType, attribute_value};
use cubinder_bundle::{Attribute, AttributeElement, AttributeType, Plugin, Value};
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
    match ty.element {
        element if element.is_float() => PluginFieldType::FLOAT32,
        AttributeElement::String | AttributeElement::Bytes => PluginFieldType::CHAR,
        _ => PluginFieldType::INT32,
    }
}

fn from_field(attribute: &Attribute, fields: &[Field<'_>]) -> Result<Value, Error> {
    let mut named = fields.iter().filter(|field| field.name().to_bytes() == attribute.name.as_bytes());
    let first = named.next();
    if named.next().is_some() {
        return Err(Error::invalid(format!("the attribute `{}` is there twice", attribute.name)));
    }
    let passed = first.map(|field| Passed {
        ty: FieldType(field.field_type().0),
        length: field.length(),
        bytes: field.bytes().ok(),
    });
    attribute_value(attribute, passed.as_ref()).map_err(|unmet| Error::invalid(unmet.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cubinder_bundle::Interval;

    const fn ty(element: AttributeElement, list: bool) -> AttributeType {
        AttributeType { element, list }
    }

    fn attribute(ty: AttributeType) -> Attribute {
        Attribute::new("a", ty)
    }

    fn field(ty: PluginFieldType, bytes: &[u8]) -> Field<'_> {
        let size = ty.bytes(1).unwrap_or(1);
        Field::new(c"a", ty, (bytes.len() / size) as i32, bytes)
    }

    fn read(ty: AttributeType, field: &Field<'_>) -> Result<Value, String> {
        let value = from_field(&attribute(ty), std::slice::from_ref(field));
        value.map_err(|error| error.text().to_owned())
    }

    fn ints(values: &[i64]) -> Value {
        Value::Array(values.iter().copied().map(Value::Int).collect())
    }

    fn bytes<const SIZE: usize, T: Copy>(values: &[T], write: fn(T) -> [u8; SIZE]) -> Vec<u8> {
        values.iter().flat_map(|value| write(*value)).collect()
    }

    const INTEGERS: [AttributeElement; 4] =
        [AttributeElement::I8, AttributeElement::I16, AttributeElement::I32, AttributeElement::I64];
    const FLOATS: [AttributeElement; 3] =
        [AttributeElement::F16, AttributeElement::F32, AttributeElement::F64];

    #[test]
    fn integers_are_taken_from_every_field_that_fits() {
        let fields = [
            (PluginFieldType::INT8, bytes(&[3, -1], i8::to_ne_bytes)),
            (PluginFieldType::INT16, bytes(&[3, -1], i16::to_ne_bytes)),
            (PluginFieldType::INT32, bytes(&[3, -1], i32::to_ne_bytes)),
            (PluginFieldType::INT64, bytes(&[3, -1], i64::to_ne_bytes)),
        ];
        for element in INTEGERS {
            for (field_type, bytes) in &fields {
                let list = field(*field_type, bytes);
                assert_eq!(read(ty(element, true), &list), Ok(ints(&[3, -1])), "{element:?} {list:?}");
                let one = field(*field_type, &bytes[..bytes.len() / 2]);
                assert_eq!(read(ty(element, false), &one), Ok(Value::Int(3)));
                assert_eq!(read(ty(element, true), &one), Ok(ints(&[3])), "one value is a list of one");
                assert!(read(ty(element, false), &list).unwrap_err().contains("is a list of 2 values"));
            }
        }
        let edges = [i64::from(i8::MIN), i64::from(i16::MAX), i64::from(i32::MIN), i64::MAX];
        for (index, element) in INTEGERS.into_iter().enumerate() {
            for (other, edge) in edges.iter().enumerate() {
                let bytes = edge.to_ne_bytes();
                let value = read(ty(element, false), &field(PluginFieldType::INT64, &bytes));
                assert_eq!(value.is_ok(), other <= index, "{element:?} {edge}");
            }
        }
        let large = 300_i32.to_ne_bytes();
        assert_eq!(
            read(ty(AttributeElement::I8, false), &field(PluginFieldType::INT32, &large)),
            Err("the attribute `a` is `300`, expected `i8`".to_owned())
        );
    }

    #[test]
    fn floats_are_rounded_to_their_type() {
        let fields = [
            (PluginFieldType::FLOAT32, bytes(&[0.1, -2.0], f32::to_ne_bytes)),
            (PluginFieldType::FLOAT64, bytes(&[0.1, -2.0], f64::to_ne_bytes)),
            (PluginFieldType::BF16, bytes(&[0x3dcd, 0xc000], u16::to_ne_bytes)),
        ];
        for element in FLOATS {
            for (field_type, bytes) in &fields {
                let Ok(Value::Array(values)) = read(ty(element, true), &field(*field_type, bytes)) else {
                    panic!("{element:?} {field_type:?}")
                };
                let [Value::Float(tenth), Value::Float(two)] = values[..] else { panic!("{values:?}") };
                assert_eq!(element.rounded(tenth), Some(tenth));
                assert!((tenth - 0.1).abs() < 5e-4 && two == -2.0, "{values:?}");
            }
        }
        let half = bytes(&[0x2e66, 0xfc00], u16::to_ne_bytes);
        let from_half = read(ty(AttributeElement::F16, true), &field(PluginFieldType::FLOAT16, &half));
        let expected = [0.099_975_585_937_5, f64::NEG_INFINITY].map(Value::Float);
        assert_eq!(from_half, Ok(Value::Array(expected.to_vec())));
        let error =
            read(ty(AttributeElement::F32, true), &field(PluginFieldType::FLOAT16, &half)).unwrap_err();
        assert!(error.contains("or a tensor that TensorRT's ONNX parser cannot pass"), "{error}");
        let huge = 1e6_f32.to_ne_bytes();
        assert_eq!(
            read(ty(AttributeElement::F16, false), &field(PluginFieldType::FLOAT32, &huge)),
            Err("the attribute `a` holds 1000000.0, which is beyond what its type holds, expected `f16`"
                .to_owned())
        );
    }

    #[test]
    fn texts_end_with_a_nul_or_not() {
        let string = ty(AttributeElement::String, false);
        let strings = ty(AttributeElement::String, true);
        let text = |value: &str| Value::Str(value.to_owned());
        let list = |values: &[&str]| Ok(Value::Array(values.iter().map(|value| text(value)).collect()));
        let chars = |bytes: &'static [u8]| field(PluginFieldType::CHAR, bytes);
        assert_eq!(read(string, &chars(b"wrap\0")), Ok(text("wrap")));
        assert_eq!(read(string, &chars(b"wrap")), Ok(text("wrap")));
        assert_eq!(read(string, &chars(b"\0")), Ok(text("")));
        assert_eq!(read(string, &chars(b"")), Ok(text("")));
        assert!(read(string, &chars(b"a\0b\0")).unwrap_err().contains("is a list of 2 values"));
        assert!(read(string, &chars(b"\xff\0")).unwrap_err().contains("is no UTF-8"));
        assert_eq!(read(strings, &chars(b"a\0b\0")), list(&["a", "b"]));
        assert_eq!(read(strings, &chars(b"a\0b")), list(&["a", "b"]));
        assert_eq!(read(strings, &chars(b"a\0\0b\0")), list(&["a", "", "b"]));
        assert_eq!(read(strings, &chars(b"\0")), list(&[""]));
        assert_eq!(read(strings, &chars(b"")), list(&[]));
    }

    #[test]
    fn bytes_are_any_bytes() {
        let octets = ty(AttributeElement::Bytes, false);
        assert_eq!(read(octets, &field(PluginFieldType::CHAR, b"\xff\0a\0\0")), Ok(ints(&[255, 0, 97, 0])));
        assert_eq!(read(octets, &field(PluginFieldType::CHAR, b"ab")), Ok(ints(&[97, 98])));
        assert_eq!(read(octets, &field(PluginFieldType::INT8, b"\x80\0")), Ok(ints(&[128, 0])));
        assert_eq!(read(octets, &Field::new(c"a", PluginFieldType(0), 0, &[])), Ok(ints(&[])));
        let error = read(octets, &field(PluginFieldType::INT32, &[0; 4])).unwrap_err();
        assert_eq!(error, "the attribute `a` holds integers, expected `bytes`");
    }

    #[test]
    fn booleans_are_0_or_1() {
        let bits = bytes(&[1, 0], i32::to_ne_bytes);
        let flags = ty(AttributeElement::Bool, true);
        let expected = Value::Array(vec![Value::Bool(true), Value::Bool(false)]);
        assert_eq!(read(flags, &field(PluginFieldType::INT32, &bits)), Ok(expected));
        let two = 2_i32.to_ne_bytes();
        assert!(read(flags, &field(PluginFieldType::INT32, &two)).unwrap_err().contains("holds 2, and a"));
    }

    #[test]
    fn an_empty_list_has_no_type_and_no_data() {
        let empty = Field::new(c"a", PluginFieldType(0), 0, &[]);
        for ty in AttributeType::all() {
            let value = read(ty, &empty);
            if ty.list || ty.element == AttributeElement::Bytes {
                assert_eq!(value, Ok(Value::Array(vec![])), "{}", ty.name());
            } else {
                assert!(value.is_err(), "{}", ty.name());
            }
        }
        for length in [-1, 3] {
            let raw = trt_abi::raw::PluginField {
                name: c"a".as_ptr(),
                data: std::ptr::null(),
                field_type: PluginFieldType::INT32,
                length,
            };
            // SAFETY: a name that lives, and no data that could be read.
            let field = unsafe { Field::from_raw(&raw) }.unwrap();
            let error = read(AttributeType::I32_LIST, &field).unwrap_err();
            assert!(error.contains("has no usable data"), "{error}");
        }
    }

    #[test]
    fn another_type_is_said() {
        let text = field(PluginFieldType::CHAR, b"wrap\0");
        let error = read(AttributeType::I32_LIST, &text).unwrap_err();
        assert_eq!(error, "the attribute `a` holds text, expected `i32[]`");
        let ints = 1_i32.to_ne_bytes();
        for element in FLOATS.into_iter().chain([AttributeElement::String]) {
            let error = read(ty(element, true), &field(PluginFieldType::INT32, &ints)).unwrap_err();
            assert!(error.contains("holds integers, expected"), "{error}");
        }
        let other = read(AttributeType::I32, &field(PluginFieldType::DIMS, &[0; 72])).unwrap_err();
        assert!(other.contains("TensorRT's type PluginFieldType::DIMS"), "{other}");
    }

    #[test]
    fn the_rules_of_the_manifest_are_kept() {
        let ruled = Attribute {
            length: Some(Interval { min: 2, max: 2 }),
            minimum: Some(Value::Int(0)),
            ..attribute(AttributeType::I32_LIST)
        };
        let check = |values: &[i32]| {
            let bytes = bytes(values, i32::to_ne_bytes);
            let value = from_field(&ruled, &[field(PluginFieldType::INT32, &bytes)]);
            value.map_err(|error| error.text().to_owned())
        };
        assert_eq!(check(&[0, 5]), Ok(ints(&[0, 5])));
        assert_eq!(check(&[1]), Err("the attribute `a` has 1 elements, expected 2".to_owned()));
        assert_eq!(check(&[1, -1]), Err("the attribute `a[1]` is `-1`, the least is `0`".to_owned()));
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
