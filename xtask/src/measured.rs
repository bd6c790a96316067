//! `xtask measured`: writes a command's cost into a file. Separate: Linux merges children's peak memory, and a child
//! inherits its parent's (7 MB or more).

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use fs_err as fs;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Seconds.
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    /// Megabytes; the command's or its largest child's.
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

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (program, arguments) = options.command.split_first().context("a command has a program")?;
    let (code, cost) = cost_of(Command::new(program).args(arguments))?;
    fs::write(&options.file, serde_json::to_string(&cost)?)?;
    Ok(code)
}

fn cost_of(command: &mut Command) -> Result<(ExitCode, Cost)> {
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", command.get_program().to_string_lossy()))?;
    let wall = started.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .context("the system does not report the cost of child processes")?;
    if status.code().is_none() {
        eprintln!("terminated by a signal ({status})");
    }
    let code =
        status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from);
    // `getrusage(2)` reports KiB on Linux.
    #[allow(clippy::cast_precision_loss)] // microseconds of hours, a machine's memory
    let [cpu, peak] = [
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6,
        usage.max_rss() as f64 / 1024.0,
    ];
    Ok((code, Cost { wall, cpu, peak }))
}
