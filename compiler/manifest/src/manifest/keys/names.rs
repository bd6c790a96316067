//! `[types]`, `[formats]`, `[constants]` and `[functions]`.

use cubinder_expr::{DataType, Format, Value};
use serde_json::{Value as Json, json};
use toml::de::DeValue;

use super::*;
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::toml_reader::list;
use crate::rules;

table! {
    /// A helper function for expressions.
    struct Function = FUNCTION: "functions.*" as "functions.NAME" {
        /// Names of the parameters: values, tensors or types.
        params: Identifiers = Required, "[\"i\"]";
        /// The expression.
        body: Expression = Required, "\"get(pads, 2 * i, 0)\"" or "\"...\"";
    }
}

value_types! {
    /// Names for expressions.
    Identifiers -> Located<Vec<Located<String>>>: "array of identifiers",
        json!({ "type": "array", "items": json::word(), "uniqueItems": true }), identifiers;
}

/// Declares entry types: result, name in the reference, reserved names, JSON Schema and reader.
macro_rules! lines {
    ($(#[doc = $doc:literal] $name:ident -> $value:ty: $text:literal, $reserved:expr, $schema:expr, $read:expr;)+) => {$(
        #[doc = $doc]
        pub(super) enum $name {}

        impl Line for $name {
            type Value = $value;
            const NAME: &'static str = $text;

            fn reserved() -> Vec<&'static str> {
                $reserved
            }

            fn schema() -> Json {
                $schema
            }

            fn read(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<$value> {
                $read(toml, entry)
            }
        }
    )+};
}

lines! {
    /// Entry of `[types]`.
    TypeParameter -> TypeDecl: "table: name to array of element types",
        words::<DataType>(), schema::<DataType>(), parameter;
    /// Entry of `[formats]`.
    FormatParameter -> FormatDecl: "table: name to array of formats", words::<Format>(), schema::<Format>(), parameter;
    /// Entry of a variant's or combination's `types`.
    ElementTypes -> TypeDecl: "table: name to array of element types",
        words::<DataType>(), schema::<DataType>(), alternatives;
    /// Entry of a variant's or combination's `formats`.
    Formats -> FormatDecl: "table: name to array of formats", words::<Format>(), schema::<Format>(), alternatives;
    /// Entry of any `constants`.
    Constant -> ConstantDecl: "table: name to constant",
        Vec::new(), json!({ "type": ["integer", "number", "boolean"] }), constant;
}

fn words<T: Alternative>() -> Vec<&'static str> {
    T::EACH.iter().map(|each| each.word()).collect()
}

fn schema<T: Alternative>() -> Json {
    json!({ "type": "array", "items": { "enum": words::<T>() }, "minItems": 1, "uniqueItems": true })
}

fn parameter<T: Alternative>(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Parameter<T>> {
    let name = entry.name();
    toml.identifier(&name, &format!("a {} parameter", T::WHAT));
    if T::EACH.iter().any(|known| known.word() == name.value) {
        let (what, why) = (format!("a {} parameter", T::WHAT), format!("this is {}", T::ONE));
        let place = toml.span(&name);
        toml.report(ReservedName { what, name: name.value, why, place });
    }
    alternatives(toml, entry)
}

/// The caller checks the parameter's name.
fn alternatives<T: Alternative>(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Parameter<T>> {
    let name = entry.name();
    let items = toml.values(entry, &format!("an array of {}", T::MANY))?;
    if items.is_empty() {
        let (what, many, place) = (T::WHAT, T::MANY, toml.span(entry));
        toml.report(NoAlternatives { what, many, name: name.value, place });
        return None;
    }
    let found: Vec<Located<T>> = items.iter().filter_map(|item| alternative(toml, item)).collect();
    let is_complete = found.len() == items.len();
    let message = |twice: &T| format!("`{}` lists `{}` twice", name.value, twice.word());
    let alternatives = toml.each_once(found, message).into_iter().map(|found| found.value).collect();
    is_complete.then(|| Parameter { name, alternatives, range: entry.range.clone() })
}

fn alternative<T: Alternative>(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<T>> {
    let name = toml.string(entry)?;
    let known = T::EACH.iter().copied().find(|known| known.word() == name.value);
    if known.is_none() {
        let names = words::<T>();
        match T::WHAT {
            "type" => unknown_type(toml, &name, "element type", &names),
            _ => {
                let diagnostic =
                    unknown_format(&name.value, &names).at(toml.span(name.range.clone()), "not a format");
                toml.report(diagnostic);
            }
        }
    }
    known.map(|value| Located { value, range: name.range })
}

pub(crate) fn unknown_format(name: &str, known: &[&str]) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("unknown format `{name}`"))
        .code(rules::UNKNOWN_TYPE)
        .note(format!("the formats are {}", list(known)));
    match meant_format(name).or_else(|| suggest(name, known.iter().copied())) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

/// Knows TensorRT's `kHWC8`, `trtexec`'s `fp16:hwc8` and PyTorch's `channels_last`.
fn meant_format(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let plain = lower.strip_prefix('k').unwrap_or(&lower);
    let plain = plain.rsplit_once(':').map_or(plain, |(_, format)| format);
    let ours = match plain {
        "chw" | "nchw" | "ncdhw" | "row_major" | "contiguous" => "linear",
        "nhwc" | "channels_last" => "hwc",
        "ndhwc" => "dhwc",
        plain => plain,
    };
    cubinder_expr::Format::from_name(ours).map(cubinder_expr::Format::name)
}

fn constant(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<ConstantDecl> {
    let name = entry.name();
    toml.identifier(&name, "a constant");
    let value = match entry.value {
        DeValue::Integer(_) => toml.integer(entry).map(Value::Int)?,
        DeValue::Float(_) => toml.float(entry).map(Value::Float)?,
        DeValue::Boolean(value) => Value::Bool(*value),
        _ => {
            let (found, place) = (entry.found(), toml.span(entry));
            toml.report(BadConstant { name: name.value, found, place });
            return None;
        }
    };
    Some(ConstantDecl { name, value, value_range: entry.range.clone() })
}

impl NamedDeclaration for FunctionDecl {
    const NAMED: &'static str = "a function";
    const HAS_HEADER: bool = false;
}

impl Declaration for FunctionDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&FUNCTION], but_for: None };

    fn read(toml: &mut TomlReader, name: Located<String>, section: Section<'_>) -> Option<FunctionDecl> {
        let Function { params, body } = Row::read_all(toml, section);
        let (params, body) = (params?, body?);
        for (index, param) in params.value.iter().enumerate() {
            toml.identifier(param, "a parameter");
            let earlier = params.value.iter().take(index);
            if let Some(first) = earlier.into_iter().find(|first| first.value == param.value) {
                let message = format!("`{}` has two parameters `{}`", name.value, param.value);
                let (second, first) = (toml.span(param), toml.span(first));
                toml.report(Repeated { message, second, first });
            }
        }
        Some(FunctionDecl { name, params: params.value, params_range: params.range, body })
    }
}

fn identifiers(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<Vec<Located<String>>>> {
    Some(Located { value: toml.strings(entry)?, range: entry.range.clone() })
}
