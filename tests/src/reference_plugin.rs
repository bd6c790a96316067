//! Builds the handwritten C++ baseline (`tests/reference-plugin`) and its kernel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_source::diagnostic::{self, Colour};
use nvrtc_sys::{Nvrtc, Program};

use crate::cxx;
use crate::headers::{self, Generation};

/// Compiled from `tests/reference-plugin/circ_pad.cu`.
pub const CODE: [&str; 2] = ["circ_pad.sm_90.cubin", "circ_pad.compute_80.ptx"];

/// Compiles the kernel into `code` with default options.
pub fn compile_code(code: &Path) -> Result<()> {
    let toolkit = Toolkit::locate(&Overrides::from_env(None))
        .map_err(|missing| anyhow!("{}", diagnostic::render_one(&missing, Colour::Plain)))?;
    let nvrtc = Nvrtc::load(&toolkit.nvrtc)?;
    let source = std::fs::read_to_string(folder().join("circ_pad.cu"))?;
    for (name, arch) in CODE.iter().zip(["sm_90", "compute_80"]) {
        let options = vec![format!("--gpu-architecture={arch}").into()];
        let name_of_text = "circ_pad.cu".to_owned();
        let program = Program { source: source.clone(), name: name_of_text, options, ..Program::default() };
        let output = nvrtc.compile(&program)?;
        let bytes = if name.ends_with(".cubin") { output.cubin } else { output.ptx };
        std::fs::write(code.join(name), bytes)?;
    }
    Ok(())
}

/// Builds the plugin library `out` with that code.
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

/// Returns its sources.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reference-plugin")
}
