//! The shared cache of `cubinder-nvrtc` as a server of the Remote Execution API.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cubinder_manifest::config::{Endpoint, RemoteConfig};
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::shared::{
    Activity, CompileAction, Outputs, Replacement, SharedCache, SharedEntry,
};
use cubinder_remote::{Action, Command, EncodedTree, Executed, Inputs, Progress, Remote};
use cubinder_source::diagnostic::Diagnostic;

use crate::remote::inputs::InputFiles;
use crate::remote::{end, settings};

use super::results_file::ResultsFile;

/// Of a compile on a worker.
const TIMEOUT: Duration = Duration::from_secs(600);

cubinder_source::diagnostics! {
    struct Failed { role: &'static str, url: String, error: cubinder_remote::Error, consequence: &'static str }
    warning "{role} `{url}` failed: {error}" {
        note: "{consequence}";
        help: "check the server and `[remote]` in `cubinder.toml` (docs/remote-cache.md)";
    }
}

#[derive(Debug)]
enum Store {
    Server(Box<Server>),
    File(Arc<ResultsFile>),
}

#[derive(Debug)]
pub(super) struct RemoteCache {
    store: Store,
    executor: Option<Server>,
    replacement: Replacement,
    platform: BTreeMap<String, String>,
    files: InputFiles,
}

#[derive(Debug)]
struct Server {
    url: String,
    remote: Remote,
}

struct Entry<'c> {
    servers: &'c RemoteCache,
    action: Action,
    compile: CompileAction,
    tree: EncodedTree,
    /// Whether the last result is a worker's.
    is_executed: Cell<bool>,
}

impl Server {
    fn new(config: &RemoteConfig, endpoint: &Endpoint, on_signal: Option<fn(i32)>) -> Server {
        Server { url: endpoint.to_string(), remote: Remote::new(settings(config, endpoint, on_signal)) }
    }

    fn warning(&self, role: &'static str, replacement: Replacement) -> Option<Diagnostic> {
        let (error, is_off) = self.remote.take_failure()?;
        let consequence = match (replacement, is_off) {
            (Replacement::Errors, _) => "`--remote-only` compiles nothing on this machine",
            (Replacement::NoCopies, _) => "not all results were copied",
            (Replacement::Compiles, true) => {
                "the build continued without it: kernels were compiled on this machine"
            }
            (Replacement::Compiles, false) => {
                "the build continued: kernels that it could not return were compiled on this machine"
            }
        };
        Some(Failed { role, url: self.url.clone(), error, consequence }.into())
    }
}

impl RemoteCache {
    /// Neither reads files of the settings nor connects.
    pub(super) fn new(config: &RemoteConfig, digests: Cache, replacement: Replacement) -> RemoteCache {
        RemoteCache {
            executor: config.executor.as_ref().map(|executor| Server::new(config, executor, Some(end))),
            platform: config.platform.clone(),
            ..RemoteCache::with_store(
                Store::Server(Box::new(Server::new(config, &config.cache, None))),
                digests,
                replacement,
            )
        }
    }

    pub(super) fn of_file(file: Arc<ResultsFile>, digests: Cache) -> RemoteCache {
        RemoteCache::with_store(Store::File(file), digests, Replacement::NoCopies)
    }

    fn with_store(store: Store, digests: Cache, replacement: Replacement) -> RemoteCache {
        RemoteCache {
            store,
            executor: None,
            replacement,
            platform: BTreeMap::new(),
            files: InputFiles::new(digests),
        }
    }
}

impl SharedCache for RemoteCache {
    fn entry<'c>(&'c self, compile: CompileAction) -> Result<Box<dyn SharedEntry + 'c>, String> {
        let command = Command {
            arguments: compile.arguments.clone(),
            outputs: compile.outputs.clone(),
            platform: self.platform.clone(),
            timeout: TIMEOUT,
            ..Command::default()
        };
        let tree = self.files.tree(&compile.inputs, &compile.folders)?;
        let action = Action::new(&command, tree.root);
        Ok(Box::new(Entry { servers: self, action, compile, tree, is_executed: Cell::new(false) }))
    }

    fn executes(&self) -> bool {
        self.executor.is_some()
    }

    fn stores(&self) -> bool {
        match &self.store {
            Store::Server(server) => server.remote.can_store(),
            Store::File(file) => file.can_store(),
        }
    }

    fn activity(&self) -> Activity {
        let Some(Server { remote, .. }) = &self.executor else { return Activity::default() };
        let (Progress { queued, running }, Executed { by_worker, cached }) =
            (remote.progress(), remote.executed());
        Activity { queued, running, by_worker, cached }
    }

    fn take_warnings(&self) -> Vec<Diagnostic> {
        let store = match &self.store {
            Store::Server(server) => server.warning("the shared cache", self.replacement),
            Store::File(file) => file.take_warning(),
        };
        let executor = self.executor.as_ref();
        let executor =
            executor.and_then(|executor| executor.warning("the remote executor", self.replacement));
        store.into_iter().chain(executor).collect()
    }
}

impl Entry<'_> {
    fn inputs(&self) -> Result<Inputs, String> {
        let messages = self.tree.blobs.iter().chain(&self.action.blobs);
        self.servers.files.blobs(self.compile.inputs.values(), messages)
    }
}

impl SharedEntry for Entry<'_> {
    fn get(&self) -> Option<Outputs> {
        match &self.servers.store {
            Store::Server(server) => server.remote.look_up(&self.action),
            Store::File(file) => file.get(&self.action),
        }
    }

    fn execute(&self) -> Option<Outputs> {
        let executor = self.servers.executor.as_ref()?;
        self.is_executed.set(true);
        match self.inputs() {
            Ok(inputs) => executor.remote.execute(&self.action, &inputs),
            Err(reason) => {
                executor.remote.report_unsent(&reason);
                None
            }
        }
    }

    fn put(&self, outputs: &Outputs) {
        match &self.servers.store {
            Store::Server(server) => server.remote.store(&self.action, outputs),
            Store::File(file) => file.put(&self.action, outputs),
        }
    }

    fn reject(&self, reason: &str) {
        let executor = self.servers.executor.as_ref();
        if let Some(executor) = executor {
            // It may answer from the cache that has the rejected result.
            executor.remote.skip_cached(&self.action);
        }
        match (executor.filter(|_| self.is_executed.get()), &self.servers.store) {
            (Some(executor), _) => executor.remote.report_invalid(reason),
            (None, Store::Server(server)) => server.remote.report_invalid(reason),
            (None, Store::File(file)) => file.reject(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn files_of_the_settings_are_read_by_the_first_call() {
        let endpoint: Endpoint = "grpcs://127.0.0.1:1".parse().unwrap();
        let missing = Some(PathBuf::from("/no/such/file"));
        let config =
            RemoteConfig { headers_file: missing.clone(), ca: missing, ..RemoteConfig::new(endpoint) };
        let cache = RemoteCache::new(&config, Cache::disabled(), Replacement::Errors);
        assert!(cache.take_warnings().is_empty());
        let action = CompileAction {
            inputs: BTreeMap::new(),
            folders: ["kernels".to_owned()].into(),
            arguments: Vec::new(),
            outputs: Vec::new(),
        };
        assert_eq!(cache.entry(action).unwrap().get(), None);
        let [warning] = cache.take_warnings().try_into().unwrap();
        assert_eq!(warning.notes, ["`--remote-only` compiles nothing on this machine"]);
        assert!(
            warning.message.contains("cannot use `/no/such/file` as the file of headers"),
            "{}",
            warning.message
        );
    }
}
