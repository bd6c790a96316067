use super::{Attribute, AttributeElement, Interval};
use cubinder_expr::value::Value;
use cubinder_expr::{ARRAY_LIMIT, AttributeRange, Extent, Ints};

impl Attribute {
    /// Returns the allowed values. A list has at most [`ARRAY_LIMIT`] elements; floats with a limit are not NaN.
    #[must_use]
    pub fn range(&self) -> AttributeRange {
        let element = if self.one_of.is_empty() {
            single(self)
        } else {
            let values = self.one_of.iter().cloned().map(Extent::Known);
            values.reduce(|all, value| all.join(&value)).unwrap_or(Extent::Any)
        };
        if !self.ty.list && self.ty.element != AttributeElement::Bytes {
            return AttributeRange(element);
        }
        let most = i64::try_from(ARRAY_LIMIT).unwrap_or(i64::MAX);
        let allowed = self.length.unwrap_or(Interval::ANY_SIZE);
        let length = Ints::new(allowed.min.max(0), allowed.max.min(most)).unwrap_or(Ints::exactly(0));
        AttributeRange(Extent::list(element, length))
    }
}

fn single(attribute: &Attribute) -> Extent {
    let element = attribute.ty.element;
    let ends = (attribute.minimum.as_ref(), attribute.maximum.as_ref());
    let integers = match element {
        AttributeElement::Bytes => Some(Interval { min: 0, max: u8::MAX.into() }),
        element => element.integers(),
    };
    if let Some(all) = integers {
        let low = ends.0.and_then(Value::as_int).map_or(all.min, |low| low.max(all.min));
        let high = ends.1.and_then(Value::as_int).map_or(all.max, |high| high.min(all.max));
        return Extent::of_ints(Ints::new(low, high).unwrap_or(Ints {
            low: all.min,
            high: all.max,
            ..Ints::ANY
        }));
    }
    match (element, ends) {
        (AttributeElement::Bool, _) => Extent::Bool,
        (element, (None, None)) if element.is_float() => Extent::Any,
        (element, (low, high)) if element.is_float() => {
            let end = |value: Option<&Value>, or: f64| match value {
                Some(Value::Float(value)) if !value.is_nan() => *value,
                _ => or,
            };
            Extent::Float(end(low, f64::NEG_INFINITY), end(high, f64::INFINITY))
        }
        _ => Extent::Any,
    }
}
