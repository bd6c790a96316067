//! Runs of this program on workers with a GPU: the action ([`GpuRun`]), its execution ([`Fleet`]), and the worker's
//! side ([`execute`]). Results are never cached: they depend on the hardware.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use cubinder_manifest::config::{Endpoint, RemoteConfig, WorkerPool};
use cubinder_nvrtc::nvrtc::shared::Input;
use cubinder_remote::{Action, Command, EncodedTree, Error, Remote};
use cubinder_source::diagnostic::Diagnostic;

use super::inputs::InputFiles;
use super::{end, settings};

/// The argument with which this program runs itself in the action's folder.
pub const EXECUTE: &str = "--execute-on-gpu";

/// This program, relative to [`GpuRun::folder`] as the following paths.
pub const PROGRAM: &str = ".cubinder/bin/cubinder";
/// The plugin, compiled from a manifest.
pub const PLUGIN: &str = ".cubinder/plugin.bundle";
/// The points of `cubinder tune`.
pub const TUNING: &str = ".cubinder/out/tuning.toml";

const OUTPUTS: &str = ".cubinder/out";
const STATUS: &str = ".cubinder/out/status";
const REPORT: &str = ".cubinder/out/report";
const LOG: &str = ".cubinder/out/log";
const TEMPORARY: &str = ".cubinder/tmp";

cubinder_source::diagnostics! {
    struct WorkerFailed { pool: String, url: String, error: Error, properties: String, help: &'static str }
    error "cannot run on workers `{pool}`: {error}" {
        note: "the server is `{url}`; the properties of `{pool}` are {properties}";
        help: "{help}";
    }

    struct InvalidResult { pool: String, reason: String }
    error "invalid result of a worker of `{pool}`: {reason}" {
        help: "check that the server's workers keep output files unchanged";
    }

    struct InputNotSent { pool: String, reason: String }
    error "cannot send the inputs to workers `{pool}`: {reason}" {
        help: "make the files readable, and do not change them during the run";
    }
}

/// A command of this program with all files that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuRun {
    /// Arguments of the program. Paths are relative to `folder`.
    pub arguments: Vec<String>,
    /// Inputs by path, relative to the action's folder, with [`PROGRAM`].
    pub inputs: BTreeMap<String, Input>,
    /// Directories that exist, even without inputs.
    pub folders: BTreeSet<String>,
    /// The folder in which the command runs; empty for the action's.
    pub folder: String,
    /// Maximum run time, and maximum time in the queue.
    pub limit: Duration,
}

/// The result of a command on a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuResult {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub report: String,
    /// Standard error.
    pub log: String,
    /// The file [`TUNING`]; empty if the command did not write it.
    pub tuning: String,
}

/// A server that executes actions.
#[derive(Debug)]
pub struct Fleet {
    url: String,
    remote: Remote,
    files: InputFiles,
}

impl Fleet {
    /// Neither reads files of the settings nor connects.
    #[must_use]
    pub fn new(config: &RemoteConfig, executor: &Endpoint, files: InputFiles) -> Fleet {
        Fleet { url: executor.to_string(), remote: Remote::new(settings(config, executor, Some(end))), files }
    }

    /// Returns the server's URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs the command on one worker, and waits for its result.
    ///
    /// # Errors
    /// The server or the worker failed, or an input is unreadable. A command that fails is a result.
    pub fn run(&self, pool: &WorkerPool, run: &GpuRun) -> Result<GpuResult, Diagnostic> {
        let (action, tree) = action(pool, run, &self.files).map_err(|reason| unsent(pool, reason))?;
        let messages = tree.blobs.iter().chain(&action.blobs);
        let inputs = self.files.blobs(run.inputs.values(), messages);
        let inputs = inputs.map_err(|reason| unsent(pool, reason))?;
        let outputs = self.remote.try_execute(&action, &inputs).map_err(|error| self.failure(pool, error))?;
        let invalid = |reason: &str| InvalidResult { pool: pool.name.clone(), reason: reason.to_owned() };
        let outputs = outputs.ok_or_else(|| invalid("it has no output files"))?;
        let text = |name| {
            let bytes = outputs.get(&below(&run.folder, name)).map_or(&[][..], Vec::as_slice);
            String::from_utf8_lossy(bytes).into_owned()
        };
        Ok(GpuResult {
            code: text(STATUS).parse().map_err(|_| invalid("the exit code is not a number"))?,
            report: text(REPORT),
            log: text(LOG),
            tuning: text(TUNING),
        })
    }

    fn failure(&self, pool: &WorkerPool, error: Error) -> Diagnostic {
        let help = match &error {
            Error::NoWorker { .. } => {
                "no worker with these properties is connected or free: check `platform`, or raise `--worker-timeout`"
            }
            error if error.is_late() => "raise `--worker-timeout` if the run needs more time",
            Error::Command { .. } => {
                "workers must be able to run this program: Linux of the same architecture, with glibc"
            }
            _ => "check the server and `[remote]` in `cubinder.toml` (docs/gpu-workers.md)",
        };
        let (pool, url, properties) = (pool.name.clone(), self.url.clone(), properties(pool));
        WorkerFailed { pool, url, error, properties, help }.into()
    }
}

/// Formats a pool's platform properties: `gpu=h100`.
#[must_use]
pub fn properties(pool: &WorkerPool) -> String {
    let list: Vec<String> = pool.platform.iter().map(|(name, value)| format!("`{name}={value}`")).collect();
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

fn unsent(pool: &WorkerPool, reason: String) -> Diagnostic {
    InputNotSent { pool: pool.name.clone(), reason }.into()
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn action(pool: &WorkerPool, run: &GpuRun, files: &InputFiles) -> Result<(Action, EncodedTree), String> {
    let folder = if run.folder.is_empty() { "." } else { &run.folder };
    let own = [below(&run.folder, PROGRAM), EXECUTE.to_owned(), folder.to_owned()];
    let command = Command {
        arguments: own.into_iter().chain(run.arguments.iter().cloned()).collect(),
        outputs: [STATUS, REPORT, LOG, TUNING].map(|name| below(&run.folder, name)).to_vec(),
        platform: pool.platform.clone(),
        environment: pool.environment.clone(),
        timeout: run.limit,
        queue: Some(run.limit),
        do_not_cache: true,
    };
    let tree = files.tree(&run.inputs, &run.folders)?;
    Ok((Action::new(&command, tree.root), tree))
}

/// Runs `program` in a folder below the action's folder `root`, and writes its outputs, whatever its exit code is. `arguments` follow
/// [`EXECUTE`].
///
/// # Errors
/// A message: the program could not run, or a signal ended it.
pub fn execute(
    root: &Path,
    program: &Path,
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<(), String> {
    let root = &root.join(arguments.next().ok_or("the folder is missing")?);
    for folder in [OUTPUTS, TEMPORARY] {
        let created = std::fs::create_dir_all(root.join(folder));
        created.map_err(|error| format!("cannot create `{folder}`: {error}"))?;
    }
    let create = |name: &str| {
        File::create(root.join(name)).map_err(|error| format!("cannot create `{name}`: {error}"))
    };
    // Every output must exist.
    create(TUNING)?;
    let mut command = Process::new(program);
    command.args(arguments).current_dir(root);
    command.stdin(Stdio::null()).stdout(create(REPORT)?).stderr(create(LOG)?);
    // Sandboxes may lack `/tmp`.
    if std::env::var_os("TMPDIR").is_none() {
        command.env("TMPDIR", root.join(TEMPORARY));
    }
    let status = command.status().map_err(|error| format!("cannot start `{PROGRAM}`: {error}"))?;
    let code = status.code().ok_or_else(|| format!("`{PROGRAM}` was ended: {status}"))?;
    std::fs::write(root.join(STATUS), code.to_string())
        .map_err(|error| format!("cannot write `{STATUS}`: {error}"))
}

#[cfg(test)]
mod tests {
    use cubinder_nvrtc::cache::Cache;

    use super::*;

    fn pool() -> WorkerPool {
        let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        WorkerPool {
            name: "h100".to_owned(),
            platform: pair("gpu", "h100"),
            environment: pair("LD_LIBRARY_PATH", "/drivers"),
        }
    }

    fn run(bytes: &[u8]) -> GpuRun {
        GpuRun {
            arguments: vec!["test".to_owned()],
            inputs: BTreeMap::from([(PLUGIN.to_owned(), Input::Bytes(bytes.to_vec()))]),
            folders: ["tests".to_owned()].into(),
            folder: String::new(),
            limit: Duration::from_secs(60),
        }
    }

    #[test]
    fn equal_runs_are_equal_actions() {
        let digest = |pool: &WorkerPool, run: &GpuRun| {
            let (action, _) = action(pool, run, &InputFiles::new(Cache::disabled())).unwrap();
            assert_eq!(action.outputs, [LOG, REPORT, STATUS, TUNING].map(|name| below(&run.folder, name)));
            action.digest
        };
        let known = digest(&pool(), &run(b"a"));
        assert_eq!(digest(&WorkerPool { name: "other".to_owned(), ..pool() }, &run(b"a")), known);
        assert_ne!(digest(&pool(), &run(b"b")), known);
        assert_ne!(digest(&WorkerPool { environment: BTreeMap::new(), ..pool() }, &run(b"a")), known);
        assert_ne!(digest(&pool(), &GpuRun { folder: "tests".to_owned(), ..run(b"a") }), known);
        let mut conflict = run(b"a");
        conflict.folders.insert(PLUGIN.to_owned());
        let reason = action(&pool(), &conflict, &InputFiles::new(Cache::disabled())).unwrap_err();
        assert_eq!(reason, format!("two inputs have the path `{PLUGIN}`"));
    }

    #[test]
    fn failures_name_server_and_properties() {
        let endpoint: Endpoint = "grpc://farm.example:8980".parse().unwrap();
        let config = RemoteConfig::new(endpoint.clone());
        let fleet = Fleet::new(&config, &endpoint, InputFiles::new(Cache::disabled()));
        let limit = Duration::from_secs(60);
        let (waiting, late) = (Error::NoWorker { limit }, Error::Timeout { call: "Execute", limit });
        let killed = Error::Command { exit_code: 137, stderr: "Killed".to_owned() };
        let errors = [waiting, late, killed, Error::Unsupported("execution".into())];
        let none = WorkerPool { platform: BTreeMap::new(), ..pool() };
        let mut all: Vec<Diagnostic> = errors.map(|error| fleet.failure(&pool(), error)).to_vec();
        all.push(fleet.failure(&none, Error::Unsupported("execution".into())));
        all.push(unsent(&pool(), "cannot read `x.npy`: Permission denied".to_owned()));
        let rendered = cubinder_source::diagnostic::render(&all, cubinder_source::diagnostic::Colour::Plain);
        insta::assert_snapshot!(rendered);
    }

    #[test]
    fn a_command_that_fails_has_outputs() {
        let root = tempfile::tempdir().unwrap();
        let execute =
            |words: &[&str]| execute(root.path(), Path::new("/bin/sh"), words.iter().map(OsString::from));
        execute(&[".", "-c", "echo report; echo log >&2; exit 3"]).unwrap();
        let read = |name: &str| std::fs::read_to_string(root.path().join(name)).unwrap();
        let outputs = [STATUS, REPORT, LOG, TUNING].map(read);
        assert_eq!(outputs, ["3", "report\n", "log\n", ""]);
        assert!(execute(&[".", "-c", "kill -9 $$"]).unwrap_err().contains("signal: 9"));
        execute(&["below", "-c", "pwd"]).unwrap();
        assert!(read("below/.cubinder/out/report").ends_with("/below\n"));
        assert_eq!(execute(&[]), Err("the folder is missing".to_owned()));
    }
}
