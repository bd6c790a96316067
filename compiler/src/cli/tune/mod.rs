//! `cubinder tune`.
//!
//! Variants are measured in a separate process ([`worker`]), which may crash; this one selects cases ([`selection`])
//! and reports ([`report`]).

mod data;
mod notes;
mod output;
mod project;
mod protocol;
mod report;
mod selection;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cubinder_gpu::DeviceInfo;
use cubinder_gpu::measure::{Measured, Step};
use cubinder_node::eval::Subject;
use cubinder_node::trial::Trial;
use cubinder_node::tuning::Point;
use cubinder_source::diagnostic::Diagnostic;

use super::gpu::process::Process;
use super::gpu::{Opened, Stopped};
use super::node::WhichNode;
use super::output::{MessageFormat, finish, show};
use notes::MeasuredCase;
use output::Output;
use protocol::{Event, Job};
use report::{Outcome, Report};
use selection::DescribedNode;

/// Measure how long each variant of a plugin takes on the GPU at hand.
///
/// FILE is a file of cases (docs/cases.md), or a manifest that names one with `tune`: its cases say the shapes. Each variant that is valid for a case
/// runs many times over; all of them take turns, so that a clock that changes meets them alike. What was measured is written to a file,
/// tuning/GPU.toml, in which points of other plugins stay; `cubinder compile` packs it, and the fastest variant is taken. Shown are the device's own
/// times without what the host needs to launch, which variant is taken now, and which variants are never the fastest. Values are not looked at:
/// `cubinder test` does that. A manifest is compiled for the GPU at hand alone. docs/tuning.md says more.
///
/// Exit code 0 where all was measured, 1 where something was not, 3 where there is no GPU.
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

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.worker {
        return worker::work(arguments);
    }
    match perform(arguments) {
        Ok(is_right) => finish(Ok(is_right), MessageFormat::Human),
        Err(stopped) => stopped.report(arguments.json, "measure", None),
    }
}

fn perform(arguments: &Arguments) -> Result<bool, Stopped> {
    let opened = Opened::open(&arguments.file, arguments.on.as_deref(), &arguments.which)?;
    let cases = selection::cases(arguments, &opened)?;
    let selected = selection::select(arguments, &opened, &cases)?;
    let mut measuring = Measuring::start(Duration::from_secs(arguments.timeout.max(1)))?;
    let (nodes, mut notes) = selection::describe_nodes(&opened, selected, &measuring.gpu)?;
    let output = Output::open(arguments, &cases, &measuring.gpu)?;
    let mut report = Report::new(arguments.json, arguments.case.is_none(), &opened, measuring.gpu.clone());
    report.begin();
    let mut errors = Vec::new();
    match measuring.copy_rate() {
        Ok(rate) => report.copies(rate),
        Err(error) => errors.push(error),
    }
    for DescribedNode { trial, point } in nodes {
        if measuring.is_over {
            notes.push(format!("`{}` was not measured: nothing can be run any more", trial.name));
            continue;
        }
        match measuring.node(&trial) {
            Ok((measured, code)) => {
                report.add(MeasuredCase { point: Point { code: Some(code), ..point }, measured });
            }
            Err(error) => errors.push(error),
        }
    }
    // Write failures must not hide slow measurements.
    let outcome = write(output, report.points(), &opened.subject, &mut errors);
    show(&mut errors, MessageFormat::new(arguments.json));
    report.end(&notes, &outcome, &errors);
    Ok(errors.is_empty())
}

fn write(
    output: Option<Output>,
    points: Vec<Point>,
    subject: &Subject,
    errors: &mut Vec<Diagnostic>,
) -> Outcome {
    let output = output?;
    Some(if !errors.is_empty() {
        Err("a file holds all cases that are measured, or stays as it is")
    } else if points.is_empty() {
        Err("there is nothing to launch in any of the cases")
    } else {
        output.write(points, subject).map_err(|wrong| {
            errors.extend(wrong);
            "the file takes no points"
        })
    })
}

struct Measuring {
    process: Process,
    gpu: DeviceInfo,
    timeout: Duration,
    is_over: bool,
}

impl Measuring {
    fn start(timeout: Duration) -> Result<Measuring, Stopped> {
        let (process, gpu) = Process::start("measures", timeout)?;
        Ok(Measuring { process, gpu, timeout, is_over: false })
    }

    fn copy_rate(&mut self) -> Result<Option<f64>, Diagnostic> {
        self.ask("the rate of copies", &Job::CopyRate, |event| match event {
            Event::CopyRate(rate) => Some(rate),
            _ => None,
        })
    }

    fn node(&mut self, trial: &Trial) -> Result<(Measured, String), Diagnostic> {
        let job = Job::Node(Box::new(trial.clone()));
        self.ask(&format!("the case `{}`", trial.name), &job, |event| match event {
            Event::Measured { measured, code } => Some((measured, code)),
            _ => None,
        })
    }

    fn ask<T>(
        &mut self,
        what: &str,
        job: &Job,
        result: impl FnOnce(Event) -> Option<T>,
    ) -> Result<T, Diagnostic> {
        let cannot = |variant: Option<i32>, why: &str| {
            let of_variant = variant.map(|variant| format!("variant {variant}: ")).unwrap_or_default();
            Diagnostic::error(format!("{what} cannot be measured: {of_variant}{why}"))
        };
        // After an irregular end, the process is not reused.
        self.is_over = true;
        let event = self.job(job).map_err(|(variant, why)| cannot(variant, &why))?;
        if let Event::Failed { variant, why, is_broken } = event {
            self.is_over = is_broken;
            return Err(cannot(variant, &why));
        }
        self.is_over = false;
        result(event).ok_or_else(|| cannot(None, "the process that measures said something else"))
    }

    /// Returns a job's final event, or the error and the variant in its first run.
    fn job(&mut self, job: &Job) -> Result<Event, (Option<i32>, String)> {
        let mut begun = None;
        self.process.send(job).map_err(|why| (None, self.process.end(&why)))?;
        loop {
            match self.process.next(self.timeout) {
                Ok(Event::Step(Step::Begins(variant))) => begun = Some(variant),
                Ok(Event::Step(Step::Round)) => begun = None,
                Ok(event) => return Ok(event),
                Err(lost) => return Err((begun, self.process.end_after(lost, self.timeout))),
            }
        }
    }
}
