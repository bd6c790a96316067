//! The shared cache of `cubinder-nvrtc` as a server of the Remote Execution API.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use cubinder_manifest::config::{Endpoint, RemoteConfig};
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::shared::{CompileAction, DOES_NOT_COMPILE, Outputs, SharedCache, SharedEntry};
use cubinder_remote::{Action, Command, EncodedTree, Executed, Inputs, Progress, Remote};
use cubinder_source::diagnostic::Diagnostic;

use crate::remote::inputs::InputFiles;
use crate::remote::{end, settings};

/// Maximum run time of a compile on a worker.
const TIMEOUT: Duration = Duration::from_secs(600);

cubinder_source::diagnostics! {
    struct Failed { role: &'static str, url: String, error: cubinder_remote::Error, consequence: &'static str }
    warning "{role} `{url}` failed: {error}" {
        note: "{consequence}";
        help: "check the server and `[remote]` in `cubinder.toml` (docs/remote-cache.md)";
    }
}

/// Servers, with the digests of this session's files.
#[derive(Debug)]
pub(super) struct RemoteCache {
    cache: Server,
    executor: Option<Server>,
    is_remote_only: bool,
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
    /// A worker's result that the cache lacks.
    unstored: RefCell<Option<Outputs>>,
}

impl Server {
    fn new(config: &RemoteConfig, endpoint: &Endpoint, on_signal: Option<fn(i32)>) -> Server {
        Server { url: endpoint.to_string(), remote: Remote::new(settings(config, endpoint, on_signal)) }
    }

    fn warning(&self, role: &'static str, is_remote_only: bool) -> Option<Diagnostic> {
        let (error, is_off) = self.remote.take_failure()?;
        let consequence = match is_off {
            _ if is_remote_only => "`--remote-only` compiles nothing on this machine",
            true => "the build continued without it: kernels were compiled on this machine",
            false => "the build continued: kernels that it could not return were compiled on this machine",
        };
        Some(Failed { role, url: self.url.clone(), error, consequence }.into())
    }
}

impl RemoteCache {
    /// Neither reads files of the settings nor connects.
    pub(super) fn new(config: &RemoteConfig, digests: Cache, is_remote_only: bool) -> RemoteCache {
        RemoteCache {
            cache: Server::new(config, &config.cache, None),
            executor: config.executor.as_ref().map(|executor| Server::new(config, executor, Some(end))),
            is_remote_only,
            platform: config.platform.clone(),
            files: InputFiles::new(digests),
        }
    }

    /// Returns the numbers of compiles that wait for workers and that run on them.
    #[expect(dead_code, reason = "the progress bar will show them")]
    pub(super) fn progress(&self) -> Progress {
        self.executor.as_ref().map(|executor| executor.remote.progress()).unwrap_or_default()
    }

    /// Returns how many compiles each worker executed, and the executor's cache answered.
    #[expect(dead_code, reason = "the summary will show them")]
    pub(super) fn executed(&self) -> Executed {
        self.executor.as_ref().map(|executor| executor.remote.executed()).unwrap_or_default()
    }

    /// Returns whether workers' results must be stored: an executor fills only the cache on its server.
    fn stores_executed(&self) -> bool {
        self.cache.remote.can_store()
            && self.executor.as_ref().is_some_and(|executor| executor.url != self.cache.url)
    }
}

impl SharedCache for RemoteCache {
    fn entry<'c>(&'c self, compile: CompileAction) -> Result<Box<dyn SharedEntry + 'c>, String> {
        let command = Command {
            arguments: compile.arguments.clone(),
            outputs: compile.outputs.clone(),
            platform: self.platform.clone(),
            timeout: TIMEOUT,
            invalid_input: Some(DOES_NOT_COMPILE.into()),
            ..Command::default()
        };
        let tree = self.files.tree(&compile.inputs, &compile.folders)?;
        let action = Action::new(&command, tree.root);
        let (is_executed, unstored) = Default::default();
        Ok(Box::new(Entry { servers: self, action, compile, tree, is_executed, unstored }))
    }

    fn executes(&self) -> bool {
        self.executor.is_some()
    }

    fn stores(&self) -> bool {
        self.cache.remote.can_store()
    }

    fn take_warnings(&self) -> Vec<Diagnostic> {
        let executor = self
            .executor
            .as_ref()
            .and_then(|executor| executor.warning("the remote executor", self.is_remote_only));
        self.cache.warning("the shared cache", self.is_remote_only).into_iter().chain(executor).collect()
    }
}

impl Entry<'_> {
    /// Returns all files, directories and messages of the action.
    fn inputs(&self) -> Result<Inputs, String> {
        let messages = self.tree.blobs.iter().chain(&self.action.blobs);
        self.servers.files.blobs(self.compile.inputs.values(), messages)
    }

    /// Stores a worker's result, which the caller has checked.
    #[expect(dead_code, reason = "becomes a method of `SharedEntry`, called after a result is accepted")]
    fn accept(&self) {
        if let Some(outputs) = self.unstored.take() {
            self.put(&outputs);
        }
    }
}

impl SharedEntry for Entry<'_> {
    fn get(&self) -> Option<Outputs> {
        self.servers.cache.remote.look_up(&self.action)
    }

    fn execute(&self) -> Option<Outputs> {
        let executor = self.servers.executor.as_ref()?;
        self.is_executed.set(true);
        match self.inputs() {
            Ok(inputs) => {
                let outputs = executor.remote.execute(&self.action, &inputs);
                let unstored = outputs.as_ref().filter(|_| self.servers.stores_executed());
                self.unstored.replace(unstored.cloned());
                outputs
            }
            Err(reason) => {
                executor.remote.report_unsent(&reason);
                None
            }
        }
    }

    fn put(&self, outputs: &Outputs) {
        self.servers.cache.remote.store(&self.action, outputs);
    }

    fn reject(&self, reason: &str) {
        let executor = self.servers.executor.as_ref();
        if let Some(executor) = executor {
            // It may answer from the cache that has the rejected result.
            executor.remote.skip_cached(&self.action);
        }
        let executor = executor.filter(|_| self.is_executed.get());
        executor.unwrap_or(&self.servers.cache).remote.report_invalid(reason);
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
        let cache = RemoteCache::new(&config, Cache::disabled(), true);
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
