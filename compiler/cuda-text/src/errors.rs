//! The diagnostics of names of kernels.

use cubinder_source::diagnostics;

use crate::diagnostic::Span;

diagnostics! {
    pub(crate) struct KernelIsFunction<'a> { kernel: &'a str, file: &'a str, span: Span, path: String }
    error(KERNEL_NOT_FOUND) "`{kernel}` is not a kernel of `{file}`" {
        at span: "no such kernel"; note: "`{path}` is a function there, and no kernel";
        help: "mark it with `__global__`";
    }

    pub(crate) struct FileWithoutKernels<'a> { kernel: &'a str, file: &'a str, span: Span }
    error(KERNEL_NOT_FOUND) "`{kernel}` is not a kernel of `{file}`" {
        at span: "no such kernel"; note: "the file has no `__global__` function";
        help: "mark the kernel with `__global__`";
    }

    pub(crate) struct KernelMissing<'a> {
        kernel: &'a str, file: &'a str, span: Span, existing: String, near: Option<String>,
    }
    error(KERNEL_NOT_FOUND) "`{kernel}` is not a kernel of `{file}`" {
        at span: "no such kernel"; note: "the file has the {existing}";
        help: "name one of them, with an argument for each of its template parameters";
        help ?near: "did you mean `{near}`?";
    }

    pub(crate) struct KernelOfMacro<'a> { kernel: &'a str, file: &'a str, span: Span, name: String }
    error(KERNEL_NOT_FOUND) "`{kernel}` is not a kernel of `{file}`" {
        at span: "no such kernel"; note: "the macro `{name}` makes kernels";
        help: "name the kernel as `{name}` spells it";
    }

    /// `parameters` is the usage of a kernel with template parameters.
    pub(crate) struct TemplateMisfit<'a> {
        problem: &'a str, name: &'a str, span: Span, kernel: Span, usage: &'a str, parameters: Option<&'a str>,
    }
    error(KERNEL_NOT_FOUND) "{problem}" {
        at span: "this is `{name}`"; related kernel: "the kernel"; help: "write `{usage}`";
        help ?parameters: "the kernel is `{parameters}`: write a type parameter, a constant or a number of yours for \
            each of its template parameters";
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
        help: "declare it under `[types]` or `[constants]`, or write what it stands for";
        help ?near: "did you mean `{near}`?";
    }
}
