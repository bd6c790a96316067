//! What is known before anything is assumed.

use super::extent::Extent;
use crate::interval::MAX_RANK;
use crate::node::DeviceFact;
use crate::value::Value;

/// What is known about attributes and shapes.
pub trait RangeEnvironment {
    /// The value of an attribute, or `None` if [`RangeEnvironment::attribute_range`] limits it.
    fn attribute(&self, index: u32) -> Option<&Value>;

    /// What an attribute can be whose value is not known; none where it can be anything.
    fn attribute_range(&self, _index: u32) -> Option<AttributeRange> {
        None
    }

    /// The rank of a tensor; none where it can be what [`RangeEnvironment::rank_range`] allows.
    fn rank(&self, tensor: u32) -> Option<usize>;

    /// The lowest and the highest rank that a tensor can have where its rank is not known; 0 to 8, TensorRT's highest, if nothing
    /// else is said.
    fn rank_range(&self, _tensor: u32) -> (usize, usize) {
        (0, HIGHEST_RANK)
    }

    /// The least and the greatest size that a dimension can have; none where it can be anything from 0.
    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)>;

    /// The least and the greatest that a fact about the device can be.
    fn device(&self, fact: DeviceFact) -> (i64, i64) {
        fact.range()
    }

    /// The least and the greatest that each value of a shape input can be.
    fn values(&self, _tensor: u32) -> (i64, i64) {
        (i64::MIN, i64::MAX)
    }

    /// The least and the greatest that a size tensor can hold.
    fn size(&self, _tensor: u32) -> (i64, i64) {
        (0, i64::MAX)
    }

    /// The least and the greatest number of elements of a tensor; none where nothing is known, not even that it fits 64 bits.
    fn numel(&self, _tensor: u32) -> Option<(i64, i64)> {
        None
    }
}

/// TensorRT's highest rank.
pub(super) const HIGHEST_RANK: usize = MAX_RANK as usize;

/// What an attribute can be.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeRange(pub Extent);
