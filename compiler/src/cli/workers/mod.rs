//! `--workers` of `test` and `tune`: the command runs with its files on workers of a server.

mod results;
mod snapshot;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cubinder_compiler::compile::compile_bundle;
use cubinder_compiler::project::{ProjectOptions, config_above};
use cubinder_compiler::remote::gpu::{EXECUTE, Fleet, GpuRun, PLUGIN, PROGRAM, execute};
use cubinder_compiler::remote::inputs::InputFiles;
use cubinder_manifest::config::{self, RemoteConfig, WorkerPool};
use cubinder_model::container::write_bundle;
use cubinder_node::eval::SubjectOrigin;
use cubinder_node::trial::{InputData, Trial};
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::shared::Input;
use cubinder_source::diagnostic::{Diagnostic, Span, suggest};
use cubinder_source::words::quoted;
use indicatif::ProgressBar;

use super::gpu::Opened;
use super::nvrtc;
use super::output::{current_folder, open_project};
pub(super) use results::{PoolResult, exit_code};
pub(super) use snapshot::Snapshot;

/// Where a GPU command runs.
#[derive(Args)]
pub(super) struct WorkerArguments {
    /// Run on these workers instead of this machine, all at the same time: names of `[remote.workers.NAME]` in cubinder.toml, separated by commas
    /// (docs/gpu-workers.md)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    workers: Vec<String>,
    /// Maximum time in the queue for a worker, and of the run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, requires = "workers", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    worker_timeout: u64,
    /// On a worker: the plugin's name in the report
    #[arg(long, hide = true)]
    shown_as: Option<String>,
}

impl WorkerArguments {
    pub(super) fn is_used(&self) -> bool {
        !self.workers.is_empty()
    }

    pub(super) fn shown(&self, opened: Opened) -> Opened {
        match &self.shown_as {
            Some(path) => Opened { path: path.into(), ..opened },
            None => opened,
        }
    }

    pub(super) fn is_on_worker(&self) -> bool {
        self.shown_as.is_some()
    }
}

cubinder_source::diagnostics! {
    struct WorkersWithoutConfig { file: String }
    error "`--workers` needs a `cubinder.toml`" {
        note: "no `cubinder.toml` in the folder of `{file}` or above";
        help: "create one with `[remote]` and `[remote.workers.NAME]` (docs/gpu-workers.md)";
    }

    struct NoExecutor { config: String, place: Option<Span> }
    error "`--workers` needs a server that executes: no `executor` in `{config}`" {
        at place ?place: "expected `executor`";
        help: "add `executor = \"grpcs://host:port\"` to `[remote]` (docs/gpu-workers.md)";
    }

    struct UnknownWorkers { name: String, config: String, known: String, near: Option<String>, place: Option<Span> }
    error "unknown workers `{name}`" {
        at place ?place: "no `[remote.workers.{name}]`";
        note: "the workers in `{config}` are {known}";
        help ?near: "did you mean `{near}`?";
    }
}

/// The server and the chosen workers.
pub(super) struct Workers {
    fleet: Fleet,
    pools: Vec<WorkerPool>,
    limit: Duration,
}

impl Workers {
    /// Finds the server in the `cubinder.toml` above `file`.
    pub(super) fn open(arguments: &WorkerArguments, file: &Path) -> Result<Workers, Vec<Diagnostic>> {
        let without = || WorkersWithoutConfig { file: file.display().to_string() };
        let path = config_above(file, &current_folder()?).ok_or_else(without)?;
        let config = config::load(&path)?;
        let name = path.display().to_string();
        let place = config.remote.as_ref().and_then(|remote| remote.span.clone());
        let missing = || NoExecutor { config: name.clone(), place: place.clone() };
        let remote = config.remote.as_ref().ok_or_else(missing)?;
        let executor = remote.executor.as_ref().ok_or_else(missing)?;
        let pools = pools(&arguments.workers, remote, &name)?;
        let cache = nvrtc::overrides(None).cache.map_or_else(Cache::disabled, |folder| Cache::open(&folder));
        let fleet = Fleet::new(remote, executor, InputFiles::new(cache));
        Ok(Workers { fleet, pools, limit: Duration::from_secs(arguments.worker_timeout) })
    }

    pub(super) fn count(&self) -> usize {
        self.pools.len()
    }

    /// Results are in the order of the names.
    pub(super) fn run(
        &self,
        arguments: Vec<String>,
        mut snapshot: Snapshot,
        json: bool,
    ) -> Result<Vec<PoolResult>, Diagnostic> {
        // Valid even if the program's file was replaced.
        snapshot.add_own(PROGRAM, Input::Program("/proc/self/exe".into()));
        if !json {
            let names = self.pools.iter().map(|pool| &pool.name);
            eprintln!("waiting for workers {} of `{}`", quoted(names), self.fleet.url());
        }
        let run = &GpuRun { arguments, limit: self.limit, ..snapshot.finish()? };
        Ok(std::thread::scope(|scope| {
            let start = |pool| (pool, scope.spawn(move || self.fleet.run(pool, run)));
            let running: Vec<_> = self.pools.iter().map(start).collect();
            let result = |(pool, thread): (&WorkerPool, std::thread::ScopedJoinHandle<'_, _>)| {
                let ended = thread.join();
                let failed = |_| Err(Diagnostic::error(format!("the thread for `{}` failed", pool.name)));
                PoolResult::new(pool, ended.unwrap_or_else(failed))
            };
            running.into_iter().map(result).collect()
        }))
    }
}

fn pools(names: &[String], remote: &RemoteConfig, config: &str) -> Result<Vec<WorkerPool>, Vec<Diagnostic>> {
    let (mut pools, mut errors) = (Vec::<WorkerPool>::new(), Vec::new());
    let known = || remote.workers.iter().map(|pool| pool.name.as_str());
    for name in names {
        match remote.workers.iter().find(|pool| pool.name == *name) {
            Some(pool) if pools.iter().all(|other| other.name != *name) => pools.push(pool.clone()),
            Some(_) => {}
            None => errors.push(Diagnostic::from(UnknownWorkers {
                name: name.clone(),
                config: config.to_owned(),
                known: if remote.workers.is_empty() { "none".to_owned() } else { quoted(known()) },
                near: suggest(name, known()).map(str::to_owned),
                place: remote.span.clone(),
            })),
        }
    }
    if errors.is_empty() { Ok(pools) } else { Err(errors) }
}

/// Manifests are compiled here, for the project's targets: workers need no NVRTC. `cases` is the file of cases, if any.
pub(super) fn plugin_arguments(
    opened: &Opened,
    cases: Option<&Path>,
    is_measured: bool,
    nvrtc: Option<PathBuf>,
    snapshot: &mut Snapshot,
) -> Result<Vec<String>, Vec<Diagnostic>> {
    let subject = match opened.subject.origin {
        SubjectOrigin::Compiled(_) => snapshot.add(&opened.path)?,
        SubjectOrigin::Manifest(_) => {
            snapshot.add_own(PLUGIN, Input::Bytes(bundle(opened, is_measured, nvrtc)?));
            PLUGIN.to_owned()
        }
    };
    let mut arguments = match cases {
        Some(cases) => vec![of_folder(snapshot.add(cases)?), format!("--on={subject}")],
        None => vec![of_folder(subject)],
    };
    arguments.extend(["--plugin".to_owned(), opened.subject.plugin.full_name()]);
    if let Some((number, _)) = opened.subject.number {
        arguments.extend(["--node".to_owned(), number.to_string()]);
    }
    arguments.push(format!("--shown-as={}", opened.path.to_string_lossy()));
    Ok(arguments)
}

/// Returns a relative path that cannot be read as an option.
fn of_folder(path: String) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path }
}

fn bundle(opened: &Opened, is_measured: bool, nvrtc: Option<PathBuf>) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let manifests = vec![opened.path.clone()];
    let project = open_project(ProjectOptions { manifests, is_measured, ..ProjectOptions::default() })?;
    let project = project.ok_or_else(|| Diagnostic::error("no manifest"))?;
    let compiled = compile_bundle(&project, &nvrtc::overrides(nvrtc), true, &ProgressBar::hidden())?;
    Ok(write_bundle(&compiled.bundle))
}

/// Adds data, and Python files of references. Workers report missing files, as this machine would.
pub(super) fn add_data(trials: &[Trial], snapshot: &mut Snapshot) -> Result<(), Diagnostic> {
    for trial in trials {
        let inputs = trial.inputs.iter().filter_map(|(_, data)| match data {
            InputData::File(file) => Some(file),
            _ => None,
        });
        for file in inputs.chain(trial.outputs.iter().map(|(_, file)| file)) {
            snapshot.add(&file.path)?;
        }
        if let Some(reference) = &trial.reference {
            snapshot.add_python(&reference.path)?;
        }
    }
    Ok(())
}

pub(super) fn as_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().filter(|first| first == EXECUTE)?;
    let root = std::env::current_dir().map_err(|error| error.to_string());
    let program = std::env::current_exe().map_err(|error| error.to_string());
    let executed = root.and_then(|root| execute(&root, &program?, arguments));
    Some(executed.map_or_else(
        |message| {
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}
