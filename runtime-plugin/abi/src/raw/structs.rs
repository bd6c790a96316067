//! NVIDIA's structs.
//!
//! Owns: field order, which is load-bearing in every struct of this file. Never: no pointer is followed here.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use super::{DataType, PluginFieldType, TensorFormat};

/// `Dims::MAX_DIMS` (`NvInferRuntimeBase.h`).
pub const MAX_DIMS: usize = 8;

/// `nvinfer1::Dims64`, alias `Dims` (`NvInferRuntimeBase.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Rank, -1 when it is not known.
    pub nb_dims: i32,
    /// Extents; -1 is one that is not known. Only the first `nb_dims` mean something.
    pub d: [i64; MAX_DIMS],
}

impl Dims {
    /// The extents that mean something: empty for a rank that is not known, at most [`MAX_DIMS`].
    #[inline]
    pub fn as_slice(&self) -> &[i64] {
        let rank = usize::try_from(self.nb_dims).unwrap_or(0).min(MAX_DIMS);
        &self.d[..rank]
    }

    /// Dims of these extents, or `None` for more than [`MAX_DIMS`].
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
    /// Extents; -1 for data-dependent ones, also at run time.
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
    /// Type, format, and extents with -1 for dynamic ones.
    pub desc: PluginTensorDesc,
    /// Smallest extents of the profile.
    pub min: Dims,
    /// Largest extents of the profile.
    pub max: Dims,
    /// Extents that are optimized for; they may be -1 for aliased and data-dependent plugins.
    pub opt: Dims,
}

/// `nvinfer1::DimsExprs` (`NvInferRuntime.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DimsExprs {
    /// Rank.
    pub nb_dims: i32,
    /// Extents as expressions. Only the first `nb_dims` mean something.
    pub d: [*const IDimensionExpr; MAX_DIMS],
}

/// `nvinfer1::PluginField` (`NvInferPluginBase.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PluginField {
    /// Name; a null one crashes inside TensorRT.
    pub name: *const c_char,
    /// `length` elements, or null.
    pub data: *const c_void,
    /// Element type.
    pub field_type: PluginFieldType,
    /// Number of elements.
    pub length: i32,
}

impl PluginFieldType {
    /// Bytes of `count` elements, or `None` for a type that this crate does not know or a size that
    /// overflows.
    ///
    /// `CHAR` and `UNKNOWN` count bytes. The 4-bit types are packed two to a byte, rounded up.
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

/// `nvinfer1::InterfaceInfo` (`NvInferRuntimeBase.h`). 16 bytes and trivially copyable, so both C++ and Rust
/// return it in two registers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InterfaceInfo {
    /// Kind, a NUL-terminated text that lives as long as the library.
    pub kind: *const c_char,
    /// Major version.
    pub major: i32,
    /// Minor version.
    pub minor: i32,
}

/// `nvinfer1::IDimensionExpr` (`NvInferRuntime.h`): a vptr that plugins do not use, then `mImpl`.
#[repr(C)]
#[derive(Debug)]
pub struct IDimensionExpr {
    /// Vtable of the wrapper: two destructor slots only.
    pub vptr: *const c_void,
    /// `apiv::VDimensionExpr*`.
    pub implementation: *const c_void,
}

/// `nvinfer1::IExprBuilder` (`NvInferRuntime.h`): a vptr that plugins do not use, then `mImpl`.
#[repr(C)]
#[derive(Debug)]
pub struct IExprBuilder {
    /// Vtable of the wrapper: two destructor slots only.
    pub vptr: *const c_void,
    /// `apiv::VExprBuilder*`.
    pub implementation: *const c_void,
}

/// `nvinfer1::IKernelLaunchParams` (`impl/NvInferPythonPlugin.h`, Enterprise 11.4): a vptr that plugins do not use, then `mImpl`.
#[repr(C)]
#[derive(Debug)]
pub struct IKernelLaunchParams {
    /// Vtable of the wrapper: two destructor slots only.
    pub vptr: *const c_void,
    /// `IKernelLaunchParamsImpl*`.
    pub implementation: *mut c_void,
}

/// `nvinfer1::ISymExprs` (`impl/NvInferPythonPlugin.h`, Enterprise 11.4): a vptr that plugins do not use, then `mImpl`.
#[repr(C)]
#[derive(Debug)]
pub struct ISymExprs {
    /// Vtable of the wrapper: two destructor slots only.
    pub vptr: *const c_void,
    /// `ISymExprsImpl*`.
    pub implementation: *mut c_void,
}

// The numbers are those that g++ prints for NVIDIA's headers (RTX 1.7) with `sizeof` and `offsetof` on LP64.
const _: () = {
    assert!(size_of::<Dims>() == 72 && offset_of!(Dims, nb_dims) == 0 && offset_of!(Dims, d) == 8);

    assert!(size_of::<PluginTensorDesc>() == 88);
    assert!(offset_of!(PluginTensorDesc, dims) == 0);
    assert!(offset_of!(PluginTensorDesc, data_type) == 72);
    assert!(offset_of!(PluginTensorDesc, format) == 76);
    assert!(offset_of!(PluginTensorDesc, scale) == 80);

    assert!(size_of::<DynamicPluginTensorDesc>() == 304);
    assert!(offset_of!(DynamicPluginTensorDesc, desc) == 0);
    assert!(offset_of!(DynamicPluginTensorDesc, min) == 88);
    assert!(offset_of!(DynamicPluginTensorDesc, max) == 160);
    assert!(offset_of!(DynamicPluginTensorDesc, opt) == 232);

    assert!(
        size_of::<DimsExprs>() == 72 && offset_of!(DimsExprs, nb_dims) == 0 && offset_of!(DimsExprs, d) == 8
    );

    assert!(size_of::<PluginField>() == 24);
    assert!(offset_of!(PluginField, name) == 0);
    assert!(offset_of!(PluginField, data) == 8);
    assert!(offset_of!(PluginField, field_type) == 16);
    assert!(offset_of!(PluginField, length) == 20);

    assert!(size_of::<PluginFieldCollection>() == 16);
    assert!(offset_of!(PluginFieldCollection, nb_fields) == 0);
    assert!(offset_of!(PluginFieldCollection, fields) == 8);

    assert!(size_of::<InterfaceInfo>() == 16 && align_of::<InterfaceInfo>() == 8);
    assert!(offset_of!(InterfaceInfo, kind) == 0);
    assert!(offset_of!(InterfaceInfo, major) == 8);
    assert!(offset_of!(InterfaceInfo, minor) == 12);

    assert!(size_of::<IDimensionExpr>() == 16 && offset_of!(IDimensionExpr, implementation) == 8);
    assert!(size_of::<IExprBuilder>() == 16 && offset_of!(IExprBuilder, implementation) == 8);
    assert!(size_of::<IKernelLaunchParams>() == 16 && offset_of!(IKernelLaunchParams, implementation) == 8);
    assert!(size_of::<ISymExprs>() == 16 && offset_of!(ISymExprs, implementation) == 8);
};

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
