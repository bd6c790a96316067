//! The options of a compile: what Cubinder sets, and which of them the user may not.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cubinder_model::{Arch, Digest, Target, TargetKind};

use crate::codegen::TranslationUnit;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// What a project says about its compiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Folders of the project's headers, as the user names them, searched after the source's own folder.
    pub include: Vec<PathBuf>,
    /// Options for NVRTC, each of which has passed [`check_option`].
    pub options: Vec<String>,
}

/// Options that Cubinder sets itself or that would change what kind of output there is. Long and short names of
/// `nvrtc.h`, CUDA 13.0.
const RESERVED: &[(&[&str], &str)] = &[
    (&["gpu-architecture", "arch"], "targets are set with `targets` or `--target`"),
    (&["include-path", "isystem"], "include folders are set with `include`"),
    (&["pre-include", "include"], "write the `#include` into the source"),
    (&["no-source-include"], "headers could not include their neighbours (NVRTC 13.0)"),
    (&["device-debug", "G"], "code for debugging cannot be bound into an engine"),
    (
        &[
            "relocatable-device-code",
            "rdc",
            "device-c",
            "dc",
            "device-w",
            "dw",
            "extensible-whole-program",
            "ewp",
        ],
        "each kernel is a whole program",
    ),
    (
        &["dlink-time-opt", "dlto", "gen-opt-lto", "optix-ir", "fdevice-syntax-only"],
        "it gives no machine code",
    ),
    (
        &[
            "pch",
            "create-pch",
            "use-pch",
            "pch-dir",
            "create_pch",
            "use_pch",
            "pch_dir",
            "pch-verbose",
            "pch-messages",
            "instantiate-templates-in-pch",
        ],
        "precompiled headers are files that the cache of compiled code does not know of",
    ),
    (&["time", "fdevice-time-trace"], "a compile writes no files of its own"),
    (&["frandom-seed"], "it is set, so that the same input gives the same bytes"),
    (&["no-cache"], "it is always set: compiled code is cached by Cubinder"),
    (&["modify-stack-limit"], "it is always off: it would change the whole process"),
    (&["Xcudafe"], "it has options for a part of NVRTC that Cubinder cannot check"),
];

/// The options that take one of `ptxas`, in the same element or the next.
const PTXAS: [&str; 2] = ["ptxas-options", "Xptxas"];

/// Options of `ptxas` that read options from a file, which may change when nothing else does.
const PTXAS_FILES: [&str; 2] = ["options-file", "optf"];

/// Options that read no file, so that their text is all of them. Of `nvrtc.h`, CUDA 13.0, and of NVRTC 13.0.88 itself. What is compiled with another
/// option is not cached.
const READ_NO_FILE: &[&str] = &[
    "D",
    "define-macro",
    "U",
    "undefine-macro",
    "std",
    "maxrregcount",
    "ftz",
    "prec-sqrt",
    "prec-div",
    "fmad",
    "use_fast_math",
    "extra-device-vectorization",
    "fassociative-math",
    "builtin-move-forward",
    "builtin-initializer-list",
    "disable-warnings",
    "w",
    "restrict",
    "device-as-default-execution-space",
    "default-device",
    "device-int128",
    "device-float128",
    "optimization-info",
    "opt-info",
    "display-error-number",
    "err-no",
    "no-display-error-number",
    "no-err-no",
    "diag-error",
    "diag_error",
    "diag-suppress",
    "diag_suppress",
    "diag-warn",
    "diag_warn",
    "brief-diagnostics",
    "brief-diag",
    "split-compile",
    "jump-table-density",
    "jtd",
    "device-stack-protector",
    "minimal",
    "generate-line-info",
    "lineinfo",
    "version-ident",
    "dQ",
    "dopt",
    "Ofast-compile",
    "Ofc",
    "ptxas-options",
    "Xptxas",
];

/// The same of `ptxas` (its help, 13.0).
const PTXAS_READ_NO_FILE: &[&str] = &[
    "O",
    "O0",
    "O1",
    "O2",
    "O3",
    "opt-level",
    "v",
    "verbose",
    "w",
    "disable-warnings",
    "Werror",
    "allow-expensive-optimizations",
    "allow-exp-opt",
    "def-load-cache",
    "dlcm",
    "def-store-cache",
    "dscm",
    "force-load-cache",
    "flcm",
    "force-store-cache",
    "fscm",
    "fmad",
    "maxrregcount",
    "maxntid",
    "minnctapersm",
    "override-directive-values",
    "position-independent-code",
    "pic",
    "register-usage-level",
    "warn-on-double-precision-use",
    "warn-double-usage",
    "warn-on-local-memory-usage",
    "warn-lmem-usage",
    "warn-on-spills",
    "warn-spills",
    "suppress-stack-size-warning",
    "split-compile",
];

/// Whether the user may pass `option` to NVRTC. NVRTC itself judges the rest.
///
/// # Errors
/// Where Cubinder owns the option; without a place, which the caller knows.
pub fn check_option(option: &str) -> Result<(), Diagnostic> {
    let refuse = |why: &str| Err(not_the_users(option, why));
    if option.chars().any(char::is_control) {
        return refuse("it holds a control character");
    }
    if option.trim_start() != option && option.trim_start().starts_with('-') {
        return refuse("NVRTC passes over the blank before it, and nothing else does: leave it out");
    }
    if option.starts_with("-I") {
        return refuse("include folders are set with `include`");
    }
    if let Some(standard) = standard(option).filter(|standard| OLD_STANDARDS.contains(standard)) {
        return Err(too_old(standard));
    }
    let Some(name) = option.strip_prefix("--").or_else(|| option.strip_prefix('-')) else { return Ok(()) };
    let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
    if value.is_some_and(|value| PTXAS.contains(&name) && is_named(value, &PTXAS_FILES)) {
        return refuse(OPTIONS_IN_A_FILE);
    }
    let name = name.split(' ').next().unwrap_or_default();
    match RESERVED.iter().find(|(names, _)| names.contains(&name)) {
        Some((_, why)) => refuse(why),
        None => Ok(()),
    }
}

const OPTIONS_IN_A_FILE: &str =
    "its options would be in a file that the cache of compiled code does not know of";

fn not_the_users(option: &str, why: &str) -> Diagnostic {
    Diagnostic::error(format!("the option `{option}` is not the user's to set"))
        .code(rules::NVRTC_OPTION)
        .note(why.to_owned())
}

/// Whether all of these options are known to read no file. They have passed [`check_options`].
pub(super) fn read_no_file(options: &[String]) -> bool {
    let mut of_ptxas = false;
    options.iter().all(|option| {
        if std::mem::take(&mut of_ptxas) {
            return is_one_of_ptxas(option);
        }
        // A value of the option before it.
        if !option.starts_with('-') {
            return true;
        }
        let value = option.split_once('=').map(|(_, value)| value);
        if is_named(option, &PTXAS) {
            of_ptxas = value.is_none();
            return value.is_none_or(is_one_of_ptxas);
        }
        option.starts_with("-D") || option.starts_with("-U") || is_named(option, READ_NO_FILE)
    })
}

/// Which of the user's options NVRTC must not get, by index. A value may stand behind its option as an element of its own
/// (`-D`, `X=1`); NVRTC itself judges whether the option takes one.
#[must_use]
pub fn check_options<'o>(options: impl IntoIterator<Item = &'o str>) -> Vec<(usize, Diagnostic)> {
    let mut refused = Vec::new();
    let (mut takes_value, mut names_standard, mut names_ptxas) = (false, false, false);
    for (index, option) in options.into_iter().enumerate() {
        let is_option = option.starts_with('-');
        let is_standard = takes_value && std::mem::take(&mut names_standard);
        names_standard = matches!(option, "--std" | "-std");
        let is_of_ptxas = std::mem::take(&mut names_ptxas);
        names_ptxas = is_named(option, &PTXAS) && !option.contains('=');
        match check_option(option) {
            Ok(()) if is_of_ptxas && is_named(option, &PTXAS_FILES) => {
                refused.push((index, not_the_users(option, OPTIONS_IN_A_FILE)));
            }
            Ok(()) if is_standard && OLD_STANDARDS.contains(&option) => {
                refused.push((index, too_old(option)));
            }
            Err(error) => refused.push((index, error)),
            Ok(()) if is_option || takes_value => {}
            Ok(()) => refused.push((
                index,
                Diagnostic::error(format!("`{option}` is no option of NVRTC"))
                    .code(rules::NVRTC_OPTION)
                    .note("an option begins with `-`; a value may follow as an element of its own"),
            )),
        }
        takes_value = is_option && !option.contains('=');
    }
    refused
}

/// Standards of C++ that the generated header cannot be read by: a `constexpr` member function is `const` there.
const OLD_STANDARDS: &[&str] = &["c++03", "c++11"];

fn too_old(standard: &str) -> Diagnostic {
    Diagnostic::error(format!(
        "`{standard}` is older than what the generated header `cubinder.h` is written in"
    ))
    .code(rules::NVRTC_OPTION)
    .help("take `--std=c++14` or later; without the option it is C++17")
}

/// The standard that an option names by itself.
fn standard(option: &str) -> Option<&str> {
    option.strip_prefix("--std=").or_else(|| option.strip_prefix("-std="))
}

/// The macros that options define, each with the index of the option that has its name: `-DN=4`, `-D N=4`, `--define-macro=N`, and
/// `-D` with the name as an element of its own.
#[must_use]
pub fn defined_names<'o>(options: impl IntoIterator<Item = &'o str>) -> Vec<(usize, &'o str)> {
    let mut names = Vec::new();
    let mut is_next = false;
    for (index, option) in options.into_iter().enumerate() {
        let long = option.strip_prefix("--define-macro").or_else(|| option.strip_prefix("-define-macro"));
        let value = match (std::mem::take(&mut is_next), long, option.strip_prefix("-D")) {
            (true, _, _) => Some(option),
            (false, Some(rest), _) => Some(rest.strip_prefix('=').unwrap_or(rest)),
            (false, None, rest) => rest,
        };
        let Some(value) = value else { continue };
        let name = value.trim_start().split(['=', '(', ' ']).next().unwrap_or_default();
        match name {
            "" => is_next = true,
            name => names.push((index, name)),
        }
    }
    names
}

/// What is wrong with options that define names of the generated header, whose words are `header`, by index.
#[must_use]
pub fn check_defined<'o>(
    options: impl IntoIterator<Item = &'o str>,
    header: &BTreeSet<String>,
    of_manifest: &dyn Fn(&str) -> bool,
) -> Vec<(usize, Diagnostic)> {
    let taken = defined_names(options).into_iter().filter(|(_, name)| header.contains(*name));
    taken
        .map(|(index, name)| {
            let what = if of_manifest(name) { "the manifest" } else { "the generated header `cubinder.h`" };
            let error = Diagnostic::error(format!("the option defines `{name}`, which is a name of {what}"))
                .code(rules::NVRTC_OPTION)
                .note("a macro takes the place of the name wherever it stands, in the generated header too");
            (index, error.help("give the macro another name, or leave it out"))
        })
        .collect()
}

/// What kind of compile it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Code that goes into an engine.
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
pub(crate) fn include_folders(
    unit: &TranslationUnit,
    settings: &Settings,
    toolkit: &[PathBuf],
) -> Vec<PathBuf> {
    let own = std::iter::once(&unit.folder);
    own.chain(&settings.include).chain(toolkit).map(|folder| non_empty(folder)).collect()
}

fn non_empty(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

/// The first NVRTC that is given a seed.
const SEEDED: (i32, i32) = (13, 0);

/// What is to be said about code from an NVRTC of this version, the same for each.
pub(super) fn doubts(version: (i32, i32)) -> Option<Diagnostic> {
    let (major, minor) = version;
    (version < SEEDED).then(|| {
        Diagnostic::warning(format!("NVRTC {major}.{minor} may give other bytes for the same input"))
            .note("names in anonymous namespaces and of static functions and variables hold the folder and the process")
            .help("for builds that can be repeated, use NVRTC 13.0 or later; `cargo xtask setup` fetches one")
    })
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
pub(crate) fn has_line_information(options: &[String]) -> bool {
    options.iter().any(|option| is_named(option, &LINE_INFORMATION))
}

/// How the option is called that asks for line information.
const LINE_INFORMATION: [&str; 2] = ["generate-line-info", "lineinfo"];

/// The user's options without those that contradict `--device-debug`. None of them changes a parameter.
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

/// Whether this is one option of `ptxas` that reads no file. A value with a blank or a comma may be several options.
fn is_one_of_ptxas(option: &str) -> bool {
    is_named(option, PTXAS_READ_NO_FILE) && !option.contains([' ', ','])
}

fn is_named(option: &str, names: &[&str]) -> bool {
    let name = option.trim_start_matches('-').split('=').next().unwrap_or_default();
    option.starts_with('-') && names.contains(&name)
}

/// A number that only the text decides.
fn seed(unit: &TranslationUnit) -> String {
    let [a, b, c, d, ..] = Digest::of(unit.text.as_bytes()).0;
    format!("0x{:08x}", u32::from_le_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests;
