use cubinder_expr::Value;
use cubinder_model::field::{Field as Passed, FieldType, attribute_value};
use cubinder_model::{Attribute, AttributeElement, AttributeType, Plugin};
use trt_abi::{Error, Field, PluginFieldType, Result};

/// Requests ahead-of-time (1) or just-in-time (0) code.
pub(crate) const AOT: &std::ffi::CStr = c"aot";

pub(crate) fn from_fields(plugin: &Plugin, fields: &[Field<'_>]) -> Result<Vec<Value>> {
    plugin.attributes.iter().map(|attribute| from_field(attribute, fields)).collect()
}

pub(crate) fn aot(fields: &[Field<'_>]) -> Option<bool> {
    let field = fields.iter().find(|field| field.name() == AOT)?;
    field.i32s().ok()?.first().map(|value| *value != 0)
}

pub(crate) fn declared_type(ty: AttributeType) -> PluginFieldType {
    match ty.element {
        element if element.is_float() => PluginFieldType::FLOAT32,
        AttributeElement::String | AttributeElement::Bytes => PluginFieldType::CHAR,
        _ => PluginFieldType::INT32,
    }
}

fn from_field(attribute: &Attribute, fields: &[Field<'_>]) -> Result<Value> {
    let mut named = fields.iter().filter(|field| field.name().to_bytes() == attribute.name.as_bytes());
    let first = named.next();
    if named.next().is_some() {
        return Err(Error::invalid(format!("duplicate attribute `{}`", attribute.name)));
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
    use cubinder_model::container::{self, Container, FORMAT_VERSION};

    const THREE: [u8; 4] = 3_i32.to_ne_bytes();
    const ZERO: [u8; 4] = [0; 4];

    fn i32_field<'a>(name: &'a std::ffi::CStr, value: &'a [u8; 4]) -> Field<'a> {
        Field::new(name, PluginFieldType::INT32, 1, value)
    }

    fn plugin(attributes: &[Attribute]) -> Plugin {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/compat");
        let bytes = std::fs::read(format!("{folder}/{FORMAT_VERSION}/node")).unwrap();
        let Container::Node(node) = container::read(&bytes).unwrap().container else {
            panic!("it is a node")
        };
        Plugin { attributes: attributes.to_vec(), ..node.plugin }
    }

    #[test]
    fn each_attribute_is_that_of_the_field_with_its_name() {
        let b = Attribute { default: Some(Value::Int(8)), ..Attribute::new("b", AttributeType::I32) };
        let plugin = plugin(&[Attribute::new("a", AttributeType::I32), b]);
        let values =
            |fields: &[Field<'_>]| from_fields(&plugin, fields).map_err(|error| error.text().to_owned());
        let (three, zero) = (|name| i32_field(name, &THREE), |name| i32_field(name, &ZERO));
        assert_eq!(values(&[zero(c"b"), three(c"a")]), Ok(vec![Value::Int(3), Value::Int(0)]));
        assert_eq!(values(&[zero(c"other"), three(c"a")]), Ok(vec![Value::Int(3), Value::Int(8)]));
        assert_eq!(
            values(&[three(c"b")]),
            Err("missing attribute `a` (`i32`), which has no default".to_owned())
        );
        assert_eq!(values(&[three(c"a"), zero(c"a")]), Err("duplicate attribute `a`".to_owned()));
    }

    #[test]
    fn type_length_and_bytes_are_those_of_the_field() {
        let list = Attribute::new("a", AttributeType::I32_LIST);
        let read = |field: &Field<'_>| {
            let value = from_field(&list, std::slice::from_ref(field));
            value.map_err(|error| error.text().to_owned())
        };
        let both = Value::Array(vec![Value::Int(3), Value::Int(0)]);
        let bytes = [3, 0];
        assert_eq!(read(&Field::new(c"a", PluginFieldType::INT8, 2, &bytes)), Ok(both));
        assert_eq!(read(&Field::new(c"a", PluginFieldType(0), 0, &[])), Ok(Value::Array(Vec::new())));
        let text = Field::new(c"a", PluginFieldType::CHAR, 2, b"ab");
        assert_eq!(read(&text), Err("the attribute `a` contains text, expected `i32[]`".to_owned()));
        for length in [-1, 3] {
            let raw = trt_abi::raw::PluginField {
                name: c"a".as_ptr(),
                data: std::ptr::null(),
                field_type: PluginFieldType::INT32,
                length,
            };
            // SAFETY: the name outlives the field, which has no data.
            let field = unsafe { Field::from_raw(&raw) }.unwrap();
            let error = read(&field).unwrap_err();
            assert!(error.contains("has no usable data"), "{error}");
        }
    }

    #[test]
    fn aot_is_what_the_node_says() {
        assert_eq!(aot(&[i32_field(c"a", &ZERO)]), None);
        assert_eq!(aot(&[i32_field(c"a", &THREE), i32_field(c"aot", &ZERO)]), Some(false));
        assert_eq!(aot(&[i32_field(c"aot", &THREE)]), Some(true));
        assert_eq!(aot(&[Field::new(c"aot", PluginFieldType::CHAR, 1, b"1")]), None);
    }

    #[test]
    fn fields_are_declared_as_the_parser_passes_them() {
        for ty in AttributeType::all() {
            let name = ty.name();
            let expected = match name.trim_end_matches("[]") {
                "f16" | "f32" | "f64" => PluginFieldType::FLOAT32,
                "string" | "bytes" => PluginFieldType::CHAR,
                _ => PluginFieldType::INT32,
            };
            assert_eq!(declared_type(ty), expected, "{name}");
        }
    }
}
