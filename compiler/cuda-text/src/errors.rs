use cubinder_source::diagnostics;

use crate::diagnostic::Span;

diagnostics! {
    pub(crate) struct NotAKernel<'a> {
        kernel: &'a str, file: &'a str, span: Span, note: String, help: String, near: Option<String>,
    }
    error(KERNEL_NOT_FOUND) "`{kernel}` is not a kernel of `{file}`" {
        at span: "no such kernel"; note: "{note}"; help: "{help}"; help ?near: "did you mean `{near}`?";
    }

    /// `parameters` shows how to use its template parameters.
    pub(crate) struct TemplateMisfit<'a> {
        problem: &'a str, name: &'a str, span: Span, kernel: Span, usage: &'a str, or: &'a str, parameters: Option<&'a str>,
    }
    error(KERNEL_NOT_FOUND) "{problem}" {
        at span: "this is `{name}`"; related kernel: "the kernel"; help: "write `{usage}`{or}";
        help ?parameters: "the kernel is `{parameters}`: write a type parameter, a constant or a number for each of its \
            template parameters";
    }

    pub(crate) struct ManifestTypeAsArgument<'a> { name: &'a str, file: &'a str, span: Span, ty: &'static str }
    error(KERNEL_NOT_FOUND) "`{name}` is not a C++ name, and `{file}` does not declare it" {
        at span: "this template argument"; note: "`{name}` is called `{ty}` in C++";
        help: "declare a type parameter, `T = [\"{name}\"]` under `[types]`, and write `T` here; or write `{ty}`";
    }

    pub(crate) struct UndeclaredArgument<'a> {
        name: &'a str, file: &'a str, span: Span, declared: Option<String>, near: Option<&'a str>,
    }
    error(KERNEL_NOT_FOUND) "`{name}` is declared neither in the manifest nor in `{file}`" {
        at span: "this template argument"; note ?declared: "the manifest declares {declared}";
        help: "declare it under `[types]` or `[constants]`, or write the type or value";
        help ?near: "did you mean `{near}`?";
    }
}
