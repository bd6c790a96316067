//! The libraries as files.
//!
//! Owns their names, and that all of them appear or none, with the depfile. What is in them is [`cubinder_library`]'s business.

use std::path::{Path, PathBuf};

use cubinder_library::Mode;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::whole::{self, Draft, Placing, cannot, folder_of};

use super::inputs::Inputs;
use super::{Request, Written, depfile};

fn ops_name(request: &Request) -> String {
    format!("lib{}.so", request.name)
}

fn code_name(request: &Request) -> String {
    format!("lib{}-code.so", request.name)
}

/// Writes all libraries or none, with the file that names what they were made from: each is made whole beside its place, and then renamed.
///
/// Whatever is asked whether it is up to date comes last: where the process is killed in between, Make finds a library of ops that is older than what
/// changed, or one whose code library and depfile belong to it.
pub(super) fn libraries(
    request: &Request,
    bundle: &[u8],
    inputs: &Inputs,
) -> Result<Vec<Written>, Diagnostic> {
    let output = &request.output;
    std::fs::create_dir_all(output).map_err(|error| cannot("make the folder", output, &error))?;
    let ops_mode = if request.embed { Mode::OpsForLibrary } else { Mode::Ops };
    let code = request.embed.then(|| (output.join(code_name(request)), Mode::CodeLibrary));
    let wanted: Vec<(PathBuf, Mode)> =
        std::iter::once((output.join(ops_name(request)), ops_mode)).chain(code).collect();
    let mut written: Vec<(Written, Draft)> = Vec::new();
    for (path, mode) in wanted {
        let draft = library(request, bundle, mode, &path)?;
        let bytes = draft.file().metadata().map_err(|error| cannot("read", &path, &error))?.len();
        written.push((Written { path, mode, bytes }, draft));
    }
    let (written, drafts): (Vec<Written>, Vec<Draft>) = written.into_iter().unzip();
    let depfile = match &request.depfile {
        Some(path) => Some((depfile_draft(path, &written, inputs)?, path.as_path())),
        None => None,
    };
    let drafts = drafts.into_iter().zip(written.iter().map(|written| written.path.as_path())).rev();
    let placings = depfile.into_iter().chain(drafts).map(|(draft, place)| Placing { draft, place });
    whole::place_all(placings.collect()).map_err(|refused| refused.told())?;
    Ok(written)
}

fn library(request: &Request, bundle: &[u8], mode: Mode, place: &Path) -> Result<Draft, Diagnostic> {
    if place.is_dir() {
        return Err(Diagnostic::error(format!("cannot write `{}`: it is a folder", place.display())));
    }
    if is_same_file(place, &request.runtime_library) {
        return Err(Diagnostic::error(format!("`{}` is the runtime library itself", place.display()))
            .help("choose another name or another folder"));
    }
    cubinder_library::draft(&request.runtime_library, bundle, mode, place)
        .map_err(|error| error.to_diagnostic())
}

/// Refuses a depfile that would take the place of a file that is read or written. Asked before anything is written.
pub(super) fn check_depfile(request: &Request, depfile: &Path, inputs: &Inputs) -> Result<(), Diagnostic> {
    let outputs = [ops_name(request), code_name(request)].map(|name| request.output.join(name));
    let what = if inputs.files.iter().any(|input| is_same_file(depfile, input)) {
        "is one of the files that the library is made from"
    } else if outputs.iter().any(|output| depfile == output || is_same_file(depfile, output)) {
        "is the library"
    } else {
        return Ok(());
    };
    Err(Diagnostic::error(format!("`{}` {what}, and cannot be the depfile", depfile.display()))
        .help("name a file of its own with `--depfile`, such as the library's name with `.d` behind it"))
}

/// What `libraries` were made from, beside its place.
fn depfile_draft(path: &Path, libraries: &[Written], inputs: &Inputs) -> Result<Draft, Diagnostic> {
    let outputs = libraries.iter().map(|library| library.path.as_path());
    let text = depfile::text(outputs, inputs.files.iter().map(AsRef::as_ref))?;
    let write = || {
        std::fs::create_dir_all(folder_of(path))?;
        Draft::with(path, &text)
    };
    write().map_err(|error| cannot("write the depfile", path, &error))
}

fn is_same_file(first: &Path, second: &Path) -> bool {
    match (std::fs::canonicalize(first), std::fs::canonicalize(second)) {
        (Ok(first), Ok(second)) => first == second,
        _ => false,
    }
}

/// The warning about a code library that an earlier run left beside what this one wrote: its code belongs to other engines.
pub(super) fn stale(request: &Request) -> Option<Diagnostic> {
    let place = request.output.join(code_name(request));
    let is_ours = || {
        cubinder_library::read(&place)
            .is_ok_and(|attached| attached.is_some_and(|attached| attached.mode == Mode::CodeLibrary))
    };
    (!request.embed && place.is_file() && is_ours()).then(|| {
        Diagnostic::warning(format!("`{}` is left from an earlier run with `--embed`", place.display()))
            .note(format!(
                "engines that are built with `{}` from now on hold their code themselves",
                ops_name(request)
            ))
            .help("remove it, or compile with `--embed`")
    })
}
