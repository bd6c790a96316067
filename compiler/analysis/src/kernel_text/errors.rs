use cubinder_source::diagnostics;

use crate::diagnostic::Span;

diagnostics! {
    pub(super) struct AttributeAsTemplateArgument<'a> {
        name: &'a str, argument: Span, in_kernel: Span, declared: Option<Span>
    }
    error(KERNEL_NOT_FOUND) "the template argument `{name}` is an attribute without `specialize`" {
        at argument: "this template argument";
        related in_kernel: "the kernel";
        related declared ?declared: "nodes set its value, after the kernels are compiled";
        help: "list the values to compile for with `specialize = [...]`, or pass it as a kernel argument";
    }

    pub(super) struct ConstantOfOtherVariants<'a> { name: &'a str, argument: Span, in_kernel: Span, declared: Option<Span> }
    error(KERNEL_NOT_FOUND) "the constant `{name}` is missing in this variant" {
        at argument: "this template argument";
        related in_kernel: "the kernel";
        related declared ?declared: "declared in another variant";
        help: "add this constant to every variant, or declare it under `[constants]`";
    }

    pub(super) struct UndecidedTemplateParameter<'a> { name: &'a str, argument: Span, in_kernel: Span }
    error(KERNEL_NOT_FOUND) "the template parameter `{name}` of the kernel has no value" {
        at argument: "this template argument";
        related in_kernel: "the kernel";
        help: "use a type parameter, a constant or an attribute with `specialize`, or write the type or value";
    }

    pub(super) struct NoDependencyWait { kernel: String, condition: String, launched: Span, in_kernel: Span }
    warning(NO_DEPENDENCY_WAIT) "`{kernel}` never waits for the step before it" {
        at launched: "launched with `programmatic = true`";
        related in_kernel: "the kernel";
        note: "it may start while the previous step still writes its inputs";
        help: "wait before the kernel accesses memory, with `asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");`{condition}, or remove `programmatic`";
    }

    pub(super) struct RestrictedTwice { name: String, span: Span, again: Span }
    warning(RESTRICTED_ALIAS) "`{name}` is passed twice, but a `__restrict__` parameter must not share memory" {
        at span: "passed here";
        related again: "and here";
        note: "{RESTRICTED}";
        help: "remove `__restrict__` from the kernel, or pass it once";
    }

    pub(super) struct RestrictedAlias { one: String, other: String, span: Span, again: Span }
    warning(RESTRICTED_ALIAS) "`{one}` and `{other}` share memory, but a `__restrict__` parameter must not" {
        at span: "passed here";
        related again: "and here";
        note: "{RESTRICTED}";
        help: "remove `__restrict__` from the kernel, or pass only one of them";
    }
}

const RESTRICTED: &str =
    "the compiler may reorder accesses: writes through one parameter may not be visible through the other";
