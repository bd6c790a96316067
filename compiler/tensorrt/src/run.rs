//! Runs an engine once, and measures its time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cubinder_source::diagnostic::Diagnostic;

use crate::command::{quoted, set_library_path};
use crate::errors::{NoBindings, NoRoom};
use crate::explain::Failure;
use crate::installation::{Installation, Route};
use crate::log::Event;
pub use crate::log::Tensor;
use crate::process::{Watch, follow};
use crate::python::{Client, RUNNER};
use crate::run_failures::not_run;

/// A run.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The engine.
    pub plan: PathBuf,
    /// Plugin libraries to load, in order.
    pub plugins: Vec<PathBuf>,
    /// Whether the engine may run embedded code on the CPU.
    pub host_code: bool,
    /// Number of timed runs.
    pub iterations: u32,
    /// Whether timed runs launch a CUDA graph.
    pub cuda_graph: bool,
    /// Whether to log everything.
    pub verbose: bool,
}

/// A tensor's shape and bytes, in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTensor {
    /// Shape.
    pub shape: Vec<i64>,
    /// Bytes.
    pub bytes: Vec<u8>,
}

/// Results of a run.
#[derive(Debug)]
pub struct Ran {
    /// The outputs, in the engine's order.
    pub outputs: Vec<HostTensor>,
    /// GPU time of each timed run.
    pub microseconds: Vec<f64>,
    /// TensorRT's warnings.
    pub warnings: Vec<String>,
}

/// Returns the data of the inputs, in the engine's order.
pub(crate) type Inputs<'a> = dyn FnMut(&[Tensor]) -> Result<Vec<HostTensor>, Vec<Diagnostic>> + 'a;

/// Runs an engine with the data that `inputs` returns.
///
/// # Errors
/// TensorRT has no Python bindings, cannot be started, or fails; with an explanation. Errors of `inputs`.
pub fn run(
    installation: &Installation,
    request: &RunRequest,
    client: &Client,
    watch: &mut dyn Watch,
    inputs: &mut Inputs<'_>,
) -> Result<Ran, Vec<Diagnostic>> {
    let folder = client.tensors()?;
    let mut command = request.command(installation, client, &folder)?;
    let (mut tensors, mut errors, mut ran) = (Vec::new(), Vec::new(), None);
    let ended = follow(&mut command, true, watch, &mut |event| match event {
        Event::Tensors { tensors: found } => {
            tensors = found;
            let shapes = inputs(&tensors).and_then(|data| write(&folder, &tensors, &data));
            // An empty line ends the process.
            Some(shapes.unwrap_or_else(|found| {
                errors = found;
                String::new()
            }))
        }
        Event::Ran { shapes, microseconds } => {
            ran = Some((shapes, microseconds));
            None
        }
        _ => None,
    })?;
    if !errors.is_empty() {
        return Err(errors);
    }
    let warnings = ended.warnings();
    let Some((shapes, microseconds)) = ran else {
        return Err(not_run(installation.kind, &request.plan, &Failure::of(ended)).into());
    };
    let numbers = tensors.iter().enumerate().filter(|(_, tensor)| !tensor.is_input).map(|(number, _)| number);
    let read = |(number, shape): (usize, Vec<i64>)| {
        let file = folder.join(number.to_string());
        let bytes = std::fs::read(&file).map_err(|error| no_room(&file, error))?;
        Ok(HostTensor { shape, bytes })
    };
    let outputs = numbers.zip(shapes).map(read).collect::<Result<Vec<_>, Diagnostic>>()?;
    Ok(Ran { outputs, microseconds, warnings })
}

/// Writes the inputs' bytes, and returns their shapes as JSON.
fn write(folder: &Path, tensors: &[Tensor], data: &[HostTensor]) -> Result<String, Vec<Diagnostic>> {
    let mut shapes = serde_json::Map::new();
    let inputs = tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_input);
    for ((number, tensor), data) in inputs.zip(data) {
        let file = folder.join(number.to_string());
        std::fs::write(&file, &data.bytes).map_err(|error| no_room(&file, error))?;
        shapes.insert(tensor.name.clone(), data.shape.clone().into());
    }
    Ok(serde_json::Value::from(shapes).to_string())
}

fn no_room(file: &Path, error: std::io::Error) -> Diagnostic {
    NoRoom { file: file.display().to_string(), error }.into()
}

impl RunRequest {
    fn command(
        &self,
        installation: &Installation,
        client: &Client,
        folder: &Path,
    ) -> Result<Command, Diagnostic> {
        let Route::Python { interpreter, module } = &installation.route else {
            return Err(self.no_bindings(installation));
        };
        let mut command = client.call(interpreter, RUNNER, "run");
        command.arg("--module").arg(module).arg("--plan").arg(&self.plan).arg("--folder").arg(folder);
        for plugin in &self.plugins {
            command.arg("--plugin").arg(plugin);
        }
        let flags =
            [(self.host_code, "--host-code"), (self.cuda_graph, "--cuda-graph"), (self.verbose, "--verbose")];
        command.args(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
        command.arg("--iterations").arg(self.iterations.to_string()).stdin(Stdio::piped());
        set_library_path(&mut command, installation, client)?;
        Ok(command)
    }

    fn no_bindings(&self, installation: &Installation) -> Diagnostic {
        let option = |name: &str, path: &Path| quoted(&format!("{name}={}", path.display()));
        let mut words = vec![quoted(&installation.selector().display().to_string())];
        words.push(option("--loadEngine", &self.plan));
        words.extend(self.plugins.iter().map(|path| option("--dynamicPlugins", path)));
        words.extend(self.host_code.then(|| "--versionCompatible".to_owned()));
        let install = installation.kind.install_bindings();
        NoBindings { found: installation.describe(), install, program: words.join(" ") }.into()
    }
}
