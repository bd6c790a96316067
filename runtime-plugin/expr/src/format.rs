//! Memory layouts of tensors ([`Format`]) and padded shapes.

use crate::data_type::DataType;

named! {
    /// TensorRT's memory layout (`nvinfer1::TensorFormat`, `NvInferRuntime.h`, TensorRT-RTX 1.7), without those of the
    /// DLA, which runs no plugins.
    #[derive(PartialOrd, Ord, Default)]
    Format, name;
    layout: (i32, i64, usize) {
        /// Row major.
        #[default]
        Linear = "linear", (0, 1, 0);
        /// `[N][C/2][H][W][2]`.
        Chw2 = "chw2", (1, 2, 3);
        /// `[N][C/4][H][W][4]`.
        Chw4 = "chw4", (3, 4, 3);
        /// `[N][C/32][H][W][32]`.
        Chw32 = "chw32", (5, 32, 3);
        /// `[N][H][W][C]`.
        Hwc = "hwc", (8, 1, 3);
        /// `[N][H][W][C]`, channels a multiple of 8.
        Hwc8 = "hwc8", (2, 8, 3);
        /// `[N][H][W][C]`, channels a multiple of 16.
        Hwc16 = "hwc16", (11, 16, 3);
        /// `[N][D][H][W][C]`.
        Dhwc = "dhwc", (12, 1, 4);
        /// `[N][D][H][W][C]`, channels a multiple of 8.
        Dhwc8 = "dhwc8", (6, 8, 4);
        /// `[N][C/32][D][H][W][32]`.
        Cdhw32 = "cdhw32", (7, 32, 4);
    }
}

impl Format {
    /// Returns TensorRT's number.
    #[must_use]
    pub const fn tensorrt(self) -> i32 {
        self.layout().0
    }

    /// Returns the format with TensorRT's number.
    #[must_use]
    pub fn from_tensorrt(number: i32) -> Option<Format> {
        Self::ALL.into_iter().find(|format| format.tensorrt() == number)
    }

    /// Returns the multiple of padded channels; 1 if not padded.
    #[must_use]
    pub const fn vector(self) -> i64 {
        self.layout().1
    }

    /// Returns the channel's dimension from the end (3: third last); 0 if none.
    #[must_use]
    pub const fn channel_from_end(self) -> usize {
        self.layout().2
    }

    /// Returns whether channels of a position are adjacent.
    #[must_use]
    pub const fn is_channels_last(self) -> bool {
        matches!(self, Format::Hwc | Format::Hwc8 | Format::Hwc16 | Format::Dhwc | Format::Dhwc8)
    }

    /// Returns a tensor's minimum rank.
    #[must_use]
    pub const fn min_rank(self) -> usize {
        self.channel_from_end()
    }

    /// Returns whether TensorRT supports the format for `ty` (observed with TensorRT-RTX 1.7; `NvInferRuntimeBase.h`
    /// of 11.4).
    #[must_use]
    pub const fn suits(self, ty: DataType) -> bool {
        use DataType::{Bf16, F8, F16, F32, I8, U8};
        match self {
            Format::Linear => true,
            Format::Chw2 | Format::Hwc8 | Format::Dhwc8 => matches!(ty, F16 | Bf16),
            Format::Chw4 => matches!(ty, I8 | F16 | Bf16),
            Format::Chw32 => matches!(ty, I8 | F16 | F32),
            Format::Cdhw32 => matches!(ty, I8 | F16),
            Format::Hwc => matches!(ty, F32 | F16 | U8),
            Format::Hwc16 => matches!(ty, F16 | I8 | F8),
            Format::Dhwc => matches!(ty, F32),
        }
    }

    /// Returns the extents in memory; `None` above 64 bits.
    #[must_use]
    pub fn padded(self, shape: &[i64]) -> Option<Vec<i64>> {
        let mut padded = shape.to_vec();
        let channel = shape.len().checked_sub(self.channel_from_end());
        if let Some(channels) = channel.and_then(|channel| padded.get_mut(channel)) {
            let vector = self.vector();
            let vectors = channels.div_euclid(vector) + i64::from(channels.rem_euclid(vector) != 0);
            *channels = vectors.checked_mul(vector)?;
        }
        Some(padded)
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn names_and_numbers_are_those_of_one_format() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            assert_eq!(Format::from_tensorrt(format.tensorrt()), Some(format));
        }
        for number in [4, 9, 10] {
            assert_eq!(Format::from_tensorrt(number), None, "the DLA's");
        }
    }

    #[test]
    fn channels_are_rounded_up() {
        assert_eq!(Format::Hwc8.padded(&[2, 3, 4, 5]), Some(vec![2, 8, 4, 5]));
        assert_eq!(Format::Cdhw32.padded(&[1, 33, 4, 5, 6]), Some(vec![1, 64, 4, 5, 6]));
        assert_eq!(Format::Chw4.padded(&[8, 1, 1]), Some(vec![8, 1, 1]));
        assert_eq!(Format::Hwc.padded(&[3, 4, 5]), Some(vec![3, 4, 5]));
        assert_eq!(Format::Linear.padded(&[3]), Some(vec![3]));
        assert_eq!(Format::Chw32.padded(&[0, 1, 1]), Some(vec![0, 1, 1]));
        assert_eq!(Format::Chw32.padded(&[i64::MAX, 1, 1]), None);
    }
}
