//! The manifests that the repository has as data.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_source::diagnostic::Source;
use cubinder_source::source;

/// A path of the repository.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// The files and folders of a folder, by name.
pub fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The manifests of a folder, by name.
pub fn manifests(folder: &str) -> Vec<PathBuf> {
    files(folder, "toml")
}

/// The files of a folder with an extension, by name.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut paths = entries(folder);
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths
}

/// The file under its bare name, so that messages do not depend on where the checkout is.
pub fn source(path: &Path) -> Arc<Source> {
    let text = source::text(path).unwrap().text.clone();
    Source::new(path.file_name().unwrap(), text)
}

/// The file's name without its extension.
pub fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap()
}
