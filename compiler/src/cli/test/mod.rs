//! `cubinder test`.
//!
//! Kernels run in a separate process ([`worker`]), which may crash; this one ([`supervise`]) sends jobs and collects
//! results.

mod addresses;
mod node;
mod protocol;
mod random;
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
use report::{Case, Report};
use supervise::Supervisor;

/// Run a plugin's kernels on the GPU at hand and hold what they write against what is expected.
///
/// FILE is a file of cases (docs/cases.md), a manifest, a plugin library, a bundle or an engine. Cases say shapes, what inputs hold (NumPy's files,
/// numbers, or random numbers from a seed) and what is expected: NumPy's files, or a function in Python. A node without cases is given by --shape,
/// --attr and --type, and --random N makes shapes that the manifest allows; the first that fails is made as small as possible. A manifest is compiled
/// for the GPU at hand alone.
///
/// Each variant that may run is run, with the worst addresses that its guard allows, twice. Found are: elements that are wrong or not written, what
/// is written outside of a buffer or to an input, results that change from run to run, sizes that are none, kernels that the driver stops. Where
/// nothing says what is right, variants are held against each other. docs/testing.md says more.
///
/// Exit code 0 where everything is right, 1 where something is not, 3 where there is no GPU.
#[derive(Args)]
pub(super) struct Arguments {
    /// A file of cases, a manifest, a plugin library, a bundle or an engine
    file: PathBuf,
    /// Run the cases with this library, bundle or manifest in place of the one that they name
    #[arg(long, value_name = "FILE")]
    on: Option<PathBuf>,
    #[command(flatten)]
    which: WhichNode,
    /// Only cases whose names contain this
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Only this variant
    #[arg(long, value_name = "ID")]
    variant: Option<i32>,
    #[command(flatten)]
    like: NodeArguments,
    /// Of what a tensor's address is a multiple, in bytes: x=4 [default: each that the guards tell apart]
    #[arg(long, value_name = "NAME=BYTES")]
    aligned: Vec<String>,
    /// The function that says what is right: reference.py:scale
    #[arg(long, value_name = "FILE:FUNCTION")]
    reference: Option<String>,
    /// Also run so many nodes with random shapes that the manifest allows [default: 20 where there is nothing else to run]
    #[arg(long, value_name = "N")]
    random: Option<u32>,
    /// What random shapes and numbers are made from [default: what the cases say, else 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Which GPU, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// How long a variant may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// The Python that runs references, which has NumPy [default: CUBINDER_PYTHON, else python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// NVRTC's library, or the folder that holds it [default: CUBINDER_NVRTC; where that is not set, CUDA_HOME; where
    /// neither is, NVIDIA's Python packages]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
    /// Where there is no GPU, say so and end with exit code 0
    #[arg(long)]
    allow_no_gpu: bool,
    /// Print JSON, one object a line: the messages, then the report
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
    match perform(arguments) {
        Ok(is_right) => finish(Ok(is_right), MessageFormat::Human),
        Err(stopped) => stopped.report(arguments.json, "test", Some(arguments.allow_no_gpu)),
    }
}

fn perform(arguments: &Arguments) -> Result<bool, Stopped> {
    let tested = Opened::open(&arguments.file, arguments.on.as_deref(), &arguments.which)?;
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
            Err(why) => supervise::Outcome { differs: vec![why.clone()], ..supervise::Outcome::default() },
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
        // Nodes with random shapes use the command line's reference.
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
            "`--shape`, `--attr` and `--type` describe a node, and the file's cases describe theirs",
        )
        .help(format!("give the manifest or library itself: `{}`", tested.path.display()))
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
        return Err(Diagnostic::error(format!("no case's name contains `{part}`"))
            .note(format!("the cases are {}", cases.names()))
            .into());
    }
    Ok(list)
}
