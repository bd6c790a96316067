//! Builds the benchmarks' handwritten C++ plugins (`tests/rival-plugin`).

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cxx;
use crate::headers::{self, RTX_1_7};

/// Builds `out` from a list of ops and a fat binary (see `rival.cpp`).
pub fn build(ops: &Path, code: &Path, out: &Path) -> Result<()> {
    let mut arguments = cxx::options(&headers::folder()?, RTX_1_7);
    for (name, file) in [("RIVAL_OPS", ops), ("RIVAL_CODE", code)] {
        let file = file.canonicalize().with_context(|| format!("cannot find `{}`", file.display()))?;
        arguments.push(format!("-D{name}=\"{}\"", file.display()).into());
    }
    // Static: the target machine may lack this C++ library. Stripped like the measured plugins.
    let own = ["-O2", "-s", "-shared", "-static-libstdc++", "-static-libgcc", "rival.cpp", "-ldl", "-o"];
    arguments.extend(own.map(OsString::from));
    arguments.push(std::path::absolute(out)?.into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rival-plugin");
    cxx::compile(&folder, &arguments).context("cannot build the rival plugins")
}
