//! `cargo xtask bench kernels`: the kernels of the plugins that ship beside what others make of the same operators.
//!
//! Owns the folder that a machine with a GPU needs, and how it is run. What is measured are the nodes of the files of cases beside the manifests (`manifests/**/cases`)
//! whose names begin with a size; `kernel_bench` measures them, in the folder. Never looks at a time itself: that is `published`'s business.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::gpu_test::gpu_is_there;
use crate::workshop::{Workshop, scripts};
use crate::{process, workspace};

/// The folders of files of cases; a file has the name of a plugin, whose manifest lies one folder up.
const CASES: [&str; 2] = ["manifests/cases", "manifests/cubinder/cases"];
const TARGETS: &str = "sm_80,sm_86,sm_89,sm_90,sm_100,sm_120";
const LIBRARY: &str = "kernels";
const PACKAGE: &str = "kernel_bench";
const RUN: &str = "\
#!/bin/sh
# Measures, and leaves kernels.json in the folder that --out names, or in `out`. Needs a GPU, and a Python with PyTorch, torchvision and Triton.
cd \"$(dirname \"$0\")\" || exit 1
exec \"${PYTHON:-python3}\" -m kernel_bench --cases cases --player ./libplayer.so --libraries ./libkernels.so ./libcubinder.so --out out \"$@\"
";

/// Prepares `folder`.
///
/// # Errors
/// When something cannot be built or written.
pub(super) fn prepare(workshop: &Workshop, folder: &Path) -> Result<()> {
    let cases = folder.join("cases");
    fs::create_dir_all(&cases)?;
    let mut manifests = Vec::new();
    for (file, manifest) in files()? {
        let name = file.file_name().context("a file of cases has a name")?;
        fs::copy(&file, cases.join(name))?;
        manifests.push(manifest);
    }
    let mut arguments = vec!["--name", LIBRARY, "--target", TARGETS];
    arguments.extend(manifests.iter().map(String::as_str));
    workshop.compile(folder, &arguments)?;
    fs::copy(workshop.runtime_library(), folder.join("libcubinder.so"))?;
    let mut build = workspace::cargo();
    build.args(["run", "--quiet", "--package", "cubinder-tests", "--example", "player", "--"]);
    process::capture(build.arg(folder.join("libplayer.so")).envs(workshop.environment()?))?;
    copy(&scripts().join(PACKAGE), &folder.join(PACKAGE))?;
    fs::write(folder.join("run.sh"), RUN)?;
    Ok(())
}

/// Prepares a folder, measures there and gives the result's file.
///
/// # Errors
/// When there is no GPU, or a cell could not be measured.
pub(super) fn measure(workshop: &Workshop) -> Result<PathBuf> {
    if !gpu_is_there() {
        bail!("no GPU here; prepare a folder for another machine with --prepare DIR");
    }
    let folder = workspace::root().join("build/bench-kernels");
    prepare(workshop, &folder)?;
    process::inherit(Command::new("sh").arg("run.sh").current_dir(&folder))?;
    Ok(folder.join("out/kernels.json"))
}

/// The files of cases, each with its plugin's manifest below the root.
fn files() -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for folder in CASES {
        let path = workspace::root().join(folder);
        let entries = fs::read_dir(&path)?;
        for entry in entries {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".toml") {
                found.push((file, format!("{}/{name}", folder.trim_end_matches("/cases"))));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A package of Python with all that is in it, but for what Python keeps there itself.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_file() {
            fs::copy(&path, to.join(name))?;
        } else if name != "__pycache__" {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that is not is in no library, and its rivals would be measured against nothing.
    #[test]
    fn every_file_of_cases_stands_beside_its_plugins_manifest() {
        let files = files().unwrap();
        assert!(!files.is_empty());
        for (file, manifest) in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let name = Path::new(&manifest).file_name().unwrap().to_string_lossy();
            assert!(workspace::root().join(&manifest).is_file(), "{manifest}");
            assert!(text.contains(&format!("manifest = \"../{name}\"")), "{}", file.display());
        }
    }
}
