//! The library that makes calls of the real driver fail when a plugin library makes them (`tests/driver-faults`).
//!
//! Owns: its build.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cxx;

/// Builds the library `out`, which is to be preloaded.
///
/// # Errors
/// When the C compiler is missing or refuses the source.
pub fn build(out: &Path) -> Result<()> {
    // Optimized, so that the last call of `dlsym` is a jump.
    let options =
        ["-x", "c", "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"];
    let mut arguments: Vec<OsString> = options.map(OsString::from).to_vec();
    arguments.extend(["faults.c", "-ldl", "-o"].map(OsString::from));
    arguments.push(std::path::absolute(out)?.into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("driver-faults");
    cxx::compile(&folder, &arguments).context("cannot build what makes calls of the driver fail")
}
