use std::ffi::CStr;
use std::ptr;

use super::{Field, FieldSet, FieldValue};
use crate::raw::{PluginField, PluginFieldType};
use crate::tests::i32_field;

fn read<'a>(field_type: PluginFieldType, length: i32, data: Option<&'a [u8]>) -> Field<'a> {
    let data = data.map_or(ptr::null(), |data| data.as_ptr().cast());
    let field = PluginField { name: c"f".as_ptr(), data, field_type, length };
    // SAFETY: tests pass the bytes that type and length imply.
    unsafe { Field::from_raw(&field) }.unwrap()
}

#[test]
fn elements_are_read_from_any_alignment() {
    let bytes: Vec<u8> = [0].into_iter().chain([7_i32, -1].into_iter().flat_map(i32::to_ne_bytes)).collect();
    let field = read(PluginFieldType::INT32, 2, Some(&bytes[1..]));
    assert_eq!(field.i32s(), Ok(vec![7, -1]));
    assert_eq!(
        read(PluginFieldType::FLOAT32, 2, Some(&bytes[1..])).i32s().unwrap_err().text(),
        "field \"f\" has type PluginFieldType::FLOAT32, expected PluginFieldType::INT32"
    );
}

#[test]
fn broken_fields_have_no_bytes() {
    for field in [
        read(PluginFieldType::INT32, -1, Some(b"")),
        read(PluginFieldType(77), 1, Some(b"x")),
        read(PluginFieldType::INT8, 3, None),
    ] {
        assert!(field.bytes().unwrap_err().text().starts_with("field \"f\" has no usable data: type "));
    }
    assert_eq!(read(PluginFieldType::INT32, 0, None).i32s(), Ok(vec![]));
}

#[test]
fn a_set_moves_without_moving_its_fields() {
    let set = FieldSet::new(vec![
        i32_field(c"a", &[1, 2]),
        FieldValue::new(c"b", PluginFieldType::CHAR, b"text\0".to_vec()).unwrap(),
    ])
    .unwrap();
    let fields = set.as_raw().fields;
    let moved = Box::new(set);
    assert_eq!(moved.as_raw().fields, fields);
    assert_eq!(moved.as_raw().nb_fields, 2);
    // SAFETY: a live set of two fields.
    let raw = unsafe { std::slice::from_raw_parts(moved.as_raw().fields, 2) };
    // SAFETY: a set's own fields are valid.
    let read: Vec<Field<'_>> = raw.iter().map(|field| unsafe { Field::from_raw(field) }.unwrap()).collect();
    assert_eq!(read[0].i32s(), Ok(vec![1, 2]));
    assert_eq!((read[1].bytes(), read[1].length()), (Ok(&b"text\0"[..]), 5));
    assert_eq!(moved.iter().map(|field| field.name()).collect::<Vec<&CStr>>(), [c"a", c"b"]);
}

#[test]
fn sets_refuse_what_an_engine_would_not_keep() {
    let twice = vec![i32_field(c"a", &[]), i32_field(c"a", &[1])];
    assert_eq!(FieldSet::new(twice).unwrap_err().text(), "duplicate field \"a\"");
    let odd = FieldValue::new(c"odd", PluginFieldType::INT32, vec![1, 2, 3]).unwrap_err();
    assert_eq!(odd.text(), "3 bytes do not fit field \"odd\" of type PluginFieldType::INT32");
    assert!(FieldValue::new(c"x", PluginFieldType(50), vec![]).is_err());
}
