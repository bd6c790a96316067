//! Owns queries' syntax (shapes, attributes, types, alignments) and conversion to attribute types.

pub(crate) mod read;

use cubinder_expr::Value;
use cubinder_model::{AttributeElement, AttributeType};

use crate::diagnostic::Diagnostic;

const MAX_RANK: usize = cubinder_model::model::MAX_RANK as usize;

/// Node with its shapes, possibly incomplete.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Query {
    /// Shapes of inputs.
    pub shapes: Vec<(String, Vec<i64>)>,
    /// Values of shape inputs.
    pub values: Vec<(String, Vec<i64>)>,
    /// Values of attributes.
    pub attributes: Vec<(String, RawAttributeValue)>,
    /// Types of parameters or tensors.
    pub types: Vec<(String, String)>,
    /// Formats of parameters or tensors.
    pub formats: Vec<(String, String)>,
    /// Alignments in bytes; default: [`DEFAULT_ALIGNMENT`].
    pub aligned: Vec<(String, u64)>,
    /// Device facts, by the names after `device.`.
    pub device: Vec<(String, i64)>,
}

/// Alignment of `cudaMalloc`'s and TensorRT's memory, in bytes (CUDA C++ programming guide 13.0, "device memory accesses": at least 256).
pub const DEFAULT_ALIGNMENT: u64 = 256;

/// An attribute's value before its type is known.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum RawAttributeValue {
    /// Text from the command line.
    Text(String),
    /// Value from a file.
    Value(Value),
}

/// Part of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Shape.
    Shape,
    /// Values of a shape input.
    Values,
    /// Attribute.
    Attribute,
    /// Type.
    Type,
    /// Format.
    Format,
    /// Alignment.
    Aligned,
    /// Device fact.
    Device,
}

impl Part {
    /// Command-line option, example value, key in files.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Part::Shape => ("--shape", "x=10x3x32x32", "shapes"),
            Part::Values => ("--values", "target=4,8", "values"),
            Part::Device => ("--device", "sms=132", "device"),
            Part::Attribute => ("--attr", "pads=1,1", "attributes"),
            Part::Type => ("--type", "T=f16", "types"),
            Part::Format => ("--format", "F=hwc8", "formats"),
            Part::Aligned => ("--aligned", "x=16", "aligned"),
        }
    }

    /// Returns the command-line option.
    #[must_use]
    pub const fn option(self) -> &'static str {
        self.names().0
    }

    pub(crate) const fn key(self) -> &'static str {
        self.names().2
    }
}

/// Error in a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// Part with the error.
    pub part: Part,
    /// Unknown or missing name.
    pub name: String,
    /// Probably intended name.
    near: Option<String>,
    /// Error, without a span.
    pub diagnostic: Diagnostic,
}

impl Mistake {
    pub(crate) fn new(part: Part, name: &str, error: impl Into<Diagnostic>) -> Mistake {
        Mistake { part, name: name.to_owned(), near: None, diagnostic: error.into() }
    }

    pub(crate) fn near(self, near: Option<&str>) -> Mistake {
        Mistake { near: near.map(str::to_owned), ..self }
    }

    pub(crate) fn in_one_line(&self) -> String {
        let near = self.near.iter().map(|near| format!("did you mean `{near}`?"));
        let parts = std::iter::once(&self.diagnostic.message).chain(&self.diagnostic.notes);
        parts.cloned().chain(near).collect::<Vec<_>>().join("; ")
    }
}

impl Query {
    /// Parses command-line options `NAME=VALUE`; reports every malformed pair.
    pub fn parse(options: &[(Part, &[String])]) -> Result<Query, Vec<Diagnostic>> {
        let mut query = Query::default();
        let mut errors = Vec::new();
        for (part, texts) in options {
            let mut seen: Vec<&str> = Vec::new();
            for text in *texts {
                let added = pair(text, *part).and_then(|(name, value)| {
                    let option = part.option();
                    if seen.contains(&name) {
                        return Err(Diagnostic::error(format!("duplicate `{option} {name}=...`")));
                    }
                    seen.push(name);
                    query
                        .add(*part, name.to_owned(), value)
                        .map_err(|why| Diagnostic::error(format!("`{option} {text}`: {why}")))
                });
                errors.extend(added.err());
            }
        }
        if errors.is_empty() { Ok(query) } else { Err(errors) }
    }

    fn add(&mut self, part: Part, name: String, value: &str) -> Result<(), String> {
        match part {
            Part::Shape => self.shapes.push((name, shape(value)?)),
            Part::Values => self.values.push((name, integers(value)?)),
            Part::Device => {
                self.device.push((name, value.parse().map_err(|_| format!("`{value}` is not an integer"))?));
            }
            Part::Attribute => self.attributes.push((name, RawAttributeValue::Text(value.to_owned()))),
            Part::Type => self.types.push((name, value.to_owned())),
            Part::Format => self.formats.push((name, value.to_owned())),
            Part::Aligned => {
                let bytes = value.parse().map_err(|_| format!("`{value}` is not a number of bytes"))?;
                self.aligned.push((name, alignment(bytes)?));
            }
        }
        Ok(())
    }
}

fn pair(text: &str, part: Part) -> Result<(&str, &str), Diagnostic> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim(), value.trim())),
        _ => {
            let (option, example, _) = part.names();
            Err(Diagnostic::error(format!("expected `NAME=VALUE`, found `{option} {text}`"))
                .help(format!("use the form `{option} {example}`")))
        }
    }
}

/// Parses `10x3x32x32`, `10,3,32,32` or `[10, 3]`; for rank 0 `scalar`, `[]` or nothing.
pub fn shape(text: &str) -> Result<Vec<i64>, String> {
    let inner = text.trim();
    let inner = match inner.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or_else(|| "the bracket is not closed".to_owned())?.trim(),
        None => inner,
    };
    if inner.is_empty() || inner == "scalar" {
        return Ok(Vec::new());
    }
    let dimension = |text: &str| {
        text.trim().parse().map_err(|_| {
            let text = text.trim();
            format!(
                "`{text}` is not a dimension; expected a shape such as `10x3x32x32`, or `scalar` for rank 0"
            )
        })
    };
    check_shape(inner.split(['x', ',']).map(dimension).collect::<Result<_, _>>()?)
}

/// Parses `4,8`, `[4, 8]`, one number, or nothing.
pub fn integers(text: &str) -> Result<Vec<i64>, String> {
    let inner = text.trim();
    let inner = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(inner).trim();
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    let integer =
        |item: &str| item.trim().parse().map_err(|_| format!("`{}` is not an integer", item.trim()));
    inner.split(',').map(integer).collect()
}

pub(crate) fn check_shape(dims: Vec<i64>) -> Result<Vec<i64>, String> {
    if dims.len() > MAX_RANK {
        return Err(format!("{} dimensions exceed TensorRT's maximum of {MAX_RANK}", dims.len()));
    }
    match dims.iter().find(|dim| **dim < 0) {
        Some(dim) => Err(format!("a dimension is {dim}, expected at least 0")),
        None => Ok(dims),
    }
}

pub(crate) fn alignment(bytes: u64) -> Result<u64, String> {
    if bytes.is_power_of_two() { Ok(bytes) } else { Err(format!("{bytes} is not a power of two")) }
}

/// Does not check constraints.
pub(crate) fn attribute(ty: AttributeType, given: &RawAttributeValue) -> Result<Value, String> {
    let value = match given {
        RawAttributeValue::Text(text) => typed(ty, text)?,
        RawAttributeValue::Value(value) => coerce(ty, value),
    };
    if !ty.admits(&value) {
        return Err(format!("{value} is not a valid `{}`", ty.name()));
    }
    // Nodes store the type's precision.
    ty.rounded(value.clone()).ok_or_else(|| format!("{value} is out of range for `{}`", ty.name()))
}

fn typed(ty: AttributeType, text: &str) -> Result<Value, String> {
    let is_list = ty.list || ty.element == AttributeElement::Bytes;
    if !is_list {
        return element(ty, text.trim_matches(' '));
    }
    let inner = text.trim();
    if inner.starts_with('[') {
        return json(inner).map(|value| coerce(ty, &value));
    }
    if inner.is_empty() {
        return Ok(Value::Array(Vec::new()));
    }
    let items: Result<Vec<Value>, String> = inner.split(',').map(|item| element(ty, item.trim())).collect();
    items.map(Value::Array)
}

fn element(ty: AttributeType, text: &str) -> Result<Value, String> {
    let unfit = |what: &str| format!("`{text}` is not {what}; the attribute is `{}`", ty.name());
    match ty.element {
        AttributeElement::String => Ok(Value::Str(text.to_owned())),
        AttributeElement::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(unfit("a boolean (`true`, `false`, `1`, `0`)")),
        },
        element if element.is_float() => text.parse().map(Value::Float).map_err(|_| unfit("a number")),
        _ => text.parse().map(Value::Int).map_err(|_| unfit("an integer")),
    }
}

/// Converts integers to floats, 0 and 1 to booleans, as ONNX and TOML.
fn coerce(ty: AttributeType, value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(|item| coerce(ty, item)).collect()),
        #[allow(clippy::cast_precision_loss)] // rounds like a parser
        Value::Int(value) if ty.element.is_float() => Value::Float(*value as f64),
        Value::Int(value @ (0 | 1)) if ty.element == AttributeElement::Bool => Value::Bool(*value == 1),
        other => other.clone(),
    }
}

fn json(text: &str) -> Result<Value, String> {
    let items: Vec<serde_json::Value> =
        serde_json::from_str(text).map_err(|error| format!("invalid JSON list: {error}"))?;
    let item = |item: serde_json::Value| match item {
        serde_json::Value::Bool(value) => Ok(Value::Bool(value)),
        serde_json::Value::String(value) => Ok(Value::Str(value)),
        serde_json::Value::Number(number) => number
            .as_i64()
            .map(Value::Int)
            .or_else(|| number.as_f64().filter(|_| !number.is_u64()).map(Value::Float))
            .ok_or_else(|| format!("{number} exceeds 64 bits")),
        other => Err(format!("`{other}` cannot be an element")),
    };
    items.into_iter().map(item).collect::<Result<_, _>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(name: &str) -> AttributeType {
        AttributeType::from_name(name).unwrap()
    }

    #[test]
    fn shapes_as_people_write_them() {
        for text in ["10x3x32x32", "10,3,32,32", "[10, 3, 32, 32]", " 10 x 3 x 32 x 32 "] {
            assert_eq!(shape(text), Ok(vec![10, 3, 32, 32]), "{text}");
        }
        for text in ["", "scalar", "[]", "[ ]"] {
            assert_eq!(shape(text), Ok(vec![]), "{text}");
        }
        for text in ["10x", "x", "10x-1", "1.5", "[1", "1]", "1x2x3x4x5x6x7x8x9", "99999999999999999999"] {
            assert!(shape(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_as_people_write_them() {
        for text in ["4,-8", "[4, -8]", " 4 , -8 "] {
            assert_eq!(integers(text), Ok(vec![4, -8]), "{text}");
        }
        assert_eq!(integers("7"), Ok(vec![7]));
        assert_eq!(integers("[]"), Ok(vec![]));
        for text in ["4x8", "[4", "4,", "1.5"] {
            assert!(integers(text).is_err(), "{text}");
        }
    }

    #[test]
    fn attributes_are_read_by_their_type() {
        let read = |name: &str, text: &str| attribute(ty(name), &RawAttributeValue::Text(text.to_owned()));
        let ints = |values: &[i64]| Value::Array(values.iter().copied().map(Value::Int).collect());
        assert_eq!(read("i32[]", "1,-1, 2"), Ok(ints(&[1, -1, 2])));
        assert_eq!(read("i32[]", "[1, -1, 2]"), Ok(ints(&[1, -1, 2])));
        assert_eq!(read("i32[]", ""), Ok(ints(&[])));
        assert_eq!(read("bytes", "0,255"), Ok(ints(&[0, 255])));
        assert_eq!(read("f32", "2"), Ok(Value::Float(2.0)));
        assert_eq!(read("f32[]", "[1, 2.5]"), Ok(Value::Array(vec![Value::Float(1.0), Value::Float(2.5)])));
        assert_eq!(read("f16", "0.1"), Ok(Value::Float(0.099_975_585_937_5)));
        assert_eq!(read("f16", "1e6").unwrap_err(), "1000000.0 is out of range for `f16`");
        assert_eq!(read("bool", "1"), Ok(Value::Bool(true)));
        assert_eq!(
            read("bool[]", "[1, false]"),
            Ok(Value::Array(vec![Value::Bool(true), Value::Bool(false)]))
        );
        assert_eq!(read("string", "a,b"), Ok(Value::Str("a,b".to_owned())));
        assert_eq!(
            read("string[]", "a,b"),
            Ok(Value::Array(vec![Value::Str("a".into()), Value::Str("b".into())]))
        );
        assert_eq!(read("i32", "1.5").unwrap_err(), "`1.5` is not an integer; the attribute is `i32`");
        assert_eq!(read("i8", "300").unwrap_err(), "300 is not a valid `i8`");
        assert_eq!(read("i32[]", "[1.5]").unwrap_err(), "[1.5] is not a valid `i32[]`");
        assert!(read("bytes", "256").is_err());
        assert!(read("bool", "yes").is_err());
        assert!(read("i64[]", "[18446744073709551615]").is_err());
        assert!(read("i64[]", "[[1]]").is_err());
    }

    #[test]
    fn pairs_that_are_none_are_refused_together() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let errors = Query::parse(&[
            (Part::Shape, &list(&["x", "=3", "x=a", "y=1", "y=2"])),
            (Part::Values, &list(&["t=1,b"])),
            (Part::Device, &list(&["sms=many"])),
            (Part::Aligned, &list(&["x=3"])),
        ])
        .unwrap_err();
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "expected `NAME=VALUE`, found `--shape x`",
                "expected `NAME=VALUE`, found `--shape =3`",
                "`--shape x=a`: `a` is not a dimension; expected a shape such as `10x3x32x32`, or `scalar` for rank 0",
                "duplicate `--shape y=...`",
                "`--values t=1,b`: `b` is not an integer",
                "`--device sms=many`: `many` is not an integer",
                "`--aligned x=3`: 3 is not a power of two",
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".*", name in 0..19_usize) {
            let _ = shape(&text);
            let ty = AttributeType::all().nth(name).unwrap();
            let _ = attribute(ty, &RawAttributeValue::Text(text));
        }
    }
}
