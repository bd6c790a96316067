//! The same plugins in Cubinder's library and a hand-written C++ one.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::compile;
use super::generated::{self, Op};
use super::measure;
use crate::setup::packages;
use crate::tools::Tools;
use crate::{files, workspace};

/// `embed` adds a code library.
pub(super) fn cubinder(
    tools: &Tools,
    folder: &Path,
    name: &str,
    ops: &[Op],
    targets: &[&str],
    embed: bool,
) -> Result<PathBuf> {
    let project = generated::plugins(folder, name, ops, targets)?;
    let mut command = tools.cubinder()?;
    command.env("CUBINDER_CACHE", workspace::root().join("build/bench/cache"));
    command.env("CUBINDER_NVRTC", tools.nvrtc()?);
    command.args(["compile", "--quiet", "--config"]).arg(project).args(embed.then_some("--embed"));
    measure::run(&mut command)?;
    Ok(folder.join(format!("lib{name}.so")))
}

pub(super) fn fatbin(folder: &Path, ops: &[Op], architectures: &[&str]) -> Result<PathBuf> {
    let source = folder.join("rival.cu");
    files::write(&source, ops.iter().map(Op::kernel).collect::<String>())?;
    let code = folder.join("rival.fatbin");
    measure::run(&mut compile::fatbin(&packages::nvcc()?, &source, &code, architectures))?;
    Ok(code)
}

pub(super) fn cpp(tools: &Tools, folder: &Path, ops: &[Op], code: &Path) -> Result<PathBuf> {
    let list = folder.join("ops.inc");
    files::write(&list, generated::ops_for_cpp(ops))?;
    let library = folder.join("librival.so");
    tools.example("rival-plugin", &[list.as_path(), code, &library])?;
    Ok(library)
}
