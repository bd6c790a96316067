//! JSON Schema (draft 7) of values.

use cubinder_expr::{DEVICE, KEYWORDS};
use cubinder_model::{AttributeElement, AttributeType};
use serde_json::{Value, json};

use super::TableType;

/// Maximum bytes without the NUL (`NvInferRuntime.h`, TensorRT-RTX 1.7: 1024 with it).
pub(crate) const MAX_NAME_BYTES: usize = 1023;

pub(crate) const IDENTIFIER: &str = "[A-Za-z_][A-Za-z0-9_]*";
pub(crate) const SIZE: &str = "[0-9](_?[0-9])*";
pub(crate) const INTEGER: &str = "[+-]?[0-9](_?[0-9])*";
pub(crate) const FLOAT: &str = "[+-]?[0-9](_?[0-9])*(\\.[0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?";
/// As [`cubinder_model::Target`] parses them.
pub(crate) const TARGET: &str = "^(sm|compute)_[1-9][0-9]{1,2}[af]?$";
pub(crate) const DRIVER: &str = "^0*[1-9][0-9]*(\\.[0-9]+){0,2}$";

pub(crate) fn parameter() -> String {
    let base = format!("{IDENTIFIER}(\\s+{IDENTIFIER})*");
    let pointer = "\\s*\\*(\\s*aligned\\s*\\(\\s*0*(1|2|4|8|16|32|64|128|256)\\s*\\))?";
    let number = "(\\s*\\[\\s*\\+?[0-9]+\\s*\\])?(\\s*multiple_of\\s*\\(\\s*\\+?0*[1-9][0-9]*\\s*\\))?";
    let value = "(true|false|[+-]?[0-9.]+([eE][+-]?[0-9]+)?)";
    format!("^\\s*{IDENTIFIER}\\s*(:\\s*{base}({pointer}|{number})|==\\s*{value})\\s*$")
}

pub(crate) fn rules(path: &str) -> Option<Value> {
    match path {
        "attributes.*" => Some(AttributeType::all().map(of_type).collect()),
        "tables.*" => Some(TableType::ALL.into_iter().map(of_table).collect()),
        _ => None,
    }
}

pub(crate) fn of_type(ty: AttributeType) -> Value {
    let single = single(ty.element);
    let value = if ty.list { json!({ "type": "array", "items": single }) } else { single.clone() };
    let ends = |ty: &str, number: &str| json!({ "anyOf": [{ "type": ty }, { "type": "string", "pattern": range(number) }] });
    let range = match (ty.element.is_float(), ty.element.integers()) {
        (true, _) => ends("number", FLOAT),
        (false, Some(_)) => ends("integer", INTEGER),
        (false, None) => json!(false),
    };
    let is_discrete = ty.element.integers().is_some() || ty.element == AttributeElement::Bool;
    let can_specialize = is_discrete && !ty.list;
    let has_length = ty.list || matches!(ty.element, AttributeElement::String | AttributeElement::Bytes);
    json!({
        "if": { "properties": { "type": { "const": ty.name() } }, "required": ["type"] },
        "then": { "properties": {
            "default": value,
            "specialize": if can_specialize { json!({ "items": single }) } else { json!(false) },
            "one_of": if ty.element == AttributeElement::Bytes { json!(false) } else { json!({ "items": single }) },
            "range": range,
            "length": if has_length { size() } else { json!(false) },
        } },
    })
}

pub(crate) fn of_table(ty: TableType) -> Value {
    let element = match (ty, ty.integers()) {
        (_, Some((least, most))) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        (TableType::Bool, None) => json!({ "type": "boolean" }),
        _ => json!({ "type": "number" }),
    };
    json!({
        "if": { "properties": { "type": { "const": ty.name() } }, "required": ["type"] },
        "then": { "properties": { "values": { "items": element } } },
    })
}

pub(crate) fn single(element: AttributeElement) -> Value {
    match element {
        AttributeElement::Bool => json!({ "type": "boolean" }),
        AttributeElement::String => json!({ "type": "string" }),
        AttributeElement::Bytes => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 } },
        ] }),
        element => match element.integers() {
            Some(range) => json!({ "type": "integer", "minimum": range.min, "maximum": range.max }),
            None => json!({ "type": "number" }),
        },
    }
}

pub(crate) fn identifier() -> Value {
    text(&format!("^{IDENTIFIER}$"))
}

pub(crate) fn word() -> Value {
    let reserved: Vec<&str> = KEYWORDS.into_iter().chain([DEVICE]).collect();
    json!({ "type": "string", "pattern": format!("^{IDENTIFIER}$"), "not": { "enum": reserved } })
}

pub(crate) fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern, "maxLength": MAX_NAME_BYTES })
}

pub(crate) fn expression() -> Value {
    json!({ "type": ["string", "integer", "number", "boolean"] })
}

pub(crate) fn size() -> Value {
    json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": range(SIZE) }] })
}

pub(crate) fn range(number: &str) -> String {
    format!("^\\s*({number}(\\s*\\.\\.\\s*(=\\s*{number})?)?|\\.\\.\\s*=\\s*{number})\\s*$")
}
