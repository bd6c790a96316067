//! Set-up, demo, tests and benchmarks, without product logic. A command is a module with `run`, a variant of
//! [`Command`] and an arm in [`run`].

mod artifacts;
mod bench;
mod book;
mod cases;
mod demo;
mod dist;
mod files;
mod fuzz;
mod generated_files;
mod gpu;
mod gpu_test;
mod kernel_tests;
mod matrix;
mod measured;
mod mutants;
mod process;
mod sample;
mod setup;
mod test;
mod tools;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

use crate::tools::Tools;

/// Set-up, tests and demo of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch NVRTC, the CUDA headers, TensorRT-RTX and onnx into a cache outside the checkout
    ///
    /// pip downloads the packages, pinned by version and SHA-256, into folders of the cache; nothing is installed elsewhere. The other commands run this automatically.
    ///
    /// Environment:
    ///   CUBINDER_CACHE     the cache; otherwise $XDG_CACHE_HOME/cubinder or $HOME/.cache/cubinder
    ///   CUBINDER_PYTHON    the Python interpreter to use; otherwise `python3`, or another supported one on the path
    ///   CUBINDER_NVRTC     a libnvrtc.so.* or its folder, to use instead of fetching it
    ///   CUDA_HOME          folder of a CUDA toolkit to use for NVRTC and headers instead of fetching them
    ///   TENSORRT_RTX_HOME  folder of a TensorRT-RTX 1.7 to use instead of fetching it
    #[command(verbatim_doc_comment)]
    Setup {
        /// Also fetch the packages for tests: PyTorch, Triton, Numba, CuPy, nvcc and a lean runtime of TensorRT (1.3 GB, 3.6 GB unpacked)
        #[arg(long)]
        tests: bool,
    },
    /// Run all checks of the CI
    ///
    /// Runs set-up (with 1.3 GB of packages for tests), formatting, clippy and rustdoc with warnings as errors, the release build as it is installed, the demo, and all tests.
    ///
    /// Later steps run even if a step fails. The last line is `N passed, M failed, K skipped`; the exit status is not 0 if anything failed. Each step other than a test suite counts as one. A test that cannot run prints a line that starts with `skipped: ` and the reason; it counts as skipped, as ignored tests do.
    ///
    /// With NAME, runs set-up and builds, then the checks and tests whose name contains NAME, without the examples in doc comments.
    ///
    /// --release-checks runs the checks for a release: all mutants of the manifests; the release build from a copy of the checkout, which must produce the same bytes; `cargo xtask matrix`, which tries all releases of NVIDIA's libraries; and the book. The summary of a run without NAME lists these checks as not run.
    ///
    /// Environment of the tests:
    ///   CUBINDER_REQUIRE_TOOLKIT    1: a test that needs the fetched packages must fail, not skip, without them
    ///   CUBINDER_CACHE              the cache with these packages
    ///   CUBINDER_TENSORRT_LIBS      folder with libtensorrt_rtx.so.1
    ///   CUBINDER_TEST_PYTHON        Python interpreter that imports `tensorrt_rtx_bindings` and `onnx` with
    ///   CUBINDER_TEST_PYTHONPATH    this PYTHONPATH, and
    ///   CUBINDER_TEST_LIBRARY_PATH  this LD_LIBRARY_PATH
    ///   CUBINDER_TEST_COMPILERS     a Python environment with Triton, Numba, CuPy and nvcc
    ///   CUBINDER_TEST_PYTORCH       one with PyTorch and onnx_graphsurgeon; its stand-ins/ on LD_LIBRARY_PATH replace libraries that PyTorch links
    ///   CUBINDER_TEST_TENSORRT      libraries of lean runtimes of full TensorRT, separated by colons
    ///   CUBINDER_TEST_HEADERS       a folder with more headers of TensorRT, as for `cargo xtask matrix --headers`; not set here
    ///   CUBINDER_BIN                the release build of the program `cubinder`
    ///   CUBINDER_RUNTIME_LIBRARY    the release build of libcubinder.so
    ///   CUBINDER_TORCH_KERNELS      the release build of libcubinder_torch.so
    ///   CUBINDER_TEST_ARCHIVE       the .tar.gz of `cargo xtask dist`
    ///   CUBINDER_TEST_WHEEL         the Python package of `cargo xtask dist`
    ///   CUBINDER_TEST_CMAKE         CMake, and
    ///   CUBINDER_TEST_NINJA         Ninja, installed on this machine or fetched
    #[command(verbatim_doc_comment)]
    Test {
        /// Run only the checks and tests whose name contains NAME
        name: Option<String>,
        /// Run only the checks for a release
        #[arg(long, conflicts_with = "name")]
        release_checks: bool,
    },
    /// Update the generated tables of the reference
    ///
    /// The tables of docs/manifest.md, docs/expressions.md and docs/rules.md are generated from the program;
    /// those of docs/plugins.md and docs/plugins/*.md from the manifests and the test cases of the plugins.
    ///
    /// With --check, writes nothing and fails if the tables are out of date, as `cargo xtask test` does.
    Docs {
        /// Write nothing; fail if the tables are out of date
        #[arg(long)]
        check: bool,
    },
    /// Write files in this checkout's format, which later versions must read or reject by name
    ///
    /// Writes a bundle, a node's field and a reference to `tests/data/compat/<format version>/`.
    ///
    /// Run this only before a release.
    CompatFixtures,
    /// Demonstrate the path from manifests to an engine that contains the machine code
    ///
    /// Compiles manifests and CUDA kernels into plugin libraries, writes an ONNX model that uses the plugins, builds
    /// engines of it with TensorRT-RTX's builder (no GPU needed), checks that the machine code is in the engines, and
    /// runs them if a GPU is present.
    ///
    /// Writes to build/demo.
    Demo,
    /// Build the release packages: an archive and a Python wheel
    ///
    /// The archive is cubinder-VERSION-x86_64-linux.tar.gz; both are for Linux with glibc 2.28 or later.
    ///
    /// Both contain the program, libcubinder.so, the CMake package, manual pages and completions. They are linked by zig,
    /// which is fetched with the other tools (pinned, about 115 MB). Equal sources and an equal Rust produce equal bytes
    /// in any folder.
    Dist {
        /// The folder for both [default: build/dist]
        #[arg(long, value_name = "DIR")]
        out: Option<std::path::PathBuf>,
    },
    /// Run engines that were built without a GPU on this machine's GPU
    ///
    /// Compares their outputs with NumPy's. Runs `cubinder test` on correct plugins, on plugins with planted faults,
    /// and on plugins of the native route, by every route.
    ///
    /// Without options, prepares and runs. `--prepare DIR` writes a self-contained folder: copy it to a machine with a
    /// GPU and TensorRT-RTX, set TRTEXEC to the path of trtexec, and run `python3 DIR/gpu_test.py DIR`.
    ///
    /// With `--routes`, there are no engines and no faults, only the routes: `python3 DIR/kernel_tests.py DIR/kernels`
    /// runs that folder with Python and the driver.
    GpuTest {
        /// Write all files of the test to DIR; run nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<std::path::PathBuf>,
        /// Only compare the kernels' outputs by the native route and by the plugin route
        #[arg(long)]
        routes: bool,
    },
    /// Run a sample of TensorRT's guides for Python plugins: compile, build an engine, inspect it, run it
    ///
    /// Each sample is a manifest and a CUDA kernel, with the options of the guides' runner.
    ///
    /// Compiles the plugin into a library, writes an ONNX model that uses it, builds an engine with TensorRT-RTX's
    /// builder (no GPU needed), shows the engine's content, and runs it if a GPU is present: the outputs are compared
    /// with NumPy's, byte for byte.
    Sample(sample::Options),
    /// Measure and print a table of ratios of values that were measured side by side
    Bench {
        #[command(subcommand)]
        what: bench::Table,
    },
    /// Fuzz the parsers of text and bytes; needs a nightly compiler and cargo-fuzz
    ///
    /// Runs for the set time: no parser may panic, or take longer than a second.
    ///
    /// Prints how to install missing tools. The first inputs are files of this repository. Failing inputs are stored in
    /// tests/fuzz/artifacts/TARGET, inputs that reach new code in tests/fuzz/work/TARGET. At the end, even after a
    /// failure, the smallest set of inputs with the same coverage is selected; up to 300 of them, at most 1 MiB, are
    /// stored in tests/fuzz/corpus/TARGET, to commit: `cargo xtask test` replays them. If there are more, every n-th by
    /// size is selected, and of these the smallest.
    ///
    /// Without TARGET, runs all targets in sequence; --jobs sets how many run at the same time.
    Fuzz {
        /// The targets to fuzz [default: all]
        #[arg(value_name = "TARGET")]
        targets: Vec<String>,
        /// Seconds for each target
        #[arg(long, value_name = "N", default_value_t = 600)]
        seconds: u64,
        /// Number of targets that run at the same time
        #[arg(long, value_name = "N", default_value_t = 1)]
        jobs: usize,
    },
    /// Try the releases of NVRTC and TensorRT, and the oldest Rust, that docs/support.md lists
    ///
    /// Compiles all plugins of this repository with NVRTC 12.9, 13.0 and 13.5, each with the CUDA headers of its
    /// release, and records the PTX version of each. Loads the plugin libraries with TensorRT-RTX 1.4, 1.5, 1.6 and
    /// 1.7, parses a model with a plugin node and builds an engine. Loads libraries with the registries of the lean
    /// runtimes of full TensorRT 10.15, 10.16, 11.0, 11.2 and 11.4: loading, listing, creating, cloning, restoring and
    /// unloading. Checks the workspace with the Rust version of Cargo.toml, if rustup has it.
    ///
    /// Prints a Markdown table, one row at a time: works, refused with the reason, crashed, failed because of an error
    /// of ours, or not tried, which means that a package or a Rust is missing and cannot be fetched. Ends with the
    /// differences from docs/support.md and the rows that were not tried. Exit codes: 0 if all rows match the page; 1
    /// if one differs; 3 if none differs but not all were tried.
    ///
    /// Fetches 620 MB into the cache the first time, and takes about fifteen minutes on two cores. No GPU is needed.
    Matrix {
        /// Also simulate TensorRT with these headers: a folder for each release, such as `10.8`, that contains NVIDIA's `include`
        #[arg(long, value_name = "DIR")]
        headers: Option<std::path::PathBuf>,
    },
    /// Run a command and write its cost to a file
    #[command(hide = true)]
    Measured(measured::Options),
    /// Mutate the code that correct results depend on and report mutants that no test detects; needs cargo-mutants
    ///
    /// Mutates the code that reads bundles and fields, evaluates guards, proves claims, evaluates launches, manages the
    /// cache, reads and writes files, runs a node and finds the logger, one place at a time, and runs the corresponding
    /// tests. A mutant that no test detects survives: it is reported, and the exit status is not 0.
    ///
    /// Prints how to install cargo-mutants if it is missing. Works in a copy of the checkout (in TMPDIR) and writes
    /// results to target/mutants/GROUP. A mutant whose tests do not end within a minute is reported separately: it was
    /// neither detected nor accepted.
    ///
    /// Without GROUP, runs all groups in sequence. --left tries only mutants that the last run did not catch.
    Mutants {
        /// The groups to mutate [default: all]
        #[arg(value_name = "GROUP")]
        groups: Vec<String>,
        /// Try only mutants that the last run did not catch
        #[arg(long)]
        left: bool,
    },
    /// Build the documentation as HTML pages in target/book
    ///
    /// mdBook is built from source the first time, in the cache of `cargo xtask setup`.
    Book,
    /// Compile the plugins of this repository into libraries
    ///
    /// Builds the compiler and the runtime library, then runs `cubinder compile` on `cubinder.toml` in the root of the
    /// checkout. Passes arguments to it; put `--` before an argument that cargo xtask would parse itself.
    CompilePlugins {
        /// Arguments of `cubinder compile`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Setup { tests } => setup::run(tests)?,
        Command::Test { name, release_checks } => return Ok(test::run(name.as_deref(), release_checks)),
        Command::Docs { check } => generated_files::docs(check)?,
        Command::CompatFixtures => generated_files::compat_fixtures()?,
        Command::Book => book::run()?,
        Command::Demo => demo::run()?,
        Command::Dist { out } => dist::run(out.as_deref())?,
        Command::GpuTest { prepare, routes } => gpu_test::run(prepare.as_deref(), routes)?,
        Command::Sample(options) => sample::run(&options)?,
        Command::Bench { what } => bench::run(&what)?,
        Command::Fuzz { targets, seconds, jobs } => return fuzz::run(&targets, seconds, jobs),
        Command::Matrix { headers } => return matrix::run(headers.as_deref()),
        Command::Measured(options) => return measured::run(&options),
        Command::Mutants { groups, left } => return mutants::run(&groups, left),
        Command::CompilePlugins { arguments } => {
            process::inherit(Tools::open()?.cubinder()?.arg("compile").args(arguments))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check_names<'a>(noun: &str, names: &[String], known: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    let Some(name) = unknown else { return Ok(()) };
    bail!("unknown {noun} `{name}`; expected one of {}", known.join(", "))
}
