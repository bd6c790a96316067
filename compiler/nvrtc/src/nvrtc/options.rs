use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cubinder_model::{Arch, Digest, Target, TargetKind};

use super::errors::NotReproducible;
use crate::codegen::TranslationUnit;
use crate::diagnostic::Diagnostic;
use crate::nvrtc_option::{PTXAS, is_named};

/// A project's compile settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Include folders as the user writes them, after the source's own.
    pub include: Vec<PathBuf>,
    /// NVRTC options that passed [`crate::nvrtc_option::check_options`].
    pub options: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Code(Target),
    /// Debug information of parameters as PTX, which compiles faster than a cubin.
    Signature(Arch),
}

impl Purpose {
    pub(super) fn target(self) -> Target {
        match self {
            Purpose::Code(target) => target,
            Purpose::Signature(arch) => Target { kind: TargetKind::Ptx, arch },
        }
    }
}

/// Returns the source's, the project's and the toolkit's folders, in search order.
pub fn include_folders(unit: &TranslationUnit, settings: &Settings, toolkit: &[PathBuf]) -> Vec<PathBuf> {
    let own = std::iter::once(&unit.folder);
    own.chain(&settings.include).chain(toolkit).map(|folder| non_empty(folder)).collect()
}

fn non_empty(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

/// First release with `--frandom-seed`.
const SEEDED: (i32, i32) = (13, 0);

/// Warns about older releases, which are not reproducible.
pub(super) fn doubts(version: (i32, i32)) -> Option<Diagnostic> {
    let (major, minor) = version;
    (version < SEEDED).then(|| NotReproducible { major, minor }.into())
}

/// Older `version`s get fewer.
pub(super) fn options(
    unit: &TranslationUnit,
    purpose: Purpose,
    settings: &Settings,
    include: &[PathBuf],
    version: (i32, i32),
) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec![format!("--gpu-architecture={}", purpose.target()).into()];
    if !settings.options.iter().any(|option| is_named(option, &["std"])) {
        options.push("--std=c++17".into());
    }
    options.extend(include.iter().map(|folder| {
        let mut option = OsString::from("--include-path=");
        option.push(folder);
        option
    }));
    options.push("--modify-stack-limit=false".into());
    if version >= SEEDED {
        // Without a seed, names with internal linkage contain a hash of the working folder and the process ID (tested).
        options.push(format!("--frandom-seed={}", seed(unit)).into());
        // NVRTC's cache looks for the GPU driver and writes into the home folder (tested).
        options.push("--no-cache".into());
    }
    if let Purpose::Signature(_) = purpose {
        options.push("--device-debug".into());
        // These precede the user's options: definitions among those apply to the code, too.
        options.extend(ONLY_DEBUGGING_DEFINES.map(|name| format!("--undefine-macro={name}").into()));
        options.extend(without_optimizer(&settings.options).into_iter().map(OsString::from));
    } else {
        options.extend(settings.options.iter().map(OsString::from));
    }
    options
}

/// Signatures and code must see equal macros.
pub(super) const ONLY_DEBUGGING_DEFINES: [&str; 1] = ["__CUDACC_DEBUG__"];

/// Returns whether the options add line information to the code.
pub fn has_line_information(options: &[String]) -> bool {
    options.iter().any(|option| is_named(option, &LINE_INFORMATION))
}

const LINE_INFORMATION: [&str; 2] = ["generate-line-info", "lineinfo"];

/// Removes conflicting options, which do not change parameters.
fn without_optimizer(options: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        if is_named(option, &PTXAS) {
            if !option.contains('=') {
                rest.next();
            }
        } else if !is_named(option, &["dopt", "Ofast-compile", "Ofc"]) && !is_named(option, &LINE_INFORMATION)
        {
            kept.push(option.clone());
        }
    }
    kept
}

fn seed(unit: &TranslationUnit) -> String {
    let [a, b, c, d, ..] = Digest::compute(unit.text.as_bytes()).0;
    format!("0x{:08x}", u32::from_le_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests;
