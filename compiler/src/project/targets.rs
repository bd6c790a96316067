use std::collections::BTreeSet;

use cubinder_manifest::manifest::{CodeKind, Located};
use cubinder_manifest::resolve::Resolved;
use cubinder_model::{Target, TargetKind};
use cubinder_source::diagnostic::{Diagnostic, Sink, Span};
use cubinder_source::words::quoted;

use super::{Plan, PlannedTarget, Project};
use crate::errors::{CodeWithoutTarget, NoTarget, NothingLeft, NothingToChooseFrom, TargetNotConfigured};

impl Project {
    /// Checks the command line's targets against all `plans`.
    ///
    /// # Errors
    /// Unconfigured targets.
    pub fn check_target_selection<'p>(
        &self,
        plans: impl Iterator<Item = &'p Plan>,
    ) -> Result<(), Vec<Diagnostic>> {
        let configured: BTreeSet<Target> =
            plans.flat_map(|plan| plan.targets().into_iter().chain(plan.left_out.iter().copied())).collect();
        let unknown = self.options.only.iter().filter(|target| !configured.contains(target));
        let error = |target: &Target| {
            TargetNotConfigured { target: target.to_string(), configured: quoted(&configured) }.into()
        };
        let errors: Vec<Diagnostic> = unknown.map(error).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    pub(super) fn ptx_serves(&self, plugin: &Resolved) -> bool {
        let code = &plugin.manifest.compile.code;
        code.is_empty()
            || !self.options.targets.is_empty()
            || code.iter().any(|kind| kind.value == CodeKind::Ptx)
    }

    /// `code` filters the manifest's and the library's targets.
    pub(super) fn targets(&self, plugin: &Resolved, errors: &Sink) -> Vec<PlannedTarget> {
        let located = |targets: &[Located<Target>], source| -> Vec<PlannedTarget> {
            let planned = |target: &Located<Target>| PlannedTarget {
                target: target.value,
                span: Some(Span::new(source, target.range.clone())),
            };
            targets.iter().map(planned).collect()
        };
        let decl = &plugin.manifest.compile;
        let targets = if !self.options.targets.is_empty() {
            self.options.targets.iter().map(|target| PlannedTarget { target: *target, span: None }).collect()
        } else if decl.targets_are_broken {
            located(&decl.targets, &plugin.source)
        } else if !decl.targets.is_empty() {
            of_kinds(located(&decl.targets, &plugin.source), plugin, errors)
        } else if let Some(config) = &self.config {
            of_kinds(located(&config.targets, &config.source), plugin, errors)
        } else {
            Vec::new()
        };
        let mut seen = BTreeSet::new();
        targets.into_iter().filter(|planned| seen.insert(planned.target)).collect()
    }
}

pub(super) fn nothing_left(plugin: &Resolved, only: &[Target], left_out: &[Target]) -> Diagnostic {
    NothingLeft { only: joined(only), span: plugin.name_span.clone(), left_out: quoted(left_out) }.into()
}

pub(super) fn no_target(only: &[Target]) -> Diagnostic {
    match only {
        [] => NoTarget {}.into(),
        only => NothingToChooseFrom { only: joined(only) }.into(),
    }
}

fn joined(targets: &[Target]) -> String {
    targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn of_kinds(targets: Vec<PlannedTarget>, plugin: &Resolved, errors: &Sink) -> Vec<PlannedTarget> {
    let code = &plugin.manifest.compile.code;
    let is_of = |kind: CodeKind, planned: &PlannedTarget| match kind {
        CodeKind::Cubin => planned.target.kind == TargetKind::Cubin,
        CodeKind::Ptx => planned.target.kind == TargetKind::Ptx,
    };
    let missing =
        code.iter().filter(|kind| targets.iter().all(|planned| !is_of(kind.value, planned))).map(|kind| {
            let (name, example) = match kind.value {
                CodeKind::Cubin => ("machine code", "sm_89"),
                CodeKind::Ptx => ("PTX", "compute_80"),
            };
            let all = quoted(targets.iter().map(|planned| planned.target));
            let span = Span::new(&plugin.source, kind.range.clone());
            let of_targets = place_of_all(&targets);
            CodeWithoutTarget { kind: name, example, span, targets: all, of_targets }.into()
        });
    errors.report(missing);
    let is_asked = |planned: &PlannedTarget| code.iter().any(|kind| is_of(kind.value, planned));
    targets.into_iter().filter(|planned| code.is_empty() || is_asked(planned)).collect()
}

fn place_of_all(targets: &[PlannedTarget]) -> Option<Span> {
    let first = targets.first()?.span.as_ref()?;
    let last = targets.last()?.span.as_ref()?;
    let is_one = first.source.path == last.source.path;
    is_one.then(|| Span::new(&first.source, first.range.start..last.range.end))
}
