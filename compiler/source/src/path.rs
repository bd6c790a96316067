//! Paths in messages.

use std::path::{Component, Path, PathBuf};

/// Simplifies `manifests/../kernels/k.cu` to `kernels/k.cu`. Keeps `..` after symbolic links.
#[must_use]
pub fn shown(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        let is_folder = || std::fs::symlink_metadata(&clean).is_ok_and(|facts| facts.is_dir());
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(clean.components().next_back(), Some(Component::Normal(_))) && is_folder() =>
            {
                clean.pop();
            }
            component => clean.push(component),
        }
    }
    if clean.as_os_str().is_empty() { path.to_owned() } else { clean }
}

/// Returns whether both paths name one existing file.
#[must_use]
pub fn is_same_file(first: &Path, second: &Path) -> bool {
    let second = std::fs::canonicalize(second);
    std::fs::canonicalize(first).is_ok_and(|first| second.is_ok_and(|second| first == second))
}
