use serde::{Deserialize, Serialize};

use super::Interval;
use cubinder_expr::Kind;
use cubinder_expr::value::Value;

/// An attribute of an ONNX node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: AttributeType,
    /// Default; otherwise it is required.
    pub default: Option<Value>,
    /// Limits of the elements, or of a string's UTF-8 bytes.
    pub length: Option<Interval>,
    /// Minimum of each element.
    pub minimum: Option<Value>,
    /// Maximum of each element.
    pub maximum: Option<Value>,
    /// Allowed values of each element; empty: any.
    pub one_of: Vec<Value>,
    /// Description in one sentence.
    pub doc: String,
}

impl Attribute {
    /// Creates an attribute without constraints.
    #[must_use]
    pub fn new(name: impl Into<String>, ty: AttributeType) -> Attribute {
        Attribute {
            name: name.into(),
            ty,
            default: None,
            length: None,
            minimum: None,
            maximum: None,
            one_of: Vec::new(),
            doc: String::new(),
        }
    }
}

/// The type of an attribute: one value or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttributeType {
    /// Type of one value.
    pub element: AttributeElement,
    /// Whether it is a list.
    pub list: bool,
}

/// Type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AttributeElement {
    /// `i8`: an 8-bit integer.
    I8,
    /// `i16`: a 16-bit integer.
    I16,
    /// `i32`: a 32-bit integer.
    I32,
    /// `i64`: a 64-bit integer.
    I64,
    /// `f16`: a float exact in half precision.
    F16,
    /// `f32`: a float exact in single precision.
    F32,
    /// `f64`: a float.
    F64,
    /// `bool`; in ONNX 1 or 0.
    Bool,
    /// `string`: text.
    String,
    /// `bytes`: in expressions integers from 0 to 255.
    Bytes,
}

impl AttributeElement {
    /// All element types, in messages' order.
    pub const ALL: [AttributeElement; 10] = {
        use AttributeElement as E;
        [E::I8, E::I16, E::I32, E::I64, E::F16, E::F32, E::F64, E::Bool, E::String, E::Bytes]
    };

    /// Returns the range of an integer type.
    #[must_use]
    pub const fn integers(self) -> Option<Interval> {
        match self {
            AttributeElement::I8 => Some(Interval { min: i8::MIN as i64, max: i8::MAX as i64 }),
            AttributeElement::I16 => Some(Interval { min: i16::MIN as i64, max: i16::MAX as i64 }),
            AttributeElement::I32 => Some(Interval { min: i32::MIN as i64, max: i32::MAX as i64 }),
            AttributeElement::I64 => Some(Interval { min: i64::MIN, max: i64::MAX }),
            _ => None,
        }
    }

    /// Returns whether it is a float.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, AttributeElement::F16 | AttributeElement::F32 | AttributeElement::F64)
    }
}

impl AttributeType {
    /// `i32`.
    pub const I32: AttributeType = AttributeType { element: AttributeElement::I32, list: false };
    /// `i32[]`.
    pub const I32_LIST: AttributeType = AttributeType { element: AttributeElement::I32, list: true };

    /// Returns all types, in messages' order.
    pub fn all() -> impl Iterator<Item = AttributeType> {
        let single = AttributeElement::ALL.into_iter().map(|element| AttributeType { element, list: false });
        let lists = AttributeElement::ALL
            .into_iter()
            .filter(|element| *element != AttributeElement::Bytes)
            .map(|element| AttributeType { element, list: true });
        single.chain(lists)
    }

    /// Returns the name in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let [single, list] = match self.element {
            AttributeElement::I8 => ["i8", "i8[]"],
            AttributeElement::I16 => ["i16", "i16[]"],
            AttributeElement::I32 => ["i32", "i32[]"],
            AttributeElement::I64 => ["i64", "i64[]"],
            AttributeElement::F16 => ["f16", "f16[]"],
            AttributeElement::F32 => ["f32", "f32[]"],
            AttributeElement::F64 => ["f64", "f64[]"],
            AttributeElement::Bool => ["bool", "bool[]"],
            AttributeElement::String => ["string", "string[]"],
            AttributeElement::Bytes => ["bytes", "bytes[]"],
        };
        if self.list { list } else { single }
    }

    /// Returns ONNX's name of the kind (`AttributeProto.AttributeType`).
    #[must_use]
    pub const fn onnx_kind(self) -> &'static str {
        match (self.element, self.list) {
            (AttributeElement::F16 | AttributeElement::F32 | AttributeElement::F64, false) => "FLOAT",
            (AttributeElement::F16 | AttributeElement::F32 | AttributeElement::F64, true) => "FLOATS",
            (AttributeElement::Bytes, _) | (AttributeElement::String, false) => "STRING",
            (AttributeElement::String, true) => "STRINGS",
            (_, false) => "INT",
            (_, true) => "INTS",
        }
    }

    /// Returns the kind in expressions.
    #[must_use]
    pub fn kind(self) -> Kind {
        let element = match self.element {
            AttributeElement::Bool => Kind::Bool,
            AttributeElement::String => Kind::Str,
            AttributeElement::Bytes => Kind::ints(),
            element if element.is_float() => Kind::Float,
            _ => Kind::Int,
        };
        if self.list { Kind::Array(Box::new(element)) } else { element }
    }

    /// Parses a name in manifests.
    #[must_use]
    pub fn from_name(name: &str) -> Option<AttributeType> {
        Self::all().find(|ty| ty.name() == name)
    }

    /// Returns whether `value` has this type.
    #[must_use]
    pub fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (AttributeType { element: AttributeElement::Bytes, .. }, Value::Array(items)) => {
                items.iter().all(|item| item.as_int().is_some_and(|byte| u8::try_from(byte).is_ok()))
            }
            (AttributeType { element, list: true }, Value::Array(items)) => {
                items.iter().all(|item| element.admits(item))
            }
            (AttributeType { element, list: false }, value) => element.admits(value),
            _ => false,
        }
    }
}

impl AttributeElement {
    fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (AttributeElement::Bool, Value::Bool(_)) | (AttributeElement::String, Value::Str(_)) => true,
            (element, Value::Float(_)) => element.is_float(),
            (element, Value::Int(value)) => element.integers().is_some_and(|range| range.contains(*value)),
            _ => false,
        }
    }
}
