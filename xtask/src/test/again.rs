//! That what is installed does not depend on the folders it was made in.
//!
//! Owns the copy of the checkout, other folders for cargo's crates and for temporary files, and the comparison. The copy is built from nothing: that is two minutes on two cores.

use std::path::Path;

use anyhow::{Result, bail};
use fs_err as fs;

use crate::dist::{self, Checkout, Dist};
use crate::workspace;

/// Folders at the root of a checkout that are no part of it.
const LEFT_OUT: [&str; 3] = ["target", "build", ".git"];

/// Builds everything again in a copy of the checkout, and holds archive and wheel against those that are there.
pub(super) fn same_from_another_folder(first: &Dist, mut echo: impl FnMut(&str)) -> Result<()> {
    let place = tempfile::Builder::new().prefix("cubinder-again-").tempdir()?;
    let root = place.path().join("a folder with a longer name/checkout");
    copy(&workspace::root(), &root, &LEFT_OUT)?;
    // Of what was built the first time nothing is found, and crates lie elsewhere: packed, so that they need not be fetched again.
    let cargo_home = place.path().join("cargo");
    let temporary = place.path().join("temporary");
    for folder in [&cargo_home, &temporary] {
        fs::create_dir(folder)?;
    }
    copy(&Checkout::this()?.cargo_home.join("registry"), &cargo_home.join("registry"), &["src"])?;
    let copied = Checkout { target: root.join("target"), root, cargo_home, temporary };
    let second = dist::make(&copied, &place.path().join("out"), &mut echo)?;
    for (first, second) in [(&first.archive, &second.archive), (&first.wheel, &second.wheel)] {
        let read = |path: &Path| fs::read(path);
        if read(first)? != read(second)? {
            let kept = place.keep();
            bail!(
                "`{}` has other bytes when it is made in another folder; the second one is below `{}`",
                first.display(),
                kept.display()
            );
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, left_out: &[&str]) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if left_out.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let (from, to) = (entry.path(), to.join(&name));
        if entry.file_type()?.is_dir() {
            copy(&from, &to, &[])?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["from/target/x", "from/a/target/y", "from/b"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let to = folder.path().join("to");
        copy(&folder.path().join("from"), &to, &LEFT_OUT).unwrap();
        assert!(to.join("a/target/y").is_file() && to.join("b").is_file());
        assert!(!to.join("target").exists());
    }
}
