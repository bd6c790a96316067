//! Names and types of kernel parameters.

use cubinder_expr::ScalarType;
use serde::{Deserialize, Serialize};

/// A kernel's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Name in debug information: `scale<float,4>`, without namespaces.
    pub kernel: String,
    /// Parameters in order.
    pub params: Vec<Param>,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Name, possibly empty.
    pub name: String,
    /// Type.
    pub ty: ParamType,
    /// C++ spelling: `const float*`.
    pub spelling: String,
}

/// A parameter's type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParamType {
    /// Pointer.
    Pointer {
        /// Name without `const`.
        pointee: String,
        /// Bytes; `None` for `void` and incomplete types.
        pointee_size: Option<u32>,
        /// Whether the pointee is `const`.
        is_const: bool,
        /// Parts of the pointee.
        leaf: Leaf,
    },
    /// Number or boolean.
    Scalar(ScalarType),
    /// An enumeration, as sufficient integers: DWARF 2 of NVRTC 13.0 lacks its type.
    Enum(ScalarType),
    /// Struct with only an array: `cubinder::array<int, 8>`.
    Array {
        /// Element type.
        element: ScalarType,
        /// Length.
        len: u32,
    },
    /// Another type.
    Other {
        /// Name.
        name: String,
        /// Bytes, 0 if unknown.
        size: u32,
    },
}

impl From<ScalarType> for ParamType {
    fn from(scalar: ScalarType) -> ParamType {
        match scalar {
            ScalarType::Natural { .. } => ParamType::Enum(scalar),
            scalar => ParamType::Scalar(scalar),
        }
    }
}

/// Common kind of a pointee's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leaf {
    /// Numbers: `float`, `float4`, `uint2`.
    Scalar(ScalarType),
    /// `__half`, `__half2`
    Half,
    /// `__nv_bfloat16`, `__nv_bfloat162`
    Bfloat16,
    /// Enumeration.
    Enum {
        /// Bytes.
        bytes: u8,
    },
    /// Pointers or functions.
    Address,
    /// Mixed, unsupported or unknown: `void`, unions, incomplete types.
    Opaque,
    /// `__nv_fp8_e4m3`, `__nv_fp8x4_e4m3`
    Float8,
    /// 8-bit floats of no tensor: `__nv_fp8_e5m2`, `__nv_fp8x4_e5m2`, `__nv_fp8_e8m0`
    OtherFloat8,
}

impl Leaf {
    /// Returns the size in bytes, if known.
    #[must_use]
    pub fn size(self) -> Option<u32> {
        match self {
            Leaf::Scalar(scalar) => Some(scalar.size()),
            Leaf::Half | Leaf::Bfloat16 => Some(2),
            Leaf::Float8 | Leaf::OtherFloat8 => Some(1),
            Leaf::Enum { bytes } => Some(u32::from(bytes)),
            Leaf::Address => Some(8),
            Leaf::Opaque => None,
        }
    }
}

impl Signature {
    /// Returns a parameter and its position.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(usize, &Param)> {
        self.params.iter().enumerate().find(|(_, param)| param.name == name)
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}(", self.kernel)?;
        for (index, param) in self.params.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let gap = if param.name.is_empty() { "" } else { " " };
            write!(f, "{separator}{}{gap}{}", param.spelling, param.name)?;
        }
        f.write_str(")")
    }
}
