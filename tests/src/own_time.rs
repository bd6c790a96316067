//! The program that times a plugin's `enqueue` beside the bare launch call (`tests/own-time`).
//!
//! Owns: its build.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cxx;
use crate::headers::{self, RTX_1_7};

/// Builds the program `out`.
///
/// # Errors
/// When the headers or the C++ compiler are missing.
pub fn build(out: &Path) -> Result<()> {
    let out = std::path::absolute(out)?;
    let mut arguments = cxx::options(&headers::folder()?, RTX_1_7);
    // `dlsym` of the program is what the plugin library gets.
    arguments.extend(
        ["-O2", "own_time.cpp", "-Wl,--export-dynamic-symbol=dlsym", "-ldl", "-o"].map(OsString::from),
    );
    arguments.push(out.into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("own-time");
    cxx::compile(&folder, &arguments).context("cannot build the program that times enqueue")
}
