//! Builds `tests/driver-faults`, which fails driver calls of plugin libraries.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cxx;

/// Builds the preloadable library `out`.
pub fn build(out: &Path) -> Result<()> {
    // Makes the tail call in `dlsym` a jump.
    let options =
        ["-x", "c", "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"];
    let mut arguments: Vec<OsString> = options.map(OsString::from).to_vec();
    arguments.extend(["faults.c", "-ldl", "-o"].map(OsString::from));
    arguments.push(std::path::absolute(out)?.into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("driver-faults");
    cxx::compile(&folder, &arguments).context("cannot build the shim that makes driver calls fail")
}
