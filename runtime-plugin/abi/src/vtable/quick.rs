//! The slots of quick plugins' interfaces, as in [`super`].
//!
//! Source: `impl/NvInferPythonPlugin.h` of TensorRT Enterprise 11.4, absent from TensorRT-RTX (1.3 to 1.7). It states
//! that it serves NVIDIA's Python module, without semantic versioning.

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
        /// `IPluginV3* createPlugin(char const* name, char const* nspace, PluginFieldCollection const* fc, TensorRTPhase phase,
        /// QuickPluginCreationRequest quickPluginCreationRequest) noexcept`
        create_plugin(
            *const c_char, *const c_char, *const PluginFieldCollection, TensorRTPhase,
            QuickPluginCreationRequest
        ) -> This;
        /// `PluginFieldCollection const* getFieldNames() noexcept`
        get_field_names() -> *const PluginFieldCollection;
        /// `char const* getPluginName() const noexcept`
        get_plugin_name() -> *const c_char;
        /// `char const* getPluginVersion() const noexcept`
        get_plugin_version() -> *const c_char;
        /// `char const* getPluginNamespace() const noexcept`
        get_plugin_namespace() -> *const c_char;
    }

    /// `IPluginV3QuickAOTBuild`: `IPluginV3QuickBuild` ends at slot 14, followed by the ahead-of-time slots.
    QuickBuildSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `int32_t getOutputDataTypes(DataType* outputTypes, int32_t nbOutputs, DataType const* inputTypes, int32_t const* inputRanks,
        /// int32_t nbInputs) const noexcept`
        get_output_data_types(*mut DataType, i32, *const DataType, *const i32, i32) -> i32;
        /// `int32_t getOutputShapes(DimsExprs const* inputs, int32_t nbInputs, DimsExprs const* shapeInputs, int32_t nbShapeInputs,
        /// DimsExprs* outputs, int32_t nbOutputs, IExprBuilder& exprBuilder) noexcept`
        get_output_shapes(
            *const DimsExprs, i32, *const DimsExprs, i32, *mut DimsExprs, i32, *mut IExprBuilder
        ) -> i32;
        /// `int32_t configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbInputs, DynamicPluginTensorDesc const* out, int32_t
        /// nbOutputs) noexcept`
        configure_plugin(*const DynamicPluginTensorDesc, i32, *const DynamicPluginTensorDesc, i32) -> i32;
        /// `int32_t getNbSupportedFormatCombinations(DynamicPluginTensorDesc const* inOut, int32_t nbInputs, int32_t nbOutputs) noexcept`
        get_nb_supported_format_combinations(*const DynamicPluginTensorDesc, i32, i32) -> i32;
        /// `int32_t getSupportedFormatCombinations(DynamicPluginTensorDesc const* inOut, int32_t nbInputs, int32_t nbOutputs,
        /// PluginTensorDesc* supportedCombinations, int32_t nbFormatCombinations) noexcept`
        get_supported_format_combinations(
            *const DynamicPluginTensorDesc, i32, i32, *mut PluginTensorDesc, i32
        ) -> i32;
        /// `int32_t getNbOutputs() const noexcept`
        get_nb_outputs() -> i32;
        /// `int32_t getAliasedInput(int32_t outputIndex) noexcept`
        get_aliased_input(i32) -> i32;
        /// `int32_t getValidTactics(int32_t* tactics, int32_t nbTactics) noexcept`
        get_valid_tactics(*mut i32, i32) -> i32;
        /// `int32_t getNbTactics() noexcept`
        get_nb_tactics() -> i32;
        /// `char const* getTimingCacheID() noexcept`
        get_timing_cache_id() -> *const c_char;
        /// `char const* getMetadataString() noexcept`
        get_metadata_string() -> *const c_char;
        /// `int32_t getLaunchParams(DimsExprs const* inputs, DynamicPluginTensorDesc const* inOut, int32_t nbInputs,
        /// int32_t nbOutputs, IKernelLaunchParams* launchParams, ISymExprs* extraArgs, IExprBuilder& exprBuilder)
        /// noexcept`: the first ahead-of-time slot.
        get_launch_params(
            *const DimsExprs, *const DynamicPluginTensorDesc, i32, i32, *mut IKernelLaunchParams,
            *mut ISymExprs, *mut IExprBuilder
        ) -> i32;
        /// `int32_t getKernel(PluginTensorDesc const* in, int32_t nbInputs, PluginTensorDesc const* out, int32_t nbOutputs, const char**
        /// kernelName, char** compiledKernel, int32_t* compiledKernelSize) noexcept`
        get_kernel(
            *const PluginTensorDesc, i32, *const PluginTensorDesc, i32, *mut *const c_char, *mut *mut c_char,
            *mut i32
        ) -> i32;
        /// `int32_t setTactic(int32_t tactic) noexcept`
        set_tactic(i32) -> i32;
    }

    /// `IPluginV3QuickRuntime`.
    QuickRuntimeSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `int32_t setTactic(int32_t tactic) noexcept`
        set_tactic(i32) -> i32;
        /// `int32_t enqueue(PluginTensorDesc const* inputDesc, PluginTensorDesc const* outputDesc, void const* const* inputs, void* const*
        /// outputs, Dims const* inputStrides, Dims const* outputStrides, int32_t nbInputs, int32_t nbOutputs, cudaStream_t stream) noexcept`
        enqueue(
            *const PluginTensorDesc, *const PluginTensorDesc, *const *const c_void, *const *mut c_void,
            *const Dims, *const Dims, i32, i32, *mut c_void
        ) -> i32;
        /// `PluginFieldCollection const* getFieldsToSerialize() noexcept`
        get_fields_to_serialize() -> *const PluginFieldCollection;
    }

    /// `ISymExpr`, implemented here: no base and no virtual destructor.
    SymExprSlots: extern "C" fn(This), [] {
        /// `PluginArgType getType() const noexcept`
        get_type() -> PluginArgType;
        /// `PluginArgDataType getDataType() const noexcept`
        get_data_type() -> PluginArgDataType;
        /// `void* getExpr() noexcept`
        get_expr() -> *mut c_void;
    }
}

/// Returns a launch parameter: an `ISymExpr*`.
type Get = unsafe extern "C" fn(This) -> This;

/// Sets a launch parameter to an `ISymExpr*`; `false` rejects it.
type Set = unsafe extern "C" fn(This, This) -> bool;

/// A getter and a setter of [`KernelLaunchParamsSlots`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExtentSlots {
    /// Never called.
    pub get: Get,
    /// False if TensorRT does not accept the expression.
    pub set: Set,
}

/// `IKernelLaunchParamsImpl`, called by plugins. The class declares its virtual destructor last.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KernelLaunchParamsSlots {
    /// Grid X, Y and Z, block X, Y and Z, and shared memory: `ISymExpr* getGridX()`, `bool setGridX(ISymExpr*)`.
    pub extents: [ExtentSlots; 7],
    /// D1.
    pub destroy: unsafe extern "C" fn(This),
    /// D0.
    pub destroy_and_free: unsafe extern "C" fn(This),
}

slots! {
    /// `ISymExprsImpl`, called by plugins. The class declares its virtual destructor last.
    SymExprsSlots: extern "C" fn(This), [] {
        /// `ISymExpr* getSymExpr(int32_t index) const noexcept`
        get_sym_expr(i32) -> This;
        /// `bool setSymExpr(int32_t index, ISymExpr* symExpr) noexcept`
        set_sym_expr(i32, This) -> bool;
        /// `int32_t getNbSymExprs() const noexcept`
        get_nb_sym_exprs() -> i32;
        /// `bool setNbSymExprs(int32_t count) noexcept`
        set_nb_sym_exprs(i32) -> bool;
        /// D1.
        destroy();
        /// D0.
        destroy_and_free();
    }
}

// Slot numbers, so that a reordered field fails to compile.
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
