use cubinder_source::diagnostics;

use crate::diagnostic::Span;

diagnostics! {
    pub(super) struct DifferentClusters<'a> { kernel: &'a str, size: String, other: String, first: Span, second: Span }
    error(CLUSTER) "the files of `{kernel}` require different clusters" {
        at first: "this one requires {size}";
        related second: "this one requires {other}";
        note: "all files of a variant are launched with the same clusters";
        help: "put files with the same clusters into a separate variant, or remove the other files";
    }

    pub(super) struct ParameterCount<'a> { kernel: &'a str, count: usize, expected: usize, sizes: String, span: Span }
    error(CODE_PARAMETERS) "the kernel `{kernel}` has {count} parameters, but the manifest declares {expected}" {
        at span: "`parameters` of this code";
        note: "sizes in the file: {sizes} bytes";
        help: "declare all of them, in the kernel's order; compilers may append some, such as Triton (two pointers to scratch memory)";
    }

    pub(super) struct ParameterSize<'a> { parameter: &'a str, bytes: String, in_file: u32, place: String, span: Span }
    error(CODE_PARAMETERS) "`{parameter}` has {bytes}, but the kernel expects {in_file}" {
        at span: "{place}";
        help: "declare the kernel's type; list parameters in the kernel's order";
    }

    pub(super) struct ParameterOffset<'a> { parameter: &'a str, offset: u32, align: u32, place: String, span: Span }
    error(CODE_PARAMETERS) "`{parameter}` is at byte {offset} of the parameters, which is not a multiple of {align}" {
        at span: "{place}";
        help: "declare the kernel's type, such as an array of smaller elements";
    }

    pub(super) struct WrittenThroughConst<'a> { parameter: &'a str, spelling: &'a str, place: String, span: Span }
    error(CODE_PARAMETERS) "`{parameter}` is `{spelling}`, but the kernel writes through it" {
        at span: "{place}";
        help: "list parameters in the kernel's order, and use `const` only if the kernel does not write";
    }

    pub(super) struct ParameterKind<'a> {
        parameter: &'a str, declared: &'static str, in_file: &'static str, place: String, span: Span
    }
    error(CODE_PARAMETERS) "`{parameter}` is {declared}, but the kernel expects {in_file}" {
        at span: "{place}";
        help: "declare the kernel's type";
    }

    pub(super) struct ParameterContradicted<'a> {
        parameter: &'a str, contradiction: String, kernel: String, span: Span, argument: Option<Span>
    }
    error(CODE_PARAMETERS) "`{parameter}` {contradiction}" {
        at span: "a parameter of `{kernel}`";
        related argument ?argument: "the argument";
        help: "list parameters in the kernel's order with its types, and pass matching arguments; the files may be of another instance";
    }

    pub(super) struct ExchangedParameters<'a> { first: &'a str, second: &'a str, signature: String, span: Span }
    warning(CODE_PARAMETERS) "the parameters `{first}` and `{second}` may be swapped: the kernel has both names in other positions" {
        at span: "parameters are bound by position";
        note: "the kernel is `{signature}`";
        help: "list parameters in the kernel's order, with the kernel's names";
    }

    pub(super) struct NumberAsAddress<'a> { parameter: &'a str, tensor: &'a str, span: Span }
    error(CODE_PARAMETERS) "the kernel uses `{parameter}` as an address, but receives a number" {
        at span: "the only valid number is 0, a null pointer";
        help: "declare `{parameter}: const void*` or the type that it points to, and pass a tensor such as `{tensor}`, a scratch buffer, or 0";
    }

    pub(super) struct DriverTooOld { driver: String, code: String, oldest: String, file: Span, required: Span }
    error(DRIVER_TOO_OLD) "driver {driver} cannot load {code}" {
        at file: "this file";
        related required: "the oldest driver to support";
        note: "the oldest driver that can load it is {oldest}";
        help: "compile it with an older CUDA release, remove the file, or raise `min_driver`";
    }

    pub(super) struct UnknownDriver { code: String, reason: &'static str, file: Span, required: Span }
    error(DRIVER_TOO_OLD) "unknown driver requirement of {code}" {
        at file: "this file";
        related required: "the oldest driver to support";
        note: "{reason}";
        help: "remove the file or `min_driver`";
    }
}
