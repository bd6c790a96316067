use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cubinder_import::foreign::import::{self, Constant, FoundPlugin};
use cubinder_source::atomic_file::{self, AtomicFile, parent_folder};
use cubinder_source::diagnostic::{Diagnostic, suggest};

use super::output::print;

/// Write a manifest for precompiled kernels, from the data in their files: parameters and their types, architectures, blocks, shared memory, and the
/// values for which the code was specialized.
///
/// The manifest contains placeholders in capitals for data that files do not contain (output shapes, the grid, the meaning of numbers); `cubinder
/// check` reports each. The manifest is printed to stdout, or written to --output, which is never overwritten. Paths of code files are relative to the
/// manifest; the files are not copied.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    from: From,
}

#[derive(Subcommand)]
enum From {
    /// Cubins, and PTX of the same kernel, of any compiler; equivalent to `ptx`
    #[command(alias = "nvcc", alias = "cupy")]
    Cubin(Files),
    /// PTX, and cubins of the same kernel, of any compiler; equivalent to `cubin`
    #[command(alias = "numba")]
    Ptx(Files),
    /// Triton's output: folders of its cache, or the JSON files in them
    Triton(Triton),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Args)]
struct Files {
    /// Files, one for each architecture
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Symbol of the kernel, if the files contain several
    #[arg(long, value_name = "SYMBOL")]
    kernel: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Triton {
    /// Folders with Triton's output, or its JSON files, for one kernel: all types, architectures and options
    #[arg(required = true, value_name = "DIR|JSON")]
    paths: Vec<PathBuf>,
    /// Name of the kernel, if there are several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Value of a `tl.constexpr` parameter, or of an integer that was 1, which Triton does not write: `BLOCK=1024`; `FOLDER:BLOCK=512` for one folder,
    /// by its name, a prefix of the name, or a path; `BLOCK=512,1024` if each output has one of them as a size of `tl.arange`
    #[arg(long = "constant", value_name = "[FOLDER:]NAME=VALUE")]
    constants: Vec<Constant>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Output {
    /// Manifest to write [default: stdout]
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
        Some(kind) => Diagnostic::error(format!("missing the kind of `{shown}`"))
            .help(format!("use `cubinder import {kind} {shown}`")),
        None => {
            let error = Diagnostic::error(format!("cannot import from `{shown}`"));
            match suggest(&shown, ["cubin", "ptx", "triton"]) {
                Some(near) => error.help(format!("did you mean `cubinder import {near}`?")),
                None => error.help("use `cubinder import cubin FILE...` or `cubinder import ptx FILE...` for files of any compiler, `cubinder import triton DIR` for Triton's cache"),
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
            .help("choose another file; existing files are never overwritten"),
        _ => atomic_file::file_error("write", path, error),
    };
    let draft = AtomicFile::with_bytes(path, text.as_bytes()).map_err(|error| cannot(&error))?;
    atomic_file::persist_all_new(vec![(draft, path)]).map_err(|refused| cannot(&refused.error))?;
    Ok(format!("wrote {}\n\nnext:\n  cubinder check {}\n", path.display(), path.display()))
}
