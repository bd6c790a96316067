//! Tools beside the toolchain: those that make what is installed, and CMake with Ninja.
//!
//! Owns which of them are fetched, and where their programs lie in the unpacked packages. Never runs what it fetched, but for asking a
//! CMake that is there for its version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::pins::Choice;
use super::store::Store;
use super::{Pins, Workplace, fetch_all};

const ZIG: &str = "ziglang";
const ZIGBUILD: &str = "cargo-zigbuild";
const MATURIN: &str = "maturin";
const CMAKE: &str = "cmake";
const NINJA: &str = "ninja";

/// What makes the archive and the Python package.
#[derive(Debug)]
pub(crate) struct Packaging {
    /// A program that takes a linker's arguments, and links for the oldest glibc that is supported.
    pub(crate) linker: PathBuf,
    pub(crate) maturin: PathBuf,
}

/// What builds other people's projects.
#[derive(Debug)]
pub(crate) struct BuildSystems {
    pub(crate) cmake: PathBuf,
    pub(crate) ninja: PathBuf,
}

/// The oldest CMake that the package is for: it understands depfiles with every generator.
const OLDEST_CMAKE: (u32, u32) = (3, 21);

/// Fetches what makes the installed form. `glibc` is the oldest version that the result runs with.
///
/// # Errors
/// As those of [`super::ensure`].
pub(crate) fn packaging(glibc: &str) -> Result<Packaging> {
    let place = Workplace::open()?;
    let folders = fetched(&place, &[ZIG, ZIGBUILD, MATURIN])?;
    let script = |index: usize, name: &str| -> Result<PathBuf> {
        let folder = folders.get(index).context("a package has a folder")?;
        program_of(folder, name)
    };
    let zig = folders.first().context("a package has a folder")?.join("ziglang/zig");
    let maturin = script(2, MATURIN)?;
    // zig keeps there what it has compiled for itself.
    let text = linker_script(&zig, &script(1, ZIGBUILD)?, &place.cache.join("zig"), glibc);
    // Cargo builds everything anew where the linker has another path: it has the same one for every checkout.
    let name = format!("linker-glibc-{glibc}");
    place.store.ensure(&name, &text, || {}, |work| write_program(work, "linker", &text))?;
    Ok(Packaging { linker: place.store.folder(&name).join("linker"), maturin })
}

/// CMake and Ninja: those on the search path, else the pinned ones.
///
/// # Errors
/// As those of [`super::ensure`].
pub(crate) fn build_systems() -> Result<BuildSystems> {
    let place = Workplace::open()?;
    let cmake =
        match on_path(CMAKE).filter(|program| version(program).is_some_and(|found| found >= OLDEST_CMAKE)) {
            Some(program) => program,
            None => fetched(&place, &[CMAKE])?.remove(0).join("cmake/data/bin/cmake"),
        };
    let ninja = match on_path(NINJA) {
        Some(program) => program,
        None => program_of(&fetched(&place, &[NINJA])?.remove(0), NINJA)?,
    };
    Ok(BuildSystems { cmake, ninja })
}

/// The folders of packages, fetched where they are missing.
fn fetched(place: &Workplace, names: &[&str]) -> Result<Vec<PathBuf>> {
    let pins = Pins::load()?;
    let choices: Vec<Choice<'_>> =
        names.iter().map(|name| pins.package(name)?.choose(place.python.version)).collect::<Result<_>>()?;
    let folders = choices.iter().map(|choice| place.store.folder(&choice.folder)).collect();
    let has = |store: &Store, choice: &Choice<'_>| store.has(&choice.folder, &choice.recipe());
    let missing: Vec<_> = choices.into_iter().filter(|choice| !has(&place.store, choice)).collect();
    if !missing.is_empty() {
        place.python.require_pip()?;
        fetch_all(&missing, &place.store, &place.python, &place.progress)?;
    }
    Ok(folders)
}

/// A program among the scripts of an unpacked wheel.
fn program_of(folder: &Path, name: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("`{}`", folder.display()))?;
    let programs = entries.flatten().map(|entry| entry.path().join("scripts").join(name));
    programs
        .into_iter()
        .find(|path| path.is_file())
        .with_context(|| format!("`{}` has no program `{name}`", folder.display()))
}

/// cargo-zigbuild turns what rustc tells a linker into what zig understands.
fn linker_script(zig: &Path, zigbuild: &Path, cache: &Path, glibc: &str) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    format!(
        "#!/bin/sh\n\
         export CARGO_ZIGBUILD_ZIG_PATH={zig} CARGO_ZIGBUILD_CACHE_DIR={cache}\n\
         export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}\n\
         exec {zigbuild} zig cc -- -fno-sanitize=all -target x86_64-linux-gnu.{glibc} \"$@\"\n",
        zig = quoted(zig),
        zigbuild = quoted(zigbuild),
        cache = quoted(cache),
    )
}

fn write_program(work: &Path, name: &str, text: &str) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let content = work.join("content");
    std::fs::create_dir(&content)?;
    let path = content.join(name);
    std::fs::write(&path, text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(content)
}

/// A program on the search path.
fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Major and minor version of a CMake.
fn version(program: &Path) -> Option<(u32, u32)> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    parse_version(&String::from_utf8(output.stdout).ok()?)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.lines().next()?.rsplit(' ').next()?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_cmake_is_read() {
        assert_eq!(parse_version("cmake version 3.25.1\n\nCMake suite\n"), Some((3, 25)));
        assert_eq!(parse_version("cmake version 4.4.4-dirty\n"), Some((4, 4)));
        assert_eq!(parse_version(""), None);
    }

    #[test]
    fn every_tool_is_pinned() {
        let pins = Pins::load().unwrap();
        for name in [ZIG, ZIGBUILD, MATURIN, CMAKE, NINJA] {
            pins.package(name).unwrap();
        }
    }

    #[test]
    fn the_linker_survives_strange_folders() {
        let text = linker_script(Path::new("/a b/zig"), Path::new("/it's/z"), Path::new("/c"), "2.28");
        assert!(text.contains("ZIG_PATH='/a b/zig'") && text.contains(r"exec '/it'\''s/z' zig cc"), "{text}");
        assert!(text.contains("-target x86_64-linux-gnu.2.28 \"$@\"\n"), "{text}");
    }
}
