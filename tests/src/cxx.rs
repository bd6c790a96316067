//! Runs the C++ compiler and caches complete results.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cubinder_model::Digest;

use crate::headers::Generation;

/// NVIDIA's headers use their own deprecated declarations.
const OPTIONS: [&str; 8] = [
    "-std=c++17",
    "-g1",
    "-fPIC",
    "-fvisibility=hidden",
    // Unique symbols would keep a library mapped after `dlclose`.
    "-fno-gnu-unique",
    "-Wall",
    "-Wextra",
    "-Wno-deprecated-declarations",
];

/// Returns `CXX` or `g++`.
#[must_use]
pub fn compiler() -> OsString {
    std::env::var_os("CXX").unwrap_or_else(|| "g++".into())
}

/// Returns the compiler's version output, if any.
#[must_use]
pub fn compiler_version() -> Option<String> {
    let output = Command::new(compiler()).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the options for `generation`; `headers` has its headers.
#[must_use]
pub fn options(headers: &Path, generation: Generation) -> Vec<OsString> {
    let mut options: Vec<OsString> = OPTIONS.iter().map(Into::into).collect();
    for folder in [headers.join(generation.folder), headers.to_path_buf()] {
        options.push("-isystem".into());
        options.push(folder.into());
    }
    options
}

/// Runs the compiler in `folder`; errors contain its output.
pub fn compile(folder: &Path, arguments: &[OsString]) -> Result<()> {
    let compiler = compiler();
    let output = Command::new(&compiler).current_dir(folder).args(arguments).output().with_context(|| {
        format!(
            "cannot run the C++ compiler `{}`\nhelp: install g++, or set `CXX` to a compiler",
            compiler.to_string_lossy()
        )
    })?;
    if !output.status.success() {
        bail!("`{}` failed\n{}", compiler.to_string_lossy(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Returns a folder that `build` fills once per `key`, across processes.
pub fn cached(name: &str, key: &[&[u8]], build: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let root = target().join("conformance");
    let ready = root.join(format!("{name}-{}", digest(key).short()));
    if ready.is_dir() {
        return Ok(ready);
    }
    std::fs::create_dir_all(&root).with_context(|| format!("cannot create `{}`", root.display()))?;
    let staging = tempfile::Builder::new().prefix(".staging-").tempdir_in(&root)?;
    build(staging.path())?;
    // Another process may have been faster.
    if let Err(error) = std::fs::rename(staging.path(), &ready)
        && !ready.is_dir()
    {
        return Err(error).with_context(|| format!("cannot rename to `{}`", ready.display()));
    }
    Ok(ready)
}

/// Returns a folder's files in fixed order, for cache keys.
pub fn sources(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    paths
        .into_iter()
        .filter(|path| path.is_file())
        .map(|path| Ok((path.clone(), std::fs::read(&path)?)))
        .collect()
}

fn digest(parts: &[&[u8]]) -> Digest {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    Digest::compute(&bytes)
}

fn target() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from)
}
