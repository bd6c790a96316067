//! The libraries as files.
//!
//! Owns their names, and that all of them appear or none; and the depfile, which is written after them. What is in them is [`crate::library`]'s business.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::inputs::Inputs;
use super::{Request, Written, depfile};
use crate::diagnostic::Diagnostic;
use crate::library::{self, Mode};

fn ops_name(request: &Request) -> String {
    format!("lib{}.so", request.name)
}

fn code_name(request: &Request) -> String {
    format!("lib{}-code.so", request.name)
}

/// Writes all libraries or none: each is made whole in a folder beside its place, and then moved there.
pub(super) fn libraries(request: &Request, bundle: &[u8]) -> Result<Vec<Written>, Diagnostic> {
    let cannot = |what: &str, path: &Path, error: &std::io::Error| {
        Diagnostic::error(format!("cannot {what} `{}`: {error}", path.display()))
    };
    let output = &request.output;
    std::fs::create_dir_all(output).map_err(|error| cannot("make the folder", output, &error))?;
    let staging = tempfile::Builder::new()
        .prefix(".cubinder-")
        .tempdir_in(output)
        .map_err(|error| cannot("write to the folder", output, &error))?;
    let (ops, code) = (ops_name(request), code_name(request));
    let wanted = if request.embed {
        vec![(ops, Mode::OpsForLibrary), (code, Mode::CodeLibrary)]
    } else {
        vec![(ops, Mode::Ops)]
    };
    for (name, mode) in &wanted {
        let place = output.join(name);
        if place.is_dir() {
            return Err(Diagnostic::error(format!("cannot write `{}`: it is a folder", place.display())));
        }
        if is_same_file(&place, &request.runtime_library) {
            return Err(Diagnostic::error(format!("`{}` is the runtime library itself", place.display()))
                .help("choose another name or another folder"));
        }
        library::inject(&request.runtime_library, bundle, *mode, &staging.path().join(name))
            .map_err(|error| error.to_diagnostic())?;
    }
    wanted
        .into_iter()
        .map(|(name, mode)| {
            let (made, path) = (staging.path().join(&name), output.join(&name));
            let bytes = std::fs::metadata(&made).map_err(|error| cannot("read", &made, &error))?.len();
            std::fs::rename(&made, &path).map_err(|error| cannot("write", &path, &error))?;
            Ok(Written { path, mode, bytes })
        })
        .collect()
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

/// Writes what `libraries` were made from: whole, or not at all.
pub(super) fn depfile(path: &Path, libraries: &[Written], inputs: &Inputs) -> Result<(), Diagnostic> {
    let outputs = libraries.iter().map(|library| library.path.as_path());
    let text = depfile::text(outputs, inputs.files.iter().map(AsRef::as_ref))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().prefix(".cubinder-").tempfile_in(folder)?;
        file.write_all(&text)?;
        // A temporary file is for its owner alone; who may read the library may read this.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        file.persist(path).map_err(|error| error.error)
    };
    write().map(drop).map_err(|error: std::io::Error| {
        Diagnostic::error(format!("cannot write the depfile `{}`: {error}", path.display()))
    })
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
        library::read(&place)
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
