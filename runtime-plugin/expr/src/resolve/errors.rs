use super::types::Type;
use crate::error::Span;
use crate::error::{ErrorClass, ExprError};
use crate::node::DeviceFact;

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
        "use a type parameter, or a type such as `f32`";
    UnknownName UnknownFact<'a> { name: &'a str } "unknown device property `{name}`", "unknown field";
    UnknownName UnknownField<'a> { name: &'a str } "unknown tensor field `{name}`", "unknown field";

    BadCall Recursion<'a> { name: &'a str } "`{name}` calls itself", "recursive call",
        "use a comprehension over `range(n)` for repetition; functions are inlined";
    BadCall WrongCount<'a> { name: &'a str, wanted: String, found: usize, usage: &'a str }
        "`{name}` expects {wanted}, found {found}", "wrong number of arguments", "write {usage}";

    WrongKind NotAFunction<'a> { name: &'a str } "`{name}` is not a function", "cannot be called";
    WrongKind NotATensor<'a> { form: &'a str, found: Type } "`{form}` expects a tensor, found {found}", "not a tensor";
    WrongKind NotAType "`sizeof` expects a type", "not a type", "use a type parameter, or a type such as `f32`";
    WrongKind TensorAsValue<'a> { name: &'a str, help: String } "`{name}` is a tensor", "not a value", "{help}";
    WrongKind TypeAsValue<'a> { name: &'a str } "`{name}` is a type", "not a value",
        "use `sizeof({name})` for its size in bytes";
    WrongKind DeviceAsValue<'a> { facts: &'a str } "`device` is not a value", "requires a field", "{facts}";
    WrongKind FieldOfValue<'a> { name: &'a str, found: &'a Type } "only tensors have fields, found {found}",
        "no field `{name}`";
    WrongKind TypesCompared { parameter: String, ty: String } "types cannot be compared", "not values",
        "specify the types of a variant: `types = {{ {parameter} = [\"{ty}\"] }}`";
    WrongKind HostAddress "a shape input is in host memory: kernels do not receive its address",
        "not on the device", "remove this";
    WrongKind WrongType<'a> { rule: &'a str, found: &'a Type } "{rule}, found {found}", "{found}";
    WrongKind WrongTypes<'a> { rule: &'a str, left: &'a Type, right: &'a Type } "{rule}, found {left} and {right}",
        "{left} and {right}";
    WrongKind DifferentKinds<'a> { what: &'a str, common: &'a Type, found: &'a Type }
        "{what} must be of one kind, found {common} and {found}", "{found}";
    WrongKind IntegersDivided "`/` divides floats, found integer and integer", "both sides are integers",
        "write `a // b`, which rounds down, `ceil_div(a, b)`, which rounds up, or `float(a) / b`";

    NoValue AlwaysFails { error: String } "{error}", "this always fails";
    NoValue LessThanAByte<'a> { prefix: String, ty: &'a str, share: u32 }
        "{prefix}`{ty}` has no size in bytes: {share} elements share a byte", "less than a byte",
        "use `ceil_div(n, {share})` for the bytes of `n` elements";
    NoValue NotAnAlignment { most: u32, found: i64 } "an alignment must be a power of two from 1 to {most}, found {found}",
        "this is {found}", "use at most {most}, the alignment that TensorRT requires of applications";

    OutOfPlace SizeInExpression<'a> { name: &'a str } "the size `{name}` is not known here",
        "known after the kernels have run", "use it only as a dimension in the `shape` of an output";
    OutOfPlace ShapeFromData<'a> { name: &'a str } "the shape of `{name}` depends on data and is not known here",
        "known after the kernels have run",
        "use its rank, `{name}.rank`, or the `upper` of its size, which no dimension exceeds";
    OutOfPlace UnseenShapeInput<'a> { name: &'a str } "the values of `{name}` are not known when kernels are launched",
        "available only in shapes of outputs",
        "use an extent that depends on them, such as `y.shape[0]`; TensorRT uses shape inputs only for shapes";
    OutOfPlace ValuesOfTensor<'a> { name: &'a str, help: &'a str } "the values of `{name}` are not known when shapes are computed",
        "not a shape input", "{help}";
    OutOfPlace DeviceInShape { fact: DeviceFact } "`{fact}` is not known here", "known when a kernel is launched",
        "use it only in guards and launches; shapes do not depend on the device";
    OutOfPlace AddressOutsideGuard "only a guard can use addresses", "not known here",
        "move this to the `guard` of a variant; addresses are known when a kernel is launched";
    OutOfPlace FormatUnknown<'a> { field: &'a str } "`{field}` is not known here", "depends on the tensor's format",
        "use formats only in guards and launches; TensorRT requests shapes before it chooses formats";
    OutOfPlace LateAlignment "an alignment must be known at compile time", "unknown at compile time",
        "use numbers, constants and `sizeof`, such as `VEC * sizeof(T)`";

    Syntax AlignmentTooSlow "the alignments of this expression take too long to compute", "too many steps",
        "write the number";
}
