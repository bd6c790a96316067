//! The release build for the oldest glibc, without this machine's folders.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use super::{Checkout, EPOCH};
use crate::artifacts::{self, Artifacts};
use crate::setup::Packaging;
use crate::{process, workspace};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Inherited variables, one a line, or `PREFIX*`. Others might change the code.
const KEPT: &str = include_str!("../../packaging/kept-variables.txt");

pub(super) struct Builder {
    pub(super) root: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

impl Builder {
    pub(super) fn new(checkout: &Checkout, tools: &Packaging) -> Result<Self> {
        fetch(checkout)?;
        let linker = tools.linker.clone().into_os_string();
        let environment = vec![
            ("CARGO_HOME", checkout.cargo_home.clone().into()),
            ("TMPDIR", checkout.temporary.clone().into()),
            ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker),
            ("CARGO_ENCODED_RUSTFLAGS", remapped(&folders(&checkout.cargo_home)?)),
            ("CARGO_TARGET_DIR", checkout.target.clone().into()),
            ("RUSTC_WRAPPER", OsString::new()),
            ("RUSTC_WORKSPACE_WRAPPER", OsString::new()),
            ("SOURCE_DATE_EPOCH", EPOCH.to_string().into()),
        ];
        Ok(Self { root: checkout.root.clone(), environment })
    }

    pub(super) fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let kept = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept));
        command.env_clear().envs(kept).envs(self.environment.iter().cloned())
    }

    /// cargo's arguments. maturin passes them, too, to avoid a rebuild.
    pub(super) const ARGUMENTS: [&str; 3] = ["--locked", "--target", TARGET];

    /// Separately: features unify, and maturin builds only the program.
    pub(super) fn build(&self, on_line: &mut impl FnMut(&str)) -> Result<Artifacts> {
        let mut messages = Vec::new();
        for build in artifacts::BUILDS {
            let mut command = workspace::cargo_in(&self.root);
            command.args(build).args(Self::ARGUMENTS);
            messages.extend(artifacts::messages(self.apply(&mut command), on_line)?);
        }
        Artifacts::among(&messages)
    }
}

fn fetch(checkout: &Checkout) -> Result<()> {
    let mut command = workspace::cargo_in(&checkout.root);
    command
        .args(["fetch", "--quiet", "--locked", "--target", TARGET])
        .env("CARGO_HOME", &checkout.cargo_home);
    process::capture(&mut command).map(drop)
}

fn is_kept(name: &str) -> bool {
    KEPT.lines().any(|kept| match kept.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == kept,
    })
}

/// rustc puts them into panic messages.
fn folders(cargo_home: &Path) -> Result<Vec<(PathBuf, String)>> {
    let entries = fs::read_dir(cargo_home.join("registry/src")).into_iter().flatten().flatten();
    let mut registries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    registries.sort();
    let rustc = |arguments: &[&str]| {
        process::capture(Command::new("rustc").args(arguments).current_dir(workspace::root()))
    };
    let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim());
    let version = rustc(&["--version", "--verbose"])?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "));
    let commit = commit.context("`rustc --version --verbose` prints no commit")?;
    let mut folders = vec![(cargo_home.to_path_buf(), "/cargo".to_owned())];
    folders.extend(registries.into_iter().map(|folder| (folder, "/crates".to_owned())));
    folders.push((sysroot.join("lib/rustlib/src/rust"), format!("/rustc/{commit}")));
    Ok(folders)
}

/// In cargo's encoding; the last match applies.
fn remapped(folders: &[(PathBuf, String)]) -> OsString {
    let option = |(from, to): &(PathBuf, String)| {
        let mut text = OsString::from("--remap-path-prefix=");
        text.push(from);
        text.push("=");
        text.push(to);
        text
    };
    folders.iter().map(option).collect::<Vec<_>>().join(std::ffi::OsStr::new("\u{1f}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_get_the_same_names_everywhere() {
        let folders = [
            ("/h/a b/.cargo", "/cargo"),
            ("/h/a b/.cargo/registry/src/index-1", "/crates"),
            ("/rust/lib/rustlib/src/rust", "/rustc/1234"),
        ];
        let folders = folders.map(|(from, to)| (PathBuf::from(from), to.to_owned()));
        assert_eq!(
            remapped(&folders).to_str().unwrap().split('\u{1f}').collect::<Vec<_>>(),
            [
                "--remap-path-prefix=/h/a b/.cargo=/cargo",
                "--remap-path-prefix=/h/a b/.cargo/registry/src/index-1=/crates",
                "--remap-path-prefix=/rust/lib/rustlib/src/rust=/rustc/1234",
            ]
        );
    }

    #[test]
    fn this_machines_folders_are_found() {
        let folders = folders(&Checkout::this().unwrap().cargo_home).unwrap();
        let (_, std) = folders.last().unwrap();
        assert!(folders[0].0.is_absolute() && std.starts_with("/rustc/"));
    }

    #[test]
    fn what_changes_code_does_not_reach_a_build() {
        for name in
            ["CARGO_PROFILE_RELEASE_LTO", "RUSTC", "RUSTFLAGS", "CFLAGS", "ZIG_LIB_DIR", "LD_LIBRARY_PATH"]
        {
            assert!(!is_kept(name), "{name}");
        }
        for name in ["PATH", "CARGO_NET_OFFLINE", "https_proxy"] {
            assert!(is_kept(name), "{name}");
        }
    }
}
