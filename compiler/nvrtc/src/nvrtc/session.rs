//! Compiling with the cache in front of NVRTC.
//!
//! A session loads NVRTC when the first unit is missing from the cache, and not at all where every unit is there.

mod entry;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cubinder_model::{CodeObject, Digest, Target};
use nvrtc_sys::Nvrtc;
use serde::{Serialize, de::DeserializeOwned};

use entry::{CodeEntry, Stored};

use super::errors::{Changed, EndlessInclude, NoCode, NoNvrtc, UnreadableCode, UnreadableSignature};
use super::options::{Purpose, Settings, doubts, has_line_information, include_folders, options};
use super::workers::{WorkerOutput, Workers, is_read_by_nvrtc};
use super::{Cause, CompileMessage, Compiler, ReadFiles, call_for, diagnose, diagnostics, log};
use crate::cache::{Cache, Dependencies, Files, KeyHasher, is_absent, stamp_of_folder};
use crate::codegen::TranslationUnit;
use crate::diagnostic::Diagnostic;
use crate::kernel_signature::Signature;
use crate::manifest_names::{MANIFEST, names_taken};
use crate::nvrtc_option::{check_options, read_no_file};
use crate::signature::{self, SignatureError};
use crate::toolkit::Toolkit;
use crate::{codegen, cuda, path};

/// Grows when the meaning of an entry changes within a release.
const FORMAT: &str = "cubinder code 6";

/// Everything that compiles of one project have in common. May be used from any number of threads.
#[derive(Debug)]
pub struct Session {
    toolkit: Toolkit,
    /// Those of units that have none of their own.
    settings: Arc<Settings>,
    cache: Cache,
    /// Decides, with a unit and a target, what comes out.
    base: Digest,
    /// The processes that compile; without them NVRTC is called in this one.
    workers: Option<Arc<Workers>>,
    compiler: OnceLock<Result<Compiler, Diagnostic>>,
    files: Files,
    /// Stands for all headers of the toolkit; made when the first unit needs it.
    toolkit_stamp: OnceLock<Digest>,
    statistics: Mutex<Statistics>,
}

/// A unit whose includes are known.
#[derive(Debug, Clone)]
pub struct PreparedUnit {
    /// The unit itself.
    pub unit: TranslationUnit,
    /// The folders and options that it is compiled with.
    pub settings: Arc<Settings>,
    dependencies: Dependencies,
    key: Digest,
}

impl PreparedUnit {
    /// Whether it includes files of the project whose names only the preprocessor can tell.
    #[must_use]
    pub fn has_computed_includes(&self) -> bool {
        self.dependencies.computed
    }
}

/// The code of one unit for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledKernel {
    /// The code and what it says about its kernels.
    pub object: CodeObject,
    /// The symbol of the unit's kernel; [`CodeObject::kernels`] of `object` holds its facts.
    pub symbol: String,
    /// NVRTC's warnings, and one about NVRTC itself where it is an old one.
    pub warnings: Vec<Diagnostic>,
    /// The release of the NVRTC that compiled it.
    pub nvrtc: (i32, i32),
    /// Whether it came from the cache.
    pub cached: bool,
}

/// What a session has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// How often NVRTC was called.
    pub nvrtc_calls: u64,
    /// The sum of the times of those calls. Calls run side by side, so it can exceed the time that passed.
    pub nvrtc_time: Duration,
    /// How many results came from the cache.
    pub cache_hits: u64,
    /// Whether NVRTC was loaded at all.
    pub nvrtc_loaded: bool,
}

impl Session {
    /// Starts a session. Reads which NVRTC is there, without loading it.
    ///
    /// # Errors
    /// Where NVRTC's file cannot be read, and for each option that is not the user's to set.
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
            files: Files::default(),
            toolkit_stamp: OnceLock::new(),
            statistics: Mutex::default(),
        })
    }

    /// The same, compiling in processes of `program`, which answers [`super::workers::WORKER`] with [`super::workers::serve`].
    #[must_use]
    pub fn in_processes_of(mut self, program: Option<PathBuf>) -> Session {
        self.workers = program.map(|program| Arc::new(Workers::new(&program, &self.toolkit.nvrtc)));
        self
    }

    /// Finds what a unit includes. Each header is read once in a session.
    #[must_use]
    pub fn prepare(&self, unit: TranslationUnit) -> PreparedUnit {
        self.prepare_with(unit, Arc::clone(&self.settings))
    }

    /// [`Session::prepare`] with settings of the unit's own, whose options have passed [`check_options`].
    #[must_use]
    pub fn prepare_with(&self, unit: TranslationUnit, settings: Arc<Settings>) -> PreparedUnit {
        let include = include_folders(&unit, &settings, &self.toolkit.include);
        let mut dependencies =
            Dependencies::find(&unit, &settings.options, &include, &self.toolkit.include, &self.files);
        // Worker processes are started without these variables.
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
            .field(unit.prelude.text.as_bytes())
            .field(unit.kernel.as_bytes());
        if dependencies.trusts_toolkit {
            key = key.field(&self.toolkit_stamp.get_or_init(|| stamp(&self.toolkit)).0);
        }
        let key = dependencies.hash(key).finish();
        PreparedUnit { unit, settings, dependencies, key }
    }

    /// The names that a unit's text and all that it includes take from the manifest; nothing where that cannot be known. See
    /// [`names_taken`].
    #[must_use]
    pub fn names_taken(&self, prepared: &PreparedUnit) -> Option<BTreeSet<String>> {
        // A macro that stands for it.
        if prepared.settings.options.iter().any(|option| option.contains(MANIFEST)) {
            return None;
        }
        let mut names = names_taken(&prepared.unit.source.text)?;
        for file in self.included_files(prepared)? {
            names.extend(self.files.names_taken(file)?);
        }
        Some(names)
    }

    /// The code of a unit for a target, from the cache or from NVRTC.
    ///
    /// # Errors
    /// What NVRTC says, in the user's files; or that NVRTC cannot be loaded.
    pub fn compile(
        &self,
        prepared: &PreparedUnit,
        target: Target,
    ) -> Result<CompiledKernel, Vec<CompileMessage>> {
        let key = self.key("code", prepared, Purpose::Code(target));
        let readable = |entry: CodeEntry| entry.object(target).ok().map(|object| (entry, object));
        let stored = self.stored(prepared, &key, readable);
        let cached = stored.is_some();
        let (entry, object) = match stored {
            Some(found) => found,
            None => {
                let kernels = [prepared.unit.kernel.as_str()];
                let (compiled, nvrtc) = self.call(prepared, &kernels, Purpose::Code(target))?;
                let read = ReadFiles::parse(compiled.printed.as_deref());
                let entry = CodeEntry::new(compiled.output, nvrtc, target)
                    .ok_or_else(|| vec![CompileMessage::new(NoCode { target })])?;
                let object = entry.object(target).map_err(|reason| {
                    let kernel = prepared.unit.kernel_span.clone();
                    vec![CompileMessage::new(UnreadableCode { target, reason, kernel })]
                })?;
                self.store(prepared, &key, &entry, &read);
                (entry, object)
            }
        };
        let messages = diagnose::diagnose(&log::parse(&entry.log), &prepared.unit, &self.toolkit.include);
        let mut warnings = diagnostics(messages);
        warnings.extend(doubts(entry.nvrtc));
        Ok(CompiledKernel { object, symbol: entry.symbol, warnings, nvrtc: entry.nvrtc, cached })
    }

    /// The kernel's parameters for `target`'s architecture, from the cache or from a compile with debug information. Another
    /// architecture may have other parameters: `cubinder-analysis` compares them.
    ///
    /// # Errors
    /// What NVRTC says, in the user's files; that NVRTC cannot be loaded; or that its debug information cannot be read.
    pub fn signature(
        &self,
        prepared: &PreparedUnit,
        target: Target,
    ) -> Result<Signature, Vec<CompileMessage>> {
        let (mut found, errors) = self.find_signatures(&[prepared], target);
        found.pop().flatten().ok_or(errors)
    }

    /// [`Session::signature`] of each of several units that differ in nothing but their kernels: those that the cache does not have come from one
    /// compile. Where that fails, for whichever of them, they have none: alone the others may have one.
    #[must_use]
    pub fn signatures(&self, units: &[&PreparedUnit], target: Target) -> Vec<Option<Signature>> {
        self.find_signatures(units, target).0
    }

    /// The signatures that are known, and the errors of the compile that should have given the others.
    fn find_signatures(
        &self,
        units: &[&PreparedUnit],
        target: Target,
    ) -> (Vec<Option<Signature>>, Vec<CompileMessage>) {
        let mut found: Vec<Option<Signature>> = Vec::new();
        let mut missing = Vec::new();
        for (index, unit) in units.iter().enumerate() {
            let key = self.key("signature", unit, Purpose::Signature(target.arch));
            let stored = self.stored(unit, &key, Some::<Signature>);
            if stored.is_none() {
                missing.push((index, key));
            }
            found.push(stored);
        }
        let of_missing: Vec<&PreparedUnit> = missing.iter().map(|(index, _)| units[*index]).collect();
        let (signatures, read) = match self.compile_signatures(&of_missing, target) {
            Ok(compiled) => compiled,
            Err(errors) => return (found, errors),
        };
        for ((index, key), signature) in missing.iter().zip(signatures) {
            self.store(units[*index], key, &signature, &read);
            found[*index] = Some(signature);
        }
        (found, Vec::new())
    }

    /// The signatures of units from one compile, and the files that it read.
    fn compile_signatures(
        &self,
        units: &[&PreparedUnit],
        target: Target,
    ) -> Result<(Vec<Signature>, ReadFiles), Vec<CompileMessage>> {
        let Some(first) = units.first() else { return Ok((Vec::new(), ReadFiles::NotAsked)) };
        let kernels: Vec<&str> = units.iter().map(|unit| unit.unit.kernel.as_str()).collect();
        let (compiled, _) = self.call(first, &kernels, Purpose::Signature(target.arch))?;
        let WorkerOutput { output, printed } = compiled;
        let has_symbols = output.lowered_names.len() == units.len();
        if !has_symbols || output.ptx.is_empty() || output.lowered_names.iter().any(String::is_empty) {
            return Err(vec![CompileMessage::new(NoCode { target })]);
        }
        let unreadable = |error: SignatureError| {
            let (kernel, span) = (first.unit.kernel.clone(), first.unit.kernel_span.clone());
            vec![CompileMessage::new(UnreadableSignature { kernel, reason: error.to_string(), span })]
        };
        let symbols: BTreeSet<&str> = output.lowered_names.iter().map(String::as_str).collect();
        let read = signature::read_ptx(&output.ptx, &symbols).map_err(unreadable)?;
        // Two names of one kernel have one symbol.
        let missing = |symbol: &String| unreadable(SignatureError::MissingFunction(symbol.clone()));
        let find = |symbol| read.get(symbol).cloned().ok_or_else(|| missing(symbol));
        let signatures = output.lowered_names.iter().map(find).collect::<Result<_, _>>()?;
        Ok((signatures, ReadFiles::parse(printed.as_deref())))
    }

    /// The release of NVRTC. It is loaded for that only where its files do not tell.
    ///
    /// # Errors
    /// Where it has to be loaded and cannot be.
    pub fn release(&self) -> Result<(i32, i32), Diagnostic> {
        match self.toolkit.release() {
            Some(release) => Ok(release),
            None => self.compiler().map(|compiler| compiler.about().version),
        }
    }

    fn compiler(&self) -> Result<&Compiler, Diagnostic> {
        if let Some(workers) = self.workers.as_ref().filter(|_| self.compiler.get().is_none()) {
            // Each of several threads that come here at once will need one, and only one of them waits below.
            workers.start();
        }
        let compiler = self.compiler.get_or_init(|| load(&self.toolkit, self.workers.as_ref()));
        compiler.as_ref().map_err(Clone::clone)
    }

    /// Has the processes that compile end, as nothing more is to be compiled: they need not be waited for. What is compiled all the same starts
    /// others.
    pub fn stop_idle(&self) {
        self.workers.iter().for_each(|workers| workers.stop_idle());
    }

    /// The files of the project that a unit includes; `None` if only the preprocessor knows them.
    #[must_use]
    pub fn included_files<'p>(&self, prepared: &'p PreparedUnit) -> Option<Vec<&'p Path>> {
        prepared.dependencies.complete.then(|| self.found_files(prepared).map(|(file, _)| file).collect())
    }

    /// The files of the project that a unit includes, with the digests of their bytes, but for those whose names only the preprocessor
    /// knows: see [`PreparedUnit::has_computed_includes`].
    pub fn found_files<'p>(&self, prepared: &'p PreparedUnit) -> impl Iterator<Item = (&'p Path, Digest)> {
        let of_toolkit = |file: &Path| self.toolkit.include.iter().any(|folder| file.starts_with(folder));
        prepared.dependencies.found().filter(move |(file, _)| !of_toolkit(file))
    }

    /// The headers of the toolkit that a unit may include, by their names from the folder on that has them, with the digests of their bytes. Where the
    /// toolkit lies and how many folders it has does not matter. Those whose names only the preprocessor can tell are not among them.
    pub fn found_headers<'p>(&self, prepared: &'p PreparedUnit) -> impl Iterator<Item = (&'p Path, Digest)> {
        let of_toolkit = |file: &'p Path| {
            let names = self.toolkit.include.iter().filter_map(|folder| file.strip_prefix(folder).ok());
            names.min_by_key(|name| name.as_os_str().len())
        };
        prepared.dependencies.found().filter_map(move |(file, digest)| Some((of_toolkit(file)?, digest)))
    }

    /// Asked when all is compiled: an error where a file that a unit includes, or may include, is another than when the units were prepared. Code from
    /// before the change and code from after it are not of one library, and what is said of it would be true of one of both only.
    ///
    /// # Errors
    /// The first such file.
    pub fn check_unchanged(&self) -> Result<(), Diagnostic> {
        // What comes from the cache was compiled from what was read.
        let is_compiled = self.statistics().nvrtc_calls > 0;
        match is_compiled.then(|| self.files.changed()).flatten() {
            None => Ok(()),
            Some(path) => Err(Changed { path: path::shown(&path).display() }.into()),
        }
    }

    /// NVRTC and its headers.
    #[must_use]
    pub fn toolkit(&self) -> &Toolkit {
        &self.toolkit
    }

    /// What the session has done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics { nvrtc_loaded: self.compiler.get().is_some(), ..self.count(|_| {}) }
    }

    /// Updates the statistics, and returns them.
    fn count(&self, update: impl FnOnce(&mut Statistics)) -> Statistics {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        update(&mut statistics);
        *statistics
    }

    /// The warning of the cache, if it has one and has not given it yet.
    #[must_use]
    pub fn take_cache_warning(&self) -> Option<Diagnostic> {
        self.cache.take_warning()
    }

    /// The key of what comes of a unit, with every option that NVRTC gets. Which of them an older NVRTC does not get follows
    /// from its identity. Line information says where files are, from the current folder on (13.0, tried).
    fn key(&self, kind: &str, prepared: &PreparedUnit, purpose: Purpose) -> Digest {
        let settings = &prepared.settings;
        let include = include_folders(&prepared.unit, settings, &self.toolkit.include);
        let options = options(&prepared.unit, purpose, settings, &include, (i32::MAX, 0));
        let mut key = KeyHasher::new(kind).field(&prepared.key.0);
        if !matches!(purpose, Purpose::Signature(_)) && has_line_information(&settings.options) {
            // Without a current folder there is none that NVRTC could write.
            let folder = std::env::current_dir().unwrap_or_default();
            key = key.field(folder.as_os_str().as_encoded_bytes());
        }
        options.iter().fold(key, |key, option| key.field(option.as_encoded_bytes())).finish()
    }

    /// What `read` makes of an entry of the cache. One that cannot be read, or of which it makes nothing, is a miss.
    fn stored<T: DeserializeOwned, R>(
        &self,
        prepared: &PreparedUnit,
        key: &Digest,
        read: impl FnOnce(T) -> Option<R>,
    ) -> Option<R> {
        if !prepared.dependencies.complete {
            return None;
        }
        let stored: Stored<T> = postcard::from_bytes(&self.cache.get(key)?).ok()?;
        if !stored.absent.iter().all(|place| self.files.is_absent(Path::new(place))) {
            return None;
        }
        let entry = read(stored.value)?;
        self.count(|statistics| statistics.cache_hits += 1);
        Some(entry)
    }

    /// Stores an entry, unless the compile may have read a file that the key lacks. If NVRTC cannot be asked, the scan alone decides.
    fn store<T: Serialize>(&self, prepared: &PreparedUnit, key: &Digest, entry: &T, read: &ReadFiles) {
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
            return;
        };
        if dependencies.complete && dependencies.still_hold() {
            let stored = Stored { value: entry, absent: absent.into_iter().map(PathBuf::into).collect() };
            // Encoding into memory fails for no value of these types; if it did, the next build would compile again.
            if let Ok(bytes) = postcard::to_allocvec(&stored) {
                self.cache.put(key, &bytes);
            }
        }
    }

    /// The places where a file would be found before this header of the toolkit, whose name only the preprocessor knew. `None` if the key does
    /// not cover the toolkit's headers, or the file is not one of them.
    fn places_before(&self, prepared: &PreparedUnit, file: &Path) -> Option<Vec<PathBuf>> {
        if !prepared.dependencies.trusts_toolkit {
            return None;
        }
        let folders = include_folders(&prepared.unit, &prepared.settings, &self.toolkit.include);
        let project = folders.len() - self.toolkit.include.len();
        // A folder of the toolkit may be inside of another one.
        let of_toolkit = folders.iter().enumerate().skip(project);
        let names = of_toolkit.filter_map(|(at, folder)| Some((at, file.strip_prefix(folder).ok()?)));
        let places: Vec<PathBuf> = names
            .flat_map(|(at, name)| folders.iter().take(at).map(move |folder| folder.join(name)))
            .collect();
        (!places.is_empty()).then_some(places)
    }

    /// Compiles several kernels of a text; also returns the release of NVRTC.
    fn call(
        &self,
        prepared: &PreparedUnit,
        kernels: &[&str],
        purpose: Purpose,
    ) -> Result<(WorkerOutput, (i32, i32)), Vec<CompileMessage>> {
        if let Some(path) = &prepared.dependencies.endless {
            let TranslationUnit { name: file, kernel_span, .. } = &prepared.unit;
            let error = EndlessInclude { path: path.display(), file, kernel: kernel_span.clone() };
            return Err(vec![CompileMessage::new(error)]);
        }
        let compiler = self.compiler().map_err(|error| vec![CompileMessage::new(error)])?;
        let start = Instant::now();
        let PreparedUnit { unit, settings, .. } = prepared;
        let result = call_for(compiler, unit, kernels, purpose, settings, &self.toolkit.include);
        self.count(|statistics| {
            statistics.nvrtc_calls += 1;
            statistics.nvrtc_time += start.elapsed();
        });
        let result = result.map_err(|errors| with_missing_headers(errors, &self.toolkit));
        Ok((result?, compiler.about().version))
    }
}

/// Adds to missing files of CUDA that there are no CUDA headers, if so and if there is no better advice.
fn with_missing_headers(mut errors: Vec<CompileMessage>, toolkit: &Toolkit) -> Vec<CompileMessage> {
    let Some(why) = &toolkit.without_headers else { return errors };
    for CompileMessage { cause, diagnostic, .. } in &mut errors {
        // One of the author's is missing with CUDA's headers as without.
        let is_of_cuda = matches!(cause, Cause::MissingFile(name) if cuda::is_cuda_header(name) || name.starts_with("crt/"));
        if is_of_cuda && diagnostic.help.is_none() {
            diagnostic.notes.push(why.message.clone());
            diagnostic.notes.extend(why.notes.iter().cloned());
            diagnostic.help.clone_from(&why.help);
        }
    }
    errors
}

/// What stands for the toolkit's headers as a whole: for pinned packages the version, which their folders' names hold; for
/// any other toolkit the names, sizes and times of all its headers.
fn stamp(toolkit: &Toolkit) -> Digest {
    let key = KeyHasher::new("toolkit");
    let key = toolkit.include.iter().fold(key, |key, folder| {
        let key = key.field(folder.as_os_str().as_encoded_bytes());
        if toolkit.is_pinned { key } else { key.field(&stamp_of_folder(folder).0) }
    });
    key.finish()
}

/// Loads the toolkit's NVRTC, here or in one of these processes.
///
/// # Errors
/// Where it cannot be loaded, with the commands that help.
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
