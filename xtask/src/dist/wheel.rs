//! The Python package, packed by maturin, which checks symbol versions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::GLIBC;
use super::builder::Builder;
use super::tree::{File, LICENSE, PROGRAM, THIRD_PARTY, VERSION};
use crate::setup::{self, Packaging};
use crate::{files, process};

pub(super) fn write(
    tree: &[File],
    tools: &Packaging,
    builder: &Builder,
    out: &Path,
    on_line: &mut impl FnMut(&str),
) -> Result<PathBuf> {
    let work = tempfile::tempdir()?;
    stage(&builder.root, tree, work.path())?;
    let wheels = work.path().join("wheels");
    let mut command = Command::new(&tools.maturin);
    command.current_dir(work.path()).args(["build", "--profile", "release"]).args(Builder::ARGUMENTS);
    command.arg("--compatibility").arg(format!("manylinux_{}", GLIBC.replace('.', "_")));
    // The check fails if the wheel links other libraries.
    command.args(["--auditwheel", "check", "--out"]).arg(&wheels);
    process::follow(builder.apply(&mut command), &mut *on_line)?;
    let wheels = files::list(&wheels)?;
    let [wheel] = wheels.as_slice() else {
        bail!("maturin wrote {} files, expected one wheel", wheels.len())
    };
    let path = out.join(files::name(wheel)?);
    fs::copy(wheel, &path)?;
    Ok(path)
}

fn stage(root: &Path, tree: &[File], work: &Path) -> Result<()> {
    let packaging = root.join("xtask/packaging");
    let text = fs::read_to_string(packaging.join("pyproject.toml"))?;
    files::write(&work.join("pyproject.toml"), project(&text, root)?)?;
    fs::copy(root.join("README.md"), work.join("README.md"))?;
    for path in files::list(&packaging.join("python/cubinder"))? {
        if path.extension().is_some_and(|extension| extension == "py") {
            files::write(&work.join("python/cubinder").join(files::name(&path)?), fs::read(&path)?)?;
        }
    }
    for file in tree {
        let path = match file.path.as_str() {
            PROGRAM => continue,
            LICENSE => work.join("LICENSE"),
            THIRD_PARTY => work.join("THIRD-PARTY.txt"),
            path => work.join("cubinder.data/data").join(path),
        };
        files::write(&path, &file.bytes)?;
        let mode = if file.is_executable { 0o755 } else { 0o644 };
        fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

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

fn cuda_packages(table: &Path) -> Result<String> {
    let table: toml::Table =
        toml::from_str(&fs::read_to_string(table)?).context("in `compiler/toolkit.toml`")?;
    let requirements =
        table.get("package").and_then(toml::Value::as_array).into_iter().flatten().map(|package| {
            let text = |key: &str| {
                package
                    .get(key)
                    .and_then(toml::Value::as_str)
                    .with_context(|| format!("a package has no `{key}`"))
            };
            Ok(format!("\"{}=={}\"", text("name")?, text("version")?))
        });
    Ok(requirements.collect::<Result<Vec<_>>>()?.join(", "))
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
