use super::extent::Extent;
use crate::interval::MAX_RANK;
use crate::node::DeviceFact;
use crate::value::Value;

/// Inclusive ranges of attributes, shapes and other facts.
pub trait RangeEnvironment {
    /// Returns an attribute, unless at most [`RangeEnvironment::attribute_range`] is known.
    fn attribute(&self, index: u32) -> Option<&Value>;

    /// An unknown attribute's range; `None` for any value.
    fn attribute_range(&self, _index: u32) -> Option<AttributeRange> {
        None
    }

    /// Returns a rank, unless only [`RangeEnvironment::rank_range`] is known.
    fn rank(&self, tensor: u32) -> Option<usize>;

    /// Returns the range of a rank, by default TensorRT's 0 to 8.
    fn rank_range(&self, _tensor: u32) -> (usize, usize) {
        (0, HIGHEST_RANK)
    }

    /// Returns a dimension's range; `None` for any size.
    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)>;

    /// Returns the range of a device fact.
    fn device(&self, fact: DeviceFact) -> (i64, i64) {
        fact.range()
    }

    /// Returns the range of a shape input's values.
    fn values(&self, _tensor: u32) -> (i64, i64) {
        (i64::MIN, i64::MAX)
    }

    /// Returns the range of a size tensor.
    fn size(&self, _tensor: u32) -> (i64, i64) {
        (0, i64::MAX)
    }

    /// Returns the range of the number of elements; `None` above 64 bits.
    fn numel(&self, _tensor: u32) -> Option<(i64, i64)> {
        None
    }
}

pub(super) const HIGHEST_RANK: usize = MAX_RANK as usize;

/// An attribute's possible values.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeRange(pub Extent);
