//! A quick plugin, as of NVIDIA's Python module `tensorrt.plugin`: the safe trait, TensorRT's object during a build,
//! and its thunks. An engine runs the kernels of ahead-of-time ones without a plugin library.

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

/// A launch: 32-bit integers, constant or over the inputs' extents.
#[derive(Debug, Clone)]
pub struct QuickLaunch<'b> {
    /// Blocks (x, y, z).
    pub grid: [Expr<'b>; 3],
    /// Threads per block (x, y, z).
    pub block: [Expr<'b>; 3],
    /// Dynamic shared memory per block, in bytes.
    pub shared_bytes: Expr<'b>,
    /// Scalar arguments, between inputs and outputs (NVIDIA's documentation of `tensorrt.plugin.aot_impl`).
    pub scalars: Vec<Expr<'b>>,
}

/// A compiled kernel.
#[derive(Debug, Clone, Copy)]
pub struct QuickKernel<'a> {
    /// The kernel's symbol.
    pub name: &'a CStr,
    /// PTX, the only code that NVIDIA documents for `tensorrt.plugin.aot_impl`.
    pub code: &'a [u8],
}

/// An ahead-of-time quick plugin; builds only.
pub trait QuickPlugin: PluginBase {
    /// Sets each output's type. An unset output (`DataType(-1)`) is an error.
    fn output_types(&self, inputs: &[DataType], input_ranks: &[i32], outputs: &mut [DataType]) -> Result<()>;

    /// Returns every combination of types and formats with a kernel: rows as long as `in_out`, inputs first. TensorRT
    /// asks twice and needs equal results.
    fn format_combinations(
        &self,
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
    ) -> Result<Vec<Vec<PluginTensorDesc>>>;

    /// Returns the launch for these tensors (inputs, then outputs) and the last tactic.
    fn launch<'b>(
        &self,
        inputs: &[Shape<'b>],
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
        builder: &ExprBuilder<'b>,
    ) -> Result<QuickLaunch<'b>>;

    /// Returns the kernel for these tensors and the last tactic. Name and code live as long as TensorRT's object; code
    /// has 1 to `i32::MAX` bytes.
    fn kernel(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> Result<QuickKernel<'_>>;
}

struct Quick<P>(PhantomData<fn() -> P>);

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

    /// Returns the interface kind that has the ahead-of-time slots.
    fn build_info() -> InterfaceInfo {
        info(c"PLUGIN_V3QUICKAOT_BUILD", 1)
    }

    fn clone_state(_state: &SymExprs) -> SymExprs {
        SymExprs::default()
    }
}

/// Moves a plugin to C++ as an `IPluginV3*`, freed through its D0.
pub fn into_raw<P: QuickPlugin>(implementor: P) -> This {
    object::into_raw::<Quick<P>>(implementor)
}
