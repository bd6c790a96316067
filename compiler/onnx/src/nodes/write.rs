use std::fs;
use std::io::BufWriter;
use std::path::Path;

use crate::{Edits, Model};

use super::errors::{UnreadableModel, UnwritableModel, WeightsLeftBehind};
use crate::diagnostic::Diagnostic;
use crate::source;
use cubinder_source::atomic_file::{self, AtomicFile, parent_folder};

/// Writes the edited model `from` to `to`, possibly the same; on failure `to` is unchanged.
pub fn write(from: &Path, edits: &Edits<'_>, to: &Path) -> Result<(), Diagnostic> {
    let unwritable = |why: &str, help| -> Diagnostic {
        UnwritableModel { file: to.display().to_string(), why: why.to_owned(), help }.into()
    };
    if to.is_dir() {
        return Err(unwritable("it is a folder", None));
    }
    // A link's target is replaced.
    let place = match (fs::canonicalize(to), fs::symlink_metadata(to)) {
        (Ok(place), _) => place,
        (Err(_), Ok(known)) if known.is_symlink() => return Err(unwritable("it is a broken link", None)),
        _ => to.to_path_buf(),
    };
    let known = fs::metadata(&place).ok();
    if let Some(known) = &known {
        if !known.is_file() {
            return Err(unwritable("it is a pipe, a device or a socket, expected a regular file", None));
        }
        if known.len() > 0 && Model::open(&place).is_err() {
            let help = "choose another file, or remove the existing one";
            return Err(unwritable("the existing file is not an ONNX model", Some(help)));
        }
    }
    atomic_file::check_replaceable(&place, to, "`--output`")?;
    let refused = |error: &std::io::Error| atomic_file::file_error("write", to, error);
    let made = AtomicFile::beside(&place).map_err(|error| refused(&error))?;
    // Keeps permissions despite the umask.
    if let Some(known) = known {
        made.file().set_permissions(known.permissions()).map_err(|error| refused(&error))?;
    }
    let source = source::open(from).map_err(|error| unreadable(from, &error))?;
    edits.write(source, BufWriter::new(made.file())).map_err(|error| refused(&error))?;
    made.persist(&place).map_err(|error| refused(&error))
}

/// Returns the edited model without writing it.
pub fn changed(from: &Path, edits: &Edits<'_>) -> Result<Model, Diagnostic> {
    let source = source::open(from).map_err(|error| unreadable(from, &error))?;
    Model::read(edits.view(source)).map_err(|error| unreadable(from, &error))
}

fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> Diagnostic {
    UnreadableModel { file: file.display().to_string(), why: error.to_string(), help: None }.into()
}

/// Warns about external weights missing beside the new file.
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
    Some(WeightsLeftBehind { first, more, file: to.display().to_string() }.into())
}
