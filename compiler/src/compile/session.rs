use std::sync::Arc;

use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::shared::Replacement;
use cubinder_nvrtc::nvrtc::{Session, Settings};
use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_source::diagnostic::Diagnostic;

use super::shared_cache::RemoteCache;
use crate::check_plugins::CheckedPlugin;
use crate::project::{Plan, Project};

/// `None` if all kernels are precompiled. Rejects an NVRTC that is too new for the oldest drivers.
pub(super) fn for_plugins(
    project: &Project,
    plugins: &[CheckedPlugin],
    overrides: &Overrides,
    use_cache: bool,
) -> Result<Option<Session>, Vec<Diagnostic>> {
    let Some(session) = without_sharing(plugins, overrides, use_cache)? else { return Ok(None) };
    let replacement = if project.is_remote_only() { Replacement::Errors } else { Replacement::Compiles };
    let Some(remote) = project.remote()?.filter(|_| use_cache) else { return Ok(Some(session)) };
    let shared = RemoteCache::new(&remote, cache(overrides, use_cache), replacement);
    Ok(Some(session.sharing(Arc::new(shared), &project.root, replacement)))
}

pub(super) fn for_copies(
    project: &Project,
    plugins: &[CheckedPlugin],
    overrides: &Overrides,
    shared: RemoteCache,
) -> Result<Option<Session>, Vec<Diagnostic>> {
    let session = without_sharing(plugins, overrides, true)?;
    Ok(session.map(|session| session.sharing(Arc::new(shared), &project.root, Replacement::NoCopies)))
}

pub(super) fn cache(overrides: &Overrides, use_cache: bool) -> Cache {
    overrides.cache.as_ref().filter(|_| use_cache).map_or_else(Cache::disabled, |folder| Cache::open(folder))
}

fn without_sharing(
    plugins: &[CheckedPlugin],
    overrides: &Overrides,
    use_cache: bool,
) -> Result<Option<Session>, Vec<Diagnostic>> {
    let with_sources = plugins.iter().filter(|plugin| plugin.has_sources());
    let plans: Vec<&Plan> = with_sources.map(|plugin| &plugin.plan).collect();
    if plans.is_empty() {
        return Ok(None);
    }
    let toolkit = Toolkit::locate(overrides)?;
    let session = Session::new(toolkit, Settings::default(), cache(overrides, use_cache))?;
    let session = session.in_processes_of(overrides.workers.clone());
    let mut errors = Vec::new();
    if plans.iter().any(|plan| plan.min_driver.is_some()) {
        let release = session.release()?;
        errors.extend(plans.iter().filter_map(|plan| plan.check_driver(release).err()));
    }
    if errors.is_empty() { Ok(Some(session)) } else { Err(errors) }
}
