//! The shared cache of `cubinder-nvrtc` as a server of the Remote Execution API.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cubinder_manifest::config::{Endpoint, RemoteConfig};
use cubinder_model::Digest as ContentDigest;
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::shared::{
    CompileAction, DOES_NOT_COMPILE, Input, Outputs, SharedCache, SharedEntry,
};
use cubinder_remote::{
    Action, Blob, Command, Credentials, Digest, EncodedTree, Executed, InputRoot, Inputs, Node, Progress,
    Remote, Settings, Tls,
};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;

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
    /// Keeps digests of large files over sessions.
    digests: Cache,
    files: Mutex<HashMap<PathBuf, Digest>>,
    folders: Mutex<HashMap<PathBuf, Result<Folder, String>>>,
}

#[derive(Debug)]
struct Server {
    url: String,
    remote: Remote,
}

/// Ends the process as the signal would without a handler.
fn end(signal: i32) {
    // Only numbers that are not signals fail.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// An encoded folder with its files and directories.
#[derive(Debug, Clone)]
struct Folder {
    root: Digest,
    blobs: Arc<Inputs>,
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
        let RemoteConfig { headers_file, credential_helper, .. } = config;
        let tls = Tls { ca: config.ca.clone(), identity: config.identity.clone() };
        let file = headers_file.clone().map(Credentials::HeadersFile);
        let helper = credential_helper.clone().map(Credentials::Helper);
        let url = endpoint.to_string();
        let settings = Settings {
            authority: endpoint.authority.clone(),
            tls: endpoint.is_encrypted.then_some(tls),
            instance: config.instance.clone(),
            credentials: file.or(helper).unwrap_or_default(),
            timeout: config.timeout,
            can_upload: config.can_upload,
            on_signal,
        };
        Server { url, remote: Remote::new(settings) }
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
            digests,
            files: Mutex::default(),
            folders: Mutex::default(),
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

    fn node(&self, input: &Input) -> Result<Node, String> {
        let file = |digest| Node::File { digest, is_executable: false };
        Ok(match input {
            Input::Bytes(bytes) => file(Digest::compute(bytes)),
            Input::File(path, Some(known)) => file(self.known_file(path, *known)?),
            Input::File(path, None) => file(self.large_file(path)?),
            Input::Program(path) => Node::File { digest: self.large_file(path)?, is_executable: true },
            Input::Folder(path) => Node::Directory(self.folder(path)?.root),
        })
    }

    /// Digests a file that must have the contents that the session read.
    fn known_file(&self, path: &Path, known: ContentDigest) -> Result<Digest, String> {
        if let Some(digest) = lock(&self.files).get(path) {
            return Ok(*digest);
        }
        let bytes = source::bytes(path, source::LARGEST_TEXT)?;
        if ContentDigest::compute(&bytes) != known {
            return Err(format!("`{}` has changed", path.display()));
        }
        let digest = Digest::compute(&bytes);
        lock(&self.files).insert(path.to_owned(), digest);
        Ok(digest)
    }

    /// Digests a file once as long as its size and times stay.
    fn large_file(&self, path: &Path) -> Result<Digest, String> {
        let mut files = lock(&self.files);
        if let Some(digest) = files.get(path) {
            return Ok(*digest);
        }
        let error = |error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
        let file = source::open_file(path).map_err(error)?;
        let facts = file.metadata().map_err(error)?;
        let place = path.canonicalize().map_err(error)?;
        let identity = (
            "SHA-256 of a file",
            place.as_os_str().as_encoded_bytes(),
            [facts.dev(), facts.ino(), facts.size()],
            [facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()],
        );
        let key = postcard::to_allocvec(&identity).map_err(|error| error.to_string())?;
        let key = ContentDigest::compute(&key);
        let known =
            self.digests.get(&key).and_then(|value| postcard::from_bytes::<([u8; 32], u64)>(&value).ok());
        let digest = match known.filter(|(_, length)| *length == facts.size()) {
            Some((sha256, length)) => Digest { sha256, length },
            None => {
                let digest = Digest::read(file).map_err(error)?;
                if let Ok(value) = postcard::to_allocvec(&(digest.sha256, digest.length)) {
                    self.digests.put(&key, &value);
                }
                digest
            }
        };
        files.insert(path.to_owned(), digest);
        Ok(digest)
    }

    /// Digests a folder once per session. Other threads wait.
    fn folder(&self, path: &Path) -> Result<Folder, String> {
        let mut folders = lock(&self.folders);
        folders.entry(path.to_owned()).or_insert_with(|| encode_folder(path)).clone()
    }
}

/// Encodes a folder, with folders that links in it lead to.
fn encode_folder(root: &Path) -> Result<Folder, String> {
    /// Links can multiply folders.
    const MOST: usize = 100_000;
    let (mut tree, mut blobs) = (InputRoot::default(), Inputs::new());
    let mut waiting = vec![root.to_owned()];
    let mut count = 0;
    while let Some(folder) = waiting.pop() {
        let error = |error: std::io::Error| format!("cannot read `{}`: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(error)? {
            let entry = entry.map_err(error)?;
            let path = entry.path();
            // Links may lead nowhere.
            let Ok(facts) = std::fs::metadata(&path) else { continue };
            if !facts.is_dir() && !facts.is_file() {
                continue;
            }
            count += 1;
            if count > MOST {
                return Err(format!("`{}` has more than {MOST} files", root.display()));
            }
            let name = path.strip_prefix(root).ok().and_then(Path::to_str);
            let name = name.ok_or_else(|| format!("the name of `{}` is not UTF-8", path.display()))?;
            if facts.is_dir() {
                let target = path.canonicalize().map_err(error)?;
                let above = path.ancestors().skip(1).take_while(|above| above.starts_with(root));
                let is_link = entry.file_type().map_err(error)?.is_symlink();
                if is_link && above.into_iter().any(|above| above.canonicalize().is_ok_and(|it| it == target))
                {
                    return Err(format!("the link `{}` leads to a folder above it", path.display()));
                }
                tree.insert_folder(name).map_err(|error| error.to_string())?;
                waiting.push(path);
                continue;
            }
            let digest = Digest::compute(&source::bytes(&path, source::LARGEST_TEXT)?);
            let node = Node::File { digest, is_executable: false };
            tree.insert(name, node).map_err(|error| error.to_string())?;
            blobs.insert(digest, Blob::File(path));
        }
    }
    let tree = tree.encode();
    let root = tree.root;
    blobs.extend(tree.blobs.into_iter().map(|(digest, bytes)| (digest, Blob::Bytes(bytes.into()))));
    Ok(Folder { root, blobs: Arc::new(blobs) })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedCache for RemoteCache {
    fn entry<'c>(&'c self, compile: CompileAction) -> Result<Box<dyn SharedEntry + 'c>, String> {
        let mut root = InputRoot::default();
        for (path, input) in &compile.inputs {
            root.insert(path, self.node(input)?).map_err(|error| error.to_string())?;
        }
        for path in &compile.folders {
            root.insert_folder(path).map_err(|error| error.to_string())?;
        }
        let command = Command {
            arguments: compile.arguments.clone(),
            outputs: compile.outputs.clone(),
            platform: self.platform.clone(),
            timeout: TIMEOUT,
            invalid_input: Some(DOES_NOT_COMPILE.into()),
        };
        let tree = root.encode();
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
        let mut inputs = Inputs::new();
        for input in self.compile.inputs.values() {
            match (input, self.servers.node(input)?) {
                (Input::Bytes(bytes), Node::File { digest, .. }) => {
                    inputs.insert(digest, Blob::Bytes(bytes.clone().into()));
                }
                (Input::File(path, _) | Input::Program(path), Node::File { digest, .. }) => {
                    inputs.insert(digest, Blob::File(path.clone()));
                }
                (Input::Folder(path), _) => {
                    let Folder { blobs, .. } = self.servers.folder(path)?;
                    inputs.extend(blobs.iter().map(|(digest, blob)| (*digest, blob.clone())));
                }
                _ => {}
            }
        }
        let messages = self.tree.blobs.iter().chain(&self.action.blobs);
        inputs.extend(messages.map(|(digest, bytes)| (*digest, Blob::Bytes(bytes.clone().into()))));
        Ok(inputs)
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
    use super::*;

    #[test]
    fn folders_behind_links_are_encoded() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("include/sub/empty")).unwrap();
        std::fs::create_dir_all(at("other/inner")).unwrap();
        std::fs::write(at("include/sub/a.h"), "a").unwrap();
        std::os::unix::fs::symlink("nowhere", at("include/broken")).unwrap();
        let before = encode_folder(&at("include")).unwrap().root;
        std::os::unix::fs::symlink("../other", at("include/link")).unwrap();
        let linked = encode_folder(&at("include")).unwrap().root;
        std::fs::write(at("other/inner/b.h"), "b").unwrap();
        let found = encode_folder(&at("include")).unwrap();
        assert!(before != linked && linked != found.root);
        assert!(found.blobs.contains_key(&Digest::compute(b"b")));
        std::os::unix::fs::symlink("../include", at("other/up")).unwrap();
        let error = encode_folder(&at("include")).unwrap_err();
        assert!(error.ends_with("up` leads to a folder above it"), "{error}");
    }

    #[test]
    fn results_of_workers_are_stored_on_another_server() {
        let endpoint = |port| format!("grpc://127.0.0.1:{port}").parse::<Endpoint>().unwrap();
        for (executor, can_upload, expected) in
            [(None, true, false), (Some(1), true, false), (Some(2), false, false), (Some(2), true, true)]
        {
            let executor = executor.map(endpoint);
            let config = RemoteConfig { executor, can_upload, ..RemoteConfig::new(endpoint(1)) };
            let cache = RemoteCache::new(&config, Cache::disabled(), false);
            assert_eq!(cache.stores_executed(), expected, "{config:?}");
        }
    }

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
