//! The pipeline, from manifests to plugin libraries.
//!
//! Owns the order of the steps. Each step is a module of its own; none of them is done here. `units` says what runs in
//! parallel, `write` puts the libraries in their places.

mod explain;
mod units;
mod write;

use std::path::PathBuf;

use cubinder_bundle::container;
use cubinder_bundle::{Bundle, Digest};

use crate::cache::Cache;
use crate::check::Obligation;
use crate::checkup::{self, Ready};
use crate::config;
use crate::diagnostic::Diagnostic;
use crate::library::Mode;
use crate::nvrtc::{Session, Settings, Statistics};
use crate::pack::pack;
use crate::project::{Plan, Project};
use crate::toolkit::{Overrides, Toolkit};

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
    /// What must hold for every launch, and whether it is proved.
    pub obligations: Vec<Obligation>,
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
    let ready = checkup::before_compile(&request.project, &config::open)?;
    let Ready { plugins, plans, mut warnings, mut obligations } = ready;
    request.project.check_only(&plans)?;
    let session = session(request)?;
    check_drivers(&session, &plans)?;
    let compiled = units::compile(&request.project, &session, &plugins, &plans, progress, &mut warnings);
    warnings.extend(session.take_cache_warning());
    let compiled = compiled?;
    let nvrtc = compiled.nvrtc.map_or_else(String::new, |(major, minor)| format!(", NVRTC {major}.{minor}"));
    obligations.extend(compiled.obligations);
    let producer = format!("cubinder {}{nvrtc}", env!("CARGO_PKG_VERSION"));
    let bundle = pack(producer, compiled.plugins);
    let (bytes, digest) = encode(&bundle)?;
    let libraries = write::libraries(request, &bytes).map_err(|error| vec![error])?;
    warnings.extend(write::stale(request));
    Ok(Outcome {
        libraries,
        bundle: digest,
        bundle_bytes: bytes.len() as u64,
        plugins: bundle.plugins.len(),
        code_objects: bundle.code.len(),
        statistics: session.statistics(),
        warnings,
        obligations,
    })
}

/// Refuses an NVRTC whose code the drivers that manifests name would not load.
fn check_drivers(session: &Session, plans: &[Plan]) -> Result<(), Vec<Diagnostic>> {
    if plans.iter().all(|plan| plan.min_driver.is_none()) {
        return Ok(());
    }
    let release = session.release().map_err(|error| vec![error])?;
    let errors: Vec<Diagnostic> = plans.iter().filter_map(|plan| plan.check_driver(release).err()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn session(request: &Request) -> Result<Session, Vec<Diagnostic>> {
    let toolkit = Toolkit::locate(&request.overrides).map_err(|error| vec![error])?;
    let cache = match &request.overrides.cache {
        Some(folder) if request.use_cache => Cache::open(folder),
        _ => Cache::disabled(),
    };
    Session::new(toolkit, Settings::default(), cache)
}

/// Plugins share files, and so their mistakes.
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
