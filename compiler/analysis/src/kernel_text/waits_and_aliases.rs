//! Warns about kernels that compile but may run incorrectly.

use cubinder_model::Plugin;

use super::check::Check;
use super::errors::{NoDependencyWait, RestrictedAlias, RestrictedTwice};
use crate::cuda::Param;
use crate::diagnostic::{Diagnostic, Span};
use crate::directives::includes_only_cuda_headers;
use crate::resolve::{ArgDraft, ArgDraftValue};

/// Detects waits for the preceding step, by CUDA's runtime function or PTX (ISA 9.0). The instruction's other form only
/// lets the next step start.
fn may_wait(text: &str) -> bool {
    let waits = |(at, name): (usize, &str)| {
        let form = text.get(at + name.len()..).unwrap_or_default().trim_start_matches(['.', '_']);
        !form.starts_with("launch_dependents")
    };
    text.contains("cudaGridDependencySynchronize") || text.match_indices("griddepcontrol").any(waits)
}

impl Check<'_> {
    pub(super) fn without_wait(&self, plugin: &Plugin) -> Option<Diagnostic> {
        let launch = plugin.variants.get(self.unit.variant)?.launch(self.unit.step)?;
        let text = &self.source.text;
        // Any mention counts as a wait.
        let mut texts = self.options.iter().chain([text]);
        if !launch.programmatic || texts.any(|text| may_wait(text)) || !includes_only_cuda_headers(text) {
            return None;
        }
        // The minimum of `griddepcontrol` (PTX ISA 9.0).
        let without = self.targets.iter().find(|target| target.arch.major < 9).map(|target| {
            format!(
                " between `#if __CUDA_ARCH__ >= 900` and `#endif`, because `{target}` lacks this instruction"
            )
        });
        let (condition, kernel) = (without.unwrap_or_default(), self.kernel.path());
        let in_kernel = Span::new(self.source, self.kernel.name_range.clone());
        let launched = self.unit.kernel_span.clone();
        Some(NoDependencyWait { kernel, condition, launched, in_kernel }.into())
    }

    pub(super) fn restricted(&self, plugin: &Plugin) -> Option<Diagnostic> {
        let argument = |name: &str| self.unit.args.iter().find(|arg| arg.name == name);
        let memory = |value: &ArgDraftValue| match value {
            ArgDraftValue::Tensor(tensor) => Some(Shared::Tensor(plugin.storage_of(*tensor as usize))),
            ArgDraftValue::Scratch(index) => Some(Shared::Scratch(*index)),
            ArgDraftValue::Expr { .. } => None,
        };
        let passed = self.kernel.params.iter().filter_map(|param| {
            let arg = argument(&param.name).filter(|arg| arg.broken.is_none())?;
            Some((param, arg, memory(&arg.value)?))
        });
        let passed: Vec<(&Param, &ArgDraft, Shared)> = passed.collect();
        let pairs = passed.iter().enumerate().flat_map(|(at, one)| {
            let others = passed.iter().take(at);
            others.filter(move |other| other.2 == one.2).map(move |other| (other, one))
        });
        let (first, second) = pairs.into_iter().find(|(first, second)| {
            let is_restrict = first.0.ty.is_restrict || second.0.ty.is_restrict;
            let is_written = !first.0.ty.is_const || !second.0.ty.is_const;
            // Another rule reports writable inputs.
            let is_input = matches!(first.2, Shared::Tensor(storage) if storage < plugin.inputs.len());
            is_restrict && is_written && !(is_input && first.1.value == second.1.value)
        })?;
        let (one, other) = (self.unit_text(first.1), self.unit_text(second.1));
        let (span, again) = (first.1.value_span.clone(), second.1.value_span.clone());
        let diagnostic = match first.1.value == second.1.value {
            true => Diagnostic::from(RestrictedTwice { name: one, span, again }),
            false => RestrictedAlias { one, other, span, again }.into(),
        };
        let restricted = [first.0, second.0].into_iter().filter(|param| param.ty.is_restrict);
        Some(restricted.fold(diagnostic, |diagnostic, param| {
            diagnostic.related(Span::new(self.source, param.range.clone()), "`__restrict__` here")
        }))
    }

    fn unit_text(&self, arg: &ArgDraft) -> String {
        let span = &arg.value_span;
        let text = span.source.text.get(span.range.clone()).unwrap_or_default();
        text.trim_matches(['"', '\'', ' ']).to_owned()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Shared {
    Tensor(usize),
    Scratch(u32),
}

#[cfg(test)]
mod tests {
    use super::may_wait;

    #[test]
    fn to_let_the_next_step_begin_is_no_wait() {
        for (text, expected) in [
            ("asm volatile(\"griddepcontrol.launch_dependents;\");", false),
            ("cuda::ptx::griddepcontrol_launch_dependents();", false),
            ("cudaTriggerProgrammaticLaunchCompletion();", false),
            ("asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");", true),
            ("cuda::ptx::griddepcontrol_wait();", true),
            ("griddepcontrol.launch_dependents; griddepcontrol.wait;", true),
            ("#define DEP griddepcontrol", true),
            ("cudaGridDependencySynchronize();", true),
        ] {
            assert_eq!(may_wait(text), expected, "{text}");
        }
    }
}
