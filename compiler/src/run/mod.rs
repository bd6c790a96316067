//! Runs an engine with the installed TensorRT: chooses the plugin libraries and the inputs, and reads the outputs.
//! [`compare()`] compares them with expected values.
//!
//! `cubinder-tensorrt` knows TensorRT; this module knows plugin libraries and NumPy files.

mod compare;
mod errors;
mod inputs;
mod libraries;

use std::path::{Path, PathBuf};

use cubinder_node::trial::{Array, Number, npy};
use cubinder_source::atomic_file::{AtomicFile, file_error};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;
use cubinder_tensorrt::{Choice, Client, HostTensor, Installation, RunRequest, Search, Tensor, Watch};

use crate::build::check_output;
pub use compare::{Comparison, Expectation, Tolerances, Verdict, compare};
use inputs::{GivenInputs, element_type};
pub use libraries::{Libraries, LoadedLibrary};

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The engine.
    pub plan: PathBuf,
    /// Plugin libraries, besides those that the nodes need.
    pub plugins: Vec<PathBuf>,
    /// Files of inputs: `NAME=FILE`.
    pub inputs: Vec<String>,
    /// A `.npz` file with the other inputs.
    pub archive: Option<PathBuf>,
    /// Shapes of random inputs: `NAME=SHAPE`.
    pub shapes: Vec<String>,
    /// Seed of random inputs.
    pub seed: u64,
    /// Number of timed runs.
    pub iterations: u32,
    /// Whether timed runs launch a CUDA graph.
    pub cuda_graph: bool,
    /// Whether the plan may run code on the CPU that is not Cubinder's.
    pub allow_host_code: bool,
    /// A `.npz` file to write the outputs to.
    pub output: Option<PathBuf>,
    /// Which TensorRT.
    pub choice: Option<Choice>,
    /// Whether TensorRT logs everything.
    pub verbose: bool,
}

/// A tensor of a run.
#[derive(Debug)]
pub struct NamedArray {
    /// Name.
    pub name: String,
    /// Data.
    pub array: Array,
}

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// TensorRT that ran it.
    pub installation: Installation,
    /// The plugin libraries.
    pub libraries: Libraries,
    /// Inputs.
    pub inputs: Vec<NamedArray>,
    /// Outputs.
    pub outputs: Vec<NamedArray>,
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
    /// 99 % of the runs take at most this time.
    pub p99: f64,
    /// Shortest.
    pub least: f64,
}

/// Runs an engine.
///
/// # Errors
/// Everything that is wrong before TensorRT starts, or TensorRT's failure.
pub fn run(
    request: &Request,
    runtime_library: Result<PathBuf, Diagnostic>,
    search: &Search,
    watch: &mut dyn Watch,
) -> Result<Outcome, Vec<Diagnostic>> {
    let plan = &request.plan;
    if let Some(output) = &request.output {
        check_output(output, "out.npz")?;
    }
    let given = GivenInputs::parse(request)?;
    let bytes = source::read(plan, source::LARGEST_BINARY).map_err(|error| {
        file_error("read", plan, &error).help("pass the path of an engine, such as `cubinder build` writes")
    })?;
    let libraries = libraries::choose(plan, &bytes, &request.plugins, runtime_library)?;
    drop(bytes);
    let client = Client::new()?;
    let installation = installation(search.find(request.choice.as_ref(), &client)?);
    let own = RunRequest {
        plan: plan.clone(),
        plugins: libraries.loaded.iter().map(|library| library.path.clone()).collect(),
        host_code: request.allow_host_code || libraries.carried > 0,
        iterations: request.iterations,
        cuda_graph: request.cuda_graph,
        verbose: request.verbose,
    };
    let (mut inputs, mut output_tensors) = (Vec::new(), Vec::new());
    let mut prepare = |tensors: &[Tensor]| {
        let arrays = given.arrays(tensors)?;
        let data = arrays
            .iter()
            .map(|array| HostTensor { shape: array.shape().to_vec(), bytes: array.bytes().to_vec() });
        let data = data.collect();
        let names = tensors.iter().filter(|tensor| tensor.is_input).map(|tensor| tensor.name.clone());
        inputs = names.zip(arrays).map(|(name, array)| NamedArray { name, array }).collect();
        output_tensors = tensors.iter().filter(|tensor| !tensor.is_input).cloned().collect();
        Ok(data)
    };
    let ran = cubinder_tensorrt::run(&installation, &own, &client, watch, &mut prepare)?;
    let output = |(tensor, HostTensor { shape, bytes }): (&Tensor, HostTensor)| {
        let array = Array::new(element_type(tensor)?, shape, bytes);
        let array = array.map_err(|why| Diagnostic::error(format!("the output `{}`: {why}", tensor.name)))?;
        Ok(NamedArray { name: tensor.name.clone(), array })
    };
    let outputs =
        output_tensors.iter().zip(ran.outputs).map(output).collect::<Result<Vec<_>, Diagnostic>>()?;
    if let Some(file) = &request.output {
        write(file, &outputs)?;
    }
    let times = Times::of(ran.microseconds);
    Ok(Outcome { installation, libraries, inputs, outputs, times, warnings: ran.warnings })
}

/// Returns the first installation that can run engines, else the first, for its error.
fn installation(mut found: Vec<Installation>) -> Installation {
    let first = found.iter().position(|one| one.module().is_some()).unwrap_or(0);
    found.swap_remove(first)
}

fn write(file: &Path, outputs: &[NamedArray]) -> Result<(), Diagnostic> {
    let unwritten = |error| file_error("write", file, &error);
    let mut draft = AtomicFile::beside(file).map_err(unwritten)?;
    let arrays = outputs.iter().map(|output| (output.name.as_str(), &output.array));
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

/// Extremes and mean of the numbers of a tensor; `None` if it has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Smallest number.
    pub least: Option<Number>,
    /// Largest number.
    pub most: Option<Number>,
    /// Mean.
    pub mean: Option<f64>,
    /// Number of elements that are NaN.
    pub nan: usize,
}

impl Summary {
    /// Summarizes a tensor.
    #[must_use]
    pub fn of(array: &Array) -> Summary {
        let numbers = || array.numbers().filter(|number| !number.as_f64().is_nan());
        let by_value = |one: &Number, other: &Number| one.as_f64().total_cmp(&other.as_f64());
        let count = numbers().count();
        #[allow(clippy::cast_precision_loss)] // only shown
        let mean = (count > 0).then(|| numbers().map(Number::as_f64).sum::<f64>() / count as f64);
        Summary {
            least: numbers().min_by(by_value),
            most: numbers().max_by(by_value),
            mean,
            nan: array.len() - count,
        }
    }
}

#[cfg(test)]
mod tests;
