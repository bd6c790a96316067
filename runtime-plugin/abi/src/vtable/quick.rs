//! The slots of quick plugins' interfaces, as in [`super`].
//!
//! Source: `impl/NvInferPythonPlugin.h` of TensorRT Enterprise 11.4, without semantic versioning.

use std::ffi::{c_char, c_void};

use super::{This, VersionedSlots};
use crate::raw::{
    DataType, Dims, DimsExprs, DynamicPluginTensorDesc, IExprBuilder, IKernelLaunchParams, ISymExprs,
    PluginArgDataType, PluginArgType, PluginFieldCollection, PluginTensorDesc, QuickPluginCreationRequest,
    TensorRTPhase,
};

slots! {
    /// `IPluginCreatorV3Quick`.
    QuickCreatorSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `createPlugin(name, nspace, fc, phase, quickPluginCreationRequest)`.
        create_plugin(
            *const c_char, *const c_char, *const PluginFieldCollection, TensorRTPhase,
            QuickPluginCreationRequest
        ) -> This;
        /// `getFieldNames`.
        get_field_names() -> *const PluginFieldCollection;
        /// `getPluginName`.
        get_plugin_name() -> *const c_char;
        /// `getPluginVersion`.
        get_plugin_version() -> *const c_char;
        /// `getPluginNamespace`.
        get_plugin_namespace() -> *const c_char;
    }

    /// `IPluginV3QuickAOTBuild`; `IPluginV3QuickBuild` ends at slot 14.
    QuickBuildSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `getOutputDataTypes(outputTypes, nbOutputs, inputTypes, inputRanks, nbInputs)`.
        get_output_data_types(*mut DataType, i32, *const DataType, *const i32, i32) -> i32;
        /// `getOutputShapes(inputs, nbInputs, shapeInputs, nbShapeInputs, outputs, nbOutputs, exprBuilder)`.
        get_output_shapes(
            *const DimsExprs, i32, *const DimsExprs, i32, *mut DimsExprs, i32, *mut IExprBuilder
        ) -> i32;
        /// `configurePlugin(in, nbInputs, out, nbOutputs)`.
        configure_plugin(*const DynamicPluginTensorDesc, i32, *const DynamicPluginTensorDesc, i32) -> i32;
        /// `getNbSupportedFormatCombinations(inOut, nbInputs, nbOutputs)`.
        get_nb_supported_format_combinations(*const DynamicPluginTensorDesc, i32, i32) -> i32;
        /// `getSupportedFormatCombinations(inOut, nbInputs, nbOutputs, supportedCombinations, nbFormatCombinations)`.
        get_supported_format_combinations(
            *const DynamicPluginTensorDesc, i32, i32, *mut PluginTensorDesc, i32
        ) -> i32;
        /// `getNbOutputs`.
        get_nb_outputs() -> i32;
        /// `getAliasedInput(outputIndex)`.
        get_aliased_input(i32) -> i32;
        /// `getValidTactics(tactics, nbTactics)`.
        get_valid_tactics(*mut i32, i32) -> i32;
        /// `getNbTactics`.
        get_nb_tactics() -> i32;
        /// `getTimingCacheID`.
        get_timing_cache_id() -> *const c_char;
        /// `getMetadataString`.
        get_metadata_string() -> *const c_char;
        /// `getLaunchParams(inputs, inOut, nbInputs, nbOutputs, launchParams, extraArgs, exprBuilder)`: the first
        /// ahead-of-time slot.
        get_launch_params(
            *const DimsExprs, *const DynamicPluginTensorDesc, i32, i32, *mut IKernelLaunchParams,
            *mut ISymExprs, *mut IExprBuilder
        ) -> i32;
        /// `getKernel(in, nbInputs, out, nbOutputs, kernelName, compiledKernel, compiledKernelSize)`.
        get_kernel(
            *const PluginTensorDesc, i32, *const PluginTensorDesc, i32, *mut *const c_char, *mut *mut c_char,
            *mut i32
        ) -> i32;
        /// `setTactic(tactic)`.
        set_tactic(i32) -> i32;
    }

    /// `IPluginV3QuickRuntime`.
    QuickRuntimeSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `setTactic(tactic)`.
        set_tactic(i32) -> i32;
        /// `enqueue(inputDesc, outputDesc, inputs, outputs, inputStrides, outputStrides, nbInputs, nbOutputs,
        /// stream)`.
        enqueue(
            *const PluginTensorDesc, *const PluginTensorDesc, *const *const c_void, *const *mut c_void,
            *const Dims, *const Dims, i32, i32, *mut c_void
        ) -> i32;
        /// `getFieldsToSerialize`.
        get_fields_to_serialize() -> *const PluginFieldCollection;
    }

    /// `ISymExpr`, implemented here, without base and virtual destructor.
    SymExprSlots: extern "C" fn(This), [] {
        /// `getType`.
        get_type() -> PluginArgType;
        /// `getDataType`.
        get_data_type() -> PluginArgDataType;
        /// `getExpr`.
        get_expr() -> *mut c_void;
    }
}

type Get = unsafe extern "C" fn(This) -> This;

/// `false` rejects it.
type Set = unsafe extern "C" fn(This, This) -> bool;

/// A getter and a setter of [`KernelLaunchParamsSlots`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExtentSlots {
    /// Never called.
    pub get: Get,
    /// False if TensorRT rejects the expression.
    pub set: Set,
}

/// `IKernelLaunchParamsImpl`, called by plugins; its virtual destructor comes last.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KernelLaunchParamsSlots {
    /// Grid X, Y, Z, block X, Y, Z, shared memory.
    pub extents: [ExtentSlots; 7],
    /// D1.
    pub destroy: unsafe extern "C" fn(This),
    /// D0.
    pub destroy_and_free: unsafe extern "C" fn(This),
}

slots! {
    /// `ISymExprsImpl`, called by plugins; its virtual destructor comes last.
    SymExprsSlots: extern "C" fn(This), [] {
        /// `getSymExpr(index)`.
        get_sym_expr(i32) -> This;
        /// `setSymExpr(index, symExpr)`.
        set_sym_expr(i32, This) -> bool;
        /// `getNbSymExprs`.
        get_nb_sym_exprs() -> i32;
        /// `setNbSymExprs(count)`.
        set_nb_sym_exprs(i32) -> bool;
        /// D1.
        destroy();
        /// D0.
        destroy_and_free();
    }
}

layout! { size_of::<usize>();
    QuickCreatorSlots = 9 { create_plugin = 4, get_plugin_namespace = 8 };
    QuickBuildSlots = 18 {
        get_output_data_types = 4, get_supported_format_combinations = 8, get_metadata_string = 14,
        get_launch_params = 15, set_tactic = 17
    };
    QuickRuntimeSlots = 7 { enqueue = 5 };
    SymExprSlots = 3 {};
    KernelLaunchParamsSlots = 16 { destroy = 14 };
    ExtentSlots = 2 { set = 1 };
    SymExprsSlots = 6 { set_nb_sym_exprs = 3 };
}
