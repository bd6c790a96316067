//! Builds and runs the conformance oracle, and parses its output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cxx;
use crate::headers::{self, Generation};

pub(crate) const SEPARATE: [&str; 3] = ["main.cpp", "heap.cpp", "broken.cpp"];

/// The oracle for one release's headers, with a faulty plugin library.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// Simulated release.
    pub generation: Generation,
    folder: PathBuf,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The check passed.
    Passed,
    /// Found and expected value.
    Failed(String),
    /// The reason to skip.
    Skipped(String),
}

/// A line of the oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Starts with the plugin or the library.
    pub name: String,
    /// Its outcome.
    pub outcome: Outcome,
}

/// One run's output.
#[derive(Clone, Debug)]
pub struct Run {
    /// Checks in order.
    pub checks: Vec<Check>,
    /// `N passed, M failed, K skipped`.
    pub totals: String,
    /// 0 passed, 1 a check failed, 2 invalid arguments; `None`: a signal.
    pub code: Option<i32>,
    /// Usage, for invalid arguments.
    pub stderr: String,
}

impl Run {
    /// Returns failed checks as printed.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let failed = |check: &Check| match &check.outcome {
            Outcome::Failed(how) => Some(format!("{}: {how}", check.name)),
            Outcome::Passed | Outcome::Skipped(_) => None,
        };
        self.checks.iter().filter_map(failed).collect()
    }

    /// Returns whether it completed without failures.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.code == Some(0)
            && self.failures().is_empty()
            && self.totals.contains(" 0 failed")
            && !self.checks.is_empty()
    }

    /// Runs a program with the oracle's output.
    pub fn of(command: &mut Command) -> Result<Run> {
        let output = command
            .output()
            .with_context(|| format!("cannot run `{}`", command.get_program().to_string_lossy()))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        Ok(Run::read(output.status.code(), &stdout, &String::from_utf8_lossy(&output.stderr)))
    }

    fn read(code: Option<i32>, stdout: &str, stderr: &str) -> Run {
        let mut run = Run { checks: Vec::new(), totals: String::new(), code, stderr: stderr.to_owned() };
        for line in stdout.lines() {
            let (name, outcome) = if let Some(name) = line.strip_prefix("ok ") {
                (name, Outcome::Passed)
            } else if let Some(rest) = line.strip_prefix("FAILED ") {
                let (name, how) = rest.split_once(": found ").unwrap_or((rest, ""));
                (name, Outcome::Failed(format!("found {how}")))
            } else if let Some(rest) = line.strip_prefix("skipped ") {
                let (name, why) = rest.rsplit_once(": ").unwrap_or((rest, ""));
                (name, Outcome::Skipped(why.to_owned()))
            } else {
                line.clone_into(&mut run.totals);
                continue;
            };
            run.checks.push(Check { name: name.to_owned(), outcome });
        }
        run
    }
}

impl Oracle {
    /// Builds the oracle, or reuses a cached build.
    pub fn build(generation: Generation) -> Result<Oracle> {
        let headers = headers::folder()?;
        let sources = cxx::sources(&folder())?;
        let lock = std::fs::read(headers::manifest().with_file_name("Cargo.lock"))?;
        let compiler = cxx::compiler_version().unwrap_or_default();
        let options = cxx::options(&headers, generation);
        let described = format!("{generation:?} {options:?} {compiler}");
        let mut key: Vec<&[u8]> = vec![described.as_bytes(), &lock];
        for (path, bytes) in &sources {
            key.push(path.as_os_str().as_encoded_bytes());
            key.push(bytes);
        }
        let folder = cxx::cached(&format!("oracle-{}", generation.name), &key, |out| {
            let paths = sources.iter().map(|(path, _)| path.as_path());
            let paths: Vec<&Path> =
                paths.filter(|path| !SEPARATE.iter().any(|name| path.ends_with(name))).collect();
            build_library(generation, &options, &paths, out)?;
            build_program(generation, &options, &out.join("oracle"))?;
            let mut arguments = options.clone();
            arguments.extend(["-shared", "broken.cpp", "-ldl", "-o"].map(OsString::from));
            arguments.push(out.join("libbroken.so").into());
            cxx::compile(&folder(), &arguments).context("cannot build the library with planted faults")
        })?;
        Ok(Oracle { generation, folder })
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.folder.join("oracle")
    }

    /// Returns `broken.cpp`'s library, which conforms without `ORACLE_FAULT`.
    #[must_use]
    pub fn broken_library(&self) -> PathBuf {
        self.folder.join("libbroken.so")
    }

    /// Checks `library`; `runtime` is for its engines, if separate.
    pub fn check(&self, library: &Path, runtime: Option<&Path>) -> Result<Run> {
        let mut arguments = vec![OsString::from("--library"), library.into()];
        if let Some(runtime) = runtime {
            arguments.push("--runtime-library".into());
            arguments.push(runtime.into());
        }
        self.run(&arguments, &[])
    }

    /// Runs the oracle.
    pub fn run(&self, arguments: &[OsString], environment: &[(&str, &str)]) -> Result<Run> {
        Run::of(Command::new(self.program()).args(arguments).envs(environment.iter().copied()))
    }
}

/// Returns the oracle's sources.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

pub(crate) fn build_library(
    generation: Generation,
    options: &[OsString],
    sources: &[&Path],
    out: &Path,
) -> Result<()> {
    let mut arguments = options.to_vec();
    if let Some(version) = generation.version {
        arguments.push(format!("-DORACLE_VERSION={version}").into());
    }
    for path in sources {
        if path.extension().is_some_and(|extension| extension == "cpp") {
            arguments.push("-include".into());
            arguments.push(path.into());
        }
    }
    arguments.extend(["-shared", "-x", "c++", "/dev/null", "-pthread", "-ldl", "-o"].map(OsString::from));
    arguments.push(out.join(generation.library).into());
    cxx::compile(&folder(), &arguments).context("cannot build the conformance oracle")
}

pub(crate) fn build_program(generation: Generation, options: &[OsString], out: &Path) -> Result<()> {
    let mut arguments = options.to_vec();
    arguments.extend(["main.cpp", "heap.cpp", "-Wl,-rpath,$ORIGIN", "-o"].map(OsString::from));
    arguments.push(out.into());
    arguments.push("-L".into());
    arguments.push(out.parent().unwrap_or(Path::new(".")).into());
    arguments.push(format!("-l:{}", generation.library).into());
    cxx::compile(&folder(), &arguments).context("cannot build the program around the oracle")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_checks() {
        let run = Run::read(
            Some(1),
            "ok a: b\nFAILED a: c: found 1: or 2, expected 3\nskipped a: d: no driver\n1 passed, 1 failed, 1 skipped\n",
            "",
        );
        assert_eq!(
            run.checks,
            [
                Check { name: "a: b".into(), outcome: Outcome::Passed },
                Check { name: "a: c".into(), outcome: Outcome::Failed("found 1: or 2, expected 3".into()) },
                Check { name: "a: d".into(), outcome: Outcome::Skipped("no driver".into()) },
            ]
        );
        assert_eq!(run.totals, "1 passed, 1 failed, 1 skipped");
        assert_eq!(run.failures(), ["a: c: found 1: or 2, expected 3"]);
        assert!(!run.is_clean());
    }

    #[test]
    fn a_run_without_checks_is_not_clean() {
        assert!(!Run::read(Some(0), "0 passed, 0 failed, 0 skipped\n", "").is_clean());
        assert!(!Run::read(None, "ok a: b\n", "").is_clean());
        assert!(Run::read(Some(0), "ok a: b\n1 passed, 0 failed, 0 skipped\n", "").is_clean());
    }
}
