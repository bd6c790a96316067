//! Launch parameters for TensorRT. Owns our `ISymExpr` objects; creates no expression.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::QuickLaunch;
use crate::error::{Error, Result};
use crate::expr::{Expr, implementation};
use crate::raw::{IDimensionExpr, IKernelLaunchParams, ISymExprs, PluginArgDataType, PluginArgType};
use crate::rtti;
use crate::vtable::{KernelLaunchParamsSlots, SymExprSlots, SymExprsSlots, This, VTable};

/// `ISymExpr`: a 32-bit integer, from TensorRT's expression.
#[repr(C)]
struct SymExpr {
    vptr: *const SymExprSlots,
    /// Owned by the builder, never read here.
    expr: *const IDimensionExpr,
}

// SAFETY: the value never changes, and its pointer is only passed on.
unsafe impl Send for SymExpr {}
// SAFETY: as above.
unsafe impl Sync for SymExpr {}

const SYM_EXPR: &VTable<SymExprSlots> = &VTable {
    offset_to_top: 0,
    type_info: &raw const rtti::SYM_EXPR,
    slots: SymExprSlots { get_type, get_data_type, get_expr },
};

unsafe extern "C" fn get_type(_this: This) -> PluginArgType {
    PluginArgType::INT
}

unsafe extern "C" fn get_data_type(_this: This) -> PluginArgDataType {
    PluginArgDataType::INT32
}

unsafe extern "C" fn get_expr(this: This) -> *mut c_void {
    // SAFETY: TensorRT passes one of our `SymExpr`s.
    unsafe { (*this.cast::<SymExpr>()).expr.cast_mut().cast() }
}

/// TensorRT keeps the pointers for an unknown time.
#[derive(Default)]
pub(super) struct SymExprs {
    // One list per call; its heap block never moves. Moving a `Box` would invalidate pointers into it.
    calls: Mutex<Vec<Vec<SymExpr>>>,
}

impl SymExprs {
    fn keep<'b>(&self, exprs: impl IntoIterator<Item = Expr<'b>>) -> Vec<This> {
        let made = |expr: Expr<'b>| SymExpr { vptr: SYM_EXPR.vptr(), expr: expr.as_raw() };
        let mut call: Vec<SymExpr> = exprs.into_iter().map(made).collect();
        let first = call.as_mut_ptr();
        // SAFETY: `index` is less than the length of the list.
        let pointers = (0..call.len()).map(|index| unsafe { first.add(index).cast() }).collect();
        // Valid even after another thread's panic.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        pointers
    }
}

pub(super) struct Receiver<'a> {
    params: (This, &'a KernelLaunchParamsSlots),
    scalars: (This, &'a SymExprsSlots),
}

impl<'a> Receiver<'a> {
    /// Wraps TensorRT's receivers; fails if either is null or empty.
    ///
    /// # Safety
    /// Both are null or live for `'a`, and no one else uses them meanwhile.
    pub(super) unsafe fn from_raw(
        params: *const IKernelLaunchParams,
        scalars: *const ISymExprs,
    ) -> Result<Self> {
        // SAFETY: `as_ref` checks for null; `mImpl` of a live object is null or has its class's vtable.
        let (params, scalars) = unsafe {
            let params = params.as_ref().and_then(|params| implementation(params.implementation));
            let scalars = scalars.as_ref().and_then(|scalars| implementation(scalars.implementation));
            (params, scalars)
        };
        let missing =
            |what: &str| Error::invalid(format!("getLaunchParams was called with a null pointer for {what}"));
        let params: (_, &KernelLaunchParamsSlots) = params.ok_or_else(|| missing("the launch parameters"))?;
        let scalars: (_, &SymExprsSlots) = scalars.ok_or_else(|| missing("the scalar arguments"))?;
        Ok(Self { params: (params.0.cast_mut(), params.1), scalars: (scalars.0.cast_mut(), scalars.1) })
    }

    pub(super) fn take(&self, launch: &QuickLaunch<'_>, sym_exprs: &SymExprs) -> Result<()> {
        self.take_params(launch, sym_exprs)?;
        self.take_scalars(&launch.scalars, sym_exprs)
    }

    fn take_params(&self, launch: &QuickLaunch<'_>, sym_exprs: &SymExprs) -> Result<()> {
        let QuickLaunch { grid, block, shared_bytes, .. } = launch;
        let (this, slots) = self.params;
        let names = ["GridX", "GridY", "GridZ", "BlockX", "BlockY", "BlockZ", "SharedMem"];
        let exprs = sym_exprs.keep(grid.iter().chain(block).chain([shared_bytes]).copied());
        slots.extents.iter().zip(names).zip(exprs).try_for_each(|((extent, name), expr)| {
            // SAFETY: `this` is live; the expression lives as long as the plugin.
            taken(unsafe { (extent.set)(this, expr) }, || format!("a launch parameter: set{name}"))
        })
    }

    /// Sets the scalars, zeros too: the object may contain another launch's.
    fn take_scalars(&self, scalars: &[Expr<'_>], sym_exprs: &SymExprs) -> Result<()> {
        let (this, slots) = self.scalars;
        let count = crate::object::base::count(scalars.len())?;
        // SAFETY: `this` is live.
        taken(unsafe { (slots.set_nb_sym_exprs)(this, count) }, || {
            format!("{count} scalar arguments: setNbSymExprs")
        })?;
        (0..count).zip(sym_exprs.keep(scalars.iter().copied())).try_for_each(|(index, expr)| {
            // SAFETY: as above.
            taken(unsafe { (slots.set_sym_expr)(this, index, expr) }, || {
                format!("scalar argument {index} of {count}: setSymExpr")
            })
        })
    }
}

fn taken(answer: bool, what: impl FnOnce() -> String) -> Result<()> {
    if answer { Ok(()) } else { Err(Error::internal(format!("TensorRT refused {} returned false", what()))) }
}
