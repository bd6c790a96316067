use std::path::Path;
use std::process::{Command, Stdio};

use cubinder_source::diagnostic::Diagnostic;

use crate::command::{quoted, set_library_path};
use crate::errors::{NoBindings, NoRoom};
use crate::explain::Failure;
use crate::installation::{Installation, Route};
use crate::log::{Event, Tensor};
use crate::process::{Watch, follow};
use crate::python::{Client, RUNNER};
use crate::run_failures::not_run;

/// A run.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The engine.
    pub plan: &'a Path,
    /// Plugin libraries to load, in order.
    pub plugins: Vec<&'a Path>,
    /// Whether the engine may run embedded code on the CPU.
    pub host_code: bool,
    /// Number of timed runs.
    pub iterations: u32,
    /// Whether timed runs launch a CUDA graph.
    pub cuda_graph: bool,
    /// Whether to log everything.
    pub verbose: bool,
}

/// Results of a run.
#[derive(Debug)]
pub struct Ran {
    /// Inputs and outputs, in the engine's order.
    pub tensors: Vec<Tensor>,
    /// GPU time of each timed run.
    pub microseconds: Vec<f64>,
    /// TensorRT's warnings.
    pub warnings: Vec<String>,
}

pub(crate) type Fill<'a> = dyn FnMut(&mut [Tensor]) -> Result<(), Vec<Diagnostic>> + 'a;

/// Runs an engine with `fill`'s data; fails without Python bindings, or if TensorRT or `fill` does.
pub fn run(
    installation: &Installation,
    request: &RunRequest<'_>,
    client: &Client,
    watch: &mut dyn Watch,
    fill: &mut Fill<'_>,
) -> Result<Ran, Vec<Diagnostic>> {
    let folder = client.tensors()?;
    let mut command = request.command(installation, client, &folder)?;
    let (mut tensors, mut errors, mut ran) = (Vec::new(), Vec::new(), None);
    let ended = follow(&mut command, true, watch, &mut |event| match event {
        Event::Tensors { tensors: found } => {
            tensors = found;
            let shapes = fill(&mut tensors).and_then(|()| Ok(write(&folder, &tensors)?));
            // An empty line ends the process.
            Some(shapes.map_err(|found| errors = found).unwrap_or_default())
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
        return Err(not_run(installation.kind, request.plan, &Failure::of(ended)).into());
    };
    let outputs = tensors.iter_mut().enumerate().filter(|(_, tensor)| !tensor.is_input);
    for ((number, tensor), shape) in outputs.zip(shapes) {
        let file = folder.join(number.to_string());
        tensor.bytes = std::fs::read(&file).map_err(|error| no_room(&file, error))?;
        tensor.shape = shape;
    }
    Ok(Ran { tensors, microseconds, warnings })
}

fn write(folder: &Path, tensors: &[Tensor]) -> Result<String, Diagnostic> {
    let mut shapes = Vec::new();
    for (number, tensor) in tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_input) {
        let file = folder.join(number.to_string());
        std::fs::write(&file, &tensor.bytes).map_err(|error| no_room(&file, error))?;
        shapes.push(tensor.shape.as_slice());
    }
    Ok(serde_json::Value::from_iter(shapes).to_string())
}

fn no_room(file: &Path, error: std::io::Error) -> Diagnostic {
    NoRoom { file: file.display().to_string(), error }.into()
}

impl RunRequest<'_> {
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
        command.arg("--module").arg(module).arg("--plan").arg(self.plan).arg("--folder").arg(folder);
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
        words.push(option("--loadEngine", self.plan));
        words.extend(self.plugins.iter().map(|path| option("--dynamicPlugins", path)));
        words.extend(self.host_code.then(|| "--versionCompatible".to_owned()));
        let install = installation.kind.install_bindings();
        NoBindings { found: installation.describe(), install, program: words.join(" ") }.into()
    }
}
