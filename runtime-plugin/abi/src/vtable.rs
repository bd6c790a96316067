//! One slot struct per interface, in the headers' order, with NVIDIA's names in snake case; references are pointers.
//!
//! A vtable (Itanium C++ ABI) is `offset_to_top, type_info*, slot 0, slot 1, ...`; a vptr points at slot 0. A virtual
//! destructor has two slots: D1 (destroy), D0 (destroy and free). Non-virtual bases come first.
//!
//! Sources: the releases' `NvInferRuntimeBase.h`, `NvInferPluginBase.h` and `NvInferRuntime.h`.

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

/// A pointer to an interface, C++'s `this`.
pub type This = *mut c_void;

type Destructor = unsafe extern "C" fn(This);

/// A vtable with the words before its slots.
#[repr(C)]
#[derive(Debug)]
pub struct VTable<Slots> {
    /// Offset to the object's start in bytes, at most 0.
    pub offset_to_top: isize,
    /// Never null: `dynamic_cast` reads it unchecked.
    pub type_info: *const TypeInfo,
    /// Address point.
    pub slots: Slots,
}

impl<Slots> VTable<Slots> {
    /// Returns the vptr, also valid for the words before the slots.
    pub const fn vptr(&'static self) -> *const Slots {
        let whole: *const Self = self;
        // SAFETY: `slots` is inside the live vtable.
        unsafe { &raw const (*whole).slots }
    }
}

slots! {
    /// `IVersionedInterface`, the base of all others.
    VersionedSlots: extern "C" fn(This), [] {
        /// `getAPILanguage`.
        get_api_language() -> APILanguage;
        /// `getInterfaceInfo`.
        get_interface_info() -> InterfaceInfo;
        /// D1.
        destroy();
        /// D0.
        destroy_and_free();
    }

    /// `IPluginCreatorV3One` (`NvInferRuntime.h`).
    CreatorSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `createPlugin(name, fc, phase)`.
        create_plugin(*const c_char, *const PluginFieldCollection, TensorRTPhase) -> This;
        /// `getFieldNames`.
        get_field_names() -> *const PluginFieldCollection;
        /// `getPluginName`.
        get_plugin_name() -> *const c_char;
        /// `getPluginVersion`.
        get_plugin_version() -> *const c_char;
        /// `getPluginNamespace`.
        get_plugin_namespace() -> *const c_char;
    }

    /// `IPluginV3` (`NvInferPluginBase.h`).
    PluginSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `getCapabilityInterface(type)`.
        get_capability_interface(crate::raw::PluginCapabilityType) -> This;
        /// `clone`.
        clone() -> This;
    }

    /// `IPluginV3OneCore` (`NvInferRuntime.h`).
    CoreSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `getPluginName`.
        get_plugin_name() -> *const c_char;
        /// `getPluginVersion`.
        get_plugin_version() -> *const c_char;
        /// `getPluginNamespace`.
        get_plugin_namespace() -> *const c_char;
    }

    /// `v_2_0::IPluginV3OneBuild`, alias `IPluginV3OneBuildV2` (`NvInferRuntime.h`); version 1 ends at slot 14.
    BuildSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `configurePlugin(in, nbInputs, out, nbOutputs)`.
        configure_plugin(*const DynamicPluginTensorDesc, i32, *const DynamicPluginTensorDesc, i32) -> i32;
        /// `getOutputDataTypes(outputTypes, nbOutputs, inputTypes, nbInputs)`.
        get_output_data_types(*mut DataType, i32, *const DataType, i32) -> i32;
        /// `getOutputShapes(inputs, nbInputs, shapeInputs, nbShapeInputs, outputs, nbOutputs, exprBuilder)`.
        get_output_shapes(
            *const DimsExprs, i32, *const DimsExprs, i32, *mut DimsExprs, i32, *mut IExprBuilder
        ) -> i32;
        /// `supportsFormatCombination(pos, inOut, nbInputs, nbOutputs)`.
        supports_format_combination(i32, *const DynamicPluginTensorDesc, i32, i32) -> bool;
        /// `getNbOutputs`.
        get_nb_outputs() -> i32;
        /// `getWorkspaceSize(inputs, nbInputs, outputs, nbOutputs)`.
        get_workspace_size(*const DynamicPluginTensorDesc, i32, *const DynamicPluginTensorDesc, i32) -> usize;
        /// `getValidTactics(tactics, nbTactics)`.
        get_valid_tactics(*mut i32, i32) -> i32;
        /// `getNbTactics`.
        get_nb_tactics() -> i32;
        /// `getTimingCacheID`.
        get_timing_cache_id() -> *const c_char;
        /// `getFormatCombinationLimit`.
        get_format_combination_limit() -> i32;
        /// `getMetadataString`.
        get_metadata_string() -> *const c_char;
        /// `getAliasedInput(outputIndex)`, from version 2 on.
        get_aliased_input(i32) -> i32;
    }

    /// `IPluginV3OneRuntime` (`NvInferRuntime.h`).
    RuntimeSlots: extern "C" fn(This), [versioned: VersionedSlots] {
        /// `setTactic(tactic)`.
        set_tactic(i32) -> i32;
        /// `onShapeChange(in, nbInputs, out, nbOutputs)`.
        on_shape_change(*const PluginTensorDesc, i32, *const PluginTensorDesc, i32) -> i32;
        /// `enqueue(inputDesc, outputDesc, inputs, outputs, workspace, stream)`.
        enqueue(
            *const PluginTensorDesc, *const PluginTensorDesc, *const *const c_void, *const *mut c_void,
            *mut c_void, *mut c_void
        ) -> i32;
        /// `attachToContext(context)`.
        attach_to_context(*mut c_void) -> This;
        /// `getFieldsToSerialize`.
        get_fields_to_serialize() -> *const PluginFieldCollection;
    }

    /// `apiv::VDimensionExpr` (`NvInferImpl.h`), called by plugins. Not `noexcept`.
    DimensionExprSlots: extern "C-unwind" fn(*const c_void), [destroy: Destructor, destroy_and_free: Destructor] {
        /// `isConstant`.
        is_constant() -> bool;
        /// `getConstantValue`.
        get_constant_value() -> i64;
        /// `isSizeTensor`.
        is_size_tensor() -> bool;
    }

    /// `apiv::VExprBuilder` (`NvInferImpl.h`), called by plugins. Not `noexcept`.
    ExprBuilderSlots: extern "C-unwind" fn(*const c_void), [destroy: Destructor, destroy_and_free: Destructor] {
        /// `constant(value)`.
        constant(i64) -> *const IDimensionExpr;
        /// `operation(op, first, second)`.
        operation(
            crate::raw::DimensionOperation, *const IDimensionExpr, *const IDimensionExpr
        ) -> *const IDimensionExpr;
        /// `declareSizeTensor(outputIndex, opt, upper)`.
        declare_size_tensor(i32, *const IDimensionExpr, *const IDimensionExpr) -> *const IDimensionExpr;
    }
}

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
