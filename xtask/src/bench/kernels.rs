//! `kernel_bench` measures nodes of `manifests/**/cases` whose names start with a size; `published` reads its result.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::tools::{Tools, scripts};
use crate::{files, workspace};

/// Named after plugins; manifests are in the folder above.
const CASES: [&str; 2] = ["manifests/cases", "manifests/cubinder/cases"];
const TARGETS: [&str; 6] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];
const LIBRARY: &str = "kernels";
const PACKAGE: &str = "kernel_bench";
const RUN: &str = include_str!("../../bench/kernels.sh");

pub(super) fn prepare(tools: &Tools, folder: &Path) -> Result<()> {
    let mut manifests = Vec::new();
    for (file, manifest) in case_files()? {
        files::write(&folder.join("cases").join(files::name(&file)?), fs::read(&file)?)?;
        manifests.push(manifest);
    }
    tools.compile(folder, LIBRARY, &TARGETS, &manifests)?;
    fs::copy(&tools.artifacts.runtime_library, folder.join("libcubinder.so"))?;
    tools.example("player", &[folder.join("libplayer.so")])?;
    files::copy_tree(&scripts().join(PACKAGE), &folder.join(PACKAGE), &["__pycache__"])?;
    fs::write(folder.join("run.sh"), RUN)?;
    Ok(())
}

fn case_files() -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for folder in CASES {
        for file in files::list(&workspace::root().join(folder))? {
            let name = files::name(&file)?.to_owned();
            found.push((file, format!("{}/{name}", folder.trim_end_matches("/cases"))));
        }
    }
    found.retain(|(_, manifest)| manifest.ends_with(".toml"));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_files_have_a_manifest_in_the_folder_above() {
        let files = case_files().unwrap();
        assert!(!files.is_empty());
        for (file, manifest) in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let name = Path::new(&manifest).file_name().unwrap().to_string_lossy();
            assert!(workspace::root().join(&manifest).is_file(), "{manifest}");
            assert!(text.contains(&format!("manifest = \"../{name}\"")), "{}", file.display());
        }
    }
}
