//! The quick kind of plugin object.
//!
//! Owns: which interfaces it serves. Never: no life cycle; that is [`crate::object`]'s.

use std::marker::PhantomData;

use super::launch::SymExprs;
use super::{QuickPlugin, build, runtime};
use crate::object::{self, Build, Family, Object, Runtime, info, table, versioned};
use crate::raw::InterfaceInfo;
use crate::vtable::{QuickBuildSlots, QuickRuntimeSlots, This, VTable};

/// Plugins of the quick kind, ahead of time.
pub(super) struct Quick<P>(PhantomData<fn() -> P>);

/// A plugin of this kind as C++ sees it.
pub(super) type QuickObject<P> = Object<Quick<P>>;

impl<P: QuickPlugin> Family for Quick<P> {
    type Implementor = P;
    type Kept = SymExprs;
    type BuildSlots = QuickBuildSlots;
    type RuntimeSlots = QuickRuntimeSlots;

    const CORE_INFO: InterfaceInfo = info(c"PLUGIN_V3QUICK_CORE", 1);
    const RUNTIME_INFO: InterfaceInfo = info(c"PLUGIN_V3QUICK_RUNTIME", 1);
    const BUILD: &'static VTable<QuickBuildSlots> =
        &table::<Build, _>(build::slots::<P>(versioned::<Self, Build>()));
    const RUNTIME: &'static VTable<QuickRuntimeSlots> =
        &table::<Runtime, _>(runtime::slots::<P>(versioned::<Self, Runtime>()));

    /// By its kind TensorRT knows that the slots of ahead-of-time plugins follow.
    fn build_info() -> InterfaceInfo {
        info(c"PLUGIN_V3QUICKAOT_BUILD", 1)
    }

    /// Expressions belong to the object that handed them over.
    fn kept_by_clone(_kept: &SymExprs) -> SymExprs {
        SymExprs::default()
    }
}

/// Hands a plugin over to C++: an `IPluginV3*`, freed through its D0.
pub fn into_raw<P: QuickPlugin>(implementor: P) -> This {
    object::into_raw::<Quick<P>>(implementor)
}
