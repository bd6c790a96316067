mod report;
mod results;
mod second_build;

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::Result;

use crate::dist::{self, Checkout, Dist};
use crate::setup::{self, BuildSystems};
use crate::{artifacts, workspace};
use report::Report;

pub(crate) fn run(name: Option<&str>, release_checks: bool) -> ExitCode {
    let mut report = Report::new(std::io::stdout(), name);
    if release_checks {
        release_steps(&mut report);
    } else {
        steps(&mut report);
    }
    let is_partial = !release_checks && name.is_none();
    let note =
        "not run: all mutants, dist from another folder, book, matrix (`cargo xtask test --release-checks`)";
    report.finish(is_partial.then_some(note))
}

fn release_steps(report: &mut Report<impl Write>) {
    let toolchain = report.prepare("setup", |_| setup::ensure()?.environment());
    let dist = report.prepare("dist", make_dist);
    report.check(
        "all mutants",
        cargo(&["test", "--package", "cubinder", "--test", "it", "mutation"])
            .env("CUBINDER_ALL_MUTANTS", "1")
            .envs(environment(toolchain, None, dist.as_ref(), None)),
    );
    if let Some(dist) = dist {
        report.verify("dist from another folder", |echo| second_build::same_from_another_folder(&dist, echo));
        let built = dist.artifacts.environment();
        report.check("matrix", xtask("matrix").env(artifacts::PREBUILT, "1").envs(built));
    }
    report.check("book", &mut xtask("book"));
}

/// Continues after failures: tests report missing parts.
fn steps(report: &mut Report<impl Write>) {
    let toolchain = report.prepare("setup", |_| setup::ensure()?.environment());
    // Downloads, and the single-threaded parts of the release build, run beside the other steps.
    let frameworks = in_background(|_| setup::packages::test_environment());
    let dist = in_background(make_dist);
    report.check("rustfmt", &mut cargo(&["fmt", "--all", "--", "--check"]));
    report.check("clippy", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    // rustdoc would mix program and library `cubinder`.
    report.check(
        "rustdoc",
        cargo(&["doc", "--workspace", "--no-deps", "--lib", "--bin", "xtask"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    // Before the wait for the release build, whose last steps use one processor.
    report.check("test build", &mut cargo(&["test", "--workspace", "--no-run"]));
    // The only release build, in installed form.
    let dist = report.prepare("dist", dist);
    let build_systems = report.prepare("build systems", |_| setup::build_systems());
    let frameworks = report.prepare("frameworks", frameworks);
    let environment = environment(toolchain, frameworks, dist.as_ref(), build_systems.as_ref());
    report.check("demo", xtask("demo").env(artifacts::PREBUILT, "1").envs(environment.iter().cloned()));
    report.suite("tests", |filter| {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        // rustdoc reads every crate before filtering.
        command.args(filter.map(|_| "--tests"));
        command.args(filter).args(["--", "--show-output"]).envs(environment.iter().cloned());
        command.env("CARGO_TERM_COLOR", "never");
        command
    });
}

/// The returned step waits for it, then prints its lines.
fn in_background<T: Send + 'static>(
    step: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T> + Send + 'static,
) -> impl FnOnce(&mut dyn FnMut(&str)) -> Result<T> {
    let thread = thread::spawn(|| {
        let mut lines = Vec::new();
        let result = step(&mut |line| lines.push(line.to_owned()));
        (lines, result)
    });
    |echo| {
        let (lines, result) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        lines.iter().for_each(|line| echo(line));
        result
    }
}

fn make_dist(echo: &mut dyn FnMut(&str)) -> Result<Dist> {
    dist::build(&Checkout::this()?, &dist::folder(None), echo)
}

fn xtask(name: &str) -> Command {
    cargo(&["run", "--quiet", "--package", "xtask", "--", name])
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = workspace::cargo();
    command.args(arguments);
    command
}

type Variable = (&'static str, OsString);

fn environment(
    toolchain: Option<Vec<Variable>>,
    frameworks: Option<Vec<Variable>>,
    dist: Option<&Dist>,
    build_systems: Option<&BuildSystems>,
) -> Vec<Variable> {
    let mut variables = vec![("CUBINDER_REQUIRE_TOOLKIT", OsString::from("1"))];
    variables.extend(toolchain.into_iter().chain(frameworks).flatten());
    if let Some(dist) = dist {
        variables.extend(dist.artifacts.environment().map(|(name, path)| (name, path.into())));
        variables.push(("CUBINDER_TEST_ARCHIVE", dist.archive.clone().into()));
        variables.push(("CUBINDER_TEST_WHEEL", dist.wheel.clone().into()));
    }
    if let Some(tools) = build_systems {
        variables.push(("CUBINDER_TEST_CMAKE", tools.cmake.clone().into()));
        variables.push(("CUBINDER_TEST_NINJA", tools.ninja.clone().into()));
    }
    variables
}
