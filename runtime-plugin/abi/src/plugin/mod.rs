//! A plugin: the safe trait, and the object with four vptrs that TensorRT holds.
//!
//! Owns: [`Plugin`] and the thunks of `IPluginV3OneBuildV2` and `IPluginV3OneRuntime`. Never: no knowledge of what a plugin computes.

pub(crate) mod base;
mod build;
mod object;
mod runtime;
#[cfg(test)]
mod tests;

use std::ffi::c_void;

use crate::error::Error;
use crate::fields::FieldSet;
use crate::raw::{DataType, DynamicPluginTensorDesc, PluginTensorDesc};

pub use base::PluginBase;
pub use object::into_raw;

/// What a plugin that an engine runs does.
pub trait Plugin: PluginBase {
    /// Sets each output's type. An output that stays unset (`DataType(-1)`) is an error.
    fn output_types(&self, inputs: &[DataType], outputs: &mut [DataType]) -> Result<(), Error>;

    /// Whether type and format at `position` are fine, given those before it. `in_out` holds inputs, then
    /// outputs; what stands after `position` means nothing yet.
    fn supports(&self, position: usize, in_out: &[DynamicPluginTensorDesc], input_count: usize) -> bool;

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

    /// Most format combinations that TensorRT may time; TensorRT-RTX ignores it.
    fn format_combination_limit(&self) -> i32 {
        100
    }

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
    /// done in [`configure`](PluginBase::configure).
    fn fields_to_serialize(&self) -> Result<&FieldSet, Error>;

    /// Whether TensorRT handles a null answer to `attachToContext`, so that a failure to attach shows where the execution
    /// context is made. TensorRT-RTX 1.7 then makes no context, except that it crashes for plugins with aliased or
    /// data-dependent outputs. So it is `true` without an aliased output; a plugin with data-dependent outputs must answer
    /// `false`. That hands over an object whose every method fails, with the first failure at `onShapeChange`.
    fn tolerates_null_attach(&self) -> bool {
        (0..self.output_count()).all(|output| self.aliased_input(output).is_none())
    }
}
