//! Copies results of a project's compiles between the local cache and a server or a file, without NVRTC.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cubinder_manifest::config::RemoteConfig;
use cubinder_nvrtc::nvrtc::Copied;
use cubinder_nvrtc::nvrtc::shared::Replacement;
use cubinder_nvrtc::toolkit::Overrides;
use cubinder_source::diagnostic::{Diagnostic, Severity, Sink};
use cubinder_source::source;
use indicatif::ProgressBar;

use super::jobs::{self, CompileJobs, Transfer};
use super::results_file::ResultsFile;
use super::session;
use super::shared_cache::RemoteCache;
use crate::check_plugins::{self, CheckedPlugins, Purpose, in_thread_pool};
use crate::project::Project;

/// The other side of a transfer.
#[derive(Debug, Clone)]
pub enum Peer<'p> {
    /// A shared cache.
    Server(&'p RemoteConfig),
    /// A file.
    File(&'p Path),
}

/// Numbers of results after a transfer: code of programs, and signatures of kernels of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transferred {
    /// Results that were copied.
    pub complete: u64,
    /// Results that the local cache had before a fetch.
    pub present: u64,
    /// Results that the source lacks.
    pub missing: u64,
    /// Results that are not shared, by reason.
    pub unshared: BTreeMap<&'static str, u64>,
    /// Whether the destination has what the source has: an incomplete file is not written.
    pub is_written: bool,
}

/// Copies the results of all compiles of a project.
///
/// # Errors
/// Errors of manifests, and the first failure of the server or the file.
pub fn transfer(
    project: &Project,
    overrides: &Overrides,
    peer: &Peer<'_>,
    direction: Transfer,
    progress: &ProgressBar,
) -> Result<Transferred, Vec<Diagnostic>> {
    let digests = session::cache(overrides, true);
    let (shared, file) = match (peer, direction) {
        (Peer::Server(config), _) => {
            let can_upload = direction == Transfer::Push;
            let config = RemoteConfig { executor: None, can_upload, ..(*config).clone() };
            (RemoteCache::new(&config, digests, Replacement::NoCopies), None)
        }
        (Peer::File(path), direction) => {
            let file = match direction {
                Transfer::Fetch => ResultsFile::open(path)?,
                Transfer::Push => ResultsFile::new(path),
            };
            let file = Arc::new(file);
            (RemoteCache::of_file(Arc::clone(&file), digests), Some(file))
        }
    };
    in_thread_pool(|| {
        let transferred = run_all(project, overrides, shared, direction, progress)?;
        let new_file = file.filter(|_| direction == Transfer::Push);
        let is_written = new_file.is_none() || transferred.missing == 0;
        if let Some(file) = new_file.filter(|_| is_written) {
            file.write()?;
        }
        Ok(Transferred { is_written, ..transferred })
    })
}

fn run_all(
    project: &Project,
    overrides: &Overrides,
    shared: RemoteCache,
    direction: Transfer,
    progress: &ProgressBar,
) -> Result<Transferred, Vec<Diagnostic>> {
    let warnings = Sink::default();
    let plans = check_plugins::resolve_manifests(project, project.read_manifests()).plan(Purpose::Compile);
    let CheckedPlugins { plugins, .. } = plans.check(&source::text, &warnings)?;
    project.check_target_selection(plugins.iter().map(|plugin| &plugin.plan))?;
    let session = session::for_copies(project, &plugins, overrides, shared)?;
    let Some(session) = session.as_ref() else { return Ok(Transferred::default()) };
    let jobs = CompileJobs::new(project, Some(session), &plugins)?;
    let programs = jobs.programs();
    let tasks = jobs::tasks(session, &jobs.jobs, &programs);
    let results = jobs::copy(session, &jobs.jobs, &tasks, direction, progress);
    session.check_unchanged()?;
    let failures = session.take_sharing_warnings().into_iter().chain(session.take_cache_warning());
    let failures: Vec<Diagnostic> =
        failures.map(|failure| Diagnostic { severity: Severity::Error, ..failure }).collect();
    if !failures.is_empty() {
        return Err(failures);
    }
    let count = |wanted: Copied| results.iter().filter(|result| **result == wanted).count() as u64;
    let (missing, unshared) = (count(Copied::Missing), session.unshared());
    Ok(Transferred {
        complete: count(Copied::Complete),
        present: count(Copied::Present),
        missing,
        unshared,
        is_written: false,
    })
}
