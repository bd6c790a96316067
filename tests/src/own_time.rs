//! Builds `tests/own-time`.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cxx;
use crate::headers::{self, RTX_1_7};

/// Builds the program `out`.
pub fn build(out: &Path) -> Result<()> {
    let out = std::path::absolute(out)?;
    let mut arguments = cxx::options(&headers::folder()?, RTX_1_7);
    // Plugin libraries must find the program's `dlsym`.
    arguments.extend(
        ["-O2", "own_time.cpp", "-Wl,--export-dynamic-symbol=dlsym", "-ldl", "-o"].map(OsString::from),
    );
    arguments.push(out.into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("own-time");
    cxx::compile(&folder, &arguments).context("cannot build the program that times enqueue")
}
