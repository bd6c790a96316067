//! What only the text of a kernel tells: warnings about what compiles and may not do what its author means.

use cubinder_bundle::Plugin;
use cubinder_bundle::expr::Expr;

use super::Param;
use super::check::{Check, is_of_cuda};
use crate::cache::directives;
use crate::diagnostic::{Diagnostic, Span};
use crate::resolve::{ArgDraft, ArgDraftValue};
use crate::rules;

impl Check<'_> {
    /// All of them.
    pub(super) fn of_text(&self, plugin: &Plugin) -> impl Iterator<Item = Diagnostic> {
        let found = [self.without_shared_memory(plugin), self.without_wait(plugin), self.restricted(plugin)];
        found.into_iter().flatten()
    }

    /// The kernel uses shared memory whose size the launch gives, and the launch gives none.
    fn without_shared_memory(&self, plugin: &Plugin) -> Option<Diagnostic> {
        let place = self.kernel.dynamic_shared.clone()?;
        let variant = plugin.variants.get(self.unit.variant)?;
        let launch = variant.launch(self.unit.step).filter(|launch| is_zero(&launch.shared_bytes))?;
        let threads =
            launch.block.iter().map(Expr::constant).try_fold(1_i64, |all, axis| all.checked_mul(axis?));
        let example = threads.and_then(|threads| threads.checked_mul(4)).unwrap_or(1024);
        let message =
            format!("`{}` has dynamic shared memory, and the launch gives it none", self.kernel.path());
        Some(
            Diagnostic::warning(message)
                .code(rules::NO_DYNAMIC_SHARED_MEMORY)
                .at(self.unit.kernel_span.clone(), "launched with 0 bytes of it")
                .related(Span::new(self.source, place), "its size comes from the launch")
                .note("the GPU stops the kernel at the first access")
                .help(format!(
                    "say how many bytes, such as `shared_bytes = {example}`, or give the array a size and leave `extern` out"
                )),
        )
    }

    /// The kernel may begin before the step before it has ended, and nothing in its text waits for that.
    fn without_wait(&self, plugin: &Plugin) -> Option<Diagnostic> {
        let launch = plugin.variants.get(self.unit.variant)?.launch(self.unit.step)?;
        // What is included may have a function that does.
        if !launch.programmatic
            || self.kernel.may_wait
            || !directives(&self.source.text).iter().all(is_of_cuda)
        {
            return None;
        }
        let message = format!("`{}` never waits for the step before it", self.kernel.path());
        Some(
            Diagnostic::warning(message)
                .code(rules::NO_DEPENDENCY_WAIT)
                .at(self.unit.kernel_span.clone(), "launched with `programmatic = true`")
                .related(Span::new(self.source, self.kernel.name_range.clone()), "the kernel")
                .note("it may begin while what came before is still writing what it reads")
                .help("wait before the kernel reads or writes memory, with `asm volatile(\"griddepcontrol.wait;\" ::: \"memory\")`, or leave `programmatic` out"),
        )
    }

    /// Two names of one memory, of which a parameter says that it is the only one.
    fn restricted(&self, plugin: &Plugin) -> Option<Diagnostic> {
        // Of several arguments with one name the first counts.
        let argument = |name: &str| self.unit.args.iter().find(|arg| arg.name == name);
        let passed: Vec<(&Param, &ArgDraft, u32)> = self
            .kernel
            .params
            .iter()
            .filter_map(|param| {
                let arg = argument(&param.name).filter(|arg| arg.broken.is_none())?;
                match arg.value {
                    ArgDraftValue::Tensor(tensor) => Some((param, arg, tensor)),
                    _ => None,
                }
            })
            .collect();
        let memory = |tensor: u32| {
            let output = (tensor as usize).checked_sub(plugin.inputs.len());
            let alias = output.and_then(|output| plugin.outputs.get(output)?.alias);
            alias.unwrap_or(tensor)
        };
        let pairs = passed.iter().enumerate().flat_map(|(at, one)| {
            let others = passed.iter().take(at);
            others.filter(move |other| memory(other.2) == memory(one.2)).map(move |other| (other, one))
        });
        let (first, second) = pairs.into_iter().find(|(first, second)| {
            let is_restrict = first.0.ty.is_restrict || second.0.ty.is_restrict;
            let is_written = !first.0.ty.is_const || !second.0.ty.is_const;
            is_restrict && is_written && first.2 != second.2
        })?;
        let place = |param: &Param| Span::new(self.source, param.range.clone());
        let restricted = [first.0, second.0].into_iter().filter(|param| param.ty.is_restrict);
        let diagnostic = Diagnostic::warning(format!(
            "`{}` and `{}` are one memory, which a `__restrict__` parameter must not share",
            self.unit_text(first.1),
            self.unit_text(second.1)
        ))
        .code(rules::RESTRICTED_ALIAS)
        .at(first.1.value_span.clone(), "one name of it")
        .related(second.1.value_span.clone(), "the other one")
        .note("the compiler may then read before or after what the kernel says: what it writes through one it need not see through the other")
        .help("take `__restrict__` out of the kernel, or pass one of both names alone");
        Some(restricted.fold(diagnostic, |diagnostic, param| diagnostic.related(place(param), "said here")))
    }

    /// The name that an argument passes.
    fn unit_text(&self, arg: &ArgDraft) -> String {
        let span = &arg.value_span;
        let text = span.source.text.get(span.range.clone()).unwrap_or_default();
        text.trim_matches(['"', '\'', ' ']).to_owned()
    }
}

fn is_zero(expr: &Expr) -> bool {
    expr.constant() == Some(0)
}
