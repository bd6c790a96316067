//! One slot struct per interface, with slots in the order of NVIDIA's headers.
//!
//! Contains no functions; the thunks are beside their objects ([`crate::plugin`], [`crate::creator`]).
//!
//! A vtable (Itanium C++ ABI) is `offset_to_top, type_info*, slot 0, slot 1, ...`; an object's vptr points at slot 0. A
//! virtual destructor has two slots where it is declared: D1 (destroy) and D0 (destroy and free). Every interface below
//! derives from `IVersionedInterface` without virtual inheritance, so its slots come first.
//!
//! Sources: `NvInferRuntimeBase.h`, `NvInferPluginBase.h` and `NvInferRuntime.h` of TensorRT-RTX 1.3 to 1.7 and
//! Enterprise 11.4, which agree. Quick plugins are in a file of their own.

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

/// A pointer to an interface, C++'s `this`: the address of a vptr.
pub type This = *mut c_void;

/// A slot of a virtual destructor.
type Destructor = unsafe extern "C" fn(This);

/// A vtable with the words before its slots.
#[repr(C)]
#[derive(Debug)]
pub struct VTable<Slots> {
    /// Offset from this vptr to the start of the object, in bytes: zero or negative.
    pub offset_to_top: isize,
    /// Never null: `dynamic_cast` reads it unchecked.
    pub type_info: *const TypeInfo,
    /// The address point.
    pub slots: Slots,
}

impl<Slots> VTable<Slots> {
    /// Returns the vptr of an object with this vtable, derived from the whole vtable so that the words before the slots
    /// are readable through it.
    pub const fn vptr(&'static self) -> *const Slots {
        let whole: *const Self = self;
        // SAFETY: `whole` points at a live vtable, and `slots` is inside it.
        unsafe { &raw const (*whole).slots }
    }
}

slots! {
    /// `IVersionedInterface`, the base of all others.
    VersionedSlots: extern "C" fn(This), [] {
        /// `APILanguage getAPILanguage() const noexcept`
        get_api_language() -> APILanguage;
        /// `InterfaceInfo getInterfaceInfo() const noexcept`
        get_interface_info() -> InterfaceInfo;
        /// D1: destroy.
        destroy();
        /// D0: destroy and free.
        destroy_and_free();
    }

    /// `IPluginCreatorV3One` (`NvInferRuntime.h`).
    CreatorSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `IPluginV3* createPlugin(char const* name, PluginFieldCollection const* fc, TensorRTPhase phase)
        /// noexcept`
        create_plugin(*const c_char, *const PluginFieldCollection, TensorRTPhase) -> This;
        /// `PluginFieldCollection const* getFieldNames() noexcept`
        get_field_names() -> *const PluginFieldCollection;
        /// `char const* getPluginName() const noexcept`
        get_plugin_name() -> *const c_char;
        /// `char const* getPluginVersion() const noexcept`
        get_plugin_version() -> *const c_char;
        /// `char const* getPluginNamespace() const noexcept`
        get_plugin_namespace() -> *const c_char;
    }

    /// `IPluginV3` (`NvInferPluginBase.h`).
    PluginSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept`
        get_capability_interface(crate::raw::PluginCapabilityType) -> This;
        /// `IPluginV3* clone() noexcept`
        clone() -> This;
    }

    /// `IPluginV3OneCore` (`NvInferRuntime.h`).
    CoreSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `char const* getPluginName() const noexcept`
        get_plugin_name() -> *const c_char;
        /// `char const* getPluginVersion() const noexcept`
        get_plugin_version() -> *const c_char;
        /// `char const* getPluginNamespace() const noexcept`
        get_plugin_namespace() -> *const c_char;
    }

    /// `v_2_0::IPluginV3OneBuild`, alias `IPluginV3OneBuildV2` (`NvInferRuntime.h`); the first version ends at
    /// slot 14.
    BuildSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `int32_t configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbInputs, DynamicPluginTensorDesc
        /// const* out, int32_t nbOutputs) noexcept`
        configure_plugin(*const DynamicPluginTensorDesc, i32, *const DynamicPluginTensorDesc, i32) -> i32;
        /// `int32_t getOutputDataTypes(DataType* outputTypes, int32_t nbOutputs, DataType const* inputTypes,
        /// int32_t nbInputs) const noexcept`
        get_output_data_types(*mut DataType, i32, *const DataType, i32) -> i32;
        /// `int32_t getOutputShapes(DimsExprs const* inputs, int32_t nbInputs, DimsExprs const* shapeInputs,
        /// int32_t nbShapeInputs, DimsExprs* outputs, int32_t nbOutputs, IExprBuilder& exprBuilder) noexcept`
        get_output_shapes(
            *const DimsExprs, i32, *const DimsExprs, i32, *mut DimsExprs, i32, *mut IExprBuilder
        ) -> i32;
        /// `bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const* inOut, int32_t nbInputs,
        /// int32_t nbOutputs) noexcept`
        supports_format_combination(i32, *const DynamicPluginTensorDesc, i32, i32) -> bool;
        /// `int32_t getNbOutputs() const noexcept`
        get_nb_outputs() -> i32;
        /// `size_t getWorkspaceSize(DynamicPluginTensorDesc const* inputs, int32_t nbInputs,
        /// DynamicPluginTensorDesc const* outputs, int32_t nbOutputs) const noexcept`
        get_workspace_size(*const DynamicPluginTensorDesc, i32, *const DynamicPluginTensorDesc, i32) -> usize;
        /// `int32_t getValidTactics(int32_t* tactics, int32_t nbTactics) noexcept`
        get_valid_tactics(*mut i32, i32) -> i32;
        /// `int32_t getNbTactics() noexcept`
        get_nb_tactics() -> i32;
        /// `char const* getTimingCacheID() noexcept`
        get_timing_cache_id() -> *const c_char;
        /// `int32_t getFormatCombinationLimit() noexcept`
        get_format_combination_limit() -> i32;
        /// `char const* getMetadataString() noexcept`
        get_metadata_string() -> *const c_char;
        /// `int32_t getAliasedInput(int32_t outputIndex) noexcept`: from version 2 on.
        get_aliased_input(i32) -> i32;
    }

    /// `IPluginV3OneRuntime` (`NvInferRuntime.h`).
    RuntimeSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `int32_t setTactic(int32_t tactic) noexcept`
        set_tactic(i32) -> i32;
        /// `int32_t onShapeChange(PluginTensorDesc const* in, int32_t nbInputs, PluginTensorDesc const* out,
        /// int32_t nbOutputs) noexcept`
        on_shape_change(*const PluginTensorDesc, i32, *const PluginTensorDesc, i32) -> i32;
        /// `int32_t enqueue(PluginTensorDesc const* inputDesc, PluginTensorDesc const* outputDesc, void const*
        /// const* inputs, void* const* outputs, void* workspace, cudaStream_t stream) noexcept`
        enqueue(
            *const PluginTensorDesc, *const PluginTensorDesc, *const *const c_void, *const *mut c_void,
            *mut c_void, *mut c_void
        ) -> i32;
        /// `IPluginV3* attachToContext(IPluginResourceContext* context) noexcept`
        attach_to_context(*mut c_void) -> This;
        /// `PluginFieldCollection const* getFieldsToSerialize() noexcept`
        get_fields_to_serialize() -> *const PluginFieldCollection;
    }

    /// `apiv::VDimensionExpr` (`NvInferImpl.h`), called by plugins. Not `noexcept`.
    DimensionExprSlots: extern "C-unwind" fn(*const c_void), [destroy: Destructor, destroy_and_free: Destructor] {
        /// `bool isConstant() const`
        is_constant() -> bool;
        /// `int64_t getConstantValue() const`
        get_constant_value() -> i64;
        /// `bool isSizeTensor() const`
        is_size_tensor() -> bool;
    }

    /// `apiv::VExprBuilder` (`NvInferImpl.h`), called by plugins. Not `noexcept`.
    ExprBuilderSlots: extern "C-unwind" fn(*const c_void), [destroy: Destructor, destroy_and_free: Destructor] {
        /// `IDimensionExpr const* constant(int64_t value)`
        constant(i64) -> *const IDimensionExpr;
        /// `IDimensionExpr const* operation(DimensionOperation op, IDimensionExpr const& first, IDimensionExpr
        /// const& second)`
        operation(
            crate::raw::DimensionOperation, *const IDimensionExpr, *const IDimensionExpr
        ) -> *const IDimensionExpr;
        /// `IDimensionExpr const* declareSizeTensor(int32_t outputIndex, IDimensionExpr const& opt,
        /// IDimensionExpr const& upper)`
        declare_size_tensor(i32, *const IDimensionExpr, *const IDimensionExpr) -> *const IDimensionExpr;
    }
}

// Slot numbers, so that a reordered field fails to compile.
layout! { size_of::<usize>();
    VersionedSlots = 4 { destroy_and_free = 3 };
    CreatorSlots = 9 { create_plugin = 4 };
    PluginSlots = 6 { clone = 5 };
    CoreSlots = 7 {};
    BuildSlots = 16 { get_workspace_size = 9, get_aliased_input = 15 };
    RuntimeSlots = 9 { enqueue = 6 };
    DimensionExprSlots = 5 {};
    ExprBuilderSlots = 5 {};
    VTable<CoreSlots> = 9 { slots = 2 };
}
