//! The kernels of all plugins, compiled side by side and held against their manifests.
//!
//! Owns what is compiled at once, and the joining of what came of it. Says each mistake once, whatever number of variants,
//! targets and plugins it shows in.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use cubinder_bundle::{Arg, KernelFacts, Plugin, Target};
use rayon::prelude::*;

use super::{Progress, dedup, explain};
use crate::check::{self, Obligation};
use crate::codegen;
use crate::config;
use crate::cubin;
use crate::cuda;
use crate::diagnostic::{Diagnostic, Severity, Source, has_errors};
use crate::nvrtc::{Compiled, PreparedUnit, Session, merge_targets};
use crate::pack::{CompiledCode, CompiledPlugin, CompiledUnit};
use crate::project::{Plan, PlannedTarget, Project};
use crate::resolve::{Resolved, Unit};
use crate::rules;
use crate::signature::Signature;
use crate::verify;

/// All plugins, compiled.
pub(super) struct CompiledPlugins {
    pub(super) plugins: Vec<CompiledPlugin>,
    /// The NVRTC that made the code.
    pub(super) nvrtc: Option<(i32, i32)>,
    /// What had to hold of launches against the code, each once for a kernel.
    pub(super) obligations: Vec<Obligation>,
}

/// A unit with all that its compiles need.
struct Job<'p> {
    unit: &'p Unit,
    plan: &'p Plan,
    prepared: PreparedUnit,
}

/// One thing for a thread to do.
#[derive(Clone, Copy)]
enum Task<'j> {
    Signature(&'j Job<'j>),
    Code(&'j Job<'j>, &'j PlannedTarget),
}

/// What came of a task.
enum Done {
    Signature(Signature),
    Code(Box<Compiled>),
}

type TaskResult = Result<Done, Vec<Diagnostic>>;

/// Compiles every unit of every plugin; `plans` has one plan for each plugin.
pub(super) fn compile(
    project: &Project,
    session: &Session,
    plugins: &[Resolved],
    plans: &[Plan],
    progress: &dyn Progress,
    warnings: &mut Vec<Diagnostic>,
) -> Result<CompiledPlugins, Vec<Diagnostic>> {
    let sources = read_sources(plugins)?;
    let jobs: Vec<Vec<Job<'_>>> = plugins
        .iter()
        .zip(plans)
        .map(|(plugin, plan)| jobs(project, session, plugin, plan, &sources))
        .collect();
    for (plugin, jobs) in plugins.iter().zip(&jobs) {
        warnings.extend(unused_names(session, plugin, jobs));
    }
    let open = |path: &Path| sources.get(path).cloned().ok_or_else(Vec::new);
    let read: Vec<Vec<Diagnostic>> =
        plugins.iter().map(|plugin| cuda::check(plugin, &open).diagnostics).collect();
    let mut results = perform_all(session, &jobs, progress).into_iter();
    let mut compiled = Vec::new();
    let mut nvrtc = None;
    let mut obligations = Vec::new();
    let mut errors = Vec::new();
    for ((plugin, jobs), read) in plugins.iter().zip(&jobs).zip(read) {
        let (mistakes, doubts): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|found| found.severity == Severity::Error);
        // Of the rest the compiler's own facts tell.
        warnings
            .extend(doubts.into_iter().filter(|found| found.code == Some(rules::NO_DYNAMIC_SHARED_MEMORY)));
        let finished = finish_plugin(plugin, jobs, &mut results, warnings);
        match finished.map_err(|errors| explain::with_what_was_read(mistakes, errors)) {
            Ok(finished) => {
                nvrtc = nvrtc.or(finished.nvrtc);
                obligations.extend(finished.obligations);
                compiled.push(finished.plugin);
            }
            Err(found) => errors.extend(found),
        }
    }
    dedup(warnings);
    dedup(&mut errors);
    if errors.is_empty() {
        return Ok(CompiledPlugins { plugins: compiled, nvrtc, obligations });
    }
    errors.append(warnings);
    Err(errors)
}

type Sources<'p> = HashMap<&'p Path, Arc<Source>>;

/// Reads each kernel file once.
fn read_sources(plugins: &[Resolved]) -> Result<Sources<'_>, Vec<Diagnostic>> {
    let mut sources: Sources<'_> = HashMap::new();
    let mut errors = Vec::new();
    for unit in plugins.iter().flat_map(|plugin| &plugin.draft.units) {
        if sources.contains_key(unit.source.as_path()) {
            continue;
        }
        match cuda::open_source(unit, &config::open) {
            Ok(source) => {
                sources.insert(&unit.source, source);
            }
            Err(found) => errors.extend(found),
        }
    }
    dedup(&mut errors);
    if errors.is_empty() { Ok(sources) } else { Err(errors) }
}

/// A job for each unit of a plugin, with what it includes.
fn jobs<'p>(
    project: &Project,
    session: &Session,
    plugin: &'p Resolved,
    plan: &'p Plan,
    sources: &Sources<'_>,
) -> Vec<Job<'p>> {
    let job = |unit: &'p Unit| {
        let source = Arc::clone(sources.get(unit.source.as_path())?);
        let name = codegen::display_name(&unit.source, &project.root);
        let text = codegen::translation_unit(unit, source, &name);
        let prepared = session.prepare_with(text, Arc::clone(&plan.settings));
        Some(Job { unit, plan, prepared })
    };
    plugin.draft.units.iter().filter_map(job).collect()
}

/// The warnings about type parameters and constants that neither the manifest nor a kernel uses. Where a kernel includes what
/// only the preprocessor can tell, it may use all of them.
fn unused_names(session: &Session, plugin: &Resolved, jobs: &[Job<'_>]) -> Vec<Diagnostic> {
    if plugin.unused_names.is_empty() {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for job in jobs {
        let unit = job.prepared.unit();
        if !seen.insert(unit.source.path.as_path()) {
            continue;
        }
        names.extend(codegen::manifest_names(&unit.source.text));
        let Some(files) = session.included_files(&job.prepared) else { return Vec::new() };
        for file in files {
            // What cannot be read now was read a moment ago: it may use all of them.
            let Ok(source) = config::open(file) else { return Vec::new() };
            names.extend(codegen::manifest_names(&source.text));
        }
    }
    plugin.unused(&names)
}

/// Does all tasks of all jobs; the results are in the order of [`tasks`].
fn perform_all(session: &Session, jobs: &[Vec<Job<'_>>], progress: &dyn Progress) -> Vec<TaskResult> {
    let tasks: Vec<Task<'_>> = jobs.iter().flatten().flat_map(tasks).collect();
    progress.begin(tasks.len());
    let results = tasks.par_iter().map(|task| perform(*task, session, progress)).collect();
    progress.end();
    results
}

/// The tasks of a job: the signature, then the code for each target.
fn tasks<'j>(job: &'j Job<'j>) -> impl Iterator<Item = Task<'j>> {
    let codes = job.plan.targets.iter().map(move |target| Task::Code(job, target));
    std::iter::once(Task::Signature(job)).chain(codes)
}

fn perform(task: Task<'_>, session: &Session, progress: &dyn Progress) -> TaskResult {
    match task {
        Task::Signature(job) => {
            let target = job.plan.targets.first().ok_or_else(Vec::new)?.target;
            let signature = session.signature(&job.prepared, target);
            progress.step(&job.unit.kernel);
            signature.map(Done::Signature)
        }
        Task::Code(job, planned) => {
            let compiled = session.compile(&job.prepared, planned.target);
            progress.step(&format!("{} for {}", job.unit.kernel, planned.target));
            compiled
                .map(|compiled| Done::Code(Box::new(compiled)))
                .map_err(|errors| errors.into_iter().map(|error| place_of_target(error, planned)).collect())
        }
    }
}

/// What is wrong with a target is shown where it is asked for.
fn place_of_target(error: Diagnostic, planned: &PlannedTarget) -> Diagnostic {
    match &planned.span {
        Some(span) if error.code == Some(rules::TARGET_NOT_SERVED) && error.primary.is_none() => {
            error.at(span.clone(), "asked for here")
        }
        _ => error,
    }
}

/// A plugin, the NVRTC that made its code, and what had to hold of its launches.
struct FinishedPlugin {
    plugin: CompiledPlugin,
    nvrtc: Option<(i32, i32)>,
    obligations: Vec<Obligation>,
}

/// Joins what came of a plugin's jobs, with the NVRTC that made it.
fn finish_plugin(
    plugin: &Resolved,
    jobs: &[Job<'_>],
    results: &mut impl Iterator<Item = TaskResult>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<FinishedPlugin, Vec<Diagnostic>> {
    let draft = &plugin.draft;
    let mut units = Vec::new();
    let mut nvrtc = None;
    let (mut wrong, mut doubtful) = (Vec::new(), Vec::new());
    for job in jobs {
        let signature = results.next();
        let targets = job.plan.targets.iter().map(|planned| planned.target);
        let codes: Results = targets.zip(results.by_ref().take(job.plan.targets.len())).collect();
        let row = verify::Row::of(&draft.plugin, job.unit);
        let mut said = Vec::new();
        match finish_unit(&draft.plugin, job, signature, codes, &mut said) {
            Ok(finished) => {
                nvrtc = nvrtc.or(finished.nvrtc);
                units.push(finished.unit);
                wrong.push((row.clone(), Vec::new()));
            }
            Err(found) => wrong.push((row.clone(), found)),
        }
        doubtful.push((row, said));
    }
    warnings.extend(verify::merge_rows(&doubtful));
    let errors = verify::merge_rows(&wrong);
    if !errors.is_empty() {
        return Err(errors.into_iter().map(|error| explain::with_places(plugin, error)).collect());
    }
    let compiled: Vec<check::Compiled<'_>> = units.iter().map(facts).collect();
    let checked = check::check_compiled(plugin, &compiled);
    if has_errors(&checked.diagnostics) {
        return Err(checked.diagnostics);
    }
    warnings.extend(checked.diagnostics);
    let obligations = checked.obligations;
    Ok(FinishedPlugin { plugin: CompiledPlugin { draft: draft.clone(), units }, nvrtc, obligations })
}

type Results = Vec<(Target, TaskResult)>;

/// A unit, and the NVRTC that made its code.
struct FinishedUnit {
    unit: CompiledUnit,
    nvrtc: Option<(i32, i32)>,
}

/// Joins what came of a unit's tasks and holds the parts against each other.
fn finish_unit(
    plugin: &Plugin,
    job: &Job<'_>,
    signature: Option<TaskResult>,
    codes: Results,
    warnings: &mut Vec<Diagnostic>,
) -> Result<FinishedUnit, Vec<Diagnostic>> {
    let unit = job.unit;
    let mut compiled = Vec::new();
    // Of every target, those without errors too: then it can be said where only some have one.
    let mut failed = Vec::new();
    for (target, result) in codes {
        failed.push((target, result.as_ref().err().cloned().unwrap_or_default()));
        if let Ok(Done::Code(code)) = result {
            compiled.push((target, *code));
        }
    }
    let said: Vec<_> = compiled.iter().map(|(target, code)| (*target, code.warnings.clone())).collect();
    warnings.extend(merge_targets(&said));
    let failed = merge_targets(&failed);
    if !failed.is_empty() {
        // The compile for the signature failed for the same reason.
        return Err(failed);
    }
    let signature = match signature {
        Some(Ok(Done::Signature(signature))) => signature,
        Some(Err(found)) => return Err(found),
        _ => return Err(vec![Diagnostic::error(format!("`{}` was not compiled", unit.kernel))]),
    };
    let args = verify::bind_args(plugin, unit, &signature)
        .map_err(|errors| explain::with_kernel(errors, job.prepared.unit()))?;
    warnings.extend(verify::writable_inputs(plugin, unit, &signature));
    let check = |code: &Compiled| check_code(plugin, unit, &signature, &args, code).err().unwrap_or_default();
    let found: Vec<_> = compiled.iter().map(|(target, code)| (*target, check(code))).collect();
    let errors = merge_targets(&found);
    if !errors.is_empty() {
        return Err(errors);
    }
    let nvrtc = compiled.first().map(|(_, code)| code.nvrtc);
    let code = compiled
        .into_iter()
        .map(|(_, code)| CompiledCode { object: code.object, symbol: code.symbol })
        .collect();
    Ok(FinishedUnit { unit: CompiledUnit { args, code }, nvrtc })
}

/// What the rules that need the code look at.
fn facts(unit: &CompiledUnit) -> check::Compiled<'_> {
    let kernel =
        |code: &'_ CompiledCode| code.object.kernels.iter().position(|kernel| kernel.symbol == code.symbol);
    let codes = unit.code.iter();
    let codes = codes.filter_map(|code| Some((code.object.target, code.object.kernels.get(kernel(code)?)?)));
    check::Compiled { args: &unit.args, codes: codes.collect() }
}

/// What a code object says about the unit's kernel.
fn facts_of(code: &Compiled) -> Option<&KernelFacts> {
    code.object.kernels.iter().find(|kernel| kernel.symbol == code.symbol)
}

/// Holds a code object against the launch that it is for.
fn check_code(
    plugin: &Plugin,
    unit: &Unit,
    signature: &Signature,
    args: &[Arg],
    code: &Compiled,
) -> Result<(), Vec<Diagnostic>> {
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    let (Some(launch), Some(kernel)) = (launch, facts_of(code)) else {
        return Err(vec![
            Diagnostic::error(format!(
                "the code for `{}` has no kernel `{}`",
                code.object.target, code.symbol
            ))
            .at(unit.kernel_span.clone(), "compiled for this kernel"),
        ]);
    };
    let target = code.object.target;
    let unreadable = |error: &dyn std::fmt::Display| {
        vec![
            Diagnostic::error(format!("the code for `{target}` cannot be read: {error}"))
                .at(unit.kernel_span.clone(), "compiled for this kernel"),
        ]
    };
    let raw = code.object.raw().map_err(|error| unreadable(&error))?;
    let rules = cubin::launch_rules(target, &raw, &code.symbol).map_err(|error| unreadable(&error))?;
    verify::check_code(&verify::CodeCheck { unit, launch, args, signature, target, kernel, rules })
}
