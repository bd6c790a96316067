//! Actions in the canonical form of the protocol: equal inputs have equal digests on every machine.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message as _;

use crate::digest::Digest;
use crate::proto::reapi;

/// An input of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// A file.
    File {
        /// The content's digest.
        digest: Digest,
        /// Whether the file can be executed.
        is_executable: bool,
    },
    /// An encoded directory ([`EncodedTree::root`]).
    Directory(Digest),
}

/// Why a path cannot be an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The path is empty or absolute, or has an empty component, `.`, `..` or a NUL byte.
    #[error("`{0}` is not a relative path in canonical form")]
    Path(String),
    /// Another input has the same path, or is a file above or below it.
    #[error("two inputs have the path `{0}`")]
    Conflict(String),
}

/// Inputs by path, relative to the folder in which the action runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputRoot(BTreeMap<String, Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Node(Node),
    Folder(InputRoot),
}

/// The encoded directories of an input root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedTree {
    /// The digest of the top directory.
    pub root: Digest,
    /// All directories with their digests, the top one last, without those given by digest.
    pub blobs: Vec<(Digest, Vec<u8>)>,
}

impl InputRoot {
    /// Adds an input; equal inputs of one path are one.
    ///
    /// # Errors
    /// The path is not canonical, or another input has it.
    pub fn insert(&mut self, path: &str, node: Node) -> Result<(), TreeError> {
        if !path.split('/').all(is_name) {
            return Err(TreeError::Path(path.to_owned()));
        }
        let conflict = || TreeError::Conflict(path.to_owned());
        let (folders, name) =
            path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
        let names = folders.into_iter().flat_map(|folders| folders.split('/'));
        let folder = self.folder(names).ok_or_else(conflict)?;
        match folder.0.insert(name.to_owned(), Entry::Node(node)) {
            None => Ok(()),
            Some(Entry::Node(before)) if before == node => Ok(()),
            Some(_) => Err(conflict()),
        }
    }

    /// Adds a directory, which may stay empty.
    ///
    /// # Errors
    /// The path is not canonical, or an input that is not a directory of this tree has it.
    pub fn insert_folder(&mut self, path: &str) -> Result<(), TreeError> {
        if !path.split('/').all(is_name) {
            return Err(TreeError::Path(path.to_owned()));
        }
        self.folder(path.split('/')).map(|_| ()).ok_or_else(|| TreeError::Conflict(path.to_owned()))
    }

    /// Adds the directory if necessary; `None` if another input is in its way.
    fn folder<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Option<&mut InputRoot> {
        let mut folder = self;
        for name in names {
            let entry = folder.0.entry(name.to_owned());
            match entry.or_insert_with(|| Entry::Folder(InputRoot::default())) {
                Entry::Folder(inner) => folder = inner,
                Entry::Node(_) => return None,
            }
        }
        Some(folder)
    }

    /// Encodes the directories.
    #[must_use]
    pub fn encode(&self) -> EncodedTree {
        let mut blobs = Vec::new();
        let root = self.encode_into(&mut blobs);
        EncodedTree { root, blobs }
    }

    /// The map's order is the protocol's: names are unique and sorted by bytes.
    fn encode_into(&self, blobs: &mut Vec<(Digest, Vec<u8>)>) -> Digest {
        let mut directory = reapi::Directory::default();
        for (name, entry) in &self.0 {
            let name = name.clone();
            let inner = match entry {
                Entry::Node(Node::File { digest, is_executable }) => {
                    let (digest, is_executable) = (Some(digest.to_message()), *is_executable);
                    directory.files.push(reapi::FileNode {
                        name,
                        digest,
                        is_executable,
                        ..Default::default()
                    });
                    continue;
                }
                Entry::Node(Node::Directory(digest)) => *digest,
                Entry::Folder(folder) => folder.encode_into(blobs),
            };
            directory.directories.push(reapi::DirectoryNode { name, digest: Some(inner.to_message()) });
        }
        let bytes = directory.encode_to_vec();
        let digest = Digest::compute(&bytes);
        blobs.push((digest, bytes));
        digest
    }
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('\0')
}

/// A command and how it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The program's path in the input root, and its arguments.
    pub arguments: Vec<String>,
    /// Paths of the files that it writes.
    pub outputs: Vec<String>,
    /// Properties that select a worker.
    pub platform: BTreeMap<String, String>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Maximum run time.
    pub timeout: Duration,
    /// Maximum time in the queue, if not the default. Not part of the action.
    pub queue: Option<Duration>,
    /// Whether each execution runs, and its result is not kept.
    pub do_not_cache: bool,
}

/// An encoded action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The key of its result.
    pub digest: Digest,
    /// Output paths, sorted.
    pub outputs: Vec<String>,
    /// The messages of the action and its command.
    pub blobs: Vec<(Digest, Vec<u8>)>,
    /// See [`Command::queue`].
    pub(crate) queue: Option<Duration>,
    /// Maximum time in the queue and of the run, if not the default.
    pub(crate) limit: Option<Duration>,
    /// See [`Command::do_not_cache`].
    pub(crate) do_not_cache: bool,
}

impl Action {
    /// Encodes the action that runs `command` in `root`.
    #[must_use]
    #[allow(deprecated)]
    pub fn new(command: &Command, root: Digest) -> Action {
        let mut outputs = command.outputs.clone();
        outputs.sort();
        outputs.dedup();
        let properties = command
            .platform
            .iter()
            .map(|(name, value)| reapi::platform::Property { name: name.clone(), value: value.clone() });
        let platform =
            (!command.platform.is_empty()).then(|| reapi::Platform { properties: properties.collect() });
        // Sorted by name, as the protocol requires.
        let environment = command.environment.iter().map(|(name, value)| {
            reapi::command::EnvironmentVariable { name: name.clone(), value: value.clone() }
        });
        let encoded_command = reapi::Command {
            arguments: command.arguments.clone(),
            environment_variables: environment.collect(),
            output_paths: outputs.clone(),
            // Servers before version 2.2 read it here.
            platform: platform.clone(),
            ..Default::default()
        };
        let encoded_command = encoded_command.encode_to_vec();
        let command_digest = Digest::compute(&encoded_command);
        let action = reapi::Action {
            command_digest: Some(command_digest.to_message()),
            input_root_digest: Some(root.to_message()),
            timeout: prost_types::Duration::try_from(command.timeout).ok(),
            platform,
            do_not_cache: command.do_not_cache,
            ..Default::default()
        };
        let action = action.encode_to_vec();
        let digest = Digest::compute(&action);
        let blobs = vec![(command_digest, encoded_command), (digest, action)];
        let Command { queue, do_not_cache, timeout, .. } = *command;
        let limit = queue.map(|queue| queue + timeout);
        Action { digest, outputs, blobs, queue, limit, do_not_cache }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn file(text: &str) -> Node {
        Node::File { digest: Digest::compute(text.as_bytes()), is_executable: false }
    }

    #[test]
    fn paths_that_are_not_canonical_are_rejected() {
        let mut root = InputRoot::default();
        for path in ["", "/a", "a/", "a//b", ".", "a/./b", "../a", "a/..", "a\0"] {
            assert_eq!(root.insert(path, file("")), Err(TreeError::Path(path.to_owned())));
        }
        root.insert("a/b", file("1")).unwrap();
        root.insert("a/b", file("1")).unwrap();
        for path in ["a/b", "a/b/c", "a"] {
            let conflict = Err(TreeError::Conflict(path.to_owned()));
            assert_eq!(root.clone().insert(path, file("2")), conflict);
        }
    }

    #[test]
    fn a_directory_may_be_empty() {
        let mut root = InputRoot::default();
        root.insert_folder("a/b").unwrap();
        root.insert_folder("a/b").unwrap();
        let empty = root.encode();
        assert_eq!(empty.blobs.len(), 3);
        root.insert("a/b/c", file("1")).unwrap();
        assert_ne!(root.encode().root, empty.root);
        let full = root.clone();
        root.insert_folder("a").unwrap();
        assert_eq!(root, full);
        assert_eq!(root.insert_folder("a/b/c"), Err(TreeError::Conflict("a/b/c".to_owned())));
        for path in ["", ".", "a/..", "/a"] {
            assert_eq!(root.insert_folder(path), Err(TreeError::Path(path.to_owned())));
        }
    }

    #[test]
    fn the_encoding_does_not_change() {
        let mut root = InputRoot::default();
        root.insert("bin/run", Node::File { digest: Digest::compute(b"program"), is_executable: true })
            .unwrap();
        root.insert("input.txt", file("text")).unwrap();
        let command = Command {
            arguments: vec!["bin/run".to_owned()],
            outputs: vec!["out".to_owned()],
            platform: BTreeMap::from([("OSFamily".to_owned(), "linux".to_owned())]),
            timeout: Duration::from_secs(60),
            ..Command::default()
        };
        let root = root.encode().root;
        let action = Action::new(&command, root);
        let expected = "5b29c009b4c1710405f19c45a15b891482d9cbb03a19054cfb33ce3187daccb2/166";
        assert_eq!(action.digest.to_string(), expected);
        let limited = Command { queue: Some(Duration::from_secs(1)), ..command.clone() };
        assert_eq!(Action::new(&limited, root).digest, action.digest);
    }

    #[test]
    fn facts_of_a_run_are_in_its_messages() {
        let environment = [("B", "2"), ("A", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let command = Command { environment: environment.into(), do_not_cache: true, ..Command::default() };
        let action = Action::new(&command, InputRoot::default().encode().root);
        let [(_, command), (_, message)] = action.blobs.try_into().unwrap();
        let variables = reapi::Command::decode(command.as_slice()).unwrap().environment_variables;
        let names: Vec<String> = variables.into_iter().map(|variable| variable.name).collect();
        assert_eq!(names, ["A", "B"]);
        assert!(reapi::Action::decode(message.as_slice()).unwrap().do_not_cache);
    }

    #[test]
    fn an_encoded_directory_is_an_input() {
        let (mut inner, mut root, mut whole) =
            (InputRoot::default(), InputRoot::default(), InputRoot::default());
        inner.insert("b/c", file("1")).unwrap();
        whole.insert("a/b/c", file("1")).unwrap();
        root.insert("a", Node::Directory(inner.encode().root)).unwrap();
        assert_eq!(root.encode().root, whole.encode().root);
    }

    proptest! {
        #[test]
        fn trees_are_canonical(
            paths in proptest::collection::btree_map("([a-c.+-]{1,2}/){0,3}[a-cé~]{1,2}", 0_u8..4, 0..20)
        ) {
            let mut root = InputRoot::default();
            let mut reverse = InputRoot::default();
            let mut kept = BTreeMap::new();
            for (path, content) in &paths {
                let digest = Digest::compute(&[*content]);
                if root.insert(path, Node::File { digest, is_executable: *content == 0 }).is_ok() {
                    kept.insert(path.clone(), *content);
                }
            }
            for (path, content) in kept.iter().rev() {
                let digest = Digest::compute(&[*content]);
                reverse.insert(path, Node::File { digest, is_executable: *content == 0 }).unwrap();
            }
            let tree = root.encode();
            // A failed insertion may leave empty folders.
            if kept.len() == paths.len() {
                prop_assert_eq!(&tree, &reverse.encode());
            }
            let blobs: HashMap<Digest, Vec<u8>> = tree.blobs.iter().cloned().collect();
            let mut found = BTreeMap::new();
            let mut waiting = vec![(String::new(), tree.root)];
            while let Some((prefix, digest)) = waiting.pop() {
                let bytes = &blobs[&digest];
                prop_assert_eq!(Digest::compute(bytes), digest);
                let directory = reapi::Directory::decode(bytes.as_slice()).unwrap();
                prop_assert_eq!(&directory.encode_to_vec(), bytes);
                let files: Vec<&str> = directory.files.iter().map(|file| file.name.as_str()).collect();
                let folders: Vec<&str> = directory.directories.iter().map(|it| it.name.as_str()).collect();
                prop_assert!(files.is_sorted_by(|a, b| a < b) && folders.is_sorted_by(|a, b| a < b));
                prop_assert!(!files.iter().any(|name| folders.contains(name)));
                for node in &directory.files {
                    let digest = Digest::from_message(node.digest.as_ref().unwrap()).unwrap();
                    found.insert(format!("{prefix}{}", node.name), (digest, node.is_executable));
                }
                for node in &directory.directories {
                    let digest = Digest::from_message(node.digest.as_ref().unwrap()).unwrap();
                    waiting.push((format!("{prefix}{}/", node.name), digest));
                }
            }
            let expected: BTreeMap<_, _> =
                kept.iter().map(|(path, content)| (path.clone(), (Digest::compute(&[*content]), *content == 0))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
