//! A changed model as a file: whole or not at all.

use std::fs;
use std::io::BufWriter;
use std::path::Path;

use crate::{Edits, Model};

use crate::diagnostic::Diagnostic;
use crate::source;
use cubinder_source::atomic_file::{self, AtomicFile, parent_folder};

/// Writes the model that was read from `from` to `to`, which may be the same, with the changes.
///
/// # Errors
/// Where that cannot be done. What was there before is there still, then.
pub fn write(from: &Path, edits: &Edits<'_>, to: &Path) -> Result<(), Diagnostic> {
    let cannot = |error: &dyn std::fmt::Display| {
        Diagnostic::error(format!("cannot write `{}`: {error}", to.display()))
    };
    if to.is_dir() {
        return Err(cannot(&"it is a folder"));
    }
    // A link stays one: what it leads to is replaced.
    let place = match (fs::canonicalize(to), fs::symlink_metadata(to)) {
        (Ok(place), _) => place,
        (Err(_), Ok(known)) if known.is_symlink() => return Err(cannot(&"it is a link to nothing")),
        _ => to.to_path_buf(),
    };
    let known = fs::metadata(&place).ok();
    if let Some(known) = &known {
        if !known.is_file() {
            return Err(cannot(&"it is not a regular file (a pipe, a device or a socket)"));
        }
        if known.len() > 0 && Model::open(&place).is_err() {
            let error = cannot(&"it is there, and is no ONNX model");
            return Err(error.help("name another file, or remove that one"));
        }
    }
    atomic_file::check_replaceable(&place, to, "`--output`")?;
    let refused = |error: &std::io::Error| atomic_file::file_error("write", to, error);
    let made = AtomicFile::beside(&place).map_err(|error| refused(&error))?;
    // The umask is for new files: one that was there keeps its permissions.
    if let Some(known) = known {
        made.file().set_permissions(known.permissions()).map_err(|error| refused(&error))?;
    }
    let source = source::open(from)
        .map_err(|error| Diagnostic::error(format!("cannot read `{}`: {error}", from.display())))?;
    edits.write(source, BufWriter::new(made.file())).map_err(|error| refused(&error))?;
    made.persist(&place).map_err(|error| refused(&error))
}

/// The model as it would be read again, had it been written.
///
/// # Errors
/// Where it cannot be read any more.
pub fn changed(from: &Path, edits: &Edits<'_>) -> Result<Model, Diagnostic> {
    let cannot = |error: &dyn std::fmt::Display| {
        Diagnostic::error(format!("cannot read `{}`: {error}", from.display()))
    };
    let source = source::open(from).map_err(|error| cannot(&error))?;
    Model::read(edits.view(source)).map_err(|error| cannot(&error))
}

/// The warning about weights that lie beside a model and not beside where it is written to.
#[must_use]
pub fn weights_left_behind(model: &Model, from: &Path, to: &Path) -> Option<Diagnostic> {
    let same = match (fs::canonicalize(parent_folder(from)), fs::canonicalize(parent_folder(to))) {
        (Ok(from), Ok(to)) => from == to,
        _ => false,
    };
    let first = model.external_files.first().filter(|_| !same)?;
    let more = match model.external_files.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message =
        format!("weights of the model lie beside it, in `{first}`{more}, and not beside `{}`", to.display());
    Some(
        Diagnostic::warning(message)
            .help("write into the folder of the model, or copy the files with weights"),
    )
}
