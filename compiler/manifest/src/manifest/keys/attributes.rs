//! `[attributes.NAME]`.

use cubinder_model::AttributeType;

use super::constraints::{self, Subject};
use super::*;

/// Names that TensorRT's ONNX parser reserves (TensorRT-RTX 1.7).
const RESERVED: [&str; 4] =
    ["aot", "plugin_namespace", "plugin_version", "tensorrt_plugin_shape_input_indices"];

table! {
    /// An attribute of the ONNX node.
    struct Attribute = ATTRIBUTE: "attributes.*" as "[attributes.NAME]" {
        /// Its type.
        ty "type": TypeOfAttribute = Required, "\"i32[]\"" or "\"i32\"";
        /// The value for nodes that lack the attribute; without it they are rejected.
        default: AttributeValue = Optional, "[1, 1]";
        /// Number of elements of a list, or of bytes of a string (UTF-8) or `bytes`.
        length: Length = Optional, "\"1..=16\"";
        /// Allowed range; for lists, of each element.
        range: NumberRange = Optional, "\"0..=1024\"";
        /// Allowed values; for lists, of each element. Not for `bytes`.
        one_of: AttributeValues = Optional, "[0, 1, 2, 4]";
        /// Compiles the code for each of these integers or booleans and rejects others. Not for lists.
        specialize: AttributeValues = Optional, "[3, 5, 7]";
        /// A description, shown by `inspect --plugin`.
        doc: AnyText = Optional, "\"what it is\"";
    }
}

// `constraints` reads these once the type is known.
value_types! {
    /// Type.
    TypeOfAttribute -> Located<AttributeType>: "attribute type",
        json!({ "enum": AttributeType::all().map(AttributeType::name).collect::<Vec<_>>() }), attribute_type;
    /// Value of the attribute's type.
    AttributeValue -> Entry<'t>: "value of the attribute's type",
        json!({ "type": ["integer", "number", "boolean", "string", "array"] }), TomlReader::unread;
    /// Values of the attribute's or element's type.
    AttributeValues -> Entry<'t>: "array of values",
        json!({ "type": "array", "minItems": 1, "uniqueItems": true }), TomlReader::unread;
    /// Length or range.
    Length -> Entry<'t>: "integer or range", json::size(), TomlReader::unread;
    /// Number or range.
    NumberRange -> Entry<'t>: "number or range", json!({ "type": ["integer", "number", "string"] }), TomlReader::unread;
}

impl NamedDeclaration for AttributeDecl {
    const NAMED: &'static str = "an attribute";

    fn reserved() -> Vec<&'static str> {
        RESERVED.to_vec()
    }
}

impl Declaration for AttributeDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&ATTRIBUTE], but_for: None };

    fn read(toml: &mut TomlReader, name: Located<String>, section: Section<'_>) -> Option<AttributeDecl> {
        if RESERVED.contains(&name.value.as_str()) {
            let why = "TensorRT's ONNX parser reserves this name".to_owned();
            let (what, place) = ("an attribute".to_owned(), toml.span(&name));
            toml.report(ReservedName { what, name: name.value.clone(), why, place });
        }
        let Attribute { ty, default, length, range, one_of, specialize, doc } = Row::read_all(toml, section);
        let ty = ty?;
        let subject = Subject { name: &name.value, ty: ty.value, type_range: &ty.range };
        let keys = [length.as_ref(), range.as_ref(), one_of.as_ref(), specialize.as_ref()];
        let constraints = constraints::read(toml, keys, subject);
        let default = default.and_then(|entry| constraints::default(toml, &entry, subject, &constraints));
        let constraints::Constraints { length, range, one_of, specialize } = constraints;
        let doc = doc.unwrap_or_default();
        Some(AttributeDecl { name, ty, default, length, range, one_of, specialize, doc })
    }
}

fn attribute_type(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<AttributeType>> {
    if let Some(first) = entry.items().and_then(|items| items.first()?.value.as_str().map(str::to_owned)) {
        let help = Some(format!("write `type = \"{}[]\"` for a list", first.trim_end_matches("[]")));
        toml.report(WrongType { help, ..toml.wrong_type(entry, "a string") });
        return None;
    }
    let ty = toml.string(entry)?;
    let known = AttributeType::from_name(&ty.value);
    if known.is_none() {
        let names: Vec<&str> = AttributeType::all().map(AttributeType::name).collect();
        unknown_type(toml, &ty, "attribute type", &names);
    }
    known.map(|value| Located { value, range: ty.range })
}
