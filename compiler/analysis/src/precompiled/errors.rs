//! Diagnostics about precompiled code. The check adds positions in files.

use cubinder_source::diagnostics;

use crate::diagnostic::Span;

diagnostics! {
    pub(super) struct DifferentClusters<'a> { kernel: &'a str, size: String, other: String, first: Span, second: Span }
    error(CLUSTER) "the files of `{kernel}` ask for different clusters" {
        at first: "this one asks for {size}";
        related second: "this one asks for {other}";
        note: "a variant is launched alike whichever of its files serves the GPU";
        help: "put files that ask for the same clusters into a variant of its own, or leave those of the others out";
    }

    pub(super) struct ParameterCount<'a> { kernel: &'a str, count: usize, expected: usize, sizes: String, span: Span }
    error(CODE_PARAMETERS) "the kernel `{kernel}` takes {count} parameters, and the manifest says {expected}" {
        at span: "`parameters` of this code";
        note: "in the file they have {sizes} bytes";
        help: "say all of them, in the kernel's order; compilers may add some at the end, as Triton does (two pointers to scratch memory)";
    }

    pub(super) struct ParameterSize<'a> { parameter: &'a str, bytes: String, in_file: u32, place: String, span: Span }
    error(CODE_PARAMETERS) "`{parameter}` has {bytes}, and the kernel takes {in_file} there" {
        at span: "{place}";
        help: "say the type that the kernel has there; parameters stand in the kernel's order";
    }

    pub(super) struct ParameterOffset<'a> { parameter: &'a str, offset: u32, align: u32, place: String, span: Span }
    error(CODE_PARAMETERS) "`{parameter}` lies at byte {offset} of the parameters, which is no multiple of {align}" {
        at span: "{place}";
        help: "say the type that the kernel has there: an array of smaller elements, for instance";
    }

    pub(super) struct WrittenThroughConst<'a> { parameter: &'a str, spelling: &'a str, place: String, span: Span }
    error(CODE_PARAMETERS) "`{parameter}` is `{spelling}`, and the kernel writes there" {
        at span: "{place}";
        help: "say the parameters in the kernel's order, and `const` only where it does not write";
    }

    pub(super) struct ParameterKind<'a> {
        parameter: &'a str, declared: &'static str, in_file: &'static str, place: String, span: Span
    }
    error(CODE_PARAMETERS) "`{parameter}` is {declared}, and the kernel takes {in_file} there" {
        at span: "{place}";
        help: "say the type that the kernel has there";
    }

    pub(super) struct ParameterContradicted<'a> {
        parameter: &'a str, contradiction: String, kernel: String, span: Span, argument: Option<Span>
    }
    error(CODE_PARAMETERS) "`{parameter}` {contradiction}" {
        at span: "a parameter of `{kernel}`";
        related argument ?argument: "what it gets";
        help: "say the parameters in the kernel's order, with the types that it has, and pass each what it takes; files of another instance may have been named";
    }

    pub(super) struct ExchangedParameters<'a> { first: &'a str, second: &'a str, signature: String, span: Span }
    warning(CODE_PARAMETERS) "the parameters `{first}` and `{second}` may be exchanged: the kernel has both names, at other places" {
        at span: "parameters are bound by their places";
        note: "the kernel is `{signature}`";
        help: "say the parameters in the kernel's order, by the kernel's names";
    }

    pub(super) struct NumberAsAddress<'a> { parameter: &'a str, tensor: &'a str, span: Span }
    error(CODE_PARAMETERS) "the kernel reads `{parameter}` as an address, and gets a number" {
        at span: "only 0 is no address";
        help: "say `{parameter}: const void*` or the type that it points to, and pass a tensor such as `{tensor}`, a scratch buffer, or 0";
    }

    pub(super) struct DriverTooOld { driver: String, code: String, oldest: String, file: Span, required: Span }
    error(DRIVER_TOO_OLD) "driver {driver} does not load {code}" {
        at file: "this file";
        related required: "this driver must be able to";
        note: "the first that does is {oldest}";
        help: "make it with an older release of CUDA, leave the file out, or raise `min_driver`";
    }

    pub(super) struct UnknownDriver { code: String, reason: &'static str, file: Span, required: Span }
    error(DRIVER_TOO_OLD) "it is not known which drivers load {code}" {
        at file: "this file";
        related required: "this driver must be able to";
        note: "{reason}";
        help: "leave the file out, or `min_driver`";
    }
}
