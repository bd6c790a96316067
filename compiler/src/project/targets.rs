//! What a manifest is compiled for.

use cubinder_manifest::manifest::{CodeKind, Located};
use cubinder_manifest::resolve::Resolved;
use cubinder_model::{Target, TargetKind};
use cubinder_source::diagnostic::{Diagnostic, Span};
use cubinder_source::rules;

use super::{Plan, PlannedTarget, Project};

impl Project {
    /// Holds the targets that the command line chooses against those that there are; `plans` are those of all manifests.
    ///
    /// # Errors
    /// Every one that is not configured.
    pub fn check_only<'p>(&self, plans: impl Iterator<Item = &'p Plan>) -> Result<(), Vec<Diagnostic>> {
        let mut configured: Vec<Target> = Vec::new();
        for plan in plans {
            let all = plan.targets.iter().map(|planned| planned.target).chain(plan.left_out.iter().copied());
            configured.extend(all);
        }
        configured.sort_unstable();
        configured.dedup();
        let unknown = self.asked.only.iter().filter(|target| !configured.contains(target));
        let errors: Vec<Diagnostic> = unknown.map(|target| not_configured(*target, &configured)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Whether PTX is among the kinds of code that a manifest asks for.
    pub(super) fn ptx_serves(&self, plugin: &Resolved) -> bool {
        let code = &plugin.manifest.compile.code;
        code.is_empty()
            || !self.asked.targets.is_empty()
            || code.iter().any(|kind| kind.value == CodeKind::Ptx)
    }

    /// Those of the command line, else of the manifest, else of the library; the last two as far as `code` admits them.
    pub(super) fn targets(&self, plugin: &Resolved, errors: &mut Vec<Diagnostic>) -> Vec<PlannedTarget> {
        let located = |targets: &[Located<Target>], source| -> Vec<PlannedTarget> {
            let planned = |target: &Located<Target>| PlannedTarget {
                target: target.value,
                span: Some(Span::new(source, target.range.clone())),
            };
            targets.iter().map(planned).collect()
        };
        let decl = &plugin.manifest.compile;
        let targets = if !self.asked.targets.is_empty() {
            self.asked.targets.iter().map(|target| PlannedTarget { target: *target, span: None }).collect()
        } else if decl.targets_are_broken {
            located(&decl.targets, &plugin.source)
        } else if !decl.targets.is_empty() {
            of_kinds(located(&decl.targets, &plugin.source), plugin, errors)
        } else if let Some(config) = &self.config {
            of_kinds(located(&config.targets, &config.source), plugin, errors)
        } else {
            Vec::new()
        };
        let mut once: Vec<PlannedTarget> = Vec::new();
        for planned in targets {
            if once.iter().all(|known| known.target != planned.target) {
                once.push(planned);
            }
        }
        once
    }
}

fn listed(targets: &[Target]) -> String {
    targets.iter().map(|target| format!("`{target}`")).collect::<Vec<_>>().join(", ")
}

fn not_configured(target: Target, configured: &[Target]) -> Diagnostic {
    Diagnostic::error(format!("`{target}` is none of the targets that this project is compiled for"))
        .note(format!("they are {}", listed(configured)))
        .help(format!(
            "`--arch` chooses among them; `--target {target}` compiles for it whatever the project says"
        ))
}

pub(super) fn nothing_left(plugin: &Resolved, only: &[Target], left_out: &[Target]) -> Diagnostic {
    Diagnostic::error(format!(
        "`--arch {}` leaves nothing to compile for",
        only.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    ))
    .at(plugin.name_span.clone(), "of this plugin")
    .note(format!("it is compiled for {}", listed(left_out)))
    .help("name one of these too")
}

pub(super) fn no_target(only: &[Target]) -> Diagnostic {
    if !only.is_empty() {
        let only: Vec<String> = only.iter().map(ToString::to_string).collect();
        let only = only.join(",");
        return Diagnostic::error(format!("`--arch {only}` chooses among targets, and none are named"))
            .note("neither the manifest's `[compile]` nor a `cubinder.toml` names `targets`")
            .help(format!("`--target {only}` compiles for it"));
    }
    Diagnostic::error("nothing says what to compile for").help(
        "name the GPUs: `--target sm_89` for machine code, `--target compute_80` for PTX that newer GPUs compile at load; or \
         write `targets` into the manifest's `[compile]`",
    )
}

/// The targets of the kinds that `code` names; all where it names none.
fn of_kinds(
    targets: Vec<PlannedTarget>,
    plugin: &Resolved,
    errors: &mut Vec<Diagnostic>,
) -> Vec<PlannedTarget> {
    let code = &plugin.manifest.compile.code;
    let is_of = |kind: CodeKind, planned: &PlannedTarget| match kind {
        CodeKind::Cubin => planned.target.kind == TargetKind::Cubin,
        CodeKind::Ptx => planned.target.kind == TargetKind::Ptx,
    };
    let missing: Vec<Diagnostic> = code
        .iter()
        .filter(|kind| targets.iter().all(|planned| !is_of(kind.value, planned)))
        .map(|kind| {
            let (what, example) = match kind.value {
                CodeKind::Cubin => ("machine code", "sm_89"),
                CodeKind::Ptx => ("PTX", "compute_80"),
            };
            let all: Vec<String> = targets.iter().map(|planned| format!("`{}`", planned.target)).collect();
            let error = Diagnostic::error(format!("no target gives {what}"))
                .code(rules::CODE_WITHOUT_TARGET)
                .at(Span::new(&plugin.source, kind.range.clone()), "asked for here")
                .note(format!("the targets are {}", all.join(", ")))
                .help(format!("add a target such as `{example}`, or leave this out"));
            match place_of_all(&targets) {
                Some(place) => error.related(place, "the targets"),
                None => error,
            }
        })
        .collect();
    errors.extend(missing);
    let is_asked = |planned: &PlannedTarget| code.iter().any(|kind| is_of(kind.value, planned));
    targets.into_iter().filter(|planned| code.is_empty() || is_asked(planned)).collect()
}

/// The place of all targets together, where one file has them.
fn place_of_all(targets: &[PlannedTarget]) -> Option<Span> {
    let first = targets.first()?.span.as_ref()?;
    let last = targets.last()?.span.as_ref()?;
    let is_one = first.source.path == last.source.path;
    is_one.then(|| Span::new(&first.source, first.range.start..last.range.end))
}
