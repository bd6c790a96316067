//! Compiles as actions that any machine can run: their description ([`CompileAction`]) and program ([`execute`]). A
//! result's key is an action with one compile; workers execute several. Paths are relative to the project, so that
//! equal projects have equal actions. Must not know a cache's protocol.

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

/// Files of actions that are not the project's.
pub(super) const FOLDER: &str = ".cubinder";
const PROGRAM: &str = ".cubinder/bin/cubinder";
/// The folder of NVRTC's libraries.
const LIBRARIES: &str = ".cubinder/lib";
const NVRTC: &str = ".cubinder/lib/libnvrtc.so";

// In the folder of a compile.
const UNIT: &str = "unit.cu";
const PRELUDE: &str = "cubinder.h";
const REQUEST: &str = "request.json";
pub(super) const CODE: &str = "code";
pub(super) const LOG: &str = "log.txt";
pub(super) const RESULT: &str = "result.json";

/// Path of a file of the action's `number`th compile.
pub(super) fn path(number: usize, name: &str) -> String {
    format!("{FOLDER}/{number}/{name}")
}

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

/// Compiles with all that they read.
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

/// Numbers of actions for workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// Those that wait for a worker.
    pub queued: usize,
    /// Those on workers.
    pub running: usize,
    /// Executed ones by worker, if the server sends names.
    pub by_worker: BTreeMap<String, u64>,
    /// Those that the server answered from its cache.
    pub cached: u64,
}

/// What replaces a result that no server returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// A compile on this machine.
    Compiles,
    /// Nothing: kernels without results are errors.
    Errors,
    /// Nothing: results are only copied.
    NoCopies,
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

    /// Returns what workers do, and did.
    fn activity(&self) -> Activity;

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

impl Request {
    fn outputs(&self) -> &'static [&'static str] {
        if self.signature { &[LOG, RESULT] } else { &[CODE, LOG, RESULT] }
    }
}

/// The facts beside the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CodeResult {
    pub(super) nvrtc: (i32, i32),
    /// In the request's order.
    pub(super) symbols: Vec<String>,
    /// Files that NVRTC opened; `None` without a trace.
    pub(super) included: Option<Vec<String>>,
}

/// The kernels' parameters, in the request's order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SignatureResult {
    pub(super) signatures: Vec<Signature>,
    pub(super) included: Option<Vec<String>>,
}

impl CompileAction {
    /// `headers` are the include files of `unit`, and `folders` the directories that their paths need.
    pub(super) fn new(
        number: usize,
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
            (PROGRAM.to_owned(), Input::Program(program.to_owned())),
            (path(number, UNIT), Input::Bytes(unit.text.clone().into_bytes())),
            (path(number, PRELUDE), Input::Bytes(unit.prelude.text.clone().into_bytes())),
            (path(number, REQUEST), Input::Bytes(text)),
        ];
        inputs.extend(own);
        // The first is NVRTC itself, which loads the others by name.
        for (index, library) in nvrtc.iter().enumerate() {
            let name = library.file_name().and_then(|name| name.to_str());
            let name = name.ok_or("the name of an NVRTC library is not UTF-8")?;
            let path = if index == 0 { NVRTC.to_owned() } else { format!("{LIBRARIES}/{name}") };
            inputs.insert(path, Input::File(library.clone(), None));
        }
        Ok(CompileAction {
            inputs,
            folders,
            arguments: vec![PROGRAM.to_owned(), EXECUTE.to_owned()],
            outputs: request.outputs().iter().map(|name| path(number, name)).collect(),
        })
    }

    pub(super) fn inputs_agree(&self, next: &CompileAction) -> bool {
        next.inputs.iter().all(|(path, input)| match (self.inputs.get(path), input) {
            // Two spellings of a path.
            (Some(Input::File(_, Some(known))), Input::File(_, Some(digest))) => known == digest,
            (known, input) => known.is_none_or(|known| known == input),
        })
    }

    pub(super) fn join(&mut self, next: CompileAction) {
        self.inputs.extend(next.inputs);
        self.folders.extend(next.folders);
        self.outputs.extend(next.outputs);
    }

    /// Describes the execution of `count` compiles. Its key differs from the results': outputs are empty for a text
    /// that does not compile.
    pub(super) fn executing(mut self, count: usize) -> CompileAction {
        self.arguments.push(count.to_string());
        self
    }
}

/// Removes a compile's outputs, and returns them as the only one's.
pub(super) fn take_outputs(outputs: &mut Outputs, number: usize) -> Outputs {
    let own = [CODE, LOG, RESULT].map(|name| (path(0, name), outputs.remove(&path(number, name))));
    own.into_iter().filter_map(|(path, bytes)| Some((path, bytes?))).collect()
}

pub(super) fn code_outputs(output: &Output, code: &[u8], result: &CodeResult) -> Option<Outputs> {
    let files = [
        (CODE, code.to_vec()),
        (LOG, output.log.clone().into_bytes()),
        (RESULT, serde_json::to_vec(result).ok()?),
    ];
    Some(files.into_iter().map(|(name, bytes)| (path(0, name), bytes)).collect())
}

pub(super) fn signature_outputs(result: &SignatureResult) -> Option<Outputs> {
    let files = [(LOG, Vec::new()), (RESULT, serde_json::to_vec(result).ok()?)];
    Some(files.map(|(name, bytes)| (path(0, name), bytes)).into())
}

/// In the order of the program's kernels.
pub(super) fn signatures(output: &Output) -> Result<Vec<Signature>, SignatureError> {
    let symbols = output.lowered_names.iter().map(String::as_str).collect();
    let read = signature::read_ptx(&output.ptx, &symbols)?;
    // Two spellings of a kernel have one symbol.
    let missing = |symbol: &String| SignatureError::MissingFunction(symbol.clone());
    let find = |symbol| read.get(symbol).cloned().ok_or_else(|| missing(symbol));
    output.lowered_names.iter().map(find).collect()
}

/// Runs the `count` compiles of an action in the absolute folder `root`, and writes their outputs: an empty result
/// and messages for a text that does not compile. NVRTC runs in a process of `program`.
///
/// # Errors
/// A failure of this machine, for the action's log.
pub fn execute(root: &Path, program: &Path, count: usize) -> Result<(), String> {
    let workers = Arc::new(Workers::new(program, &root.join(NVRTC)));
    let about = workers.about()?;
    let compiler = Compiler::Workers(workers, about);
    (0..count).try_for_each(|number| execute_one(root, &compiler, number))
}

fn execute_one(root: &Path, compiler: &Compiler, number: usize) -> Result<(), String> {
    let text = |name: &str| {
        let bytes = source::bytes(&root.join(path(number, name)), source::LARGEST_TEXT)?;
        String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8"))
    };
    let request: Request =
        serde_json::from_str(&text(REQUEST)?).map_err(|error| format!("`{REQUEST}`: {error}"))?;
    let target: Target = request.target.parse().map_err(|_| format!("`{REQUEST}`: invalid target"))?;
    let purpose = if request.signature { Purpose::Signature(target.arch) } else { Purpose::Code(target) };
    let (folder, include) = request.include.split_first().ok_or("the request has no include folder")?;
    let unit_source = Source::new(path(number, UNIT), text(UNIT)?);
    let unit = TranslationUnit {
        name: path(number, UNIT),
        text: unit_source.text.clone(),
        prelude: Source::new(PRELUDE_NAME, text(PRELUDE)?),
        kernel_span: Span { source: Arc::clone(&unit_source), range: 0..0 },
        source: unit_source,
        folder: folder.into(),
        kernel: request.kernels.first().cloned().unwrap_or_default(),
    };
    let settings =
        Settings { include: include.iter().map(PathBuf::from).collect(), options: request.options.clone() };
    let kernels: Vec<&str> = request.kernels.iter().map(String::as_str).collect();
    let WorkerOutput { output, printed } = match call_for(compiler, &unit, &kernels, purpose, &settings, &[])
    {
        Ok(compiled) => compiled,
        Err(errors) => {
            check_text(&errors)?;
            let mut outputs: Outputs =
                request.outputs().iter().map(|name| (path(0, name), Vec::new())).collect();
            outputs.insert(path(0, LOG), render(&diagnostics(errors), Colour::Plain).into_bytes());
            return write_outputs(root, number, outputs);
        }
    };
    let included = match ReadFiles::parse(printed.as_deref()) {
        ReadFiles::NotAsked => None,
        ReadFiles::Unknown => return Err("NVRTC did not list the files that it read".to_owned()),
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
    write_outputs(root, number, outputs.ok_or("the result cannot be encoded")?)
}

fn write_outputs(root: &Path, number: usize, outputs: Outputs) -> Result<(), String> {
    for (name, bytes) in outputs {
        let own = name.replace(&path(0, ""), &path(number, ""));
        std::fs::write(root.join(&own), bytes).map_err(|error| format!("cannot write `{own}`: {error}"))?;
    }
    Ok(())
}

/// Fails unless the text is the reason: servers keep results, also empty ones.
fn check_text(errors: &[CompileMessage]) -> Result<(), String> {
    let has_answer = errors.iter().all(|error| error.cause != Cause::NoResult);
    if has_answer { Ok(()) } else { Err(render(&diagnostics(errors.to_vec()), Colour::Plain)) }
}

pub(super) fn messages(outputs: &Outputs) -> String {
    /// Characters.
    const MOST: usize = 2000;
    let log = outputs.get(&path(0, LOG)).map(Vec::as_slice).unwrap_or_default();
    String::from_utf8_lossy(log).trim().chars().take(MOST).collect()
}

pub(super) fn is_not_compiled(outputs: &Outputs) -> bool {
    outputs.get(&path(0, RESULT)).is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::Author;

    #[test]
    fn only_failures_of_the_machine_are_failures() {
        let result = |cause| {
            let diagnostic = Diagnostic::error("no");
            check_text(&[CompileMessage { cause, author: Author::Compiler, diagnostic }])
        };
        assert!(result(Cause::Other).is_ok() && result(Cause::NoResult).is_err());
        assert!(execute(Path::new("/no/such/folder"), Path::new("/bin/false"), 1).is_err());
    }

    #[test]
    fn compiles_with_different_files_are_not_joined() {
        let file = |path: &str, text: &str| Input::File(path.into(), Some(Digest::compute(text.as_bytes())));
        let action = |input: Input| CompileAction {
            inputs: BTreeMap::from([("a.h".to_owned(), input)]),
            folders: BTreeSet::new(),
            arguments: Vec::new(),
            outputs: Vec::new(),
        };
        let first = action(file("a.h", "1"));
        assert!(first.inputs_agree(&action(file("kernels/../a.h", "1"))));
        for other in [file("a.h", "2"), Input::Bytes(b"1".to_vec()), Input::Folder("a.h".into())] {
            assert!(!first.inputs_agree(&action(other)));
        }
    }
}
