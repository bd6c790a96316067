//! Compiling a unit with NVRTC.
//!
//! Owns: the options, the call, and NVRTC's log as diagnostics in the user's files ([`compile_unit`]); the processes that NVRTC may run in
//! ([`workers`]); and the session that answers from the cache where it can ([`Session`]).
//! Never: no GPU, no judgement about what the code object contains (`cubinder-analysis` does that).

mod diagnose;
mod host;
mod log;
mod options;
mod session;
pub mod workers;

pub use diagnose::merge_targets;
pub use diagnose::{HEADER_DOES_NOT_COMPILE, MAKE_IT_DYNAMIC, PASS_LESS};
pub use options::Settings;
pub use options::{has_line_information, include_folders};
pub use session::{Compiled, PreparedUnit, Session, Statistics};

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cubinder_model::{Target, TargetKind};
use nvrtc_sys::{CompileError, Nvrtc, Output, Program};
use serde::{Deserialize, Serialize};

use crate::codegen::{PRELUDE_NAME, TranslationUnit};
use crate::diagnostic::Diagnostic;
use crate::rules;
use options::Purpose;
use workers::{About, Lost, WorkerOutput, Workers};

/// What NVRTC takes the program's file to be. It looks for quoted includes in that file's folder, and there can be none below
/// `/dev/null`: the folder of the author's file is an include folder, and the current folder must not count. Messages and
/// `__FILE__` have the name of the `#line` in the text. The option `--no-source-include` would do more: headers would no
/// longer find their neighbours (13.0, tried).
const PROGRAM_NAME: &str = "/dev/null/k.cu";

/// Has NVRTC's front end print the name of each file that it opens, one blank before it for each file that it is included from.
/// No document of NVIDIA has it; 12.9, 13.0 and 13.5 do so, and the code is the same with it.
const TRACE_INCLUDES: &str = "-Xcudafe=--trace_includes";

/// The first line of every trace.
const BUILT_IN_HEADER: &str = "__nv_nvrtc_builtin_header.h";

/// What the front end calls texts that are in no file.
const BUILT_IN: [&str; 3] = [BUILT_IN_HEADER, "__nv_name_map", PRELUDE_NAME];

/// The files that a compile read, as far as NVRTC reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFiles {
    /// NVRTC cannot be asked.
    NotAsked,
    /// NVRTC was asked and printed no trace, so the compile may have read any file.
    Unknown,
    /// The files of the trace.
    Traced(Vec<PathBuf>),
}

impl ReadFiles {
    /// Parses the standard error of a compile with [`TRACE_INCLUDES`]; `None` for a compile without.
    fn parse(printed: Option<&[u8]>) -> ReadFiles {
        match printed.map(traced) {
            None => ReadFiles::NotAsked,
            Some(None) => ReadFiles::Unknown,
            Some(Some(files)) => ReadFiles::Traced(files),
        }
    }
}

/// The files of a trace; `None` if `printed` contains no trace.
fn traced(printed: &[u8]) -> Option<Vec<PathBuf>> {
    let has_trace = printed.split(|byte| *byte == b'\n').any(|line| line == BUILT_IN_HEADER.as_bytes());
    let lines = printed.split(|byte| *byte == b'\n').map(|line| {
        let depth = line.iter().take_while(|byte| **byte == b' ').count();
        line.get(depth..).unwrap_or_default()
    });
    let is_file =
        |name: &&[u8]| !name.is_empty() && !BUILT_IN.iter().any(|built_in| built_in.as_bytes() == *name);
    has_trace.then(|| lines.filter(is_file).map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

/// The stack of a compile. NVRTC recurses over the program; with a default thread's 2 MiB deep templates overflow it.
const STACK_BYTES: usize = 64 << 20;

/// What one call of NVRTC gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// A cubin, or PTX text for a virtual target.
    pub bytes: Vec<u8>,
    /// The kernel's symbol.
    pub symbol: String,
    /// NVRTC's warnings, as it wrote them.
    pub log: String,
    /// The files that the compile read.
    pub read: ReadFiles,
}

/// Compiles a unit for a target. Always calls NVRTC; [`Session::compile`] asks the cache first.
///
/// # Errors
/// What NVRTC says, in the user's files.
pub fn compile_unit(
    nvrtc: &Arc<Nvrtc>,
    unit: &TranslationUnit,
    target: Target,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<Raw, Vec<Diagnostic>> {
    call(&Compiler::Here(Arc::clone(nvrtc)), unit, Purpose::Code(target), settings, toolkit_include)
}

/// Compiles a unit with debug information for `target`'s architecture, for [`crate::signature::read`].
///
/// # Errors
/// What NVRTC says, in the user's files.
pub fn compile_for_signature(
    nvrtc: &Arc<Nvrtc>,
    unit: &TranslationUnit,
    target: Target,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<Raw, Vec<Diagnostic>> {
    call(&Compiler::Here(Arc::clone(nvrtc)), unit, Purpose::Signature(target.arch), settings, toolkit_include)
}

/// What compiles.
#[derive(Debug, Clone)]
enum Compiler {
    /// NVRTC in this process.
    Here(Arc<Nvrtc>),
    /// NVRTC in others, and what it says of itself.
    Elsewhere(Arc<Workers>, About),
    /// A function in its place.
    #[cfg(test)]
    Played(fn(&OwnedProgram) -> Result<WorkerOutput, CompileError>),
}

impl Compiler {
    fn about(&self) -> About {
        match self {
            Compiler::Here(nvrtc) => About::of(nvrtc),
            Compiler::Elsewhere(_, about) => about.clone(),
            #[cfg(test)]
            Compiler::Played(_) => About { version: (13, 0), archs: Ok(Vec::new()) },
        }
    }

    fn version(&self) -> (i32, i32) {
        match self {
            Compiler::Here(nvrtc) => nvrtc.version(),
            Compiler::Elsewhere(_, about) => about.version,
            #[cfg(test)]
            Compiler::Played(_) => (13, 0),
        }
    }

    /// Compiles. A worker process also asks NVRTC which files it reads.
    fn compile(&self, program: OwnedProgram) -> Result<Result<WorkerOutput, CompileError>, Lost> {
        match self {
            Compiler::Here(nvrtc) => compile_in_a_thread(Arc::clone(nvrtc), program)
                .map(|result| result.map(|output| WorkerOutput { output, printed: None }))
                .map_err(|error| Lost::Start(format!("cannot start a thread to compile in: {error}"))),
            Compiler::Elsewhere(workers, _) => {
                if !workers.cannot_trace.load(Ordering::Relaxed) {
                    let mut asking = program.clone();
                    asking.options.push(TRACE_INCLUDES.into());
                    match workers.compile(&asking)? {
                        // NVRTC rejects this option, or one of the user's.
                        Err(CompileError::Option { .. }) => {}
                        result => return Ok(result),
                    }
                }
                let result = workers.compile(&program)?;
                if matches!(result, Ok(_) | Err(CompileError::Rejected { .. })) {
                    workers.cannot_trace.store(true, Ordering::Relaxed);
                }
                Ok(result.map(|compiled| WorkerOutput { printed: None, ..compiled }))
            }
            #[cfg(test)]
            Compiler::Played(compile) => Ok(compile(&program)),
        }
    }
}

fn call(
    compiler: &Compiler,
    unit: &TranslationUnit,
    purpose: Purpose,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<Raw, Vec<Diagnostic>> {
    let kernels = [unit.kernel.as_str()];
    let compiled = call_for(compiler, unit, &kernels, purpose, settings, toolkit_include)?;
    take(compiled, purpose.target()).map_err(|problem| vec![problem])
}

/// Compiles several kernels of a unit's text at once.
fn call_for(
    compiler: &Compiler,
    unit: &TranslationUnit,
    kernels: &[&str],
    purpose: Purpose,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<WorkerOutput, Vec<Diagnostic>> {
    let target = purpose.target();
    let include = include_folders(unit, settings, toolkit_include);
    let options = options::options(unit, purpose, settings, &include, compiler.version());
    let program = OwnedProgram {
        source: unit.text.clone(),
        prelude: unit.prelude.text.clone(),
        options,
        kernels: kernels.iter().map(|kernel| (*kernel).to_owned()).collect(),
    };
    let result = compiler.compile(program).map_err(|lost| vec![no_answer(&lost, compiler, unit, target)])?;
    result.map_err(|error| failure(&error, compiler, unit, target, toolkit_include))
}

/// What is to be said where nothing came of a compile, not even a refusal.
fn no_answer(lost: &Lost, compiler: &Compiler, unit: &TranslationUnit, target: Target) -> Diagnostic {
    match lost {
        Lost::Start(why) => Diagnostic::error(why.clone()),
        Lost::Ended(ending) => {
            let (major, minor) = compiler.version();
            let error =
                Diagnostic::error(format!("NVRTC {major}.{minor} crashed on `{}` for `{target}`", unit.name))
                    .at(unit.kernel_span.clone(), "compiled for this kernel")
                    .note(format!("{}, which compiled nothing else", ending.reason))
                    .help("name another NVRTC: `--nvrtc <libnvrtc.so or its folder>`");
            ending
                .printed
                .iter()
                .fold(error, |error, line| error.note(format!("the process printed: {line}")))
        }
    }
}

/// What a compile needs, for a thread or a process that may outlive who asked for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OwnedProgram {
    source: String,
    prelude: String,
    options: Vec<OsString>,
    kernels: Vec<String>,
}

impl OwnedProgram {
    fn compile(&self, nvrtc: &Nvrtc) -> Result<Output, CompileError> {
        let kernels: Vec<&str> = self.kernels.iter().map(String::as_str).collect();
        nvrtc.compile(&Program {
            source: &self.source,
            name: PROGRAM_NAME,
            headers: &[(PRELUDE_NAME, &self.prelude)],
            options: &self.options,
            name_expressions: &kernels,
        })
    }
}

/// Compiles in a thread of its own, and gives what comes of it.
fn compile_in_a_thread(nvrtc: Arc<Nvrtc>, program: OwnedProgram) -> io::Result<Result<Output, CompileError>> {
    in_a_thread(move || {
        let result = program.compile(&nvrtc);
        let has_failed = result.is_err();
        (result, has_failed)
    })
}

/// Does this in a thread of its own, whose stack is large enough for NVRTC. It gives its result, and whether a compile has failed.
///
/// The thread of a compile that failed stays until the process ends: NVRTC 13.0 keeps something of it, and a process whose
/// thread is gone crashes at its end, or in a later compile (seen where a kernel's parameters are larger than 32,764 bytes).
fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> (T, bool) + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("nvrtc".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || {
        let (result, has_failed) = work();
        // Who asked waits for it, so it is there.
        let _ = sender.send(result);
        if has_failed {
            loop {
                std::thread::park();
            }
        }
    })?;
    receiver.recv().map_err(|_| io::Error::other("the thread of the compile ended early"))
}

fn take(compiled: WorkerOutput, target: Target) -> Result<Raw, Diagnostic> {
    let read = ReadFiles::parse(compiled.printed.as_deref());
    let output = compiled.output;
    let bytes = match target.kind {
        TargetKind::Cubin => output.cubin,
        TargetKind::Ptx | TargetKind::Native => output.ptx,
    };
    let symbol = output.lowered_names.into_iter().next().unwrap_or_default();
    if bytes.is_empty() || symbol.is_empty() {
        return Err(Diagnostic::error(format!("NVRTC reported success for `{target}` and gave no code")));
    }
    Ok(Raw { bytes, symbol, log: output.log, read })
}

fn failure(
    error: &CompileError,
    compiler: &Compiler,
    unit: &TranslationUnit,
    target: Target,
    library: &[PathBuf],
) -> Vec<Diagnostic> {
    match error {
        CompileError::Option { log } => vec![refused_option(log, &compiler.about(), target)],
        CompileError::Nul { what } => vec![
            Diagnostic::error(format!("the {what} holds a NUL byte"))
                .at(unit.kernel_span.clone(), "compiled for this kernel")
                .note(format!("the source is `{}`", unit.source.path.display())),
        ],
        CompileError::Rejected { log } | CompileError::Failed { log, .. } => {
            let log = log::parse(log);
            let mut diagnostics = diagnose::diagnose(&log, unit, library);
            if !diagnostics.iter().any(|known| known.severity == crate::diagnostic::Severity::Error) {
                let message = format!("NVRTC failed on `{}` for `{target}`: {error}", unit.name);
                diagnostics.push(
                    Diagnostic::error(message).at(unit.kernel_span.clone(), "compiled for this kernel"),
                );
            }
            if let Some(last) = diagnostics.last_mut() {
                last.notes.extend(log.rest.iter().map(|line| format!("NVRTC says: {line}")));
                last.help = last.help.take().or_else(|| diagnose::newer_needed(&log.rest));
            }
            diagnostics
        }
    }
}

/// The options are ours and the user's; the architecture is the likeliest to be refused.
fn refused_option(log: &str, nvrtc: &About, target: Target) -> Diagnostic {
    let (major, minor) = nvrtc.version;
    if log.contains("--gpu-architecture") {
        let diagnostic = Diagnostic::error(format!("NVRTC {major}.{minor} cannot compile for `{target}`"))
            .code(rules::TARGET_NOT_SERVED);
        let diagnostic = match &nvrtc.archs {
            Ok(archs) => {
                let archs: Vec<String> = archs.iter().map(u32::to_string).collect();
                diagnostic.note(format!("it knows the architectures {}", archs.join(", ")))
            }
            Err(error) => diagnostic.note(error.clone()),
        };
        return diagnostic
            .help("leave the target out, or name another NVRTC: `--nvrtc <libnvrtc.so or its folder>`");
    }
    let said = log.trim().trim_start_matches("nvrtc: error: ");
    Diagnostic::error(format!("NVRTC {major}.{minor} does not take an option: {said}"))
        .code(rules::NVRTC_OPTION)
        .help("look at `options` in the manifest's `[compile]` and in `cubinder.toml`, and at `--option`")
}

#[cfg(test)]
mod cubin_tests;
#[cfg(test)]
mod signature_tests;
#[cfg(test)]
mod tests;
