//! Plugin libraries of a run: the nodes' and the user's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cubinder_library::Mode;
use cubinder_model::ShortDigest;
use cubinder_model::container::{self, Container};
use cubinder_source::atomic_file::parent_folder;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::words::counted;

use super::errors::{NoCodeLibrary, NoRuntimeLibrary};

/// Libraries to load, in order.
#[derive(Debug, Default)]
pub struct Libraries {
    /// Libraries.
    pub loaded: Vec<LoadedLibrary>,
    /// Number of nodes whose library the plan contains.
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

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// For nodes with their own code.
    Runtime,
    /// Has this bundle's code.
    Code(ShortDigest),
}

/// Returns the libraries that nodes need, with the number of nodes, and the carried ones.
fn roles(plan: &[u8]) -> (BTreeMap<Role, usize>, BTreeSet<Role>) {
    let (mut needed, mut carried, mut known) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    // The library reports damaged containers when it loads them.
    for found in container::scan(plan).filter_map(|(_, found)| found.ok()) {
        let role = match found.container {
            Container::Bundle(_) => {
                carried.insert(Role::Code(found.digest.shortened()));
                continue;
            }
            Container::Node(_) => Role::Runtime,
            Container::NodeReference(reference) => Role::Code(reference.bundle),
        };
        // TensorRT stores nodes twice.
        if known.insert(found.digest.to_string()) {
            *needed.entry(role).or_default() += 1;
        }
    }
    (needed, carried)
}

/// Chooses the libraries for a plan.
///
/// # Errors
/// Unreadable and missing libraries.
pub(super) fn choose(
    plan: &Path,
    bytes: &[u8],
    named: &[PathBuf],
    runtime_library: &Result<PathBuf, Diagnostic>,
) -> Result<Libraries, Vec<Diagnostic>> {
    let (mut libraries, mut errors, mut provided) = (Libraries::default(), Vec::new(), Vec::new());
    for path in named {
        match provides(path) {
            Ok(role) => {
                provided.extend(role);
                libraries.add(path, None);
            }
            Err(error) => errors.push(error.help("check the path, and the permissions of the file")),
        }
    }
    let (needed, carried) = roles(bytes);
    for (role, number) in needed {
        let nodes = counted(number, "node");
        match &role {
            _ if carried.contains(&role) => libraries.carried += number,
            _ if provided.contains(&role) => {}
            Role::Runtime => match runtime_library {
                Ok(path) => libraries.add(path, Some(number)),
                Err(error) => errors.push(NoRuntimeLibrary { nodes, why: error.message.clone() }.into()),
            },
            Role::Code(bundle) => {
                let beside = code_libraries(parent_folder(plan));
                if let Some((path, _)) = beside.iter().find(|(_, digest)| digest == bundle) {
                    libraries.add(path, Some(number));
                    continue;
                }
                let found =
                    beside.iter().map(|(path, digest)| format!("`{}` with digest {digest}", path.display()));
                let found = found.collect();
                errors.push(NoCodeLibrary { nodes, bundle: bundle.to_string(), found }.into());
            }
        }
    }
    if errors.is_empty() { Ok(libraries) } else { Err(errors) }
}

impl Libraries {
    /// Adds an absolute path, because the loader searches its path for bare names.
    fn add(&mut self, path: &Path, nodes: Option<usize>) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.loaded.push(LoadedLibrary { path, nodes });
    }
}

fn provides(path: &Path) -> Result<Option<Role>, Diagnostic> {
    let bytes = cubinder_library::read_file(path)?;
    Ok(match cubinder_library::read_bytes(path, &bytes) {
        Ok(None) => Some(Role::Runtime),
        Ok(Some(attached)) if attached.mode == Mode::CodeLibrary => {
            let [start, end] = [attached.range.start, attached.range.end].map(usize::try_from);
            let bundle = start.ok().zip(end.ok()).and_then(|(start, end)| bytes.get(start..end));
            let digest = bundle.and_then(|bundle| container::digest(bundle).ok());
            digest.map(|(digest, _)| Role::Code(digest.shortened()))
        }
        // TensorRT reports unusable files.
        Ok(Some(_)) | Err(_) => None,
    })
}

fn code_libraries(folder: &Path) -> Vec<(PathBuf, ShortDigest)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with("-code.so"));
    paths.sort();
    let code = |path: PathBuf| match provides(&path) {
        Ok(Some(Role::Code(digest))) => Some((path, digest)),
        _ => None,
    };
    paths.into_iter().filter_map(code).collect()
}
