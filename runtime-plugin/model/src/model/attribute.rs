//! The attributes of a node: what they hold and what they may be.

use serde::{Deserialize, Serialize};

use super::Interval;
use cubinder_expr::Kind;
use cubinder_expr::value::Value;

/// An attribute of an ONNX node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// The attribute's name.
    pub name: String,
    /// What it holds.
    pub ty: AttributeType,
    /// What it is where the node does not say; a node that lacks an attribute without a default is refused.
    pub default: Option<Value>,
    /// How many elements a list or `bytes` may have, or how many bytes of UTF-8 a string.
    pub length: Option<Interval>,
    /// The least number, of a list: of each element. An integer for integers, a float for floats.
    pub minimum: Option<Value>,
    /// The greatest number, likewise.
    pub maximum: Option<Value>,
    /// The only values, of a list: of each element. Empty: any.
    pub one_of: Vec<Value>,
    /// One sentence for people.
    pub doc: String,
}

impl Attribute {
    /// An attribute without default and constraints.
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

/// The type of an attribute: one value or a list of them.
///
/// What TensorRT's ONNX parser can carry of it is another matter: see the compiler's rule about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttributeType {
    /// What one value is.
    pub element: AttributeElement,
    /// Whether it is a list of them; never of [`AttributeElement::Bytes`].
    pub list: bool,
}

/// What one value of an attribute is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AttributeElement {
    /// `i8`: an integer within 8 bits.
    I8,
    /// `i16`: an integer within 16 bits.
    I16,
    /// `i32`: an integer within 32 bits.
    I32,
    /// `i64`: an integer.
    I64,
    /// `f16`: a float that half precision holds exactly.
    F16,
    /// `f32`: a float that single precision holds exactly.
    F32,
    /// `f64`: a float.
    F64,
    /// `bool`: true or false; in ONNX an integer that is 0 or 1.
    Bool,
    /// `string`: text.
    String,
    /// `bytes`: bytes of any value; in expressions an array of integers from 0 to 255.
    Bytes,
}

impl AttributeElement {
    /// Every element type, in the order in which errors list them.
    pub const ALL: [AttributeElement; 10] = {
        use AttributeElement as E;
        [E::I8, E::I16, E::I32, E::I64, E::F16, E::F32, E::F64, E::Bool, E::String, E::Bytes]
    };

    /// Whether it is an integer, and which ones it can be.
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

    /// Whether it is a float.
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

    /// Every attribute type, in the order in which errors list them: single values, then lists.
    pub fn all() -> impl Iterator<Item = AttributeType> {
        let single = AttributeElement::ALL.into_iter().map(|element| AttributeType { element, list: false });
        let lists = AttributeElement::ALL
            .into_iter()
            .filter(|element| *element != AttributeElement::Bytes)
            .map(|element| AttributeType { element, list: true });
        single.chain(lists)
    }

    /// The name used in manifests.
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

    /// The kind of the ONNX node's attribute, as ONNX names it (`AttributeProto.AttributeType`).
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

    /// What it is in expressions.
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

    /// The type with this manifest name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<AttributeType> {
        Self::all().find(|ty| ty.name() == name)
    }

    /// Whether `value` is of this type.
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
    /// Whether `value` is one of these; floats are not held against the precision, which rounding gives them.
    fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (AttributeElement::Bool, Value::Bool(_)) | (AttributeElement::String, Value::Str(_)) => true,
            (element, Value::Float(_)) => element.is_float(),
            (element, Value::Int(value)) => element.integers().is_some_and(|range| range.contains(*value)),
            _ => false,
        }
    }
}
