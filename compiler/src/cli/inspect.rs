//! `cubinder inspect`.

use std::path::{Path, PathBuf};

use clap::Args;
use cubinder_compiler::inspect::{self, InspectError, Verbosity};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;

use super::output::{print, print_pretty};

/// Show what a plugin library, a bundle, a cubin, PTX or an engine contains: plugins by their op names, what a node can say and takes, rules,
/// variants with their guards, kernels, targets, sizes, digests, registers and shared memory.
///
/// In an engine (a TensorRT plan) the nodes are found by scanning; TensorRT is not needed. Kernels that TensorRT launches itself (experimental:
/// docs/how-it-works.md) are found by their PTX, where the engine keeps it as it is. Exit code 0 where something was found and all of it is intact, 1
/// otherwise.
#[derive(Args)]
pub(super) struct Arguments {
    /// The file
    file: PathBuf,
    /// Tell everything: of each variant its tensors, grids, blocks and arguments, conditions with all names put in, and kernels that
    /// nothing launches
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Tell what made it instead: Cubinder, NVRTC, the sources with their digests and options
    #[arg(long, conflicts_with = "verbose")]
    provenance: bool,
    /// Print JSON instead of a table; it has everything
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let report = read_report(&arguments.file)?;
    if arguments.json {
        print_pretty(&report, "report")?;
    } else if arguments.provenance {
        print(&inspect::provenance_text(&report));
    } else {
        let detail = if arguments.verbose { Verbosity::Full } else { Verbosity::Short };
        print(&inspect::table(&report, detail));
    }
    Ok(report.damaged.is_empty())
}

fn read_report(path: &Path) -> Result<inspect::Report, Diagnostic> {
    let name = path.display();
    let bytes = source::read(path, source::LARGEST_BINARY)
        .map_err(|error| Diagnostic::error(format!("cannot read `{name}`: {error}")))?;
    inspect::inspect(path, &bytes).map_err(|problem| {
        let error = Diagnostic::error(format!("cannot inspect `{name}`: {problem}"));
        match inspect::help(path, &bytes).filter(|_| matches!(problem, InspectError::Nothing(_))) {
            Some(help) => error.help(help),
            None => error,
        }
    })
}
