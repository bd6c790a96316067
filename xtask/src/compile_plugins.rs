//! `cargo xtask compile-plugins`: `cubinder compile` over this repository's own plugins.
//!
//! Owns building the program and the environment it runs in. What is compiled, and how, is in `cubinder.toml`.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::{artifacts, process, setup, workspace};

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Compile the plugins of this repository into libraries.

Builds the compiler and the runtime library, then runs `cubinder compile` on `cubinder.toml` in the root of the checkout. \
Arguments are passed on to it; put `--` before one that cargo xtask would take for its own.";

/// Builds, then runs `cubinder compile` with `arguments`.
///
/// # Errors
/// When the set-up, the build or the program fails.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let toolchain = setup::ensure()?;
    let artifacts = artifacts::build(|line| eprintln!("{line}"))?;
    let mut command = Command::new(&artifacts.compiler);
    command.arg("compile").args(arguments).current_dir(workspace::root());
    command.envs(toolchain.environment()?).envs(artifacts.environment());
    process::inherit(&mut command)
}
