//! A quick plugin: the safe trait, and the object that TensorRT holds while it builds an engine.
//!
//! Owns: [`QuickPlugin`] and the thunks of `IPluginV3QuickAOTBuild` and `IPluginV3QuickRuntime`. Never: no knowledge of what a plugin
//! computes, and no launch: TensorRT runs the kernel by itself.
//!
//! Quick plugins are what NVIDIA's Python module `tensorrt.plugin` makes. The ahead-of-time ones hand over a compiled kernel with its
//! launch parameters as expressions over the extents of the inputs, and the engine runs it without a plugin library. The interfaces
//! are those of `impl/NvInferPythonPlugin.h` (TensorRT Enterprise 11.4), which NVIDIA keeps outside of semantic versioning.
//! TensorRT-RTX has none.

mod build;
mod launch;
mod object;
mod runtime;
#[cfg(test)]
mod tests;

use std::ffi::CStr;

use crate::error::Error;
use crate::expr::{Expr, ExprBuilder, Shape};
use crate::logger;
use crate::raw::{DataType, DynamicPluginTensorDesc, PluginTensorDesc};

pub use object::into_raw;

/// How one kernel is launched: all are 32-bit integers, constant or over the extents of the inputs.
#[derive(Debug, Clone)]
pub struct QuickLaunch<'b> {
    /// Blocks, in x, y and z.
    pub grid: [Expr<'b>; 3],
    /// Threads of a block, in x, y and z.
    pub block: [Expr<'b>; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: Expr<'b>,
    /// Scalar arguments, which the kernel gets between its inputs and its outputs (NVIDIA's documentation of `tensorrt.plugin.aot_impl`).
    pub scalars: Vec<Expr<'b>>,
}

/// A compiled kernel.
#[derive(Debug, Clone, Copy)]
pub struct QuickKernel<'a> {
    /// Name of its entry in the code.
    pub name: &'a CStr,
    /// The code: PTX, as long as NVIDIA's documentation of `tensorrt.plugin.aot_impl` says that nothing else is supported.
    pub code: &'a [u8],
}

/// What a quick plugin of the ahead-of-time kind does, without pointers and without panics that matter.
///
/// TensorRT calls every method through `&self`: state that changes lives in atomics or locks. `Clone` is C++'s `clone`: TensorRT makes
/// several, and the copies are independent. All of it happens while an engine is built, also on machines without a GPU.
///
/// An `Err` or a panic becomes the failure value of the interface, after [`report`](Self::report) has been told.
pub trait QuickPlugin: Clone + Send + Sync + 'static {
    /// Plugin name, as its creator's.
    fn core_name(&self) -> &CStr;
    /// Version that belongs to the name.
    fn core_version(&self) -> &CStr;
    /// Namespace that belongs to the name.
    fn core_namespace(&self) -> &CStr;

    /// Number of outputs.
    fn output_count(&self) -> usize;

    /// Sets each output's type. An output that stays unset (`DataType(-1)`) is an error.
    fn output_types(
        &self,
        inputs: &[DataType],
        input_ranks: &[i32],
        outputs: &mut [DataType],
    ) -> Result<(), Error>;

    /// Sets each output's shape. `shape_inputs` hold the values of shape tensors as extents. An output that
    /// stays unset is an error.
    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        shape_inputs: &[Shape<'b>],
        builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<(), Error>;

    /// Told types, formats and the profile that the engine is built for.
    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<(), Error>;

    /// Every combination of types and formats that there is a kernel for: rows of as many tensors as `in_out` holds, inputs first.
    /// TensorRT asks how many there are and then for all of them, so the answer to the same tensors is always the same. NVIDIA's Python
    /// module fills in types and formats alone.
    fn format_combinations(
        &self,
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
    ) -> Result<Vec<Vec<PluginTensorDesc>>, Error>;

    /// Input whose memory this output shares.
    fn aliased_input(&self, output: usize) -> Option<usize> {
        let _ = output;
        None
    }

    /// Tactics for the configured types, best first: positive and different.
    fn tactics(&self) -> Result<Vec<i32>, Error> {
        Ok(Vec::new())
    }

    /// What tells this plugin apart in the timing cache, or `None` to stay out of it. NVIDIA's Python module answers an empty text for
    /// every ahead-of-time plugin.
    fn timing_cache_id(&self) -> Option<&CStr> {
        None
    }

    /// Text that engine inspectors show.
    fn metadata(&self) -> Option<&CStr> {
        None
    }

    /// How the kernel of these types and formats is launched, with the tactic that was set last. `in_out` holds inputs, then outputs.
    fn launch<'b>(
        &self,
        inputs: &[Shape<'b>],
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
        builder: &ExprBuilder<'b>,
    ) -> Result<QuickLaunch<'b>, Error>;

    /// The kernel of these types and formats, with the tactic that was set last. Name and code belong to the plugin, so they live as
    /// long as the object that TensorRT holds. Code that is longer than 32 bits can say is an error, and so is none at all.
    ///
    /// `getKernel` has `char**` for the code: that is how the header spells it. TensorRT must not write there, because the memory may
    /// be read-only.
    fn kernel(
        &self,
        inputs: &[PluginTensorDesc],
        outputs: &[PluginTensorDesc],
    ) -> Result<QuickKernel<'_>, Error>;

    /// Told the tactic that [`launch`](Self::launch) and [`kernel`](Self::kernel) are asked for next: one of
    /// [`tactics`](Self::tactics), or 0 where there are none.
    fn set_tactic(&self, tactic: i32) -> Result<(), Error>;

    /// Told each failure before TensorRT gets its code: an `Err` of a method above, or a caught panic.
    fn report(&self, error: &Error) {
        logger::error_of(self.core_name(), error);
    }
}
