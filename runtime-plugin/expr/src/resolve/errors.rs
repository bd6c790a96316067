//! Errors of names and types.

use super::types::Type;
use crate::error::Span;
use crate::error::{ErrorClass, ExprError};
use crate::node::DeviceFact;

/// Declares an error type: class, fields, message, label, help.
macro_rules! errors {
    ($(
        $class:ident $name:ident $(<$life:lifetime>)? $({ $($field:ident: $ty:ty),* })?
        $message:literal, $label:literal $(, $help:literal)?;
    )*) => {$(
        pub(super) struct $name $(<$life>)? { $($(pub(super) $field: $ty),*)? }

        impl $(<$life>)? $name $(<$life>)? {
            pub(super) fn with_span(self, span: &Span) -> ExprError {
                let $name { $($($field),*)? } = self;
                let error = ExprError::new(ErrorClass::$class, span.clone(), format!($message), format!($label));
                $(let error = error.help(format!($help));)?
                error
            }
        }
    )*};
}

errors! {
    UnknownName UnknownFunction<'a> { name: &'a str } "unknown function `{name}`", "not known here";
    UnknownName UnknownVariable<'a> { name: &'a str } "unknown name `{name}`", "not known here";
    UnknownName UnknownType<'a> { name: &'a str } "unknown type `{name}`", "not known here",
        "name a type parameter, or a type such as `f32`";
    UnknownName UnknownFact<'a> { name: &'a str } "nothing is known of a device by the name `{name}`", "unknown field";
    UnknownName UnknownField<'a> { name: &'a str } "a tensor has no field `{name}`", "unknown field";

    BadCall Recursion<'a> { name: &'a str } "`{name}` calls itself", "recursive call",
        "functions are inlined: use a comprehension over `range(n)` to repeat something";
    BadCall WrongCount<'a> { name: &'a str, wanted: String, found: usize, usage: &'a str }
        "`{name}` takes {wanted}, found {found}", "wrong number of arguments", "write {usage}";

    WrongKind NotAFunction<'a> { name: &'a str } "`{name}` is not a function", "cannot be called";
    WrongKind NotATensor<'a> { form: &'a str, found: Type } "`{form}` takes a tensor, found {found}", "not a tensor";
    WrongKind NotAType "`sizeof` takes a type", "not a type", "name a type parameter, or a type such as `f32`";
    WrongKind TensorAsValue<'a> { name: &'a str, help: String } "`{name}` is a tensor", "not a value", "{help}";
    WrongKind TypeAsValue<'a> { name: &'a str } "`{name}` is a type", "not a value",
        "its size in bytes is `sizeof({name})`";
    WrongKind DeviceAsValue<'a> { facts: &'a str } "`device` is not a value", "needs a field", "{facts}";
    WrongKind FieldOfValue<'a> { name: &'a str, found: &'a Type } "only a tensor has fields, found {found}",
        "no field `{name}`";
    WrongKind TypesCompared { parameter: String, ty: String } "types cannot be compared", "not values",
        "a variant says which types it serves: `types = {{ {parameter} = [\"{ty}\"] }}`";
    WrongKind HostAddress "a shape input lies in the host's memory: kernels do not get its address",
        "not on the device", "leave it out";
    WrongKind WrongType<'a> { rule: &'a str, found: &'a Type } "{rule}, found {found}", "{found}";
    WrongKind WrongTypes<'a> { rule: &'a str, left: &'a Type, right: &'a Type } "{rule}, found {left} and {right}",
        "{left} and {right}";
    WrongKind DifferentKinds<'a> { what: &'a str, common: &'a Type, found: &'a Type }
        "{what} must be of one kind, found {common} and {found}", "{found}";
    WrongKind IntegersDivided "`/` divides floats, found integer and integer", "both sides are integers",
        "write `//` for floor division, or `float(a) / b`";

    NoValue AlwaysFails { error: String } "{error}", "this always fails";
    NoValue LessThanAByte<'a> { prefix: String, ty: &'a str, share: u32 }
        "{prefix}`{ty}` has no size in bytes: {share} elements share a byte", "less than a byte",
        "the bytes of `n` elements are `ceil_div(n, {share})`";
    NoValue NotAnAlignment { most: u32, found: i64 } "an alignment is a power of two from 1 to {most}, found {found}",
        "this is {found}", "TensorRT asks applications for tensors at multiples of {most} bytes, no more";

    OutOfPlace SizeInExpression<'a> { name: &'a str } "the size that `{name}` holds is not known here",
        "known once the kernels have run", "it can only be a dimension in the `shape` of an output";
    OutOfPlace ShapeFromData<'a> { name: &'a str } "the shape of `{name}` depends on data: it is not known here",
        "known once the kernels have run",
        "its rank is `{name}.rank`, and no dimension is larger than the `upper` of its size";
    OutOfPlace UnseenShapeInput<'a> { name: &'a str } "what `{name}` holds is not known when kernels are launched",
        "known to the shapes of outputs alone",
        "TensorRT uses shape inputs for shapes and keeps them from what runs: ask for an extent that follows from them, \
         such as `y.shape[0]`";
    OutOfPlace ValuesOfTensor<'a> { name: &'a str, help: &'a str } "the values of `{name}` are not known when shapes are",
        "not a shape input", "{help}";
    OutOfPlace DeviceInShape { fact: DeviceFact } "`{fact}` is not known here", "known when a kernel is launched",
        "it can stand in guards and launches; shapes are the same on every device";
    OutOfPlace AddressOutsideGuard "only a guard can ask for addresses", "not known here",
        "addresses are known when a kernel is launched: move this to the `guard` of a variant";
    OutOfPlace FormatUnknown<'a> { field: &'a str } "`{field}` is not known here", "depends on the tensor's format",
        "TensorRT asks for shapes before it chooses formats: only guards and launches can look at them";
    OutOfPlace LateAlignment "an alignment must be known when the plugin is compiled", "known later",
        "use numbers, constants and `sizeof`, such as `VEC * sizeof(T)`";

    Syntax AlignmentTooSlow "the alignments of this expression take too long to compute", "too many steps",
        "write the number";
}
