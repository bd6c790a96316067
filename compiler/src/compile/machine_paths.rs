//! Paths of the machine in code.
//!
//! NVRTC calls a header by the include folder in which it found it, as that was named: `__FILE__` in a header, which `assert` has too, brings
//! that name into the code. Owns saying so where another folder or another machine would give another name, because no option of NVRTC (13.0)
//! changes what it writes. Never changes code.

use std::path::Path;

use cubinder_model::{CodeObject, TargetKind};
use cubinder_nvrtc::codegen::{TranslationUnit, display_name, without_detours};
use cubinder_nvrtc::nvrtc::{Settings, has_line_information, include_folders};
use cubinder_source::diagnostic::Diagnostic;

/// The include folders of a unit that are not named as the project in `root` would name them everywhere. None where the code has line
/// information, which is told to have paths of the machine.
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

/// The warning about code of a unit that holds one of these folders.
pub(super) fn warning(unit: &TranslationUnit, folders: &[String], code: &CodeObject) -> Option<Diagnostic> {
    let bytes = code.raw().ok()?;
    let folder = folders.iter().find(|folder| holds(&bytes, code.target.kind, folder))?;
    let message = format!("the code of `{}` holds the name of a header that lies in `{folder}`", unit.kernel);
    Some(
        Diagnostic::warning(message)
            .at(unit.kernel_span.clone(), "compiled for this kernel")
            .note("`__FILE__` in a header puts it there, or `assert`; compiled from another folder the code has other bytes")
            .help("run `cubinder` in the project's folder with paths relative to it, or define `NDEBUG` where `assert` is meant"),
    )
}

fn holds(code: &[u8], kind: TargetKind, folder: &str) -> bool {
    let contains = |text: &[u8]| code.windows(text.len()).any(|bytes| bytes == text);
    match kind {
        TargetKind::Cubin => contains(folder.as_bytes()),
        // PTX has strings as numbers: `.b8 name[3] = {47, 97, 0};`
        TargetKind::Ptx | TargetKind::Native => {
            let numbers: Vec<String> = folder.bytes().map(|byte| byte.to_string()).collect();
            contains(numbers.join(", ").as_bytes())
        }
    }
}
