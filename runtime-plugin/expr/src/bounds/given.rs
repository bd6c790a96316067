//! Ranges that are known without assumptions.

use super::extent::Extent;
use crate::interval::MAX_RANK;
use crate::node::DeviceFact;
use crate::value::Value;

/// Ranges of attributes, shapes and other facts; minimum and maximum are inclusive.
pub trait RangeEnvironment {
    /// Returns an attribute's value; `None` if only [`RangeEnvironment::attribute_range`] is known.
    fn attribute(&self, index: u32) -> Option<&Value>;

    /// Returns an unknown attribute's range; `None` for any value.
    fn attribute_range(&self, _index: u32) -> Option<AttributeRange> {
        None
    }

    /// Returns a tensor's rank; `None` if only [`RangeEnvironment::rank_range`] is known.
    fn rank(&self, tensor: u32) -> Option<usize>;

    /// Returns the range of an unknown rank, by default TensorRT's 0 to 8.
    fn rank_range(&self, _tensor: u32) -> (usize, usize) {
        (0, HIGHEST_RANK)
    }

    /// Returns the range of a dimension; `None` for any size.
    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)>;

    /// Returns the range of a device's fact.
    fn device(&self, fact: DeviceFact) -> (i64, i64) {
        fact.range()
    }

    /// Returns the range of each value of a shape input.
    fn values(&self, _tensor: u32) -> (i64, i64) {
        (i64::MIN, i64::MAX)
    }

    /// Returns the range of a size tensor.
    fn size(&self, _tensor: u32) -> (i64, i64) {
        (0, i64::MAX)
    }

    /// Returns the range of a tensor's number of elements; `None` if it may exceed 64 bits.
    fn numel(&self, _tensor: u32) -> Option<(i64, i64)> {
        None
    }
}

pub(super) const HIGHEST_RANK: usize = MAX_RANK as usize;

/// The values that an attribute can have.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeRange(pub Extent);
