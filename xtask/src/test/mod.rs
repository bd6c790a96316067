//! `cargo xtask test`: everything the CI checks.
//!
//! Owns the list of [`steps`] and the environment of the tests.

mod again;
mod report;
mod results;

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::dist::{self, Checkout, Dist};
use crate::setup::{self, BuildSystems};
use crate::{artifacts, workspace};
use report::Report;

pub(crate) const LONG_ABOUT: &str = "\
Run everything the CI checks: set-up (for the tests 1.3 GB of PyTorch, compilers and a lean runtime of TensorRT more), formatting, clippy and rustdoc with warnings as \
errors, the release build as it is installed, the demo, all tests.

A failed step does not keep the later ones from running. The last line is `N passed, M failed, K skipped`; the exit status \
is not zero when anything failed. Each step that is not a test suite counts as one. A test that cannot run where it is prints a line \
that begins with `skipped: ` and says why; it counts as skipped, as an ignored one does.

With NAME, set-up and builds run as usual, and then each check and each test of any program whose name contains NAME. Examples in doc comments \
do not run.

--release-checks runs what only a release needs: the release build from a copy of the checkout, which must give the same bytes; `cargo xtask matrix`, \
which tries all releases of NVIDIA's libraries; and the book. A run without NAME names these checks in its summary.

Tests find in their environment:
  CUBINDER_REQUIRE_TOOLKIT    1: a test that needs the fetched packages must fail, not skip, without them
  CUBINDER_CACHE              the cache that holds them
  CUBINDER_TENSORRT_LIBS      folder with libtensorrt_rtx.so.1
  CUBINDER_TEST_PYTHON        Python interpreter, to be run with
  CUBINDER_TEST_PYTHONPATH    this as PYTHONPATH, and
  CUBINDER_TEST_LIBRARY_PATH  this as LD_LIBRARY_PATH; it imports `tensorrt_rtx_bindings` and `onnx` then
  CUBINDER_TEST_COMPILERS     a Python environment with Triton, Numba, CuPy and nvcc
  CUBINDER_TEST_PYTORCH       one with PyTorch and onnx_graphsurgeon; its stand-ins/ on LD_LIBRARY_PATH are libraries that PyTorch links
  CUBINDER_TEST_TENSORRT      the library of a lean runtime of full TensorRT; several, separated by colons, are all tried
  CUBINDER_TEST_HEADERS       a folder with more headers of TensorRT, as `cargo xtask matrix --headers` takes it; not set here
  CUBINDER_BIN                the release build of the program `cubinder`
  CUBINDER_RUNTIME_LIBRARY    the release build of libcubinder.so
  CUBINDER_TEST_ARCHIVE       the .tar.gz of `cargo xtask dist`
  CUBINDER_TEST_WHEEL         the Python package of `cargo xtask dist`
  CUBINDER_TEST_CMAKE         CMake, and
  CUBINDER_TEST_NINJA         Ninja: those of this machine, else fetched";

/// Runs the steps, prints the summary and returns the exit status. Failed steps are counted.
pub(crate) fn run(name: Option<&str>, release_checks: bool) -> ExitCode {
    let mut report = Report::new(std::io::stdout(), name);
    if release_checks {
        release_steps(&mut report);
    } else {
        steps(&mut report);
        if name.is_none() {
            report.note(
                "not run: dist from another folder, book, matrix (`cargo xtask test --release-checks`)",
            );
        }
    }
    report.finish()
}

/// Runs what only a release needs.
fn release_steps(report: &mut Report<impl Write>) {
    if let Some(dist) = report.prepare("dist", make_dist) {
        report.verify("dist from another folder", |echo| again::same_from_another_folder(&dist, echo));
        let built = dist.artifacts.environment();
        report.check("matrix", xtask("matrix").env(artifacts::PREBUILT, "1").envs(built));
    }
    report.check("book", &mut xtask("book"));
}

/// Runs every step. A step still runs if one that it depends on has failed; its tests report what is missing.
fn steps(report: &mut Report<impl Write>) {
    let toolchain = report.prepare("setup", |_| setup::ensure()?.environment());
    report.check("rustfmt", &mut cargo(&["fmt", "--all", "--", "--check"]));
    report.check("clippy", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    // The program `cubinder` would be documented into the same folder as the runtime library of that name.
    report.check(
        "rustdoc",
        cargo(&["doc", "--workspace", "--no-deps", "--lib", "--bin", "xtask"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    // What is tested is what is installed: there is no other release build.
    let dist = report.prepare("dist", make_dist);
    let build_systems = report.prepare("build systems", |_| setup::build_systems());
    let frameworks = report.prepare("frameworks", |_| setup::packages::test_environment());
    let environment = environment(toolchain, frameworks, dist.as_ref(), build_systems.as_ref());
    report.check("demo", xtask("demo").env(artifacts::PREBUILT, "1").envs(environment.iter().cloned()));
    report.suite("tests", |filter| {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        // rustdoc reads every crate before it applies the filter.
        command.args(filter.map(|_| "--tests"));
        // Output of tests that pass is read too: a skipped one says so there.
        command.args(filter).args(["--", "--show-output"]).envs(environment.iter().cloned());
        // The reader of results knows no terminal colours.
        command.env("CARGO_TERM_COLOR", "never");
        command
    });
}

fn make_dist(echo: &mut dyn FnMut(&str)) -> Result<Dist> {
    dist::make(&Checkout::this()?, &dist::folder(None), echo)
}

/// Another command of this program.
fn xtask(name: &str) -> Command {
    cargo(&["run", "--quiet", "--package", "xtask", "--", name])
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = workspace::cargo();
    command.args(arguments);
    command
}

/// A variable and its value.
type Variable = (&'static str, OsString);

/// The environment of the tests, without the variables of failed steps.
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
