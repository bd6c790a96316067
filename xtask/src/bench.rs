//! `cargo xtask bench`: what things cost, measured side by side.
//!
//! Owns what is measured and how it is shown. Machines are shared and noisy: a figure that is compared with another one is
//! taken in the same run, in turn with it.

mod kernels;
mod plot;
mod published;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use serde_json::Value;

use crate::gpu_test::gpu_is_there;
use crate::workshop::{Engine, Network, Workshop, scripts};
use crate::{process, workspace};

/// The tables.
#[derive(Debug, Subcommand)]
pub(crate) enum Table {
    /// Wall time of `cubinder compile`, cold and warm, beside the sum of its NVRTC calls
    Compile {
        /// How often each is measured
        #[arg(long, default_value_t = 7)]
        runs: usize,
    },
    /// Wall time of `cubinder check` for the shipped manifests, together and one by one
    Check {
        /// How often each is measured
        #[arg(long, default_value_t = 25)]
        runs: usize,
        /// Fail where the median of a check is above this many milliseconds
        #[arg(long, value_name = "N")]
        limit_ms: Option<f64>,
    },
    /// Host time of an enqueue beside that of a plugin written by hand in C++; needs a GPU
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
    /// A plugin's own time in an enqueue, beside the bare launch call with the same arguments; needs a GPU
    Launch {
        /// Write what the measurement needs to DIR, and measure nothing
        #[arg(long, value_name = "DIR")]
        prepare: Option<PathBuf>,
    },
}

const TARGETS: &str = "sm_80,sm_86,sm_89,sm_90,sm_120,compute_80";
const SHAPE: &str = "10,3,32,32";
#[cfg(test)]
const OUT_SHAPE: &str = "10,3,34,34";
const PADS: &str = "1,1,1,1";

/// Measures and prints.
///
/// # Errors
/// When something cannot be built or run.
pub(crate) fn run(table: &Table) -> Result<()> {
    if let Table::Kernels { publish: Some(file), .. } = table {
        return published::publish(&workspace::root(), file);
    }
    let workshop = Workshop::open()?;
    match table {
        Table::Compile { runs } => compile(&workshop, *runs),
        Table::Check { runs, limit_ms } => check(&workshop, *runs, *limit_ms),
        Table::Enqueue { prepare: Some(folder) } => {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            prepare_enqueue(&workshop, folder)?;
            println!("prepared; run it in {} with: python3 {ENQUEUE}", folder.display());
            Ok(())
        }
        Table::Enqueue { prepare: None } => enqueue(&workshop),
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
    }
}

/// One compile: what `cubinder compile` says of itself, and the wall time of the whole process.
struct Sample {
    wall: Duration,
    nvrtc: Duration,
    calls: u64,
}

fn compile(workshop: &Workshop, runs: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let arguments = ["--name", "bench", "--target", TARGETS, "--message-format", "json"];
    let measure = |more: &[&str]| -> Result<Sample> {
        let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
        let started = Instant::now();
        let text = workshop.compile(folder.path(), &arguments)?;
        let wall = started.elapsed();
        let summary: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
        let nvrtc = Duration::from_secs_f64(summary["nvrtc_ms"].as_f64().unwrap_or_default() / 1e3);
        Ok(Sample { wall, nvrtc, calls: summary["nvrtc_calls"].as_u64().unwrap_or_default() })
    };
    measure(&[])?;
    let (mut cold, mut serial, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        cold.push(measure(&["--no-cache"])?);
        serial.push(measure(&["--no-cache", "--jobs", "1"])?);
        warm.push(measure(&[])?);
    }
    println!("the plugins of this repository for {TARGETS}, medians of {runs} runs in turn\n");
    println!("| | wall | NVRTC calls | their sum | wall / sum |");
    println!("|---|---|---|---|---|");
    for (name, samples) in [("cold", &cold), ("cold, one job", &serial), ("warm", &warm)] {
        let wall = median(samples.iter().map(|sample| sample.wall));
        let sum = median(samples.iter().map(|sample| sample.nvrtc));
        let calls = samples.first().map_or(0, |sample| sample.calls);
        let ratio = if sum.is_zero() {
            "-".to_owned()
        } else {
            format!("{:.2}", wall.as_secs_f64() / sum.as_secs_f64())
        };
        println!("| {name} | {} | {calls} | {} | {ratio} |", milliseconds(wall), milliseconds(sum));
    }
    Ok(())
}

/// What `cubinder check` costs, of the whole process: beside it what the process alone does, which only says its version.
fn check(workshop: &Workshop, runs: usize, limit_ms: Option<f64>) -> Result<()> {
    let commands: [(&str, &[&str]); 6] = [
        ("check, all", &["check", "--quiet"]),
        ("check, circ_pad_plugin", &["check", "--quiet", "manifests/circ_pad_plugin.toml"]),
        ("check, elemwise_add_plugin", &["check", "--quiet", "manifests/elemwise_add_plugin.toml"]),
        ("check, elemwise_add_plugin_", &["check", "--quiet", "manifests/elemwise_add_plugin_.toml"]),
        ("check, non_zero_plugin", &["check", "--quiet", "manifests/non_zero_plugin.toml"]),
        ("the process alone", &["--version"]),
    ];
    let mut times = vec![Vec::new(); commands.len()];
    for _ in 0..runs {
        for ((_, arguments), times) in commands.iter().zip(&mut times) {
            let started = Instant::now();
            workshop.cubinder_says(arguments)?;
            times.push(started.elapsed());
        }
    }
    println!("medians and best of {runs} runs in turn\n");
    println!("| | median | best |");
    println!("|---|---|---|");
    let mut medians = Vec::new();
    for ((name, _), times) in commands.iter().zip(times) {
        let best = times.iter().min().copied().unwrap_or_default();
        let median = median(times.into_iter());
        println!("| {name} | {} | {} |", milliseconds(median), milliseconds(best));
        medians.push((*name, median));
    }
    // The process alone is no check.
    medians.pop();
    limit_ms.map_or(Ok(()), |limit| within(&medians, limit))
}

/// Fails where a median is above the limit.
fn within(medians: &[(&str, Duration)], limit_ms: f64) -> Result<()> {
    let above = medians.iter().filter(|(_, median)| median.as_secs_f64() * 1e3 > limit_ms);
    let above: Vec<String> =
        above.map(|(name, median)| format!("`{name}` takes {}", milliseconds(*median))).collect();
    if above.is_empty() {
        return Ok(());
    }
    bail!("{}; the limit is {limit_ms} ms (the median)", above.join(", "))
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// How a prepared folder is measured, from inside it.
const ENQUEUE: &str = "enqueue_bench.py cubinder=enqueue/cubinder.plan+enqueue/libcubinder.so \
                       cpp=enqueue/reference.plan+enqueue/libreference.so --shape 10,3,32,32 --out-shape 10,3,34,34";

/// Puts two engines with circular padding into `folder`, one with a plugin of Cubinder's and one with the C++ plugin.
///
/// # Errors
/// When something cannot be built.
pub(crate) fn prepare_enqueue(workshop: &Workshop, folder: &Path) -> Result<()> {
    let inner = folder.join("enqueue");
    std::fs::create_dir_all(&inner).with_context(|| format!("cannot make {}", inner.display()))?;
    for script in ["enqueue_bench.py", "gpu_test.py", "cuda_driver.py"] {
        std::fs::copy(scripts().join(script), folder.join(script))?;
    }
    std::fs::copy(workshop.runtime_library(), inner.join("libcubinder.so"))?;
    let reference = inner.join("libreference.so");
    let mut build = workspace::cargo();
    build.args(["run", "--quiet", "--package", "cubinder-tests", "--example", "reference-plugin", "--"]);
    process::capture(build.arg(&inner).arg(&reference).envs(workshop.environment()?))?;
    let library = inner.join("libbench.so");
    workshop
        .compile(&inner, &["--name", "bench", "--target", "sm_89,sm_90", "manifests/circ_pad_plugin.toml"])?;
    for (kind, plugin, name) in [("pad", &library, "cubinder"), ("reference", &reference, "reference")] {
        let network = Network::new(kind, "f32", SHAPE).with("pads", format!("[{PADS}]"));
        let model = inner.join(format!("{name}.onnx"));
        workshop.model(&network, &model)?;
        let engine = Engine { plugins: &[plugin], ..Engine::default() };
        workshop.engine(&model, &engine, &inner.join(format!("{name}.plan")))?;
    }
    Ok(())
}

fn enqueue(workshop: &Workshop) -> Result<()> {
    if !gpu_is_there() {
        bail!("no GPU here; prepare a folder for another machine with --prepare DIR");
    }
    let folder = tempfile::tempdir()?;
    prepare_enqueue(workshop, folder.path())?;
    let mut command = workshop.python("enqueue_bench.py")?;
    command.current_dir(folder.path()).args(ENQUEUE.split_whitespace().skip(1));
    process::inherit(&mut command)
}

/// How a prepared folder is measured, from inside it.
const LAUNCH: &str = "launch/own_time launch/liblaunch.so launch/libcubinder.so";

/// Puts a plugin library and the program that plays TensorRT around it into `folder`.
///
/// # Errors
/// When something cannot be built.
pub(crate) fn prepare_launch(workshop: &Workshop, folder: &Path) -> Result<()> {
    let inner = folder.join("launch");
    std::fs::create_dir_all(&inner).with_context(|| format!("cannot make {}", inner.display()))?;
    let manifests = ["manifests/elemwise_add_plugin.toml", "manifests/circ_pad_plugin.toml"];
    let options = ["--name", "launch", "--target", "sm_80,sm_86,sm_89,sm_90,compute_80"];
    workshop.compile(&inner, &[options.as_slice(), &manifests].concat())?;
    let mut build = workspace::cargo();
    build.args(["run", "--quiet", "--package", "cubinder-tests", "--example", "own-time", "--"]);
    std::fs::copy(workshop.runtime_library(), inner.join("libcubinder.so"))?;
    process::capture(build.arg(inner.join("own_time")).envs(workshop.environment()?))?;
    Ok(())
}

fn launch(workshop: &Workshop) -> Result<()> {
    if !gpu_is_there() {
        bail!("no GPU here; prepare a folder for another machine with --prepare DIR");
    }
    let folder = tempfile::tempdir()?;
    prepare_launch(workshop, folder.path())?;
    let mut words = LAUNCH.split_whitespace();
    let mut command = std::process::Command::new(folder.path().join(words.next().unwrap_or_default()));
    process::inherit(command.current_dir(folder.path()).args(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_another_machine_measures_the_shapes_of_the_engines() {
        assert!(ENQUEUE.contains(&format!("--shape {SHAPE} --out-shape {OUT_SHAPE}")));
    }

    #[test]
    fn a_median_above_the_limit_is_a_failure() {
        let medians = [("check, a", Duration::from_millis(12)), ("check, b", Duration::from_millis(31))];
        assert!(within(&medians, 31.0).is_ok());
        let error = within(&medians, 20.0).unwrap_err().to_string();
        assert_eq!(error, "`check, b` takes 31.0 ms; the limit is 20 ms (the median)");
    }

    #[test]
    fn a_median_is_in_the_middle() {
        let seconds = [3, 1, 2].map(Duration::from_secs);
        assert_eq!(median(seconds.into_iter()), Duration::from_secs(2));
    }
}
