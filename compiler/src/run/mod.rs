//! Runs an engine with the installed TensorRT, and compares its outputs ([`compare()`]).
//!
//! `cubinder-tensorrt` knows TensorRT; this module knows plugin libraries and NumPy files.

mod compare;
mod errors;
mod inputs;
mod libraries;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use cubinder_node::trial::{Array, DataFile, Number, npy};
use cubinder_source::atomic_file::{AtomicFile, file_error};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;
use cubinder_tensorrt::{Choice, Client, Installation, RunRequest, Search, Watch};

use crate::build::check_output;
pub use compare::{Comparison, Expectation, Tolerances, Verdict, compare, parse_function, parse_op};
use inputs::{GivenInputs, element_type, parse_file};
pub use libraries::{Libraries, LoadedLibrary};

/// What to run, as options.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Request {
    /// Engine (TensorRT plan)
    pub plan: PathBuf,
    /// NumPy file of an input: x=x.npy, x=data.npz or x=data.npz:NAME
    #[arg(long = "input", value_name = "NAME=FILE", value_parser = parse_file)]
    pub files: Vec<(String, DataFile)>,
    /// `.npz` file with all inputs by name
    #[arg(long = "inputs", id = "inputs", value_name = "FILE")]
    pub archive: Option<PathBuf>,
    /// Shape of a random input: x=4x256 [default: the optimum of the engine's profile]
    #[arg(long = "shape", value_name = "NAME=SHAPE")]
    pub shapes: Vec<String>,
    /// Seed of random inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Plugin library to load, besides those that the nodes of Cubinder need; repeat or separate with commas
    #[arg(long, short, value_name = "LIBRARY", value_delimiter = ',')]
    pub plugins: Vec<PathBuf>,
    /// Measure the time on the GPU of N runs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub iterations: u32,
    /// Launch a CUDA graph in measured runs
    #[arg(long, requires = "iterations")]
    pub cuda_graph: bool,
    /// Allow the engine to run code on the CPU that is not Cubinder's, such as an embedded library of others
    #[arg(long)]
    pub allow_host_code: bool,
    /// Write all outputs into a `.npz` file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// TensorRT to use: `rtx`, `tensorrt`, a Python or its environment
    #[arg(long = "with", value_name = "WHICH")]
    pub choice: Option<Choice>,
    /// Print TensorRT's whole log
    #[arg(long, short)]
    pub verbose: bool,
}

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// TensorRT that ran it.
    pub installation: Installation,
    /// The plugin libraries.
    pub libraries: Libraries,
    /// Inputs by name.
    pub inputs: Vec<(String, Array)>,
    /// Outputs by name.
    pub outputs: Vec<(String, Array)>,
    /// GPU time, if measured.
    pub times: Option<Times>,
    /// TensorRT's warnings.
    pub warnings: Vec<String>,
}

/// GPU time of timed runs, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Median.
    pub median: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Shortest.
    pub least: f64,
}

/// Runs an engine; its output must not replace `others`, which the caller reads.
///
/// # Errors
/// Errors found before TensorRT starts, or TensorRT's failure.
pub fn run(
    request: &Request,
    others: &[&Path],
    runtime_library: &Result<PathBuf, Diagnostic>,
    search: &Search,
    watch: &mut dyn Watch,
) -> Result<Outcome, Vec<Diagnostic>> {
    let plan = &request.plan;
    let given = GivenInputs::parse(request)?;
    let bytes = source::read(plan, source::LARGEST_BINARY).map_err(|error| {
        file_error("read", plan, &error).help("pass the path of an engine, such as `cubinder build` writes")
    })?;
    let libraries = libraries::choose(plan, &bytes, &request.plugins, runtime_library)?;
    drop(bytes);
    if let Some(output) = &request.output {
        let files = request.files.iter().map(|(_, file)| &file.path).chain(&request.archive);
        let files = files.chain(libraries.loaded.iter().map(|library| &library.path)).chain([plan]);
        check_output(output, "out.npz", files.map(PathBuf::as_path).chain(others.iter().copied()))?;
    }
    let client = Client::new()?;
    let installation = installation(search.find(request.choice.as_ref(), &client)?);
    let own = RunRequest {
        plan,
        plugins: libraries.loaded.iter().map(|library| library.path.as_path()).collect(),
        host_code: request.allow_host_code || libraries.carried > 0,
        iterations: request.iterations,
        cuda_graph: request.cuda_graph,
        verbose: request.verbose,
    };
    let fill = &mut |tensors: &mut [_]| given.fill(tensors);
    let ran = cubinder_tensorrt::run(&installation, &own, &client, watch, fill)?;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for tensor in ran.tensors {
        let array = Array::new(element_type(&tensor)?, tensor.shape, tensor.bytes);
        let array = array.map_err(|why| Diagnostic::error(format!("the tensor `{}`: {why}", tensor.name)))?;
        let list = if tensor.is_input { &mut inputs } else { &mut outputs };
        list.push((tensor.name, array));
    }
    if let Some(file) = &request.output {
        write(file, &outputs)?;
    }
    let times = Times::of(ran.microseconds);
    Ok(Outcome { installation, libraries, inputs, outputs, times, warnings: ran.warnings })
}

/// Returns the first installation that runs engines, else the first, for its error.
fn installation(mut found: Vec<Installation>) -> Installation {
    let first = found.iter().position(|one| one.module().is_some()).unwrap_or(0);
    found.swap_remove(first)
}

fn write(file: &Path, outputs: &[(String, Array)]) -> Result<(), Diagnostic> {
    let unwritten = |error| file_error("write", file, &error);
    let mut draft = AtomicFile::beside(file).map_err(unwritten)?;
    let arrays = outputs.iter().map(|(name, array)| (name.as_str(), array));
    npy::write_archive(arrays, draft.file_mut())
        .map_err(|why| Diagnostic::error(format!("cannot write `{}`: {why}", file.display())))?;
    draft.persist(file).map_err(unwritten)
}

impl Times {
    fn of(mut all: Vec<f64>) -> Option<Times> {
        all.sort_by(f64::total_cmp);
        // The nearest rank.
        let rank = |percent: usize| all.get((all.len() * percent).div_ceil(100).checked_sub(1)?).copied();
        Some(Times { median: rank(50)?, p99: rank(99)?, least: *all.first()? })
    }
}

/// Extremes and mean of a tensor's numbers; `None` without numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Smallest number.
    pub least: Option<Number>,
    /// Largest number.
    pub most: Option<Number>,
    /// Mean.
    pub mean: Option<Number>,
    /// Number of NaN elements.
    pub nan: usize,
}

impl Summary {
    /// Summarizes a tensor.
    #[must_use]
    pub fn of(array: &Array) -> Summary {
        let mut summary = Summary { least: None, most: None, mean: None, nan: 0 };
        let (mut sum, mut count) = (0.0, 0.0);
        for (number, value) in array.numbers().map(|number| (number, number.as_f64())) {
            if value.is_nan() {
                summary.nan += 1;
                continue;
            }
            (sum, count) = (sum + value, count + 1.0);
            let is = |order, known: Option<Number>| {
                known.is_none_or(|known| value.total_cmp(&known.as_f64()) == order)
            };
            if is(Ordering::Less, summary.least) {
                summary.least = Some(number);
            }
            if is(Ordering::Greater, summary.most) {
                summary.most = Some(number);
            }
        }
        summary.mean = (count > 0.0).then_some(Number::Float(sum / count));
        summary
    }
}

#[cfg(test)]
mod tests;
