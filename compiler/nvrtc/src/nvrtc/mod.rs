//! Compiles units with NVRTC. Never uses a GPU; `cubinder-analysis` checks the code.

mod cause;
mod diagnose;
mod errors;
mod host;
mod log;
mod options;
mod session;
pub mod shared;
pub mod workers;

pub use cause::{Cause, Excess};
pub use diagnose::{Author, CompileMessage, diagnostics, merge_targets};
pub use errors::{MAKE_IT_DYNAMIC, PASS_LESS};
pub use options::{Settings, has_line_information, include_folders};
pub use session::{Batch, Compile, CompiledKernel, Copied, PreparedUnit, Session, Statistics, contains_path};

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cubinder_model::Target;
use nvrtc_sys::{CompileError, Nvrtc, Program};

use crate::codegen::{PRELUDE_NAME, TranslationUnit};
use crate::diagnostic::{Diagnostic, Severity};
use errors::{Crash, Failure, Nul, RejectedOption, UnknownTarget};
use options::Purpose;
use workers::{Ending, NvrtcInfo, WorkerFailure, WorkerOutput, Workers};

/// NVRTC searches this file's folder for quoted includes: `/dev/null` has none, unlike the current folder, and
/// `--no-source-include` would also hide headers beside headers (13.0). Messages use the text's `#line`.
const PROGRAM_NAME: &str = "/dev/null/k.cu";

/// Prints each opened file, indented by include depth. Undocumented; NVRTC 12.9, 13.0 and 13.5 accept it without changing code.
const TRACE_INCLUDES: &str = "-Xcudafe=--trace_includes";

/// Starts every trace.
const BUILT_IN_HEADER: &str = "__nv_nvrtc_builtin_header.h";

/// Traced names without file.
const BUILT_IN: [&str; 3] = [BUILT_IN_HEADER, "__nv_name_map", PRELUDE_NAME];

/// Files that a compile read, according to NVRTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFiles {
    /// Tracing is unavailable.
    NotAsked,
    /// NVRTC printed no trace; any file may have been read.
    Unknown,
    /// Traced files.
    Traced(Vec<PathBuf>),
}

impl ReadFiles {
    fn parse(printed: Option<&[u8]>) -> ReadFiles {
        match printed.map(traced) {
            None => ReadFiles::NotAsked,
            Some(None) => ReadFiles::Unknown,
            Some(Some(files)) => ReadFiles::Traced(files),
        }
    }
}

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

/// NVRTC recurses over the program; deep templates overflow 2 MiB.
const STACK_BYTES: usize = 64 << 20;

#[derive(Debug, Clone)]
enum Compiler {
    InProcess(Arc<Nvrtc>),
    /// Worker processes and their NVRTC.
    Workers(Arc<Workers>, NvrtcInfo),
    #[cfg(test)]
    StandIn(fn(&Program) -> Result<WorkerOutput, CompileError>),
}

impl Compiler {
    fn about(&self) -> NvrtcInfo {
        match self {
            Compiler::InProcess(nvrtc) => NvrtcInfo::query(nvrtc),
            Compiler::Workers(_, about) => about.clone(),
            #[cfg(test)]
            Compiler::StandIn(_) => NvrtcInfo { version: self.version(), archs: Ok(Vec::new()) },
        }
    }

    fn version(&self) -> (i32, i32) {
        match self {
            Compiler::InProcess(nvrtc) => nvrtc.version(),
            Compiler::Workers(_, about) => about.version,
            #[cfg(test)]
            Compiler::StandIn(_) => (13, 0),
        }
    }

    /// Compiles; worker processes also trace includes.
    fn compile(&self, program: Program) -> Result<Result<WorkerOutput, CompileError>, WorkerFailure> {
        match self {
            Compiler::InProcess(nvrtc) => {
                let nvrtc = Arc::clone(nvrtc);
                in_a_thread(move || {
                    let result = nvrtc.compile(&program).map(|output| WorkerOutput { output, printed: None });
                    let has_failed = result.is_err();
                    (result, has_failed)
                })
                .map_err(|error| WorkerFailure::Start(format!("cannot start a compile thread: {error}")))
            }
            Compiler::Workers(workers, _) => {
                if !workers.cannot_trace.load(Ordering::Relaxed) {
                    let mut asking = program.clone();
                    asking.options.push(TRACE_INCLUDES.into());
                    match workers.compile(&asking)? {
                        // NVRTC rejects the trace option or a user's.
                        Err(CompileError::Option(_)) => {}
                        result => return Ok(result),
                    }
                }
                let result = workers.compile(&program)?;
                if matches!(result, Ok(_) | Err(CompileError::Rejected(_))) {
                    workers.cannot_trace.store(true, Ordering::Relaxed);
                }
                Ok(result.map(|compiled| WorkerOutput { printed: None, ..compiled }))
            }
            #[cfg(test)]
            Compiler::StandIn(compile) => Ok(compile(&program)),
        }
    }
}

fn call_for(
    compiler: &Compiler,
    unit: &TranslationUnit,
    kernels: &[&str],
    purpose: Purpose,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<WorkerOutput, Vec<CompileMessage>> {
    let target = purpose.target();
    let include = include_folders(unit, settings, toolkit_include);
    let options = options::options(unit, purpose, settings, &include, compiler.version());
    let program = Program {
        source: unit.text.clone(),
        name: PROGRAM_NAME.to_owned(),
        headers: vec![(PRELUDE_NAME.to_owned(), unit.prelude.text.clone())],
        options,
        name_expressions: kernels.iter().map(|kernel| (*kernel).to_owned()).collect(),
    };
    match compiler.compile(program) {
        Ok(result) => result.map_err(|error| failure(&error, compiler, unit, target, toolkit_include)),
        Err(WorkerFailure::Start(reason)) => Err(vec![CompileMessage {
            cause: Cause::NoResult,
            ..CompileMessage::new(Diagnostic::error(reason))
        }]),
        Err(WorkerFailure::Ended(Ending { reason, printed })) => {
            let (major, minor) = compiler.version();
            let (file, kernel) = (unit.name.clone(), unit.kernel_span.clone());
            let crash = Crash { major, minor, file, target, kernel, reason, printed };
            Err(vec![CompileMessage { cause: Cause::NoResult, ..CompileMessage::new(crash) }])
        }
    }
}

/// Runs `work` with a large enough stack.
///
/// A failed compile's thread stays: without it NVRTC 13.0, which keeps state, crashes at exit or in a later compile
/// (seen above 32,764 parameter bytes).
fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> (T, bool) + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("nvrtc".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || {
        let (result, has_failed) = work();
        // The receiver is waiting, so this cannot fail.
        let _ = sender.send(result);
        if has_failed {
            loop {
                std::thread::park();
            }
        }
    })?;
    receiver.recv().map_err(|_| io::Error::other("the compile thread exited early"))
}

fn failure(
    error: &CompileError,
    compiler: &Compiler,
    unit: &TranslationUnit,
    target: Target,
    library: &[PathBuf],
) -> Vec<CompileMessage> {
    let kernel = unit.kernel_span.clone();
    let log = match error {
        CompileError::Option(log) => return vec![rejected_option(log, &compiler.about(), target)],
        CompileError::Nul(what) => {
            return vec![CompileMessage::new(Nul { what, file: unit.source.path.display(), kernel })];
        }
        CompileError::Rejected(log) | CompileError::Failed { log, .. } => log::parse(log),
    };
    let mut messages = diagnose::diagnose(&log, unit, library);
    if !messages.iter().any(|message| message.diagnostic.severity == Severity::Error) {
        let message = CompileMessage::new(Failure { file: &unit.name, target, error, kernel });
        // Such as memory that NVRTC cannot allocate.
        let is_of_machine = matches!(error, CompileError::Failed { .. });
        let cause = if is_of_machine { Cause::NoResult } else { message.cause.clone() };
        messages.push(CompileMessage { cause, ..message });
    }
    if let Some(CompileMessage { diagnostic: last, .. }) = messages.last_mut() {
        last.notes.extend(log.rest.iter().map(|line| format!("NVRTC reports: {line}")));
        last.help = last.help.take().or_else(|| log.required_arch.map(|arch| format!(
            "put this code between `#if __CUDA_ARCH__ >= {arch}0` and `#endif`, or remove targets below `sm_{arch}`"
        )));
    }
    messages
}

/// Most likely the architecture: other options are checked before.
fn rejected_option(log: &str, nvrtc: &NvrtcInfo, target: Target) -> CompileMessage {
    let (major, minor) = nvrtc.version;
    match log::rejected_option(log) {
        None => {
            let archs = nvrtc.archs.as_ref().map(|archs| {
                let archs: Vec<String> = archs.iter().map(u32::to_string).collect();
                format!("it supports the architectures {}", archs.join(", "))
            });
            let archs = archs.unwrap_or_else(Clone::clone);
            CompileMessage::new(UnknownTarget { major, minor, target, archs })
        }
        Some(reported) => CompileMessage {
            cause: Cause::Option(reported.to_owned()),
            ..CompileMessage::new(RejectedOption { major, minor, reported })
        },
    }
}

#[cfg(test)]
mod cubin_tests;
#[cfg(test)]
mod signature_tests;
#[cfg(test)]
pub(crate) mod tests;
