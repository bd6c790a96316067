//! What an installed Cubinder consists of.
//!
//! Owns which file lies where, below a folder such as `/usr/local`; the program finds the others from its own place (the compiler's
//! `installation` module). Never packs it.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::notices;
use crate::artifacts::Artifacts;
use crate::process;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// Below the folder of the installation, with `/`.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    /// Whether it is a program or a shared library.
    pub(super) is_executable: bool,
}

/// Where the program lies; pip puts it into its place by itself.
pub(super) const PROGRAM: &str = "bin/cubinder";
/// Where the licence texts lie.
pub(super) const LICENSE: &str = "share/doc/cubinder/LICENSE";
pub(super) const THIRD_PARTY: &str = "share/doc/cubinder/THIRD-PARTY.txt";

/// The shells with completions, and where each looks for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/cubinder"),
    ("fish", "share/fish/vendor_completions.d/cubinder.fish"),
    ("zsh", "share/zsh/site-functions/_cubinder"),
];

/// The version of all that is packed.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The CMake package. What else lies in that folder, such as what an editor keeps, is not packed.
const CMAKE: [&str; 2] = ["cubinder-config-version.cmake", "cubinder-config.cmake"];

/// Every file, in the order of paths.
pub(super) fn lay_out(root: &Path, artifacts: &Artifacts) -> Result<Vec<File>> {
    let mut files = vec![
        program(PROGRAM, &artifacts.compiler)?,
        program("lib/libcubinder.so", &artifacts.runtime_library)?,
        text(LICENSE, read(&root.join("LICENSE"))?),
        text(THIRD_PARTY, notices::third_party(root)?.into_bytes()),
    ];
    for name in CMAKE {
        let bytes = read(&root.join("xtask/packaging/cmake").join(name))?;
        let bytes = String::from_utf8(bytes).with_context(|| format!("`xtask/packaging/cmake/{name}`"))?;
        files.push(text(
            &format!("lib/cmake/cubinder/{name}"),
            bytes.replace("@version@", VERSION).into_bytes(),
        ));
    }
    for (name, bytes) in documentation(&root.join("docs"))? {
        files.push(text(&format!("share/doc/cubinder/{name}"), bytes));
    }
    let pages = tempfile::tempdir()?;
    process::capture(Command::new(&artifacts.compiler).arg("man").arg(pages.path()))?;
    for (name, bytes) in in_folder(pages.path())? {
        files.push(text(&format!("share/man/man1/{name}"), bytes));
    }
    for (shell, path) in COMPLETIONS {
        let script = process::capture(Command::new(&artifacts.compiler).args(["completions", shell]))?;
        files.push(text(path, script.into_bytes()));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn program(path: &str, from: &Path) -> Result<File> {
    Ok(File { path: path.to_owned(), bytes: read(from)?, is_executable: true })
}

fn text(path: &str, bytes: Vec<u8>) -> File {
    File { path: path.to_owned(), bytes, is_executable: false }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Writes a file that is there as a whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".dist-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        // A temporary file is for its owner alone.
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write `{}`", path.display()))
}

/// The pages and their pictures, those in folders too, by their paths from the folder.
fn documentation(docs: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for (name, bytes) in in_folder(&docs.join(&folder))? {
            let is_shown = name.ends_with(".md") || name.ends_with(".svg");
            let path = format!("{folder}{name}");
            // These two are of use in the book alone.
            if is_shown && !["introduction.md", "SUMMARY.md"].contains(&path.as_str()) {
                found.push((path, bytes));
            }
        }
        let entries =
            std::fs::read_dir(docs.join(&folder)).with_context(|| format!("cannot read `{folder}`"))?;
        for entry in entries {
            let entry = entry?;
            if entry.path().is_dir() {
                folders.push(format!("{folder}{}/", entry.file_name().to_string_lossy()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The names and contents of a folder's files; not of folders in it.
pub(super) fn in_folder(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.path().is_dir() {
            continue;
        }
        files.push((entry.file_name().to_string_lossy().into_owned(), read(&entry.path())?));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that shows a picture is packed together with it, and so are pages in folders.
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
        assert_eq!(in_folder(docs.path()).unwrap().len(), 3);
    }

    /// A file of the package that is not packed would be missed by who installs it.
    #[test]
    fn every_file_of_the_cmake_package_is_packed() {
        let files = in_folder(&crate::workspace::root().join("xtask/packaging/cmake")).unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let cmake: Vec<&str> = names.into_iter().filter(|name| name.ends_with(".cmake")).collect();
        assert_eq!(cmake, CMAKE);
    }
}
