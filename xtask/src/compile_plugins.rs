//! `cargo xtask compile-plugins`: `cubinder compile` over this repository's own plugins.

use std::ffi::OsString;

use anyhow::Result;

use crate::process;
use crate::workshop::Workshop;

pub(crate) const LONG_ABOUT: &str = "\
Compile the plugins of this repository into libraries.

Builds the compiler and the runtime library, then runs `cubinder compile` on `cubinder.toml` in the root of the checkout. \
Arguments are passed on to it; put `--` before one that cargo xtask would take for its own.";

pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    process::inherit(Workshop::open()?.cubinder()?.arg("compile").args(arguments))
}
