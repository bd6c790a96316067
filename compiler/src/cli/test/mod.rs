//! Kernels run in a separate process ([`worker`]), which may crash.

mod addresses;
mod node;
mod protocol;
mod random;
mod remote;
mod report;
mod run;
mod supervise;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cubinder_node::cases::{self, Cases};
use cubinder_node::eval;
use cubinder_node::query::Query;
use cubinder_node::trial::{self, FunctionRef, Trial};
use cubinder_source::diagnostic::Diagnostic;

use super::gpu::{Opened, Stopped};
use super::node::{NodeArguments, WhichNode};
use super::output::{MessageFormat, finish};
use super::workers::WorkerArguments;
use report::{Case, Report};
use supervise::Supervisor;

/// Run a plugin's kernels on a GPU and compare the outputs with expected values.
///
/// FILE is a file of cases (docs/cases.md), a manifest, a plugin library, a bundle or an engine. Cases specify shapes, input data (NumPy files, numbers,
/// or random numbers from a seed) and expected outputs (NumPy files, or a Python function). Without cases, --shape, --attr and --type describe a node,
/// and --random N generates shapes that the manifest allows; the first failure is minimized. A manifest is compiled only for the selected GPU.
///
/// Each variant whose guard is satisfied runs twice, at the least aligned addresses that its guard allows. Reports wrong or unwritten elements, writes
/// outside of a buffer or to an input, results that differ between runs, invalid sizes, and kernels that the driver aborts. Without expected outputs,
/// variants are compared with each other. See docs/testing.md.
///
/// With --workers, workers of a server run the tests; a manifest is compiled here, for the targets of cubinder.toml.
///
/// Exit code 0 if all tests pass, 1 if a test fails, 3 if there is no GPU.
#[derive(Args)]
pub(super) struct Arguments {
    /// File of cases, manifest, plugin library, bundle or engine
    file: PathBuf,
    /// Library, bundle or manifest to use instead of the one that the cases name
    #[arg(long, value_name = "FILE")]
    on: Option<PathBuf>,
    #[command(flatten)]
    which: WhichNode,
    /// Only cases whose names contain TEXT
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Only this variant
    #[arg(long, value_name = "ID")]
    variant: Option<i32>,
    #[command(flatten)]
    like: NodeArguments,
    /// Alignment of a tensor's address, in bytes: x=4 [default: each one that the guards distinguish]
    #[arg(long, value_name = "NAME=BYTES")]
    aligned: Vec<String>,
    /// Python function that computes the expected outputs: reference.py:scale
    #[arg(long, value_name = "FILE:FUNCTION")]
    reference: Option<String>,
    /// Also run N nodes with random shapes that the manifest allows [default: 20 if there is nothing else to run]
    #[arg(long, value_name = "N")]
    random: Option<u32>,
    /// Seed of random shapes and numbers [default: from the cases, else 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// GPU index, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// Timeout of a variant, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// Python with NumPy that runs the reference [default: CUBINDER_PYTHON, else python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// NVRTC library or its folder [default: CUBINDER_NVRTC, else CUDA_HOME, else NVIDIA's Python packages]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
    /// If there is no GPU, report that and exit with code 0
    #[arg(long, conflicts_with = "workers")]
    allow_no_gpu: bool,
    #[command(flatten)]
    remote: WorkerArguments,
    /// Print JSON Lines: messages, then the report
    #[arg(long)]
    json: bool,
    /// Run kernels for another process of this command
    #[arg(long, hide = true)]
    worker: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.worker {
        return worker::work(arguments);
    }
    if arguments.remote.is_used() {
        return remote::run(arguments);
    }
    match perform(arguments) {
        Ok(is_right) => finish(Ok(is_right), MessageFormat::Human),
        Err(stopped) => {
            // `--workers` has no `--allow-no-gpu`.
            let allowed = (!arguments.remote.is_on_worker()).then_some(arguments.allow_no_gpu);
            stopped.report(arguments.json, "test", allowed)
        }
    }
}

fn perform(arguments: &Arguments) -> Result<bool, Stopped> {
    let tested = Opened::open(&arguments.file, arguments.on.as_deref(), &arguments.which)?;
    let tested = arguments.remote.shown(tested);
    let base = base(arguments, &tested)?;
    let listed = listed(arguments, &tested, &base)?;
    let mut supervisor = match Supervisor::start(Duration::from_secs(arguments.timeout.max(1))) {
        Err(Stopped::NoGpu(why)) => {
            // Errors that need no GPU are reported anyway.
            let mistakes = mistakes(&tested, &base, &listed);
            return Err(if mistakes.is_empty() { Stopped::NoGpu(why) } else { mistakes.into() });
        }
        started => started?,
    };
    let mut report = Report::new(arguments, &tested, supervisor.gpu().clone());
    report.begin();
    for Listed { case, name, trial } in &listed {
        let outcome = match trial {
            Ok(trial) => supervisor.run(trial, case.map(|(index, _)| index)),
            Err(why) => {
                supervise::TrialReport { differs: vec![why.clone()], ..supervise::TrialReport::default() }
            }
        };
        let expects_refusal = case.is_some_and(|(_, case)| case.is_refusal());
        report.add(Case { name: name.clone(), outcome, expects_refusal, found: None });
    }
    let several = arguments.random.unwrap_or(if listed.is_empty() { 20 } else { 0 });
    if several > 0 {
        let known: Vec<Trial> = listed.into_iter().filter_map(|it| it.trial.ok()).collect();
        random::run(&tested, &base, &known, several, &mut supervisor, &mut report);
    }
    Ok(report.end())
}

fn mistakes(tested: &Opened, base: &Trial, listed: &[Listed<'_>]) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    if listed.is_empty() {
        all.extend(
            base.reference.as_ref().and_then(|it| trial::check_reference(it).err()).map(Diagnostic::error),
        );
    }
    for Listed { case, name, trial } in listed {
        if let Some((cases, (_, case))) = tested.cases.as_ref().zip(*case) {
            let found = cases::mistaken(cases, case, &tested.subject);
            let error = |it: cases::Difference| Diagnostic::error(it.to_string());
            all.extend(found.into_iter().map(|it| error(it).note(format!("in the case `{name}`"))));
            continue;
        }
        match trial {
            Err(why) => all.push(Diagnostic::error(why.clone())),
            Ok(trial) => match eval::resolve_query(&tested.subject, &trial.query) {
                Ok(resolved) => {
                    let found = trial::check(&tested.subject.plugin, &resolved, trial);
                    all.extend(found.into_iter().map(Diagnostic::error));
                }
                Err(mistakes) => all.extend(mistakes.into_iter().map(|it| it.diagnostic)),
            },
        }
    }
    all
}

fn base(arguments: &Arguments, tested: &Opened) -> Result<Trial, Vec<Diagnostic>> {
    let mut base = tested.cases.as_ref().map(Cases::defaults).unwrap_or_default();
    base.variant = arguments.variant;
    base.seed = arguments.seed.unwrap_or(base.seed);
    if let Some(text) = &arguments.reference {
        let function = FunctionRef::parse(text, Path::new(""))
            .map_err(|why| vec![Diagnostic::error(format!("`--reference {text}`: {why}"))])?;
        base.reference = Some(function);
    }
    Ok(base)
}

struct Listed<'c> {
    case: Option<(usize, &'c cases::Case)>,
    name: String,
    trial: Result<Trial, String>,
}

fn listed<'c>(
    arguments: &Arguments,
    tested: &'c Opened,
    base: &Trial,
) -> Result<Vec<Listed<'c>>, Vec<Diagnostic>> {
    let query = arguments.like.query(&arguments.aligned, &[])?;
    let is_given = query != Query::default();
    let Some(cases) = &tested.cases else {
        if !is_given && !tested.subject.plugin.inputs.is_empty() {
            return Ok(Vec::new());
        }
        let name = "the node of the command line".to_owned();
        let trial = Ok(Trial { name: name.clone(), query, ..base.clone() });
        return Ok(vec![Listed { case: None, name, trial }]);
    };
    if is_given {
        return Err(Diagnostic::error(
            "`--shape`, `--attr` and `--type` cannot be used with a file of cases",
        )
        .help(format!("pass the manifest or library instead: `{}`", tested.path.display()))
        .into());
    }
    let is_wanted = |name: &str| arguments.case.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let mut list = Vec::new();
    for (index, case) in cases.list.iter().enumerate().filter(|(_, case)| is_wanted(&case.name)) {
        let trial = cases.trial(case).map_err(|it| it.to_string()).map(|mut trial| {
            trial.variant = base.variant;
            trial.seed = arguments.seed.unwrap_or(trial.seed);
            if arguments.reference.is_some() {
                trial.reference.clone_from(&base.reference);
            }
            trial
        });
        list.push(Listed { case: Some((index, case)), name: case.name.clone(), trial });
    }
    if list.is_empty() {
        let part = arguments.case.clone().unwrap_or_default();
        return Err(Diagnostic::error(format!("no case has a name that contains `{part}`"))
            .note(format!("the cases are {}", cases.names()))
            .into());
    }
    Ok(list)
}
