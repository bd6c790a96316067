use std::path::{Path, PathBuf};

use clap::Args;
use cubinder_compiler::inspect::{self, InspectError, Verbosity};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;
use cubinder_source::words::quoted;

use super::output::{print, print_pretty};

/// Show the contents of a plugin library, a bundle, a cubin, PTX or an engine: its plugins or nodes with the targets and sizes of their code.
///
/// `--plugin` adds one plugin's ONNX node, tensors, requirements, variants with their guards, and kernels with registers and shared memory.
///
/// Engines (TensorRT plans) are scanned for nodes; TensorRT is not needed. Kernels that TensorRT launches (experimental: docs/how-it-works.md) are
/// found if the engine contains their PTX unchanged. Exit code 0 if something was found and all of it is intact, 1 otherwise.
#[derive(Args)]
pub(super) struct Arguments {
    /// File to inspect
    file: PathBuf,
    /// Show the details of one plugin: `NAME`, `NAMESPACE::NAME`, or the first digits of the digest of a node or bundle
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    /// Show all details of all plugins: each variant's tensors, grids, blocks and arguments, conditions with all names expanded, and kernels that are never
    /// launched
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Show the provenance instead: versions of Cubinder and NVRTC, sources with their digests, options
    #[arg(long, conflicts_with = "verbose")]
    provenance: bool,
    /// Print JSON, with all details
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let (mut report, _) = read_report(&arguments.file)?;
    if let Some(name) = &arguments.plugin {
        keep_plugin(&mut report, name, &arguments.file)?;
    }
    if arguments.json {
        print_pretty(&report, "report")?;
    } else if arguments.provenance {
        print(&inspect::provenance_text(&report));
    } else if arguments.verbose {
        print(&inspect::table(&report, Verbosity::Full));
    } else if arguments.plugin.is_some() {
        print(&inspect::table(&report, Verbosity::Short));
    } else {
        print(&inspect::summary(&report));
    }
    Ok(report.damaged.is_empty())
}

pub(super) fn keep_plugin(report: &mut inspect::Report, name: &str, path: &Path) -> Result<(), Diagnostic> {
    let names = report.names();
    if report.keep(name) {
        return Ok(());
    }
    let contents = if names.is_empty() { "no plugin".to_owned() } else { quoted(names) };
    Err(Diagnostic::error(format!("no plugin or node `{name}` in `{}`", path.display()))
        .note(format!("it contains {contents}")))
}

pub(super) fn read_report(path: &Path) -> Result<(inspect::Report, Vec<u8>), Diagnostic> {
    let name = path.display();
    let bytes = source::read(path, source::LARGEST_BINARY)
        .map_err(|error| Diagnostic::error(format!("cannot read `{name}`: {error}")))?;
    let report = inspect::inspect(path, &bytes).map_err(|problem| {
        let error = Diagnostic::error(format!("cannot inspect `{name}`: {problem}"));
        match inspect::help(path, &bytes).filter(|_| matches!(problem, InspectError::Nothing(_))) {
            Some(help) => error.help(help),
            None => error,
        }
    })?;
    Ok((report, bytes))
}
