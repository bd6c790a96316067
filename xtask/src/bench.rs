//! `cargo xtask bench`: costs, measured side by side.
//!
//! Machines are shared and noisy: figures that are compared with each other are measured in turns of one run.

#![allow(clippy::cast_precision_loss)] // figures are shown with three digits

mod charts;
mod check;
mod compile;
mod contenders;
mod curves;
mod engine;
mod generated;
mod kernels;
mod library;
mod measure;
mod published;
mod report;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;
use fs_err as fs;

use crate::workshop::Workshop;
use crate::{gpu, process, workspace};

#[derive(Debug, Subcommand)]
pub(crate) enum Table {
    /// `cubinder compile`, cold and warm, 1 to 1,000 variants, 1 to 8 architectures, beside NVRTC alone and nvcc: time, processors, memory
    Compile {
        /// How often each is measured, at most
        #[arg(long, default_value_t = 7)]
        runs: usize,
        /// The most variants times architectures
        #[arg(long, value_name = "N", default_value_t = 8000)]
        largest: usize,
        /// Fail where a cold compile of 100 variants and more takes longer than this many times NVRTC's calls alone
        #[arg(long, value_name = "N")]
        limit_bare: Option<f64>,
        /// Fail where a warm compile for one architecture takes longer than this many seconds
        #[arg(long, value_name = "N")]
        limit_warm: Option<f64>,
    },
    /// `cubinder check` of the shipped manifests, and of 1 to 1,000 generated ones: time, memory
    Check {
        /// How often each is measured
        #[arg(long, default_value_t = 25)]
        runs: usize,
        /// Fail where the median of a check of manifests that ship is above this many milliseconds
        #[arg(long, value_name = "N")]
        limit_ms: Option<f64>,
        /// Fail where that of generated ones is, of which the most are 1,000
        #[arg(long, value_name = "N")]
        limit_generated_ms: Option<f64>,
    },
    /// A library of 1 to 1,000 plugins for 8 architectures beside one written by hand: size, load time in TensorRT, memory
    Library {
        /// How often each is loaded
        #[arg(long, default_value_t = 9)]
        runs: usize,
        /// The most plugins
        #[arg(long, value_name = "N", default_value_t = 1000)]
        largest: usize,
    },
    /// Building engines of 1 to 1,000 nodes: size of the plan and time, beside plugins by hand in C++ and in Python
    Build {
        /// How often each is built
        #[arg(long, default_value_t = 5)]
        runs: usize,
    },
    /// Loading these engines until a first result is there; needs a GPU
    Engine {
        /// Write what the measurement needs to DIR, and measure nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<PathBuf>,
    },
    /// Host time of an enqueue with 1 and 16 arguments, 1 and 3 launches, also in a CUDA graph, beside plugins by hand in C++ and in Python; needs a GPU
    Enqueue {
        /// Write what the measurement needs to DIR, and measure nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<PathBuf>,
    },
    /// Device time of the plugins that ship beside PyTorch, torch.compile and Triton; needs a GPU, PyTorch and Triton
    Kernels {
        /// Write what the measurement needs to DIR, and measure nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<PathBuf>,
        /// Measure nothing, and write the tables and pictures of docs/performance.md and docs/plugins from the result FILE
        #[arg(long, value_name = "FILE", conflicts_with = "prepare")]
        publish: Option<PathBuf>,
    },
    /// Write a result into docs/performance.md and docs/performance; measure nothing
    Publish {
        /// What a measurement left in build/bench, or brought back from another machine
        #[arg(value_name = "FILE")]
        result: PathBuf,
    },
    /// A plugin's own time in an enqueue, beside the bare launch call with the same arguments; needs a GPU
    Launch {
        /// Write what the measurement needs to DIR, and measure nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<PathBuf>,
    },
}

impl Table {
    /// The command that measures the same again. Options are spelled out because their defaults may change.
    fn command(&self) -> String {
        let (name, options) = match self {
            Table::Compile { runs, largest, .. } => {
                ("compile", format!(" --runs {runs} --largest {largest}"))
            }
            Table::Check { runs, .. } => ("check", format!(" --runs {runs}")),
            Table::Library { runs, largest } => ("library", format!(" --runs {runs} --largest {largest}")),
            Table::Build { runs } => ("build", format!(" --runs {runs}")),
            // Their scripts report their own options.
            Table::Engine { .. } => ("engine", String::new()),
            Table::Enqueue { .. } => ("enqueue", String::new()),
            Table::Kernels { .. } => ("kernels", String::new()),
            Table::Launch { .. } => ("launch", String::new()),
            Table::Publish { .. } => ("publish", String::new()),
        };
        format!("cargo xtask bench {name}{options}")
    }
}

pub(crate) fn run(table: &Table) -> Result<()> {
    match table {
        Table::Kernels { publish: Some(file), .. } => return published::publish(&workspace::root(), file),
        Table::Publish { result } => return report::publish(&workspace::root(), result),
        _ => {}
    }
    let workshop = Workshop::open()?;
    match table {
        Table::Compile { runs, largest, limit_bare, limit_warm } => {
            let limits = compile::Limits { bare: *limit_bare, warm: *limit_warm };
            let (report, exceeded) = compile::measure(&workshop, table.command(), *runs, *largest, limits)?;
            keep(&report)?;
            fail_if_any(&exceeded)
        }
        Table::Check { runs, limit_ms, limit_generated_ms } => {
            let limits = check::Limits { shipped: *limit_ms, generated: *limit_generated_ms };
            let (report, exceeded) = check::measure(&workshop, table.command(), *runs, limits)?;
            keep(&report)?;
            fail_if_any(&exceeded)
        }
        Table::Library { runs, largest } => {
            keep(&library::measure(&workshop, table.command(), *runs, *largest)?)
        }
        Table::Build { runs } => keep(&engine::measure(&workshop, table.command(), *runs)?),
        Table::Engine { prepare } => on_a_gpu(&workshop, prepare.as_deref(), "bench-engine", engine::prepare),
        Table::Enqueue { prepare } => {
            on_a_gpu(&workshop, prepare.as_deref(), "bench-enqueue", engine::prepare_enqueue)
        }
        Table::Kernels { prepare: Some(folder), .. } => {
            kernels::prepare(&workshop, folder)?;
            println!("prepared; run it in {} with: sh run.sh", folder.display());
            Ok(())
        }
        Table::Kernels { .. } => {
            let result = kernels::measure(&workshop)?;
            println!("cargo xtask bench kernels --publish {}", result.display());
            Ok(())
        }
        Table::Launch { prepare: Some(folder) } => {
            prepare_launch(&workshop, folder)?;
            println!("prepared; run it in {} with: {LAUNCH}", folder.display());
            Ok(())
        }
        Table::Launch { prepare: None } => launch(&workshop),
        Table::Publish { .. } => Ok(()),
    }
}

/// Prepares a folder for another machine, or prepares one here and measures in it.
fn on_a_gpu(
    workshop: &Workshop,
    folder: Option<&Path>,
    name: &str,
    prepare: fn(&Workshop, &Path) -> Result<()>,
) -> Result<()> {
    if let Some(folder) = folder {
        prepare(workshop, folder)?;
        println!("prepared; run it in {} with: sh run.sh", folder.display());
        return Ok(());
    }
    gpu::require()?;
    let folder = workspace::root().join("build").join(name);
    prepare(workshop, &folder)?;
    // This interpreter finds TensorRT-RTX's bindings; it replaces itself by the script.
    let mut command = workshop.interpreter()?;
    let start = "import os, sys; os.environ['PYTHON'] = sys.executable; os.execvp('sh', ['sh', 'run.sh'])";
    process::inherit(command.args(["-c", start]).current_dir(&folder))?;
    println!("cargo xtask bench publish {}", folder.join("out").join("*.json").display());
    Ok(())
}

/// Writes a result into the build folder and prints it.
fn keep(report: &report::Report) -> Result<()> {
    let folder = workspace::root().join("build/bench");
    report::write(report, &folder)?;
    println!("{}", report.section());
    println!("cargo xtask bench publish {}", folder.join(format!("{}.json", report.name)).display());
    Ok(())
}

/// Fails if a limit is exceeded.
fn fail_if_any(exceeded: &[String]) -> Result<()> {
    anyhow::ensure!(exceeded.is_empty(), "{}", exceeded.join("\n  "));
    Ok(())
}

/// Runs a prepared folder, from inside it.
const LAUNCH: &str = "launch/own_time launch/liblaunch.so launch/libcubinder.so";

/// Puts a plugin library, and the program that plays TensorRT around it, into `folder`.
pub(crate) fn prepare_launch(workshop: &Workshop, folder: &Path) -> Result<()> {
    let inner = folder.join("launch");
    fs::create_dir_all(&inner)?;
    let manifests = ["manifests/elemwise_add_plugin.toml", "manifests/circ_pad_plugin.toml"];
    let targets = ["sm_80", "sm_86", "sm_89", "sm_90", "compute_80"];
    workshop.compile(&inner, "launch", &targets, &manifests)?;
    fs::copy(workshop.runtime_library(), inner.join("libcubinder.so"))?;
    workshop.example("own-time", &[inner.join("own_time")]).map(drop)
}

fn launch(workshop: &Workshop) -> Result<()> {
    gpu::require()?;
    let folder = tempfile::tempdir()?;
    prepare_launch(workshop, folder.path())?;
    let mut words = LAUNCH.split_whitespace();
    let mut command = std::process::Command::new(folder.path().join(words.next().unwrap_or_default()));
    process::inherit(command.current_dir(folder.path()).args(words))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Bench {
        #[command(subcommand)]
        table: Table,
    }

    /// A published command must reproduce its result.
    #[test]
    fn a_command_has_the_options_that_were_given() {
        for line in [
            "cargo xtask bench compile --runs 3 --largest 100",
            "cargo xtask bench check --runs 15",
            "cargo xtask bench library --runs 7 --largest 100",
            "cargo xtask bench build --runs 1",
        ] {
            let given = Bench::parse_from(line.split(' ').skip(2));
            assert_eq!(given.table.command(), line);
        }
        let by_default =
            Bench::parse_from(["bench", "check", "--limit-ms", "5", "--limit-generated-ms", "1000"])
                .table
                .command();
        assert_eq!(by_default, "cargo xtask bench check --runs 25");
    }
}
