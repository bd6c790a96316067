//! Constraints of attributes' values: type, manifest's rules. Never changes a value.

use std::fmt;

use crate::float;
use crate::model::{Attribute, AttributeElement, AttributeType, Interval};
use cubinder_expr::value::Value;

/// An invalid value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstraintError {
    /// Attribute.
    pub attribute: String,
    /// Index of the invalid element, if in a list.
    pub element: Option<usize>,
    /// The invalid element or value.
    pub value: Value,
    /// Violated rule.
    pub rule: Rule,
}

/// A rule about an attribute's value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rule {
    /// The value has this type.
    #[error("expected `{}`", .0.name())]
    Type(AttributeType),
    /// The type represents the float exactly; the number is the nearest represented.
    #[error("{}", inexact(*.0, *.1))]
    Exact(AttributeType, Option<f64>),
    /// An allowed number of elements or bytes.
    #[error("expected {allowed} {unit}")]
    Length {
        /// The value's length.
        found: usize,
        /// Allowed lengths.
        allowed: Interval,
        /// `elements` or `bytes`.
        unit: &'static str,
    },
    /// Minimum.
    #[error("the minimum is `{0}`")]
    Minimum(Value),
    /// Maximum.
    #[error("the maximum is `{0}`")]
    Maximum(Value),
    /// Allowed values.
    #[error("expected one of {}", listed(.0))]
    OneOf(Vec<Value>),
}

const SHOWN_CHARACTERS: usize = 120;
const SHOWN_VALUES: usize = 16;

impl fmt::Display for ConstraintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attribute `{}", self.attribute)?;
        if let Some(index) = self.element {
            write!(f, "[{index}]")?;
        }
        match &self.rule {
            Rule::Length { found, allowed, unit } => {
                let unit = if *unit == "bytes" { " in bytes" } else { "" };
                write!(f, "` has length {found}{unit}, expected {allowed}")
            }
            rule => write!(f, "` is `{}`, {rule}", shown(&self.value)),
        }
    }
}

impl std::error::Error for ConstraintError {}

fn inexact(ty: AttributeType, nearest: Option<f64>) -> String {
    match nearest {
        Some(nearest) => {
            format!("which `{}` cannot represent exactly; the nearest value is `{nearest:?}`", ty.name())
        }
        None => format!("which exceeds the range of `{}`", ty.name()),
    }
}

fn listed(allowed: &[Value]) -> String {
    let values: Vec<String> =
        allowed.iter().take(SHOWN_VALUES).map(|value| format!("`{}`", shown(value))).collect();
    let more = match allowed.len().checked_sub(SHOWN_VALUES) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    values.join(", ") + &more
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

impl AttributeElement {
    /// Returns the nearest float, ties to even; `None` if infinite or without its fraction.
    #[must_use]
    pub fn rounded(self, value: f64) -> Option<f64> {
        match self {
            AttributeElement::F16 => float::round_to_f16(value),
            AttributeElement::F32 => float::round_to_f32(value),
            _ => Some(value),
        }
    }
}

impl AttributeType {
    /// Returns `value` with floats rounded to the type; `None` if one does not fit. ONNX stores 0.1 in 32 bits, also
    /// for half precision.
    #[must_use]
    pub fn rounded(self, value: Value) -> Option<Value> {
        match value {
            Value::Float(value) => self.element.rounded(value).map(Value::Float),
            Value::Array(items) => {
                items.into_iter().map(|item| self.rounded(item)).collect::<Option<_>>().map(Value::Array)
            }
            other => Some(other),
        }
    }
}

impl Attribute {
    /// Checks `value`; fails with the first violated rule.
    pub fn check(&self, value: &Value) -> Result<(), ConstraintError> {
        let broken = |rule| ConstraintError {
            attribute: self.name.clone(),
            element: None,
            value: value.clone(),
            rule,
        };
        if !self.ty.admits(value) {
            return Err(match self.first_refused(value) {
                Some((index, item)) => ConstraintError {
                    element: Some(index),
                    value: item.clone(),
                    ..broken(Rule::Type(AttributeType { list: false, ..self.ty }))
                },
                None => broken(Rule::Type(self.ty)),
            });
        }
        if let Some((found, unit)) = self.measure(value)
            && let Some(allowed) = self.length
            && !i64::try_from(found).is_ok_and(|found| allowed.contains(found))
        {
            return Err(broken(Rule::Length { found, allowed, unit }));
        }
        let elements = match value {
            Value::Array(items) if self.ty.list => items.as_slice(),
            _ if self.ty.element == AttributeElement::Bytes => &[],
            value => std::slice::from_ref(value),
        };
        for (index, element) in elements.iter().enumerate() {
            self.check_element(element).map_err(|rule| ConstraintError {
                element: self.ty.list.then_some(index),
                value: element.clone(),
                ..broken(rule)
            })?;
        }
        Ok(())
    }

    fn first_refused<'v>(&self, value: &'v Value) -> Option<(usize, &'v Value)> {
        let single = AttributeType { list: false, ..self.ty };
        match value {
            Value::Array(items) if self.ty.list => {
                items.iter().enumerate().find(|(_, item)| !single.admits(item))
            }
            _ => None,
        }
    }

    fn measure(&self, value: &Value) -> Option<(usize, &'static str)> {
        match value {
            Value::Array(items) if self.ty.list => Some((items.len(), "elements")),
            Value::Array(items) => Some((items.len(), "bytes")),
            Value::Str(text) => Some((text.len(), "bytes")),
            _ => None,
        }
    }

    fn check_element(&self, value: &Value) -> Result<(), Rule> {
        if let Value::Float(float) = value {
            let rounded = self.ty.element.rounded(*float);
            if !rounded.is_some_and(|rounded| rounded.to_bits() == float.to_bits() || float.is_nan()) {
                return Err(Rule::Exact(self.ty, rounded));
            }
        }
        match (&self.minimum, &self.maximum) {
            (Some(least), _) if !at_least(value, least) => Err(Rule::Minimum(least.clone())),
            (_, Some(most)) if !at_least(most, value) => Err(Rule::Maximum(most.clone())),
            _ if !self.one_of.is_empty() && !self.one_of.contains(value) => {
                Err(Rule::OneOf(self.one_of.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Checks that rules suit the type, and some value and the default satisfy them.
    pub fn check_rules(&self) -> Result<(), String> {
        let name = &self.name;
        let element = self.ty.element;
        if let Some(length) = self.length {
            let is_measured =
                self.ty.list || matches!(element, AttributeElement::String | AttributeElement::Bytes);
            if !is_measured {
                return Err(format!("attribute `{name}` has a length, but `{}` has none", self.ty.name()));
            }
            if length.min < 0 || length.min > length.max {
                return Err(format!("attribute `{name}` cannot have a length of {length}"));
            }
        }
        let single = AttributeType { element, list: false };
        let is_number = element.integers().is_some() || element.is_float();
        for (which, bound) in [("least", &self.minimum), ("greatest", &self.maximum)] {
            let Some(bound) = bound else { continue };
            if !is_number || !single.admits(bound) || !is_held(element, bound) {
                return Err(format!(
                    "the {which} value of attribute `{name}` is `{bound}`, which is not a number of its type `{}`",
                    single.name()
                ));
            }
        }
        if let (Some(least), Some(most)) = (&self.minimum, &self.maximum)
            && !at_least(most, least)
        {
            return Err(format!("attribute `{name}` must be at least `{least}` and at most `{most}`"));
        }
        let unruled = Attribute { one_of: Vec::new(), length: None, ty: single, ..self.clone() };
        for (index, value) in self.one_of.iter().enumerate() {
            if element == AttributeElement::Bytes || self.one_of[..index].contains(value) {
                return Err(format!("`{value}` is invalid or duplicate in the values of attribute `{name}`"));
            }
            unruled.check(value).map_err(|error| format!("in the values: {error}"))?;
        }
        match &self.default {
            Some(default) => self.check(default).map_err(|error| format!("the default: {error}")),
            None => Ok(()),
        }
    }
}

fn is_held(element: AttributeElement, value: &Value) -> bool {
    match value {
        Value::Float(value) => {
            value.is_finite() && element.rounded(*value).is_some_and(|held| held.to_bits() == value.to_bits())
        }
        _ => true,
    }
}

/// Compares; false for NaN and different kinds.
fn at_least(value: &Value, least: &Value) -> bool {
    match (value, least) {
        (Value::Int(value), Value::Int(least)) => value >= least,
        (Value::Float(value), Value::Float(least)) => value >= least,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(element: AttributeElement, list: bool) -> Attribute {
        Attribute::new("a", AttributeType { element, list })
    }

    fn ints(values: &[i64]) -> Value {
        Value::Array(values.iter().copied().map(Value::Int).collect())
    }

    fn text(value: &str) -> Value {
        Value::Str(value.to_owned())
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let int = attribute(AttributeElement::I8, false);
        let ranged = Attribute { minimum: Some(Value::Int(1)), maximum: Some(Value::Int(9)), ..int.clone() };
        let list = Attribute {
            length: Some(Interval { min: 2, max: 4 }),
            minimum: Some(Value::Int(0)),
            ..attribute(AttributeElement::I32, true)
        };
        let mode = Attribute {
            one_of: vec![text("wrap"), text("edge")],
            ..attribute(AttributeElement::String, false)
        };
        let half = attribute(AttributeElement::F16, false);
        let named = Attribute { length: Some(Interval { min: 1, max: 1 }), ..mode.clone() };
        let exact = Attribute {
            length: Some(Interval { min: 16, max: 16 }),
            ..attribute(AttributeElement::Bytes, false)
        };
        let positive =
            Attribute { minimum: Some(Value::Float(0.5)), ..attribute(AttributeElement::F32, false) };
        let cases = [
            (&int, Value::Int(300)),
            (&int, ints(&[1])),
            (&ranged, Value::Int(0)),
            (&ranged, Value::Int(10)),
            (&list, ints(&[1])),
            (&list, ints(&[1, 2, 3, 4, 5])),
            (&list, ints(&[1, -2])),
            (&mode, text("wrp")),
            (&named, text("wrap")),
            (&half, Value::Float(0.1)),
            (&half, Value::Float(1e6)),
            (&exact, ints(&[1, 2])),
            (&exact, ints(&[256])),
            (&positive, Value::Float(0.25)),
            (&positive, Value::Float(f64::NAN)),
            (&list, ints(&[0, 1 << 33])),
            (&int, ints(&[1 << 33; 100])),
        ];
        let errors: Vec<String> =
            cases.iter().map(|(a, value)| a.check(value).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn what_keeps_the_rules_is_taken() {
        let list = Attribute {
            length: Some(Interval { min: 0, max: 2 }),
            minimum: Some(Value::Int(-3)),
            maximum: Some(Value::Int(3)),
            one_of: vec![Value::Int(-3), Value::Int(3)],
            default: Some(ints(&[3, -3])),
            ..attribute(AttributeElement::I16, true)
        };
        assert_eq!(list.check_rules(), Ok(()));
        for value in [ints(&[]), ints(&[3]), ints(&[-3, 3])] {
            assert_eq!(list.check(&value), Ok(()));
        }
        let half = attribute(AttributeElement::F16, true);
        let rounded = half.ty.rounded(Value::Array(vec![Value::Float(0.1), Value::Float(-2.0)])).unwrap();
        assert_eq!(half.check(&rounded), Ok(()));
        assert_eq!(half.ty.rounded(Value::Float(1e6)), None);
        assert_eq!(half.check(&Value::Array(vec![Value::Float(f64::INFINITY)])), Ok(()));
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        let int = attribute(AttributeElement::I8, false);
        let string = attribute(AttributeElement::String, false);
        let half = attribute(AttributeElement::F16, false);
        let some = |value| Some(Value::Int(value));
        let cases = [
            Attribute { length: Some(Interval::ANY_SIZE), ..int.clone() },
            Attribute { length: Some(Interval { min: -1, max: 1 }), ..string.clone() },
            Attribute { length: Some(Interval { min: 2, max: 1 }), ..string.clone() },
            Attribute { minimum: some(200), ..int.clone() },
            Attribute { minimum: Some(Value::Float(0.5)), ..int.clone() },
            Attribute { minimum: some(2), maximum: some(1), ..int.clone() },
            Attribute { maximum: some(1), ..string.clone() },
            Attribute { maximum: some(1), ..attribute(AttributeElement::Bytes, false) },
            Attribute { maximum: Some(Value::Float(0.1)), ..half.clone() },
            Attribute { maximum: Some(Value::Float(f64::NAN)), ..half },
            Attribute { one_of: vec![Value::Int(1), Value::Int(1)], ..int.clone() },
            Attribute { one_of: vec![text("a")], ..int.clone() },
            Attribute { minimum: some(2), one_of: vec![Value::Int(1)], ..int.clone() },
            Attribute { one_of: vec![ints(&[1])], ..attribute(AttributeElement::Bytes, false) },
            Attribute { maximum: some(5), default: some(6), ..int.clone() },
            Attribute { default: Some(text("x")), ..int },
        ];
        let errors: Vec<String> = cases.iter().map(|a| a.check_rules().unwrap_err()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
