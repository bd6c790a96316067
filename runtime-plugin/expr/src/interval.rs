//! Ranges of integers.

use serde::{Deserialize, Serialize};

/// A range of integers, inclusive at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// Minimum.
    pub min: i64,
    /// Maximum.
    pub max: i64,
}

impl Interval {
    /// All sizes, lengths and counts.
    pub const ANY_SIZE: Interval = Interval { min: 0, max: i64::MAX };

    /// Returns whether `value` is in the interval.
    #[must_use]
    pub const fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }
}

impl std::fmt::Display for Interval {
    /// Formats as in manifests: `1..=8`, `1..`, `4`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (min, i64::MAX) => write!(f, "{min}.."),
            (min, max) if min == max => write!(f, "{min}"),
            (min, max) => write!(f, "{min}..={max}"),
        }
    }
}

/// TensorRT's maximum rank (`nvinfer1::Dims::MAX_DIMS`, `NvInferRuntimeBase.h`, TensorRT-RTX 1.7).
pub const MAX_RANK: u8 = 8;
