//! The client side of `IExprBuilder` and `IDimensionExpr`: symbolic extents during a build. Never folds constants.
//!
//! NVIDIA's methods are not `noexcept`, hence "C-unwind": an exception may unwind Rust frames, but not reach
//! `getOutputShapes` (`noexcept`). Operations known to throw or crash are rejected first; other misuse returns null
//! and logs (seen with RTX 1.7).

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::error::{Error, Result};
use crate::raw::{DimensionOperation, DimsExprs, IDimensionExpr, IExprBuilder, MAX_DIMS};
use crate::vtable::{DimensionExprSlots, ExprBuilderSlots};

/// An extent as an expression, owned by the builder during its call, `'b`.
#[derive(Clone, Copy)]
pub struct Expr<'b> {
    raw: NonNull<IDimensionExpr>,
    builder: PhantomData<&'b IExprBuilder>,
}

impl<'b> Expr<'b> {
    /// # Safety
    /// `raw` is null or an expression that lives for `'b`.
    unsafe fn from_raw(raw: *const IDimensionExpr) -> Option<Self> {
        NonNull::new(raw.cast_mut()).map(|raw| Self { raw, builder: PhantomData })
    }

    pub(crate) fn as_raw(self) -> *const IDimensionExpr {
        self.raw.as_ptr()
    }

    /// Returns the value if it is constant.
    pub fn constant_value(self) -> Option<i64> {
        let (implementation, slots) = self.implementation()?;
        // SAFETY: the object and its vtable belong to a live expression.
        unsafe { (slots.is_constant)(implementation).then(|| (slots.get_constant_value)(implementation)) }
    }

    fn implementation(self) -> Option<(*const c_void, &'b DimensionExprSlots)> {
        // SAFETY: the expression lives for `'b`, as the caller of `from_raw` guarantees.
        unsafe { implementation(self.raw.as_ref().implementation) }
    }
}

impl std::fmt::Debug for Expr<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.constant_value() {
            Some(value) => write!(formatter, "Expr({value})"),
            None => formatter.write_str("Expr(..)"),
        }
    }
}

/// Returns an implementation object and its vtable; `None` for null.
///
/// # Safety
/// `this` is null or an object that lives for `'b`, whose vtable starts with `Slots`.
pub(crate) unsafe fn implementation<'b, Slots>(this: *const c_void) -> Option<(*const c_void, &'b Slots)> {
    if this.is_null() {
        return None;
    }
    // SAFETY: the pointer is not null; the caller guarantees the rest.
    let vptr = unsafe { *this.cast::<*const Slots>() };
    // SAFETY: the object's vtable lives as long as its library, thus for `'b`.
    unsafe { vptr.as_ref() }.map(|slots| (this, slots))
}

/// TensorRT's builder during one call.
pub struct ExprBuilder<'b> {
    this: *const c_void,
    slots: &'b ExprBuilderSlots,
    purpose: &'static str,
}

impl<'b> ExprBuilder<'b> {
    /// Wraps TensorRT's builder; `None` if null or empty.
    ///
    /// # Safety
    /// `builder` is null, or lives for `'b` with its expressions.
    pub unsafe fn from_raw(builder: *const IExprBuilder) -> Option<Self> {
        // SAFETY: `as_ref` checks for null; the caller guarantees the rest.
        let builder = unsafe { builder.as_ref::<'b>() }?;
        // SAFETY: the pointer is `mImpl` of a live builder, which is null or an object with these slots.
        let (this, slots) = unsafe { implementation(builder.implementation) }?;
        Some(Self { this, slots, purpose: "the shape of an output" })
    }

    pub(crate) fn with_purpose(self, purpose: &'static str) -> Self {
        Self { purpose, ..self }
    }

    /// Returns a constant.
    pub fn constant(&self, value: i64) -> Result<Expr<'b>> {
        // SAFETY: the builder lives for `'b` and owns the returned expression.
        let expr = unsafe { Expr::from_raw((self.slots.constant)(self.this, value)) };
        expr.ok_or_else(|| Error::internal(format!("TensorRT rejected the constant {value}")))
    }

    /// Returns `first op second`; TensorRT wraps on overflow. Fails if TensorRT does, or for a constant division that
    /// would throw or crash.
    pub fn operation(&self, op: DimensionOperation, first: Expr<'b>, second: Expr<'b>) -> Result<Expr<'b>> {
        if matches!(op, DimensionOperation::FLOOR_DIV | DimensionOperation::CEIL_DIV) {
            refuse_division(self.purpose, first.constant_value(), second.constant_value())?;
        }
        if op.name().is_none() {
            return Err(Error::internal(format!("{op:?} is not a TensorRT operation")));
        }
        // SAFETY: builder and operands live for `'b`; the builder owns the returned expression.
        let expr = unsafe {
            Expr::from_raw((self.slots.operation)(self.this, op, first.raw.as_ptr(), second.raw.as_ptr()))
        };
        expr.ok_or_else(|| Error::internal(format!("TensorRT rejected the operation {op:?}")))
    }

    /// Returns the size that the kernels write to output `output`, an INT32 or INT64 scalar
    /// (`IExprBuilder::declareSizeTensor`, `NvInferRuntime.h`). TensorRT assumes 0 to `upper`, optimizes for `opt`,
    /// rejects arithmetic on it.
    pub fn declare_size_tensor(&self, output: usize, opt: Expr<'b>, upper: Expr<'b>) -> Result<Expr<'b>> {
        let index = i32::try_from(output)
            .map_err(|_| Error::internal(format!("output {output} does not fit into 32 bits")))?;
        // SAFETY: as above.
        let expr = unsafe {
            Expr::from_raw((self.slots.declare_size_tensor)(
                self.this,
                index,
                opt.raw.as_ptr(),
                upper.raw.as_ptr(),
            ))
        };
        expr.ok_or_else(|| Error::internal(format!("TensorRT rejected output {output} as a size tensor")))
    }
}

/// TensorRT throws for zero, and `i64::MIN / -1` raises SIGFPE (seen with RTX 1.7).
fn refuse_division(purpose: &str, first: Option<i64>, second: Option<i64>) -> Result<()> {
    match (first, second) {
        (_, Some(0)) => Err(Error::invalid(format!("{purpose} divides by zero"))),
        (Some(i64::MIN), Some(-1)) => Err(Error::invalid(format!("{purpose} overflows: i64::MIN / -1"))),
        _ => Ok(()),
    }
}

/// `DimsExprs`, borrowed from TensorRT.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Shape<'b> {
    raw: DimsExprs,
    builder: PhantomData<&'b IExprBuilder>,
}

impl<'b> Shape<'b> {
    pub(crate) const UNSET: Self =
        Self { raw: DimsExprs { nb_dims: -1, d: [std::ptr::null(); MAX_DIMS] }, builder: PhantomData };

    /// Returns TensorRT's rank.
    pub fn stated_rank(&self) -> i32 {
        self.raw.nb_dims
    }

    /// Returns the number of extents, at most [`MAX_DIMS`].
    pub fn rank(&self) -> usize {
        usize::try_from(self.raw.nb_dims).unwrap_or(0).min(MAX_DIMS)
    }

    /// Returns extent `index`; fails outside the rank.
    pub fn get(&self, index: usize) -> Result<Expr<'b>> {
        let raw = self.raw.d[..self.rank()].get(index).copied().unwrap_or(std::ptr::null());
        // SAFETY: the shape's expressions, from TensorRT or `set`, live for `'b`.
        unsafe { Expr::from_raw(raw) }.ok_or_else(|| {
            Error::internal(format!("a shape of rank {} has no dimension {index}", self.rank()))
        })
    }

    /// Sets rank and extents; fails for more than [`MAX_DIMS`].
    pub fn set(&mut self, extents: &[Expr<'b>]) -> Result<()> {
        let rank =
            i32::try_from(extents.len()).ok().filter(|_| extents.len() <= MAX_DIMS).ok_or_else(|| {
                Error::invalid(format!(
                    "an output has {} dimensions, TensorRT supports at most {MAX_DIMS}",
                    extents.len()
                ))
            })?;
        for (slot, extent) in self.raw.d.iter_mut().zip(extents) {
            *slot = extent.raw.as_ptr();
        }
        self.raw.nb_dims = rank;
        Ok(())
    }

    /// Returns whether the shape was filled.
    pub fn is_set(&self) -> bool {
        self.raw.nb_dims >= 0
    }
}

#[cfg(test)]
pub(crate) mod tests;
