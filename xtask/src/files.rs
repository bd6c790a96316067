use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;

pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.is_file());
    paths.sort();
    Ok(paths)
}

pub(crate) fn name(path: &Path) -> Result<&str> {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str);
    name.with_context(|| format!("`{}` has no UTF-8 name", path.display()))
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    Ok(fs::write(path, content)?)
}

pub(crate) fn create_empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

pub(crate) fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for path in list(from)? {
        fs::copy(&path, to.join(name(&path)?))?;
    }
    Ok(())
}

pub(crate) fn copy_tree(from: &Path, to: &Path, skip: &[&str]) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if skip.iter().any(|skip| name == *skip) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to.join(name), &[])?;
        } else {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_skipped_in_the_top_folder_only() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["from/target/x", "from/a/target/y", "from/b"] {
            write(&folder.path().join(file), "").unwrap();
        }
        let to = folder.path().join("to");
        copy_tree(&folder.path().join("from"), &to, &["target"]).unwrap();
        assert!(to.join("a/target/y").is_file() && to.join("b").is_file());
        assert!(!to.join("target").exists());
    }
}
