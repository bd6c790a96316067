//! The pipeline, from manifests to plugin libraries.
//!
//! Owns the order of the steps. Each step is a module of its own; none of them is done here. `units` says what runs in
//! parallel, `inputs` what everything was made from, `write` puts the libraries in their places, with a `depfile`.

mod depfile;
mod explain;
mod inputs;
mod jobs;
mod native;
mod places;
mod provenance;
mod units;
mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;

use cubinder_analysis::check::Obligation;
use cubinder_import::foreign::{self, FromPtx};
use cubinder_launch::native::is_native;
use cubinder_library::Mode;
use cubinder_manifest::manifest::Route;
use cubinder_model::container;
use cubinder_model::{ArchSuffix, Bundle, Digest, Provenance, Target, TargetKind};
use cubinder_node::tuning::{self, Changed};
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::{Session, Settings, Statistics};
use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_source::diagnostic::{Diagnostic, Sink};
use cubinder_source::{rules, source, whole};

use crate::checkup::{self, CheckedPlugin, CheckedPlugins};
use crate::pack::pack;
use crate::project::{Plan, Project};
use inputs::Inputs;
use jobs::CompileJobs;
use units::CompiledPlugins;

/// Everything that decides what is made.
#[derive(Debug, Clone)]
pub struct Request {
    /// The manifests, and how the kernels of each are compiled.
    pub project: Project,
    /// The library's name: `lib<name>.so`.
    pub name: String,
    /// The folder for the libraries; it is made where it is missing.
    pub output: PathBuf,
    /// Put the code into a library of its own that is serialized into engines, instead of into each node.
    pub embed: bool,
    /// The prebuilt runtime library.
    pub runtime_library: PathBuf,
    /// Where to write what the libraries are made from, for Make and Ninja.
    pub depfile: Option<PathBuf>,
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
    /// How many of them TensorRT launches itself.
    pub native: usize,
    /// What the code of these is for, where it is one chip or its family alone.
    pub native_alone: Vec<Target>,
    /// How many code objects it has.
    pub code_objects: usize,
    /// What NVRTC and the cache did.
    pub statistics: Statistics,
    /// What the user should look at.
    pub warnings: Vec<Diagnostic>,
    /// What must hold for every launch, and whether it is proved.
    pub obligations: Vec<Obligation>,
    /// Machine code that was asked for and that PTX alone serves.
    pub from_ptx: Vec<FromPtx>,
    /// What was measured with other code.
    pub measured_otherwise: Vec<Changed>,
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
    // Asked before, not behind minutes of compiling.
    if let Some(depfile) = &request.depfile {
        whole::replaceable(depfile, depfile, "`--depfile`").map_err(|error| vec![error])?;
    }
    let packed = packed(&request.project, &request.overrides, request.use_cache, progress)?;
    let Packed { compiled, plugins, provenance, from_ptx, included, nvrtc } = packed;
    let CompiledBundle { bundle, statistics, mut warnings, obligations } = compiled;
    let native = bundle.plugins.iter().filter(|plugin| is_native(plugin)).count();
    if request.embed && native == bundle.plugins.len() {
        return Err(vec![nothing_to_embed()]);
    }
    let mut inputs = Inputs::of(request, &plugins, nvrtc.as_deref());
    inputs.merge(included);
    let (bytes, digest) = encode(&bundle)?;
    let with_record = [bytes.as_slice(), &cubinder_model::provenance::write(&provenance, digest)].concat();
    if let Some(depfile) = &request.depfile {
        write::check_depfile(request, depfile, &inputs).map_err(|error| vec![error])?;
        warnings.extend(inputs.warnings());
    }
    let libraries = write::libraries(request, &with_record, &inputs).map_err(|error| vec![error])?;
    warnings.extend(write::stale(request));
    Ok(Outcome {
        libraries,
        bundle: digest,
        bundle_bytes: bytes.len() as u64,
        plugins: bundle.plugins.len(),
        native,
        native_alone: native_alone(&bundle),
        code_objects: bundle.code.len(),
        statistics,
        warnings,
        obligations,
        from_ptx,
        measured_otherwise: tuning::changed(&request.project.read_tuning().0, &bundle),
    })
}

/// What code that TensorRT launches itself is for, where that is one chip or its family (`a`, `f`), each once.
fn native_alone(bundle: &Bundle) -> Vec<Target> {
    let is_alone =
        |target: &Target| target.kind == TargetKind::Native && target.arch.suffix != ArchSuffix::None;
    let alone: BTreeSet<Target> = bundle.code.iter().map(|code| code.target).filter(is_alone).collect();
    alone.into_iter().collect()
}

/// What is wrong with `--embed` where no engine needs any library.
fn nothing_to_embed() -> Diagnostic {
    Diagnostic::error(
        "there is no code to be serialized into engines: TensorRT launches all of the plugins itself",
    )
    .code(rules::NO_NATIVE_ROUTE)
    .note("such an engine holds the kernels' PTX without `--embed`, and needs no library")
    .help("leave `--embed` out")
}

/// A bundle in memory.
#[derive(Debug, Clone)]
pub struct CompiledBundle {
    /// The plugins with their code.
    pub bundle: Bundle,
    /// What NVRTC and the cache did.
    pub statistics: Statistics,
    /// What the user should look at.
    pub warnings: Vec<Diagnostic>,
    /// What must hold for every launch, and whether it is proved.
    pub obligations: Vec<Obligation>,
}

/// Compiles, and writes nothing but the cache.
///
/// # Errors
/// As [`compile`].
pub fn bundle(
    project: &Project,
    overrides: &Overrides,
    use_cache: bool,
    progress: &dyn Progress,
) -> Result<CompiledBundle, Vec<Diagnostic>> {
    packed(project, overrides, use_cache, progress).map(|packed| packed.compiled)
}

/// The parts of a compile that all plugins share.
#[derive(Clone, Copy)]
struct Context<'a> {
    project: &'a Project,
    /// None if no kernel has a source.
    session: Option<&'a Session>,
    jobs: &'a CompileJobs<'a>,
    warnings: &'a Sink,
}

/// A bundle and its inputs.
struct Packed {
    compiled: CompiledBundle,
    plugins: Vec<CheckedPlugin>,
    provenance: Provenance,
    from_ptx: Vec<FromPtx>,
    /// The files that kernels include.
    included: Inputs,
    /// The NVRTC that was needed.
    nvrtc: Option<PathBuf>,
}

fn packed(
    project: &Project,
    overrides: &Overrides,
    use_cache: bool,
    progress: &dyn Progress,
) -> Result<Packed, Vec<Diagnostic>> {
    let checked = checkup::before_compile(project, &source::text)?;
    let CheckedPlugins { plugins, warnings: of_manifests, mut obligations } = checked;
    project.check_only(plugins.iter().map(|plugin| &plugin.plan))?;
    let session = session_for(&plugins, overrides, use_cache)?;
    let session = session.as_ref();
    let warnings = Sink::default();
    warnings.report(of_manifests);
    let jobs = CompileJobs::plan(project, session, &plugins);
    let compiled = jobs.and_then(|jobs| {
        units::compile(Context { project, session, jobs: &jobs, warnings: &warnings }, progress)
    });
    warnings.report(session.and_then(Session::take_cache_warning));
    // Before what is wrong with the code: that may be of half a file.
    session.map_or(Ok(()), Session::check_unchanged).map_err(|error| vec![error])?;
    let CompiledPlugins { plugins: units, nvrtc: release, obligations: of_code, included, origins } =
        match compiled {
            Ok(compiled) => compiled,
            Err(errors) => return Err([errors, warnings.into_diagnostics()].concat()),
        };
    obligations.extend(of_code);
    let bundle = pack(producer(release, &plugins), units);
    warnings.report(provenance::doubt_of_headers(session, release, &origins));
    let compiler = provenance::compiler(session, release);
    let (tuning, _) = project.read_tuning();
    let provenance = provenance::record(project, &plugins, &tuning, compiler, origins, &bundle);
    let statistics = session.map(Session::statistics).unwrap_or_default();
    let nvrtc = session.map(|session| session.toolkit().nvrtc.clone());
    let warnings = warnings.into_diagnostics();
    let compiled = CompiledBundle { bundle, statistics, warnings, obligations };
    // What TensorRT launches itself is always PTX.
    let served = plugins.iter().filter(|plugin| plugin.plan.route.route == Route::Plugin);
    let from_ptx = served
        .flat_map(|CheckedPlugin { resolved, plan }| {
            foreign::from_ptx(&resolved.draft, &plan.targets(), plan.ptx_serves)
        })
        .collect();
    Ok(Packed { compiled, plugins, provenance, from_ptx, included, nvrtc })
}

/// The session that compiles these plugins; none if all kernels are precompiled.
fn session_for(
    plugins: &[CheckedPlugin],
    overrides: &Overrides,
    use_cache: bool,
) -> Result<Option<Session>, Vec<Diagnostic>> {
    let with_sources: Vec<&CheckedPlugin> = plugins.iter().filter(|plugin| plugin.has_sources()).collect();
    if with_sources.is_empty() {
        return Ok(None);
    }
    let session = session(overrides, use_cache)?;
    check_drivers(&session, with_sources.iter().map(|plugin| &plugin.plan))?;
    Ok(Some(session))
}

/// The name and version of what made a bundle: `cubinder 0.1.0, NVRTC 13.0`.
fn producer(release: Option<(i32, i32)>, plugins: &[CheckedPlugin]) -> String {
    let release = release.map_or_else(String::new, |(major, minor)| format!(", NVRTC {major}.{minor}"));
    format!("cubinder {}{release}{}", env!("CARGO_PKG_VERSION"), made_elsewhere(plugins))
}

/// Refuses an NVRTC whose code the drivers that manifests name would not load.
fn check_drivers<'p>(
    session: &Session,
    plans: impl Iterator<Item = &'p Plan>,
) -> Result<(), Vec<Diagnostic>> {
    let plans: Vec<&Plan> = plans.filter(|plan| plan.min_driver.is_some()).collect();
    if plans.is_empty() {
        return Ok(());
    }
    let release = session.release().map_err(|error| vec![error])?;
    let errors: Vec<Diagnostic> = plans.iter().filter_map(|plan| plan.check_driver(release).err()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What other compilers made, for people: `; pad by triton 3.9.0`.
fn made_elsewhere(plugins: &[CheckedPlugin]) -> String {
    let mut all: Vec<String> = Vec::new();
    let codes = plugins
        .iter()
        .flat_map(|plugin| &plugin.resolved.draft.units)
        .filter_map(|unit| unit.foreign.as_ref());
    for code in codes {
        let made_by = match code.made_by.as_str() {
            "" => "another compiler",
            made_by => made_by,
        };
        let one = format!("; {} by {made_by}", code.name);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all.concat()
}

fn session(overrides: &Overrides, use_cache: bool) -> Result<Session, Vec<Diagnostic>> {
    let toolkit = Toolkit::locate(overrides).map_err(|error| vec![error])?;
    let cache = match &overrides.cache {
        Some(folder) if use_cache => Cache::open(folder),
        _ => Cache::disabled(),
    };
    let session = Session::new(toolkit, Settings::default(), cache)?;
    Ok(session.in_processes_of(overrides.workers.clone()))
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
