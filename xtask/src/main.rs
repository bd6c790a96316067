//! Set-up, demo, tests and benchmarks. Product logic is in the `cubinder` program.
//!
//! A command is a module with a `run` function, a variant of [`Command`] and an arm in [`run`].

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
    /// pip downloads the packages, pinned by version and SHA-256, into folders of the cache; nothing is installed elsewhere. The other commands do this by themselves.
    ///
    /// Environment:
    ///   CUBINDER_CACHE     the cache; otherwise $XDG_CACHE_HOME/cubinder or $HOME/.cache/cubinder
    ///   CUBINDER_PYTHON    the Python interpreter to use; otherwise `python3`, or another supported one on the path
    ///   CUBINDER_NVRTC     a libnvrtc.so.*, or the folder that holds it, to use instead of fetching it
    ///   CUDA_HOME          folder of a CUDA toolkit to use for NVRTC and headers instead of fetching them
    ///   TENSORRT_RTX_HOME  folder of a TensorRT-RTX 1.7 to use instead of fetching it
    #[command(verbatim_doc_comment)]
    Setup {
        /// Fetch what the tests alone need, too: PyTorch, Triton, Numba, CuPy, nvcc and a lean runtime of TensorRT (1.3 GB, 3.6 GB unpacked)
        #[arg(long)]
        tests: bool,
    },
    /// Run everything the CI checks
    ///
    /// These are: set-up (for the tests 1.3 GB of PyTorch, compilers and a lean runtime of TensorRT more), formatting, clippy and rustdoc with warnings as errors, the release build as it is installed, the demo, all tests.
    ///
    /// A failed step does not keep the later ones from running. The last line is `N passed, M failed, K skipped`; the exit status is not zero when anything failed. Each step that is not a test suite counts as one. A test that cannot run where it is prints a line that begins with `skipped: ` and says why; it counts as skipped, as an ignored one does.
    ///
    /// With NAME, set-up and builds run as usual, and then each check and each test of any program whose name contains NAME. Examples in doc comments do not run.
    ///
    /// --release-checks runs what only a release needs: the release build from a copy of the checkout, which must give the same bytes; `cargo xtask matrix`, which tries all releases of NVIDIA's libraries; and the book. A run without NAME names these checks in its summary.
    ///
    /// Tests find in their environment:
    ///   CUBINDER_REQUIRE_TOOLKIT    1: a test that needs the fetched packages must fail, not skip, without them
    ///   CUBINDER_CACHE              the cache that holds them
    ///   CUBINDER_TENSORRT_LIBS      folder with libtensorrt_rtx.so.1
    ///   CUBINDER_TEST_PYTHON        Python interpreter, to be run with
    ///   CUBINDER_TEST_PYTHONPATH    this as PYTHONPATH, and
    ///   CUBINDER_TEST_LIBRARY_PATH  this as LD_LIBRARY_PATH; it imports `tensorrt_rtx_bindings` and `onnx` then
    ///   CUBINDER_TEST_COMPILERS     a Python environment with Triton, Numba, CuPy and nvcc
    ///   CUBINDER_TEST_PYTORCH       one with PyTorch and onnx_graphsurgeon; its stand-ins/ on LD_LIBRARY_PATH are libraries that PyTorch links
    ///   CUBINDER_TEST_TENSORRT      the library of a lean runtime of full TensorRT; several, separated by colons, are all tried
    ///   CUBINDER_TEST_HEADERS       a folder with more headers of TensorRT, as `cargo xtask matrix --headers` takes it; not set here
    ///   CUBINDER_BIN                the release build of the program `cubinder`
    ///   CUBINDER_RUNTIME_LIBRARY    the release build of libcubinder.so
    ///   CUBINDER_TEST_ARCHIVE       the .tar.gz of `cargo xtask dist`
    ///   CUBINDER_TEST_WHEEL         the Python package of `cargo xtask dist`
    ///   CUBINDER_TEST_CMAKE         CMake, and
    ///   CUBINDER_TEST_NINJA         Ninja: those of this machine, else fetched
    #[command(verbatim_doc_comment)]
    Test {
        /// Run only the checks and tests whose name contains NAME
        name: Option<String>,
        /// Run what only a release needs, and nothing else
        #[arg(long, conflicts_with = "name")]
        release_checks: bool,
    },
    /// Write the generated tables of the reference anew
    ///
    /// The tables of docs/manifest.md, docs/expressions.md and docs/rules.md are generated from the program itself;
    /// those of docs/plugins.md and docs/plugins/*.md from the manifests and the test cases of the plugins.
    ///
    /// With --check nothing is written, and the command fails if the tables are out of date, as `cargo xtask test` does.
    Docs {
        /// Write nothing, and fail where they are out of date
        #[arg(long)]
        check: bool,
    },
    /// Write anew what the format of this checkout is, as files that later versions have to read
    ///
    /// Writes `tests/data/compat/<format version>/`, for the version of the format that this checkout writes: a bundle,
    /// a node's field and a reference.
    ///
    /// Only before a release: what a release has written must be read, or refused by name, by all that come after it.
    CompatFixtures,
    /// The main job on real input: from manifests to an engine that holds the machine code
    ///
    /// Compiles manifests and CUDA kernels into plugin libraries, writes an ONNX model that uses the plugins, has
    /// TensorRT-RTX's own builder make engines of it (no GPU needed), proves that the machine code is in the engines,
    /// and runs them where there is a GPU.
    ///
    /// Everything lands in build/demo.
    Demo,
    /// Make what is installed: an archive and a Python wheel
    ///
    /// The archive is cubinder-VERSION-x86_64-linux.tar.gz; both are for Linux with glibc 2.28 or later.
    ///
    /// Both hold the program, libcubinder.so, the CMake package, manual pages and completions. They are linked by zig,
    /// which is fetched with the other tools (pinned, about 115 MB). The same sources, compiled by the same Rust, give
    /// the same bytes in any folder.
    Dist {
        /// The folder for both [default: build/dist]
        #[arg(long, value_name = "DIR")]
        out: Option<std::path::PathBuf>,
    },
    /// Run engines that were built without a GPU on the GPU of this machine
    ///
    /// Compares their outputs with numpy's; and runs `cubinder test` over plugins that are right and plugins with
    /// planted faults, and over plugins that TensorRT can launch itself, by every route.
    ///
    /// Without options it prepares and runs. `--prepare DIR` writes a folder that needs nothing else: copy it to a
    /// machine with a GPU and TensorRT-RTX and run `python3 DIR/gpu_test.py DIR` there, with TRTEXEC naming trtexec.
    ///
    /// With `--routes` there are no engines and no faults, only the routes: `python3 DIR/kernel_tests.py DIR/kernels`
    /// runs that folder, with Python and the driver alone.
    GpuTest {
        /// Write everything that the test needs to DIR, and run nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<std::path::PathBuf>,
        /// Only compare what kernels write by the native route and by the plugin route
        #[arg(long)]
        routes: bool,
    },
    /// The samples of TensorRT's guides for Python plugins: compile, build an engine, look into it, run it
    ///
    /// Each is made of a manifest and a CUDA kernel, with the options of the guides' runner.
    ///
    /// A sample compiles its plugin into a library, writes an ONNX model that uses it, has TensorRT-RTX's own builder
    /// make an engine (no GPU needed), shows what is in the engine, and runs it where there is a GPU: the outputs are
    /// held against numpy's, byte for byte.
    Sample(sample::Options),
    /// Measure, and print a table; every figure is a ratio of things measured side by side
    Bench {
        #[command(subcommand)]
        what: bench::Table,
    },
    /// Feed made-up inputs to the readers of text and bytes; needs a nightly compiler and cargo-fuzz
    ///
    /// Runs until time is up: no reader may panic, and none may take longer than a second.
    ///
    /// Needs a nightly compiler and cargo-fuzz, and says how to get them. Inputs begin with the files of this
    /// repository. An input that fails is kept in tests/fuzz/artifacts/TARGET; what reaches new code is kept in
    /// tests/fuzz/work/TARGET, and at the end, also where an input failed, the fewest inputs that reach all of it are
    /// brought together. At most 300 of them, and at most 1 MiB, go to tests/fuzz/corpus/TARGET, which belongs into the
    /// repository: `cargo xtask test` replays it. Where there are more, every n-th by size is taken, and of these the
    /// smallest.
    ///
    /// Without TARGET all run, one after the other; --jobs says how many at the same time.
    Fuzz {
        /// What to fuzz; without any, all
        #[arg(value_name = "TARGET")]
        targets: Vec<String>,
        /// How long each target runs
        #[arg(long, value_name = "N", default_value_t = 600)]
        seconds: u64,
        /// How many targets run at the same time
        #[arg(long, value_name = "N", default_value_t = 1)]
        jobs: usize,
    },
    /// Try the releases of NVRTC and TensorRT, and the oldest Rust, that docs/support.md names
    ///
    /// Compiles all plugins of this repository with NVRTC 12.9, 13.0 and 13.5, each with the CUDA headers of its
    /// release, and asks each which PTX it writes. Gives the libraries of the plugins to TensorRT-RTX 1.4, 1.5, 1.6 and
    /// 1.7: is the library taken, is a model with a plugin node parsed, is an engine built. Gives libraries to the
    /// registries of full TensorRT 10.15, 10.16, 11.0, 11.2 and 11.4, which their lean runtimes have: loading, listing,
    /// creating, cloning, restoring and unloading. Checks the workspace with the Rust that Cargo.toml names, where
    /// rustup has it.
    ///
    /// Prints a table in Markdown, a row as soon as it was tried: it works, is refused and why, crashed, could not be
    /// asked because something of ours failed, or was not tried. Not tried is only what is not here and cannot be
    /// fetched: packages that pip does not get, a Rust that rustup does not have. At the end stands what is other than
    /// docs/support.md says, and what was not tried. Exit codes: 0 where all rows are as the page says; 1 where one is
    /// other; 3 where none is other, but not all were tried.
    ///
    /// Fetches 620 MB into the cache the first time, and takes some fifteen minutes on two cores. No GPU is needed.
    Matrix {
        /// Play TensorRT with these headers, too: a folder for each release, such as `10.8`, with NVIDIA's `include` in it
        #[arg(long, value_name = "DIR")]
        headers: Option<std::path::PathBuf>,
    },
    /// Run a command, and leave what it took in a file
    #[command(hide = true)]
    Measured(measured::Options),
    /// Change the code that right results depend on, and tell which changes no test notices; needs cargo-mutants
    ///
    /// Changes the code that reads bundles and fields, decides guards, proves claims, evaluates launches, keeps the
    /// cache, reads and writes files, runs a node and finds the logger, one place at a time, and runs the tests that
    /// are about it. A change that no test notices survives: it is reported, and the exit status says so.
    ///
    /// Needs cargo-mutants, and says how to get it. Works in a copy of the checkout (in TMPDIR); what was found is in
    /// target/mutants/GROUP. A change whose tests do not end within a minute is reported separately: no test
    /// failed, but none said that it is right.
    ///
    /// Without GROUP all run, one after the other. --left tries only what the last run did not catch.
    Mutants {
        /// What to change; without any, all
        #[arg(value_name = "GROUP")]
        groups: Vec<String>,
        /// Try only what the last run did not catch
        #[arg(long)]
        left: bool,
    },
    /// Make the documentation into pages for a browser
    ///
    /// The pages are in target/book.
    ///
    /// mdBook is built from its source the first time, in the cache that `cargo xtask setup` fills.
    Book,
    /// Compile the plugins of this repository into libraries
    ///
    /// Builds the compiler and the runtime library, then runs `cubinder compile` on `cubinder.toml` in the root of the
    /// checkout. Arguments are passed on to it; put `--` before one that cargo xtask would take for its own.
    CompilePlugins {
        /// Passed on to `cubinder compile`
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

/// Fails if a name is not `known`.
fn check_names<'a>(noun: &str, names: &[String], known: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    let Some(name) = unknown else { return Ok(()) };
    bail!("`{name}` is not a {noun}; the {noun}s are {}", known.join(", "))
}
