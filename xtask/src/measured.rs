//! `xtask measured`: runs one command and leaves what it took in a file. A process for each, because Linux keeps the most memory of all children that
//! were waited for together, and a child begins with the most that its parent had: this one has one child, and is small (about 7 MB, so less than that is
//! told of nothing).
//!
//! Owns asking the system. Whoever wants to know starts it (`bench::measure`).

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use fs_err as fs;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

/// What a command took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Seconds that passed.
    pub(crate) wall: f64,
    /// Seconds of processors, of the command and of what it started and waited for.
    pub(crate) cpu: f64,
    /// The most memory of the command, or of what it started and waited for, whichever had more: megabytes.
    pub(crate) peak: f64,
}

/// What is run, and the file that what it took is left in.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The file
    file: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// Runs the command with this program's input and output, and ends as it does.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (program, arguments) = options.command.split_first().context("a command has a program")?;
    let (code, cost) = cost_of(Command::new(program).args(arguments))?;
    fs::write(&options.file, serde_json::to_string(&cost)?)?;
    Ok(code)
}

/// What the first child of this process took.
fn cost_of(command: &mut Command) -> Result<(ExitCode, Cost)> {
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("`{}` could not be started", command.get_program().to_string_lossy()))?;
    let wall = started.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the system does not say what a child took")?;
    if status.code().is_none() {
        eprintln!("ended by a signal ({status})");
    }
    let code =
        status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from);
    Ok((code, Cost { wall, cpu: processor(&usage), peak: megabytes(&usage) }))
}

#[allow(clippy::cast_precision_loss)] // microseconds of some hours
fn processor(usage: &Usage) -> f64 {
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

/// Linux counts KiB (`getrusage(2)`).
#[allow(clippy::cast_precision_loss)] // of a machine's memory
fn megabytes(usage: &Usage) -> f64 {
    usage.max_rss() as f64 / 1024.0
}
