//! The names and types of a kernel's parameters.

use cubinder_expr::ScalarType;
use serde::{Deserialize, Serialize};

/// A kernel's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The kernel as the debug information names it: `scale<float,4>`, without namespaces.
    pub kernel: String,
    /// In the kernel's own order.
    pub params: Vec<Param>,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name; empty where the author gave it none.
    pub name: String,
    /// What it takes.
    pub ty: ParamType,
    /// The type as C++ writes it: `const float*`.
    pub spelling: String,
}

/// What a parameter takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParamType {
    /// A pointer.
    Pointer {
        /// What it points to, without `const`.
        pointee: String,
        /// Its size in bytes; absent for `void` and types that are only declared.
        pointee_size: Option<u32>,
        /// Whether the kernel promises not to write through it.
        is_const: bool,
        /// What the pointee is made of.
        leaf: Leaf,
    },
    /// A number or a boolean.
    Scalar(ScalarType),
    /// An enumeration, by the integers that it takes for certain. The debug information of NVRTC 13.0 (DWARF 2) does not say which
    /// integer type it has; its names may show it.
    Enum(ScalarType),
    /// A struct that holds nothing but an array of numbers, such as `cubinder::array<int, 8>`.
    Array {
        /// The type of an element.
        element: ScalarType,
        /// How many there are.
        len: u32,
    },
    /// Anything else.
    Other {
        /// Its name.
        name: String,
        /// Its size in bytes; 0 where it is not known.
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

/// What all parts of a pointee are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leaf {
    /// Numbers of one type: `float`, `float4`, `uint2`.
    Scalar(ScalarType),
    /// `__half`, `__half2`
    Half,
    /// `__nv_bfloat16`, `__nv_bfloat162`
    Bfloat16,
    /// An enumeration of this width.
    Enum {
        /// Width in bytes.
        bytes: u8,
    },
    /// Pointers or functions.
    Address,
    /// Nothing of the above, several kinds of parts, or not said: `void`, a union, a type that is only declared.
    Opaque,
    /// `__nv_fp8_e4m3`, `__nv_fp8x4_e4m3`
    Float8,
    /// Floats of 8 bits that no tensor has: `__nv_fp8_e5m2`, `__nv_fp8x4_e5m2`, `__nv_fp8_e8m0`
    OtherFloat8,
}

impl Leaf {
    /// Size in bytes, where it is known.
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
    /// The parameter with this name and its position.
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
