//! An installation's files, found by the compiler's `installation` module.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use super::notices;
use crate::artifacts::Artifacts;
use crate::{files, process};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) is_executable: bool,
}

/// Where pip installs programs.
pub(super) const PROGRAM: &str = "bin/cubinder";
pub(super) const LICENSE: &str = "share/doc/cubinder/LICENSE";
pub(super) const THIRD_PARTY: &str = "share/doc/cubinder/THIRD-PARTY.txt";

const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/cubinder"),
    ("fish", "share/fish/vendor_completions.d/cubinder.fish"),
    ("zsh", "share/zsh/site-functions/_cubinder"),
];

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

const CMAKE: [&str; 2] = ["cubinder-config-version.cmake", "cubinder-config.cmake"];

pub(super) fn lay_out(root: &Path, artifacts: &Artifacts) -> Result<Vec<File>> {
    let mut files = vec![
        File { is_executable: true, ..text(PROGRAM, fs::read(&artifacts.compiler)?) },
        File { is_executable: true, ..text("lib/libcubinder.so", fs::read(&artifacts.runtime_library)?) },
        File { is_executable: true, ..text("lib/libcubinder_torch.so", fs::read(&artifacts.torch_kernels)?) },
        text(LICENSE, fs::read(root.join("LICENSE"))?),
        text(THIRD_PARTY, notices::third_party(root)?),
    ];
    for name in CMAKE {
        let content = fs::read_to_string(root.join("xtask/packaging/cmake").join(name))?;
        files.push(text(format!("lib/cmake/cubinder/{name}"), content.replace("@version@", VERSION)));
    }
    for (name, content) in documentation(&root.join("docs"))? {
        files.push(text(format!("share/doc/cubinder/{name}"), content));
    }
    files.push(text(
        "include/cubinder_runtime.h",
        fs::read(root.join("runtime-plugin/include/cubinder_runtime.h"))?,
    ));
    // Manifests name kernels by relative paths.
    for folder in ["manifests", "kernels"] {
        for (name, content) in matching(&root.join(folder), &["**/*.toml", "**/*.cu", "**/*.cuh"])? {
            files.push(text(format!("share/cubinder/{folder}/{name}"), content));
        }
    }
    let pages = tempfile::tempdir()?;
    process::capture(Command::new(&artifacts.compiler).arg("man").arg(pages.path()))?;
    for page in files::list(pages.path())? {
        files.push(text(format!("share/man/man1/{}", files::name(&page)?), fs::read(&page)?));
    }
    for (shell, path) in COMPLETIONS {
        let script = process::capture(Command::new(&artifacts.compiler).args(["completions", shell]))?;
        files.push(text(path, script));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn text(path: impl Into<String>, content: impl Into<Vec<u8>>) -> File {
    File { path: path.into(), bytes: content.into(), is_executable: false }
}

fn documentation(docs: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = matching(docs, &["**/*.md", "**/*.svg"])?;
    found.retain(|(name, _)| !["introduction.md", "SUMMARY.md"].contains(&name.as_str()));
    Ok(found)
}

fn matching(root: &Path, patterns: &[&str]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let folder = glob::Pattern::escape(root.to_str().context("the checkout has no UTF-8 path")?);
    for pattern in patterns {
        for path in glob::glob(&format!("{folder}/{pattern}"))? {
            let path = path?;
            found.push((path.strip_prefix(root)?.to_string_lossy().into_owned(), fs::read(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_pictures_are_packed_with_their_folders() {
        let docs = tempfile::tempdir().unwrap();
        for folder in ["performance", "plugins"] {
            std::fs::create_dir(docs.path().join(folder)).unwrap();
        }
        let files = [
            "SUMMARY.md",
            "introduction.md",
            "page.md",
            "performance/a.svg",
            "performance/kernels.json",
            "plugins/introduction.md",
        ];
        for file in files {
            std::fs::write(docs.path().join(file), file).unwrap();
        }
        let packed = documentation(docs.path()).unwrap();
        let packed: Vec<&str> = packed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(packed, ["page.md", "performance/a.svg", "plugins/introduction.md"]);
    }

    #[test]
    fn every_file_of_the_cmake_package_is_packed() {
        let paths = files::list(&crate::workspace::root().join("xtask/packaging/cmake")).unwrap();
        let names: Vec<&str> = paths.iter().map(|path| files::name(path).unwrap()).collect();
        assert_eq!(names, CMAKE);
    }
}
