//! The hand-written C++ plugin that a Cubinder plugin is measured against.
//!
//! Owns: the build of `tests/reference-plugin`.
//! Never: compiles its kernel; the machine code is given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::cxx;
use crate::headers::{self, Generation};

/// The files that the code folder must hold, compiled from `tests/reference-plugin/circ_pad.cu`.
pub const CODE: [&str; 2] = ["circ_pad.sm_90.cubin", "circ_pad.compute_80.ptx"];

/// Builds the plugin library `out` against `generation`, with the machine code in the folder `code`.
///
/// # Errors
/// When the headers, the code or the C++ compiler is missing.
pub fn build(generation: Generation, code: &Path, out: &Path) -> Result<()> {
    let code = code.canonicalize().with_context(|| format!("cannot find the folder `{}`", code.display()))?;
    for name in CODE {
        ensure!(code.join(name).is_file(), "`{name}` is missing from `{}`", code.display());
    }
    let out = std::path::absolute(out)?;
    let headers = headers::folder()?;
    let mut arguments = cxx::options(&headers, generation);
    arguments.push("-O2".into());
    arguments.push(format!("-DCODE_DIR=\"{}\"", code.display()).into());
    arguments.extend(["-shared", "circ_pad_reference.cpp", "driver.cpp", "-ldl", "-o"].map(OsString::from));
    arguments.push(out.into());
    cxx::compile(&folder(), &arguments).context("cannot build the reference plugin")
}

/// Its sources.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reference-plugin")
}
