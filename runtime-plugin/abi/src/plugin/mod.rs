//! A plugin: the safe trait, and the object with four vptrs that TensorRT holds.
//!
//! Owns: [`Plugin`] and the thunks of `IPluginV3OneBuildV2` and `IPluginV3OneRuntime`. Never: no knowledge of what a plugin computes.

mod build;
mod object;
mod runtime;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_void};

use crate::error::Error;
use crate::expr::{ExprBuilder, Shape};
use crate::fields::FieldSet;
use crate::logger;
use crate::raw::{DataType, DynamicPluginTensorDesc, PluginTensorDesc};

pub use object::into_raw;

/// What a plugin does, without pointers and without panics that matter.
///
/// TensorRT calls every method through `&self`, sometimes from another thread than the one that made the
/// object: state that changes lives in atomics or locks. `Clone` is C++'s `clone`: TensorRT makes several,
/// and the copies are independent. Creating, cloning and attaching also happen on machines without a GPU.
///
/// An `Err` or a panic becomes the failure value of the interface, after [`report`](Self::report) has been
/// told.
pub trait Plugin: Clone + Send + Sync + 'static {
    /// Name under which an engine finds the creator at run time. It may differ from the creator's that made
    /// this object.
    fn core_name(&self) -> &CStr;
    /// Version that belongs to the name.
    fn core_version(&self) -> &CStr;
    /// Namespace that belongs to the name.
    fn core_namespace(&self) -> &CStr;

    /// Number of outputs.
    fn output_count(&self) -> usize;

    /// Sets each output's type. An output that stays unset (`DataType(-1)`) is an error.
    fn output_types(&self, inputs: &[DataType], outputs: &mut [DataType]) -> Result<(), Error>;

    /// Sets each output's shape. `shape_inputs` hold the values of shape tensors as extents. An output that
    /// stays unset is an error.
    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        shape_inputs: &[Shape<'b>],
        builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<(), Error>;

    /// Whether type and format at `position` are fine, given those before it. `in_out` holds inputs, then
    /// outputs; what stands after `position` means nothing yet.
    fn supports(&self, position: usize, in_out: &[DynamicPluginTensorDesc], input_count: usize) -> bool;

    /// Told types, formats and the profile that the engine is built for.
    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<(), Error>;

    /// Bytes of workspace that suffice over the whole profile. `opt` extents may be -1: use `max`. An error
    /// answers with a size that no GPU has, and TensorRT drops the format combination.
    fn workspace_bytes(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<usize, Error> {
        let _ = (inputs, outputs);
        Ok(0)
    }

    /// Tactics for the configured types, best first: positive and different. TensorRT-RTX takes the first
    /// without timing.
    fn tactics(&self) -> Result<Vec<i32>, Error> {
        Ok(Vec::new())
    }

    /// Identity for the timing cache, or `None` to stay out of it.
    fn timing_cache_id(&self) -> Option<&CStr> {
        None
    }

    /// Most format combinations that TensorRT may time; TensorRT-RTX ignores it.
    fn format_combination_limit(&self) -> i32 {
        100
    }

    /// Text that engine inspectors show.
    fn metadata(&self) -> Option<&CStr> {
        None
    }

    /// Input whose memory this output shares.
    fn aliased_input(&self, output: usize) -> Option<usize> {
        let _ = output;
        None
    }

    /// Told the tactic to run: one of [`tactics`](Self::tactics), or 0 where there are none.
    fn set_tactic(&self, tactic: i32) -> Result<(), Error>;

    /// Told concrete shapes. TensorRT-RTX calls it before every enqueue, also when nothing changed.
    fn on_shape_change(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc])
    -> Result<(), Error>;

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
    ) -> Result<(), Error>;

    /// A new object for an execution context. On a machine without a driver this must succeed: TensorRT may
    /// call it while building.
    fn attach_to_context(&self) -> Result<Self, Error>;

    /// What goes into the engine: always the same set at the same address. TensorRT has no way to be told of
    /// a failure here; an error answers with a field that makes the build fail, but what can fail is better
    /// done in [`configure`](Self::configure).
    fn fields_to_serialize(&self) -> Result<&FieldSet, Error>;

    /// Whether TensorRT handles a null answer to `attachToContext`, so that a failure to attach shows where the execution
    /// context is made. TensorRT-RTX 1.7 then makes no context, except that it crashes for plugins with aliased or
    /// data-dependent outputs. So it is `true` without an aliased output; a plugin with data-dependent outputs must answer
    /// `false`. That hands over an object whose every method fails, with the first failure at `onShapeChange`.
    fn tolerates_null_attach(&self) -> bool {
        (0..self.output_count()).all(|output| self.aliased_input(output).is_none())
    }

    /// Told each failure before TensorRT gets its code: an `Err` of a method above, or a caught panic.
    fn report(&self, error: &Error) {
        logger::error_of(self.core_name(), error);
    }
}
