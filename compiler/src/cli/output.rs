use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use clap::{Args, ColorChoice, ValueEnum};
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_source::atomic_file::parent_folder;
use cubinder_source::diagnostic::{self, Colour, Diagnostic};
use serde::Serialize;

use super::obligations::failed_json;

/// Format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum MessageFormat {
    /// Text for humans.
    Human,
    /// JSON Lines on standard output.
    Json,
}

impl MessageFormat {
    pub(super) fn new(json: bool) -> MessageFormat {
        if json { MessageFormat::Json } else { MessageFormat::Human }
    }
}

/// Output format: `--json` as in other commands of Cubinder, `--message-format` as in cargo.
#[derive(Args)]
pub(super) struct Readers {
    /// Print JSON Lines: messages, then the result
    #[arg(long)]
    json: bool,
    /// Format of messages; `json` is equivalent to --json
    #[arg(long, value_enum, default_value = "human")]
    message_format: MessageFormat,
}

impl Readers {
    pub(super) fn format(&self) -> MessageFormat {
        if self.json { MessageFormat::Json } else { self.message_format }
    }
}

pub(super) fn show(diagnostics: &mut [Diagnostic], format: MessageFormat) {
    diagnostic::sort(diagnostics);
    match format {
        MessageFormat::Human => {
            let colour = if wants_colour() { Colour::Ansi } else { Colour::Plain };
            let mut text = diagnostic::render(diagnostics, colour);
            text.extend(diagnostic::explain_hint(diagnostics).map(|hint| hint + "\n"));
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        MessageFormat::Json => match diagnostic::to_json_lines(diagnostics) {
            Ok(lines) => print(&lines),
            Err(error) => complain(Diagnostic::error(format!("cannot write the messages as JSON: {error}"))),
        },
    }
}

pub(super) fn finish(result: Result<bool, Vec<Diagnostic>>, format: MessageFormat) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(errors) => fail(errors, format),
    }
}

pub(super) fn fail(mut errors: Vec<Diagnostic>, format: MessageFormat) -> ExitCode {
    show(&mut errors, format);
    if format == MessageFormat::Json {
        print(&(failed_json(&errors).to_string() + "\n"));
    }
    ExitCode::FAILURE
}

pub(super) fn current_folder() -> Result<PathBuf, Diagnostic> {
    std::env::current_dir()
        .map_err(|error| Diagnostic::error(format!("cannot find the current folder: {error}")))
}

pub(super) fn open_project(options: ProjectOptions) -> Result<Option<Project>, Vec<Diagnostic>> {
    Ok(Project::open_around(options, &current_folder()?)?.pop())
}

/// `what` names the value in errors.
pub(super) fn print_pretty(value: &impl Serialize, what: &str) -> Result<(), Diagnostic> {
    print_text(serde_json::to_string_pretty(value), what)
}

pub(super) fn print_report(result: &'static str, report: &impl Serialize) -> Result<(), Diagnostic> {
    #[derive(Serialize)]
    struct Answer<'r, R> {
        result: &'static str,
        #[serde(flatten)]
        report: &'r R,
    }
    print_text(serde_json::to_string(&Answer { result, report }), "report")
}

fn print_text(text: serde_json::Result<String>, what: &str) -> Result<(), Diagnostic> {
    let text =
        text.map_err(|error| Diagnostic::error(format!("cannot write the {what} as JSON: {error}")))?;
    print(&(text + "\n"));
    Ok(())
}

pub(super) fn environment_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Rejects files: `--out-dir libfoo.so`.
pub(super) fn check_folder(path: &Path) -> Result<(), Diagnostic> {
    let is_library = path.extension().is_some_and(|extension| extension == "so");
    let is_file = std::fs::metadata(path).is_ok_and(|facts| !facts.is_dir());
    if path.is_dir() || !(is_library || is_file) {
        return Ok(());
    }
    let shown = path.display();
    let error = Diagnostic::error(format!("`--out-dir {shown}` names a file, expected a folder"));
    Err(match is_library {
        true => error.help(format!("use `--output {shown}` to write this file")),
        false => error.help(format!("use `--out-dir {}`", parent_folder(path).display())),
    })
}

/// Rejects folders: `--output build`.
pub(super) fn check_file(path: &Path) -> Result<(), Diagnostic> {
    if !path.is_dir() {
        return Ok(());
    }
    let shown = path.display();
    Err(Diagnostic::error(format!("`--output {shown}` names a folder, expected a file"))
        .help(format!("use `--out-dir {shown}` to write into this folder")))
}

/// Whether a write to stdout failed.
static IS_CUT: AtomicBool = AtomicBool::new(false);

/// Writes to stdout, ignoring a closed pipe. Other failures are reported once and fail the command.
pub(super) fn print(text: &str) {
    print_bytes(text.as_bytes());
}

pub(super) fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe && !IS_CUT.swap(true, Ordering::Relaxed) => {
            let error = Diagnostic::error(format!("cannot write to standard output: {error}"));
            complain(
                error.help("redirect the output elsewhere or free disk space, and run the command again"),
            );
        }
        _ => {}
    }
}

fn complain(error: Diagnostic) {
    let text = diagnostic::render(&[error], Colour::Plain);
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Returns failure if output is incomplete.
pub(super) fn ending(code: ExitCode) -> ExitCode {
    match IS_CUT.load(Ordering::Relaxed) {
        true => ExitCode::FAILURE,
        false => code,
    }
}

static COLOUR: OnceLock<ColorChoice> = OnceLock::new();

/// Finds `--color` before help or an error is printed.
pub(super) fn choose_colour(words: impl Iterator<Item = OsString>) -> ColorChoice {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let value = |at: usize| match words[at].strip_prefix("--color")? {
        "" => words.get(at + 1).map(String::as_str),
        value => value.strip_prefix('='),
    };
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let found = (0..end).rev().find_map(value).and_then(|value| value.parse().ok());
    *COLOUR.get_or_init(|| found.unwrap_or_default())
}

fn wants_colour() -> bool {
    match COLOUR.get().copied().unwrap_or_default() {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE`, as clap's help.
        ColorChoice::Auto => AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never,
    }
}
