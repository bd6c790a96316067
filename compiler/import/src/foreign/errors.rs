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

    pub(super) struct SameTarget<'a> {
        code: &'a str, target: Target, second: Span, first: Span, which: Option<&'static str>, assumed: String
    }
    error(CODE_FILE) "two files of `{code}` are for `{target}`" {
        at second: "second file";
        related first: "first file";
        note ?which: "{which} {assumed}";
        help: "remove one; or use two `[[code]]` tables, and specify in `for` which types and constants each was compiled for";
    }

    pub(super) struct AmbiguousName<'a> { name: &'a str, count: usize, code: &'a str, kernels: String, span: Span }
    error(KERNEL_NOT_FOUND) "`{name}` matches {count} kernels of `{code}`" {
        at span: "the kernel is named here";
        note: "the kernels are {kernels}";
        help: "name the instance, such as `kernel = \"perm<float, 1>\"`, or the symbol";
    }

    pub(super) struct Unnamed<'a> { code: &'a str, kernels: String, span: Span }
    error(KERNEL_NOT_FOUND) "`{code}` does not specify which kernel of its files it is" {
        at span: "the files have several kernels";
        note: "the kernels are {kernels}";
        help: "set `kernel = \"...\"` in this `[[code]]`";
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
    error(KERNEL_NOT_FOUND) "`{name}` matches {count} kernels" {
        note: "the kernels are {kernels}";
        help: "name the instance, such as `--kernel 'perm<float, 1>'`, or the symbol";
    }

    pub(super) struct UnnamedArgument { kernels: String }
    error(KERNEL_NOT_FOUND) "the files have several kernels" {
        note: "the kernels are {kernels}";
        help: "select one with `--kernel SYMBOL`";
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
    error(CODE_TARGETS) "no code of `{code}` supports {targets}" {
        at name: "the available code is for {present}";
        help: "compile {wanted}, and add the file here; or restrict `targets = [...]` in `[compile]` to the available code";
        related requested *requested: "requested here";
        note ?no_ptx: "{no_ptx}";
    }
}
