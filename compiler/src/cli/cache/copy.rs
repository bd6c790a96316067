use std::path::{Display, Path, PathBuf};

use clap::Args;
use cubinder_compiler::compile::{Peer, Transfer, Transferred, is_results_file, transfer};
use cubinder_compiler::project::ProjectOptions;
use cubinder_source::atomic_file::parent_folder;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::words::counted;
use serde_json::json;

use super::super::compile::progress_bar;
use super::super::output::print;
use super::super::project_arguments::{self, ProjectArguments, remote_cache};

cubinder_source::diagnostics! {
    struct NoServer {}
    error "no shared cache is configured" {
        help: "specify `--remote-cache URL`, or add `[remote]` to `cubinder.toml` (docs/remote-cache.md)";
    }

    struct NoFolder<'a> { path: Display<'a>, folder: Display<'a> }
    error "cannot write `{path}`: `{folder}` is not a folder" {
        help: "create it first";
    }

    struct NotReplaced<'a> { path: Display<'a> }
    error "`{path}` exists, and is not a file of results" {
        help: "name another file: `cubinder cache export results.zip`";
    }

    struct Incomplete { missing: u64, all: u64, source: String, outcome: String, help: &'static str }
    error "{source} lacks {missing} of {all} results" {
        note: "{outcome}";
        help: "{help}";
    }
}

/// Options of copies from and to the shared cache.
#[derive(Args)]
pub(super) struct ServerArguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Shared cache: grpcs://host:port, or grpc:// without encryption [default: CUBINDER_REMOTE_CACHE, else `[remote]` of cubinder.toml]
    #[arg(long, value_name = "URL")]
    remote_cache: Option<String>,
    /// Print JSON Lines: messages, then the result
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of copies from and to a file.
#[derive(Args)]
pub(super) struct FileArguments {
    /// The file of results, a zip archive
    file: PathBuf,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print JSON Lines: messages, then the result
    #[arg(long)]
    pub(super) json: bool,
}

const COMPILE_FIRST: &str = "run `cubinder compile` with the same options first";

pub(super) fn push(arguments: &ServerArguments) -> Result<(), Vec<Diagnostic>> {
    with_server(arguments, Transfer::Push, "the local cache", COMPILE_FIRST)
}

pub(super) fn pull(arguments: &ServerArguments) -> Result<(), Vec<Diagnostic>> {
    let help = "fill it with `cubinder cache push` or `cubinder compile --remote-upload`, with the same release of cubinder and CUDA";
    with_server(arguments, Transfer::Fetch, "the shared cache", help)
}

pub(super) fn export(arguments: &FileArguments) -> Result<(), Vec<Diagnostic>> {
    check_export(&arguments.file)?;
    with_file(arguments, Transfer::Push, "the local cache".to_owned(), COMPILE_FIRST)
}

/// Protects files that are not exports, such as manifests.
fn check_export(path: &Path) -> Result<(), Diagnostic> {
    let (file, folder) = (path, parent_folder(path));
    let path = path.display();
    if !folder.is_dir() {
        return Err(NoFolder { path, folder: folder.display() }.into());
    }
    match std::fs::metadata(file).map(|_| is_results_file(file)) {
        Ok(false) => Err(NotReplaced { path }.into()),
        Ok(true) | Err(_) => Ok(()),
    }
}

pub(super) fn import(arguments: &FileArguments) -> Result<(), Vec<Diagnostic>> {
    let source = format!("`{}`", arguments.file.display());
    let help = "export it from the same sources, with the same release of cubinder and CUDA";
    with_file(arguments, Transfer::Fetch, source, help)
}

fn with_server(
    arguments: &ServerArguments,
    direction: Transfer,
    source: &str,
    help: &'static str,
) -> Result<(), Vec<Diagnostic>> {
    let overrides = arguments.project.overrides();
    let remote_cache = remote_cache(arguments.remote_cache.as_deref())?;
    let options = ProjectOptions { remote_cache, ..arguments.project.options(&overrides)? };
    let project = project_arguments::open(options)?;
    let server = project.remote()?.ok_or(NoServer {})?;
    let bar = progress_bar(arguments.json);
    let done = transfer(&project, &overrides, &Peer::Server(&server), direction, &bar)?;
    report(&done, arguments.json, source.to_owned(), help)
}

fn with_file(
    arguments: &FileArguments,
    direction: Transfer,
    source: String,
    help: &'static str,
) -> Result<(), Vec<Diagnostic>> {
    let overrides = arguments.project.overrides();
    let project = project_arguments::open(arguments.project.options(&overrides)?)?;
    let bar = progress_bar(arguments.json);
    let done = transfer(&project, &overrides, &Peer::File(&arguments.file), direction, &bar)?;
    report(&done, arguments.json, source, help)
}

fn report(done: &Transferred, json: bool, source: String, help: &'static str) -> Result<(), Vec<Diagnostic>> {
    let Transferred { complete, present, missing, unshared, is_written } = done;
    if *missing > 0 {
        let (missing, all) = (*missing, complete + present + missing);
        let outcome = match is_written {
            true => format!("copied {}", counted(*complete, "result")),
            false => "copied nothing".to_owned(),
        };
        return Err(Incomplete { missing, all, source, outcome, help }.into());
    }
    if json {
        let unshared = unshared.values().sum::<u64>();
        print(&(json!({"copied": complete, "present": present, "unshared": unshared}).to_string() + "\n"));
        return Ok(());
    }
    let present = if *present > 0 { format!(" ({present} were here)") } else { String::new() };
    print(&format!("copied {}{present}\n", counted(*complete, "result")));
    for (reason, count) in unshared {
        print(&format!("not shared: {}: {reason}\n", counted(*count, "result")));
    }
    Ok(())
}
