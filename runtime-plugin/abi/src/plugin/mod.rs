//! A plugin: the safe trait, and the object with four vptrs that TensorRT holds.
//!
//! Owns: [`Plugin`], the thunks of `IPluginV3OneBuildV2` and `IPluginV3OneRuntime`, the tensor counts between `onShapeChange` and
//! `enqueue`, and the answer if attaching fails. Never: no knowledge of what a plugin computes; the life cycle is `object`'s.

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

/// What a plugin that an engine runs does.
pub trait Plugin: PluginBase {
    /// Sets each output's type. An output that stays unset (`DataType(-1)`) is an error.
    fn output_types(&self, inputs: &[DataType], outputs: &mut [DataType]) -> Result<()>;

    /// Whether type and format at `position` are fine, given those before it. `in_out` holds inputs, then
    /// outputs; what stands after `position` means nothing yet.
    fn supports(&self, position: usize, in_out: &[DynamicPluginTensorDesc], input_count: usize) -> bool;

    /// Bytes of workspace that suffice over the whole profile. `opt` extents may be -1: use `max`. An error
    /// answers with a size that no GPU has, and TensorRT drops the format combination.
    fn workspace_bytes(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<usize> {
        let _ = (inputs, outputs);
        Ok(0)
    }

    /// Most format combinations that TensorRT may time; TensorRT-RTX ignores it.
    fn format_combination_limit(&self) -> i32 {
        100
    }

    /// Told concrete shapes. TensorRT-RTX calls it before every enqueue, also when nothing changed.
    fn on_shape_change(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> Result<()>;

    /// Queues the work. The slices are as long as those of the last
    /// [`on_shape_change`](Self::on_shape_change).
    ///
    /// # Safety
    /// Pointers lead to device memory of the described tensors (host memory for shape inputs), `workspace` to
    /// as many bytes as were asked for, and `stream` is a live `CUstream`, all until the queued work has run.
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

    /// A new object for an execution context. On a machine without a driver this must succeed: TensorRT may
    /// call it while building.
    fn attach_to_context(&self) -> Result<Self>;

    /// What goes into the engine: always the same set at the same address. TensorRT has no way to be told of
    /// a failure here; an error answers with a field that makes the build fail, but what can fail is better
    /// done in [`configure`](PluginBase::configure).
    fn fields_to_serialize(&self) -> Result<&FieldSet>;

    /// Whether TensorRT handles a null answer to `attachToContext`, so that a failure to attach shows where the execution
    /// context is made. TensorRT-RTX 1.7 then makes no context, except that it crashes for plugins with aliased or
    /// data-dependent outputs. So it is `true` without an aliased output; a plugin with data-dependent outputs must answer
    /// `false`. That hands over an object whose every method fails, with the first failure at `onShapeChange`.
    fn tolerates_null_attach(&self) -> bool {
        (0..self.output_count()).all(|output| self.aliased_input(output).is_none())
    }
}

/// A count that is not known because `onShapeChange` has not been called.
const UNKNOWN: i32 = -1;

/// Plugins of the kind V3One.
struct V3One<P>(PhantomData<fn() -> P>);

/// A plugin of this kind as C++ sees it.
type PluginObject<P> = Object<V3One<P>>;

/// Tensors at the last `onShapeChange`: `enqueue` passes arrays without their lengths.
struct Counts {
    inputs: AtomicI32,
    outputs: AtomicI32,
}

impl Counts {
    fn new(inputs: i32, outputs: i32) -> Self {
        Self { inputs: AtomicI32::new(inputs), outputs: AtomicI32::new(outputs) }
    }

    /// Remembers how many tensors the arrays of the next `enqueue` hold.
    fn set(&self, inputs: i32, outputs: i32) {
        // Relaxed: TensorRT itself orders `onShapeChange` before `enqueue` of the same object.
        self.inputs.store(inputs, Ordering::Relaxed);
        self.outputs.store(outputs, Ordering::Relaxed);
    }

    /// The counts of the last `onShapeChange`.
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

/// Returns the version of the build interface for the full TensorRT that calls. Version 2, `IPluginV3OneBuildV2`, makes TensorRT
/// call `getAliasedInput`. Full TensorRT has it from 10.3 on, and all releases of TensorRT-RTX have it; before it there is version 1,
/// where outputs are never aliased.
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

/// A new object for a context, or null where the implementor says that TensorRT can take it.
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

/// Hands a plugin over to C++: an `IPluginV3*`, freed through its D0.
pub fn into_raw<P: Plugin>(implementor: P) -> This {
    object::into_raw::<V3One<P>>(implementor)
}

/// The `cudaStream_t` and the workspace need no type of their own here.
type Opaque = *mut c_void;
