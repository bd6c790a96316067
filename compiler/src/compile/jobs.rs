//! What there is to compile, each thing once, and compiling it side by side.
//!
//! Owns which units share a compile, which kernels tell their parameters at once, and in which order that is begun. Never: what the
//! results mean, and what is wrong with them.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use cubinder_analysis::kernel_text;
use cubinder_code_object::kernel_signature::Signature;
use cubinder_manifest::resolve::Unit;
use cubinder_model::Target;
use cubinder_model::provenance::Origin;
use cubinder_nvrtc::codegen;
use cubinder_nvrtc::nvrtc::{Compiled, PreparedUnit, Session};
use cubinder_source::diagnostic::{Diagnostic, Source, dedup};
use cubinder_source::{rules, source};
use rayon::prelude::*;

use super::{Progress, places, provenance};
use crate::checkup::CheckedPlugin;
use crate::project::{Plan, PlannedTarget, Project};

/// What is compiled once, with all that its compiles need.
pub(super) struct Job<'p> {
    /// The first of the units that it serves.
    pub(super) unit: &'p Unit,
    pub(super) plan: &'p Plan,
    pub(super) prepared: PreparedUnit,
    /// Its include folders whose names are of the machine.
    pub(super) of_machine: Vec<String>,
    pub(super) origin: Origin,
}

/// The jobs of all plugins, each once, and the texts of their kernels.
pub(super) struct CompileJobs<'p> {
    pub(super) jobs: Vec<Job<'p>>,
    pub(super) plugins: Vec<PluginJobs<'p>>,
    pub(super) sources: Sources<'p>,
}

/// The jobs of a plugin. Launches of one kernel with the same types and constants, as far as the kernel takes them, share one: those of two
/// steps, and those of variants that differ in their guards.
pub(super) struct PluginJobs<'p> {
    pub(super) plugin: &'p CheckedPlugin,
    /// The positions of its jobs in [`CompileJobs::jobs`].
    pub(super) jobs: Range<usize>,
    pub(super) units: Vec<UnitJob<'p>>,
}

/// A unit and the position of its job in [`CompileJobs::jobs`]; none for precompiled code.
pub(super) struct UnitJob<'p> {
    pub(super) unit: &'p Unit,
    pub(super) job: Option<usize>,
}

/// A signature, or the reason that it is missing. `None` if the code does not compile.
pub(super) type SignatureResult = Option<Result<Signature, Vec<Diagnostic>>>;

/// A job with its results.
pub(super) struct CompiledJob<'j> {
    pub(super) job: &'j Job<'j>,
    /// One for each of [`Plan::architectures`], in their order.
    pub(super) signatures: Vec<(Target, SignatureResult)>,
    /// One for each of the plan's targets, in their order.
    pub(super) codes: Vec<(Target, Result<Compiled, Vec<Diagnostic>>)>,
}

/// The kernel files, each read once.
pub(super) type Sources<'p> = HashMap<&'p Path, Arc<Source>>;

/// Reads each kernel file once.
fn read_sources(plugins: &[CheckedPlugin]) -> Result<Sources<'_>, Vec<Diagnostic>> {
    let mut sources: Sources<'_> = HashMap::new();
    let mut errors = Vec::new();
    let units = plugins.iter().flat_map(|plugin| &plugin.resolved.draft.units);
    for unit in units.filter(|unit| unit.foreign.is_none()) {
        if sources.contains_key(unit.source.as_path()) {
            continue;
        }
        match kernel_text::open_source(unit, &source::text) {
            Ok(source) => {
                sources.insert(&unit.source, source);
            }
            Err(found) => errors.extend(found),
        }
    }
    dedup(&mut errors);
    if errors.is_empty() { Ok(sources) } else { Err(errors) }
}

impl<'p> CompileJobs<'p> {
    /// The jobs of these plugins, with the files that each includes. Without a session it has no jobs.
    ///
    /// # Errors
    /// Kernel files that cannot be read.
    pub(super) fn plan(
        project: &Project,
        session: Option<&Session>,
        plugins: &'p [CheckedPlugin],
    ) -> Result<CompileJobs<'p>, Vec<Diagnostic>> {
        let sources = read_sources(plugins)?;
        let mut all = CompileJobs { jobs: Vec::new(), plugins: Vec::new(), sources };
        for plugin in plugins {
            let first = all.jobs.len();
            let units = match session {
                Some(session) => units_of(project, session, plugin, &all.sources, &mut all.jobs),
                None => plugin.resolved.draft.units.iter().map(|unit| UnitJob { unit, job: None }).collect(),
            };
            all.plugins.push(PluginJobs { plugin, jobs: first..all.jobs.len(), units });
        }
        Ok(all)
    }

    /// The jobs of one plugin.
    pub(super) fn of_plugin(&self, plugin: &PluginJobs<'_>) -> &[Job<'p>] {
        self.jobs.get(plugin.jobs.clone()).unwrap_or_default()
    }
}

/// The units of a plugin; its jobs are added to `jobs`.
fn units_of<'p>(
    project: &Project,
    session: &Session,
    checked: &'p CheckedPlugin,
    sources: &Sources<'_>,
    jobs: &mut Vec<Job<'p>>,
) -> Vec<UnitJob<'p>> {
    let CheckedPlugin { resolved: plugin, plan } = checked;
    let mut units = Vec::new();
    // What a compile is of, but for what is the same for all units of a plugin: the texts say what is the same code, not the values
    // that they are made from (`0.0` and `-0.0` are equal).
    let mut known: HashMap<(&Path, &str, String), usize> = HashMap::new();
    // What a file and all that it includes take from the manifest, the same for each of the plugin's units.
    let mut of_texts: HashMap<&Path, Option<BTreeSet<String>>> = HashMap::new();
    for unit in &plugin.draft.units {
        let source = sources.get(unit.source.as_path()).filter(|_| unit.foreign.is_none());
        let Some(source) = source else {
            units.push(UnitJob { unit, job: None });
            continue;
        };
        let name = codegen::display_name(&unit.source, &project.root);
        let prepare = |names: Option<&BTreeSet<String>>| {
            let text = codegen::translation_unit(unit, Arc::clone(source), &name, names);
            session.prepare_with(text, Arc::clone(&plan.settings))
        };
        let of_text =
            of_texts.entry(unit.source.as_path()).or_insert_with(|| session.names_taken(&prepare(None)));
        let names = codegen::names_needed(unit, of_text.as_ref());
        let names = names.as_ref();
        let next = jobs.len();
        let job = *known
            .entry((unit.source.as_path(), unit.kernel.as_str(), codegen::header(unit, &[], names)))
            .or_insert(next);
        units.push(UnitJob { unit, job: Some(job) });
        if job < next {
            continue;
        }
        let prepared = prepare(names);
        let toolkit = &session.toolkit().include;
        let of_machine = places::of_machine(prepared.unit(), &plan.settings, toolkit, &project.root);
        let origin = provenance::of_source(project, session, unit, &prepared);
        jobs.push(Job { unit, plan, prepared, of_machine, origin });
    }
    units
}

/// The most signatures that one compile gives. Reading the text takes as long as some 50 kernels without code of their own (NVRTC 13.0, tried).
const MOST_AT_ONCE: usize = 128;

/// As many as make a compile of their own worth its while.
const LEAST_AT_ONCE: usize = 16;

/// The signature of the job with this index, for one of its plan's architectures.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    job: usize,
    /// The position in [`Plan::architectures`].
    position: usize,
    target: Target,
}

/// One thing for a thread to do.
enum Task<'j> {
    /// The signatures of these jobs, which have one text, for one architecture.
    Signatures(Vec<Wanted>),
    /// The code of the job with this index for a target.
    Code(usize, &'j PlannedTarget),
}

/// What came of a task.
enum Done {
    Signatures(Vec<Option<Signature>>),
    Code(Box<Result<Compiled, Vec<Diagnostic>>>),
}

/// Compiles all jobs; the results are in their order.
pub(super) fn perform<'j>(
    session: &Session,
    jobs: &'j [Job<'j>],
    progress: &dyn Progress,
) -> Vec<CompiledJob<'j>> {
    let codes = jobs.iter().enumerate().flat_map(|(index, job)| {
        let targets = job.plan.targets.iter();
        targets.map(move |target| Task::Code(index, target))
    });
    let wanted = jobs.iter().enumerate().flat_map(|(job, of_plan)| {
        let targets = of_plan.plan.architectures().into_iter().enumerate();
        targets.map(move |(position, target)| Wanted { job, position, target })
    });
    let wanted: Vec<Wanted> = wanted.collect();
    // A compile for many signatures may be the longest: it begins first.
    let tasks: Vec<Task<'_>> = alike(jobs, &wanted).into_iter().map(Task::Signatures).chain(codes).collect();
    progress.begin(wanted.len() + jobs.iter().map(|job| job.plan.targets.len()).sum::<usize>());
    // One at a time: a thread that has nothing left to do takes the next of another's, down to the last.
    let each = tasks.par_iter().with_max_len(1);
    let done: Vec<Done> = each.map(|task| perform_one(session, jobs, task, progress)).collect();
    progress.end();
    let without_results = |job: &'j Job<'j>| CompiledJob {
        job,
        signatures: job.plan.architectures().into_iter().map(|target| (target, None)).collect(),
        codes: Vec::new(),
    };
    let mut compiled: Vec<CompiledJob<'j>> = jobs.iter().map(without_results).collect();
    for (task, done) in tasks.iter().zip(done) {
        match (task, done) {
            (Task::Signatures(group), Done::Signatures(found)) => {
                for (wanted, signature) in group.iter().zip(found) {
                    keep(&mut compiled, *wanted, signature.map(Ok));
                }
            }
            (Task::Code(index, planned), Done::Code(code)) => {
                if let Some(job) = compiled.get_mut(*index) {
                    job.codes.push((planned.target, *code));
                }
            }
            _ => {}
        }
    }
    told_apart(session, jobs, &wanted, &mut compiled);
    session.rest();
    compiled
}

fn keep(compiled: &mut [CompiledJob<'_>], wanted: Wanted, signature: SignatureResult) {
    let kept = compiled.get_mut(wanted.job).and_then(|job| job.signatures.get_mut(wanted.position));
    if let Some((_, kept)) = kept {
        *kept = signature;
    }
}

fn perform_one(session: &Session, jobs: &[Job<'_>], task: &Task<'_>, progress: &dyn Progress) -> Done {
    match task {
        Task::Signatures(group) => {
            let found = signatures(session, jobs, group);
            let group = group.iter().filter_map(|wanted| jobs.get(wanted.job));
            group.for_each(|job| progress.step(&job.unit.kernel));
            Done::Signatures(found)
        }
        Task::Code(index, planned) => {
            let Some(job) = jobs.get(*index) else { return Done::Code(Box::new(Err(Vec::new()))) };
            let compiled = session.compile(&job.prepared, planned.target);
            progress.step(&format!("{} for {}", job.unit.kernel, planned.target));
            let compiled = compiled
                .map_err(|errors| errors.into_iter().map(|error| place_of_target(error, planned)).collect());
            Done::Code(Box::new(compiled))
        }
    }
}

fn signatures(session: &Session, jobs: &[Job<'_>], group: &[Wanted]) -> Vec<Option<Signature>> {
    let Some(first) = group.first() else { return Vec::new() };
    let group = group.iter().filter_map(|wanted| jobs.get(wanted.job));
    let units: Vec<&PreparedUnit> = group.map(|job| &job.prepared).collect();
    session.signatures(&units, first.target)
}

/// Where one kernel of a group does not compile, none of them has a signature: the signatures of those that do, from one compile without
/// the others, or each from its own, which says what is wrong with it.
fn told_apart(session: &Session, jobs: &[Job<'_>], wanted: &[Wanted], compiled: &mut [CompiledJob<'_>]) {
    let lacks = |wanted: &&Wanted| {
        compiled.get(wanted.job).is_some_and(|job| {
            job.signatures.get(wanted.position).is_some_and(|(_, signature)| signature.is_none())
                && job.codes.iter().all(|(_, code)| code.is_ok())
        })
    };
    let lacking: Vec<Wanted> = wanted.iter().filter(lacks).copied().collect();
    let found: Vec<(Wanted, Result<Signature, Vec<Diagnostic>>)> = alike(jobs, &lacking)
        .into_par_iter()
        .flat_map_iter(|group| {
            let found = signatures(session, jobs, &group);
            group.into_iter().zip(found).filter_map(|(wanted, signature)| {
                let job = jobs.get(wanted.job)?;
                let alone = || session.signature(&job.prepared, wanted.target);
                Some((wanted, signature.map_or_else(alone, Ok)))
            })
        })
        .collect();
    for (wanted, signature) in found {
        keep(compiled, wanted, Some(signature));
    }
}

/// Signatures in groups of one text and one architecture each: a compile yields all signatures of a group. There is at least one group
/// for each thread.
fn alike(jobs: &[Job<'_>], wanted: &[Wanted]) -> Vec<Vec<Wanted>> {
    let most = wanted.len().div_ceil(rayon::current_num_threads()).clamp(LEAST_AT_ONCE, MOST_AT_ONCE);
    let mut groups: Vec<Vec<Wanted>> = Vec::new();
    let mut open: HashMap<_, usize> = HashMap::new();
    for &one in wanted {
        let Some(job) = jobs.get(one.job) else { continue };
        let unit = job.prepared.unit();
        let text = (&unit.source.path, &unit.prelude.text, std::ptr::from_ref(job.plan), one.target.arch);
        let group = *open.entry(text).or_insert(groups.len());
        match groups.get_mut(group).filter(|group| group.len() < most) {
            Some(group) => group.push(one),
            None => {
                open.insert(text, groups.len());
                groups.push(vec![one]);
            }
        }
    }
    groups
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
