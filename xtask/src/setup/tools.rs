use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use fs_err as fs;

use super::packages::Packages;
use crate::process::quote;

#[derive(Debug)]
pub(crate) struct Packaging {
    pub(crate) linker: PathBuf,
    pub(crate) maturin: PathBuf,
}

#[derive(Debug)]
pub(crate) struct BuildSystems {
    pub(crate) cmake: PathBuf,
    pub(crate) ninja: PathBuf,
}

/// The first to support depfiles with every generator.
const OLDEST_CMAKE: (u32, u32) = (3, 21);

pub(crate) fn packaging(glibc: &str) -> Result<Packaging> {
    let packages = Packages::open()?;
    let folders = packages.fetch_all(&["ziglang", "cargo-zigbuild", "maturin"])?;
    let [zig, zigbuild, maturin] = &folders[..] else { bail!("expected a folder for each package") };
    let zigbuild = zigbuild.join("bin/cargo-zigbuild");
    let script = linker_script(&zig.join("ziglang/zig"), &zigbuild, &packages.cache.join("zig"), glibc);
    // cargo rebuilds everything for another linker path.
    let folder = packages.store.ensure(&format!("linker-glibc-{glibc}"), &script, |content, _| {
        let linker = content.join("linker");
        fs::write(&linker, &script)?;
        Ok(fs::set_permissions(&linker, std::fs::Permissions::from_mode(0o755))?)
    })?;
    Ok(Packaging { linker: folder.join("linker"), maturin: maturin.join("bin/maturin") })
}

pub(crate) fn build_systems() -> Result<BuildSystems> {
    let packages = Packages::open()?;
    let found_or_fetched = |found: Option<PathBuf>, package: &str, program: &str| match found {
        Some(program) => Ok(program),
        None => packages.fetch(package).map(|folder| folder.join(program)),
    };
    let cmake = on_path("cmake").filter(|program| version(program) >= Some(OLDEST_CMAKE));
    let cmake = found_or_fetched(cmake, "cmake", "cmake/data/bin/cmake")?;
    let ninja = found_or_fetched(on_path("ninja"), "ninja", "bin/ninja")?;
    Ok(BuildSystems { cmake, ninja })
}

/// cargo-zigbuild translates rustc's arguments.
fn linker_script(zig: &Path, zigbuild: &Path, cache: &Path, glibc: &str) -> String {
    let quoted = |path: &Path| quote(&path.to_string_lossy());
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

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

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
    fn the_linker_quotes_its_paths() {
        let text = linker_script(Path::new("/a b/zig"), Path::new("/it's/z"), Path::new("/c"), "2.28");
        assert!(text.contains("ZIG_PATH='/a b/zig'") && text.contains(r"exec '/it'\''s/z' zig cc"), "{text}");
        assert!(text.contains("-target x86_64-linux-gnu.2.28 \"$@\"\n"), "{text}");
    }
}
