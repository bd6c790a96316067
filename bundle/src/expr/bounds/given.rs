//! What is known before anything is assumed.

use super::extent::Extent;
use super::ints::Ints;
use crate::expr::node::DeviceFact;
use crate::expr::ops::ARRAY_LIMIT;
use crate::model::{Attribute, AttributeElement, Interval};
use crate::value::Value;

/// What is known about attributes and shapes.
pub trait RangeEnvironment {
    /// The value of an attribute; none where it can be anything that [`RangeEnvironment::attribute_range`] allows.
    fn attribute(&self, index: u32) -> Option<&Value>;

    /// What an attribute can be whose value is not known; none where it can be anything.
    fn attribute_range(&self, index: u32) -> Option<AttributeRange> {
        let _ = index;
        None
    }

    /// The rank of a tensor; none where it can be what [`RangeEnvironment::rank_range`] allows.
    fn rank(&self, tensor: u32) -> Option<usize>;

    /// The lowest and the highest rank that a tensor can have where its rank is not known; 0 to 8, TensorRT's highest, if nothing
    /// else is said.
    fn rank_range(&self, tensor: u32) -> (usize, usize) {
        let _ = tensor;
        (0, HIGHEST_RANK)
    }

    /// The least and the greatest size that a dimension can have; none where it can be anything from 0.
    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)>;

    /// The least and the greatest that a fact about the device can be.
    fn device(&self, fact: DeviceFact) -> (i64, i64) {
        fact.range()
    }

    /// The least and the greatest that each value of a shape input can be.
    fn values(&self, tensor: u32) -> (i64, i64) {
        let _ = tensor;
        (i64::MIN, i64::MAX)
    }

    /// The least and the greatest that a size tensor can hold.
    fn size(&self, tensor: u32) -> (i64, i64) {
        let _ = tensor;
        (0, i64::MAX)
    }

    /// The least and the greatest number of elements of a tensor; none where nothing is known, not even that it fits 64 bits.
    fn numel(&self, tensor: u32) -> Option<(i64, i64)> {
        let _ = tensor;
        None
    }
}

/// TensorRT's highest rank.
pub(super) const HIGHEST_RANK: usize = crate::model::MAX_RANK as usize;

/// What an attribute can be.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeRange(pub(crate) Extent);

impl AttributeRange {
    /// What a manifest says of an attribute. Lists are no longer than [`ARRAY_LIMIT`], floats that have a limit are numbers.
    #[must_use]
    pub fn of(attribute: &Attribute) -> AttributeRange {
        let element = if attribute.one_of.is_empty() {
            single(attribute)
        } else {
            let values = attribute.one_of.iter().cloned().map(Extent::Known);
            values.reduce(|all, value| all.join(&value)).unwrap_or(Extent::Any)
        };
        if !attribute.ty.list && attribute.ty.element != AttributeElement::Bytes {
            return AttributeRange(element);
        }
        let most = i64::try_from(ARRAY_LIMIT).unwrap_or(i64::MAX);
        let allowed = attribute.length.unwrap_or(Interval::ANY_SIZE);
        let length = Ints::new(allowed.min.max(0), allowed.max.min(most)).unwrap_or(Ints::one(0));
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
