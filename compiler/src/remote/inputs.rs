//! Files and folders as inputs of actions, each digested once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cubinder_model::Digest as ContentDigest;
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::shared::Input;
use cubinder_remote::{Blob, Digest, EncodedTree, InputRoot, Inputs, Node};
use cubinder_source::source;

/// Digests of this session's files.
#[derive(Debug)]
pub struct InputFiles {
    /// Keeps digests of large files over sessions.
    digests: Cache,
    files: Mutex<HashMap<PathBuf, Digest>>,
    folders: Mutex<HashMap<PathBuf, Result<Folder, String>>>,
}

#[derive(Debug, Clone)]
struct Folder {
    root: Digest,
    blobs: Arc<Inputs>,
}

impl InputFiles {
    /// Reads no file.
    #[must_use]
    pub fn new(digests: Cache) -> InputFiles {
        InputFiles { digests, files: Mutex::default(), folders: Mutex::default() }
    }

    pub(crate) fn tree(
        &self,
        inputs: &BTreeMap<String, Input>,
        folders: &BTreeSet<String>,
    ) -> Result<EncodedTree, String> {
        let mut root = InputRoot::default();
        for (path, input) in inputs {
            root.insert(path, self.node(input)?).map_err(|error| error.to_string())?;
        }
        for path in folders {
            root.insert_folder(path).map_err(|error| error.to_string())?;
        }
        Ok(root.encode())
    }

    pub(crate) fn blobs<'m>(
        &self,
        inputs: impl Iterator<Item = &'m Input>,
        messages: impl Iterator<Item = &'m (Digest, Vec<u8>)>,
    ) -> Result<Inputs, String> {
        let mut blobs = Inputs::new();
        for input in inputs {
            match (input, self.node(input)?) {
                (Input::Bytes(bytes), Node::File { digest, .. }) => {
                    blobs.insert(digest, Blob::Bytes(bytes.clone().into()));
                }
                (Input::File(path, _) | Input::Program(path), Node::File { digest, .. }) => {
                    blobs.insert(digest, Blob::File(path.clone()));
                }
                (Input::Folder(path), _) => {
                    let Folder { blobs: inner, .. } = self.folder(path)?;
                    blobs.extend(inner.iter().map(|(digest, blob)| (*digest, blob.clone())));
                }
                _ => {}
            }
        }
        blobs.extend(messages.map(|(digest, bytes)| (*digest, Blob::Bytes(bytes.clone().into()))));
        Ok(blobs)
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
        let identity = (
            "SHA-256 of a file",
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
}
