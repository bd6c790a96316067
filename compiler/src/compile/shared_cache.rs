//! The shared cache of `cubinder-nvrtc` as a server of the Remote Execution API.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cubinder_manifest::config::RemoteConfig;
use cubinder_model::Digest as ContentDigest;
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::shared::{CompileAction, Input, Outputs, SharedCache, SharedEntry};
use cubinder_remote::{Action, Command, Credentials, Digest, InputRoot, Node, Remote, Settings, Tls};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;

/// Maximum run time of a compile on a worker.
const TIMEOUT: Duration = Duration::from_secs(3600);

cubinder_source::diagnostics! {
    struct Unusable { url: String, error: cubinder_remote::Error }
    error "cannot use the shared cache `{url}`: {error}" {
        help: "correct `[remote]` in `cubinder.toml`, or compile without it by removing the table";
    }

    struct Failed { url: String, error: cubinder_remote::Error, consequence: &'static str }
    warning "the shared cache `{url}` failed: {error}" {
        note: "{consequence}";
        help: "check the server and `[remote]` in `cubinder.toml` (docs/remote-cache.md)";
    }
}

/// A server, with the digests of this session's files.
#[derive(Debug)]
pub(super) struct RemoteCache {
    url: String,
    remote: Remote,
    /// Keeps digests of large files over sessions.
    cache: Cache,
    files: Mutex<HashMap<PathBuf, Digest>>,
    folders: Mutex<HashMap<PathBuf, Result<Digest, String>>>,
}

struct Entry<'c> {
    remote: &'c Remote,
    action: Action,
}

impl RemoteCache {
    /// Reads the files of the settings without connecting.
    pub(super) fn new(config: &RemoteConfig, cache: Cache) -> Result<RemoteCache, Diagnostic> {
        let RemoteConfig { cache: endpoint, headers_file, credential_helper, .. } = config;
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
        };
        let remote = Remote::new(settings).map_err(|error| {
            let error = Diagnostic::from(Unusable { url: url.clone(), error });
            config.span.iter().fold(error, |error, span| error.at(span.clone(), "configured here"))
        })?;
        Ok(RemoteCache { url, remote, cache, files: Mutex::default(), folders: Mutex::default() })
    }

    fn node(&self, input: &Input) -> Result<Node, String> {
        let file = |digest| Node::File { digest, is_executable: false };
        Ok(match input {
            Input::Bytes(bytes) => file(Digest::compute(bytes)),
            Input::File(path, Some(known)) => file(self.known_file(path, *known)?),
            Input::File(path, None) => file(self.large_file(path)?),
            Input::Program(path) => Node::File { digest: self.large_file(path)?, is_executable: true },
            Input::Folder(path) => Node::Directory(self.folder(path)?),
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
            self.cache.get(&key).and_then(|value| postcard::from_bytes::<([u8; 32], u64)>(&value).ok());
        let digest = match known.filter(|(_, length)| *length == facts.size()) {
            Some((sha256, length)) => Digest { sha256, length },
            None => {
                let digest = Digest::read(file).map_err(error)?;
                if let Ok(value) = postcard::to_allocvec(&(digest.sha256, digest.length)) {
                    self.cache.put(&key, &value);
                }
                digest
            }
        };
        files.insert(path.to_owned(), digest);
        Ok(digest)
    }

    /// Digests a folder once per session. Other threads wait.
    fn folder(&self, path: &Path) -> Result<Digest, String> {
        let mut folders = lock(&self.folders);
        folders.entry(path.to_owned()).or_insert_with(|| digest_folder(path)).clone()
    }
}

fn digest_folder(root: &Path) -> Result<Digest, String> {
    let mut tree = InputRoot::default();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        let error = |error: std::io::Error| format!("cannot read `{}`: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(error)? {
            let entry = entry.map_err(error)?;
            let path = entry.path();
            if entry.file_type().map_err(error)?.is_dir() {
                waiting.push(path);
                continue;
            }
            // Links may lead nowhere, or to folders, which NVRTC does not need.
            if !path.is_file() {
                continue;
            }
            let name = path.strip_prefix(root).ok().and_then(Path::to_str);
            let name = name.ok_or_else(|| format!("the name of `{}` is not UTF-8", path.display()))?;
            let digest = Digest::compute(&source::bytes(&path, source::LARGEST_TEXT)?);
            let node = Node::File { digest, is_executable: false };
            tree.insert(name, node).map_err(|error| error.to_string())?;
        }
    }
    Ok(tree.encode().root)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedCache for RemoteCache {
    fn entry<'c>(&'c self, action: &CompileAction) -> Result<Box<dyn SharedEntry + 'c>, String> {
        let mut root = InputRoot::default();
        for (path, input) in &action.inputs {
            root.insert(path, self.node(input)?).map_err(|error| error.to_string())?;
        }
        let platform = [("ISA", "x86-64"), ("OSFamily", "linux")];
        let command = Command {
            arguments: action.arguments.clone(),
            outputs: action.outputs.clone(),
            platform: platform.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            timeout: TIMEOUT,
        };
        let action = Action::new(&command, root.encode().root);
        Ok(Box::new(Entry { remote: &self.remote, action }))
    }

    fn take_warning(&self) -> Option<Diagnostic> {
        let (error, is_off) = self.remote.take_failure()?;
        let consequence = match is_off {
            true => "the build continued without it: kernels were compiled on this machine",
            false => "the build continued: kernels that it could not return were compiled on this machine",
        };
        Some(Failed { url: self.url.clone(), error, consequence }.into())
    }
}

impl SharedEntry for Entry<'_> {
    fn get(&self) -> Option<Outputs> {
        let outputs: BTreeMap<String, Vec<u8>> = self.remote.look_up(&self.action)?;
        Some(outputs)
    }

    fn put(&self, outputs: &Outputs) {
        self.remote.store(&self.action, outputs);
    }

    fn reject(&self, reason: &str) {
        self.remote.report_invalid(reason);
    }
}
