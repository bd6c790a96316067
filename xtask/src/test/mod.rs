//! `cargo xtask test`: everything the CI checks.
//!
//! Owns the list of steps, which is [`steps`], and the environment that tests see. How output is read and counted is in
//! [`results`], how steps are run and summed up in [`report`]. Never decides what a test means.

mod report;
mod results;

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::artifacts::Artifacts;
use crate::{artifacts, setup, workspace};
use report::Report;

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Run everything the CI checks: set-up, formatting, clippy and rustdoc with warnings as errors, the release build, the demo, all tests.

A failed step does not keep the later ones from running. The last line is `N passed, M failed, K skipped`; the exit status \
is not zero when anything failed. Each step that is not a test suite counts as one. A test that cannot run where it is prints a line \
that begins with `skipped: ` and says why; it counts as skipped, as an ignored one does.

With --filter, set-up and build run as ever, checks run when NAME is in their name, and NAME is given to the suites.

Tests find in their environment:
  CUBINDER_REQUIRE_TOOLKIT    1: a test that needs the fetched packages must fail, not skip, without them
  CUBINDER_CACHE              the cache that holds them
  CUBINDER_TENSORRT_LIBS      folder with libtensorrt_rtx.so.1
  CUBINDER_TEST_PYTHON        Python interpreter, to be run with
  CUBINDER_TEST_PYTHONPATH    this as PYTHONPATH, and
  CUBINDER_TEST_LIBRARY_PATH  this as LD_LIBRARY_PATH; it imports `tensorrt_rtx_bindings` and `onnx` then
  CUBINDER_BIN                the release build of the program `cubinder`
  CUBINDER_RUNTIME_LIBRARY    the release build of libcubinder.so";

/// Runs the steps, prints the summary and gives the exit status.
///
/// # Errors
/// None that a step could have: those are counted and told.
pub(crate) fn run(filter: Option<&str>) -> Result<ExitCode> {
    let mut report = Report::new(std::io::stdout(), filter);
    steps(&mut report);
    Ok(report.finish())
}

/// Every step, in order. A step that needs what a failed one would have made runs all the same, and its tests say what they miss.
fn steps(report: &mut Report<impl Write>) {
    let toolchain = report.prepare("setup", |_| setup::environment(&setup::ensure()?));
    report.check("rustfmt", &mut cargo(&["fmt", "--all", "--", "--check"]));
    report.check("clippy", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    // The program `cubinder` would be documented into the same folder as the runtime library of that name.
    report.check(
        "rustdoc",
        cargo(&["doc", "--workspace", "--no-deps", "--lib", "--bin", "xtask"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    let artifacts = report.prepare("build", |echo| artifacts::build(echo));
    report.check("demo", &mut cargo(&["run", "--quiet", "--package", "xtask", "--", "demo"]));
    let environment = environment(toolchain, artifacts.as_ref());
    report.suite("tests", |filter| {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        // Output of tests that pass is shown too: a skipped one says so there.
        command.args(filter).args(["--", "--show-output"]).envs(environment.iter().cloned());
        command
    });
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = workspace::cargo();
    command.args(arguments);
    command
}

/// A variable and its value.
type Variable = (&'static str, OsString);

/// What tests find in their environment, as far as it could be made.
fn environment(toolchain: Option<Vec<Variable>>, artifacts: Option<&Artifacts>) -> Vec<Variable> {
    let mut variables = vec![("CUBINDER_REQUIRE_TOOLKIT", OsString::from("1"))];
    variables.extend(toolchain.into_iter().flatten());
    let built = artifacts.map(|artifacts| artifacts.environment().map(|(name, path)| (name, path.into())));
    variables.extend(built.into_iter().flatten());
    variables
}
