//! The plugin libraries of a run: those that the plan's nodes need, and those of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cubinder_library::Mode;
use cubinder_model::container::{self, Container};
use cubinder_model::{Digest, ShortDigest};
use cubinder_source::atomic_file::parent_folder;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::words::counted;

use super::errors::{NoCodeLibrary, NoRuntimeLibrary};

/// Libraries to load, in order.
#[derive(Debug, Default)]
pub struct Libraries {
    /// Libraries.
    pub loaded: Vec<LoadedLibrary>,
    /// Number of nodes whose library is in the plan.
    pub carried: usize,
}

/// A library to load.
#[derive(Debug, PartialEq, Eq)]
pub struct LoadedLibrary {
    /// Path.
    pub path: PathBuf,
    /// Number of nodes that need it; `None` if only the user named it.
    pub nodes: Option<usize>,
}

/// Nodes of a plan, without duplicates.
#[derive(Default)]
struct PlanNodes {
    /// Number of nodes with their own code.
    own: usize,
    /// Number of nodes by the bundle that they refer to.
    referring: BTreeMap<ShortDigest, usize>,
    bundles: BTreeSet<ShortDigest>,
}

impl PlanNodes {
    fn read(plan: &[u8]) -> PlanNodes {
        let (mut nodes, mut known) = (PlanNodes::default(), BTreeSet::new());
        for (_, found) in container::scan(plan) {
            // The library reports damaged containers when it loads them.
            let Ok(found) = found else { continue };
            if !known.insert(found.digest.to_string()) {
                continue;
            }
            match found.container {
                Container::Bundle(_) => drop(nodes.bundles.insert(found.digest.shortened())),
                Container::Node(_) => nodes.own += 1,
                Container::NodeReference(reference) => {
                    *nodes.referring.entry(reference.bundle).or_default() += 1;
                }
            }
        }
        nodes
    }
}

/// What a library file is for the nodes of a plan.
enum Provides {
    /// The runtime library.
    OwnCode,
    CodeOf(ShortDigest),
    Other,
}

/// Chooses the libraries for a plan.
///
/// # Errors
/// Unreadable and missing libraries.
pub(super) fn choose(
    plan: &Path,
    bytes: &[u8],
    named: &[PathBuf],
    runtime_library: Result<PathBuf, Diagnostic>,
) -> Result<Libraries, Vec<Diagnostic>> {
    let nodes = PlanNodes::read(bytes);
    let (mut libraries, mut errors, mut provided) = (Libraries::default(), Vec::new(), Vec::new());
    for path in named {
        match provides(path) {
            Ok(provides) => {
                provided.push(provides);
                libraries.add(path, None);
            }
            Err(error) => errors.push(error.help("check the path, and the permissions of the file")),
        }
    }
    let count = |count: usize| counted(count, "node");
    if nodes.own > 0 && !provided.iter().any(|one| matches!(one, Provides::OwnCode)) {
        match runtime_library {
            Ok(path) => libraries.add(&path, Some(nodes.own)),
            Err(error) => {
                errors.push(NoRuntimeLibrary { nodes: count(nodes.own), why: error.message }.into());
            }
        }
    }
    for (bundle, number) in nodes.referring {
        if nodes.bundles.contains(&bundle) {
            libraries.carried += number;
            continue;
        }
        let is_it = |provides: &Provides| matches!(provides, Provides::CodeOf(digest) if *digest == bundle);
        if provided.iter().any(is_it) {
            continue;
        }
        let beside = code_libraries(parent_folder(plan));
        match beside.iter().find(|(_, digest)| *digest == bundle) {
            Some((path, _)) => libraries.add(path, Some(number)),
            None => {
                let found =
                    beside.iter().map(|(path, digest)| format!("`{}` with digest {digest}", path.display()));
                let found = found.collect();
                let bundle = bundle.to_string();
                errors.push(NoCodeLibrary { nodes: count(number), bundle, found }.into());
            }
        }
    }
    if errors.is_empty() { Ok(libraries) } else { Err(errors) }
}

impl Libraries {
    /// Adds an absolute path: the loader searches its path for names without a folder.
    fn add(&mut self, path: &Path, nodes: Option<usize>) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.loaded.push(LoadedLibrary { path, nodes });
    }
}

fn provides(path: &Path) -> Result<Provides, Diagnostic> {
    let bytes = cubinder_library::read_file(path)?;
    Ok(match cubinder_library::read_bytes(path, &bytes) {
        Ok(None) => Provides::OwnCode,
        Ok(Some(attached)) if attached.mode == Mode::CodeLibrary => {
            let range =
                usize::try_from(attached.range.start).ok().zip(usize::try_from(attached.range.end).ok());
            let digest = range.and_then(|(start, end)| digest(bytes.get(start..end)?));
            digest.map_or(Provides::Other, Provides::CodeOf)
        }
        // TensorRT reports unusable files.
        Ok(Some(_)) | Err(_) => Provides::Other,
    })
}

fn digest(bundle: &[u8]) -> Option<ShortDigest> {
    container::digest(bundle).ok().map(|(digest, _): (Digest, usize)| digest.shortened())
}

/// Returns the code libraries in a folder, with their bundles' digests.
fn code_libraries(folder: &Path) -> Vec<(PathBuf, ShortDigest)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with("-code.so"));
    paths.sort();
    let code = |path: PathBuf| match provides(&path) {
        Ok(Provides::CodeOf(digest)) => Some((path, digest)),
        _ => None,
    };
    paths.into_iter().filter_map(code).collect()
}
