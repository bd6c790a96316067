use super::*;
use crate::model::Interval;

const fn ty(element: AttributeElement, list: bool) -> AttributeType {
    AttributeType { element, list }
}

fn attribute(ty: AttributeType) -> Attribute {
    Attribute::new("a", ty)
}

fn field(ty: FieldType, bytes: &[u8]) -> Field<'_> {
    let size = match ty {
        FieldType::INT8 | FieldType::CHAR => 1,
        FieldType::INT16 | FieldType::FLOAT16 | FieldType::BF16 => 2,
        FieldType::INT32 | FieldType::FLOAT32 => 4,
        FieldType::INT64 | FieldType::FLOAT64 => 8,
        _ => bytes.len(),
    };
    Field { ty, length: (bytes.len() / size) as i32, bytes: Some(bytes) }
}

/// An empty list, as TensorRT's parser passes it.
const EMPTY: Field<'static> = Field { ty: FieldType(0), length: 0, bytes: None };

fn read(ty: AttributeType, field: &Field<'_>) -> Result<Value, String> {
    attribute_value(&attribute(ty), Some(field)).map_err(|Unmet(why)| why)
}

fn ints(values: &[i64]) -> Value {
    Value::Array(values.iter().copied().map(Value::Int).collect())
}

fn bytes<const SIZE: usize, T: Copy>(values: &[T], write: fn(T) -> [u8; SIZE]) -> Vec<u8> {
    values.iter().flat_map(|value| write(*value)).collect()
}

const INTEGERS: [AttributeElement; 4] =
    [AttributeElement::I8, AttributeElement::I16, AttributeElement::I32, AttributeElement::I64];
const FLOATS: [AttributeElement; 3] = [AttributeElement::F16, AttributeElement::F32, AttributeElement::F64];

#[test]
fn integers_are_taken_from_every_field_that_fits() {
    let fields = [
        (FieldType::INT8, bytes(&[3, -1], i8::to_ne_bytes)),
        (FieldType::INT16, bytes(&[3, -1], i16::to_ne_bytes)),
        (FieldType::INT32, bytes(&[3, -1], i32::to_ne_bytes)),
        (FieldType::INT64, bytes(&[3, -1], i64::to_ne_bytes)),
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
            let value = read(ty(element, false), &field(FieldType::INT64, &bytes));
            assert_eq!(value.is_ok(), other <= index, "{element:?} {edge}");
        }
    }
    let large = 300_i32.to_ne_bytes();
    assert_eq!(
        read(ty(AttributeElement::I8, false), &field(FieldType::INT32, &large)),
        Err("the attribute `a` is `300`, expected `i8`".to_owned())
    );
}

#[test]
fn floats_are_rounded_to_their_type() {
    let fields = [
        (FieldType::FLOAT32, bytes(&[0.1, -2.0], f32::to_ne_bytes)),
        (FieldType::FLOAT64, bytes(&[0.1, -2.0], f64::to_ne_bytes)),
        (FieldType::BF16, bytes(&[0x3dcd, 0xc000], u16::to_ne_bytes)),
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
    let double = 0.1_f64.to_ne_bytes();
    for (element, expected) in FLOATS.into_iter().zip([0.099_975_585_937_5, f64::from(0.1_f32), 0.1]) {
        let value = read(ty(element, false), &field(FieldType::FLOAT64, &double));
        assert_eq!(value, Ok(Value::Float(expected)), "{element:?}");
    }
    let half = bytes(&[0x2e66, 0xfc00], u16::to_ne_bytes);
    let from_half = read(ty(AttributeElement::F16, true), &field(FieldType::FLOAT16, &half));
    let expected = [0.099_975_585_937_5, f64::NEG_INFINITY].map(Value::Float);
    assert_eq!(from_half, Ok(Value::Array(expected.to_vec())));
    let error = read(ty(AttributeElement::F32, true), &field(FieldType::FLOAT16, &half)).unwrap_err();
    assert!(error.contains("or a tensor that TensorRT's ONNX parser cannot pass"), "{error}");
    let huge = 1e6_f32.to_ne_bytes();
    assert_eq!(
        read(ty(AttributeElement::F16, false), &field(FieldType::FLOAT32, &huge)),
        Err("the attribute `a` contains 1000000.0, which exceeds the range of its type, expected `f16`"
            .to_owned())
    );
}

#[test]
fn texts_end_with_a_nul_or_not() {
    let string = ty(AttributeElement::String, false);
    let strings = ty(AttributeElement::String, true);
    let text = |value: &str| Value::Str(value.to_owned());
    let list = |values: &[&str]| Ok(Value::Array(values.iter().map(|value| text(value)).collect()));
    let chars = |bytes: &'static [u8]| field(FieldType::CHAR, bytes);
    assert_eq!(read(string, &chars(b"wrap\0")), Ok(text("wrap")));
    assert_eq!(read(string, &chars(b"wrap")), Ok(text("wrap")));
    assert_eq!(read(string, &chars(b"\0")), Ok(text("")));
    assert_eq!(read(string, &chars(b"")), Ok(text("")));
    assert!(read(string, &chars(b"a\0b\0")).unwrap_err().contains("is a list of 2 values"));
    assert!(read(string, &chars(b"\xff\0")).unwrap_err().contains("is not UTF-8"));
    assert_eq!(read(strings, &chars(b"a\0b\0")), list(&["a", "b"]));
    assert_eq!(read(strings, &chars(b"a\0b")), list(&["a", "b"]));
    assert_eq!(read(strings, &chars(b"a\0\0b\0")), list(&["a", "", "b"]));
    assert_eq!(read(strings, &chars(b"\0")), list(&[""]));
    assert_eq!(read(strings, &chars(b"")), list(&[]));
}

#[test]
fn bytes_are_any_bytes() {
    let octets = ty(AttributeElement::Bytes, false);
    assert_eq!(read(octets, &field(FieldType::CHAR, b"\xff\0a\0\0")), Ok(ints(&[255, 0, 97, 0])));
    assert_eq!(read(octets, &field(FieldType::CHAR, b"ab")), Ok(ints(&[97, 98])));
    assert_eq!(read(octets, &field(FieldType::INT8, b"\x80\0")), Ok(ints(&[128, 0])));
    assert_eq!(read(octets, &EMPTY), Ok(ints(&[])));
    let error = read(octets, &field(FieldType::INT32, &[0; 4])).unwrap_err();
    assert_eq!(error, "the attribute `a` contains integers, expected `bytes`");
}

#[test]
fn booleans_are_0_or_1() {
    let bits = bytes(&[1, 0], i32::to_ne_bytes);
    let flags = ty(AttributeElement::Bool, true);
    let expected = Value::Array(vec![Value::Bool(true), Value::Bool(false)]);
    assert_eq!(read(flags, &field(FieldType::INT32, &bits)), Ok(expected));
    let two = 2_i32.to_ne_bytes();
    assert!(read(flags, &field(FieldType::INT32, &two)).unwrap_err().contains("contains 2, but a"));
}

#[test]
fn an_empty_list_has_no_type_and_no_data() {
    for ty in AttributeType::all() {
        let value = read(ty, &EMPTY);
        if ty.list || ty.element == AttributeElement::Bytes {
            assert_eq!(value, Ok(Value::Array(vec![])), "{}", ty.name());
        } else {
            assert!(value.unwrap_err().contains("is a list of 0 values"), "{}", ty.name());
        }
    }
    for length in [-1, 3] {
        let field = Field { ty: FieldType::INT32, length, bytes: None };
        let error = read(AttributeType::I32_LIST, &field).unwrap_err();
        let why = format!("has no usable data (type PluginFieldType::INT32, length {length})");
        assert!(error.contains(&why), "{error}");
    }
}

#[test]
fn another_type_is_said() {
    let text = field(FieldType::CHAR, b"wrap\0");
    let error = read(AttributeType::I32_LIST, &text).unwrap_err();
    assert_eq!(error, "the attribute `a` contains text, expected `i32[]`");
    let ints = 1_i32.to_ne_bytes();
    for element in FLOATS.into_iter().chain([AttributeElement::String]) {
        let error = read(ty(element, true), &field(FieldType::INT32, &ints)).unwrap_err();
        assert!(error.contains("contains integers, expected"), "{error}");
    }
    let other = read(AttributeType::I32, &field(FieldType(7), &[0; 72])).unwrap_err();
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
        attribute_value(&ruled, Some(&field(FieldType::INT32, &bytes))).map_err(|Unmet(why)| why)
    };
    assert_eq!(check(&[0, 5]), Ok(ints(&[0, 5])));
    assert_eq!(check(&[1]), Err("the attribute `a` has length 1, expected 2".to_owned()));
    assert_eq!(check(&[1, -1]), Err("the attribute `a[1]` is `-1`, the minimum is `0`".to_owned()));
}

#[test]
fn what_the_node_does_not_say_is_the_default() {
    let required = attribute(AttributeType::I32);
    let error = attribute_value(&required, None).unwrap_err().to_string();
    assert_eq!(error, "missing attribute `a` (`i32`), which has no default");
    let with_default = Attribute { default: Some(Value::Int(7)), ..required };
    assert_eq!(attribute_value(&with_default, None), Ok(Value::Int(7)));
    let two = 2_i32.to_ne_bytes();
    assert_eq!(attribute_value(&with_default, Some(&field(FieldType::INT32, &two))), Ok(Value::Int(2)));
}

#[test]
fn types_are_named_as_tensorrt_does() {
    let shown = |number| format!("{:?}", FieldType(number));
    assert_eq!(shown(10), "PluginFieldType::INT64");
    assert_eq!([shown(14), shown(-1)], ["PluginFieldType(14)", "PluginFieldType(-1)"]);
}
