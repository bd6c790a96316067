//! The V3One kind of plugin object.
//!
//! Owns: which interfaces it serves, the counts between `onShapeChange` and `enqueue`, and what a failure to attach answers. Never: no
//! life cycle; that is [`crate::object`]'s.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};

use super::{Plugin, build, runtime};
use crate::error::Error;
use crate::logger;
use crate::object::{self, Build, Family, Object, Runtime, info, release, table, versioned};
use crate::raw::InterfaceInfo;
use crate::thunk::caught;
use crate::vtable::{BuildSlots, RuntimeSlots, This, VTable};

/// A count that is not known because `onShapeChange` has not been called.
const UNKNOWN: i32 = -1;

/// Plugins of the kind V3One.
pub(super) struct One<P>(PhantomData<fn() -> P>);

/// A plugin of this kind as C++ sees it.
pub(super) type PluginObject<P> = Object<One<P>>;

/// Tensors at the last `onShapeChange`: `enqueue` passes arrays without their lengths.
pub(super) struct Counts {
    inputs: AtomicI32,
    outputs: AtomicI32,
}

impl Counts {
    fn new(inputs: i32, outputs: i32) -> Self {
        Self { inputs: AtomicI32::new(inputs), outputs: AtomicI32::new(outputs) }
    }

    /// Remembers how many tensors the arrays of the next `enqueue` hold.
    pub(super) fn set(&self, inputs: i32, outputs: i32) {
        // Relaxed: TensorRT itself orders `onShapeChange` before `enqueue` of the same object.
        self.inputs.store(inputs, Ordering::Relaxed);
        self.outputs.store(outputs, Ordering::Relaxed);
    }

    /// The counts of the last `onShapeChange`.
    #[inline]
    pub(super) fn get(&self) -> Result<(i32, i32), Error> {
        let counts = (self.inputs.load(Ordering::Relaxed), self.outputs.load(Ordering::Relaxed));
        if counts.0 < 0 || counts.1 < 0 {
            return Err(Error::new(Error::INVALID_STATE, "enqueue was called before onShapeChange"));
        }
        Ok(counts)
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self::new(UNKNOWN, UNKNOWN)
    }
}

/// Returns the version of the build interface for the full TensorRT that calls. Version 2, `IPluginV3OneBuildV2`, makes TensorRT
/// call `getAliasedInput`. Full TensorRT has it from 10.3 on, and all releases of TensorRT-RTX have it; before it there is version 1,
/// where outputs are never aliased.
fn build_version(full: Option<i32>) -> i32 {
    if full.is_some_and(|version| version < 100_300) { 1 } else { 2 }
}

#[cfg(test)]
#[test]
fn the_build_interface_is_one_that_tensorrt_knows() {
    let versions = [None, Some(100_000), Some(100_201), Some(100_300), Some(110_400)].map(build_version);
    assert_eq!(versions, [2, 1, 1, 2, 2]);
}

impl<P: Plugin> Family for One<P> {
    type Implementor = P;
    type Kept = Counts;
    type BuildSlots = BuildSlots;
    type RuntimeSlots = RuntimeSlots;

    const CORE_INFO: InterfaceInfo = info(c"PLUGIN_V3ONE_CORE", 1);
    const RUNTIME_INFO: InterfaceInfo = info(c"PLUGIN_V3ONE_RUNTIME", 1);
    const BUILD: &'static VTable<BuildSlots> =
        &table::<Build, _>(build::slots::<P>(versioned::<Self, Build>()));
    const RUNTIME: &'static VTable<RuntimeSlots> =
        &table::<Runtime, _>(runtime::slots::<P>(versioned::<Self, Runtime>()));

    fn build_info() -> InterfaceInfo {
        info(c"PLUGIN_V3ONE_BUILD", build_version(logger::caller().full_version()))
    }

    fn kept_by_clone(kept: &Counts) -> Counts {
        kept.get().map_or_else(|_| Counts::default(), |(inputs, outputs)| Counts::new(inputs, outputs))
    }
}

/// A new object for a context, or null where the implementor says that TensorRT can take it.
pub(super) fn attach<P: Plugin>(object: &PluginObject<P>) -> This {
    let tolerates_null =
        caught(|| Ok(object.implementor.as_ref().is_some_and(Plugin::tolerates_null_attach)))
            .unwrap_or(false);
    let failure = |_: &Error| {
        if tolerates_null {
            std::ptr::null_mut()
        } else {
            release(PluginObject::<P>::boxed(None, Counts::default()))
        }
    };
    object.call(failure, |implementor| implementor.attach_to_context().map(into_raw))
}

/// Hands a plugin over to C++: an `IPluginV3*`, freed through its D0.
pub fn into_raw<P: Plugin>(implementor: P) -> This {
    object::into_raw::<One<P>>(implementor)
}

/// The `cudaStream_t` and the workspace need no type of their own here.
pub(super) type Opaque = *mut c_void;
