//! Paths in actions: names of include folders and headers that do not depend on the machine.

use std::path::{Component, Path, PathBuf};

use cubinder_model::{Target, TargetKind};
use memchr::memmem;

use super::super::super::ReadFiles;
use super::super::super::shared::FOLDER;
use super::{NOT_UTF_8, OPEN_INCLUDES, OUTSIDE, Unusable};
use crate::codegen::{display_name, without_detours};

/// An include folder and its name in actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) local: PathBuf,
    /// Absolute, without detours.
    pub(super) absolute: PathBuf,
    pub(super) name: String,
}

/// Names include folders, of which the last `toolkit` ones are CUDA's. Those in the project keep their path, which
/// `__FILE__` in headers can put into code.
pub(super) fn folders(root: &Path, include: &[PathBuf], toolkit: usize) -> Vec<Folder> {
    let own = include.len().saturating_sub(toolkit);
    let named = include.iter().enumerate().map(|(index, local)| {
        let name = match index.checked_sub(own) {
            Some(index) => format!("{FOLDER}/toolkit/{index}"),
            None => in_project(root, local).unwrap_or_else(|| format!("{FOLDER}/include/{index}")),
        };
        Folder { local: local.clone(), absolute: absolute(local), name }
    });
    named.collect()
}

fn absolute(path: &Path) -> PathBuf {
    without_detours(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn in_project(root: &Path, path: &Path) -> Option<String> {
    let name = display_name(path, root);
    let is_inside = !name.starts_with('/') && !name.split('/').any(|part| part == "..");
    let name = if name.is_empty() { ".".to_owned() } else { name };
    (is_inside && name != FOLDER && !name.starts_with(&format!("{FOLDER}/"))).then_some(name)
}

/// Returns the names of a header: one for each include folder with it, else its path in the project.
pub(super) fn names(root: &Path, folders: &[Folder], path: &Path) -> Result<Vec<String>, &'static str> {
    let clean = absolute(path);
    clean.to_str().ok_or(NOT_UTF_8)?;
    let in_folder = folders.iter().filter_map(|folder| {
        let rest = clean.strip_prefix(&folder.absolute).ok()?.to_string_lossy();
        Some(if folder.name == "." { rest.into_owned() } else { format!("{}/{rest}", folder.name) })
    });
    let mut names: Vec<String> = in_folder.collect();
    if names.is_empty() {
        names.push(in_project(root, path).ok_or(OUTSIDE)?);
    }
    Ok(names)
}

/// Returns the directories before each `..` of a header's path in the action. Fails unless the path leads to one of
/// the header's `names`.
pub(super) fn folders_before_detours(
    folders: &[Folder],
    path: &Path,
    names: &[String],
) -> Result<Vec<String>, &'static str> {
    let mut before = Vec::new();
    if !path.components().any(|part| part == Component::ParentDir) {
        return Ok(before);
    }
    // A link before `..` leads to another folder.
    if path.canonicalize().ok() != absolute(path).canonicalize().ok() {
        return Err(OUTSIDE);
    }
    for folder in folders {
        let Ok(rest) = path.strip_prefix(&folder.local) else { continue };
        let mut shared = PathBuf::from(&folder.name);
        for part in rest.components() {
            if part == Component::ParentDir {
                let folder = without_detours(&shared);
                before.push(folder.to_str().ok_or(NOT_UTF_8)?.to_owned());
            }
            shared.push(part);
        }
        let shared = without_detours(&shared);
        if !names.iter().any(|name| Path::new(name) == shared) {
            return Err(OUTSIDE);
        }
    }
    before.retain(|folder| !folder.is_empty());
    Ok(before)
}

/// Returns the include folders that have another path in actions.
pub(super) fn of_machine(folders: &[Folder]) -> impl Iterator<Item = &Folder> {
    folders.iter().filter(|folder| folder.local != Path::new(&folder.name))
}

/// Fails if a result contains the action's path of a header with another path here, except the unit's.
pub(super) fn check_paths(
    unit: &str,
    folders: &[Folder],
    target: Target,
    code: &[u8],
    log: &str,
    included: Option<&[String]>,
) -> Result<(), Unusable> {
    /// Shorter texts are in code by chance.
    const SHORTEST: usize = 4;
    let spelled = |path: &str| match target.kind {
        TargetKind::Cubin => path.to_owned(),
        TargetKind::Ptx | TargetKind::Native => in_ptx(path),
    };
    let code = without(code, spelled(unit).as_bytes());
    let log = without(log.as_bytes(), unit.as_bytes());
    let is_moved =
        |file: &&String| without_detours(&local_path(folders, file)) != without_detours(Path::new(file));
    let files = included.into_iter().flatten().filter(is_moved).cloned();
    let names = of_machine(folders).map(|folder| format!("{}/", folder.name));
    let mut paths = names.filter(|name| name.len() >= SHORTEST).chain(files);
    let has = |path: String| contains(&code, spelled(&path).as_bytes()) || contains(&log, path.as_bytes());
    if paths.any(has) { Err(Unusable::OtherPaths) } else { Ok(()) }
}

fn without(bytes: &[u8], text: &[u8]) -> Vec<u8> {
    let mut rest = bytes.to_vec();
    for at in memmem::find_iter(bytes, text) {
        if let Some(found) = rest.get_mut(at..at + text.len()) {
            found.fill(0);
        }
    }
    rest
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    !text.is_empty() && memmem::find(bytes, text).is_some()
}

/// Returns the action's names of the files that NVRTC opened.
pub(super) fn included(folders: &[Folder], read: &ReadFiles) -> Result<Option<Vec<String>>, &'static str> {
    let files = match read {
        ReadFiles::NotAsked => return Ok(None),
        ReadFiles::Unknown => return Err(OPEN_INCLUDES),
        ReadFiles::Traced(files) => files,
    };
    let name = |file: &PathBuf| {
        let found = folders.iter().find_map(|folder| Some((folder, file.strip_prefix(&folder.local).ok()?)));
        let (folder, rest) = found.ok_or(OUTSIDE)?;
        let rest = rest.to_str().ok_or(NOT_UTF_8)?;
        Ok(if folder.name == "." { rest.to_owned() } else { format!("{}/{rest}", folder.name) })
    };
    files.iter().map(name).collect::<Result<_, _>>().map(Some)
}

/// Inverts [`included`]: the longest folder is the most specific.
pub(super) fn local_path(folders: &[Folder], file: &str) -> PathBuf {
    let file = Path::new(file);
    let in_folder = folders.iter().filter_map(|folder| {
        let name = if folder.name == "." { Path::new("") } else { Path::new(&folder.name) };
        Some((name.components().count(), folder.local.join(file.strip_prefix(name).ok()?)))
    });
    in_folder.max_by_key(|(length, _)| *length).map_or_else(|| file.to_owned(), |(_, path)| path)
}

/// Returns whether code contains a path.
#[must_use]
pub fn contains_path(code: &[u8], kind: TargetKind, path: &str) -> bool {
    match kind {
        TargetKind::Cubin => contains(code, path.as_bytes()),
        TargetKind::Ptx | TargetKind::Native => contains(code, in_ptx(path).as_bytes()),
    }
}

/// PTX strings are numbers: `.b8 name[3] = {47, 97, 0};`
pub(super) fn in_ptx(text: &str) -> String {
    let numbers: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    numbers.join(", ")
}
