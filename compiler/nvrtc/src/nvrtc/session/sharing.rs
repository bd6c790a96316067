//! Looks results up in the cache that machines share, and stores them there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use cubinder_model::{Arch, Digest, Target, TargetKind};
use nvrtc_sys::Output;

use super::super::shared::{
    CODE, CodeResult, CompileAction, FOLDER, Input, LOG, Outputs, RESULT, Request, SharedCache, SharedEntry,
    SignatureResult, code_outputs, signature_outputs,
};
use super::entry::{Code, CodeEntry};
use super::*;
use crate::codegen::{display_name, without_detours};
use crate::cubin;

/// A cache that machines share, and what the session did with it.
#[derive(Debug)]
pub(super) struct Sharing {
    cache: Arc<dyn SharedCache>,
    /// The project's folder.
    root: PathBuf,
    /// Whether nothing is compiled on this machine.
    is_remote_only: bool,
    /// Keys that were looked up, and whether the cache had a result.
    asked: Mutex<HashMap<Digest, bool>>,
    /// Numbers of compiles that are not shared, by reason.
    unshared: Mutex<BTreeMap<&'static str, u64>>,
    /// Number of compiles on this machine that may start.
    free: Mutex<usize>,
    released: Condvar,
}

/// A compile on this machine, beside threads that wait for workers.
pub(super) struct LocalCompile<'s>(&'s Sharing);

impl Drop for LocalCompile<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.released.notify_one();
    }
}

/// Where a result is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    Cache,
    /// Workers compile what the cache lacks.
    CacheAndWorkers,
}

/// Why a result is not used.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    /// It is for a machine with other paths.
    OtherPaths,
    Invalid(String),
}

impl<T: Into<String>> From<T> for Unusable {
    fn from(reason: T) -> Unusable {
        Unusable::Invalid(reason.into())
    }
}

/// An include folder and its name in actions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    local: PathBuf,
    /// Absolute, without detours.
    absolute: PathBuf,
    name: String,
}

const LINE_INFORMATION: &str = "line information contains paths of this machine";
const OPEN_INCLUDES: &str = "the included files or the options are not known completely";
const OUTSIDE: &str = "a header is in no include folder and not in the project";
const NOT_UTF_8: &str = "the name of a file is not UTF-8";
const MACHINE_PATH: &str = "the code or a message contains a path of this machine";
const OLD_NVRTC: &str = "this NVRTC is not reproducible";
const UNREADABLE: &str = "an input cannot be read or has changed";

impl Session {
    /// Shares results of the project in `root` with other machines. With `is_remote_only`, results that no server
    /// returns are errors.
    #[must_use]
    pub fn sharing(mut self, cache: Arc<dyn SharedCache>, root: &Path, is_remote_only: bool) -> Session {
        let root = root.to_owned();
        self.sharing = Some(Sharing {
            cache,
            root,
            is_remote_only,
            asked: Mutex::default(),
            unshared: Mutex::default(),
            free: Mutex::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)),
            released: Condvar::new(),
        });
        self
    }

    pub(super) fn is_remote_only(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.is_remote_only)
    }

    /// Waits until a processor is free: with workers, more threads than processors run. `None` without workers.
    pub(super) fn local_compile(&self) -> Option<LocalCompile<'_>> {
        let sharing = self.sharing.as_ref().filter(|sharing| sharing.cache.executes())?;
        let free = sharing.released.wait_while(lock(&sharing.free), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Some(LocalCompile(sharing))
    }

    /// Returns the servers' warnings once.
    #[must_use]
    pub fn take_sharing_warnings(&self) -> Vec<Diagnostic> {
        self.sharing.as_ref().map(|sharing| sharing.cache.take_warnings()).unwrap_or_default()
    }

    /// Returns the numbers of compiles that are not shared, by reason.
    #[must_use]
    pub fn unshared(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.sharing.as_ref().map(|sharing| lock(&sharing.unshared).clone());
        counts.unwrap_or_default()
    }

    /// Returns whether look-ups before the compiles would save time.
    #[must_use]
    pub fn can_fetch(&self) -> bool {
        self.sharing.is_some() && self.cache.is_enabled()
    }

    /// Copies a program's code from the shared cache to the local one, unless that has it.
    pub fn fetch_code(&self, units: &[&PreparedUnit], target: Target) {
        let key = self.key("code", units, Purpose::Code(target));
        if !self.cache.contains(&key) {
            self.shared_code(units, target, &key, Search::Cache);
        }
    }

    /// Copies a kernel's signature from the shared cache to the local one, unless that has it.
    pub fn fetch_signature(&self, unit: &PreparedUnit, target: Target) {
        let key = self.key("signature", &[unit], Purpose::Signature(target.arch));
        if !self.cache.contains(&key) {
            self.shared_signature(unit, target, &key, Search::Cache);
        }
    }

    /// Returns whether workers compile, and the local cache keeps their results.
    #[must_use]
    pub fn can_execute(&self) -> bool {
        self.can_fetch() && self.sharing.as_ref().is_some_and(|sharing| sharing.cache.executes())
    }

    /// Stores a kernel's signature by a worker in the local cache, unless that has it.
    pub fn execute_signature(&self, unit: &PreparedUnit, target: Target) {
        let key = self.key("signature", &[unit], Purpose::Signature(target.arch));
        if !self.cache.contains(&key) {
            self.shared_signature(unit, target, &key, Search::CacheAndWorkers);
        }
    }

    pub(super) fn shared_code(
        &self,
        units: &[&PreparedUnit],
        target: Target,
        key: &Digest,
        search: Search,
    ) -> Option<(CodeEntry, Code)> {
        let first = units.first()?;
        self.look_up(units, Purpose::Code(target), key, search, |mut outputs, folders| {
            let result: CodeResult = parse(&outputs)?;
            let code = outputs.remove(CODE).unwrap_or_default();
            let log = String::from_utf8(outputs.remove(LOG).unwrap_or_default());
            let log = log.map_err(|_| "its log is not UTF-8".to_owned())?;
            check_target(target, &code)?;
            check_paths(&first.unit.name, folders, target, &code, &log, result.included.as_deref())?;
            let (cubin, ptx) =
                if target.kind == TargetKind::Cubin { (code, Vec::new()) } else { (Vec::new(), code) };
            let output = Output { log, lowered_names: result.symbols, cubin, ptx };
            let entry = CodeEntry::new(output, result.nvrtc, target).ok_or("it has no code")?;
            let code = entry.code(target, units.len())?;
            for symbol in &entry.symbols {
                if !code.object.kernels.iter().any(|kernel| kernel.symbol == *symbol) {
                    return Err(format!("its code has no kernel `{symbol}`").into());
                }
            }
            self.accept(first, key, &entry, result.included, folders)?;
            Ok((entry, code))
        })
    }

    pub(super) fn shared_signature(
        &self,
        unit: &PreparedUnit,
        target: Target,
        key: &Digest,
        search: Search,
    ) -> Option<Signature> {
        self.look_up(&[unit], Purpose::Signature(target.arch), key, search, |outputs, folders| {
            let SignatureResult { signature, included } = parse(&outputs)?;
            self.accept(unit, key, &signature, included, folders)?;
            Ok(signature)
        })
    }

    /// Looks a key up in the cache once. `read` checks the result.
    fn look_up<T>(
        &self,
        units: &[&PreparedUnit],
        purpose: Purpose,
        key: &Digest,
        search: Search,
        read: impl FnOnce(Outputs, &[Folder]) -> Result<T, Unusable>,
    ) -> Option<T> {
        let sharing = self.sharing.as_ref()?;
        let is_executed = search == Search::CacheAndWorkers && sharing.cache.executes();
        let is_asked = lock(&sharing.asked).contains_key(key);
        if is_asked && !is_executed {
            return None;
        }
        let (entry, folders) = match self.shared_entry(sharing, units, purpose) {
            Ok(found) => found,
            Err(reason) => {
                if !is_asked {
                    *lock(&sharing.unshared).entry(reason).or_default() += 1;
                    lock(&sharing.asked).insert(*key, false);
                }
                return None;
            }
        };
        let cached = if is_asked { None } else { entry.get() };
        let is_cached = cached.is_some();
        let outputs = cached.or_else(|| if is_executed { entry.execute() } else { None });
        let reject = |reason| match reason {
            Unusable::OtherPaths => *lock(&sharing.unshared).entry(MACHINE_PATH).or_default() += 1,
            Unusable::Invalid(reason) => entry.reject(&reason),
        };
        let found = outputs.and_then(|outputs| read(outputs, &folders).map_err(reject).ok());
        lock(&sharing.asked).insert(*key, found.is_some());
        self.count(|statistics| match (&found, is_cached) {
            (Some(_), true) => statistics.shared_hits += 1,
            (Some(_), false) => statistics.executed += 1,
            (None, _) => {}
        });
        found
    }

    /// Returns whether the local cache has the key's entry from the shared one.
    pub(super) fn is_fetched(&self, key: &Digest) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| lock(&sharing.asked).get(key) == Some(&true))
    }

    /// Stores a result of the shared cache in the local one, unless a file of this machine would take precedence over
    /// one that was read.
    fn accept<T: Serialize>(
        &self,
        prepared: &PreparedUnit,
        key: &Digest,
        entry: &T,
        included: Option<Vec<String>>,
        folders: &[Folder],
    ) -> Result<(), String> {
        let read = included.map_or(ReadFiles::NotAsked, |files| {
            ReadFiles::Traced(files.iter().map(|file| local_path(folders, file)).collect())
        });
        if let ReadFiles::Traced(read) = &read
            && let Some(file) = self.not_read_here(prepared, read)
        {
            return Err(format!("a compile here would not read `{}`", file.display()));
        }
        match self.store(prepared, key, entry, &read) {
            true => Ok(()),
            false => Err("it was compiled with other files".to_owned()),
        }
    }

    /// Returns the first file that a compile here cannot read, because another one takes precedence.
    fn not_read_here<'f>(&self, prepared: &PreparedUnit, read: &'f [PathBuf]) -> Option<&'f PathBuf> {
        let PreparedUnit { unit, settings, dependencies, .. } = prepared;
        let toolkit = &self.toolkit.include;
        let include = include_folders(unit, settings, toolkit);
        let first = Dependencies::first_files(unit, &settings.options, &include, toolkit, &self.files);
        // Computed includes may name any header of the toolkit; `store` checks their precedence.
        let is_trusted = |file: &Path| {
            dependencies.trusts_toolkit && toolkit.iter().any(|folder| file.starts_with(folder))
        };
        let is_first = |file: &Path| {
            let same = |file: PathBuf| first.iter().any(|it| it.canonicalize().is_ok_and(|it| it == file));
            first.contains(file) || file.canonicalize().is_ok_and(same)
        };
        read.iter().find(|file| !is_trusted(file) && !is_first(file))
    }

    pub(super) fn share_code(
        &self,
        units: &[&PreparedUnit],
        target: Target,
        compiled: &WorkerOutput,
        nvrtc: (i32, i32),
    ) {
        self.share(units, Purpose::Code(target), |folders| {
            if doubts(nvrtc).is_some() {
                return Err(OLD_NVRTC);
            }
            let WorkerOutput { output, printed } = compiled;
            let code = if target.kind == TargetKind::Cubin { &output.cubin } else { &output.ptx };
            let names = of_machine(folders).map(|folder| format!("{}/", folder.local.display()));
            for name in names.collect::<Vec<String>>() {
                if contains_path(code, target.kind, &name) || output.log.contains(&name) {
                    return Err(MACHINE_PATH);
                }
            }
            let (symbols, included) = (output.lowered_names.clone(), included(folders, printed.as_deref())?);
            code_outputs(output, code, &CodeResult { nvrtc, symbols, included }).ok_or(UNREADABLE)
        });
    }

    pub(super) fn share_signature(
        &self,
        unit: &PreparedUnit,
        target: Target,
        signature: &Signature,
        printed: Option<&[u8]>,
    ) {
        self.share(&[unit], Purpose::Signature(target.arch), |folders| {
            let (signature, included) = (signature.clone(), included(folders, printed)?);
            signature_outputs(&SignatureResult { signature, included }).ok_or(UNREADABLE)
        });
    }

    fn share(
        &self,
        units: &[&PreparedUnit],
        purpose: Purpose,
        outputs: impl FnOnce(&[Folder]) -> Result<Outputs, &'static str>,
    ) {
        let Some(sharing) = self.sharing.as_ref().filter(|sharing| sharing.cache.stores()) else { return };
        // A look-up counted units without an action.
        let Ok((entry, folders)) = self.shared_entry(sharing, units, purpose) else { return };
        match outputs(&folders) {
            Ok(outputs) => entry.put(&outputs),
            Err(reason) => *lock(&sharing.unshared).entry(reason).or_default() += 1,
        }
    }

    fn shared_entry<'s>(
        &self,
        sharing: &'s Sharing,
        units: &[&PreparedUnit],
        purpose: Purpose,
    ) -> Result<(Box<dyn SharedEntry + 's>, Vec<Folder>), &'static str> {
        let (action, folders) = self.action(&sharing.root, units, purpose)?;
        let entry = sharing.cache.entry(action).map_err(|_| UNREADABLE)?;
        Ok((entry, folders))
    }

    fn action(
        &self,
        root: &Path,
        units: &[&PreparedUnit],
        purpose: Purpose,
    ) -> Result<(CompileAction, Vec<Folder>), &'static str> {
        let first = units.first().ok_or(OPEN_INCLUDES)?;
        let PreparedUnit { unit, settings, dependencies, .. } = first;
        let signature = matches!(purpose, Purpose::Signature(_));
        if !dependencies.complete {
            return Err(OPEN_INCLUDES);
        }
        if !signature && has_line_information(&settings.options) {
            return Err(LINE_INFORMATION);
        }
        let toolkit = &self.toolkit.include;
        let folders = folders(root, &include_folders(unit, settings, toolkit), toolkit.len());
        let mut headers = BTreeMap::new();
        let own = folders.len() - toolkit.len();
        let is_in_encoded = |name: &str| {
            let mut encoded = folders.iter().skip(own).filter(|_| dependencies.trusts_toolkit);
            encoded.any(|folder| Path::new(name).starts_with(&folder.name))
        };
        // NVRTC resolves `kernels/../a.h` only if `kernels` exists.
        let mut needed: BTreeSet<String> = BTreeSet::new();
        for folder in folders.iter().filter(|folder| folder.local.is_dir()) {
            needed.insert(folder.name.clone());
        }
        let is_include = |path: &Path| folders.iter().any(|folder| path.starts_with(&folder.local));
        if !dependencies.candidates().all(is_include) {
            return Err(OUTSIDE);
        }
        if dependencies.trusts_toolkit {
            for folder in folders.iter().skip(own) {
                headers.insert(folder.name.clone(), Input::Folder(folder.local.clone()));
            }
        }
        for (path, digest) in dependencies.found() {
            let names = names(root, &folders, path)?;
            needed.extend(folders_before_detours(&folders, path, &names)?);
            for name in names {
                if is_in_encoded(&name) {
                    continue;
                }
                let input = Input::File(path.to_owned(), Some(digest));
                // Two spellings of a path are one file, unless a link is between them.
                if let Some(Input::File(_, known)) = headers.insert(name, input)
                    && known != Some(digest)
                {
                    return Err(OUTSIDE);
                }
            }
        }
        needed.retain(|name| name != "." && !is_in_encoded(name));
        let request = Request {
            signature,
            target: purpose.target().to_string(),
            kernels: units.iter().map(|unit| unit.unit.kernel.clone()).collect(),
            include: folders.iter().map(|folder| folder.name.clone()).collect(),
            options: settings.options.clone(),
        };
        let program = self.workers.as_ref().map(|workers| workers.program().to_owned());
        let program = program.or_else(|| std::env::current_exe().ok()).ok_or(UNREADABLE)?;
        let nvrtc = self.toolkit.nvrtc_files().map_err(|_| UNREADABLE)?;
        let action = CompileAction::new(&request, unit, headers, needed, &program, &nvrtc)?;
        Ok((action, folders))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parse<T: DeserializeOwned>(outputs: &Outputs) -> Result<T, String> {
    let bytes = outputs.get(RESULT).map(Vec::as_slice).unwrap_or_default();
    serde_json::from_slice(bytes).map_err(|error| format!("`{RESULT}` is invalid: {error}"))
}

/// Fails unless code is for the target. A cubin may lack a note of its suffix; PTX has the whole name.
fn check_target(target: Target, code: &[u8]) -> Result<(), String> {
    let Arch { major, minor, suffix } = target.arch;
    let is_right = match target.kind {
        TargetKind::Cubin => {
            let arch = cubin::read(code).map_err(|error| error.to_string())?.arch;
            let known = cubin::cubin_origin(code).map_err(|error| error.to_string())?.suffix;
            arch == u32::from(major) * 10 + u32::from(minor) && known.is_none_or(|known| known == suffix)
        }
        TargetKind::Ptx | TargetKind::Native => {
            cubin::read_ptx(code).map_err(|error| error.to_string())?.target == format!("sm_{}", target.arch)
        }
    };
    if is_right { Ok(()) } else { Err(format!("its code is not for {target}")) }
}

/// Names include folders, of which the last `toolkit` ones are CUDA's. Those in the project keep their path, which
/// `__FILE__` in headers can put into code.
fn folders(root: &Path, include: &[PathBuf], toolkit: usize) -> Vec<Folder> {
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

/// Returns the path relative to the project if it is in it.
fn in_project(root: &Path, path: &Path) -> Option<String> {
    let name = display_name(path, root);
    let is_inside = !name.starts_with('/') && !name.split('/').any(|part| part == "..");
    let name = if name.is_empty() { ".".to_owned() } else { name };
    (is_inside && name != FOLDER && !name.starts_with(&format!("{FOLDER}/"))).then_some(name)
}

/// Returns the names of a header: one for each include folder with it, else its path in the project.
fn names(root: &Path, folders: &[Folder], path: &Path) -> Result<Vec<String>, &'static str> {
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

/// Returns the directories before each `..` of a header's path in the action. Fails unless the path leads to one of the
/// header's `names` there.
fn folders_before_detours(
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
fn of_machine(folders: &[Folder]) -> impl Iterator<Item = &Folder> {
    folders.iter().filter(|folder| folder.local != Path::new(&folder.name))
}

/// Fails if a result contains the action's path of a header that has another path here, except that of the unit.
fn check_paths(
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

/// Overwrites each occurrence of a text.
fn without(bytes: &[u8], text: &[u8]) -> Vec<u8> {
    let mut rest = bytes.to_vec();
    for at in 0..bytes.len() {
        if !text.is_empty()
            && bytes.get(at..).is_some_and(|bytes| bytes.starts_with(text))
            && let Some(found) = rest.get_mut(at..at + text.len())
        {
            found.fill(0);
        }
    }
    rest
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len().max(1)).any(|bytes| bytes == text)
}

/// Returns the action's names of the files that NVRTC opened.
fn included(folders: &[Folder], printed: Option<&[u8]>) -> Result<Option<Vec<String>>, &'static str> {
    let files = match ReadFiles::parse(printed) {
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
fn local_path(folders: &[Folder], file: &str) -> PathBuf {
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
fn in_ptx(text: &str) -> String {
    let numbers: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests;
