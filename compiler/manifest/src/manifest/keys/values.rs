use std::ops::Range;

use cubinder_expr::Value;
use cubinder_model::{AttributeElement, AttributeType};
use toml::de::DeValue;

use super::*;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeMismatch {
    pub(super) range: Range<usize>,
    pub(super) label: String,
}

/// Rounds floats; accepts integers for floats, strings for bytes. Reports all mistyped elements.
pub(super) fn convert(entry: &Entry<'_>, ty: AttributeType) -> Result<Value, Vec<TypeMismatch>> {
    let mismatch = |label: String| vec![TypeMismatch { range: entry.range.clone(), label }];
    if ty.element == AttributeElement::Bytes
        && let DeValue::String(text) = entry.value
    {
        return Ok(Value::Array(text.bytes().map(|byte| Value::Int(byte.into())).collect()));
    }
    if !ty.list && ty.element != AttributeElement::Bytes {
        return scalar(entry.value, ty.element)
            .map_err(|why| mismatch(format!("found {}{why}", entry.found())));
    }
    let Some(items) = entry.items() else {
        let expected = if ty.list { "an array" } else { "a string or an array of integers from 0 to 255" };
        return Err(mismatch(format!("found {}, expected {expected}", entry.found())));
    };
    let mut values = Vec::with_capacity(items.len());
    let mut mismatches = Vec::new();
    for item in &items {
        match scalar(item.value, ty.element) {
            Ok(value) => values.push(value),
            Err(why) => {
                let label = format!("found {}{why}", item.found());
                mismatches.push(TypeMismatch { range: item.range.clone(), label });
            }
        }
    }
    if mismatches.is_empty() { Ok(Value::Array(values)) } else { Err(mismatches) }
}

/// Returns a string's text that, unquoted, would be a `ty`.
pub(super) fn unquoted<'e>(entry: &'e Entry<'_>, ty: AttributeType) -> Option<&'e str> {
    let DeValue::String(text) = entry.value else { return None };
    let value = DeValue::parse(text).ok().filter(|_| !ty.list)?;
    scalar(value.get_ref(), ty.element).is_ok().then_some(text.as_ref())
}

/// Errors continue a sentence about the value.
fn scalar(value: &DeValue<'_>, element: AttributeElement) -> Result<Value, String> {
    match (value, element) {
        (DeValue::String(text), AttributeElement::String) => Ok(Value::Str(text.clone().into_owned())),
        (DeValue::Boolean(value), AttributeElement::Bool) => Ok(Value::Bool(*value)),
        (DeValue::Integer(integer), element) => {
            let read = i64::from_str_radix(integer.as_str(), integer.radix());
            let value = read.map_err(|_| ", which does not fit in 64 bits".to_owned())?;
            number(Value::Int(value), element)
        }
        (DeValue::Float(float), element) => {
            let value = float.as_str().replace('_', "").parse::<f64>().ok();
            match value.filter(|value| value.is_finite()) {
                Some(value) => number(Value::Float(value), element),
                None => Err(", which is not finite".to_owned()),
            }
        }
        _ => Err(String::new()),
    }
}

/// Errors are those of [`scalar`].
pub(super) fn number(value: Value, element: AttributeElement) -> Result<Value, String> {
    let name = AttributeType { element, list: false }.name();
    match (value, element) {
        (Value::Int(value), AttributeElement::Bytes) if (0..=255).contains(&value) => Ok(Value::Int(value)),
        (Value::Int(_), AttributeElement::Bytes) => Err(", which is not a byte".to_owned()),
        (Value::Int(value), element) if element.is_float() => exact(value, element)
            .map(Value::Float)
            .ok_or_else(|| format!(", which `{name}` cannot represent exactly")),
        (Value::Int(value), element) => match element.integers() {
            Some(range) if range.contains(value) => Ok(Value::Int(value)),
            Some(range) => Err(format!(", but `{name}` ranges from {} to {}", range.min, range.max)),
            None => Err(String::new()),
        },
        (Value::Float(value), element) if element.is_float() => element
            .rounded(value)
            .map(Value::Float)
            .ok_or_else(|| format!(", which is too large for `{name}`")),
        _ => Err(String::new()),
    }
}

fn exact(value: i64, element: AttributeElement) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    let (float, back) = (value as f64, |float: f64| float as i128);
    element.rounded(float).filter(|rounded| back(*rounded) == i128::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stand_for_floats_that_are_exactly_them() {
        assert_eq!(number(Value::Int(2048), AttributeElement::F16), Ok(Value::Float(2048.0)));
        assert!(number(Value::Int(2049), AttributeElement::F16).is_err());
        assert!(number(Value::Int((1 << 24) + 1), AttributeElement::F32).is_err());
        assert!(number(Value::Int(i64::MAX), AttributeElement::F64).is_err());
        assert_eq!(
            number(Value::Int(i64::MIN), AttributeElement::F64),
            Ok(Value::Float(-9_223_372_036_854_775_808.0))
        );
    }
}
