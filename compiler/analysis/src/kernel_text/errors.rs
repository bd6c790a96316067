//! Diagnostics about the text of kernels.

use cubinder_source::diagnostics;

use crate::diagnostic::Span;

diagnostics! {
    pub(super) struct AttributeAsTemplateArgument<'a> {
        name: &'a str, argument: Span, in_kernel: Span, declared: Option<Span>
    }
    error(KERNEL_NOT_FOUND) "`{name}` is an attribute that no code is compiled for" {
        at argument: "this template argument";
        related in_kernel: "the kernel";
        related declared ?declared: "nodes say what it is, when the kernels are compiled already";
        help: "list its values, `specialize = [...]`: each is compiled for; or pass it to the kernel as an argument";
    }

    pub(super) struct ConstantOfOtherVariants<'a> { name: &'a str, argument: Span, in_kernel: Span, declared: Option<Span> }
    error(KERNEL_NOT_FOUND) "`{name}` is a constant of other variants, and this variant has none of that name" {
        at argument: "this template argument";
        related in_kernel: "the kernel";
        related declared ?declared: "another variant has it";
        help: "give every variant this constant, or declare it under `[constants]`";
    }

    pub(super) struct UndecidedTemplateParameter<'a> { name: &'a str, argument: Span, in_kernel: Span }
    error(KERNEL_NOT_FOUND) "`{name}` is a template parameter of the kernel, and nothing says what it is" {
        at argument: "this template argument";
        related in_kernel: "the kernel";
        help: "name a type parameter, a constant or an attribute with `specialize`, or write what it stands for";
    }

    pub(super) struct NoDependencyWait { kernel: String, condition: String, launched: Span, in_kernel: Span }
    warning(NO_DEPENDENCY_WAIT) "`{kernel}` never waits for the step before it" {
        at launched: "launched with `programmatic = true`";
        related in_kernel: "the kernel";
        note: "it may begin while what came before is still writing what it reads";
        help: "wait before the kernel reads or writes memory, with `asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");`{condition}, or leave `programmatic` out";
    }

    pub(super) struct RestrictedTwice { name: String, span: Span, again: Span }
    warning(RESTRICTED_ALIAS) "`{name}` is passed twice, and a `__restrict__` parameter must not share its memory" {
        at span: "passed here";
        related again: "and here";
        note: "{RESTRICTED}";
        help: "take `__restrict__` out of the kernel, or pass it once";
    }

    pub(super) struct RestrictedAlias { one: String, other: String, span: Span, again: Span }
    warning(RESTRICTED_ALIAS) "`{one}` and `{other}` are one memory, which a `__restrict__` parameter must not share" {
        at span: "one name of it";
        related again: "the other one";
        note: "{RESTRICTED}";
        help: "take `__restrict__` out of the kernel, or pass one of both names alone";
    }
}

const RESTRICTED: &str = "the compiler may then read before or after what the kernel says: what it writes through one it need not see through the other";
