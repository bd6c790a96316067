//! Element types: what TensorRT's tensors hold ([`DataType`]) and what a kernel takes by value ([`ScalarType`]).

use serde::{Deserialize, Serialize};

/// The element type of a tensor that a plugin reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DataType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Brain floating point, 16 bits.
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
}

impl DataType {
    /// Every element type, in the order in which errors list them.
    pub const ALL: [DataType; 8] = [
        DataType::F32,
        DataType::F16,
        DataType::Bf16,
        DataType::I8,
        DataType::I32,
        DataType::I64,
        DataType::U8,
        DataType::Bool,
    ];

    /// The name used in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DataType::F32 => "f32",
            DataType::F16 => "f16",
            DataType::Bf16 => "bf16",
            DataType::I8 => "i8",
            DataType::I32 => "i32",
            DataType::I64 => "i64",
            DataType::U8 => "u8",
            DataType::Bool => "bool",
        }
    }

    /// The type with this manifest name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DataType> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// How CUDA C++ spells it: what a kernel template is instantiated with.
    #[must_use]
    pub const fn cuda_name(self) -> &'static str {
        match self {
            DataType::F32 => "float",
            DataType::F16 => "__half",
            DataType::Bf16 => "__nv_bfloat16",
            DataType::I8 => "signed char",
            DataType::I32 => "int",
            DataType::I64 => "long long",
            DataType::U8 => "unsigned char",
            DataType::Bool => "bool",
        }
    }

    /// Size of one element in bytes.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            DataType::F32 | DataType::I32 => 4,
            DataType::F16 | DataType::Bf16 => 2,
            DataType::I8 | DataType::U8 | DataType::Bool => 1,
            DataType::I64 => 8,
        }
    }

    /// TensorRT's number for it (`nvinfer1::DataType`, `NvInferRuntimeBase.h`, TensorRT-RTX 1.7).
    #[must_use]
    pub const fn tensorrt(self) -> i32 {
        match self {
            DataType::F32 => 0,
            DataType::F16 => 1,
            DataType::I8 => 2,
            DataType::I32 => 3,
            DataType::Bool => 4,
            DataType::U8 => 5,
            DataType::Bf16 => 7,
            DataType::I64 => 8,
        }
    }

    /// The type with TensorRT's number, if plugins can use it.
    #[must_use]
    pub fn from_tensorrt(number: i32) -> Option<DataType> {
        Self::ALL.into_iter().find(|ty| ty.tensorrt() == number)
    }
}

/// The type of a number that a kernel takes by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ScalarType {
    /// Signed integer of 1, 2, 4 or 8 bytes.
    Int {
        /// Width in bytes.
        bytes: u8,
    },
    /// Unsigned integer of 1, 2, 4 or 8 bytes.
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
}

impl ScalarType {
    /// Size in bytes.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            ScalarType::Int { bytes } | ScalarType::UInt { bytes } => bytes as u32,
            ScalarType::F32 => 4,
            ScalarType::F64 => 8,
            ScalarType::Bool => 1,
        }
    }
}
