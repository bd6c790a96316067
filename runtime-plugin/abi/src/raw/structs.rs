//! NVIDIA's structs, with fields in NVIDIA's order.

use std::ffi::{c_char, c_void};

use super::{DataType, PluginFieldType, TensorFormat};

/// `Dims::MAX_DIMS` (`NvInferRuntimeBase.h`).
pub const MAX_DIMS: usize = 8;

/// `nvinfer1::Dims64`, alias `Dims` (`NvInferRuntimeBase.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Rank; -1 if unknown.
    pub nb_dims: i32,
    /// Extents, valid up to `nb_dims`; -1 if unknown.
    pub d: [i64; MAX_DIMS],
}

impl Dims {
    /// Returns the valid extents, at most [`MAX_DIMS`]; empty for unknown rank.
    #[inline]
    pub fn as_slice(&self) -> &[i64] {
        let rank = usize::try_from(self.nb_dims).unwrap_or(0).min(MAX_DIMS);
        &self.d[..rank]
    }

    /// Creates dims; `None` for more than [`MAX_DIMS`].
    pub fn from_slice(extents: &[i64]) -> Option<Self> {
        let mut d = [0; MAX_DIMS];
        d.get_mut(..extents.len())?.copy_from_slice(extents);
        Some(Self { nb_dims: i32::try_from(extents.len()).ok()?, d })
    }
}

/// `nvinfer1::PluginTensorDesc` (`NvInferRuntimePlugin.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PluginTensorDesc {
    /// Extents; -1 if data-dependent, also at run time.
    pub dims: Dims,
    /// Element type.
    pub data_type: DataType,
    /// Memory layout.
    pub format: TensorFormat,
    /// Scale of INT8.
    pub scale: f32,
}

/// `nvinfer1::DynamicPluginTensorDesc` (`NvInferRuntime.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DynamicPluginTensorDesc {
    /// Type, format, extents; -1 if dynamic.
    pub desc: PluginTensorDesc,
    /// Smallest extents.
    pub min: Dims,
    /// Largest extents.
    pub max: Dims,
    /// Extents to optimize for; may be -1.
    pub opt: Dims,
}

/// `nvinfer1::DimsExprs` (`NvInferRuntime.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DimsExprs {
    /// Rank.
    pub nb_dims: i32,
    /// Extents, valid up to `nb_dims`.
    pub d: [*const IDimensionExpr; MAX_DIMS],
}

/// `nvinfer1::PluginField` (`NvInferPluginBase.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PluginField {
    /// Name; null crashes TensorRT.
    pub name: *const c_char,
    /// `length` elements, or null.
    pub data: *const c_void,
    /// Element type.
    pub field_type: PluginFieldType,
    /// Number of elements.
    pub length: i32,
}

impl PluginFieldType {
    /// Returns the bytes of `count` elements, 4-bit ones packed; `None` for unknown types or overflow.
    pub const fn bytes(self, count: usize) -> Option<usize> {
        match self {
            Self::INT8 | Self::CHAR | Self::UNKNOWN | Self::FP8 => Some(count),
            Self::FLOAT16 | Self::INT16 | Self::BF16 => count.checked_mul(2),
            Self::FLOAT32 | Self::INT32 => count.checked_mul(4),
            Self::FLOAT64 | Self::INT64 => count.checked_mul(8),
            Self::DIMS => count.checked_mul(size_of::<Dims>()),
            Self::INT4 | Self::FP4 => Some(count.div_ceil(2)),
            _ => None,
        }
    }
}

/// `nvinfer1::PluginFieldCollection` (`NvInferPluginBase.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PluginFieldCollection {
    /// Number of fields.
    pub nb_fields: i32,
    /// The fields, or null.
    pub fields: *const PluginField,
}

/// `nvinfer1::InterfaceInfo` (`NvInferRuntimeBase.h`), returned in two registers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InterfaceInfo {
    /// Kind; lives as long as the library.
    pub kind: *const c_char,
    /// Major version.
    pub major: i32,
    /// Minor version.
    pub minor: i32,
}

/// Declares C++ wrappers: a vptr unused by plugins, then `mImpl`.
macro_rules! wrappers {
    ($($(#[$doc:meta])* $name:ident, $implementation:ty;)*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Debug)]
            pub struct $name {
                /// The wrapper's vtable: two destructor slots.
                pub vptr: *const c_void,
                /// Implementation object.
                pub implementation: $implementation,
            }
        )*
    };
}

wrappers! {
    /// `nvinfer1::IDimensionExpr` (`NvInferRuntime.h`), around `apiv::VDimensionExpr*`.
    IDimensionExpr, *const c_void;
    /// `nvinfer1::IExprBuilder` (`NvInferRuntime.h`), around `apiv::VExprBuilder*`.
    IExprBuilder, *const c_void;
    /// `nvinfer1::IKernelLaunchParams` (`impl/NvInferPythonPlugin.h`, Enterprise 11.4), around `IKernelLaunchParamsImpl*`.
    IKernelLaunchParams, *mut c_void;
    /// `nvinfer1::ISymExprs` (`impl/NvInferPythonPlugin.h`, Enterprise 11.4), around `ISymExprsImpl*`.
    ISymExprs, *mut c_void;
}

// g++'s `sizeof` and `offsetof` for NVIDIA's RTX 1.7 headers on LP64.
layout! { 1;
    Dims = 72 { nb_dims = 0, d = 8 };
    PluginTensorDesc = 88 { dims = 0, data_type = 72, format = 76, scale = 80 };
    DynamicPluginTensorDesc = 304 { desc = 0, min = 88, max = 160, opt = 232 };
    DimsExprs = 72 { nb_dims = 0, d = 8 };
    PluginField = 24 { name = 0, data = 8, field_type = 16, length = 20 };
    PluginFieldCollection = 16 { nb_fields = 0, fields = 8 };
    InterfaceInfo = 16 { kind = 0, major = 8, minor = 12 };
    IDimensionExpr = 16 { implementation = 8 };
    IExprBuilder = 16 { implementation = 8 };
    IKernelLaunchParams = 16 { implementation = 8 };
    ISymExprs = 16 { implementation = 8 };
}
const _: () = assert!(align_of::<InterfaceInfo>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_out_of_range_are_cut() {
        let mut dims = Dims { nb_dims: -1, d: [7; MAX_DIMS] };
        assert_eq!(dims.as_slice(), &[] as &[i64]);
        dims.nb_dims = 2;
        assert_eq!(dims.as_slice(), &[7, 7]);
        dims.nb_dims = i32::MAX;
        assert_eq!(dims.as_slice().len(), MAX_DIMS);
    }

    #[test]
    fn dims_round_trip() {
        assert_eq!(Dims::from_slice(&[1, 2, 3]).map(|dims| dims.as_slice().to_vec()), Some(vec![1, 2, 3]));
        assert_eq!(Dims::from_slice(&[0; 9]), None);
    }

    #[test]
    fn field_sizes_count_packed_types_in_halves() {
        assert_eq!(PluginFieldType::INT4.bytes(5), Some(3));
        assert_eq!(PluginFieldType::DIMS.bytes(2), Some(144));
        assert_eq!(PluginFieldType::INT64.bytes(usize::MAX), None);
        assert_eq!(PluginFieldType(77).bytes(1), None);
    }
}
