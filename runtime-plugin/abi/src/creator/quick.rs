//! Creators of quick plugins.
//!
//! Owns: [`QuickCreator`] and what `IPluginCreatorV3Quick` has of its own (`impl/NvInferPythonPlugin.h`, TensorRT Enterprise 11.4).

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr;

use super::{
    CreatorBase, CreatorKind, call, creator, get_field_names, get_plugin_name, get_plugin_namespace,
    get_plugin_version, read_fields, table, text, versioned,
};
use crate::error::Result;
use crate::fields::Field;
use crate::quick::{self, QuickPlugin};
use crate::raw::{InterfaceInfo, PluginFieldCollection, QuickPluginCreationRequest, TensorRTPhase};
use crate::vtable::{QuickCreatorSlots, This, VTable};

/// What makes quick plugins of one name, version and namespace.
pub trait QuickCreator: CreatorBase {
    /// The plugins it makes.
    type Plugin: QuickPlugin;

    /// Makes a plugin; `name` is the node's and `namespace` the plugin's. `request` says which kind of plugin is wanted: the plugins of
    /// this trait are ahead-of-time ones, so [`QuickPluginCreationRequest::STRICT_JIT`] is one to refuse. An ONNX node's attribute `aot`
    /// decides it: 1 asks for [`QuickPluginCreationRequest::STRICT_AOT`] (seen with TensorRT 10.15).
    fn create(
        &self,
        name: &CStr,
        namespace: &CStr,
        fields: &[Field<'_>],
        phase: TensorRTPhase,
        request: QuickPluginCreationRequest,
    ) -> Result<Self::Plugin>;
}

/// Creators of the quick kind.
pub(super) struct Quick<C>(PhantomData<fn() -> C>);

impl<C: QuickCreator> CreatorKind for Quick<C> {
    type Implementor = C;
    type Slots = QuickCreatorSlots;

    // With the space: it stands so in NVIDIA's header.
    const INFO: InterfaceInfo =
        InterfaceInfo { kind: c"PLUGIN CREATOR_V3QUICK".as_ptr(), major: 1, minor: 0 };
    const VTABLE: &'static VTable<QuickCreatorSlots> = &table(QuickCreatorSlots {
        versioned: versioned::<Self>(),
        create_plugin: create_plugin::<C>,
        get_field_names: get_field_names::<Self>,
        get_plugin_name: get_plugin_name::<Self>,
        get_plugin_version: get_plugin_version::<Self>,
        get_plugin_namespace: get_plugin_namespace::<Self>,
    });
}

unsafe extern "C" fn create_plugin<C: QuickCreator>(
    this: This,
    name: *const c_char,
    namespace: *const c_char,
    fields: *const PluginFieldCollection,
    phase: TensorRTPhase,
    request: QuickPluginCreationRequest,
) -> This {
    // SAFETY: TensorRT passes one of the library's creators.
    let creator = unsafe { creator::<Quick<C>>(this) };
    call::<Quick<C>, _>(creator, ptr::null_mut(), |creator| {
        // SAFETY: texts, collection and fields are TensorRT's and outlive the call; nulls are checked.
        let (name, namespace, fields) =
            unsafe { (text(name), text(namespace), read_fields(fields, creator.fields().are_needed)?) };
        creator.create(name, namespace, &fields, phase, request).map(quick::into_raw)
    })
}
