//! Builds `tests/player`.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cxx;
use crate::headers::{self, RTX_1_7};

/// Builds the library `out`.
pub fn build(out: &Path) -> Result<()> {
    let out = std::path::absolute(out)?;
    let mut arguments = cxx::options(&headers::folder()?, RTX_1_7);
    let own = ["-O2", "-shared", "-static-libstdc++", "-static-libgcc", "player.cpp", "-ldl", "-o"];
    arguments.extend(own.map(OsString::from));
    arguments.push(out.into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("player");
    cxx::compile(&folder, &arguments).context("cannot build the library that simulates TensorRT")
}
