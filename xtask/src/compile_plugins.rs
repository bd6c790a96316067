//! `cargo xtask compile-plugins`: `cubinder compile` over this repository's own plugins.

use std::ffi::OsString;

use anyhow::Result;

use crate::process;
use crate::workshop::Workshop;

pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    process::inherit(Workshop::open()?.cubinder()?.arg("compile").args(arguments))
}
