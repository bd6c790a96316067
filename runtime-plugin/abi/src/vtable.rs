//! One slot struct for each interface, in the order of NVIDIA's headers.
//!
//! Owns: slot order and signatures. Field order is load-bearing. Never: no function bodies; the thunks live
//! beside the objects they serve ([`crate::plugin`], [`crate::creator`]).
//!
//! A vtable's image (Itanium C++ ABI) is `offset_to_top, type_info*, slot 0, slot 1, ...`, and an object's
//! vptr points at slot 0. A virtual destructor takes two slots where it is declared: D1 (destroy) and D0
//! (destroy and free). Every interface below derives from `IVersionedInterface` without virtual inheritance,
//! so its slots come first.
//!
//! Sources: `NvInferRuntimeBase.h`, `NvInferPluginBase.h` and `NvInferRuntime.h` of TensorRT-RTX 1.3 to 1.7
//! and Enterprise 11.4, where these interfaces are the same. Those of quick plugins stand in a file of their own
//! with their source.

use std::ffi::{c_char, c_void};

use crate::raw::{
    APILanguage, DataType, DimsExprs, DynamicPluginTensorDesc, IDimensionExpr, IExprBuilder, InterfaceInfo,
    PluginFieldCollection, PluginTensorDesc, TensorRTPhase,
};
use crate::rtti::TypeInfo;

mod quick;

pub use quick::{
    ExtentSlots, KernelLaunchParamsSlots, QuickBuildSlots, QuickCreatorSlots, QuickRuntimeSlots,
    SymExprSlots, SymExprsSlots,
};

/// A pointer to an interface, as C++ passes `this`: the address of a vptr.
pub type This = *mut c_void;

/// A call with the descriptions of inputs and outputs, each with its count.
pub type TensorDescsFn<R> =
    unsafe extern "C" fn(This, *const DynamicPluginTensorDesc, i32, *const DynamicPluginTensorDesc, i32) -> R;

/// The type of `getOutputShapes`.
pub type GetOutputShapes = unsafe extern "C" fn(
    This,
    *const DimsExprs,
    i32,
    *const DimsExprs,
    i32,
    *mut DimsExprs,
    i32,
    *mut IExprBuilder,
) -> i32;

/// A vtable with what stands before its slots.
#[repr(C)]
#[derive(Debug)]
pub struct VTable<Slots> {
    /// Distance from this vptr back to the start of the object, in bytes: zero or negative.
    pub offset_to_top: isize,
    /// Never null: `dynamic_cast` reads it without a check.
    pub type_info: *const TypeInfo,
    /// The address point.
    pub slots: Slots,
}

impl<Slots> VTable<Slots> {
    /// The vptr of an object with this vtable. It is derived from the whole vtable, so that the two words
    /// before the slots may be read through it.
    pub const fn vptr(&'static self) -> *const Slots {
        let whole: *const Self = self;
        // SAFETY: `whole` points at a live vtable, and `slots` lies inside it.
        unsafe { &raw const (*whole).slots }
    }
}

/// `IVersionedInterface`, the base of all others.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct VersionedSlots {
    /// `APILanguage getAPILanguage() const noexcept`
    pub get_api_language: unsafe extern "C" fn(This) -> APILanguage,
    /// `InterfaceInfo getInterfaceInfo() const noexcept`
    pub get_interface_info: unsafe extern "C" fn(This) -> InterfaceInfo,
    /// D1: destroy.
    pub destroy: unsafe extern "C" fn(This),
    /// D0: destroy and free.
    pub destroy_and_free: unsafe extern "C" fn(This),
}

/// `IPluginCreatorV3One` (`NvInferRuntime.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CreatorSlots {
    /// Slots 0 to 3.
    pub versioned: VersionedSlots,
    /// `IPluginV3* createPlugin(char const* name, PluginFieldCollection const* fc, TensorRTPhase phase)
    /// noexcept`
    pub create_plugin:
        unsafe extern "C" fn(This, *const c_char, *const PluginFieldCollection, TensorRTPhase) -> This,
    /// `PluginFieldCollection const* getFieldNames() noexcept`
    pub get_field_names: unsafe extern "C" fn(This) -> *const PluginFieldCollection,
    /// `char const* getPluginName() const noexcept`
    pub get_plugin_name: unsafe extern "C" fn(This) -> *const c_char,
    /// `char const* getPluginVersion() const noexcept`
    pub get_plugin_version: unsafe extern "C" fn(This) -> *const c_char,
    /// `char const* getPluginNamespace() const noexcept`
    pub get_plugin_namespace: unsafe extern "C" fn(This) -> *const c_char,
}

/// `IPluginV3` (`NvInferPluginBase.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PluginSlots {
    /// Slots 0 to 3.
    pub versioned: VersionedSlots,
    /// `IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept`
    pub get_capability_interface: unsafe extern "C" fn(This, crate::raw::PluginCapabilityType) -> This,
    /// `IPluginV3* clone() noexcept`
    pub clone: unsafe extern "C" fn(This) -> This,
}

/// `IPluginV3OneCore` (`NvInferRuntime.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CoreSlots {
    /// Slots 0 to 3.
    pub versioned: VersionedSlots,
    /// `char const* getPluginName() const noexcept`
    pub get_plugin_name: unsafe extern "C" fn(This) -> *const c_char,
    /// `char const* getPluginVersion() const noexcept`
    pub get_plugin_version: unsafe extern "C" fn(This) -> *const c_char,
    /// `char const* getPluginNamespace() const noexcept`
    pub get_plugin_namespace: unsafe extern "C" fn(This) -> *const c_char,
}

/// `v_2_0::IPluginV3OneBuild`, alias `IPluginV3OneBuildV2` (`NvInferRuntime.h`); the first version ends at
/// slot 14.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BuildSlots {
    /// Slots 0 to 3.
    pub versioned: VersionedSlots,
    /// `int32_t configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbInputs, DynamicPluginTensorDesc
    /// const* out, int32_t nbOutputs) noexcept`
    pub configure_plugin: TensorDescsFn<i32>,
    /// `int32_t getOutputDataTypes(DataType* outputTypes, int32_t nbOutputs, DataType const* inputTypes,
    /// int32_t nbInputs) const noexcept`
    pub get_output_data_types: unsafe extern "C" fn(This, *mut DataType, i32, *const DataType, i32) -> i32,
    /// `int32_t getOutputShapes(DimsExprs const* inputs, int32_t nbInputs, DimsExprs const* shapeInputs,
    /// int32_t nbShapeInputs, DimsExprs* outputs, int32_t nbOutputs, IExprBuilder& exprBuilder) noexcept`
    pub get_output_shapes: GetOutputShapes,
    /// `bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const* inOut, int32_t nbInputs,
    /// int32_t nbOutputs) noexcept`
    pub supports_format_combination:
        unsafe extern "C" fn(This, i32, *const DynamicPluginTensorDesc, i32, i32) -> bool,
    /// `int32_t getNbOutputs() const noexcept`
    pub get_nb_outputs: unsafe extern "C" fn(This) -> i32,
    /// `size_t getWorkspaceSize(DynamicPluginTensorDesc const* inputs, int32_t nbInputs,
    /// DynamicPluginTensorDesc const* outputs, int32_t nbOutputs) const noexcept`
    pub get_workspace_size: TensorDescsFn<usize>,
    /// `int32_t getValidTactics(int32_t* tactics, int32_t nbTactics) noexcept`
    pub get_valid_tactics: unsafe extern "C" fn(This, *mut i32, i32) -> i32,
    /// `int32_t getNbTactics() noexcept`
    pub get_nb_tactics: unsafe extern "C" fn(This) -> i32,
    /// `char const* getTimingCacheID() noexcept`
    pub get_timing_cache_id: unsafe extern "C" fn(This) -> *const c_char,
    /// `int32_t getFormatCombinationLimit() noexcept`
    pub get_format_combination_limit: unsafe extern "C" fn(This) -> i32,
    /// `char const* getMetadataString() noexcept`
    pub get_metadata_string: unsafe extern "C" fn(This) -> *const c_char,
    /// `int32_t getAliasedInput(int32_t outputIndex) noexcept`: from version 2 on.
    pub get_aliased_input: unsafe extern "C" fn(This, i32) -> i32,
}

/// `IPluginV3OneRuntime` (`NvInferRuntime.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RuntimeSlots {
    /// Slots 0 to 3.
    pub versioned: VersionedSlots,
    /// `int32_t setTactic(int32_t tactic) noexcept`
    pub set_tactic: unsafe extern "C" fn(This, i32) -> i32,
    /// `int32_t onShapeChange(PluginTensorDesc const* in, int32_t nbInputs, PluginTensorDesc const* out,
    /// int32_t nbOutputs) noexcept`
    pub on_shape_change:
        unsafe extern "C" fn(This, *const PluginTensorDesc, i32, *const PluginTensorDesc, i32) -> i32,
    /// `int32_t enqueue(PluginTensorDesc const* inputDesc, PluginTensorDesc const* outputDesc, void const*
    /// const* inputs, void* const* outputs, void* workspace, cudaStream_t stream) noexcept`
    pub enqueue: unsafe extern "C" fn(
        This,
        *const PluginTensorDesc,
        *const PluginTensorDesc,
        *const *const c_void,
        *const *mut c_void,
        *mut c_void,
        *mut c_void,
    ) -> i32,
    /// `IPluginV3* attachToContext(IPluginResourceContext* context) noexcept`
    pub attach_to_context: unsafe extern "C" fn(This, *mut c_void) -> This,
    /// `PluginFieldCollection const* getFieldsToSerialize() noexcept`
    pub get_fields_to_serialize: unsafe extern "C" fn(This) -> *const PluginFieldCollection,
}

/// `apiv::VDimensionExpr` (`NvInferImpl.h`), called by plugins. Not `noexcept`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DimensionExprSlots {
    /// D1 of `VRoot`.
    pub destroy: unsafe extern "C" fn(This),
    /// D0 of `VRoot`.
    pub destroy_and_free: unsafe extern "C" fn(This),
    /// `bool isConstant() const`
    pub is_constant: unsafe extern "C-unwind" fn(*const c_void) -> bool,
    /// `int64_t getConstantValue() const`
    pub get_constant_value: unsafe extern "C-unwind" fn(*const c_void) -> i64,
    /// `bool isSizeTensor() const`
    pub is_size_tensor: unsafe extern "C-unwind" fn(*const c_void) -> bool,
}

/// `apiv::VExprBuilder` (`NvInferImpl.h`), called by plugins. Not `noexcept`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExprBuilderSlots {
    /// D1 of `VRoot`.
    pub destroy: unsafe extern "C" fn(This),
    /// D0 of `VRoot`.
    pub destroy_and_free: unsafe extern "C" fn(This),
    /// `IDimensionExpr const* constant(int64_t value)`
    pub constant: unsafe extern "C-unwind" fn(*const c_void, i64) -> *const IDimensionExpr,
    /// `IDimensionExpr const* operation(DimensionOperation op, IDimensionExpr const& first, IDimensionExpr
    /// const& second)`
    pub operation: unsafe extern "C-unwind" fn(
        *const c_void,
        crate::raw::DimensionOperation,
        *const IDimensionExpr,
        *const IDimensionExpr,
    ) -> *const IDimensionExpr,
    /// `IDimensionExpr const* declareSizeTensor(int32_t outputIndex, IDimensionExpr const& opt,
    /// IDimensionExpr const& upper)`
    pub declare_size_tensor: unsafe extern "C-unwind" fn(
        *const c_void,
        i32,
        *const IDimensionExpr,
        *const IDimensionExpr,
    ) -> *const IDimensionExpr,
}

/// Bytes of a slot.
const SLOT: usize = size_of::<usize>();

// Slot numbers, so that a reordered field fails to compile.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<VersionedSlots>() == 4 * SLOT);
    assert!(offset_of!(VersionedSlots, destroy_and_free) == 3 * SLOT);
    assert!(size_of::<CreatorSlots>() == 9 * SLOT);
    assert!(offset_of!(CreatorSlots, create_plugin) == 4 * SLOT);
    assert!(size_of::<PluginSlots>() == 6 * SLOT);
    assert!(offset_of!(PluginSlots, clone) == 5 * SLOT);
    assert!(size_of::<CoreSlots>() == 7 * SLOT);
    assert!(size_of::<BuildSlots>() == 16 * SLOT);
    assert!(offset_of!(BuildSlots, get_workspace_size) == 9 * SLOT);
    assert!(offset_of!(BuildSlots, get_aliased_input) == 15 * SLOT);
    assert!(size_of::<RuntimeSlots>() == 9 * SLOT);
    assert!(offset_of!(RuntimeSlots, enqueue) == 6 * SLOT);
    assert!(size_of::<DimensionExprSlots>() == 5 * SLOT);
    assert!(size_of::<ExprBuilderSlots>() == 5 * SLOT);
    assert!(offset_of!(VTable<CoreSlots>, slots) == 2 * SLOT);
};
