//! Measures in a separate process ([`worker`]), which may crash.

mod data;
mod notes;
mod output;
mod project;
mod protocol;
mod remote;
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
use super::workers::WorkerArguments;
use notes::MeasuredCase;
use output::Output;
use protocol::{Event, Job};
use report::{Report, TuningResult};
use selection::DescribedNode;

/// Measure the time of each variant of a plugin on a GPU.
///
/// FILE is a file of cases (docs/cases.md), or a manifest that names one with `tune`; its cases specify the shapes. Each variant that is valid for a
/// case runs many times, alternating with the others so that clock changes affect all equally. The times are written to the tuning file
/// tuning/GPU.toml, without changing the points of other plugins; `cubinder compile` embeds it, and the runtime prefers the fastest variant. Shows
/// device times without launch overhead, the variant currently selected, and variants that are never the fastest. Outputs are not checked: use
/// `cubinder test`. A manifest is compiled only for the selected GPU. See docs/tuning.md.
///
/// With --workers, workers of a server measure; a manifest is compiled here, for the targets of cubinder.toml, and the times are written here.
///
/// Exit code 0 if all cases were measured, 1 if not, 3 if there is no GPU.
#[derive(Args)]
pub(super) struct Arguments {
    /// File of cases, or a manifest that names one
    file: PathBuf,
    /// Library, bundle or manifest to use instead of the one that the cases name
    #[arg(long, value_name = "FILE")]
    on: Option<PathBuf>,
    #[command(flatten)]
    which: WhichNode,
    /// Only cases whose names contain TEXT
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Tuning file to write [default: GPU.toml in --out-dir]
    #[arg(long, short, value_name = "FILE", conflicts_with = "out_dir")]
    output: Option<PathBuf>,
    /// Folder of tuning files [default: tuning, beside cubinder.toml, else beside the manifest]
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// Measure without writing a file
    #[arg(long)]
    dry_run: bool,
    /// GPU index, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// Timeout of a step, in seconds: the copies, the first runs of a variant, a round of all variants. For startup, which
    /// compiles, the timeout is ten times longer
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// NVRTC library or its folder [default: CUBINDER_NVRTC, else CUDA_HOME, else NVIDIA's Python packages]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
    #[command(flatten)]
    remote: WorkerArguments,
    /// On a worker: the file for the points, which the caller adds to the tuning file
    #[arg(long, hide = true)]
    points: Option<String>,
    /// Print JSON Lines: messages, then the report
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
    if arguments.remote.is_used() {
        return remote::run(arguments);
    }
    match perform(arguments) {
        Ok(is_right) => finish(Ok(is_right), MessageFormat::Human),
        Err(stopped) => stopped.report(arguments.json, "measure", None),
    }
}

fn perform(arguments: &Arguments) -> Result<bool, Stopped> {
    let opened = Opened::open(&arguments.file, arguments.on.as_deref(), &arguments.which)?;
    let opened = arguments.remote.shown(opened);
    let cases = selection::cases(&arguments.file, &opened)?;
    let selected = selection::select(arguments, &opened, &cases)?;
    let mut measuring = Measuring::start(Duration::from_secs(arguments.timeout.max(1)))?;
    let (nodes, mut notes) = selection::describe_nodes(&opened, selected, &measuring.gpu)?;
    let output = Output::open(arguments, &arguments.file, &cases, output::device(&measuring.gpu))?;
    let mut report = Report::new(arguments.json, arguments.case.is_none(), &opened, measuring.gpu.clone());
    report.begin();
    let mut errors = Vec::new();
    match measuring.copy_rate() {
        Ok(rate) => report.copies(rate),
        Err(error) => errors.push(error),
    }
    for DescribedNode { trial, point } in nodes {
        if measuring.is_over {
            notes.push(format!(
                "`{}` was not measured: an earlier failure ended all measurements",
                trial.name
            ));
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
) -> TuningResult {
    let output = output?;
    Some(if !errors.is_empty() {
        Err("a tuning file is written only if all cases were measured")
    } else if points.is_empty() {
        Err("no case launches a kernel")
    } else {
        match output.write(points, subject) {
            Ok(written) => Ok(written?),
            Err(wrong) => {
                errors.extend(wrong);
                Err("the points cannot be added to the file")
            }
        }
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
        self.ask("the copy rate", &Job::CopyRate, |event| match event {
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
            Diagnostic::error(format!("cannot measure {what}: {of_variant}{why}"))
        };
        self.is_over = true;
        let event = self.job(job).map_err(|(variant, why)| cannot(variant, &why))?;
        if let Event::Failed { variant, why, is_broken } = event {
            self.is_over = is_broken;
            return Err(cannot(variant, &why));
        }
        self.is_over = false;
        result(event).ok_or_else(|| cannot(None, "unexpected output of the worker process"))
    }

    /// Returns the final event, or the error and the variant in its first run.
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
