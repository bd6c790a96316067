use std::path::{Path, PathBuf};

use cubinder_launch::native::is_native;
use cubinder_library::Mode;
use cubinder_source::atomic_file::{self, AtomicFile, file_error, parent_folder};
use cubinder_source::diagnostic::{Diagnostic, Sink};
use cubinder_source::path::is_same_file;

use super::inputs::Inputs;
use super::{CompiledBundle, Request, WrittenLibrary, depfile};
use crate::errors::NothingToEmbed;

fn code_library(library: &Path) -> PathBuf {
    let mut name = library.file_stem().unwrap_or_default().to_owned();
    name.push("-code.so");
    library.with_file_name(name)
}

/// Temporary files beside the ones to replace.
pub(super) struct Libraries<'r> {
    libraries: Vec<(AtomicFile, WrittenLibrary)>,
    depfile: Option<(AtomicFile, &'r Path)>,
}

impl<'r> Libraries<'r> {
    pub(super) fn draft(
        request: &'r Request,
        compiled: &CompiledBundle,
        bytes: &[u8],
        warnings: &Sink,
    ) -> Result<Libraries<'r>, Diagnostic> {
        if request.embed && compiled.bundle.plugins.iter().all(is_native) {
            return Err(NothingToEmbed {}.into());
        }
        let mut inputs = compiled.inputs.clone();
        inputs.add(&request.runtime_library);
        if let Some(depfile) = &request.depfile {
            check_depfile(request, depfile, &inputs)?;
            warnings.report(inputs.warnings());
        }
        warnings.report(stale(request));
        let folder = parent_folder(&request.library);
        std::fs::create_dir_all(folder).map_err(|error| file_error("create the folder", folder, &error))?;
        let ops_mode = if request.embed { Mode::OpsForLibrary } else { Mode::Ops };
        let code = request.embed.then(|| (code_library(&request.library), Mode::CodeLibrary));
        let mut libraries = Vec::new();
        for (path, mode) in std::iter::once((request.library.clone(), ops_mode)).chain(code) {
            if is_same_file(&path, &request.runtime_library) {
                let what = format!("the output `{}` is the prebuilt runtime library", path.display());
                return Err(Diagnostic::error(what).help("choose another name or another folder"));
            }
            if inputs.files.iter().any(|input| is_same_file(&path, input)) {
                let what = format!("the output `{}` is an input of the library", path.display());
                return Err(Diagnostic::error(what).help("choose another file with `--output`"));
            }
            let (draft, bytes) = draft_library(&request.runtime_library, bytes, mode, &path)?;
            libraries.push((draft, WrittenLibrary { path, mode, bytes }));
        }
        let outputs = libraries.iter().map(|(_, library)| library.path.as_path());
        let depfile = request.depfile.as_deref().map(|path| depfile_draft(path, outputs, &inputs));
        Ok(Libraries { depfile: depfile.transpose()?, libraries })
    }

    /// Replaces all files or none; the library of ops last: build systems compare its age, so they find it outdated
    /// after an interruption.
    pub(super) fn persist(self) -> Result<Vec<WrittenLibrary>, Diagnostic> {
        let (drafts, written): (Vec<AtomicFile>, Vec<WrittenLibrary>) = self.libraries.into_iter().unzip();
        let libraries = drafts.into_iter().zip(written.iter().map(|library| library.path.as_path())).rev();
        atomic_file::persist_all(self.depfile.into_iter().chain(libraries).collect())?;
        Ok(written)
    }
}

/// Writes `base` with `bundle` to a temporary file beside `place`; also returns its size.
pub(crate) fn draft_library(
    base: &Path,
    bundle: &[u8],
    mode: Mode,
    place: &Path,
) -> Result<(AtomicFile, u64), Diagnostic> {
    if place.is_dir() {
        return Err(Diagnostic::error(format!("cannot write `{}`: it is a folder", place.display())));
    }
    let draft = cubinder_library::draft(base, bundle, mode, place)?;
    let bytes = draft.file().metadata().map_err(|error| file_error("read", place, &error))?.len();
    Ok((draft, bytes))
}

fn check_depfile(request: &Request, depfile: &Path, inputs: &Inputs) -> Result<(), Diagnostic> {
    let outputs = [request.library.clone(), code_library(&request.library)];
    let what = if inputs.files.iter().any(|input| is_same_file(depfile, input)) {
        "is an input of the library"
    } else if outputs.iter().any(|output| depfile == output || is_same_file(depfile, output)) {
        "is the library"
    } else {
        return Ok(());
    };
    Err(Diagnostic::error(format!("`{}` cannot be the depfile: it {what}", depfile.display()))
        .help("use another name with `--depfile`, such as the library's name with the suffix `.d`"))
}

fn depfile_draft<'r, 'o>(
    path: &'r Path,
    outputs: impl Iterator<Item = &'o Path>,
    inputs: &'o Inputs,
) -> Result<(AtomicFile, &'r Path), Diagnostic> {
    let text = depfile::text(outputs, inputs.files.iter().map(AsRef::as_ref))?;
    let write = || {
        std::fs::create_dir_all(parent_folder(path))?;
        AtomicFile::with_bytes(path, &text)
    };
    let draft = write().map_err(|error| file_error("write the depfile", path, &error))?;
    Ok((draft, path))
}

fn stale(request: &Request) -> Option<Diagnostic> {
    let place = code_library(&request.library);
    let is_ours = || {
        cubinder_library::read(&place)
            .is_ok_and(|attached| attached.is_some_and(|attached| attached.mode == Mode::CodeLibrary))
    };
    (!request.embed && place.is_file() && is_ours()).then(|| {
        Diagnostic::warning(format!("`{}` is from an earlier run with `--embed`", place.display()))
            .note(format!(
                "new engines built with `{}` contain their code and do not read this file",
                request.library.display()
            ))
            .help("remove it, or compile with `--embed`")
    })
}
