//! NVIDIA's enumerations, all `int32_t`. Never a Rust `enum`: unknown values are undefined behavior.

use std::fmt;

macro_rules! foreign_enums {
    ($($(#[$meta:meta])* $name:ident { $($(#[$value_meta:meta])* $value:ident = $number:literal,)* })*) => {$(
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub i32);

        impl $name {
            $($(#[$value_meta])* pub const $value: Self = Self($number);)*

            /// The headers' values, in order.
            pub const ALL: &[Self] = &[$(Self::$value),*];

            /// Returns NVIDIA's name without its `k`.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($value)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => write!(formatter, "{}::{name}", stringify!($name)),
                    None => write!(formatter, "{}({})", stringify!($name), self.0),
                }
            }
        }
    )*};
}

foreign_enums! {
    /// `nvinfer1::DataType` (`NvInferRuntimeBase.h`).
    DataType {
        /// 32-bit float.
        FLOAT = 0,
        /// IEEE 16-bit float.
        HALF = 1,
        /// 8-bit integer, quantized.
        INT8 = 2,
        /// 32-bit integer.
        INT32 = 3,
        /// One byte, 0 or 1.
        BOOL = 4,
        /// Unsigned byte.
        UINT8 = 5,
        /// 8-bit float E4M3.
        FP8 = 6,
        /// Brain float.
        BF16 = 7,
        /// 64-bit integer.
        INT64 = 8,
        /// 4-bit integer, two to a byte.
        INT4 = 9,
        /// 4-bit float E2M1, two to a byte.
        FP4 = 10,
        /// 8-bit exponent, for scales.
        E8M0 = 11,
    }

    /// `nvinfer1::TensorFormat`, alias `PluginFormat` (`NvInferRuntime.h`).
    TensorFormat {
        /// Row major.
        LINEAR = 0,
        /// Two channels per vector.
        CHW2 = 1,
        /// Channels last, padded to 8.
        HWC8 = 2,
        /// Four channels per vector.
        CHW4 = 3,
        /// 16 channels per vector.
        CHW16 = 4,
        /// 32 channels per vector.
        CHW32 = 5,
        /// Channels last with depth, padded to 8.
        DHWC8 = 6,
        /// 32 channels per vector, with depth.
        CDHW32 = 7,
        /// Channels last.
        HWC = 8,
        /// DLA, planar.
        DLA_LINEAR = 9,
        /// DLA, channels last.
        DLA_HWC4 = 10,
        /// Channels last, padded to 16.
        HWC16 = 11,
        /// Channels last with depth.
        DHWC = 12,
    }

    /// `nvinfer1::PluginFieldType` (`NvInferPluginBase.h`).
    PluginFieldType {
        /// IEEE 16-bit float.
        FLOAT16 = 0,
        /// 32-bit float.
        FLOAT32 = 1,
        /// 64-bit float.
        FLOAT64 = 2,
        /// 8-bit integer.
        INT8 = 3,
        /// 16-bit integer.
        INT16 = 4,
        /// 32-bit integer.
        INT32 = 5,
        /// A string; the ONNX parser counts its NUL.
        CHAR = 6,
        /// `Dims`, 72 bytes each.
        DIMS = 7,
        /// Bytes.
        UNKNOWN = 8,
        /// Brain float.
        BF16 = 9,
        /// 64-bit integer.
        INT64 = 10,
        /// 8-bit float.
        FP8 = 11,
        /// 4-bit integer, two to a byte.
        INT4 = 12,
        /// 4-bit float, two to a byte.
        FP4 = 13,
    }

    /// `nvinfer1::TensorRTPhase` (`NvInferPluginBase.h`).
    TensorRTPhase {
        /// Building an engine, possibly without a GPU.
        BUILD = 0,
        /// Running a deserialized engine.
        RUNTIME = 1,
    }

    /// `nvinfer1::PluginCapabilityType` (`NvInferPluginBase.h`).
    PluginCapabilityType {
        /// `IPluginV3OneCore`.
        CORE = 0,
        /// `IPluginV3OneBuild`.
        BUILD = 1,
        /// `IPluginV3OneRuntime`.
        RUNTIME = 2,
    }

    /// `nvinfer1::APILanguage` (`NvInferRuntimeBase.h`).
    APILanguage {
        /// C++ and compatible languages.
        CPP = 0,
        /// Python.
        PYTHON = 1,
    }

    /// `nvinfer1::DimensionOperation` (`NvInferRuntime.h`).
    DimensionOperation {
        /// `a + b`.
        SUM = 0,
        /// `a * b`.
        PROD = 1,
        /// The larger one.
        MAX = 2,
        /// The smaller one.
        MIN = 3,
        /// `a - b`.
        SUB = 4,
        /// 1 if `a == b`, else 0.
        EQUAL = 5,
        /// 1 if `a < b`, else 0.
        LESS = 6,
        /// `a / b` rounded down.
        FLOOR_DIV = 7,
        /// `a / b` rounded up.
        CEIL_DIV = 8,
    }

    /// `nvinfer1::ILogger::Severity` (`NvInferRuntime.h`).
    Severity {
        /// An internal error.
        INTERNAL_ERROR = 0,
        /// An error.
        ERROR = 1,
        /// A warning.
        WARNING = 2,
        /// Information.
        INFO = 3,
        /// Messages for debugging.
        VERBOSE = 4,
    }

    /// `nvinfer1::QuickPluginCreationRequest` (`impl/NvInferPythonPlugin.h`): "JIT" runs in the engine's process;
    /// "AOT" kernels are in the engine.
    QuickPluginCreationRequest {
        /// Either.
        UNKNOWN = 0,
        /// JIT if available.
        PREFER_JIT = 1,
        /// AOT if available.
        PREFER_AOT = 2,
        /// JIT only.
        STRICT_JIT = 3,
        /// AOT only.
        STRICT_AOT = 4,
    }

    /// `nvinfer1::PluginArgType` (`impl/NvInferPythonPlugin.h`).
    PluginArgType {
        /// An integer.
        INT = 0,
    }

    /// `nvinfer1::PluginArgDataType` (`impl/NvInferPythonPlugin.h`).
    PluginArgDataType {
        /// 8 bits, signed.
        INT8 = 0,
        /// 16 bits, signed.
        INT16 = 1,
        /// 32 bits, signed.
        INT32 = 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_keep_their_number() {
        assert_eq!(format!("{:?} {:?}", DataType::BF16, DataType(99)), "DataType::BF16 DataType(99)");
    }

    #[test]
    fn numbers_follow_the_headers_order() {
        for (index, value) in DataType::ALL.iter().enumerate() {
            assert_eq!(value.0, index as i32);
        }
        assert_eq!(DataType::ALL.len(), 12);
        assert_eq!(TensorFormat::ALL.len(), 13);
        assert_eq!(PluginFieldType::ALL.len(), 14);
        assert_eq!(DimensionOperation::ALL.len(), 9);
        assert_eq!(Severity::ALL.len(), 5);
        for (index, value) in QuickPluginCreationRequest::ALL.iter().enumerate() {
            assert_eq!(value.0, index as i32);
        }
        assert_eq!(QuickPluginCreationRequest::ALL.len(), 5);
        assert_eq!((PluginArgType::ALL.len(), PluginArgDataType::ALL.len()), (1, 3));
    }
}
