//! Runs a child process and reads its output.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};

use cubinder_source::diagnostic::Diagnostic;

use crate::errors::NotStarted;
use crate::log::{Event, LogLine, Step};

/// What a child process shows while it runs.
pub trait Watch {
    /// The command, before it starts.
    fn command(&mut self, text: &str);
    /// A line of TensorRT's log.
    fn log(&mut self, line: &LogLine);
    /// A completed step.
    fn step(&mut self, step: &Step);
}

/// A process that ended.
pub(crate) struct Ended {
    /// Last lines, and all errors and warnings.
    pub(crate) log: Vec<LogLine>,
    /// Stage and texts of a failure that the script reported.
    pub(crate) failed: Option<(String, Vec<String>)>,
    pub(crate) status: ExitStatus,
}

impl Ended {
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.log.iter().filter(|line| line.is_warning).map(|line| line.text.clone()).collect()
    }
}

/// Maximum number of log lines kept besides errors and warnings.
const KEPT: usize = 64;

/// Runs a command; `answer` returns the lines to write after an event. With `has_events`, standard output has events.
pub(crate) fn follow(
    command: &mut Command,
    has_events: bool,
    watch: &mut dyn Watch,
    answer: &mut dyn FnMut(Event) -> Option<String>,
) -> Result<Ended, Diagnostic> {
    let program = command.get_program().to_string_lossy().into_owned();
    let not_started = |error| Diagnostic::from(NotStarted { program: program.clone(), error });
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(not_started)?;
    let (sender, lines) = channel();
    // Without a reader the child's writes fail, so it ends.
    read_lines(child.stdout.take(), has_events, sender.clone()).map_err(not_started)?;
    read_lines(child.stderr.take(), false, sender).map_err(not_started)?;
    let (mut stdin, mut failed, mut log) = (child.stdin.take(), None, Vec::new());
    for event in lines {
        match event {
            Heard::Line(line) => {
                watch.log(&line);
                keep(&mut log, line);
            }
            Heard::Event(Event::Step { name, step, steps }) => watch.step(&Step { name, step, steps }),
            Heard::Event(Event::Failed { stage, texts }) => failed = Some((stage, texts)),
            Heard::Event(event) => write(&mut stdin, answer(event)),
        }
    }
    let status = child.wait().map_err(not_started)?;
    Ok(Ended { log, failed, status })
}

/// Writes an answer. A child that does not read it ends with its own error.
fn write(stdin: &mut Option<ChildStdin>, answer: Option<String>) {
    if let (Some(stdin), Some(answer)) = (stdin, answer) {
        let _ = writeln!(stdin, "{answer}");
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
