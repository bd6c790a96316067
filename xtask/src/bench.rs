//! `cargo xtask bench`: costs, measured in turns of one run, because machines are noisy.

#![allow(clippy::cast_precision_loss)] // three digits are shown

mod charts;
mod check;
mod compile;
mod contenders;
mod curves;
mod engine;
mod farm;
mod generated;
mod kernels;
mod library;
mod measure;
mod page;
mod published;
mod remote;
mod report;
mod torch;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use fs_err as fs;

use crate::tools::Tools;
use crate::{gpu, process, workspace};

#[derive(Debug, Subcommand)]
pub(crate) enum Table {
    /// `cubinder compile`, cold and warm, of 1 to 1,000 variants and 1 to 8 architectures, compared with NVRTC and nvcc: wall time, processor time, memory
    Compile(compile::Options),
    /// `cubinder check` of the shipped manifests and of 1 to 1,000 generated ones: time, memory
    Check(check::Options),
    /// Remote execution of 1,000 to 10,000 units by a simulated farm: how busy its workers are, time and memory of the client
    Farm(farm::Options),
    /// A library of 1 to 1,000 plugins for 8 architectures, compared with a hand-written one: size, load time in TensorRT, memory
    Library(library::Options),
    /// Building engines of 1 to 1,000 nodes: size of the plan and time, compared with hand-written plugins in C++ and Python
    Build(engine::Options),
    /// A shared cache and one worker, served by BuildBox on this machine, compared with this machine alone; needs `bwrap`
    Remote(remote::Options),
    /// Loading these engines until the first result; needs a GPU
    Engine(Preparation),
    /// Host time of an enqueue with 1 and 16 arguments, 1 and 3 launches, also in a CUDA graph, compared with hand-written plugins in C++ and Python; needs a GPU
    Enqueue(Preparation),
    /// An eager call of a plugin in PyTorch, compared with operators in C++ and Python that launch the same kernel; needs a GPU, PyTorch, nvcc and a C++ compiler
    Torch(Preparation),
    /// Device time of the shipped plugins, compared with PyTorch, torch.compile and Triton; needs a GPU, PyTorch and Triton
    Kernels {
        #[command(flatten)]
        to: Preparation,
        /// Measure nothing; write the tables and plots of docs/contributing/performance.md and docs/plugins from the result FILE
        #[arg(long, value_name = "FILE", conflicts_with = "prepare")]
        publish: Option<PathBuf>,
    },
    /// Write a result into docs/contributing/performance.md and docs/contributing/performance; measure nothing
    Publish {
        /// The result of a measurement, from build/bench or another machine
        #[arg(value_name = "FILE")]
        result: PathBuf,
    },
    /// A plugin's overhead in an enqueue, compared with the bare launch call with the same arguments; needs a GPU
    Launch(Preparation),
}

#[derive(Debug, Args)]
pub(crate) struct Preparation {
    /// Write all files of the measurement to DIR; measure nothing
    #[arg(long, value_name = "DIR")]
    prepare: Option<PathBuf>,
}

pub(crate) fn run(table: &Table) -> Result<()> {
    match table {
        Table::Kernels { publish: Some(file), .. } => return published::publish(&workspace::root(), file),
        Table::Publish { result } => return report::publish(&workspace::root(), result),
        Table::Farm(options) => return save(farm::measure(options)?),
        _ => {}
    }
    let tools = Tools::open()?;
    match table {
        Table::Compile(options) => save(compile::measure(&tools, options)?),
        Table::Check(options) => save(check::measure(&tools, options)?),
        Table::Library(options) => save((library::measure(&tools, options)?, Vec::new())),
        Table::Remote(options) => save(remote::measure(&tools, options)?),
        Table::Build(options) => save((engine::measure(&tools, options)?, Vec::new())),
        Table::Engine(to) => on_a_gpu(&tools, table, to, engine::prepare),
        Table::Enqueue(to) => on_a_gpu(&tools, table, to, engine::prepare_enqueue),
        Table::Torch(to) => on_a_gpu(&tools, table, to, torch::prepare),
        Table::Kernels { to, .. } => on_a_gpu(&tools, table, to, kernels::prepare),
        Table::Launch(to) => on_a_gpu(&tools, table, to, prepare_launch),
        Table::Farm(_) | Table::Publish { .. } => Ok(()),
    }
}

const SCRIPT: &str = "sh run.sh";
const LAUNCH: &str = "launch/own_time launch/liblaunch.so launch/libcubinder.so";

fn on_a_gpu(
    tools: &Tools,
    table: &Table,
    preparation: &Preparation,
    prepare: fn(&Tools, &Path) -> Result<()>,
) -> Result<()> {
    let (name, start, publish) = match table {
        Table::Launch(_) => ("bench-launch", LAUNCH, None),
        Table::Kernels { .. } => ("bench-kernels", SCRIPT, Some("kernels --publish")),
        Table::Enqueue(_) => ("bench-enqueue", SCRIPT, Some("publish")),
        Table::Torch(_) => ("bench-torch", SCRIPT, Some("publish")),
        _ => ("bench-engine", SCRIPT, Some("publish")),
    };
    if let Some(folder) = &preparation.prepare {
        prepare(tools, folder)?;
        println!("prepared; run in {}: {start}", folder.display());
        return Ok(());
    }
    gpu::require()?;
    let folder = workspace::root().join("build").join(name);
    prepare(tools, &folder)?;
    let mut command = Command::new("sh");
    // The other tables need TensorRT-RTX's bindings.
    if !matches!(table, Table::Kernels { .. } | Table::Torch(_)) {
        let python = tools.toolchain.python_command()?;
        command.env("PYTHON", python.get_program());
        command.envs(python.get_envs().filter_map(|(name, value)| Some((name, value?))));
    }
    process::inherit(command.args(["-c", start]).current_dir(&folder))?;
    if let Some(publish) = publish {
        println!("cargo xtask bench {publish} {}", folder.join("out").join("*.json").display());
    }
    Ok(())
}

fn save((report, exceeded): (report::Report, Vec<String>)) -> Result<()> {
    let folder = workspace::root().join("build/bench");
    report::write(&report, &folder)?;
    println!("{}", report.section());
    println!("cargo xtask bench publish {}", folder.join(format!("{}.json", report.name)).display());
    ensure!(exceeded.is_empty(), "{}", exceeded.join("\n  "));
    Ok(())
}

pub(crate) fn prepare_launch(tools: &Tools, folder: &Path) -> Result<()> {
    let inner = folder.join("launch");
    fs::create_dir_all(&inner)?;
    let manifests = ["manifests/elemwise_add_plugin.toml", "manifests/circ_pad_plugin.toml"];
    let targets = ["sm_80", "sm_86", "sm_89", "sm_90", "compute_80"];
    tools.compile(&inner, "launch", &targets, &manifests)?;
    fs::copy(&tools.artifacts.runtime_library, inner.join("libcubinder.so"))?;
    tools.example("own-time", &[inner.join("own_time")]).map(drop)
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

    #[test]
    fn a_command_has_the_options_that_were_given() {
        let command = |words: std::str::Split<'_, char>| match Bench::parse_from(words).table {
            Table::Compile(options) => options.command(),
            Table::Check(options) => options.command(),
            Table::Farm(options) => options.command(),
            Table::Library(options) => options.command(),
            Table::Build(options) => options.command(),
            other => panic!("{other:?}"),
        };
        for line in [
            "bench compile --runs 3 --largest 100",
            "bench check --runs 15",
            "bench farm --workers 50 --largest 1000",
            "bench library --runs 7 --largest 100",
            "bench build --runs 1",
        ] {
            assert_eq!(command(line.split(' ')), format!("cargo xtask {line}"));
        }
        let by_default = command("bench check --limit-ms 5 --limit-generated-ms 1000".split(' '));
        assert_eq!(by_default, "cargo xtask bench check --runs 25");
    }
}
