//! The Python package.
//!
//! Owns what maturin is given: `xtask/packaging/pyproject.toml` filled in, the Python module, and everything else of the tree as data, which pip
//! puts below the environment's folder. maturin finds the program built, packs it and checks its symbol versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::GLIBC;
use super::build::Builder;
use super::tree::{self, File, LICENSE, PROGRAM, THIRD_PARTY, VERSION};
use crate::process;
use crate::setup::{self, Packaging};

/// Writes the wheel into the folder `out`.
pub(super) fn write(
    files: &[File],
    tools: &Packaging,
    builder: &Builder,
    out: &Path,
    on_line: &mut impl FnMut(&str),
) -> Result<PathBuf> {
    let work = tempfile::tempdir()?;
    stage(&builder.root, files, work.path())?;
    let made = work.path().join("made");
    let mut command = Command::new(&tools.maturin);
    command.current_dir(work.path()).arg("build").args(Builder::arguments());
    command.arg("--compatibility").arg(format!("manylinux_{}", GLIBC.replace('.', "_")));
    // What is linked beyond the C library would have to come along: nothing is.
    command.args(["--auditwheel", "check", "--out"]).arg(&made);
    let status = process::stream(builder.apply(&mut command), &mut *on_line)?;
    ensure!(status.success(), "`{}` failed ({status})", process::command_line(&command));
    let wheels = tree::in_folder(&made)?;
    let [(name, bytes)] = wheels.as_slice() else {
        bail!("maturin made {} files, expected one wheel", wheels.len());
    };
    let path = out.join(name);
    tree::write(&path, bytes)?;
    Ok(path)
}

/// Lays everything out as maturin wants it.
fn stage(root: &Path, files: &[File], work: &Path) -> Result<()> {
    let packaging = root.join("xtask/packaging");
    let put = |path: &str, bytes: &[u8]| -> Result<PathBuf> {
        let path = work.join(path);
        let folder = path.parent().context("a file lies in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        std::fs::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(path)
    };
    let text = tree::read(&packaging.join("pyproject.toml"))?;
    put("pyproject.toml", project(&String::from_utf8(text)?, root)?.as_bytes())?;
    put("README.md", &tree::read(&root.join("README.md"))?)?;
    for (name, bytes) in tree::in_folder(&packaging.join("python/cubinder"))? {
        if Path::new(&name).extension().is_some_and(|extension| extension == "py") {
            put(&format!("python/cubinder/{name}"), &bytes)?;
        }
    }
    for file in files {
        let path = match file.path.as_str() {
            // maturin packs this one by itself, and licences as Python packages have them.
            PROGRAM => continue,
            LICENSE => "LICENSE".to_owned(),
            THIRD_PARTY => "THIRD-PARTY.txt".to_owned(),
            path => format!("cubinder.data/data/{path}"),
        };
        let path = put(&path, &file.bytes)?;
        set_mode(&path, file.is_executable)?;
    }
    Ok(())
}

fn set_mode(path: &Path, is_executable: bool) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = if is_executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of `{}`", path.display()))
}

/// `pyproject.toml` with everything filled in.
fn project(text: &str, root: &Path) -> Result<String> {
    let values = [
        ("@maturin@", setup::pinned_version("maturin")?),
        ("@version@", VERSION.to_owned()),
        ("@cuda13@", cuda_packages(&root.join("compiler/toolkit.toml"))?),
        ("@compiler@", root.join("compiler/Cargo.toml").display().to_string()),
    ];
    let mut text = text.to_owned();
    for (name, value) in values {
        ensure!(text.contains(name), "`xtask/packaging/pyproject.toml` has no `{name}`");
        text = text.replace(name, &value);
    }
    Ok(text)
}

/// NVIDIA's packages, of which the compiler knows what to do with them, as a list of requirements.
fn cuda_packages(table: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Table {
        package: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let table: Table =
        toml::from_str(&String::from_utf8(tree::read(table)?)?).context("in `compiler/toolkit.toml`")?;
    let requirements =
        table.package.iter().map(|package| format!("\"{}=={}\"", package.name, package.version));
    Ok(requirements.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_filled_in() {
        let root = crate::workspace::root();
        let text = std::fs::read_to_string(root.join("xtask/packaging/pyproject.toml")).unwrap();
        let table: toml::Table = project(&text, &root).unwrap().parse().unwrap();
        let extra = table["project"]["optional-dependencies"]["cuda13"].as_array().unwrap();
        assert!(extra.contains(&"nvidia-cuda-nvrtc==13.0.88".into()), "{extra:?}");
        assert_eq!(extra.len(), 4);
        assert!(!table["tool"]["maturin"]["manifest-path"].as_str().unwrap().contains('@'));
    }
}
