//! Runs a build and reads its output.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};

use cubinder_source::diagnostic::Diagnostic;

use crate::command::{Request, for_shell};
use crate::errors::NotStarted;
use crate::explain::{Failure, explain};
use crate::installation::{Installation, Route};
use crate::log::{Event, LogLine, Step};
use crate::python::Client;

/// An output of the network.
pub type Output = (String, Vec<i64>);

/// A finished build.
#[derive(Debug)]
pub struct Built {
    /// Outputs with shapes (-1: dynamic), if they were reported.
    pub outputs: Vec<Output>,
    /// TensorRT's warnings.
    pub warnings: Vec<String>,
}

/// What a build shows while it runs.
pub trait Watch {
    /// The command, before it starts.
    fn command(&mut self, text: &str);
    /// A line of TensorRT's log.
    fn log(&mut self, line: &LogLine);
    /// A completed step.
    fn step(&mut self, step: &Step);
}

/// Maximum number of log lines kept besides errors and warnings.
const KEPT: usize = 64;

/// Builds an engine into `request.plan`, shown as `plan`.
///
/// # Errors
/// TensorRT cannot be started, or fails; with an explanation.
pub fn build(
    installation: &Installation,
    request: &Request,
    client: &Client,
    plan: &Path,
    watch: &mut dyn Watch,
) -> Result<Built, Vec<Diagnostic>> {
    let mut command = request.command(installation, client)?;
    watch.command(&for_shell(&command, &request.plan, plan));
    let program = command.get_program().to_string_lossy().into_owned();
    let not_started = |error| Diagnostic::from(NotStarted { program: program.clone(), error });
    let mut child = match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Err(not_started(error).into()),
    };
    let (sender, lines) = channel();
    let is_python = matches!(installation.route, Route::Python { .. });
    // Without a reader the child's writes fail, so it ends.
    read_lines(child.stdout.take(), is_python, sender.clone()).map_err(not_started)?;
    read_lines(child.stderr.take(), false, sender).map_err(not_started)?;
    let (mut built, mut failed, mut log) = (None, None, Vec::new());
    for event in lines {
        match event {
            Heard::Line(line) => {
                watch.log(&line);
                keep(&mut log, line);
            }
            Heard::Event(Event::Step { name, step, steps }) => watch.step(&Step { name, step, steps }),
            Heard::Event(Event::Failed { stage, texts }) => failed = Some((stage, texts)),
            Heard::Event(Event::Built { outputs }) => built = Some(outputs),
            Heard::Event(_) => {}
        }
    }
    let status = child.wait().map_err(not_started)?;
    let warnings = log.iter().filter(|line| line.is_warning).map(|line| line.text.clone()).collect();
    let has_plan = std::fs::metadata(&request.plan).is_ok_and(|facts| facts.len() > 0);
    match built {
        Some(outputs) if has_plan => Ok(Built { outputs, warnings }),
        None if !is_python && status.success() && has_plan => Ok(Built { outputs: Vec::new(), warnings }),
        _ => {
            let (stage, texts) = failed.unwrap_or_default();
            Err(explain(installation.kind, request, &Failure { stage, texts, log, status }).into())
        }
    }
}

enum Heard {
    Line(LogLine),
    Event(Event),
}

/// Reads lines in another thread, because a full pipe stops the child.
fn read_lines(
    pipe: Option<impl Read + Send + 'static>,
    has_events: bool,
    sender: Sender<Heard>,
) -> std::io::Result<()> {
    let Some(pipe) = pipe else { return Ok(()) };
    let reader = move || {
        let mut lines = BufReader::new(pipe).split(b'\n');
        while let Some(Ok(line)) = lines.next() {
            let line = String::from_utf8_lossy(&line);
            let heard = match serde_json::from_str(&line) {
                Ok(Event::Log { severity, text }) if has_events => {
                    Heard::Line(LogLine::new(&severity, &text))
                }
                Ok(event) if has_events => Heard::Event(event),
                _ => Heard::Line(LogLine::of_program(line.trim_end())),
            };
            if sender.send(heard).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().spawn(reader).map(drop)
}

fn keep(log: &mut Vec<LogLine>, line: LogLine) {
    log.push(line);
    let is_other = |line: &LogLine| !line.is_error && !line.is_warning;
    if log.iter().filter(|line| is_other(line)).count() > KEPT
        && let Some(oldest) = log.iter().position(is_other)
    {
        log.remove(oldest);
    }
}
