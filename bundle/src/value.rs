//! The values that attributes hold and that expressions compute.

use serde::{Deserialize, Serialize};

/// A value of the expression language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// A 64-bit signed integer: all integer arithmetic is in `i64`, checked.
    Int(i64),
    /// A double.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text, from a string attribute.
    Str(String),
    /// An array; every element has the same kind.
    Array(Vec<Value>),
}

impl Value {
    /// The kind's name, as errors say it.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Value::Int(_) => "integer",
            Value::Float(_) => "float",
            Value::Bool(_) => "boolean",
            Value::Str(_) => "string",
            Value::Array(_) => "array",
        }
    }

    /// The integer, if it is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The integers of an array of integers.
    #[must_use]
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        match self {
            Value::Array(items) => items.iter().map(Value::as_int).collect(),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Str(value) => write!(f, "{value:?}"),
            Value::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
        }
    }
}
