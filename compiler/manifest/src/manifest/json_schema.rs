//! The key table as JSON Schema (draft 7), for editors that complete and check TOML by it.
//!
//! It says what can be said of a value on its own, and of the values of an attribute by its type. It never refuses what the
//! reader accepts (save for numbers in ranges that nobody writes, such as `+0_8`); what it cannot say (an empty range, a name
//! twice) only the reader tells.

use cubinder_expr::{DEVICE, KEYWORDS};
use cubinder_expr::{DataType, Format};
use cubinder_model::{AttributeElement, AttributeType, MAX_VARIANT_ID};
use serde_json::{Map, Value, json};

use super::keys::{Form, Key, Kinds, Naming, Presence, ROOT, Reserved, Table};
use super::v1::attributes::RESERVED;
use super::v1::plugin::MAX_NAME_BYTES;
use super::{CodeKind, MAX_RANK, NEWEST_SCHEMA, Route, TableType};

const IDENTIFIER: &str = "[A-Za-z_][A-Za-z0-9_]*";
const SIZE: &str = "[0-9](_?[0-9])*";
const INTEGER: &str = "[+-]?[0-9](_?[0-9])*";
const FLOAT: &str = "[+-]?[0-9](_?[0-9])*(\\.[0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?";
/// Two or three digits of an architecture with its suffix, as [`cubinder_model::Target`] reads it.
const TARGET: &str = "^(sm|compute)_[1-9][0-9]{1,2}[af]?$";
const DRIVER: &str = "^0*[1-9][0-9]*(\\.[0-9]+){0,2}$";

/// The JSON Schema of manifests of the newest edition.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = table(&ROOT);
    if let Value::Object(fields) = &mut schema {
        fields.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        fields.insert("$id".to_owned(), json!(format!("urn:cubinder:manifest:{NEWEST_SCHEMA}")));
        fields.insert("title".to_owned(), json!("Cubinder plugin manifest"));
    }
    schema
}

fn table(table: &Table) -> Value {
    let properties: Map<String, Value> =
        table.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> =
        table.keys.iter().filter(|key| key.presence == Presence::Required).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": table.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    if let Value::Object(fields) = &mut schema {
        if !required.is_empty() {
            fields.insert("required".to_owned(), json!(required));
        }
        if table.path == "attributes.*" {
            fields.insert("allOf".to_owned(), AttributeType::all().map(of_type).collect());
        }
        if table.path == "tables.*" {
            fields.insert("allOf".to_owned(), TableType::ALL.into_iter().map(of_table).collect());
        }
    }
    schema
}

/// A key's value, with what an editor shows of it.
fn property(key: &Key) -> Value {
    let mut schema = form(&key.form);
    if let Value::Object(fields) = &mut schema {
        fields.insert("description".to_owned(), json!(key.doc));
        if let Some(example) = from_toml(key.example) {
            fields.insert("examples".to_owned(), json!([example]));
        }
        if let Presence::Default(default) = key.presence
            && let Some(default) = from_toml(default)
        {
            fields.insert("default".to_owned(), default);
        }
    }
    schema
}

/// A value of TOML as JSON; none where the text is empty.
fn from_toml(text: &str) -> Option<Value> {
    let document: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    serde_json::to_value(document.get("value")?).ok()
}

fn form(form: &Form) -> Value {
    match form {
        Form::Edition => json!({ "const": NEWEST_SCHEMA }),
        Form::Text | Form::Memory | Form::Kernel | Form::ExpressionText => json!({ "type": "string" }),
        Form::Message | Form::Path => json!({ "type": "string", "pattern": "\\S" }),
        Form::Identifier | Form::TensorType | Form::TensorFormat => identifier(),
        Form::AttributeNames => json!({ "type": "array", "items": identifier() }),
        Form::Identifiers => json!({ "type": "array", "items": word(), "uniqueItems": true }),
        Form::Namespace => text(&format!("^({IDENTIFIER}(\\.{IDENTIFIER})*)?$")),
        Form::Version => text("^[A-Za-z0-9._+-]+$"),
        Form::Expression => expression(),
        Form::Expressions => json!({ "type": "array", "items": expression(), "minItems": 1, "maxItems": 3 }),
        Form::ElementTypes => {
            let names: Vec<&str> = DataType::ALL.iter().map(|ty| ty.name()).collect();
            json!({ "type": "array", "items": { "enum": names }, "minItems": 1, "uniqueItems": true })
        }
        Form::Formats => {
            let names = Format::ALL.map(Format::name);
            json!({ "type": "array", "items": { "enum": names }, "minItems": 1, "uniqueItems": true })
        }
        Form::AttributeType => {
            let names: Vec<&str> = AttributeType::all().map(AttributeType::name).collect();
            json!({ "enum": names })
        }
        // The attribute's type says which values, in `of_type`.
        Form::AttributeValue => json!({ "type": ["integer", "number", "boolean", "string", "array"] }),
        Form::AttributeValues => json!({ "type": "array", "minItems": 1, "uniqueItems": true }),
        Form::Rank => json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": MAX_RANK },
            { "type": "string", "pattern": range(&format!("[0-{MAX_RANK}]")) },
        ] }),
        Form::Size => size(),
        Form::Sizes => {
            let each = json!({ "type": "array", "items": size(), "maxItems": MAX_RANK });
            json!({ "anyOf": [
                { "type": "integer", "minimum": 0 }, { "type": "string", "pattern": range(SIZE) }, each,
            ] })
        }
        Form::NumberRange => json!({ "type": ["integer", "number", "string"] }),
        Form::Constant => json!({ "type": ["integer", "number", "boolean"] }),
        Form::TableType => json!({ "enum": TableType::ALL.map(TableType::name) }),
        Form::TableValues => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": ["integer", "number", "boolean"] }, "minItems": 1 },
        ] }),
        Form::VariantId => json!({ "type": "integer", "minimum": 1, "maximum": MAX_VARIANT_ID }),
        Form::Integers => json!({ "enum": ["i32", "i64"] }),
        Form::ShapeInputRank => json!({ "type": "integer", "minimum": 0, "maximum": 1 }),
        Form::IntegerRange => {
            json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": range(INTEGER) }] })
        }
        Form::True => json!({ "const": true }),
        Form::Byte => json!({ "type": "integer", "minimum": 0, "maximum": 255 }),
        Form::Switch => json!({ "type": "boolean" }),
        Form::Paths => json!({ "type": "array", "items": { "type": "string", "pattern": "\\S" } }),
        Form::Parameters => json!({ "type": "array", "items": { "type": "string", "pattern": parameter() } }),
        Form::Symbol => json!({ "type": "string", "pattern": "^(\\S+|[^\\t\\n\\r]*<[^\\t\\n\\r]*)$" }),
        Form::Files => json!({
            "type": "array",
            "items": { "type": "string", "pattern": "\\S" },
            "minItems": 1,
            "uniqueItems": true,
        }),
        Form::Choice => json!({ "type": ["string", "integer", "number", "boolean"] }),
        Form::Options => json!({ "type": "array", "items": { "type": "string", "pattern": "^-" } }),
        Form::Targets => json!({
            "type": "array",
            "items": { "type": "string", "pattern": TARGET },
            "minItems": 1,
            "uniqueItems": true,
        }),
        Form::CodeKinds => json!({
            "type": "array",
            "items": { "enum": CodeKind::ALL.map(CodeKind::name) },
            "minItems": 1,
            "uniqueItems": true,
        }),
        Form::Debug => json!({ "enum": ["line"] }),
        Form::Driver => json!({ "type": "string", "pattern": DRIVER }),
        Form::Route => json!({ "enum": Route::ALL.map(Route::name) }),
        Form::Table(inner) => table(inner),
        Form::Tables(inner) => json!({ "type": "array", "items": table(inner) }),
        Form::Kinds(kinds) => of_kinds(kinds),
        Form::Named(inner, naming) => named(&table(inner), naming),
        Form::NamedKinds(kinds, naming) => named(&of_a_kind(kinds), naming),
        Form::Lines(of, naming) => named(&self::form(of), naming),
    }
}

/// A parameter of `[[code]]`: a type with what the value is a multiple of, or a value.
fn parameter() -> String {
    let base = format!("{IDENTIFIER}(\\s+{IDENTIFIER})*");
    let pointer = "\\s*\\*(\\s*aligned\\s*\\(\\s*0*(1|2|4|8|16|32|64|128|256)\\s*\\))?";
    let number = "(\\s*\\[\\s*\\+?[0-9]+\\s*\\])?(\\s*multiple_of\\s*\\(\\s*\\+?0*[1-9][0-9]*\\s*\\))?";
    let value = "(true|false|[+-]?[0-9.]+([eE][+-]?[0-9]+)?)";
    format!("^\\s*{IDENTIFIER}\\s*(:\\s*{base}({pointer}|{number})|==\\s*{value})\\s*$")
}

/// A table of one of several kinds.
fn of_a_kind(kinds: &Kinds) -> Value {
    let mut tables = kinds.tables.iter().rev();
    let last = tables.next().map_or_else(|| json!(true), |last| table(last));
    kinds.keys.iter().rev().zip(tables).fold(
        last,
        |other, (key, kind)| json!({ "if": { "required": [key] }, "then": table(kind), "else": other }),
    )
}

/// An array of tables of several kinds.
fn of_kinds(kinds: &Kinds) -> Value {
    let mut array = json!({ "type": "array", "items": of_a_kind(kinds) });
    if let (Value::Object(fields), Some(key)) = (&mut array, kinds.but_for) {
        fields.insert("contains".to_owned(), json!({ "not": { "required": [key] } }));
    }
    array
}

/// A table whose keys are the author's names.
fn named(each: &Value, naming: &Naming) -> Value {
    let mut names = json!({ "pattern": format!("^{IDENTIFIER}$") });
    let reserved: Vec<&str> = match naming.reserved {
        Reserved::None => Vec::new(),
        Reserved::OnnxParser => RESERVED.to_vec(),
        Reserved::ElementTypes => DataType::ALL.iter().map(|ty| ty.name()).collect(),
        Reserved::Formats => Format::ALL.iter().map(|format| format.name()).collect(),
    };
    if let (Value::Object(fields), false) = (&mut names, reserved.is_empty()) {
        fields.insert("not".to_owned(), json!({ "enum": reserved }));
    }
    json!({ "type": "object", "propertyNames": names, "additionalProperties": each })
}

/// The values of an attribute whose type is known.
fn of_type(ty: AttributeType) -> Value {
    let single = single(ty.element);
    let value = if ty.list { json!({ "type": "array", "items": single }) } else { single.clone() };
    let number = ty.element.integers().is_some() || ty.element.is_float();
    let range = match (number, ty.element.is_float()) {
        (false, _) => json!(false),
        (true, false) => {
            json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": range(INTEGER) }] })
        }
        (true, true) => {
            json!({ "anyOf": [{ "type": "number" }, { "type": "string", "pattern": range(FLOAT) }] })
        }
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

/// The elements of a table whose type is known.
fn of_table(ty: TableType) -> Value {
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

fn single(element: AttributeElement) -> Value {
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

fn identifier() -> Value {
    text(&format!("^{IDENTIFIER}$"))
}

/// A name in expressions, which has their words for itself.
fn word() -> Value {
    let reserved: Vec<&str> = KEYWORDS.into_iter().chain([DEVICE]).collect();
    json!({ "type": "string", "pattern": format!("^{IDENTIFIER}$"), "not": { "enum": reserved } })
}

/// A name that TensorRT stores.
fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern, "maxLength": MAX_NAME_BYTES })
}

fn expression() -> Value {
    json!({ "type": ["string", "integer", "number", "boolean"] })
}

fn size() -> Value {
    json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": range(SIZE) }] })
}

/// The texts of ranges whose ends look like `number`: `n`, `n..`, `n..=n`, `..=n`.
fn range(number: &str) -> String {
    format!("^\\s*({number}(\\s*\\.\\.\\s*(=\\s*{number})?)?|\\.\\.\\s*=\\s*{number})\\s*$")
}
