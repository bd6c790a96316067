//! Values of attributes and expressions.

use serde::{Deserialize, Deserializer, Serialize};

/// A value. Deserialized arrays are flat: nested ones would recurse without limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// 64-bit signed integer.
    Int(i64),
    /// Double.
    Float(f64),
    /// Boolean.
    Bool(bool),
    /// String.
    Str(String),
    /// An array of elements of the same kind.
    Array(#[serde(deserialize_with = "read_flat")] Vec<Value>),
}

#[derive(Deserialize)]
enum Element {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
}

fn read_flat<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    let items = Vec::<Element>::deserialize(deserializer)?;
    Ok(items.into_iter().map(Value::from).collect())
}

impl From<Element> for Value {
    fn from(element: Element) -> Value {
        match element {
            Element::Int(value) => Value::Int(value),
            Element::Float(value) => Value::Float(value),
            Element::Bool(value) => Value::Bool(value),
            Element::Str(value) => Value::Str(value),
        }
    }
}

impl Value {
    pub(super) fn of_ints(items: &[i64]) -> Value {
        Value::Array(items.iter().copied().map(Value::Int).collect())
    }

    pub(super) fn nodes(&self, limit: usize) -> usize {
        self.size(limit, usize::MAX)
    }

    /// Returns the cost of a copy, up to `limit`: one per element or 16 bytes of text.
    pub(super) fn cost(&self, limit: usize) -> usize {
        self.size(limit, 16)
    }

    #[inline]
    fn size(&self, limit: usize, text_bytes: usize) -> usize {
        match self {
            Value::Array(items) if items.len() > limit => items.len(),
            Value::Array(items) => {
                items.iter().fold(1, |total: usize, item| total.saturating_add(item.size(limit, text_bytes)))
            }
            Value::Str(text) => 1 + text.len() / text_bytes,
            _ => 1,
        }
    }

    /// Returns the kind's name in errors.
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

    /// Returns the integer, if it is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the elements of an integer array.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_it_was_written() {
        let items = [Value::Int(-3), Value::Float(0.5), Value::Bool(true), Value::Str("wrap".to_owned())];
        for value in items.iter().cloned().chain([Value::Array(items.to_vec())]) {
            let bytes = postcard::to_allocvec(&value).unwrap();
            assert_eq!(postcard::from_bytes::<Value>(&bytes).unwrap(), value);
        }
    }

    #[test]
    fn arrays_in_arrays_are_refused_however_deep() {
        // Tag 4 is an array, here of one element each.
        let bytes: Vec<u8> = [4, 1].repeat(1_000_000);
        assert!(postcard::from_bytes::<Value>(&bytes).is_err());
        let nested = Value::Array(vec![Value::Array(vec![])]);
        assert!(postcard::from_bytes::<Value>(&postcard::to_allocvec(&nested).unwrap()).is_err());
    }
}
