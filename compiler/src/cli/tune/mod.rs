//! `cubinder tune`.
//!
//! Owns the command. Variants are measured in a process of its own ([`worker`]), which may be lost; this one says what is measured
//! ([`listed`]) and shows what came of it ([`report`]).

mod around;
mod data;
mod kept;
mod listed;
mod notes;
mod protocol;
mod report;
mod worker;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cubinder_node::eval::Subject;
use cubinder_node::trial::Trial;
use cubinder_node::tuning::Point;
use cubinder_source::diagnostic::Diagnostic;

use super::gpu::process::{Lost, Process};
use super::gpu::protocol::Gpu;
use super::gpu::{NO_GPU, Opened, Stopped, Unable};
use super::node::WhichNode;
use super::output::{MessageFormat, print, show};
use kept::Kept;
use protocol::{Event, Job, Measurement};
use report::{Done, Outcome, Report};

pub(super) const LONG_ABOUT: &str = "\
Measure how long each variant of a plugin takes on the GPU at hand.

FILE is a file of cases (docs/cases.md), or a manifest that names one with `tune`: its cases say the shapes. Each variant that is valid for a case runs many times over; all of them \
take turns, so that a clock that changes meets them alike. What was measured is written to a file, tuning/GPU.toml, in which points of other \
plugins stay; `cubinder compile` packs it, and the fastest variant is taken. Shown are the device's own times without what the host needs to launch, which \
variant is taken now, and which variants are never the fastest. Values are not looked at: `cubinder test` does that. A \
manifest is compiled for the GPU at hand alone. docs/tuning.md says more.

Exit code 0 where all was measured, 1 where something was not, 3 where there is no GPU.";

#[derive(Args)]
pub(super) struct Arguments {
    /// A file of cases, or a manifest that names one
    file: PathBuf,
    /// Measure the code of this library, bundle or manifest in place of what the cases name
    #[arg(long, value_name = "FILE")]
    on: Option<PathBuf>,
    #[command(flatten)]
    which: WhichNode,
    /// Only cases whose names contain this
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// The file to write, or its folder [default: tuning/GPU.toml beside cubinder.toml, or beside the manifest where
    /// there is none]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure, and write no file
    #[arg(long)]
    dry_run: bool,
    /// Which GPU, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// How long the GPU may take for one step, in seconds: the copies, the first runs of a variant, a round of all
    /// variants. Starting, which compiles, may take ten times as long
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// NVRTC's library, or the folder that holds it [default: CUBINDER_NVRTC; where that is not set, CUDA_HOME; where
    /// neither is, NVIDIA's Python packages]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
    /// Print JSON, one object a line: the messages, then the report
    #[arg(long)]
    json: bool,
    /// Measure for another process of this command
    #[arg(long, hide = true)]
    worker: bool,
}

impl Arguments {
    fn format(&self) -> MessageFormat {
        if self.json { MessageFormat::Json } else { MessageFormat::Human }
    }

    fn open(&self) -> Result<Opened, Vec<Diagnostic>> {
        Opened::open(&self.file, self.on.as_deref(), &self.which)
    }
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.worker {
        return worker::work(arguments);
    }
    match perform(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(stopped) => stopped.tell(arguments.json, |why| no_gpu(arguments, why)),
    }
}

fn no_gpu(arguments: &Arguments, why: &str) -> ExitCode {
    if arguments.json {
        print(&(serde_json::json!({"result": "no_gpu", "why": why}).to_string() + "\n"));
    } else {
        let error = Diagnostic::error("there is no GPU to measure on").note(why);
        show(&mut [error], MessageFormat::Human);
    }
    ExitCode::from(NO_GPU)
}

/// Whether all was measured, and written where it was to be.
fn perform(arguments: &Arguments) -> Result<bool, Stopped> {
    let opened = arguments.open()?;
    let cases = listed::cases(arguments, &opened)?;
    let listed = listed::all(arguments, &opened, &cases)?;
    let mut measuring = Measuring::start(Duration::from_secs(arguments.timeout.max(1)))?;
    let (nodes, mut notes) = listed::described(&opened, listed, &measuring.gpu)?;
    let kept = Kept::open(arguments, &cases, &measuring.gpu)?;
    let mut report = Report::new(arguments.json, arguments.case.is_none(), &opened, measuring.gpu.clone());
    report.begin();
    let mut errors = Vec::new();
    match measuring.copy_rate() {
        Ok(rate) => report.copies(rate),
        Err(error) => errors.push(error),
    }
    for node in nodes {
        if measuring.is_over {
            notes.push(format!("`{}` was not measured: nothing can be run any more", node.trial.name));
            continue;
        }
        match measuring.node(&node.trial) {
            Ok(measured) => report.add(Done { point: node.point, measured }),
            Err(error) => errors.push(error),
        }
    }
    // What was measured is shown whatever becomes of the rest: it took a while.
    let outcome = keep(kept, report.points(), &opened.subject, &mut errors);
    show(&mut errors, arguments.format());
    report.end(&notes, &outcome, &errors);
    Ok(errors.is_empty())
}

/// Writes what was measured, unless something went wrong.
fn keep(kept: Option<Kept>, points: Vec<Point>, subject: &Subject, errors: &mut Vec<Diagnostic>) -> Outcome {
    let Some(kept) = kept else { return Outcome::Unasked };
    if !errors.is_empty() {
        return Outcome::Nothing("a file holds all cases that are measured, or stays as it is");
    }
    if points.is_empty() {
        return Outcome::Nothing("there is nothing to launch in any of the cases");
    }
    match kept.write(points, subject) {
        Ok(written) => Outcome::Written(written),
        Err(wrong) => {
            errors.extend(wrong);
            Outcome::Nothing("the file takes no points")
        }
    }
}

/// The process that measures.
struct Measuring {
    process: Process,
    gpu: Gpu,
    timeout: Duration,
    /// Whether nothing can be measured any more: a kernel took the process with it, or the device.
    is_over: bool,
}

impl Measuring {
    fn start(timeout: Duration) -> Result<Measuring, Unable> {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let (process, gpu) = Process::start(&arguments, timeout)?;
        Ok(Measuring { process, gpu, timeout, is_over: false })
    }

    fn copy_rate(&mut self) -> Result<Option<f64>, Diagnostic> {
        let what = "the rate of copies";
        match self.ask(what, &Job::CopyRate)? {
            Event::CopyRate(rate) => Ok(rate),
            other => Err(failed(what, &other)),
        }
    }

    fn node(&mut self, trial: &Trial) -> Result<Measurement, Diagnostic> {
        let what = format!("the case `{}`", trial.name);
        match self.ask(&what, &Job::Node(Box::new(trial.clone())))? {
            Event::Measured(measured) => Ok(measured),
            other => Err(failed(&what, &other)),
        }
    }

    /// What ends a job. Whether another can follow is known afterwards.
    fn ask(&mut self, what: &str, job: &Job) -> Result<Event, Diagnostic> {
        let ended = self.job(job);
        self.is_over = !matches!(
            ended,
            Ok(Event::CopyRate(_) | Event::Measured(_) | Event::Failed { is_broken: false, .. })
        );
        ended.map_err(|(variant, why)| cannot(what, variant, &why))
    }

    /// What ends a job; else why it did not end, and the variant that ran for the first time then.
    fn job(&mut self, job: &Job) -> Result<Event, (Option<i32>, String)> {
        let mut begun = None;
        self.process.send(job).map_err(|why| (None, self.process.end(&why)))?;
        loop {
            match self.process.next(self.timeout) {
                Ok(Event::Begins(variant)) => begun = Some(variant),
                Ok(Event::Round) => begun = None,
                Ok(event) => return Ok(event),
                Err(Lost::Silent) => {
                    let why = format!("nothing came of it in {} s", self.timeout.as_secs());
                    return Err((begun, self.process.end(&why)));
                }
                Err(Lost::Ended) => return Err((begun, self.process.end("the process that measures ended"))),
                Err(Lost::Garbled(why)) => return Err((begun, self.process.end(&why))),
            }
        }
    }
}

fn failed(what: &str, event: &Event) -> Diagnostic {
    match event {
        Event::Failed { variant, why, .. } => cannot(what, *variant, why),
        _ => cannot(what, None, "the process that measures said something else"),
    }
}

fn cannot(what: &str, variant: Option<i32>, why: &str) -> Diagnostic {
    let of_variant = variant.map(|variant| format!("variant {variant}: ")).unwrap_or_default();
    Diagnostic::error(format!("{what} cannot be measured: {of_variant}{why}"))
}
