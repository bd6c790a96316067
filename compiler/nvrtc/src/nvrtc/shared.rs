//! Compiles as actions that any machine can run: the description of an action ([`CompileAction`]), its files, and its
//! program ([`execute`]). Paths are relative to the project, so that equal projects have equal actions on all machines.
//! Must not know the protocol of a cache.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::{Digest, Target};
use nvrtc_sys::Output;
use serde::{Deserialize, Serialize};

use super::options::{Purpose, Settings};
use super::workers::{WorkerOutput, Workers};
use super::{Cause, CompileMessage, Compiler, ReadFiles, call_for, diagnostics};
use crate::codegen::{PRELUDE_NAME, TranslationUnit};
use crate::diagnostic::{Colour, Diagnostic, Source, Span, render};
use crate::kernel_signature::Signature;
use crate::signature::{self, SignatureError};
use crate::source;

/// The argument with which this program executes the action in the current folder.
pub const EXECUTE: &str = "--execute-compile";

/// The exit code of [`EXECUTE`] if the text does not compile; other ones except 0 are failures of the machine.
pub const DOES_NOT_COMPILE: u8 = 65;

/// Files of actions that are not the project's.
pub(super) const FOLDER: &str = ".cubinder";
const PROGRAM: &str = ".cubinder/bin/cubinder";
/// The folder of NVRTC's libraries.
const LIBRARIES: &str = ".cubinder/lib";
const NVRTC: &str = ".cubinder/lib/libnvrtc.so";
const UNIT: &str = ".cubinder/unit.cu";
const PRELUDE: &str = ".cubinder/cubinder.h";
const REQUEST: &str = ".cubinder/request.json";

pub(super) const CODE: &str = ".cubinder/out/code";
pub(super) const LOG: &str = ".cubinder/out/log.txt";
pub(super) const RESULT: &str = ".cubinder/out/result.json";

/// Contents of an action's output files by path.
pub type Outputs = BTreeMap<String, Vec<u8>>;

/// A file or folder that an action reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Contents.
    Bytes(Vec<u8>),
    /// A file, with its digest if known.
    File(PathBuf, Option<Digest>),
    /// An executable file.
    Program(PathBuf),
    /// A folder with all files in it.
    Folder(PathBuf),
}

/// A compile with all that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileAction {
    /// Inputs by path, relative to the folder in which the action runs.
    pub inputs: BTreeMap<String, Input>,
    /// Directories that exist, even without inputs.
    pub folders: BTreeSet<String>,
    /// The program's path and arguments.
    pub arguments: Vec<String>,
    /// Paths of the files that it writes.
    pub outputs: Vec<String>,
}

/// A cache of results that machines share. Failures are misses: the caller compiles.
pub trait SharedCache: fmt::Debug + Send + Sync {
    /// Returns the entry of an action.
    ///
    /// # Errors
    /// An input cannot be read or has changed.
    fn entry<'c>(&'c self, action: CompileAction) -> Result<Box<dyn SharedEntry + 'c>, String>;

    /// Returns whether workers execute actions without a result.
    fn executes(&self) -> bool;

    /// Returns whether the cache accepts results.
    fn stores(&self) -> bool;

    /// Returns the first failure of each server once.
    fn take_warnings(&self) -> Vec<Diagnostic>;
}

/// An action's result in a [`SharedCache`].
pub trait SharedEntry {
    /// Returns the result, if the cache has it.
    fn get(&self) -> Option<Outputs>;

    /// Returns the result of a worker; `None` also if the compile fails.
    fn execute(&self) -> Option<Outputs>;

    /// Stores the result, if the cache accepts it.
    fn put(&self, outputs: &Outputs);

    /// Records that the cache's result cannot be used.
    fn reject(&self, reason: &str);
}

/// What the action compiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// Whether the result is the kernels' signatures instead of code.
    pub(super) signature: bool,
    pub(super) target: String,
    pub(super) kernels: Vec<String>,
    /// Include folders in search order, the unit's own first.
    pub(super) include: Vec<String>,
    /// The project's options.
    pub(super) options: Vec<String>,
}

/// The facts beside the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CodeResult {
    pub(super) nvrtc: (i32, i32),
    /// Symbols of the kernels, in the request's order.
    pub(super) symbols: Vec<String>,
    /// Files that NVRTC opened; `None` without a trace.
    pub(super) included: Option<Vec<String>>,
}

/// The kernels' parameters, in the request's order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SignatureResult {
    pub(super) signatures: Vec<Signature>,
    /// Files that NVRTC opened; `None` without a trace.
    pub(super) included: Option<Vec<String>>,
}

impl CompileAction {
    /// Describes a compile of `unit` by `program` with `nvrtc`. `headers` are its include files, and `folders` the
    /// directories that their paths need.
    pub(super) fn new(
        request: &Request,
        unit: &TranslationUnit,
        headers: BTreeMap<String, Input>,
        folders: BTreeSet<String>,
        program: &Path,
        nvrtc: &[PathBuf],
    ) -> Result<CompileAction, &'static str> {
        let mut inputs = headers;
        // Serialization cannot fail for these types.
        let text = serde_json::to_vec(request).map_err(|_| "the request cannot be encoded")?;
        let own = [
            (PROGRAM, Input::Program(program.to_owned())),
            (UNIT, Input::Bytes(unit.text.clone().into_bytes())),
            (PRELUDE, Input::Bytes(unit.prelude.text.clone().into_bytes())),
            (REQUEST, Input::Bytes(text)),
        ];
        inputs.extend(own.map(|(path, input)| (path.to_owned(), input)));
        // The first is NVRTC itself, which loads the others by name.
        for (index, library) in nvrtc.iter().enumerate() {
            let name = library.file_name().and_then(|name| name.to_str());
            let name = name.ok_or("the name of an NVRTC library is not UTF-8")?;
            let path = if index == 0 { NVRTC.to_owned() } else { format!("{LIBRARIES}/{name}") };
            inputs.insert(path, Input::File(library.clone(), None));
        }
        let outputs: &[&str] = if request.signature { &[RESULT] } else { &[CODE, LOG, RESULT] };
        Ok(CompileAction {
            inputs,
            folders,
            arguments: vec![PROGRAM.to_owned(), EXECUTE.to_owned()],
            outputs: outputs.iter().map(|path| (*path).to_owned()).collect(),
        })
    }
}

/// Returns the output files of a compile for code.
pub(super) fn code_outputs(output: &Output, code: &[u8], result: &CodeResult) -> Option<Outputs> {
    let files = [
        (CODE, code.to_vec()),
        (LOG, output.log.clone().into_bytes()),
        (RESULT, serde_json::to_vec(result).ok()?),
    ];
    Some(files.into_iter().map(|(path, bytes)| (path.to_owned(), bytes)).collect())
}

/// Returns the output file of a compile for signatures.
pub(super) fn signature_outputs(result: &SignatureResult) -> Option<Outputs> {
    Some(Outputs::from([(RESULT.to_owned(), serde_json::to_vec(result).ok()?)]))
}

/// Reads the signatures of the program's kernels, in their order.
pub(super) fn signatures(output: &Output) -> Result<Vec<Signature>, SignatureError> {
    let symbols = output.lowered_names.iter().map(String::as_str).collect();
    let read = signature::read_ptx(&output.ptx, &symbols)?;
    // Two spellings of a kernel have one symbol.
    let missing = |symbol: &String| SignatureError::MissingFunction(symbol.clone());
    let find = |symbol| read.get(symbol).cloned().ok_or_else(|| missing(symbol));
    output.lowered_names.iter().map(find).collect()
}

/// Compiles the action in the absolute folder `root`, and writes its outputs. NVRTC runs in a process of `program`.
///
/// # Errors
/// The exit code, and a message for the action's log.
pub fn execute(root: &Path, program: &Path) -> Result<(), (u8, String)> {
    run(root, program).map_err(|Stop { code, message }| (code, message))
}

/// Why an action has no outputs.
struct Stop {
    code: u8,
    message: String,
}

/// A failure of the machine.
impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop { code: 1, message }
    }
}

impl From<&str> for Stop {
    fn from(message: &str) -> Stop {
        Stop::from(message.to_owned())
    }
}

impl From<Vec<CompileMessage>> for Stop {
    fn from(errors: Vec<CompileMessage>) -> Stop {
        let has_answer = errors.iter().all(|error| error.cause != Cause::NoResult);
        let code = if has_answer { DOES_NOT_COMPILE } else { 1 };
        Stop { code, message: render(&diagnostics(errors), Colour::Plain) }
    }
}

fn run(root: &Path, program: &Path) -> Result<(), Stop> {
    let text = |name: &str| {
        let bytes = source::bytes(&root.join(name), source::LARGEST_TEXT)?;
        String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8"))
    };
    let request: Request =
        serde_json::from_str(&text(REQUEST)?).map_err(|error| format!("`{REQUEST}`: {error}"))?;
    let target: Target = request.target.parse().map_err(|_| format!("`{REQUEST}`: invalid target"))?;
    let purpose = if request.signature { Purpose::Signature(target.arch) } else { Purpose::Code(target) };
    let workers = Arc::new(Workers::new(program, &root.join(NVRTC)));
    let about = workers.about()?;
    let compiler = Compiler::Workers(workers, about);
    let (folder, include) = request.include.split_first().ok_or("the request has no include folder")?;
    let unit_source = Source::new(UNIT, text(UNIT)?);
    let unit = TranslationUnit {
        name: UNIT.to_owned(),
        text: unit_source.text.clone(),
        prelude: Source::new(PRELUDE_NAME, text(PRELUDE)?),
        kernel_span: Span { source: Arc::clone(&unit_source), range: 0..0 },
        source: unit_source,
        folder: folder.into(),
        kernel: request.kernels.first().cloned().unwrap_or_default(),
    };
    let settings =
        Settings { include: include.iter().map(PathBuf::from).collect(), options: request.options };
    let kernels: Vec<&str> = request.kernels.iter().map(String::as_str).collect();
    let WorkerOutput { output, printed } = call_for(&compiler, &unit, &kernels, purpose, &settings, &[])?;
    let included = match ReadFiles::parse(printed.as_deref()) {
        ReadFiles::NotAsked => None,
        ReadFiles::Unknown => return Err("NVRTC did not list the files that it read".into()),
        ReadFiles::Traced(files) => {
            Some(files.iter().map(|file| file.to_string_lossy().into_owned()).collect())
        }
    };
    let outputs = if request.signature {
        let signatures = signatures(&output).map_err(|error| error.to_string())?;
        signature_outputs(&SignatureResult { signatures, included })
    } else {
        let code = if output.cubin.is_empty() { &output.ptx } else { &output.cubin };
        let (nvrtc, symbols) = (compiler.version(), output.lowered_names.clone());
        code_outputs(&output, code, &CodeResult { nvrtc, symbols, included })
    };
    for (path, bytes) in outputs.ok_or("the result cannot be encoded")? {
        let path = root.join(path);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        written
            .and_then(|()| std::fs::write(&path, bytes))
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::Author;

    #[test]
    fn only_errors_in_the_text_have_the_reserved_code() {
        let stop = |cause| {
            let diagnostic = Diagnostic::error("no");
            Stop::from(vec![CompileMessage { cause, author: Author::Compiler, diagnostic }]).code
        };
        assert_eq!((stop(Cause::Other), stop(Cause::NoResult)), (DOES_NOT_COMPILE, 1));
        let (code, message) = execute(Path::new("/no/such/folder"), Path::new("/bin/false")).unwrap_err();
        assert!(code == 1 && message.contains("request.json"), "{message}");
    }
}
