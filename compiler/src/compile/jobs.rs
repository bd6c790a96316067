//! Collects unique compile jobs and runs their programs in parallel. Never interprets results.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use cubinder_analysis::kernel_text;
use cubinder_code_object::kernel_signature::Signature;
use cubinder_manifest::resolve::Unit;
use cubinder_model::Target;
use cubinder_model::provenance::Origin;
use cubinder_nvrtc::codegen;
use cubinder_nvrtc::nvrtc::shared::Activity;
use cubinder_nvrtc::nvrtc::{Cause, Compile, CompileMessage, CompiledKernel, Copied, PreparedUnit, Session};
use cubinder_source::diagnostic::{Diagnostic, Label, Source, dedup};
use cubinder_source::{rules, source};
use indicatif::ProgressBar;
use rayon::prelude::*;

use super::{machine_paths, provenance};
use crate::check_plugins::CheckedPlugin;
use crate::project::{Plan, PlannedTarget, Project};

/// A compile shared by equal units.
pub(super) struct Job<'p> {
    /// The first of its units.
    pub(super) unit: &'p Unit,
    pub(super) plan: &'p Plan,
    pub(super) prepared: PreparedUnit,
    /// A target of each architecture on which parameters may depend.
    signature_targets: Vec<Target>,
    /// Bytes of the source and the project files that it includes.
    pub(super) text_length: usize,
    /// Include folders with machine-specific names.
    pub(super) machine_folders: Vec<String>,
    pub(super) origin: Origin,
}

pub(super) struct CompileJobs<'p> {
    pub(super) project: &'p Project,
    /// `None` if no kernel has a source.
    pub(super) session: Option<&'p Session>,
    pub(super) jobs: Vec<Job<'p>>,
    pub(super) plugins: Vec<PluginJobs<'p>>,
    pub(super) sources: Sources<'p>,
}

/// Launches of a kernel with equal used types and constants share a job.
pub(super) struct PluginJobs<'p> {
    pub(super) plugin: &'p CheckedPlugin,
    /// Range in [`CompileJobs::jobs`].
    pub(super) jobs: Range<usize>,
    pub(super) units: Vec<UnitJob<'p>>,
}

/// Indices of the jobs of one NVRTC program.
pub(super) type Program = Vec<usize>;

/// A unit and its index in [`CompileJobs::jobs`]; `None` if precompiled.
pub(super) struct UnitJob<'p> {
    pub(super) unit: &'p Unit,
    pub(super) job: Option<usize>,
}

/// `None` if the code does not compile.
pub(super) type SignatureResult = Option<Result<Signature, Vec<CompileMessage>>>;

pub(super) struct CompiledJob<'j> {
    pub(super) job: &'j Job<'j>,
    /// Each with a target of its architecture; a single one serves all targets.
    pub(super) signatures: Vec<(Target, SignatureResult)>,
    /// In the order of the plan's targets.
    pub(super) codes: Vec<(Target, Result<CompiledKernel, Vec<CompileMessage>>)>,
}

pub(super) type Sources<'p> = HashMap<&'p Path, Arc<Source>>;

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
    pub(super) fn new(
        project: &'p Project,
        session: Option<&'p Session>,
        plugins: &'p [CheckedPlugin],
    ) -> Result<CompileJobs<'p>, Vec<Diagnostic>> {
        let sources = read_sources(plugins)?;
        let mut all = CompileJobs { project, session, jobs: Vec::new(), plugins: Vec::new(), sources };
        for plugin in plugins {
            let first = all.jobs.len();
            let units = match session {
                Some(session) => all.add_units(session, plugin),
                None => plugin.resolved.draft.units.iter().map(|unit| UnitJob { unit, job: None }).collect(),
            };
            all.plugins.push(PluginJobs { plugin, jobs: first..all.jobs.len(), units });
        }
        Ok(all)
    }

    fn add_units(&mut self, session: &Session, checked: &'p CheckedPlugin) -> Vec<UnitJob<'p>> {
        let CheckedPlugin { resolved: plugin, plan } = checked;
        let root = &self.project.root;
        let mut units = Vec::new();
        // Keyed by text, because equal values can differ (`0.0` and `-0.0`).
        let mut known: HashMap<(&Path, &str, String), usize> = HashMap::new();
        let mut texts: HashMap<&Path, TextFacts> = HashMap::new();
        for unit in &plugin.draft.units {
            let source = self.sources.get(unit.source.as_path()).filter(|_| unit.foreign.is_none());
            let Some(source) = source else {
                units.push(UnitJob { unit, job: None });
                continue;
            };
            let name = codegen::display_name(&unit.source, root);
            let prepare = |names: Option<&BTreeSet<String>>| {
                let text = codegen::translation_unit(unit, Arc::clone(source), &name, names);
                session.prepare_with(text, Arc::clone(&plan.settings))
            };
            let of_text = texts
                .entry(unit.source.as_path())
                .or_insert_with(|| TextFacts::new(session, &prepare(None), plan));
            let names = codegen::names_needed(unit, of_text.names.as_ref());
            let names = names.as_ref();
            let next = self.jobs.len();
            let key = (unit.source.as_path(), unit.kernel.as_str(), codegen::header(unit, &[], names));
            let job = *known.entry(key).or_insert(next);
            units.push(UnitJob { unit, job: Some(job) });
            if job < next {
                continue;
            }
            let prepared = prepare(names);
            let toolkit = &session.toolkit().include;
            let machine_folders =
                machine_paths::include_folders_of_machine(&prepared.unit, &plan.settings, toolkit, root);
            let origin = provenance::of_source(self.project, session, unit, &prepared);
            self.jobs.push(Job {
                unit,
                plan,
                prepared,
                signature_targets: of_text.signature_targets.clone(),
                text_length: of_text.length,
                machine_folders,
                origin,
            });
        }
        units
    }
}

struct TextFacts {
    /// Manifest names that it uses, if known.
    names: Option<BTreeSet<String>>,
    signature_targets: Vec<Target>,
    length: usize,
}

impl TextFacts {
    fn new(session: &Session, prepared: &PreparedUnit, plan: &Plan) -> TextFacts {
        let mut signature_targets = plan.architectures();
        if !session.may_depend_on_architecture(prepared) {
            signature_targets.truncate(1);
        }
        TextFacts {
            names: session.names_taken(prepared),
            signature_targets,
            length: session.text_length(prepared),
        }
    }
}

/// Maximum signatures per compile. Parsing takes as long as 50 empty kernels (NVRTC 13.0, measured).
const MAX_GROUP: usize = 128;

/// Minimum signatures per separate compile.
const MIN_GROUP: usize = 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct SignatureRequest {
    pub(super) job: usize,
    /// Index in [`CompiledJob::signatures`].
    position: usize,
    pub(super) target: Target,
}

pub(super) enum Task<'j> {
    Signatures(Vec<SignatureRequest>),
    Code(&'j Program, &'j PlannedTarget),
}

impl Task<'_> {
    pub(super) fn compile<'j>(&self, jobs: &'j [Job<'j>]) -> Option<Compile<'j>> {
        let prepared = |job: &usize| Some(&jobs.get(*job)?.prepared);
        Some(match self {
            Task::Signatures(group) => Compile {
                units: group.iter().filter_map(|it| prepared(&it.job)).collect(),
                target: group.first()?.target,
                is_signatures: true,
            },
            Task::Code(program, planned) => Compile {
                units: program.iter().filter_map(prepared).collect(),
                target: planned.target,
                is_signatures: false,
            },
        })
    }
}

type CodeResult = Result<CompiledKernel, Vec<CompileMessage>>;

enum TaskResult {
    Signatures(Vec<(SignatureRequest, Option<Signature>)>),
    Code(Target, Vec<(usize, CodeResult)>),
}

fn signature_requests(jobs: &[Job<'_>]) -> Vec<SignatureRequest> {
    let of_job = |(job, it): (usize, &Job<'_>)| {
        let targets = it.signature_targets.iter().enumerate();
        let request =
            |(position, target): (usize, &Target)| SignatureRequest { job, position, target: *target };
        targets.map(request).collect::<Vec<SignatureRequest>>()
    };
    jobs.iter().enumerate().flat_map(of_job).collect()
}

/// Returns the compiles, the longest first.
pub(super) fn tasks<'j>(session: &Session, jobs: &'j [Job<'j>], programs: &'j [Program]) -> Vec<Task<'j>> {
    // Machines share results of the same groups, whatever their processors.
    let groups = match session.is_sharing() {
        true => group_by_program(jobs, programs),
        false => group_by_text(jobs, &signature_requests(jobs)),
    };
    let mut longest: Vec<&Program> = programs.iter().collect();
    let text_length = |job: &usize| jobs.get(*job).map_or(0, |job| job.text_length);
    longest.sort_by_key(|program| Reverse(program.iter().map(text_length).sum::<usize>()));
    let codes = longest.into_iter().flat_map(|program| {
        let plan = program.first().and_then(|job| jobs.get(*job)).map(|job| job.plan);
        plan.into_iter().flat_map(|plan| &plan.targets).map(move |target| Task::Code(program, target))
    });
    groups.into_iter().map(Task::Signatures).chain(codes).collect()
}

pub(super) fn run<'j>(
    session: &Session,
    jobs: &'j [Job<'j>],
    programs: &'j [Program],
    progress: &ProgressBar,
) -> Vec<CompiledJob<'j>> {
    let requests = signature_requests(jobs);
    let tasks = tasks(session, jobs, programs);
    if session.is_sharing() {
        let _results = copy(session, jobs, &tasks, Transfer::Fetch, progress);
    }
    if session.can_execute() {
        execute(session, jobs, &tasks, progress);
    }
    let codes: usize = jobs.iter().map(|job| job.plan.targets.len()).sum();
    progress.set_length((requests.len() + codes) as u64);
    // A bridge hands tasks out one by one, in order.
    let each = tasks.into_iter().par_bridge();
    let results: Vec<TaskResult> = each.map(|task| run_task(session, jobs, task, progress)).collect();
    progress.finish_and_clear();
    let without_results = |job: &'j Job<'j>| CompiledJob {
        job,
        signatures: job.signature_targets.iter().map(|target| (*target, None)).collect(),
        codes: Vec::new(),
    };
    let mut compiled: Vec<CompiledJob<'j>> = jobs.iter().map(without_results).collect();
    for result in results {
        match result {
            TaskResult::Signatures(found) => {
                for (request, signature) in found {
                    set_signature(&mut compiled, request, signature.map(Ok));
                }
            }
            TaskResult::Code(target, kernels) => {
                for (job, code) in kernels {
                    if let Some(job) = compiled.get_mut(job) {
                        job.codes.push((target, code));
                    }
                }
            }
        }
    }
    for CompiledJob { job, codes, .. } in &mut compiled {
        let position = |target: &Target| job.plan.targets.iter().position(|it| it.target == *target);
        codes.sort_by_key(|(target, _)| position(target));
    }
    compile_missing_signatures(session, jobs, &requests, &mut compiled);
    session.stop_idle();
    compiled
}

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// To the local cache.
    Fetch,
    /// From the local cache.
    Push,
}

/// Threads wait for the network, so more than processors run.
pub(super) fn copy(
    session: &Session,
    jobs: &[Job<'_>],
    tasks: &[Task<'_>],
    direction: Transfer,
    progress: &ProgressBar,
) -> Vec<Copied> {
    const THREADS: usize = 32;
    progress.set_length(tasks.len() as u64);
    progress.set_message("copying results");
    let transfer = |task: &Task<'_>| {
        let compile = task.compile(jobs)?;
        let result = match direction {
            Transfer::Push => session.push(&compile),
            Transfer::Fetch => session.fetch(&compile),
        };
        progress.inc(1);
        Some(result)
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build();
    let all = || tasks.par_iter().filter_map(transfer).collect();
    // Fewer threads are slower.
    let results = pool.map_or_else(|_| all(), |pool| pool.install(all));
    progress.reset();
    results
}

/// Lets workers compile what no cache has.
fn execute(session: &Session, jobs: &[Job<'_>], tasks: &[Task<'_>], progress: &ProgressBar) {
    let batches = session.batches(tasks.iter().filter_map(|task| task.compile(jobs)).collect());
    progress.set_length(batches.iter().map(|batch| batch.count() as u64).sum());
    std::thread::scope(|scope| {
        let (finished, is_finished) = mpsc::channel::<()>();
        scope.spawn(move || {
            while is_finished.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
                let Activity { queued, running, .. } = session.worker_activity();
                progress.set_message(format!("on workers: {queued} queued, {running} running"));
            }
        });
        batches.into_iter().par_bridge().for_each(|batch| {
            session.execute(&batch);
            progress.inc(batch.count() as u64);
        });
        drop(finished);
    });
    progress.reset();
}

fn set_signature(compiled: &mut [CompiledJob<'_>], request: SignatureRequest, signature: SignatureResult) {
    let job = compiled.get_mut(request.job);
    if let Some((_, slot)) = job.and_then(|job| job.signatures.get_mut(request.position)) {
        *slot = signature;
    }
}

fn step(progress: &ProgressBar, compiled: String) {
    if progress.elapsed() < Duration::from_millis(250) {
        progress.update(|state| state.set_pos(state.pos() + 1));
    } else {
        progress.inc(1);
        progress.set_message(compiled);
    }
}

fn run_task(session: &Session, jobs: &[Job<'_>], task: Task<'_>, progress: &ProgressBar) -> TaskResult {
    match task {
        Task::Signatures(group) => {
            let found = signatures(session, jobs, group);
            let done = found.iter().filter_map(|(request, _)| jobs.get(request.job));
            done.for_each(|job| step(progress, job.unit.kernel.clone()));
            TaskResult::Signatures(found)
        }
        Task::Code(program, planned) => {
            let codes = codes(session, jobs, program, planned);
            for job in program.iter().filter_map(|job| jobs.get(*job)) {
                step(progress, format!("{} for {}", job.unit.kernel, planned.target));
            }
            TaskResult::Code(planned.target, codes)
        }
    }
}

/// Compiles a program; if it fails or shares warnings, also each kernel alone, for its own messages.
fn codes(
    session: &Session,
    jobs: &[Job<'_>],
    program: &Program,
    planned: &PlannedTarget,
) -> Vec<(usize, CodeResult)> {
    let prepared = |job: &usize| Some(&jobs.get(*job)?.prepared);
    let units: Vec<&PreparedUnit> = program.iter().filter_map(prepared).collect();
    let at_target =
        |errors: Vec<CompileMessage>| errors.into_iter().map(|error| at_target(error, planned)).collect();
    let alone =
        || units.par_iter().map(|unit| session.compile(unit, planned.target).map_err(at_target)).collect();
    let compiled = match session.compile_program(&units, planned.target).map_err(at_target) {
        Ok(kernels) if kernels.iter().any(|kernel| kernel.shares_warnings) => with_warnings(kernels, alone()),
        Ok(kernels) => kernels.into_iter().map(Ok).collect(),
        Err(errors) if units.len() < 2 => vec![Err(errors)],
        Err(errors) => instead_of_program(errors, alone()),
    };
    program.iter().copied().zip(compiled).collect()
}

fn with_warnings(kernels: Vec<CompiledKernel>, alone: Vec<CodeResult>) -> Vec<CodeResult> {
    let each = kernels.into_iter().zip(alone);
    each.map(|(kernel, alone)| Ok(CompiledKernel { warnings: alone?.warnings, ..kernel })).collect()
}

/// Kernels' code replaces a failed program's, unless NVRTC did not return: another machine may compile the program, and
/// must not write another library.
fn instead_of_program(errors: Vec<CompileMessage>, mut alone: Vec<CodeResult>) -> Vec<CodeResult> {
    let is_of_machine = errors.iter().any(|error| error.cause == Cause::NoResult);
    if let Some(first) = alone.first_mut().filter(|_| is_of_machine)
        && first.is_ok()
    {
        *first = Err(errors);
    }
    alone
}

fn signatures(
    session: &Session,
    jobs: &[Job<'_>],
    group: Vec<SignatureRequest>,
) -> Vec<(SignatureRequest, Option<Signature>)> {
    let Some(first) = group.first() else { return Vec::new() };
    let units = group.iter().filter_map(|request| Some(&jobs.get(request.job)?.prepared));
    let found = session.signatures(&units.collect::<Vec<&PreparedUnit>>(), first.target);
    group.into_iter().zip(found).collect()
}

/// Retries a failed group without the failing kernel, then the rest separately for their errors.
fn compile_missing_signatures(
    session: &Session,
    jobs: &[Job<'_>],
    requests: &[SignatureRequest],
    compiled: &mut [CompiledJob<'_>],
) {
    let is_missing = |request: &&SignatureRequest| {
        compiled.get(request.job).is_some_and(|job| {
            job.signatures.get(request.position).is_some_and(|(_, signature)| signature.is_none())
                && job.codes.iter().all(|(_, code)| code.is_ok())
        })
    };
    let missing: Vec<SignatureRequest> = requests.iter().filter(is_missing).copied().collect();
    let found: Vec<(SignatureRequest, Result<Signature, Vec<CompileMessage>>)> =
        group_by_text(jobs, &missing)
            .into_par_iter()
            .flat_map_iter(|group| {
                signatures(session, jobs, group).into_iter().filter_map(|(request, signature)| {
                    let job = jobs.get(request.job)?;
                    let alone = || session.signature(&job.prepared, request.target);
                    Some((request, signature.map_or_else(alone, Ok)))
                })
            })
            .collect();
    for (request, signature) in found {
        set_signature(compiled, request, Some(signature));
    }
}

fn group_by_program(jobs: &[Job<'_>], programs: &[Program]) -> Vec<Vec<SignatureRequest>> {
    let of_program = |program: &Program| {
        let targets = program.first().and_then(|job| jobs.get(*job)).map(|job| &job.signature_targets);
        let group = |(position, target): (usize, &Target)| {
            program.iter().map(|&job| SignatureRequest { job, position, target: *target }).collect()
        };
        targets.into_iter().flatten().enumerate().map(group).collect::<Vec<Vec<SignatureRequest>>>()
    };
    programs.iter().flat_map(of_program).collect()
}

/// Groups requests by text and architecture, into enough groups for all threads.
fn group_by_text(jobs: &[Job<'_>], requests: &[SignatureRequest]) -> Vec<Vec<SignatureRequest>> {
    let limit = requests.len().div_ceil(rayon::current_num_threads()).clamp(MIN_GROUP, MAX_GROUP);
    let mut groups: Vec<Vec<SignatureRequest>> = Vec::new();
    let mut open: HashMap<_, usize> = HashMap::new();
    for &request in requests {
        let Some(job) = jobs.get(request.job) else { continue };
        let unit = &job.prepared.unit;
        let text = (&unit.source.path, &unit.prelude.text, std::ptr::from_ref(job.plan), request.target.arch);
        let group = *open.entry(text).or_insert(groups.len());
        match groups.get_mut(group).filter(|group| group.len() < limit) {
            Some(group) => group.push(request),
            None => {
                open.insert(text, groups.len());
                groups.push(vec![request]);
            }
        }
    }
    groups
}

fn at_target(mut error: CompileMessage, planned: &PlannedTarget) -> CompileMessage {
    let CompileMessage { diagnostic, .. } = &mut error;
    if let Some(span) = &planned.span
        && diagnostic.code == Some(rules::TARGET_NOT_SERVED)
        && diagnostic.primary.is_none()
    {
        diagnostic.primary = Some(Label { span: span.clone(), text: "requested here".to_owned() });
    }
    error
}

#[cfg(test)]
mod tests {
    use cubinder_code_object::cubin::LaunchRules;
    use cubinder_model::{CodeObject, Digest};
    use cubinder_nvrtc::nvrtc::Author;

    use super::*;

    #[test]
    fn a_program_that_crashes_is_not_divided() {
        let kernel = || {
            let text = Source::new("k.ptx", "");
            let object = CodeObject {
                target: "compute_80".parse().unwrap(),
                digest: Digest::compute(text.text.as_bytes()),
                kernels: Vec::new(),
                bytes: Vec::new().into(),
            };
            CompiledKernel {
                object: Arc::new(object),
                symbol: String::new(),
                rules: LaunchRules::default(),
                warnings: Vec::new(),
                shares_warnings: false,
                nvrtc: (13, 0),
                cached: false,
            }
        };
        let errors = |cause: Cause| {
            let diagnostic = Diagnostic::error("no");
            vec![CompileMessage { cause, author: Author::Compiler, diagnostic }]
        };
        let failures = |cause, alone: Vec<CodeResult>| -> Vec<bool> {
            instead_of_program(errors(cause), alone).iter().map(Result::is_err).collect()
        };
        assert_eq!(failures(Cause::Other, vec![Ok(kernel()), Ok(kernel())]), [false, false]);
        assert_eq!(failures(Cause::NoResult, vec![Ok(kernel()), Ok(kernel())]), [true, false]);
        let one = || vec![Ok(kernel()), Err(errors(Cause::Other))];
        assert_eq!(failures(Cause::Other, one()), [false, true]);
        assert!(failures(Cause::NoResult, one()).contains(&true));
    }
}
