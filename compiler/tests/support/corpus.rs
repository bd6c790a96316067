use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_source::diagnostic::Source;
use cubinder_source::source;

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

pub fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

pub fn manifests(folder: &str) -> Vec<PathBuf> {
    files(folder, "toml")
}

pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut paths = entries(folder);
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths
}

/// Reads a file under its bare name, so that messages do not depend on the checkout.
pub fn source(path: &Path) -> Arc<Source> {
    let text = source::text(path).unwrap().text.clone();
    Source::new(path.file_name().unwrap(), text)
}

pub fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap()
}
