use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use super::{Expr, ExprBuilder, Shape};
use crate::raw::{DimensionOperation, DimsExprs, IDimensionExpr, IExprBuilder, MAX_DIMS};
use crate::vtable::{DimensionExprSlots, ExprBuilderSlots, This};

#[repr(C)]
struct FakeExpr {
    vptr: *const DimensionExprSlots,
    value: i64,
}

#[repr(C)]
struct FakeImplementation {
    vptr: *const ExprBuilderSlots,
    made: RefCell<Vec<(Box<IDimensionExpr>, Box<FakeExpr>)>>,
}

pub(crate) struct FakeBuilder {
    implementation: Box<FakeImplementation>,
    outside: Box<IExprBuilder>,
}

static EXPR_SLOTS: DimensionExprSlots = DimensionExprSlots {
    destroy: nothing,
    destroy_and_free: nothing,
    is_constant,
    get_constant_value,
    is_size_tensor,
};

static BUILDER_SLOTS: ExprBuilderSlots = ExprBuilderSlots {
    destroy: nothing,
    destroy_and_free: nothing,
    constant,
    operation,
    declare_size_tensor,
};

unsafe extern "C" fn nothing(_this: This) {}

fn value_of(this: *const c_void) -> i64 {
    // SAFETY: tests pass only fakes, which have this type.
    unsafe { (*this.cast::<FakeExpr>()).value }
}

fn value_behind(expr: *const IDimensionExpr) -> i64 {
    // SAFETY: as above.
    value_of(unsafe { (*expr).implementation })
}

unsafe extern "C-unwind" fn is_constant(this: *const c_void) -> bool {
    value_of(this) != -1
}

unsafe extern "C-unwind" fn get_constant_value(this: *const c_void) -> i64 {
    value_of(this)
}

unsafe extern "C-unwind" fn is_size_tensor(this: *const c_void) -> bool {
    value_of(this) == -1
}

unsafe extern "C-unwind" fn constant(this: *const c_void, value: i64) -> *const IDimensionExpr {
    let expr = Box::new(FakeExpr { vptr: &raw const EXPR_SLOTS, value });
    let outside = Box::new(IDimensionExpr { vptr: ptr::null(), implementation: (&raw const *expr).cast() });
    let pointer = &raw const *outside;
    // SAFETY: as above.
    unsafe { (*this.cast::<FakeImplementation>()).made.borrow_mut().push((outside, expr)) };
    pointer
}

unsafe extern "C-unwind" fn operation(
    this: *const c_void,
    op: DimensionOperation,
    first: *const IDimensionExpr,
    second: *const IDimensionExpr,
) -> *const IDimensionExpr {
    let (first, second) = (value_behind(first), value_behind(second));
    let value = match op {
        DimensionOperation::PROD => first * second,
        DimensionOperation::SUB => first - second,
        DimensionOperation::FLOOR_DIV => first.div_euclid(second),
        _ => return ptr::null(),
    };
    // SAFETY: as above.
    unsafe { constant(this, value) }
}

unsafe extern "C-unwind" fn declare_size_tensor(
    this: *const c_void,
    output: i32,
    opt: *const IDimensionExpr,
    upper: *const IDimensionExpr,
) -> *const IDimensionExpr {
    if output != 1 || value_behind(opt) > value_behind(upper) {
        return ptr::null();
    }
    // SAFETY: as above.
    unsafe { constant(this, -1) }
}

impl FakeBuilder {
    pub(crate) fn new() -> Self {
        let implementation =
            Box::new(FakeImplementation { vptr: &raw const BUILDER_SLOTS, made: RefCell::default() });
        let outside =
            Box::new(IExprBuilder { vptr: ptr::null(), implementation: (&raw const *implementation).cast() });
        Self { implementation, outside }
    }

    pub(crate) fn raw(&self) -> *mut IExprBuilder {
        (&raw const *self.outside).cast_mut()
    }

    pub(crate) fn shape(&self, extents: &[i64]) -> DimsExprs {
        let mut shape = DimsExprs { nb_dims: extents.len() as i32, d: [ptr::null(); MAX_DIMS] };
        for (slot, extent) in shape.d.iter_mut().zip(extents) {
            // SAFETY: the fake's own method.
            *slot = unsafe { constant((&raw const *self.implementation).cast(), *extent) };
        }
        shape
    }

    pub(crate) fn value(&self, expr: *const IDimensionExpr) -> Option<i64> {
        (!expr.is_null()).then(|| value_behind(expr))
    }

    fn client(&self) -> ExprBuilder<'_> {
        // SAFETY: the fake outlives the borrow.
        unsafe { ExprBuilder::from_raw(self.raw()) }.unwrap()
    }
}

#[test]
fn size_tensors_are_declared_by_their_output() {
    let fake = FakeBuilder::new();
    let builder = fake.client();
    let (opt, upper) = (builder.constant(5).unwrap(), builder.constant(10).unwrap());
    let size = builder.declare_size_tensor(1, opt, upper).unwrap();
    assert!(size.constant_value().is_none());
    let error = builder.declare_size_tensor(0, opt, upper).unwrap_err();
    assert_eq!(error.text(), "TensorRT rejected output 0 as a size tensor");
    assert!(builder.declare_size_tensor(1, upper, opt).is_err());
    assert!(builder.declare_size_tensor(usize::MAX, opt, upper).is_err());
}

#[test]
fn operations_reach_the_builder_in_order() {
    let fake = FakeBuilder::new();
    let builder = fake.client();
    let (seven, two) = (builder.constant(7).unwrap(), builder.constant(2).unwrap());
    let difference = builder.operation(DimensionOperation::SUB, seven, two).unwrap();
    let quotient = builder.operation(DimensionOperation::FLOOR_DIV, seven, two).unwrap();
    assert_eq!((difference.constant_value(), quotient.constant_value()), (Some(5), Some(3)));
}

#[test]
fn what_would_not_come_back_is_not_called() {
    let fake = FakeBuilder::new();
    let builder = fake.client();
    let [one, zero, minus_one, min] = [1, 0, -1, i64::MIN].map(|value| builder.constant(value).unwrap());
    let error = builder.operation(DimensionOperation::FLOOR_DIV, one, zero).unwrap_err();
    assert_eq!(error.text(), "the shape of an output divides by zero");
    // -1 is not constant in the fake.
    assert!(super::refuse_division("it", min.constant_value(), Some(-1)).is_err());
    assert!(super::refuse_division("it", None, Some(-1)).is_ok());
    assert!(minus_one.constant_value().is_none());
}

#[test]
fn null_from_the_builder_is_an_error() {
    let fake = FakeBuilder::new();
    let builder = fake.client();
    let one = builder.constant(1).unwrap();
    let error = builder.operation(DimensionOperation::MAX, one, one).unwrap_err();
    assert_eq!(error.text(), "TensorRT rejected the operation DimensionOperation::MAX");
    assert!(builder.operation(DimensionOperation(12), one, one).is_err());
    // SAFETY: the function accepts null.
    assert!(unsafe { ExprBuilder::from_raw(ptr::null()) }.is_none());
}

#[test]
fn shapes_are_bounded() {
    let fake = FakeBuilder::new();
    let builder = fake.client();
    let one = builder.constant(1).unwrap();
    let mut shape = Shape::UNSET;
    assert!(!shape.is_set() && shape.get(0).is_err());
    shape.set(&[one; MAX_DIMS]).unwrap();
    assert_eq!((shape.rank(), shape.get(7).ok().and_then(Expr::constant_value)), (8, Some(1)));
    assert!(shape.get(8).is_err());
    let error = shape.set(&[one; MAX_DIMS + 1]).unwrap_err();
    assert_eq!(error.text(), "an output has 9 dimensions, TensorRT supports at most 8");
    shape.set(&[]).unwrap();
    assert!(shape.is_set() && shape.rank() == 0);
}
