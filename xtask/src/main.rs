//! Set-up, demo, tests and benchmarks of this repository: runs cargo, pip and the built programs. Product
//! logic is in the `cubinder` program.
//!
//! One module a command. A new command is a module with a `run` function, a variant of [`Command`] and an arm
//! in [`run`].

mod artifacts;
mod bench;
mod book;
mod cases;
mod compat_fixtures;
mod compile_plugins;
mod demo;
mod dist;
mod docs;
mod files;
mod fuzz;
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
mod workshop;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

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
    #[command(long_about = setup::LONG_ABOUT)]
    Setup {
        /// Fetch what the tests alone need, too: PyTorch, Triton, Numba, CuPy, nvcc and a lean runtime of TensorRT (1.3 GB, 3.6 GB unpacked)
        #[arg(long)]
        tests: bool,
    },
    /// Run everything the CI checks
    #[command(long_about = test::LONG_ABOUT)]
    Test {
        /// Run only the checks and tests whose name contains NAME
        name: Option<String>,
        /// Run what only a release needs, and nothing else
        #[arg(long, conflicts_with = "name")]
        release_checks: bool,
    },
    /// Write the generated tables of the reference anew
    #[command(long_about = docs::LONG_ABOUT)]
    Docs {
        /// Write nothing, and fail where they are out of date
        #[arg(long)]
        check: bool,
    },
    /// Write anew what the format of this checkout is, as files that later versions have to read
    #[command(long_about = compat_fixtures::LONG_ABOUT)]
    CompatFixtures,
    /// The main job on real input: from manifests to an engine that holds the machine code
    #[command(long_about = demo::LONG_ABOUT)]
    Demo,
    /// Make what is installed: an archive and a Python wheel
    #[command(long_about = dist::LONG_ABOUT)]
    Dist {
        /// The folder for both [default: build/dist]
        #[arg(long, value_name = "DIR")]
        out: Option<std::path::PathBuf>,
    },
    /// Run engines that were built without a GPU on the GPU of this machine
    #[command(long_about = gpu_test::LONG_ABOUT)]
    GpuTest {
        /// Write everything that the test needs to DIR, and run nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<std::path::PathBuf>,
        /// Only compare what kernels write by the native route and by the plugin route
        #[arg(long)]
        routes: bool,
    },
    /// The samples of TensorRT's guides for Python plugins: compile, build an engine, look into it, run it
    #[command(long_about = sample::LONG_ABOUT)]
    Sample(sample::Options),
    /// Measure, and print a table; every figure is a ratio of things measured side by side
    Bench {
        #[command(subcommand)]
        what: bench::Table,
    },
    /// Feed made-up inputs to the readers of text and bytes; needs a nightly compiler and cargo-fuzz
    #[command(long_about = fuzz::LONG_ABOUT)]
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
    #[command(long_about = matrix::LONG_ABOUT)]
    Matrix {
        /// Play TensorRT with these headers, too: a folder for each release, such as `10.8`, with NVIDIA's `include` in it
        #[arg(long, value_name = "DIR")]
        headers: Option<std::path::PathBuf>,
    },
    /// Run a command, and leave what it took in a file
    #[command(hide = true)]
    Measured(measured::Options),
    /// Change the code that right results depend on, and tell which changes no test notices; needs cargo-mutants
    #[command(long_about = mutants::LONG_ABOUT)]
    Mutants {
        /// What to change; without any, all
        #[arg(value_name = "GROUP")]
        groups: Vec<String>,
        /// Try only what the last run did not catch
        #[arg(long)]
        left: bool,
    },
    /// Make the documentation into pages for a browser
    #[command(long_about = book::LONG_ABOUT)]
    Book,
    /// Compile the plugins of this repository into libraries
    #[command(long_about = compile_plugins::LONG_ABOUT)]
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
        Command::Docs { check } => docs::run(check)?,
        Command::CompatFixtures => compat_fixtures::run()?,
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
        Command::CompilePlugins { arguments } => compile_plugins::run(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
