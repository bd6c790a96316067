//! Ranges of integers.

use serde::{Deserialize, Serialize};

/// Integers from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// The least.
    pub min: i64,
    /// The greatest.
    pub max: i64,
}

impl Interval {
    /// What a dimension, a length or a number of elements can be at all.
    pub const ANY_SIZE: Interval = Interval { min: 0, max: i64::MAX };

    /// Whether `value` is among them.
    #[must_use]
    pub const fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }
}

impl std::fmt::Display for Interval {
    /// As manifests write it: `1..=8`, `1..`, `4`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (min, i64::MAX) => write!(f, "{min}.."),
            (min, max) if min == max => write!(f, "{min}"),
            (min, max) => write!(f, "{min}..={max}"),
        }
    }
}

/// TensorRT's highest rank (`nvinfer1::Dims::MAX_DIMS`, `NvInferRuntimeBase.h`, TensorRT-RTX 1.7).
pub const MAX_RANK: u8 = 8;
