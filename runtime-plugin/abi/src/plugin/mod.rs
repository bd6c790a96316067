//! A plugin's safe trait, the object with four vptrs behind it, and its thunks.

mod build;
mod runtime;
#[cfg(test)]
mod tests;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Error, Result};
use crate::fields::FieldSet;
use crate::logger;
use crate::object::{self, Build, Object, PluginBase, PluginKind, Runtime, info, release, table, versioned};
use crate::raw::{DataType, DynamicPluginTensorDesc, InterfaceInfo, PluginTensorDesc};
use crate::thunk::caught;
use crate::vtable::{BuildSlots, RuntimeSlots, This, VTable};

/// A plugin that an engine runs.
pub trait Plugin: PluginBase {
    /// Sets each output's type. An unset output (`DataType(-1)`) is an error.
    fn output_types(&self, inputs: &[DataType], outputs: &mut [DataType]) -> Result<()>;

    /// Returns whether type and format at `position` are supported, given those before it. `in_out` holds inputs, then
    /// outputs; later entries are undefined.
    fn supports(&self, position: usize, in_out: &[DynamicPluginTensorDesc], input_count: usize) -> bool;

    /// Returns the workspace in bytes for the whole profile; `opt` may be -1. An error drops the format combination.
    fn workspace_bytes(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<usize> {
        let _ = (inputs, outputs);
        Ok(0)
    }

    /// Returns the maximum format combinations to time.
    fn format_combination_limit(&self) -> i32 {
        100
    }

    /// Sets concrete shapes. TensorRT-RTX calls it before every enqueue.
    fn on_shape_change(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> Result<()>;

    /// Queues the work. The slices match the last [`on_shape_change`](Self::on_shape_change).
    ///
    /// # Safety
    /// Until the work has run, pointers lead to device memory of the described tensors (host memory for shape inputs),
    /// `workspace` to the requested bytes, and `stream` is a live `CUstream`.
    #[allow(clippy::too_many_arguments)]
    unsafe fn enqueue(
        &self,
        input_descs: &[PluginTensorDesc],
        output_descs: &[PluginTensorDesc],
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        workspace: *mut c_void,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Returns an execution context's object. Must succeed without a driver, as in builds.
    fn attach_to_context(&self) -> Result<Self>;

    /// Returns the engine's fields: always the same set and address. The build's message for an error is unclear; check
    /// in [`configure`](PluginBase::configure).
    fn fields_to_serialize(&self) -> Result<&FieldSet>;

    /// Returns whether TensorRT accepts null from `attachToContext`; otherwise it gets an object whose methods fail.
    /// Must be `false` for outputs with aliases (the default) or data-dependent sizes: TensorRT-RTX 1.7 crashes.
    fn tolerates_null_attach(&self) -> bool {
        (0..self.output_count()).all(|output| self.aliased_input(output).is_none())
    }
}

const UNKNOWN: i32 = -1;

struct V3One<P>(PhantomData<fn() -> P>);

type PluginObject<P> = Object<V3One<P>>;

/// `enqueue` passes arrays without lengths.
struct Counts {
    inputs: AtomicI32,
    outputs: AtomicI32,
}

impl Counts {
    fn new(inputs: i32, outputs: i32) -> Self {
        Self { inputs: AtomicI32::new(inputs), outputs: AtomicI32::new(outputs) }
    }

    fn set(&self, inputs: i32, outputs: i32) {
        // Relaxed: TensorRT orders `onShapeChange` before `enqueue`.
        self.inputs.store(inputs, Ordering::Relaxed);
        self.outputs.store(outputs, Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> Result<(i32, i32)> {
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

/// Returns the build interface's version. 2 has `getAliasedInput`: full TensorRT since 10.3, TensorRT-RTX always.
fn build_version(full: Option<i32>) -> i32 {
    if full.is_some_and(|version| version < 100_300) { 1 } else { 2 }
}

impl<P: Plugin> PluginKind for V3One<P> {
    type Implementor = P;
    type State = Counts;
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

    fn clone_state(state: &Counts) -> Counts {
        state.get().map_or_else(|_| Counts::default(), |(inputs, outputs)| Counts::new(inputs, outputs))
    }
}

/// Null if that fails and TensorRT accepts null.
fn attach<P: Plugin>(object: &PluginObject<P>) -> This {
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

/// Moves a plugin to C++ as an `IPluginV3*`, freed through its D0.
pub fn into_raw<P: Plugin>(implementor: P) -> This {
    object::into_raw::<V3One<P>>(implementor)
}

type Opaque = *mut c_void;
