use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};

use cubinder_source::diagnostic::Diagnostic;

use crate::errors::{NotStarted, UnknownEvent};
use crate::log::{Event, LogLine, Step};

/// Shows a child process's output.
pub trait Watch {
    /// The command, before it starts.
    fn command(&mut self, _text: &str) {}
    /// A line of TensorRT's log.
    fn log(&mut self, line: &LogLine);
    /// A completed step.
    fn step(&mut self, _step: &Step) {}
}

pub(crate) struct Ended {
    /// Last lines, all errors and warnings.
    pub(crate) log: Vec<LogLine>,
    pub(crate) failed: Option<(String, Vec<String>)>,
    pub(crate) status: ExitStatus,
}

impl Ended {
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.log.iter().filter(|line| line.is_warning).map(|line| line.text.clone()).collect()
    }
}

/// Maximum lines besides errors and warnings.
const KEPT: usize = 64;

/// Maximum characters of an unknown event.
const SHOWN: usize = 120;

/// `answer` returns the whole input after some event. With `has_events`, stdout has events.
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
    let (mut stdin, mut failed, mut unknown, mut log) = (child.stdin.take(), None, None, Vec::new());
    for event in lines {
        match event {
            Heard::Line(line) => {
                watch.log(&line);
                keep(&mut log, line);
            }
            Heard::Event(Event::Step { name, step, steps }) => watch.step(&Step { name, step, steps }),
            Heard::Event(Event::Failed { stage, texts }) => failed = Some((stage, texts)),
            Heard::Event(event) => {
                if let Some(answer) = answer(event)
                    && let Some(mut stdin) = stdin.take()
                {
                    // A child that does not read it fails itself.
                    let _ = writeln!(stdin, "{answer}");
                }
            }
            Heard::Unknown(line) => {
                unknown = Some(line);
                // A child that waits for an answer ends.
                stdin = None;
            }
        }
    }
    let status = child.wait().map_err(not_started)?;
    // A crash can truncate an event.
    match unknown.filter(|_| status.code().is_some()) {
        Some(line) => Err(UnknownEvent { program, line: line.chars().take(SHOWN).collect() }.into()),
        None => Ok(Ended { log, failed, status }),
    }
}

enum Heard {
    Line(LogLine),
    Event(Event),
    Unknown(String),
}

/// Uses a thread: a full pipe stops the child.
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
                _ if has_events && line.starts_with("{\"event\":") => Heard::Unknown(line.into_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Watch for Silent {
        fn log(&mut self, _: &LogLine) {}
    }

    fn followed(script: &str) -> Result<Ended, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        let answer = &mut |_| Some("answer".to_owned());
        follow(&mut command, true, &mut Silent, answer).map_err(|error| error.message)
    }

    #[test]
    fn the_input_ends_after_the_answer() {
        let ended = followed(r#"echo '{"event":"loaded"}'; cat >&2; exit 3"#).unwrap();
        assert_eq!((ended.log, ended.status.code()), (vec![LogLine::new("", "answer")], Some(3)));
    }

    #[test]
    fn an_unknown_event_is_an_error_and_ends_a_child_that_waits() {
        for event in [r#"{"event":"tensors","tensors":[{}]}"#, r#"{"event": "other"}"#, r#"{"event":"ran","#]
        {
            let error = followed(&format!("echo '{event}'; read line; exit 1")).err().unwrap();
            assert_eq!(error, format!("`sh` printed a result that cannot be read: `{event}`"));
        }
        let crashed = followed(r#"echo '{"event":'; kill -9 $$"#).unwrap();
        assert_eq!(crashed.status.code(), None);
        // Other output is part of the log.
        let ended = followed(r#"echo '{"other":1}'; echo event"#).unwrap();
        assert_eq!(ended.log, ["{\"other\":1}", "event"].map(|text| LogLine::new("", text)));
    }
}
