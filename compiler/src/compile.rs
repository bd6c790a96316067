//! The pipeline from manifests to plugin libraries.
//!
//! `Project → ResolvedManifests → Plans → CheckedPlugins → CompileJobs → CompiledPlugins → Bundle → Libraries`:
//! each phase returns the next type or errors. Warnings go to a [`Sink`].

mod depfile;
mod explain;
mod inputs;
mod jobs;
mod machine_paths;
mod native;
mod programs;
mod provenance;
mod results_file;
mod session;
mod shared_cache;
mod transfer;
mod units;
mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cubinder_analysis::check::Obligation;
use cubinder_import::foreign::{self, FromPtx};
use cubinder_library::Mode;
use cubinder_manifest::manifest::Route;
use cubinder_model::{Bundle, Digest, Provenance, container};
use cubinder_node::tuning::{self, OutdatedMeasurement};
use cubinder_nvrtc::nvrtc::shared::Activity;
use cubinder_nvrtc::nvrtc::{Session, Statistics};
use cubinder_nvrtc::toolkit::Overrides;
use cubinder_source::diagnostic::{Diagnostic, Sink, dedup};
use cubinder_source::{atomic_file, source};
use indicatif::ProgressBar;

use crate::check_plugins::{self, CheckedPlugin, CheckedPlugins, Purpose, in_thread_pool};
use crate::errors::WarningsDenied;
use crate::pack::pack;
use crate::project::Project;
use inputs::Inputs;
use jobs::CompileJobs;
pub use jobs::Transfer;
pub use results_file::is_results_file;
pub use transfer::{Peer, Transferred, transfer};
use write::Libraries;
pub(crate) use write::draft_library;

/// Inputs and outputs of a compile.
#[derive(Debug, Clone)]
pub struct Request {
    /// Manifests with compile options.
    pub project: Project,
    /// The library to write.
    pub library: PathBuf,
    /// Whether engines store code once, in `<library>-code.so`, instead of per node.
    pub embed: bool,
    /// Prebuilt runtime library.
    pub runtime_library: PathBuf,
    /// List of inputs for Make and Ninja.
    pub depfile: Option<PathBuf>,
    /// Paths of NVRTC and the cache.
    pub overrides: Overrides,
    /// Whether to use the cache.
    pub use_cache: bool,
    /// Whether warnings are errors.
    pub deny_warnings: bool,
}

/// The result of a compile.
#[derive(Debug, Clone)]
pub struct CompiledLibraries {
    /// The libraries.
    pub libraries: Vec<WrittenLibrary>,
    /// Digest of the bundle.
    pub digest: Digest,
    /// Size of the bundle, bytes.
    pub bundle_bytes: u64,
    /// Bundle with its compile's facts.
    pub compiled: CompiledBundle,
}

/// A written library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenLibrary {
    /// The file.
    pub path: PathBuf,
    /// Whether it has ops, code or both.
    pub mode: Mode,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A bundle in memory.
#[derive(Debug, Clone)]
pub struct CompiledBundle {
    /// Plugins with their code.
    pub bundle: Bundle,
    /// NVRTC calls and cache hits.
    pub statistics: Statistics,
    /// Numbers of compiles that the shared cache cannot have, by reason.
    pub unshared: BTreeMap<&'static str, u64>,
    /// What workers did.
    pub workers: Activity,
    /// Warnings of all phases.
    pub warnings: Vec<Diagnostic>,
    /// Launch conditions with their proofs.
    pub obligations: Vec<Obligation>,
    /// Machine code replaced by PTX.
    pub from_ptx: Vec<FromPtx>,
    /// Plugins measured with other code.
    pub measured_otherwise: Vec<OutdatedMeasurement>,
    provenance: Provenance,
    inputs: Inputs,
}

/// Compiles a project and writes its libraries.
///
/// # Errors
/// Errors of all manifests, else of all kernels.
pub fn compile(request: &Request, progress: &ProgressBar) -> Result<CompiledLibraries, Vec<Diagnostic>> {
    // Fail before minutes of compiling.
    if let Some(depfile) = &request.depfile {
        atomic_file::check_replaceable(depfile, depfile, "`--depfile`")?;
    }
    let phases = |warnings: &Sink, of_servers: &Sink| {
        let (project, use_cache) = (&request.project, request.use_cache);
        let compiled = run_phases(project, &request.overrides, use_cache, progress, warnings, of_servers)?;
        let (bytes, digest) = encode(&compiled.bundle)?;
        let with_record =
            [bytes.as_slice(), &cubinder_model::provenance::write(&compiled.provenance, digest)].concat();
        let libraries = Libraries::draft(request, &compiled, &with_record, warnings)?;
        // Whether a server answers does not depend on the project.
        if request.deny_warnings && !warnings.is_empty() {
            return Err(WarningsDenied {}.into());
        }
        let libraries = libraries.persist()?;
        Ok(CompiledLibraries { libraries, digest, bundle_bytes: bytes.len() as u64, compiled })
    };
    let (mut outcome, warnings) = with_warnings(phases)?;
    outcome.compiled.warnings = warnings;
    Ok(outcome)
}

/// Compiles a project and writes only the cache.
///
/// # Errors
/// The errors of [`compile`].
pub fn compile_bundle(
    project: &Project,
    overrides: &Overrides,
    use_cache: bool,
    progress: &ProgressBar,
) -> Result<CompiledBundle, Vec<Diagnostic>> {
    let phases = |warnings: &Sink, of_servers: &Sink| {
        run_phases(project, overrides, use_cache, progress, warnings, of_servers)
    };
    let (compiled, warnings) = with_warnings(phases)?;
    Ok(CompiledBundle { warnings, ..compiled })
}

fn with_warnings<T: Send>(
    phases: impl FnOnce(&Sink, &Sink) -> Result<T, Vec<Diagnostic>> + Send,
) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
    in_thread_pool(|| {
        let (warnings, of_servers) = (Sink::default(), Sink::default());
        let result = phases(&warnings, &of_servers);
        let warnings = [warnings.into_diagnostics(), of_servers.into_diagnostics()].concat();
        match result {
            Ok(result) => Ok((result, warnings)),
            Err(errors) => {
                let mut found = [errors, warnings].concat();
                dedup(&mut found);
                Err(found)
            }
        }
    })
}

fn run_phases(
    project: &Project,
    overrides: &Overrides,
    use_cache: bool,
    progress: &ProgressBar,
    warnings: &Sink,
    of_servers: &Sink,
) -> Result<CompiledBundle, Vec<Diagnostic>> {
    let sources = project.read_manifests();
    let resolved = check_plugins::resolve_manifests(project, sources);
    let plans = resolved.plan(Purpose::Compile);
    let CheckedPlugins { plugins, tuning, mut obligations } = plans.check(&source::text, warnings)?;
    project.check_target_selection(plugins.iter().map(|plugin| &plugin.plan))?;

    let session = session::for_plugins(project, &plugins, overrides, use_cache)?;
    let session = session.as_ref();
    let jobs = CompileJobs::new(project, session, &plugins);
    let compiled = jobs.and_then(|jobs| jobs.compile(progress, warnings));
    warnings.report(session.and_then(Session::take_cache_warning));
    of_servers.report(session.map(Session::take_sharing_warnings).unwrap_or_default());
    // Takes precedence: a changed file may have been read partially.
    session.map_or(Ok(()), Session::check_unchanged)?;
    let compiled = compiled?;
    obligations.extend(compiled.obligations);

    let mut inputs = Inputs::new(project, &plugins, session);
    inputs.merge(compiled.included);
    let packed = pack(provenance::producer(compiled.nvrtc, &plugins), compiled.plugins);
    warnings.report(provenance::doubt_of_headers(session, compiled.nvrtc, &packed.origins));
    let compiler = provenance::compiler(session, compiled.nvrtc);
    let provenance = provenance::record(project, &plugins, &tuning, compiler, packed.origins);
    Ok(CompiledBundle {
        statistics: session.map(Session::statistics).unwrap_or_default(),
        unshared: session.map(Session::unshared).unwrap_or_default(),
        workers: session.map(Session::worker_activity).unwrap_or_default(),
        warnings: Vec::new(),
        obligations,
        from_ptx: from_ptx(&plugins),
        measured_otherwise: tuning::changed(&tuning, &packed.bundle),
        bundle: packed.bundle,
        provenance,
        inputs,
    })
}

/// Returns machine code replaced by PTX; the native route always uses PTX.
fn from_ptx(plugins: &[CheckedPlugin]) -> Vec<FromPtx> {
    let launched = plugins.iter().filter(|plugin| plugin.plan.route.route == Route::Plugin);
    let missing = launched.flat_map(|CheckedPlugin { resolved, plan }| {
        foreign::from_ptx(&resolved.draft, &plan.targets(), plan.ptx_serves)
    });
    missing.collect()
}

fn encode(bundle: &Bundle) -> Result<(Vec<u8>, Digest), Diagnostic> {
    let bytes = container::write_bundle(bundle);
    match container::read(&bytes) {
        Ok(found) => Ok((bytes, found.digest)),
        Err(error) => Err(Diagnostic::error(format!("cannot read the compiled bundle: {error}"))
            .note("this is a bug in cubinder, not an error in the manifests")),
    }
}
