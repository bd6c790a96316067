//! `cubinder import`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cubinder_import::foreign::import::{self, Constant, FoundPlugin};
use cubinder_source::atomic_file::{self, AtomicFile, parent_folder};
use cubinder_source::diagnostic::{Diagnostic, suggest};

use super::output::print;

/// Write a manifest for kernels that another compiler made, out of what their files tell: parameters and their types, architectures, blocks, shared
/// memory, and what the code was specialized for.
///
/// What files do not tell (shapes of outputs, the grid, what numbers mean) stands in the manifest in capitals, and `cubinder check` asks for each.
/// The manifest goes to stdout, or into the file that --output names, which is never overwritten. Files of code are named relative to it; they are
/// not copied.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    from: From,
}

#[derive(Subcommand)]
enum From {
    /// Cubins, and PTX of the same kernel, of any compiler; `ptx` is the same
    #[command(alias = "nvcc", alias = "cupy")]
    Cubin(Files),
    /// PTX, and cubins of the same kernel, of any compiler; `cubin` is the same
    #[command(alias = "numba")]
    Ptx(Files),
    /// What Triton compiled: folders of its cache, or the JSON files in them
    Triton(Triton),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Args)]
struct Files {
    /// The files, one for each architecture
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The kernel's symbol, where the files have several
    #[arg(long, value_name = "SYMBOL")]
    kernel: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Triton {
    /// Folders with Triton's output, or its JSON files: of one kernel, for all types, architectures and options
    #[arg(required = true, value_name = "DIR|JSON")]
    paths: Vec<PathBuf>,
    /// The kernel's name, where there are several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// The value of a `tl.constexpr` parameter, or of an integer that was 1, which Triton does not write: `BLOCK=1024`; `FOLDER:BLOCK=512` for one
    /// folder, which its name, the beginning of it, or a path names; `BLOCK=512,1024` where each output has one of them as a size of `tl.arange`
    #[arg(long = "constant", value_name = "[FOLDER:]NAME=VALUE")]
    constants: Vec<Constant>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Output {
    /// The manifest to write [default: stdout]
    #[arg(short, long, value_name = "MANIFEST")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let (found, output) = match &arguments.from {
        From::Cubin(files) | From::Ptx(files) => {
            (import::files(&files.files, files.kernel.as_deref()), &files.output)
        }
        From::Other(words) => return Err(unknown(words).into()),
        From::Triton(triton) => {
            (import::triton(&triton.paths, triton.kernel.as_deref(), &triton.constants), &triton.output)
        }
    };
    print(&written(&found?, output.output.as_deref())?);
    Ok(true)
}

/// Reports a first argument that is neither a compiler nor a known file.
fn unknown(words: &[OsString]) -> Diagnostic {
    let first = words.first().map(PathBuf::from).unwrap_or_default();
    let shown = first.display().to_string();
    let kind = match first.extension().and_then(|extension| extension.to_str()) {
        Some("ptx") => Some("ptx"),
        Some("cubin" | "o" | "fatbin") => Some("cubin"),
        _ if first.is_dir() || first.extension().is_some_and(|extension| extension == "json") => {
            Some("triton")
        }
        _ => None,
    };
    match kind {
        Some(kind) => Diagnostic::error(format!("it is not said what `{shown}` is"))
            .help(format!("say it: `cubinder import {kind} {shown}`")),
        None => {
            let error = Diagnostic::error(format!("`{shown}` cannot be imported from"));
            match suggest(&shown, ["cubin", "ptx", "triton"]) {
                Some(near) => error.help(format!("did you mean `cubinder import {near}`?")),
                None => error.help("`cubinder import cubin FILE...` and `cubinder import ptx FILE...` are for files of any compiler, `cubinder import triton DIR` for Triton's cache"),
            }
        }
    }
}

fn written(found: &FoundPlugin, output: Option<&Path>) -> Result<String, Diagnostic> {
    import::check_paths(found, output.map_or(Path::new("."), parent_folder))?;
    let Some(path) = output else { return Ok(import::write(found, Path::new("."))) };
    let text = import::write(found, parent_folder(path));
    let cannot = |error: &std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => atomic_file::file_error("write", path, error)
            .help("name another file; what is there is never overwritten"),
        _ => atomic_file::file_error("write", path, error),
    };
    let draft = AtomicFile::with_bytes(path, text.as_bytes()).map_err(|error| cannot(&error))?;
    atomic_file::persist_all_new(vec![(draft, path)]).map_err(|refused| cannot(&refused.error))?;
    Ok(format!("wrote {}\n\nnext:\n  cubinder check {}\n", path.display(), path.display()))
}
