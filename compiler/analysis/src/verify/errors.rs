//! The findings about arguments and code objects, and their texts.

use cubinder_source::diagnostics;

use crate::diagnostic::Span;

diagnostics! {
    /// An input that the kernel gets through a pointer that is not `const`.
    pub(super) struct WritableInput<'a> {
        input: &'a str, parameter: &'a str, spelling: &'a str, pointee: &'a str, in_place: String, span: Span
    }
    warning(WRITABLE_INPUT) "the kernel could write to the input `{input}`" {
        at span: "the parameter `{parameter}` is a `{spelling}`";
        note: "an input belongs to TensorRT: other layers may read the same memory";
        help: "take it as `const {pointee}* {parameter}`{in_place}";
    }

    pub(super) struct NamelessParameters<'a> {
        noun: &'static str, which: String, kernel: &'a str, verb: &'static str, span: Span
    }
    error(PARAMETER_NAMES) "the {noun} {which} of `{kernel}` {verb}" {
        at span: "arguments are bound by name";
        help: "give every parameter of the kernel a name, and each name an argument";
    }

    pub(super) struct SharedParameterName<'a> { kernel: &'a str, count: usize, name: &'a str, span: Span }
    error(PARAMETER_NAMES) "the kernel `{kernel}` has {count} parameters called `{name}`" {
        at span: "arguments are bound by name";
        help: "the parameters of a pack (`Ts... {name}`) share its name: write them out, or pass `cubinder::array<T, N> {name}`";
    }

    pub(super) struct UnknownParameter<'a> { kernel: &'a str, parameter: &'a str, help: Option<String>, span: Span }
    error(UNKNOWN_PARAMETER) "the kernel `{kernel}` has no parameter `{parameter}`" {
        at span: "no such parameter";
        help ?help: "{help}";
    }

    pub(super) struct MissingArguments<'a> {
        noun: &'static str, names: String, kernel: &'a str, verb: &'static str, them: &'static str, span: Span
    }
    error(MISSING_ARGUMENT) "the {noun} {names} of `{kernel}` {verb}" {
        at span: "not among these";
        help: "give {them}, or take it out of the kernel";
    }

    pub(super) struct UnknownTensor<'a> { tensor: u32, argument: &'a str, span: Span }
    error "the draft has no tensor {tensor} for the argument `{argument}`" { at span: "this argument"; }

    /// A value of another kind than the parameter.
    pub(super) struct ArgumentMisfit<'a> {
        spelling: &'a str, parameter: &'a str, label: String, help: Option<String>, span: Span
    }
    error(ARGUMENT_MISFIT) "the argument does not fit the parameter `{spelling} {parameter}`" {
        at span: "{label}";
        help ?help: "{help}";
    }

    pub(super) struct ConstOutput<'a> { output: String, parameter: &'a str, help: String, span: Span }
    error(ARGUMENT_MISFIT) "{output} bound to a pointer to `const`" {
        at span: "the kernel's `{parameter}` cannot be written through";
        help: "{help}";
    }

    /// A tensor of another element type than the parameter points to.
    pub(super) struct ElementMisfit<'a> {
        name: &'a str, ty: &'a str, parameter: &'a str, spelling: &'a str, element: String, cuda_name: &'a str,
        pointee: &'a str, size: String, reason: String, span: Span
    }
    error(ARGUMENT_MISFIT) "`{name}` holds `{ty}`, but the parameter `{parameter}` is a `{spelling}`" {
        at span: "{element}, `{cuda_name}` in CUDA";
        note: "the kernel takes pointers to `{pointee}`{size}: {reason}";
        help: "take `{cuda_name}*` or a vector of it, integers of the same width for its bits, a vector of other numbers that holds several elements such as `uint4`, or `void*`";
    }
}
