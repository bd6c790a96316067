//! `xtask measured`: runs one command, and writes its cost into a file.
//!
//! A separate process, because Linux keeps the peak memory of all children together, and a child inherits
//! the peak of its parent: this process has one child and uses about 7 MB, the smallest peak that it can
//! measure.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use fs_err as fs;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

/// The cost of a command.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Seconds of wall time.
    pub(crate) wall: f64,
    /// Processor seconds of the command and its children.
    pub(crate) cpu: f64,
    /// Peak memory of the command or of its largest child, megabytes.
    pub(crate) peak: f64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The file
    file: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// Runs the command with this program's input and output, and returns its exit code.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (program, arguments) = options.command.split_first().context("a command has a program")?;
    let (code, cost) = cost_of(Command::new(program).args(arguments))?;
    fs::write(&options.file, serde_json::to_string(&cost)?)?;
    Ok(code)
}

/// The cost of the first child of this process.
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
    // Linux counts memory in KiB (`getrusage(2)`).
    #[allow(clippy::cast_precision_loss)] // microseconds of some hours, and a machine's memory
    let [cpu, peak] = [
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6,
        usage.max_rss() as f64 / 1024.0,
    ];
    Ok((code, Cost { wall, cpu, peak }))
}
