//! Which values an attribute may have.
//!
//! Owns membership alone: what of it can be said in ranges is [`super::frame`]'s, which values are worth a try [`super::values`]'s.

use std::cmp::Ordering;

use crate::model::{Attribute, AttributeElement};
use crate::value::Value;

/// Whether an attribute can have `value`: its type, length, limits and `one_of`. A number that is not one is within no limits.
pub(super) fn allows(attribute: &Attribute, value: &Value) -> bool {
    let single = |value: &Value| allows_single(attribute, value);
    attribute.ty.admits(value)
        && attribute.length.is_none_or(|allowed| length(value).is_none_or(|length| allowed.contains(length)))
        && match value {
            Value::Array(items) => items.iter().all(single),
            value => single(value),
        }
}

/// What `length` counts: elements, or bytes of UTF-8.
fn length(value: &Value) -> Option<i64> {
    match value {
        Value::Array(items) => i64::try_from(items.len()).ok(),
        Value::Str(text) => i64::try_from(text.len()).ok(),
        _ => None,
    }
}

fn allows_single(attribute: &Attribute, value: &Value) -> bool {
    let at_least = |low: &Value| matches!(compare(low, value), Some(Ordering::Less | Ordering::Equal));
    let at_most = |high: &Value| matches!(compare(value, high), Some(Ordering::Less | Ordering::Equal));
    attribute.minimum.as_ref().is_none_or(at_least)
        && attribute.maximum.as_ref().is_none_or(at_most)
        && (attribute.one_of.is_empty() || attribute.one_of.contains(value))
        && holds_exactly(attribute.ty.element, value)
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        _ => None,
    }
}

/// Whether a float is one that its type has. A float of half precision has 11 bits and an exponent from -14 to 15; its subnormal
/// numbers are left out, which makes the cases that are tried fewer and nothing else.
fn holds_exactly(element: AttributeElement, value: &Value) -> bool {
    let Value::Float(value) = *value else { return true };
    let single = value as f32;
    match element {
        AttributeElement::F32 => f64::from(single) == value || value.is_nan(),
        AttributeElement::F16 => {
            let half = single == 0.0 || (single.to_bits().trailing_zeros() >= 13 && in_half(single.abs()));
            f64::from(single) == value && half
        }
        _ => true,
    }
}

fn in_half(value: f32) -> bool {
    (6.103_515_6e-5..=65_504.0).contains(&value) || value.is_infinite()
}
