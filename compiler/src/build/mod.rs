//! Builds an engine with the installed TensorRT, and replaces the plan.
//!
//! `cubinder-tensorrt` knows TensorRT; this module knows models and plugin libraries.

mod errors;
mod libraries;
mod profile;

use std::path::{Path, PathBuf};

use cubinder_model::fit::ComputeCapability;
use cubinder_onnx::Model;
use cubinder_onnx::nodes::{self, Plugins, Report, network_inputs};
use cubinder_source::atomic_file::{AtomicFile, check_replaceable, file_error, parent_folder};
use cubinder_source::diagnostic::{Diagnostic, has_errors};
use cubinder_source::path::is_same_file;
use cubinder_tensorrt::{Built, Choice, Client, Installation, Search, Watch};

use errors::{NoOutputFolder, OutputIsFolder, OutputIsRead, with_help};
use libraries::{Libraries, code_library};

/// What to build.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// ONNX model.
    pub model: PathBuf,
    /// The plan.
    pub output: PathBuf,
    /// Plugin libraries.
    pub plugins: Vec<PathBuf>,
    /// Whether to put the code libraries into the plan.
    pub embed: bool,
    /// Whether to skip checking the model and libraries.
    pub unchecked: bool,
    /// Shapes, `NAME=SHAPE` or `NAME=MIN:OPT:MAX`.
    pub shapes: Vec<String>,
    /// Values of inputs that determine shapes, in the same form.
    pub values: Vec<String>,
    /// GPUs.
    pub gpus: Vec<ComputeCapability>,
    /// Types that TensorRT may use, as options: `--fp16`.
    pub precisions: Vec<&'static str>,
    /// Timing cache.
    pub timing_cache: Option<PathBuf>,
    /// Which TensorRT.
    pub choice: Option<Choice>,
    /// Whether TensorRT logs everything.
    pub verbose: bool,
}

/// A written plan.
#[derive(Debug)]
pub struct Outcome {
    /// TensorRT that built it.
    pub installation: Installation,
    /// Other usable installations.
    pub others: Vec<Installation>,
    /// Facts that TensorRT reported.
    pub built: Built,
    /// Size of the plan, bytes.
    pub bytes: u64,
    /// Warnings about the model and libraries.
    pub warnings: Vec<Diagnostic>,
    /// Folder with the printed command's files, if kept.
    pub kept: Option<PathBuf>,
}

/// A warning of TensorRT's ONNX parser.
const AOT_NOT_FOUND: &str = "Attribute aot not found in plugin node";

/// Builds the plan of a request.
///
/// # Errors
/// Errors found before TensorRT starts, or TensorRT's failure; the previous plan is unchanged.
pub fn build(request: &Request, search: &Search, watch: &mut dyn Watch) -> Result<Outcome, Vec<Diagnostic>> {
    let mut problems: Vec<Diagnostic> = Vec::new();
    let mut note = |found: Result<(), Vec<Diagnostic>>| problems.extend(found.err().unwrap_or_default());
    let libraries = Libraries::open(&request.plugins, request.embed, request.unchecked);
    let libraries = libraries.map_err(|errors| note(Err(errors))).ok();
    let model = nodes::open_model(&request.model).map_err(|error| note(Err(with_help(error).into()))).ok();
    let read = read_files(request, model.as_ref());
    note(check_output(&request.output, "model.plan", read.iter().map(PathBuf::as_path)).map_err(Vec::from));
    let mut profile = None;
    if let Some(model) = &model {
        let inputs = network_inputs(model);
        let found = profile::ranges(&inputs, &request.shapes, &request.values);
        profile = found.map_err(|errors| note(Err(errors))).ok();
        if let Some(libraries) = libraries.as_ref().filter(|_| !request.unchecked) {
            problems.extend(check_model(request, model, libraries));
        }
    }
    let client = Client::new()?;
    let found = search.find(request.choice.as_ref(), &client);
    let mut found = found.map_err(|errors| problems.extend(errors)).unwrap_or_default().into_iter();
    let (Some(installation), Some(libraries), Some((shapes, values))) = (found.next(), libraries, profile)
    else {
        return Err(problems);
    };
    problems.extend(libraries.check(&installation, &request.gpus));
    let mut build = cubinder_tensorrt::Request {
        model: request.model.clone(),
        plan: PathBuf::new(),
        plugins: libraries.to_load(),
        serialize: libraries.to_serialize(),
        shapes,
        values,
        gpus: request.gpus.clone(),
        precisions: request.precisions.clone(),
        timing_cache: request.timing_cache.clone(),
        aliased: libraries.has_aliases(),
        verbose: request.verbose,
    };
    problems.extend(build.check(&installation).err().unwrap_or_default());
    if has_errors(&problems) {
        return Err(problems);
    }
    let output = &request.output;
    let draft = AtomicFile::beside(output).map_err(|error| file_error("write", output, &error))?;
    draft.path().clone_into(&mut build.plan);
    let result = cubinder_tensorrt::build(&installation, &build, &client, output, watch);
    // Programs without a missing link use no file of ours.
    let is_used = installation.module().is_some() || installation.missing_link().is_some();
    let kept = (request.verbose && is_used).then(|| client.keep());
    let mut built = result?;
    // Plugins of Cubinder need no `aot`; others load only with `--no-check`.
    built.warnings.retain(|warning| request.unchecked || !warning.contains(AOT_NOT_FOUND));
    let unwritten = |error| file_error("write", output, &error);
    let bytes = draft.file().metadata().map_err(unwritten)?.len();
    draft.persist(output).map_err(unwritten)?;
    Ok(Outcome { installation, others: found.collect(), built, bytes, warnings: problems, kept })
}

fn read_files(request: &Request, model: Option<&Model>) -> Vec<PathBuf> {
    let codes = request.plugins.iter().filter(|_| request.embed).map(|library| code_library(library));
    let folder = parent_folder(&request.model);
    let weights = model.into_iter().flat_map(|model| &model.external_files).map(|file| folder.join(file));
    let named = request.plugins.iter().chain([&request.model]).chain(&request.timing_cache);
    named.cloned().chain(codes).chain(weights).collect()
}

/// Rejects outputs that cannot be written, or that the command reads; `example` is a file name.
pub(crate) fn check_output<'a>(
    output: &Path,
    example: &str,
    mut read: impl Iterator<Item = &'a Path>,
) -> Result<(), Diagnostic> {
    let folder = parent_folder(output);
    if output.is_dir() {
        return Err(OutputIsFolder { output: output.display().to_string(), example }.into());
    }
    if !folder.is_dir() {
        return Err(NoOutputFolder { folder: folder.display().to_string() }.into());
    }
    if read.any(|file| is_same_file(file, output)) {
        return Err(OutputIsRead { output: output.display().to_string() }.into());
    }
    check_replaceable(output, output, "`--output`")
}

fn check_model(request: &Request, model: &Model, libraries: &Libraries) -> Vec<Diagnostic> {
    let plugins = match Plugins::open(&libraries.with_plugins()) {
        Ok(plugins) => plugins,
        Err(errors) => return errors,
    };
    let report: Report = nodes::list(&request.model, model, &plugins);
    plugins.warnings.iter().cloned().chain(report.diagnostics()).collect()
}
