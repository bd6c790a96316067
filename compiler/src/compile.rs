//! The pipeline, from manifests to plugin libraries.
//!
//! Owns the order of the steps and what runs in parallel. Each step is a module of its own; none of them is done here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_bundle::container;
use cubinder_bundle::{Arg, Bundle, Digest, Plugin, Target};
use rayon::prelude::*;

use crate::cache::Cache;
use crate::codegen;
use crate::config;
use crate::cubin;
use crate::diagnostic::{Diagnostic, Severity, Source};
use crate::library::{self, Mode};
use crate::nvrtc::{Compiled, PreparedUnit, Session, Settings, Statistics, merge_targets};
use crate::pack::{CompiledCode, CompiledPlugin, CompiledUnit, pack};
use crate::resolve::{self, Resolved, Unit};
use crate::signature::Signature;
use crate::toolkit::{Overrides, Toolkit};
use crate::verify;

/// Everything that decides what is made.
#[derive(Debug, Clone)]
pub struct Request {
    /// The manifests, in the order of the library's plugins.
    pub manifests: Vec<PathBuf>,
    /// The library's name: `lib<name>.so`.
    pub name: String,
    /// What to compile for, each once.
    pub targets: Vec<Target>,
    /// Include folders and options of NVRTC.
    pub settings: Settings,
    /// The project's folder: files below it are named relative to it, so that the result does not depend on where it is.
    pub root: PathBuf,
    /// The folder for the libraries; it is made where it is missing.
    pub output: PathBuf,
    /// Put the code into a library of its own that is serialized into engines, instead of into each node.
    pub embed: bool,
    /// The prebuilt runtime library.
    pub runtime_library: PathBuf,
    /// Where NVRTC and the cache are.
    pub overrides: Overrides,
    /// Whether compiled code is kept and used again.
    pub use_cache: bool,
}

/// What was made.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The libraries that were written.
    pub libraries: Vec<Written>,
    /// The digest of the bundle in them.
    pub bundle: Digest,
    /// Size of the bundle in bytes.
    pub bundle_bytes: u64,
    /// How many plugins it has.
    pub plugins: usize,
    /// How many code objects it has.
    pub code_objects: usize,
    /// What NVRTC and the cache did.
    pub statistics: Statistics,
    /// What the user should look at.
    pub warnings: Vec<Diagnostic>,
}

/// A library that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// The part it plays.
    pub mode: Mode,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Told how far the compiling is; called from any thread.
pub trait Progress: Sync {
    /// There are `steps` compiles to be done.
    fn begin(&self, steps: usize);
    /// One of them is done, or was found in the cache.
    fn step(&self, what: &str);
    /// All are done.
    fn end(&self);
}

/// Compiles and writes.
///
/// # Errors
/// Every mistake that could be found: where manifests do not read, those of all of them; then those of all kernels.
pub fn compile(request: &Request, progress: &dyn Progress) -> Result<Outcome, Vec<Diagnostic>> {
    let (plugins, mut warnings) = read_manifests(&request.manifests)?;
    let session = session(request)?;
    let compiled = compile_units(request, &session, &plugins, progress, &mut warnings);
    warnings.extend(session.take_cache_warning());
    let compiled = compiled?;
    let nvrtc = compiled.nvrtc.map_or_else(String::new, |(major, minor)| format!(", NVRTC {major}.{minor}"));
    let producer = format!("cubinder {}{nvrtc}", env!("CARGO_PKG_VERSION"));
    let bundle = pack(producer, compiled.plugins);
    let (bytes, digest) = encode(&bundle)?;
    let libraries = write_libraries(request, &bytes).map_err(|error| vec![error])?;
    Ok(Outcome {
        libraries,
        bundle: digest,
        bundle_bytes: bytes.len() as u64,
        plugins: bundle.plugins.len(),
        code_objects: bundle.code.len(),
        statistics: session.statistics(),
        warnings,
    })
}

fn read_manifests(paths: &[PathBuf]) -> Result<(Vec<Resolved>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut plugins = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        match config::open(path).and_then(|source| resolve::compile(&source)) {
            Ok(resolved) => plugins.push(resolved),
            Err(found) => errors.extend(found),
        }
    }
    errors.extend(resolve::check_unique(&plugins));
    let warnings = plugins.iter().flat_map(|plugin| plugin.warnings.clone());
    if errors.iter().any(|error| error.severity == Severity::Error) {
        errors.extend(warnings);
        return Err(errors);
    }
    let warnings = warnings.collect();
    Ok((plugins, warnings))
}

fn session(request: &Request) -> Result<Session, Vec<Diagnostic>> {
    let toolkit = Toolkit::locate(&request.overrides).map_err(|error| vec![error])?;
    let cache = match &request.overrides.cache {
        Some(folder) if request.use_cache => Cache::open(folder),
        _ => Cache::disabled(),
    };
    Session::new(toolkit, request.settings.clone(), cache)
}

/// All plugins, compiled.
struct CompiledPlugins {
    plugins: Vec<CompiledPlugin>,
    /// The NVRTC that made the code.
    nvrtc: Option<(i32, i32)>,
}

/// One thing for a thread to do.
#[derive(Clone, Copy)]
enum Task {
    Signature { unit: usize },
    Code { unit: usize, target: Target },
}

/// What came of a task.
enum Done {
    Signature(Signature),
    Code(Box<Compiled>),
}

fn compile_units(
    request: &Request,
    session: &Session,
    plugins: &[Resolved],
    progress: &dyn Progress,
    warnings: &mut Vec<Diagnostic>,
) -> Result<CompiledPlugins, Vec<Diagnostic>> {
    let units: Vec<&Unit> = plugins.iter().flat_map(|plugin| &plugin.draft.units).collect();
    let prepared = prepare(request, session, &units)?;
    let mut tasks = Vec::new();
    for unit in 0..units.len() {
        tasks.push(Task::Signature { unit });
        tasks.extend(request.targets.iter().map(|target| Task::Code { unit, target: *target }));
    }
    progress.begin(tasks.len());
    let results: Vec<Result<Done, Vec<Diagnostic>>> =
        tasks.par_iter().map(|task| perform(*task, request, session, &prepared, progress)).collect();
    progress.end();

    let mut results = results.into_iter();
    let mut compiled = Vec::new();
    let mut errors = Vec::new();
    let owners = plugins.iter().flat_map(|plugin| plugin.draft.units.iter().map(|_| &plugin.draft.plugin));
    for (unit, plugin) in units.iter().zip(owners) {
        let signature = results.next();
        let codes = request.targets.iter().copied().zip(results.by_ref().take(request.targets.len()));
        match finish_unit(plugin, unit, signature, codes.collect(), warnings) {
            Ok(unit) => compiled.push(unit),
            Err(found) => errors.extend(found),
        }
    }
    dedup(warnings);
    dedup(&mut errors);
    if !errors.is_empty() {
        errors.append(warnings);
        return Err(errors);
    }
    let nvrtc = compiled.iter().find_map(|finished| finished.nvrtc);
    let mut compiled = compiled.into_iter().map(|finished| finished.unit);
    let plugins = plugins
        .iter()
        .map(|plugin| CompiledPlugin {
            draft: plugin.draft.clone(),
            units: compiled.by_ref().take(plugin.draft.units.len()).collect(),
        })
        .collect();
    Ok(CompiledPlugins { plugins, nvrtc })
}

/// Reads each kernel file once and finds what it includes.
fn prepare(
    request: &Request,
    session: &Session,
    units: &[&Unit],
) -> Result<Vec<PreparedUnit>, Vec<Diagnostic>> {
    let mut sources: HashMap<&Path, Arc<Source>> = HashMap::new();
    let mut errors = Vec::new();
    for unit in units {
        if sources.contains_key(unit.source.as_path()) {
            continue;
        }
        match config::open(&unit.source) {
            Ok(source) => {
                sources.insert(&unit.source, source);
            }
            Err(found) => errors.extend(found.into_iter().map(|error| {
                let error = error.at(unit.source_span.clone(), "the manifest names it here");
                match sources_beside(&unit.source) {
                    Some(sources) => error.help(sources),
                    None => error,
                }
            })),
        }
    }
    dedup(&mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(units
        .iter()
        .filter_map(|unit| {
            let source = Arc::clone(sources.get(unit.source.as_path())?);
            let name = codegen::display_name(&unit.source, &request.root);
            Some(session.prepare(codegen::translation_unit(unit, source, &name)))
        })
        .collect())
}

fn perform(
    task: Task,
    request: &Request,
    session: &Session,
    prepared: &[PreparedUnit],
    progress: &dyn Progress,
) -> Result<Done, Vec<Diagnostic>> {
    match task {
        Task::Signature { unit } => {
            let target = request.targets.first().copied().ok_or_else(Vec::new)?;
            let signature = session.signature(&prepared[unit], target);
            progress.step(&prepared[unit].unit().kernel);
            signature.map(Done::Signature)
        }
        Task::Code { unit, target } => {
            let compiled = session.compile(&prepared[unit], target);
            progress.step(&format!("{} for {target}", prepared[unit].unit().kernel));
            compiled.map(|compiled| Done::Code(Box::new(compiled)))
        }
    }
}

type Results = Vec<(Target, Result<Done, Vec<Diagnostic>>)>;

/// A unit, and the NVRTC that made its code.
struct FinishedUnit {
    unit: CompiledUnit,
    nvrtc: Option<(i32, i32)>,
}

/// Joins what came of a unit's tasks and holds the parts against each other.
fn finish_unit(
    plugin: &Plugin,
    unit: &Unit,
    signature: Option<Result<Done, Vec<Diagnostic>>>,
    codes: Results,
    warnings: &mut Vec<Diagnostic>,
) -> Result<FinishedUnit, Vec<Diagnostic>> {
    let mut compiled = Vec::new();
    // Of every target, those without errors too: then it can be said where only some have one.
    let mut failed = Vec::new();
    for (target, result) in codes {
        failed.push((target, result.as_ref().err().cloned().unwrap_or_default()));
        if let Ok(Done::Code(code)) = result {
            compiled.push((target, *code));
        }
    }
    let said: Vec<_> = compiled.iter().map(|(target, code)| (*target, code.warnings.clone())).collect();
    warnings.extend(merge_targets(&said));
    let failed = merge_targets(&failed);
    if !failed.is_empty() {
        // The compile for the signature failed for the same reason.
        return Err(failed);
    }
    let signature = match signature {
        Some(Ok(Done::Signature(signature))) => signature,
        Some(Err(found)) => return Err(found),
        _ => return Err(vec![Diagnostic::error(format!("`{}` was not compiled", unit.kernel))]),
    };
    let args = verify::bind_args(plugin, unit, &signature)?;
    let unwritten = verify::unwritten_outputs(plugin, unit);
    if !unwritten.is_empty() {
        return Err(unwritten);
    }
    let check = |code: &Compiled| check_code(plugin, unit, &signature, &args, code).err().unwrap_or_default();
    let found: Vec<_> = compiled.iter().map(|(target, code)| (*target, check(code))).collect();
    let errors = merge_targets(&found);
    if !errors.is_empty() {
        return Err(errors);
    }
    let nvrtc = compiled.first().map(|(_, code)| code.nvrtc);
    let code = compiled
        .into_iter()
        .map(|(_, code)| CompiledCode { object: code.object, symbol: code.symbol })
        .collect();
    Ok(FinishedUnit { unit: CompiledUnit { args, code }, nvrtc })
}

/// Holds a code object against the launch that it is for.
fn check_code(
    plugin: &Plugin,
    unit: &Unit,
    signature: &Signature,
    args: &[Arg],
    code: &Compiled,
) -> Result<(), Vec<Diagnostic>> {
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launches.get(unit.launch));
    let kernel = code.object.kernels.iter().find(|kernel| kernel.symbol == code.symbol);
    let (Some(launch), Some(kernel)) = (launch, kernel) else {
        return Err(vec![
            Diagnostic::error(format!(
                "the code for `{}` has no kernel `{}`",
                code.object.target, code.symbol
            ))
            .at(unit.kernel_span.clone(), "compiled for this kernel"),
        ]);
    };
    let target = code.object.target;
    let rules = cubin::launch_rules(target, &code.object.bytes, &code.symbol).map_err(|error| {
        vec![
            Diagnostic::error(format!("the code for `{target}` cannot be read: {error}"))
                .at(unit.kernel_span.clone(), "compiled for this kernel"),
        ]
    })?;
    verify::check_code(&verify::CodeCheck { unit, launch, args, signature, target, kernel, rules })
}

/// Variants share their kernel's text, and so its mistakes.
fn dedup(diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: Vec<Diagnostic> = Vec::new();
    for diagnostic in diagnostics.drain(..) {
        if !seen.contains(&diagnostic) {
            seen.push(diagnostic);
        }
    }
    *diagnostics = seen;
}

/// The bundle's bytes and digest. Reading them back proves that every engine made from them can be read.
fn encode(bundle: &Bundle) -> Result<(Vec<u8>, Digest), Vec<Diagnostic>> {
    let bytes = container::write_bundle(bundle);
    match container::read(&bytes) {
        Ok(found) => Ok((bytes, found.digest)),
        Err(error) => Err(vec![
            Diagnostic::error(format!("the bundle that was made does not read: {error}"))
                .note("this is a defect of cubinder, not of the manifests"),
        ]),
    }
}

/// Writes all libraries or none: each is made whole in a folder beside its place, and then moved there.
fn write_libraries(request: &Request, bundle: &[u8]) -> Result<Vec<Written>, Diagnostic> {
    let cannot = |what: &str, path: &Path, error: &std::io::Error| {
        Diagnostic::error(format!("cannot {what} `{}`: {error}", path.display()))
    };
    let output = &request.output;
    std::fs::create_dir_all(output).map_err(|error| cannot("make the folder", output, &error))?;
    let staging = tempfile::Builder::new()
        .prefix(".cubinder-")
        .tempdir_in(output)
        .map_err(|error| cannot("write to the folder", output, &error))?;
    let ops = format!("lib{}.so", request.name);
    let code = format!("lib{}-code.so", request.name);
    let wanted = if request.embed {
        vec![(ops, Mode::OpsForLibrary), (code, Mode::CodeLibrary)]
    } else {
        vec![(ops, Mode::Ops)]
    };
    for (name, mode) in &wanted {
        let place = output.join(name);
        if place.is_dir() {
            return Err(Diagnostic::error(format!("cannot write `{}`: it is a folder", place.display())));
        }
        if is_same_file(&place, &request.runtime_library) {
            return Err(Diagnostic::error(format!("`{}` is the runtime library itself", place.display()))
                .help("choose another name or another folder"));
        }
        library::inject(&request.runtime_library, bundle, *mode, &staging.path().join(name))
            .map_err(|error| error.to_diagnostic())?;
    }
    wanted
        .into_iter()
        .map(|(name, mode)| {
            let (made, path) = (staging.path().join(&name), output.join(&name));
            let bytes = std::fs::metadata(&made).map_err(|error| cannot("read", &made, &error))?.len();
            std::fs::rename(&made, &path).map_err(|error| cannot("write", &path, &error))?;
            Ok(Written { path, mode, bytes })
        })
        .collect()
}

fn is_same_file(first: &Path, second: &Path) -> bool {
    match (std::fs::canonicalize(first), std::fs::canonicalize(second)) {
        (Ok(first), Ok(second)) => first == second,
        _ => false,
    }
}

/// The CUDA sources beside a path that names none, for help.
fn sources_beside(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".cu"))
        .collect();
    names.sort();
    names.truncate(8);
    (!names.is_empty()).then(|| format!("`{}` holds `{}`", folder.display(), names.join("`, `")))
}
