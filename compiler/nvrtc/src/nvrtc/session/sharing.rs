//! Looks results up in the shared cache, and stores them there.

mod execution;
mod paths;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use cubinder_model::{Arch, Digest, Target, TargetKind};
use nvrtc_sys::Output;

use super::super::shared::{
    Activity, CODE, CodeResult, CompileAction, Input, LOG, Outputs, RESULT, Replacement, Request,
    SharedCache, SharedEntry, SignatureResult, code_outputs, signature_outputs,
};
use super::entry::{Code, CodeEntry};
use super::*;
use crate::cubin;
pub use execution::{Batch, Compile};
pub use paths::contains_path;
use paths::{Folder, check_paths, folders, folders_before_detours, included, local_path, names, of_machine};

/// The shared cache, and what the session did with it.
#[derive(Debug)]
pub(super) struct Sharing {
    cache: Arc<dyn SharedCache>,
    /// The project's folder.
    root: PathBuf,
    replacement: Replacement,
    /// Keys that were looked up or that have no action.
    asked: Mutex<HashMap<Digest, Copied>>,
    /// Keys that workers executed or tried to, with messages of texts that do not compile.
    executed: Mutex<HashMap<Digest, Option<String>>>,
    /// Accepted code until it is compiled: the local cache would check it again.
    accepted: Mutex<HashMap<Digest, (CodeEntry, Code)>>,
    accepted_signatures: Mutex<HashMap<Digest, Signature>>,
    unshared: Mutex<BTreeMap<&'static str, u64>>,
    /// Number of compiles on this machine that may start.
    free: Mutex<usize>,
    released: Condvar,
}

/// Outcome of a copy between the local and the shared cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The other cache has the result, or was asked to store it.
    Complete,
    /// The local cache had it.
    Present,
    /// The source lacks it.
    Missing,
    /// It is not shared ([`Session::unshared`]), or the cache stores nothing.
    Unshared,
}

/// A compile on this machine, beside threads that wait for workers.
pub(super) struct LocalCompile<'s>(&'s Sharing);

impl Drop for LocalCompile<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.released.notify_one();
    }
}

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

const LINE_INFORMATION: &str = "line information contains paths of this machine";
const OPEN_INCLUDES: &str = "the included files or the options are not known completely";
const OUTSIDE: &str = "a header is in no include folder and not in the project";
const NOT_UTF_8: &str = "the name of a file is not UTF-8";
const MACHINE_PATH: &str = "the code or a message contains a path of this machine";
const OLD_NVRTC: &str = "this NVRTC is not reproducible";
const UNREADABLE: &str = "an input cannot be read or has changed";

impl Sharing {
    fn reject(&self, entry: &dyn SharedEntry, key: &Digest, reason: &Unusable) {
        match reason {
            Unusable::OtherPaths => {
                lock(&self.asked).remove(key);
                self.count_unshared(key, MACHINE_PATH);
            }
            Unusable::Invalid(reason) => entry.reject(reason),
        }
    }

    fn mark_fetched(&self, key: Digest) {
        lock(&self.asked).insert(key, Copied::Complete);
    }

    /// Counts a compile without an action once.
    fn count_unshared(&self, key: &Digest, reason: &'static str) {
        if lock(&self.asked).insert(*key, Copied::Unshared) != Some(Copied::Unshared) {
            *lock(&self.unshared).entry(reason).or_default() += 1;
        }
    }
}

impl Session {
    /// Shares results of the project in `root` with other machines.
    #[must_use]
    pub fn sharing(mut self, cache: Arc<dyn SharedCache>, root: &Path, replacement: Replacement) -> Session {
        let root = root.to_owned();
        self.sharing = Some(Sharing {
            cache,
            root,
            replacement,
            asked: Mutex::default(),
            executed: Mutex::default(),
            accepted: Mutex::default(),
            accepted_signatures: Mutex::default(),
            unshared: Mutex::default(),
            free: Mutex::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)),
            released: Condvar::new(),
        });
        self
    }

    pub(super) fn is_remote_only(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.replacement != Replacement::Compiles)
    }

    pub(super) fn why_not_executed(&self, key: &Digest) -> String {
        let Some(sharing) = &self.sharing else { return String::new() };
        let known = lock(&sharing.executed).get(key).cloned();
        match known.flatten() {
            Some(messages) => format!("it does not compile on a worker: {messages}"),
            None if lock(&sharing.asked).get(key) == Some(&Copied::Unshared) => {
                "its result depends on this machine (`--verbose` without `--remote-only` lists reasons)"
                    .to_owned()
            }
            None if !sharing.cache.executes() => {
                "the shared cache lacks the result, and no executor is configured".to_owned()
            }
            None => "the server or its workers failed, for which there is a warning".to_owned(),
        }
    }

    /// Waits until a processor is free: with workers, more threads than processors run. `None` without workers.
    pub(super) fn local_compile(&self) -> Option<LocalCompile<'_>> {
        let sharing = self.sharing.as_ref().filter(|sharing| sharing.cache.executes())?;
        let free = sharing.released.wait_while(lock(&sharing.free), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Some(LocalCompile(sharing))
    }

    /// Returns what workers do, and did.
    #[must_use]
    pub fn worker_activity(&self) -> Activity {
        self.sharing.as_ref().map(|sharing| sharing.cache.activity()).unwrap_or_default()
    }

    /// Returns the servers' warnings once.
    #[must_use]
    pub fn take_sharing_warnings(&self) -> Vec<Diagnostic> {
        self.sharing.as_ref().map(|sharing| sharing.cache.take_warnings()).unwrap_or_default()
    }

    /// Returns the numbers of unshared compiles by reason.
    #[must_use]
    pub fn unshared(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.sharing.as_ref().map(|sharing| lock(&sharing.unshared).clone());
        counts.unwrap_or_default()
    }

    /// Returns whether results are shared.
    #[must_use]
    pub fn is_sharing(&self) -> bool {
        self.sharing.is_some()
    }

    /// Copies a result from the shared cache to the local one, unless that has it.
    pub fn fetch(&self, compile: &Compile<'_>) -> Copied {
        let Compile { units, target, is_signatures } = compile;
        if self.is_known(compile) {
            return Copied::Present;
        }
        let key = self.compile_key(compile);
        let is_found = match is_signatures {
            true => self.shared_signatures(units, &self.signature_keys(units, *target), *target).is_some(),
            false => {
                let found = self.shared_code(units, *target, &key);
                found.map(|code| self.keep_accepted(&key, code)).is_some()
            }
        };
        let outcome = || lock(&self.sharing.as_ref()?.asked).get(&key).copied();
        if is_found { Copied::Complete } else { outcome().unwrap_or(Copied::Missing) }
    }

    fn keep_accepted(&self, key: &Digest, code: (CodeEntry, Code)) {
        if let Some(sharing) = &self.sharing
            && sharing.replacement != Replacement::NoCopies
        {
            lock(&sharing.accepted).insert(*key, code);
        }
    }

    pub(super) fn take_accepted(&self, key: &Digest) -> Option<(CodeEntry, Code)> {
        lock(&self.sharing.as_ref()?.accepted).remove(key)
    }

    fn keep_signature(&self, key: &Digest, signature: &Signature) {
        if let Some(sharing) = &self.sharing {
            lock(&sharing.accepted_signatures).insert(*key, signature.clone());
        }
    }

    pub(super) fn take_signature(&self, key: &Digest) -> Option<Signature> {
        lock(&self.sharing.as_ref()?.accepted_signatures).remove(key)
    }

    /// Copies a result from the local cache to the shared one.
    pub fn push(&self, compile: &Compile<'_>) -> Copied {
        let pushed =
            if compile.is_signatures { self.push_signatures(compile) } else { self.push_code(compile) };
        pushed.unwrap_or(Copied::Missing)
    }

    fn push_code(&self, compile: &Compile<'_>) -> Option<Copied> {
        let Compile { units, target, .. } = compile;
        let entry = self.load::<CodeEntry>(units.first()?, &self.compile_key(compile))?;
        let (output, read) = (entry.value.output(*target)?, self.load_read(entry.read)?);
        Some(self.share_code(units, *target, &output, &read, entry.value.nvrtc))
    }

    fn push_signatures(&self, compile: &Compile<'_>) -> Option<Copied> {
        let Compile { units, target, .. } = compile;
        let keys = self.signature_keys(units, *target);
        let entries = units.iter().zip(&keys).map(|(unit, key)| self.load::<Signature>(unit, key));
        let entries: Vec<Stored<Signature>> = entries.collect::<Option<_>>()?;
        // A text's kernels read the same files.
        let read = self.load_read(entries.first()?.read)?;
        let signatures = entries.into_iter().map(|entry| entry.value).collect();
        Some(self.share_signatures(units, *target, signatures, &read))
    }

    fn is_known(&self, compile: &Compile<'_>) -> bool {
        let Compile { units, target, is_signatures } = compile;
        match is_signatures {
            true => {
                let keys = self.signature_keys(units, *target);
                units.iter().zip(&keys).all(|(unit, key)| self.load::<Signature>(unit, key).is_some())
            }
            false => {
                let entry = |unit: &&PreparedUnit| self.load::<CodeEntry>(unit, &self.compile_key(compile));
                units.first().and_then(entry).is_some()
            }
        }
    }

    fn compile_key(&self, compile: &Compile<'_>) -> Digest {
        self.key(compile.kind(), &compile.units, compile.purpose())
    }

    pub(super) fn shared_code(
        &self,
        units: &[&PreparedUnit],
        target: Target,
        key: &Digest,
    ) -> Option<(CodeEntry, Code)> {
        let read = |outputs, folders: &[Folder]| self.accept_code(units, target, key, outputs, folders);
        self.look_up(units, Purpose::Code(target), key, 1, read)
    }

    /// Copies signatures from the shared cache to the local one, where `keys` are theirs.
    pub(super) fn shared_signatures(
        &self,
        units: &[&PreparedUnit],
        keys: &[Digest],
        target: Target,
    ) -> Option<Vec<Signature>> {
        let purpose = Purpose::Signature(target.arch);
        let key = self.key("signature", units, purpose);
        let read = |outputs, folders: &[Folder]| self.accept_signatures(units, keys, &outputs, folders);
        self.look_up(units, purpose, &key, units.len() as u64, read)
    }

    /// Looks a key up in the cache once. `read` checks the result, which counts as `count`.
    fn look_up<T>(
        &self,
        units: &[&PreparedUnit],
        purpose: Purpose,
        key: &Digest,
        count: u64,
        read: impl FnOnce(Outputs, &[Folder]) -> Result<T, Unusable>,
    ) -> Option<T> {
        let sharing = self.sharing.as_ref()?;
        if lock(&sharing.asked).contains_key(key) {
            return None;
        }
        let (entry, folders) = match self.shared_entry(sharing, units, purpose) {
            Ok(found) => found,
            Err(reason) => {
                sharing.count_unshared(key, reason);
                return None;
            }
        };
        let found = entry.get().and_then(|outputs| {
            let reject = |reason| sharing.reject(entry.as_ref(), key, &reason);
            read(outputs, &folders).map_err(reject).ok()
        });
        match found {
            Some(_) => {
                sharing.mark_fetched(*key);
                self.count(|statistics| statistics.shared_hits += count);
            }
            None => {
                lock(&sharing.asked).entry(*key).or_insert(Copied::Missing);
            }
        }
        found
    }

    fn accept_code(
        &self,
        units: &[&PreparedUnit],
        target: Target,
        key: &Digest,
        mut outputs: Outputs,
        folders: &[Folder],
    ) -> Result<(CodeEntry, Code), Unusable> {
        let first = units.first().ok_or("it has no kernels")?;
        let result: CodeResult = parse(&outputs)?;
        let code = outputs.remove(&shared::path(0, CODE)).unwrap_or_default();
        let log = String::from_utf8(outputs.remove(&shared::path(0, LOG)).unwrap_or_default());
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
        self.accept(first, key, &entry, result.included.as_deref(), folders)?;
        Ok((entry, code))
    }

    fn accept_signatures(
        &self,
        units: &[&PreparedUnit],
        keys: &[Digest],
        outputs: &Outputs,
        folders: &[Folder],
    ) -> Result<Vec<Signature>, Unusable> {
        let SignatureResult { signatures, included } = parse(outputs)?;
        if signatures.len() != units.len() {
            return Err(format!("{} signatures for {} kernels", signatures.len(), units.len()).into());
        }
        for ((unit, key), signature) in units.iter().zip(keys).zip(&signatures) {
            self.accept(unit, key, signature, included.as_deref(), folders)?;
            self.keep_signature(key, signature);
            self.sharing.iter().for_each(|sharing| sharing.mark_fetched(*key));
        }
        Ok(signatures)
    }

    /// Returns whether the local cache has the key's entry from the shared one.
    pub(super) fn is_fetched(&self, key: &Digest) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| lock(&sharing.asked).get(key) == Some(&Copied::Complete))
    }

    /// Stores a shared result locally, unless a file of this machine would take precedence over one that was read.
    fn accept<T: Serialize>(
        &self,
        prepared: &PreparedUnit,
        key: &Digest,
        entry: &T,
        included: Option<&[String]>,
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

    /// Returns the first file that a compile here cannot read: another one takes precedence.
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
        output: &Output,
        read: &ReadFiles,
        nvrtc: (i32, i32),
    ) -> Copied {
        self.share("code", units, Purpose::Code(target), |folders| {
            if doubts(nvrtc).is_some() {
                return Err(OLD_NVRTC);
            }
            let code = if target.kind == TargetKind::Cubin { &output.cubin } else { &output.ptx };
            let names = of_machine(folders).map(|folder| format!("{}/", folder.local.display()));
            for name in names.collect::<Vec<String>>() {
                if contains_path(code, target.kind, &name) || output.log.contains(&name) {
                    return Err(MACHINE_PATH);
                }
            }
            let (symbols, included) = (output.lowered_names.clone(), included(folders, read)?);
            code_outputs(output, code, &CodeResult { nvrtc, symbols, included }).ok_or(UNREADABLE)
        })
    }

    pub(super) fn share_signatures(
        &self,
        units: &[&PreparedUnit],
        target: Target,
        signatures: Vec<Signature>,
        read: &ReadFiles,
    ) -> Copied {
        self.share("signature", units, Purpose::Signature(target.arch), |folders| {
            let included = included(folders, read)?;
            signature_outputs(&SignatureResult { signatures, included }).ok_or(UNREADABLE)
        })
    }

    fn share(
        &self,
        kind: &str,
        units: &[&PreparedUnit],
        purpose: Purpose,
        outputs: impl FnOnce(&[Folder]) -> Result<Outputs, &'static str>,
    ) -> Copied {
        let Some(sharing) = self.sharing.as_ref().filter(|sharing| sharing.cache.stores()) else {
            return Copied::Unshared;
        };
        let (entry, folders) = match self.shared_entry(sharing, units, purpose) {
            Ok(found) => found,
            Err(reason) => {
                sharing.count_unshared(&self.key(kind, units, purpose), reason);
                return Copied::Unshared;
            }
        };
        match outputs(&folders) {
            Ok(outputs) => {
                entry.put(&outputs);
                Copied::Complete
            }
            Err(reason) => {
                *lock(&sharing.unshared).entry(reason).or_default() += 1;
                Copied::Unshared
            }
        }
    }

    fn shared_entry<'s>(
        &self,
        sharing: &'s Sharing,
        units: &[&PreparedUnit],
        purpose: Purpose,
    ) -> Result<(Box<dyn SharedEntry + 's>, Vec<Folder>), &'static str> {
        let (action, folders) = self.action(&sharing.root, units, purpose, 0)?;
        let entry = sharing.cache.entry(action).map_err(|_| UNREADABLE)?;
        Ok((entry, folders))
    }

    fn action(
        &self,
        root: &Path,
        units: &[&PreparedUnit],
        purpose: Purpose,
        number: usize,
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
        let action = CompileAction::new(number, &request, unit, headers, needed, &program, &nvrtc)?;
        Ok((action, folders))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parse<T: DeserializeOwned>(outputs: &Outputs) -> Result<T, String> {
    let bytes = outputs.get(&shared::path(0, RESULT)).map(Vec::as_slice).unwrap_or_default();
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

#[cfg(test)]
mod tests;
