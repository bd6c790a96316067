use std::sync::Arc;

use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::{Session, Settings};
use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_source::diagnostic::Diagnostic;

use super::shared_cache::RemoteCache;
use crate::check_plugins::CheckedPlugin;
use crate::project::{Plan, Project};

/// Opens a session; `None` if all kernels are precompiled. Rejects an NVRTC that is too new for the oldest drivers.
pub(super) fn for_plugins(
    project: &Project,
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
    let cache = || match &overrides.cache {
        Some(folder) if use_cache => Cache::open(folder),
        _ => Cache::disabled(),
    };
    let session = Session::new(toolkit, Settings::default(), cache())?;
    let mut session = session.in_processes_of(overrides.workers.clone());
    if let Some(remote) = project.remote()?.filter(|_| use_cache) {
        session = session.sharing(
            Arc::new(RemoteCache::new(&remote, cache(), project.is_remote_only())),
            &project.root,
            project.is_remote_only(),
        );
    }
    let mut errors = Vec::new();
    if plans.iter().any(|plan| plan.min_driver.is_some()) {
        let release = session.release()?;
        errors.extend(plans.iter().filter_map(|plan| plan.check_driver(release).err()));
    }
    if errors.is_empty() { Ok(Some(session)) } else { Err(errors) }
}
