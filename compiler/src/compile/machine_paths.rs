//! Warns about machine-specific paths in code: NVRTC 13.0 names headers by include folder, so `__FILE__` (also in
//! `assert`) stores it.
//!
//! Never changes code.

use std::path::Path;

use cubinder_model::CodeObject;
use cubinder_nvrtc::codegen::{TranslationUnit, display_name, without_detours};
use cubinder_nvrtc::nvrtc::{Settings, contains_path, has_line_information, include_folders};
use cubinder_source::diagnostic::Diagnostic;

/// Returns include folders with machine-dependent names; none with line information, which documents them.
pub(super) fn include_folders_of_machine(
    unit: &TranslationUnit,
    settings: &Settings,
    toolkit: &[std::path::PathBuf],
    root: &Path,
) -> Vec<String> {
    if has_line_information(&settings.options) {
        return Vec::new();
    }
    let folders = include_folders(unit, settings, toolkit).into_iter();
    let moved = folders.filter(|folder| without_detours(folder) != Path::new(&display_name(folder, root)));
    moved.map(|folder| format!("{}/", folder.display())).collect()
}

pub(super) fn warning(unit: &TranslationUnit, folders: &[String], code: &CodeObject) -> Option<Diagnostic> {
    let bytes = code.raw().ok()?;
    let folder = folders.iter().find(|folder| contains_path(&bytes, code.target.kind, folder))?;
    let message = format!("the code of `{}` contains the path of a header in `{folder}`", unit.kernel);
    Some(
        Diagnostic::warning(message)
            .at(unit.kernel_span.clone(), "compiled for this kernel")
            .note("`__FILE__` or `assert` in a header adds it; the code is different if compiled in another folder")
            .help("run `cubinder` in the project's folder with relative paths, or define `NDEBUG` if `assert` adds it"),
    )
}
