//! The slots of quick plugins' interfaces.
//!
//! Owns: slot order and signatures, as [`super`] does for the other interfaces.
//!
//! Source: `impl/NvInferPythonPlugin.h` of TensorRT Enterprise 11.4. No header of TensorRT-RTX (1.3 to 1.7) has it. It says of itself
//! that it serves NVIDIA's Python module and follows no semantic versioning.

use std::ffi::{c_char, c_void};

use super::{GetOutputShapes, SLOT, TensorDescsFn, This, VersionedSlots};
use crate::raw::{
    DataType, Dims, DimsExprs, DynamicPluginTensorDesc, IExprBuilder, IKernelLaunchParams, ISymExprs,
    PluginArgDataType, PluginArgType, PluginFieldCollection, PluginTensorDesc, QuickPluginCreationRequest,
    TensorRTPhase,
};

/// `IPluginCreatorV3Quick`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct QuickCreatorSlots {
    /// Slots 0 to 3. The virtual destructor that the interface declares once more takes its base's.
    pub versioned: VersionedSlots,
    /// `IPluginV3* createPlugin(char const* name, char const* nspace, PluginFieldCollection const* fc, TensorRTPhase phase,
    /// QuickPluginCreationRequest quickPluginCreationRequest) noexcept`
    pub create_plugin: unsafe extern "C" fn(
        This,
        *const c_char,
        *const c_char,
        *const PluginFieldCollection,
        TensorRTPhase,
        QuickPluginCreationRequest,
    ) -> This,
    /// `PluginFieldCollection const* getFieldNames() noexcept`
    pub get_field_names: unsafe extern "C" fn(This) -> *const PluginFieldCollection,
    /// `char const* getPluginName() const noexcept`
    pub get_plugin_name: unsafe extern "C" fn(This) -> *const c_char,
    /// `char const* getPluginVersion() const noexcept`
    pub get_plugin_version: unsafe extern "C" fn(This) -> *const c_char,
    /// `char const* getPluginNamespace() const noexcept`
    pub get_plugin_namespace: unsafe extern "C" fn(This) -> *const c_char,
}

/// `IPluginV3QuickAOTBuild`: `IPluginV3QuickBuild` ends at slot 14, and what an ahead-of-time plugin adds follows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct QuickBuildSlots {
    /// Slots 0 to 3.
    pub versioned: VersionedSlots,
    /// `int32_t getOutputDataTypes(DataType* outputTypes, int32_t nbOutputs, DataType const* inputTypes, int32_t const* inputRanks,
    /// int32_t nbInputs) const noexcept`
    pub get_output_data_types:
        unsafe extern "C" fn(This, *mut DataType, i32, *const DataType, *const i32, i32) -> i32,
    /// `int32_t getOutputShapes(DimsExprs const* inputs, int32_t nbInputs, DimsExprs const* shapeInputs, int32_t nbShapeInputs,
    /// DimsExprs* outputs, int32_t nbOutputs, IExprBuilder& exprBuilder) noexcept`
    pub get_output_shapes: GetOutputShapes,
    /// `int32_t configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbInputs, DynamicPluginTensorDesc const* out, int32_t
    /// nbOutputs) noexcept`
    pub configure_plugin: TensorDescsFn<i32>,
    /// `int32_t getNbSupportedFormatCombinations(DynamicPluginTensorDesc const* inOut, int32_t nbInputs, int32_t nbOutputs) noexcept`
    pub get_nb_supported_format_combinations:
        unsafe extern "C" fn(This, *const DynamicPluginTensorDesc, i32, i32) -> i32,
    /// `int32_t getSupportedFormatCombinations(DynamicPluginTensorDesc const* inOut, int32_t nbInputs, int32_t nbOutputs,
    /// PluginTensorDesc* supportedCombinations, int32_t nbFormatCombinations) noexcept`
    pub get_supported_format_combinations: unsafe extern "C" fn(
        This,
        *const DynamicPluginTensorDesc,
        i32,
        i32,
        *mut PluginTensorDesc,
        i32,
    ) -> i32,
    /// `int32_t getNbOutputs() const noexcept`
    pub get_nb_outputs: unsafe extern "C" fn(This) -> i32,
    /// `int32_t getAliasedInput(int32_t outputIndex) noexcept`
    pub get_aliased_input: unsafe extern "C" fn(This, i32) -> i32,
    /// `int32_t getValidTactics(int32_t* tactics, int32_t nbTactics) noexcept`
    pub get_valid_tactics: unsafe extern "C" fn(This, *mut i32, i32) -> i32,
    /// `int32_t getNbTactics() noexcept`
    pub get_nb_tactics: unsafe extern "C" fn(This) -> i32,
    /// `char const* getTimingCacheID() noexcept`
    pub get_timing_cache_id: unsafe extern "C" fn(This) -> *const c_char,
    /// `char const* getMetadataString() noexcept`
    pub get_metadata_string: unsafe extern "C" fn(This) -> *const c_char,
    /// `int32_t getLaunchParams(DimsExprs const* inputs, DynamicPluginTensorDesc const* inOut, int32_t nbInputs, int32_t nbOutputs,
    /// IKernelLaunchParams* launchParams, ISymExprs* extraArgs, IExprBuilder& exprBuilder) noexcept`: from here on of ahead-of-time
    /// plugins alone.
    pub get_launch_params: unsafe extern "C" fn(
        This,
        *const DimsExprs,
        *const DynamicPluginTensorDesc,
        i32,
        i32,
        *mut IKernelLaunchParams,
        *mut ISymExprs,
        *mut IExprBuilder,
    ) -> i32,
    /// `int32_t getKernel(PluginTensorDesc const* in, int32_t nbInputs, PluginTensorDesc const* out, int32_t nbOutputs, const char**
    /// kernelName, char** compiledKernel, int32_t* compiledKernelSize) noexcept`
    pub get_kernel: unsafe extern "C" fn(
        This,
        *const PluginTensorDesc,
        i32,
        *const PluginTensorDesc,
        i32,
        *mut *const c_char,
        *mut *mut c_char,
        *mut i32,
    ) -> i32,
    /// `int32_t setTactic(int32_t tactic) noexcept`
    pub set_tactic: unsafe extern "C" fn(This, i32) -> i32,
}

/// `IPluginV3QuickRuntime`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct QuickRuntimeSlots {
    /// Slots 0 to 3.
    pub versioned: VersionedSlots,
    /// `int32_t setTactic(int32_t tactic) noexcept`
    pub set_tactic: unsafe extern "C" fn(This, i32) -> i32,
    /// `int32_t enqueue(PluginTensorDesc const* inputDesc, PluginTensorDesc const* outputDesc, void const* const* inputs, void* const*
    /// outputs, Dims const* inputStrides, Dims const* outputStrides, int32_t nbInputs, int32_t nbOutputs, cudaStream_t stream) noexcept`
    pub enqueue: unsafe extern "C" fn(
        This,
        *const PluginTensorDesc,
        *const PluginTensorDesc,
        *const *const c_void,
        *const *mut c_void,
        *const Dims,
        *const Dims,
        i32,
        i32,
        *mut c_void,
    ) -> i32,
    /// `PluginFieldCollection const* getFieldsToSerialize() noexcept`
    pub get_fields_to_serialize: unsafe extern "C" fn(This) -> *const PluginFieldCollection,
}

/// `ISymExpr`, implemented here: no base and no virtual destructor, so nobody deletes one through its vtable.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SymExprSlots {
    /// `PluginArgType getType() const noexcept`
    pub get_type: unsafe extern "C" fn(This) -> PluginArgType,
    /// `PluginArgDataType getDataType() const noexcept`
    pub get_data_type: unsafe extern "C" fn(This) -> PluginArgDataType,
    /// `void* getExpr() noexcept`
    pub get_expr: unsafe extern "C" fn(This) -> *mut c_void,
}

/// Reads a launch parameter: an `ISymExpr*`.
type Get = unsafe extern "C" fn(This) -> This;

/// Sets a launch parameter to an `ISymExpr*`; `false` refuses it.
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

/// `IKernelLaunchParamsImpl`, called by plugins. The virtual destructor comes last, because the class declares it last.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KernelLaunchParamsSlots {
    /// The getters and setters of grid X, Y and Z, block X, Y and Z, and shared memory: `ISymExpr* getGridX()`, `bool setGridX(ISymExpr*)`.
    pub extents: [ExtentSlots; 7],
    /// D1.
    pub destroy: unsafe extern "C" fn(This),
    /// D0.
    pub destroy_and_free: unsafe extern "C" fn(This),
}

/// `ISymExprsImpl`, called by plugins. The virtual destructor comes last, because the class declares it last.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SymExprsSlots {
    /// `ISymExpr* getSymExpr(int32_t index) const noexcept`
    pub get_sym_expr: unsafe extern "C" fn(This, i32) -> This,
    /// `bool setSymExpr(int32_t index, ISymExpr* symExpr) noexcept`
    pub set_sym_expr: unsafe extern "C" fn(This, i32, This) -> bool,
    /// `int32_t getNbSymExprs() const noexcept`
    pub get_nb_sym_exprs: unsafe extern "C" fn(This) -> i32,
    /// `bool setNbSymExprs(int32_t count) noexcept`
    pub set_nb_sym_exprs: unsafe extern "C" fn(This, i32) -> bool,
    /// D1.
    pub destroy: unsafe extern "C" fn(This),
    /// D0.
    pub destroy_and_free: unsafe extern "C" fn(This),
}

// Slot numbers, so that a reordered field fails to compile.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<QuickCreatorSlots>() == 9 * SLOT);
    assert!(offset_of!(QuickCreatorSlots, create_plugin) == 4 * SLOT);
    assert!(offset_of!(QuickCreatorSlots, get_plugin_namespace) == 8 * SLOT);
    assert!(size_of::<QuickBuildSlots>() == 18 * SLOT);
    assert!(offset_of!(QuickBuildSlots, get_output_data_types) == 4 * SLOT);
    assert!(offset_of!(QuickBuildSlots, get_supported_format_combinations) == 8 * SLOT);
    assert!(offset_of!(QuickBuildSlots, get_metadata_string) == 14 * SLOT);
    assert!(offset_of!(QuickBuildSlots, get_launch_params) == 15 * SLOT);
    assert!(offset_of!(QuickBuildSlots, set_tactic) == 17 * SLOT);
    assert!(size_of::<QuickRuntimeSlots>() == 7 * SLOT);
    assert!(offset_of!(QuickRuntimeSlots, enqueue) == 5 * SLOT);
    assert!(size_of::<SymExprSlots>() == 3 * SLOT);
    assert!(size_of::<KernelLaunchParamsSlots>() == 16 * SLOT);
    assert!(size_of::<ExtentSlots>() == 2 * SLOT && offset_of!(ExtentSlots, set) == SLOT);
    assert!(offset_of!(KernelLaunchParamsSlots, destroy) == 14 * SLOT);
    assert!(size_of::<SymExprsSlots>() == 6 * SLOT);
    assert!(offset_of!(SymExprsSlots, set_nb_sym_exprs) == 3 * SLOT);
};
