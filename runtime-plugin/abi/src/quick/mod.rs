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
mod runtime;
#[cfg(test)]
mod tests;

use std::ffi::CStr;
use std::marker::PhantomData;

use crate::error::Result;
use crate::expr::{Expr, ExprBuilder, Shape};
use crate::object::{self, Build, Object, PluginBase, PluginKind, Runtime, info, table, versioned};
use crate::raw::{DataType, DynamicPluginTensorDesc, InterfaceInfo, PluginTensorDesc};
use crate::vtable::{QuickBuildSlots, QuickRuntimeSlots, This, VTable};
use launch::SymExprs;

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

/// What a quick plugin of the ahead-of-time kind does: all of it while an engine is built.
pub trait QuickPlugin: PluginBase {
    /// Sets each output's type. An output that stays unset (`DataType(-1)`) is an error.
    fn output_types(&self, inputs: &[DataType], input_ranks: &[i32], outputs: &mut [DataType]) -> Result<()>;

    /// Every combination of types and formats that there is a kernel for: rows of as many tensors as `in_out` holds, inputs first.
    /// TensorRT asks how many there are and then for all of them, so the answer to the same tensors is always the same. NVIDIA's Python
    /// module fills in types and formats alone.
    fn format_combinations(
        &self,
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
    ) -> Result<Vec<Vec<PluginTensorDesc>>>;

    /// How the kernel of these types and formats is launched, with the tactic that was set last. `in_out` holds inputs, then outputs.
    fn launch<'b>(
        &self,
        inputs: &[Shape<'b>],
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
        builder: &ExprBuilder<'b>,
    ) -> Result<QuickLaunch<'b>>;

    /// The kernel of these types and formats, with the tactic that was set last. Name and code belong to the plugin, so they live as
    /// long as the object that TensorRT holds. Code that is longer than 32 bits can say is an error, and so is none at all.
    ///
    /// `getKernel` has `char**` for the code: that is how the header spells it. TensorRT must not write there, because the memory may
    /// be read-only.
    fn kernel(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> Result<QuickKernel<'_>>;
}

/// Plugins of the quick kind, ahead of time.
struct Quick<P>(PhantomData<fn() -> P>);

/// A plugin of this kind as C++ sees it.
type QuickObject<P> = Object<Quick<P>>;

impl<P: QuickPlugin> PluginKind for Quick<P> {
    type Implementor = P;
    type State = SymExprs;
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
    fn clone_state(_state: &SymExprs) -> SymExprs {
        SymExprs::default()
    }
}

/// Hands a plugin over to C++: an `IPluginV3*`, freed through its D0.
pub fn into_raw<P: QuickPlugin>(implementor: P) -> This {
    object::into_raw::<Quick<P>>(implementor)
}
