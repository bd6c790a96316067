//! The diagnostics about files of precompiled code.

use std::path::Display;

use cubinder_model::Target;

use crate::diagnostic::Span;

cubinder_source::diagnostics! {
    pub(super) struct UnreadableFile { reason: String }
    error(CODE_FILE) "{reason}" {}

    pub(super) struct UnusableFile<'a> {
        name: &'a str, why: String, libdevice: Option<&'static str>, fix: Option<&'static str>
    }
    error(CODE_FILE) "`{name}` cannot be used: {why}" {
        note ?libdevice: "{libdevice}";
        help ?fix: "{fix}";
    }

    /// The choice between equal targets would be arbitrary.
    pub(super) struct SameTarget<'a> {
        code: &'a str, target: Target, second: Span, first: Span, which: Option<&'static str>, assumed: String
    }
    error(CODE_FILE) "two files of `{code}` are for `{target}`" {
        at second: "the second one";
        related first: "the first one";
        note ?which: "{which} {assumed}";
        help: "leave one of them out; or say in `for` of two `[[code]]` tables which types and constants each was made for";
    }

    pub(super) struct AmbiguousName<'a> { name: &'a str, count: usize, code: &'a str, kernels: String, span: Span }
    error(KERNEL_NOT_FOUND) "`{name}` may be any of {count} kernels of `{code}`" {
        at span: "the kernel is named here";
        note: "they are {kernels}";
        help: "name the instance, such as `kernel = \"perm<float, 1>\"`, or the symbol";
    }

    pub(super) struct Unnamed<'a> { code: &'a str, kernels: String, span: Span }
    error(KERNEL_NOT_FOUND) "nothing says which kernel of its files `{code}` is" {
        at span: "the files have several";
        note: "they are {kernels}";
        help: "say `kernel = \"...\"` in this `[[code]]`";
    }

    pub(super) struct MissingKernel<'a> {
        symbol: &'a str, kernels: String, file: Span, named: Option<Span>, unnamed: Option<&'static str>, fix: String
    }
    error(KERNEL_NOT_FOUND) "the file has no kernel `{symbol}`" {
        at file: "it has {kernels}";
        related named ?named: "the kernel is named here";
        note ?unnamed: "{unnamed}";
        help: "{fix}";
    }

    pub(super) struct AmbiguousArgument<'a> { name: &'a str, count: usize, kernels: String }
    error(KERNEL_NOT_FOUND) "`{name}` may be any of {count} kernels" {
        note: "they are {kernels}";
        help: "name the instance, such as `--kernel 'perm<float, 1>'`, or the symbol";
    }

    /// The command names none of several kernels.
    pub(super) struct UnnamedArgument { kernels: String }
    error(KERNEL_NOT_FOUND) "the files have several kernels" {
        note: "they are {kernels}";
        help: "name one of them: `--kernel SYMBOL`";
    }

    pub(super) struct NoSuchKernel<'a> {
        file: Display<'a>, symbol: &'a str, kernels: Option<String>, near: Option<&'a str>
    }
    error(KERNEL_NOT_FOUND) "`{file}` has no kernel `{symbol}`" {
        note ?kernels: "it has {kernels}";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct Unserved<'a> {
        code: &'a str, targets: String, present: String, name: Span, wanted: String, requested: Vec<Span>,
        no_ptx: Option<&'static str>
    }
    error(CODE_TARGETS) "no code of `{code}` serves {targets}" {
        at name: "there is code for {present}";
        help: "make {wanted}, and name the file here; or say in `[compile]` what there is code for: `targets = [...]`";
        related requested *requested: "asked for here";
        note ?no_ptx: "{no_ptx}";
    }
}
