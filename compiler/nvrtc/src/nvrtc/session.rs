//! Compiles through the cache. The first cache miss loads NVRTC.

mod entry;
mod sharing;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cubinder_model::{CodeObject, Digest, Target};
use nvrtc_sys::Nvrtc;
use serde::{Serialize, de::DeserializeOwned};

use entry::{CodeEntry, Stored};
use sharing::Sharing;
pub use sharing::{Batch, Compile, Copied, contains_path};

use super::errors::{
    Changed, EndlessInclude, NoCode, NoNvrtc, NotExecuted, UnreadableCode, UnreadableSignature,
};
use super::options::{Purpose, Settings, doubts, has_line_information, include_folders, options};
use super::workers::{WorkerOutput, Workers, is_read_by_nvrtc};
use super::{Cause, CompileMessage, Compiler, ReadFiles, call_for, diagnose, diagnostics, log, shared};
use crate::cache::{Cache, Dependencies, Files, KeyHasher, is_absent, stamp_of_folder};
use crate::codegen::TranslationUnit;
use crate::cubin::LaunchRules;
use crate::diagnostic::Diagnostic;
use crate::directives::may_name_architecture;
use crate::kernel_signature::Signature;
use crate::manifest_names::{MANIFEST, names_taken};
use crate::nvrtc_option::{check_options, read_no_file};
use crate::signature::SignatureError;
use crate::toolkit::Toolkit;
use crate::{codegen, cuda, path, source};

/// Part of each cache key. Change it if the meaning of cache entries changes within a release.
const FORMAT: &str = "cubinder code 8";

/// Compiles a project's units; may be used from several threads.
#[derive(Debug)]
pub struct Session {
    toolkit: Toolkit,
    /// For units without settings.
    settings: Arc<Settings>,
    cache: Cache,
    base: Digest,
    /// `None` calls NVRTC in this process.
    workers: Option<Arc<Workers>>,
    compiler: OnceLock<Result<Compiler, Diagnostic>>,
    sharing: Option<Sharing>,
    files: Files,
    /// Digest of the toolkit's headers, computed on demand.
    toolkit_stamp: OnceLock<Digest>,
    statistics: Mutex<Statistics>,
}

/// Unit with its resolved includes.
#[derive(Debug, Clone)]
pub struct PreparedUnit {
    /// Unit.
    pub unit: TranslationUnit,
    /// Unit's folders and options.
    pub settings: Arc<Settings>,
    dependencies: Dependencies,
    key: Digest,
}

impl PreparedUnit {
    /// Returns whether the project has computed includes.
    #[must_use]
    pub fn has_computed_includes(&self) -> bool {
        self.dependencies.computed
    }
}

/// Kernel in the code of its program for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledKernel {
    /// Code object, shared by the kernels of a program.
    pub object: Arc<CodeObject>,
    /// Kernel symbol in [`CodeObject::kernels`].
    pub symbol: String,
    /// Kernel's launch requirements.
    pub rules: LaunchRules,
    /// NVRTC's warnings, and one about an old release.
    pub warnings: Vec<Diagnostic>,
    /// Whether warnings about instantiations may be another kernel's of the program.
    pub shares_warnings: bool,
    /// Release of NVRTC that compiled it.
    pub nvrtc: (i32, i32),
    /// Whether the cache had it.
    pub cached: bool,
}

/// Counters of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Number of calls of NVRTC.
    pub nvrtc_calls: u64,
    /// Sum of their times, which overlap.
    pub nvrtc_time: Duration,
    /// Number of results from the local cache.
    pub cache_hits: u64,
    /// Number of results from the shared cache.
    pub shared_hits: u64,
    /// Number of results from remote workers.
    pub executed: u64,
    /// Whether NVRTC was loaded.
    pub nvrtc_loaded: bool,
}

impl Session {
    /// Starts a session without loading NVRTC. Fails if its file is unreadable, and for reserved options.
    pub fn new(toolkit: Toolkit, settings: Settings, cache: Cache) -> Result<Session, Vec<Diagnostic>> {
        let options = settings.options.iter().map(String::as_str);
        let refused: Vec<Diagnostic> = check_options(options).into_iter().map(|(_, error)| error).collect();
        if !refused.is_empty() {
            return Err(refused);
        }
        let identity = toolkit.nvrtc_identity().map_err(|error| vec![error])?;
        let key = KeyHasher::new(FORMAT).field(env!("CARGO_PKG_VERSION").as_bytes()).field(&identity.0);
        Ok(Session {
            toolkit,
            settings: Arc::new(settings),
            cache,
            base: key.finish(),
            workers: None,
            compiler: OnceLock::new(),
            sharing: None,
            files: Files::default(),
            toolkit_stamp: OnceLock::new(),
            statistics: Mutex::default(),
        })
    }

    /// Compiles in processes of `program`, which answers [`super::workers::WORKER`] by [`super::workers::serve`].
    #[must_use]
    pub fn in_processes_of(mut self, program: Option<PathBuf>) -> Session {
        self.workers = program.map(|program| Arc::new(Workers::new(&program, &self.toolkit.nvrtc)));
        self
    }

    /// Resolves a unit's includes, reading each header once per session.
    #[must_use]
    pub fn prepare(&self, unit: TranslationUnit) -> PreparedUnit {
        self.prepare_with(unit, Arc::clone(&self.settings))
    }

    /// Resolves includes with the unit's own settings, whose options passed [`check_options`].
    #[must_use]
    pub fn prepare_with(&self, unit: TranslationUnit, settings: Arc<Settings>) -> PreparedUnit {
        let include = include_folders(&unit, &settings, &self.toolkit.include);
        let mut dependencies =
            Dependencies::find(&unit, &settings.options, &include, &self.toolkit.include, &self.files);
        let has_variable =
            self.workers.is_none() && std::env::vars_os().any(|(name, _)| is_read_by_nvrtc(&name));
        if has_variable || !read_no_file(&settings.options) {
            dependencies.complete = false;
        }
        let mut key = KeyHasher::new("unit")
            .field(&self.base.0)
            .field(unit.name.as_bytes())
            .field(unit.text.as_bytes())
            .field(codegen::PRELUDE_NAME.as_bytes())
            .field(unit.prelude.text.as_bytes());
        if dependencies.trusts_toolkit {
            key = key.field(&self.toolkit_stamp.get_or_init(|| stamp(&self.toolkit)).0);
        }
        let key = dependencies.hash(key).finish();
        PreparedUnit { unit, settings, dependencies, key }
    }

    /// Returns the manifest names that the unit uses, if known ([`names_taken`]).
    #[must_use]
    pub fn names_taken(&self, prepared: &PreparedUnit) -> Option<BTreeSet<String>> {
        // A macro may expand to `manifest`.
        if prepared.settings.options.iter().any(|option| option.contains(MANIFEST)) {
            return None;
        }
        let mut names = names_taken(&prepared.unit.source.text)?;
        for file in self.included_files(prepared)? {
            names.extend(self.files.names_taken(file)?);
        }
        Some(names)
    }

    /// Returns the bytes of the source and of included files in the unit's and the settings' folders, independent of
    /// the toolkit.
    #[must_use]
    pub fn text_length(&self, prepared: &PreparedUnit) -> usize {
        let folders = include_folders(&prepared.unit, &prepared.settings, &[]);
        let is_own = |file: &Path| folders.iter().any(|folder| file.starts_with(folder));
        let included = prepared.dependencies.found().filter(|(file, _)| is_own(file));
        prepared.unit.source.text.len() + included.map(|(file, _)| self.files.length(file)).sum::<usize>()
    }

    /// Returns whether kernel parameters may depend on the architecture: options or project files may name it or use
    /// a header with macros for it, or not all files are known.
    #[must_use]
    pub fn may_depend_on_architecture(&self, prepared: &PreparedUnit) -> bool {
        let PreparedUnit { unit, settings, dependencies, .. } = prepared;
        let may = |text: &str| dependencies.may_depend_on_architecture(text, &self.toolkit.include);
        let of_file = |file: &Path| source::text(file).map_or(true, |source| may(&source.text));
        settings.options.iter().any(may_name_architecture)
            || may(&unit.source.text)
            || self.included_files(prepared).is_none_or(|files| files.into_iter().any(of_file))
    }

    /// Compiles a unit alone ([`Session::compile_program`]).
    pub fn compile(
        &self,
        prepared: &PreparedUnit,
        target: Target,
    ) -> Result<CompiledKernel, Vec<CompileMessage>> {
        self.compile_program(&[prepared], target)?.pop().ok_or_else(Vec::new)
    }

    /// Compiles units that differ only in kernels as one program, or reads it from the cache; returns their kernels in
    /// order. Fails with NVRTC's errors in the user's files, or if NVRTC cannot be loaded.
    pub fn compile_program(
        &self,
        units: &[&PreparedUnit],
        target: Target,
    ) -> Result<Vec<CompiledKernel>, Vec<CompileMessage>> {
        let Some(first) = units.first() else { return Ok(Vec::new()) };
        let key = self.key("code", units, Purpose::Code(target));
        let readable = |entry: CodeEntry| entry.code(target, units.len()).ok().map(|code| (entry, code));
        let stored = self.take_accepted(&key).or_else(|| self.stored(first, &key, readable));
        let stored = stored.or_else(|| self.shared_code(units, target, &key));
        let stored = stored.or_else(|| self.executed_code(units, target, &key));
        let cached = stored.is_some();
        let (entry, code) = match stored {
            Some(found) => found,
            None => {
                let (compiled, nvrtc) = self.call(units, Purpose::Code(target))?;
                let read = ReadFiles::parse(compiled.printed.as_deref());
                let entry = CodeEntry::new(compiled.output.clone(), nvrtc, target)
                    .ok_or_else(|| vec![CompileMessage::new(NoCode { target })])?;
                let code = entry.code(target, units.len()).map_err(|reason| {
                    let kernel = first.unit.kernel_span.clone();
                    vec![CompileMessage::new(UnreadableCode { target, reason, kernel })]
                })?;
                if self.store(first, &key, &entry, &read) {
                    self.share_code(units, target, &compiled.output, &read, nvrtc);
                }
                (entry, code)
            }
        };
        let log = log::parse(&entry.log);
        let shares_warnings = units.len() > 1 && log.messages.iter().any(|it| !it.context.is_empty());
        let kernels = units.iter().zip(&entry.symbols).map(|(unit, symbol)| {
            let log = log.of_kernel(symbol, &entry.symbols);
            let messages = diagnose::diagnose(&log, &unit.unit, &self.toolkit.include);
            CompiledKernel {
                object: Arc::clone(&code.object),
                symbol: symbol.clone(),
                rules: code.rules.get(symbol).copied().unwrap_or_default(),
                warnings: diagnostics(messages).into_iter().chain(doubts(entry.nvrtc)).collect(),
                shares_warnings,
                nvrtc: entry.nvrtc,
                cached,
            }
        });
        Ok(kernels.collect())
    }

    /// Returns the kernel's parameters for `target`'s architecture, from the cache or a compile with debug
    /// information. Fails if the code does not compile or that information is unreadable.
    pub fn signature(
        &self,
        prepared: &PreparedUnit,
        target: Target,
    ) -> Result<Signature, Vec<CompileMessage>> {
        let (mut found, errors) = self.find_signatures(&[prepared], target);
        found.pop().flatten().ok_or(errors)
    }

    /// Returns each [`Session::signature`] of units that differ only in kernels, from one compile. If it fails, uncached ones are `None`.
    #[must_use]
    pub fn signatures(&self, units: &[&PreparedUnit], target: Target) -> Vec<Option<Signature>> {
        self.find_signatures(units, target).0
    }

    fn find_signatures(
        &self,
        units: &[&PreparedUnit],
        target: Target,
    ) -> (Vec<Option<Signature>>, Vec<CompileMessage>) {
        let keys = self.signature_keys(units, target);
        let stored = |(unit, key): (&&PreparedUnit, &Digest)| {
            self.take_signature(key).or_else(|| self.stored(unit, key, Some::<Signature>))
        };
        let all_stored = || units.iter().zip(&keys).map(stored).collect::<Vec<Option<Signature>>>();
        let mut found = all_stored();
        if found.iter().all(Option::is_some) {
            return (found, Vec::new());
        }
        if let Some(all) = self.shared_signatures(units, &keys, target) {
            return (all.into_iter().map(Some).collect(), Vec::new());
        }
        if self.can_execute() {
            self.execute_alone(Compile { units: units.to_vec(), target, is_signatures: true });
            for (found, executed) in found.iter_mut().zip(all_stored()) {
                *found = found.take().or(executed);
            }
            if found.iter().all(Option::is_some) {
                return (found, Vec::new());
            }
        }
        let missing: Vec<usize> = (0..units.len()).filter(|index| found[*index].is_none()).collect();
        let of_missing: Vec<&PreparedUnit> = missing.iter().map(|index| units[*index]).collect();
        let (signatures, WorkerOutput { printed, .. }) = match self.compile_signatures(&of_missing, target) {
            Ok(compiled) => compiled,
            Err(errors) => return (found, errors),
        };
        let read = ReadFiles::parse(printed.as_deref());
        let mut is_stored = true;
        for (index, signature) in missing.into_iter().zip(signatures) {
            is_stored &= self.store(units[index], &keys[index], &signature, &read);
            found[index] = Some(signature);
        }
        if is_stored && let Some(all) = found.iter().cloned().collect::<Option<Vec<Signature>>>() {
            self.share_signatures(units, target, all, &read);
        }
        (found, Vec::new())
    }

    fn signature_keys(&self, units: &[&PreparedUnit], target: Target) -> Vec<Digest> {
        let key = |unit: &&PreparedUnit| self.key("signature", &[unit], Purpose::Signature(target.arch));
        units.iter().map(key).collect()
    }

    fn compile_signatures(
        &self,
        units: &[&PreparedUnit],
        target: Target,
    ) -> Result<(Vec<Signature>, WorkerOutput), Vec<CompileMessage>> {
        let Some(first) = units.first() else { return Err(Vec::new()) };
        let (compiled, _) = self.call(units, Purpose::Signature(target.arch))?;
        let output = &compiled.output;
        let has_symbols = output.lowered_names.len() == units.len();
        if !has_symbols || output.ptx.is_empty() || output.lowered_names.iter().any(String::is_empty) {
            return Err(vec![CompileMessage::new(NoCode { target })]);
        }
        let unreadable = |error: SignatureError| {
            let (kernel, span) = (first.unit.kernel.clone(), first.unit.kernel_span.clone());
            vec![CompileMessage::new(UnreadableSignature { kernel, reason: error.to_string(), span })]
        };
        Ok((shared::signatures(output).map_err(unreadable)?, compiled))
    }

    /// Returns NVRTC's release, loading it only if its files do not state it.
    pub fn release(&self) -> Result<(i32, i32), Diagnostic> {
        match self.toolkit.release() {
            Some(release) => Ok(release),
            None => self.loaded_release(),
        }
    }

    /// Loads NVRTC and returns its release.
    pub fn loaded_release(&self) -> Result<(i32, i32), Diagnostic> {
        self.compiler().map(Compiler::version)
    }

    /// Loads NVRTC and returns its architectures in ascending order (89), without suffixed ones (`90a`).
    pub fn supported_archs(&self) -> Result<Vec<u32>, Diagnostic> {
        let nvrtc = self.compiler()?.about();
        nvrtc.archs.map_err(|error| Diagnostic::error(format!("cannot list NVRTC's architectures: {error}")))
    }

    fn compiler(&self) -> Result<&Compiler, Diagnostic> {
        if let Some(workers) = self.workers.as_ref().filter(|_| self.compiler.get().is_none()) {
            // Each waiting thread needs a process; only one waits below.
            workers.start();
        }
        let compiler = self.compiler.get_or_init(|| load(&self.toolkit, self.workers.as_ref()));
        compiler.as_ref().map_err(Clone::clone)
    }

    /// Stops idle worker processes without waiting.
    pub fn stop_idle(&self) {
        self.workers.iter().for_each(|workers| workers.stop_idle());
    }

    /// Returns the included project files, `None` with computed includes.
    #[must_use]
    pub fn included_files<'p>(&self, prepared: &'p PreparedUnit) -> Option<Vec<&'p Path>> {
        prepared.dependencies.complete.then(|| self.found_files(prepared).map(|(file, _)| file).collect())
    }

    /// Returns the included project files with digests, without computed includes.
    pub fn found_files<'p>(&self, prepared: &'p PreparedUnit) -> impl Iterator<Item = (&'p Path, Digest)> {
        let of_toolkit = |file: &Path| self.toolkit.include.iter().any(|folder| file.starts_with(folder));
        prepared.dependencies.found().filter(move |(file, _)| !of_toolkit(file))
    }

    /// Returns the possibly included toolkit headers, relative to include folders, with digests, without computed
    /// includes.
    pub fn found_headers<'p>(&self, prepared: &'p PreparedUnit) -> impl Iterator<Item = (&'p Path, Digest)> {
        let of_toolkit = |file: &'p Path| {
            let names = self.toolkit.include.iter().filter_map(|folder| file.strip_prefix(folder).ok());
            names.min_by_key(|name| name.as_os_str().len())
        };
        prepared.dependencies.found().filter_map(move |(file, digest)| Some((of_toolkit(file)?, digest)))
    }

    /// Fails with the first included file that changed while compiling: a library must not mix states.
    pub fn check_unchanged(&self) -> Result<(), Diagnostic> {
        // Cached code matches the files as read.
        let is_compiled = self.statistics().nvrtc_calls > 0;
        match is_compiled.then(|| self.files.changed()).flatten() {
            None => Ok(()),
            Some(path) => Err(Changed { path: path::shown(&path).display() }.into()),
        }
    }

    /// Returns NVRTC's and its headers' paths.
    #[must_use]
    pub fn toolkit(&self) -> &Toolkit {
        &self.toolkit
    }

    /// Returns the counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics { nvrtc_loaded: self.compiler.get().is_some(), ..self.count(|_| {}) }
    }

    fn count(&self, update: impl FnOnce(&mut Statistics)) -> Statistics {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        update(&mut statistics);
        *statistics
    }

    /// Returns the cache's warning once.
    #[must_use]
    pub fn take_cache_warning(&self) -> Option<Diagnostic> {
        self.cache.take_warning()
    }

    /// Computes a key over all options; NVRTC's identity determines which it gets. Line information contains paths
    /// relative to the current folder (13.0).
    fn key(&self, kind: &str, units: &[&PreparedUnit], purpose: Purpose) -> Digest {
        let mut key = KeyHasher::new(kind);
        let Some(first) = units.first() else { return key.finish() };
        let settings = &first.settings;
        let include = include_folders(&first.unit, settings, &self.toolkit.include);
        let options = options(&first.unit, purpose, settings, &include, (i32::MAX, 0));
        key = key.field(&first.key.0).field(&units.len().to_le_bytes());
        key = units.iter().fold(key, |key, unit| key.field(unit.unit.kernel.as_bytes()));
        if !matches!(purpose, Purpose::Signature(_)) && has_line_information(&settings.options) {
            let folder = std::env::current_dir().unwrap_or_default();
            key = key.field(folder.as_os_str().as_encoded_bytes());
        }
        options.iter().fold(key, |key, option| key.field(option.as_encoded_bytes())).finish()
    }

    fn stored<T: DeserializeOwned, R>(
        &self,
        prepared: &PreparedUnit,
        key: &Digest,
        read: impl FnOnce(T) -> Option<R>,
    ) -> Option<R> {
        let entry = read(self.load::<T>(prepared, key)?.value)?;
        if !self.is_fetched(key) {
            self.count(|statistics| statistics.cache_hits += 1);
        }
        Some(entry)
    }

    fn load<T: DeserializeOwned>(&self, prepared: &PreparedUnit, key: &Digest) -> Option<Stored<T>> {
        if !prepared.dependencies.complete {
            return None;
        }
        let stored: Stored<T> = postcard::from_bytes(&self.cache.get(key)?).ok()?;
        // Without the list, a result cannot be shared.
        if !stored.read.is_none_or(|read| self.cache.touch(&read)) {
            return None;
        }
        let is_absent = |place: &OsString| self.files.is_absent(Path::new(place));
        stored.absent.iter().all(is_absent).then_some(stored)
    }

    /// Stores an entry, unless the compile may have read a file outside the key. Without trace the scan decides.
    /// Returns whether the key determines the entry.
    fn store<T: Serialize>(
        &self,
        prepared: &PreparedUnit,
        key: &Digest,
        entry: &T,
        read: &ReadFiles,
    ) -> bool {
        let dependencies = &prepared.dependencies;
        let absent: Option<Vec<PathBuf>> = match read {
            ReadFiles::NotAsked => Some(Vec::new()),
            ReadFiles::Unknown => None,
            ReadFiles::Traced(files) => {
                let unknown = files.iter().filter(|file| !dependencies.holds(file));
                let before = unknown.map(|file| match self.places_before(prepared, file) {
                    None if dependencies.covers(file) => Some(Vec::new()),
                    places => places,
                });
                before.collect::<Option<Vec<_>>>().map(|places| places.concat())
            }
        };
        let Some(absent) = absent.filter(|places| places.iter().all(|place| is_absent(place))) else {
            return false;
        };
        if !dependencies.complete || !dependencies.still_hold() {
            return false;
        }
        let absent = absent.into_iter().map(PathBuf::into).collect();
        let stored = Stored { value: entry, absent, read: self.store_read(read) };
        // Cannot fail for these types; otherwise the next build recompiles.
        if let Ok(bytes) = postcard::to_allocvec(&stored) {
            self.cache.put(key, &bytes);
        }
        true
    }

    /// Stores which files were read, once for equal lists.
    fn store_read(&self, read: &ReadFiles) -> Option<Digest> {
        let ReadFiles::Traced(files) = read else { return None };
        let files: Vec<&OsStr> = files.iter().map(|file| file.as_os_str()).collect();
        let bytes = postcard::to_allocvec(&files).ok()?;
        let key = KeyHasher::new("files").field(&bytes).finish();
        if self.cache.get(&key).is_none() {
            self.cache.put(&key, &bytes);
        }
        Some(key)
    }

    fn load_read(&self, key: Option<Digest>) -> Option<ReadFiles> {
        let Some(key) = key else { return Some(ReadFiles::NotAsked) };
        let files = self.cache.get(&key).and_then(|bytes| postcard::from_bytes::<Vec<OsString>>(&bytes).ok());
        if files.is_none() {
            // The next compile stores it again.
            self.cache.remove(&key);
        }
        Some(ReadFiles::Traced(files?.into_iter().map(PathBuf::from).collect()))
    }

    /// Returns paths that precede a toolkit's computed include, `None` if the key does not cover `file`.
    fn places_before(&self, prepared: &PreparedUnit, file: &Path) -> Option<Vec<PathBuf>> {
        if !prepared.dependencies.trusts_toolkit {
            return None;
        }
        let folders = include_folders(&prepared.unit, &prepared.settings, &self.toolkit.include);
        let project = folders.len() - self.toolkit.include.len();
        // Toolkit folders may be nested.
        let of_toolkit = folders.iter().enumerate().skip(project);
        let names = of_toolkit.filter_map(|(at, folder)| Some((at, file.strip_prefix(folder).ok()?)));
        let places: Vec<PathBuf> = names
            .flat_map(|(at, name)| folders.iter().take(at).map(move |folder| folder.join(name)))
            .collect();
        (!places.is_empty()).then_some(places)
    }

    fn call(
        &self,
        units: &[&PreparedUnit],
        purpose: Purpose,
    ) -> Result<(WorkerOutput, (i32, i32)), Vec<CompileMessage>> {
        let Some(prepared) = units.first() else { return Err(Vec::new()) };
        if let Some(path) = &prepared.dependencies.endless {
            let TranslationUnit { name: file, kernel_span, .. } = &prepared.unit;
            let error = EndlessInclude { path: path.display(), file, kernel: kernel_span.clone() };
            return Err(vec![CompileMessage::new(error)]);
        }
        if self.is_remote_only() {
            let TranslationUnit { kernel, kernel_span, .. } = &prepared.unit;
            let kind = if matches!(purpose, Purpose::Signature(_)) { "signature" } else { "code" };
            let reason = self.why_not_executed(&self.key(kind, units, purpose));
            let error = NotExecuted { kernel, target: purpose.target(), span: kernel_span.clone(), reason };
            return Err(vec![CompileMessage::new(error)]);
        }
        let _turn = self.local_compile();
        let compiler = self.compiler().map_err(|error| vec![CompileMessage::new(error)])?;
        let start = Instant::now();
        let PreparedUnit { unit, settings, .. } = prepared;
        let kernels: Vec<&str> = units.iter().map(|unit| unit.unit.kernel.as_str()).collect();
        let result = call_for(compiler, unit, &kernels, purpose, settings, &self.toolkit.include);
        self.count(|statistics| {
            statistics.nvrtc_calls += 1;
            statistics.nvrtc_time += start.elapsed();
        });
        let result = result.map_err(|errors| with_missing_headers(errors, &self.toolkit));
        Ok((result?, compiler.version()))
    }
}

fn with_missing_headers(mut errors: Vec<CompileMessage>, toolkit: &Toolkit) -> Vec<CompileMessage> {
    let Some(why) = &toolkit.without_headers else { return errors };
    for CompileMessage { cause, diagnostic, .. } in &mut errors {
        let is_of_cuda = matches!(cause, Cause::MissingFile(name) if cuda::is_cuda_header(name) || name.starts_with("crt/"));
        if is_of_cuda && diagnostic.help.is_none() {
            diagnostic.notes.push(why.message.clone());
            diagnostic.notes.extend(why.notes.iter().cloned());
            diagnostic.help.clone_from(&why.help);
        }
    }
    errors
}

/// Digests the toolkit's headers: the version of pinned packages, else names, sizes and times of all headers.
fn stamp(toolkit: &Toolkit) -> Digest {
    let key = KeyHasher::new("toolkit");
    let key = toolkit.include.iter().fold(key, |key, folder| {
        let key = key.field(folder.as_os_str().as_encoded_bytes());
        if toolkit.is_pinned { key } else { key.field(&stamp_of_folder(folder).0) }
    });
    key.finish()
}

fn load(toolkit: &Toolkit, workers: Option<&Arc<Workers>>) -> Result<Compiler, Diagnostic> {
    let loaded = match workers {
        None => Nvrtc::load(&toolkit.nvrtc)
            .map(|nvrtc| Compiler::InProcess(Arc::new(nvrtc)))
            .map_err(|error| error.to_string()),
        Some(workers) => workers.about().map(|about| Compiler::Workers(Arc::clone(workers), about)),
    };
    loaded.map_err(|reason| NoNvrtc { reason }.into())
}

#[cfg(test)]
mod tests;
