//! Fetching wheels with pip, and unpacking one of them.
//!
//! Owns pip's command line and what to say when it fails. Installs nothing where Python has its packages, runs nothing of what it fetched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::pins::Choice;
use super::python::Python;
use crate::process;
use crate::progress::Task;

/// Fetches the wheel of `choice` and unpacks it in `work`; gives the unpacked folder.
///
/// # Errors
/// When pip fails, or the wheel does not hold what the pin says it holds.
pub(crate) fn fetch(python: &Python, choice: &Choice<'_>, work: &Path, task: &Task<'_>) -> Result<PathBuf> {
    let wheel = download(python, choice, work, task)
        .with_context(|| format!("`{}` could not be fetched", choice.package.label()))?;
    task.phase("unpacking");
    let content = work.join("content");
    unpack(python, choice, &wheel, work, &content)
        .with_context(|| format!("`{}` could not be unpacked", choice.package.label()))?;
    Ok(content)
}

fn download(python: &Python, choice: &Choice<'_>, work: &Path, task: &Task<'_>) -> Result<PathBuf> {
    let folder = work.join("wheel");
    fs::create_dir(&folder)?;
    let asked = Asked { to: To::Wheels(&folder), requirements: &choice.requirement() };
    // pip writes the wheel in one place and then copies it to another.
    let arrived = |wheels: &[u64]| wheels.iter().copied().max().unwrap_or(0);
    if let Err(error) = run(python, &asked, work, task, arrived) {
        let text = error.to_string();
        bail!("{text}\n  help: {}", help(&text));
    }
    let mut wheels = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        _ => bail!("`pip download` ended well and left other than one file in `{}`", folder.display()),
    }
}

/// What pip is to do.
pub(super) struct Asked<'a> {
    pub(super) to: To<'a>,
    /// What to take, each with its version and hash.
    pub(super) requirements: &'a str,
}

/// Where it goes, in a folder that is there.
pub(super) enum To<'a> {
    /// The wheels as they are.
    Wheels(&'a Path),
    /// What they hold.
    Packages(&'a Path),
}

/// Runs pip in `work` and meanwhile tells `task` what `arrived` makes of the sizes of the wheels that there are below `work`.
///
/// # Errors
/// What pip says; [`help`] knows what helps.
pub(super) fn run(
    python: &Python,
    asked: &Asked<'_>,
    work: &Path,
    task: &Task<'_>,
    arrived: impl Fn(&[u64]) -> u64 + Sync,
) -> Result<()> {
    let (requirements, temporary) = (work.join("requirements.txt"), work.join("pip"));
    fs::create_dir(&temporary)?;
    fs::write(&requirements, asked.requirements)?;
    let mut command = Command::new(&python.path);
    command.args(["-m", "pip"]);
    match asked.to {
        To::Wheels(folder) => command.args(["download", "--dest"]).arg(folder),
        To::Packages(folder) => command.args(["install", "--no-compile", "--target"]).arg(folder),
    };
    command
        .args(["--no-deps", "--only-binary=:all:", "--require-hashes"])
        // The unpacked folders are the cache; a second copy of each wheel in pip's own would double the space.
        .args(["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"])
        .arg("-r")
        .arg(&requirements)
        // pip works below the staging folder, which a killed run leaves to the next one to remove.
        .env("TMPDIR", &temporary)
        // Both are about what is installed where Python has its packages, and nothing is.
        .env_remove("PIP_CONSTRAINT")
        .env("PIP_REQUIRE_VIRTUALENV", "0")
        .current_dir(work);
    let tell = || task.arrived(arrived(&wheels_below(work)));
    watched(tell, || process::capture(&mut command)).map(drop)
}

/// Runs `action` and meanwhile calls `tell`, time and again.
fn watched<T>(tell: impl Fn() + Sync, action: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                tell();
                std::thread::park_timeout(Duration::from_millis(250));
            }
        });
        let result = action();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// The sizes of all wheels below `folder`, bytes.
fn wheels_below(folder: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let sizes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => wheels_below(&entry.path()),
        Ok(metadata) if entry.path().extension().is_some_and(|extension| extension == "whl") => {
            vec![metadata.len()]
        }
        _ => Vec::new(),
    };
    entries.flatten().flat_map(sizes).collect()
}

/// What helps, judged by pip's own words.
pub(super) fn help(output: &str) -> &'static str {
    let says = |texts: &[&str]| texts.iter().any(|text| output.contains(text));
    if says(&["No space left on device"]) {
        "the disk of the cache is full; another place can be named in `CUBINDER_CACHE`"
    } else if says(&["DO NOT MATCH THE HASHES"]) {
        "the package index serves another file than the pinned one; do not use it, and check which index pip is set to use \
         (`python3 -m pip config list`)"
    } else if says(&[
        "NewConnectionError",
        "Connection refused",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "Name or service not known",
        "Temporary failure in name resolution",
        "ProxyError",
        "SSLError",
        "Connection broken",
    ]) {
        "the package index could not be reached; check the network and pip's settings (`python3 -m pip config list`), then \
         run the same command again: finished packages are kept"
    } else if says(&["No matching distribution found"]) {
        "pip sees no such wheel for this system: x86-64 Linux with glibc 2.28 or later and pip 20.3 or later are needed, and \
         an index that has the package (`python3 -m pip config list`)"
    } else {
        "run the same command again; finished packages are kept"
    }
}

fn unpack(python: &Python, choice: &Choice<'_>, wheel: &Path, work: &Path, content: &Path) -> Result<()> {
    let script = work.join("unpack.py");
    fs::write(&script, include_str!("../../python/unpack.py"))?;
    let mut command = Command::new(&python.path);
    command.arg("-I").arg(&script).arg(wheel).arg(content).args(&choice.package.skip);
    process::capture(&mut command)?;
    for link in &choice.package.links {
        std::os::unix::fs::symlink(&link.target, content.join(&link.path))
            .with_context(|| format!("the link `{}` could not be made", link.path))?;
    }
    let names = choice.package.requires.iter().chain(choice.package.links.iter().map(|link| &link.path));
    for name in names {
        ensure!(content.join(name).exists(), "the wheel holds no `{name}`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_found_wherever_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("pip/unpack")).unwrap();
        fs::write(folder.path().join("requirements.txt"), "123456789").unwrap();
        fs::write(folder.path().join("one.whl"), "123").unwrap();
        fs::write(folder.path().join("pip/unpack/a.whl"), "1234567").unwrap();
        let mut sizes = wheels_below(folder.path());
        sizes.sort_unstable();
        assert_eq!(sizes, [3, 7]);
        assert!(wheels_below(&folder.path().join("gone")).is_empty());
    }

    #[test]
    fn help_follows_what_pip_said() {
        let offline =
            "WARNING: Retrying ... NewConnectionError(...)\nERROR: No matching distribution found for x";
        assert!(help(offline).starts_with("the package index could not be reached"));
        assert!(help("ERROR: No matching distribution found for x").starts_with("pip sees no such wheel"));
        assert!(help("THESE PACKAGES DO NOT MATCH THE HASHES").contains("another file than the pinned one"));
        assert!(help("OSError: [Errno 28] No space left on device").contains("CUBINDER_CACHE"));
        assert!(help("Killed").starts_with("run the same command again"));
    }
}
