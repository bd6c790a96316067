//! The settings of a compile, and the options that NVRTC gets.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cubinder_model::{Arch, Digest, Target, TargetKind};

use super::errors::NotReproducible;
use crate::codegen::TranslationUnit;
use crate::diagnostic::Diagnostic;
use crate::nvrtc_option::{PTXAS, is_named};

/// What a project says about its compiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Folders of the project's headers, as the user names them, searched after the source's own folder.
    pub include: Vec<PathBuf>,
    /// Options for NVRTC, each of which has passed [`crate::nvrtc_option::check_options`].
    pub options: Vec<String>,
}

/// What kind of compile it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Code for an engine.
    Code(Target),
    /// Debug information about kernels' parameters, for an architecture. It is in PTX as it is in a cubin, which takes longer to make, the more so
    /// the more kernels there are. Nothing else of the output is used.
    Signature(Arch),
}

impl Purpose {
    /// What is compiled for.
    pub(super) fn target(self) -> Target {
        match self {
            Purpose::Code(target) => target,
            Purpose::Signature(arch) => Target { kind: TargetKind::Ptx, arch },
        }
    }
}

/// The include folders in the order of search: the source's own, the project's, the toolkit's.
pub fn include_folders(unit: &TranslationUnit, settings: &Settings, toolkit: &[PathBuf]) -> Vec<PathBuf> {
    let own = std::iter::once(&unit.folder);
    own.chain(&settings.include).chain(toolkit).map(|folder| non_empty(folder)).collect()
}

fn non_empty(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

/// The first NVRTC that is given a seed.
const SEEDED: (i32, i32) = (13, 0);

/// A warning about code from an NVRTC of this version, the same for each kernel.
pub(super) fn doubts(version: (i32, i32)) -> Option<Diagnostic> {
    let (major, minor) = version;
    (version < SEEDED).then(|| NotReproducible { major, minor }.into())
}

/// The options of one compile, the same for the same input. `version` is NVRTC's: options that came later are left out for
/// older ones.
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
        // Names with internal linkage hold a hash of the working folder and the number of the process otherwise (tried).
        options.push(format!("--frandom-seed={}", seed(unit)).into());
        // NVRTC's own cache looks for the GPU driver and writes into the user's home (tried).
        options.push("--no-cache".into());
    }
    if let Purpose::Signature(_) = purpose {
        options.push("--device-debug".into());
        // Before the user's options: what they define, the code's compile sees as well.
        options.extend(ONLY_DEBUGGING_DEFINES.map(|name| format!("--undefine-macro={name}").into()));
        options.extend(without_optimizer(&settings.options).into_iter().map(OsString::from));
    } else {
        options.extend(settings.options.iter().map(OsString::from));
    }
    options
}

/// The macros that NVRTC defines with `--device-debug` and not without it. The text of a signature must be that of the code.
pub(super) const ONLY_DEBUGGING_DEFINES: [&str; 1] = ["__CUDACC_DEBUG__"];

/// Whether these options put line information into the code.
pub fn has_line_information(options: &[String]) -> bool {
    options.iter().any(|option| is_named(option, &LINE_INFORMATION))
}

/// How the option is called that asks for line information.
const LINE_INFORMATION: [&str; 2] = ["generate-line-info", "lineinfo"];

/// The user's options without those that contradict `--device-debug`. They do not change parameters.
fn without_optimizer(options: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        if is_named(option, &PTXAS) {
            if !option.contains('=') {
                // Its value is the next one.
                rest.next();
            }
        } else if !is_named(option, &["dopt", "Ofast-compile", "Ofc"]) && !is_named(option, &LINE_INFORMATION)
        {
            kept.push(option.clone());
        }
    }
    kept
}

/// A number that only the text decides.
fn seed(unit: &TranslationUnit) -> String {
    let [a, b, c, d, ..] = Digest::compute(unit.text.as_bytes()).0;
    format!("0x{:08x}", u32::from_le_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests;
