//! Types of tensor elements and kernel arguments.

use serde::{Deserialize, Serialize};

/// The element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DataType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Brain floating point.
    Bf16,
    /// Signed 8-bit integer.
    I8,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// E4M3: 4 bits of exponent, 3 of fraction.
    F8,
    /// Signed 4 bits, two per byte.
    I4,
}

impl DataType {
    /// All types, in the order of error messages.
    pub const ALL: [DataType; 10] = [
        DataType::F32,
        DataType::F16,
        DataType::Bf16,
        DataType::F8,
        DataType::I4,
        DataType::I8,
        DataType::I32,
        DataType::I64,
        DataType::U8,
        DataType::Bool,
    ];

    const fn row(self) -> (&'static str, &'static str, u32, i32) {
        match self {
            DataType::F32 => ("f32", "float", 32, 0),
            DataType::F16 => ("f16", "__half", 16, 1),
            DataType::Bf16 => ("bf16", "__nv_bfloat16", 16, 7),
            DataType::I8 => ("i8", "signed char", 8, 2),
            DataType::I32 => ("i32", "int", 32, 3),
            DataType::I64 => ("i64", "long long", 64, 8),
            DataType::U8 => ("u8", "unsigned char", 8, 5),
            DataType::Bool => ("bool", "bool", 8, 4),
            DataType::F8 => ("f8", "__nv_fp8_e4m3", 8, 6),
            DataType::I4 => ("i4", "cubinder::i4x2", 4, 9),
        }
    }

    /// Returns the name in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the type with this manifest name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DataType> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Returns the CUDA C++ type; for [`DataType::I4`], a two-element byte of the generated header.
    #[must_use]
    pub const fn cuda_name(self) -> &'static str {
        self.row().1
    }

    /// Returns the bits of an element.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.row().2
    }

    /// Returns an element's bytes; `None` below a byte.
    #[must_use]
    pub const fn size(self) -> Option<u32> {
        if self.bits() < 8 { None } else { Some(self.bits() / 8) }
    }

    /// Returns the bytes of `count` elements; `None` above 64 bits.
    #[must_use]
    pub const fn bytes(self, count: u64) -> Option<u64> {
        match self.size() {
            Some(size) => count.checked_mul(size as u64),
            None => Some(count.div_ceil((8 / self.bits()) as u64)),
        }
    }

    /// Returns TensorRT's number (`nvinfer1::DataType`, `NvInferRuntimeBase.h`, TensorRT-RTX 1.7).
    #[must_use]
    pub const fn tensorrt(self) -> i32 {
        self.row().3
    }

    /// Returns the type with TensorRT's number.
    #[must_use]
    pub fn from_tensorrt(number: i32) -> Option<DataType> {
        Self::ALL.into_iter().find(|ty| ty.tensorrt() == number)
    }
}

/// The type of a number passed by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ScalarType {
    /// 1, 2, 4 or 8 bytes.
    Int {
        /// Width in bytes.
        bytes: u8,
    },
    /// 1, 2, 4 or 8 bytes.
    UInt {
        /// Width in bytes.
        bytes: u8,
    },
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// `bool`, one byte.
    Bool,
    /// An enumeration's unknown integer type: 0 to 2^`bits` - 1.
    Natural {
        /// 7, 15, 31 or 63 for unknown signedness, 1 if possibly `bool`.
        bits: u8,
    },
}

impl std::fmt::Display for ScalarType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScalarType::Int { bytes } => write!(f, "i{}", u32::from(*bytes) * 8),
            ScalarType::UInt { bytes } => write!(f, "u{}", u32::from(*bytes) * 8),
            ScalarType::F32 => f.write_str("f32"),
            ScalarType::F64 => f.write_str("f64"),
            ScalarType::Bool => f.write_str("bool"),
            ScalarType::Natural { bits: 1 } => f.write_str("enum of 0 and 1"),
            ScalarType::Natural { .. } => write!(f, "enum of {} bits", self.size() * 8),
        }
    }
}

impl ScalarType {
    /// Returns the size in bytes.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            ScalarType::Int { bytes } | ScalarType::UInt { bytes } => bytes as u32,
            ScalarType::Natural { bits } => bits as u32 / 8 + 1,
            ScalarType::F32 => 4,
            ScalarType::F64 => 8,
            ScalarType::Bool => 1,
        }
    }

    /// Returns an integer type's range; `None` for other types and unknown widths.
    #[must_use]
    pub fn integers(self) -> Option<(i128, i128)> {
        let half = |bytes: u8| matches!(bytes, 1 | 2 | 4 | 8).then(|| 1_i128 << (u32::from(bytes) * 8 - 1));
        match self {
            ScalarType::Int { bytes } => half(bytes).map(|half| (-half, half - 1)),
            ScalarType::UInt { bytes } => half(bytes).map(|half| (0, 2 * half - 1)),
            ScalarType::Natural { bits } => {
                matches!(bits, 1 | 7 | 15 | 31 | 63).then(|| (0, (1_i128 << bits) - 1))
            }
            ScalarType::F32 | ScalarType::F64 | ScalarType::Bool => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DataType, ScalarType};

    #[test]
    fn names_and_numbers_are_those_of_one_type() {
        for ty in DataType::ALL {
            assert_eq!(DataType::from_name(ty.name()), Some(ty));
            assert_eq!(DataType::from_tensorrt(ty.tensorrt()), Some(ty));
        }
        assert_eq!(DataType::from_tensorrt(10), None, "floats of 4 bits");
    }

    #[test]
    fn types_of_elements_are_those_of_cuda() {
        let facts = |ty: DataType| (ty.cuda_name(), ty.size(), ty.bits());
        for (ty, expected) in [
            (DataType::F32, ("float", Some(4), 32)),
            (DataType::F16, ("__half", Some(2), 16)),
            (DataType::I64, ("long long", Some(8), 64)),
            (DataType::I8, ("signed char", Some(1), 8)),
            (DataType::I4, ("cubinder::i4x2", None, 4)),
        ] {
            assert_eq!(facts(ty), expected, "{ty:?}");
        }
        let sizes = |bytes: u8| {
            let natural = ScalarType::Natural { bits: bytes * 8 - 1 };
            [ScalarType::Int { bytes }, ScalarType::UInt { bytes }, natural].map(ScalarType::size)
        };
        assert_eq!([1, 2, 4, 8].map(sizes), [1, 2, 4, 8].map(|bytes| [bytes; 3]));
        let others = [ScalarType::F32, ScalarType::F64, ScalarType::Bool, ScalarType::Natural { bits: 1 }];
        assert_eq!(others.map(ScalarType::size), [4, 8, 1, 1]);
    }

    #[test]
    fn integer_types_hold_what_their_bits_can() {
        for (bytes, least, greatest) in [
            (1, i128::from(i8::MIN), i128::from(u8::MAX)),
            (2, i16::MIN.into(), u16::MAX.into()),
            (4, i32::MIN.into(), u32::MAX.into()),
            (8, i64::MIN.into(), u64::MAX.into()),
        ] {
            assert_eq!(ScalarType::Int { bytes }.integers(), Some((least, -1 - least)));
            assert_eq!(ScalarType::UInt { bytes }.integers(), Some((0, greatest)));
            let natural = ScalarType::Natural { bits: bytes * 8 - 1 };
            assert_eq!(natural.integers(), Some((0, -1 - least)));
        }
        for bytes in [0, 3, 16, 255] {
            assert_eq!(ScalarType::Int { bytes }.integers(), None);
            assert_eq!(ScalarType::UInt { bytes }.integers(), None);
        }
        assert_eq!(ScalarType::Natural { bits: 1 }.integers(), Some((0, 1)));
        for bits in [0, 2, 8, 62, 64, 255] {
            assert_eq!(ScalarType::Natural { bits }.integers(), None);
        }
        assert_eq!([ScalarType::F32, ScalarType::F64, ScalarType::Bool].map(ScalarType::integers), [None; 3]);
    }

    #[test]
    fn elements_of_four_bits_share_bytes() {
        assert_eq!(DataType::I4.size(), None);
        assert_eq!([0, 1, 2, 3].map(|count| DataType::I4.bytes(count)), [0, 1, 1, 2].map(Some));
        assert_eq!(DataType::I4.bytes(u64::MAX), Some(1 << 63));
        assert_eq!(DataType::F16.bytes(3), Some(6));
        assert_eq!(DataType::F16.bytes(1 << 63), None);
    }
}
