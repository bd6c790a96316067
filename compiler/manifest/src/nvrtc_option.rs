//! Rules about NVRTC options: allowed ones, defined names, read files.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::errors::{MacroOfHeader, NotAnOption, NotTheUsersOption, OldStandard};

/// Owned by Cubinder, or changing the output's kind (`nvrtc.h`, CUDA 13.0).
const RESERVED: &[(&str, &str)] = &[
    ("gpu-architecture arch", "set targets with `targets` or `--target`"),
    ("include-path isystem", "set include folders with `include`"),
    ("pre-include include", "write the `#include` into the source"),
    ("no-source-include", "headers could not include files of their own folder (NVRTC 13.0)"),
    ("device-debug G", "engines cannot contain debug code"),
    (
        "relocatable-device-code rdc device-c dc device-w dw extensible-whole-program ewp",
        "each kernel is compiled as a complete program",
    ),
    ("dlink-time-opt dlto gen-opt-lto optix-ir fdevice-syntax-only", "it produces no machine code"),
    (
        "pch create-pch use-pch pch-dir create_pch use_pch pch_dir pch-verbose pch-messages instantiate-templates-in-pch",
        "the compile cache does not track precompiled headers",
    ),
    ("time fdevice-time-trace", "compilations write no additional files"),
    ("frandom-seed", "Cubinder sets it to make output reproducible"),
    ("no-cache", "it is always set: Cubinder has its own cache"),
    ("modify-stack-limit", "it is always off: it would affect the entire process"),
    ("Xcudafe", "it passes options to a part of NVRTC that Cubinder cannot check"),
];

/// Options that pass one to `ptxas`, in the same element or the next.
pub const PTXAS: [&str; 2] = ["ptxas-options", "Xptxas"];

/// These files could change unnoticed.
const PTXAS_FILES: [&str; 2] = ["options-file", "optf"];

/// From `nvrtc.h` of CUDA 13.0 and NVRTC 13.0.88. Other options prevent caching.
const READ_NO_FILE: &str = "
    D define-macro U undefine-macro std maxrregcount ftz prec-sqrt prec-div fmad use_fast_math
    extra-device-vectorization fassociative-math builtin-move-forward builtin-initializer-list
    disable-warnings w restrict device-as-default-execution-space default-device device-int128
    device-float128 optimization-info opt-info display-error-number err-no no-display-error-number
    no-err-no diag-error diag_error diag-suppress diag_suppress diag-warn diag_warn brief-diagnostics
    brief-diag split-compile jump-table-density jtd device-stack-protector minimal generate-line-info
    lineinfo version-ident dQ dopt Ofast-compile Ofc ptxas-options Xptxas";

/// From the help of ptxas (13.0).
const PTXAS_READ_NO_FILE: &str = "
    O O0 O1 O2 O3 opt-level v verbose w disable-warnings Werror allow-expensive-optimizations
    allow-exp-opt def-load-cache dlcm def-store-cache dscm force-load-cache flcm force-store-cache fscm
    fmad maxrregcount maxntid minnctapersm override-directive-values position-independent-code pic
    register-usage-level warn-on-double-precision-use warn-double-usage warn-on-local-memory-usage
    warn-lmem-usage warn-on-spills warn-spills suppress-stack-size-warning split-compile";

/// Rejects Cubinder's own options, without span; NVRTC validates the rest.
pub fn check_option(option: &str) -> Result<(), Diagnostic> {
    let refuse = |why| Err(NotTheUsersOption { option, why }.into());
    if option.chars().any(char::is_control) {
        return refuse("it contains a control character");
    }
    if option.trim_start() != option && option.trim_start().starts_with('-') {
        return refuse("remove the leading space, which only NVRTC ignores");
    }
    if option.starts_with("-I") {
        return refuse("set include folders with `include`");
    }
    if let Some(standard) = standard(option).filter(|standard| OLD_STANDARDS.contains(standard)) {
        return Err(OldStandard { standard }.into());
    }
    let Some(name) = option.strip_prefix("--").or_else(|| option.strip_prefix('-')) else { return Ok(()) };
    let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
    if value.is_some_and(|value| PTXAS.contains(&name) && is_named(value, &PTXAS_FILES)) {
        return refuse(OPTIONS_IN_A_FILE);
    }
    let name = name.split(' ').next().unwrap_or_default();
    match RESERVED.iter().find(|(names, _)| names.split_whitespace().any(|known| known == name)) {
        Some((_, why)) => refuse(why),
        None => Ok(()),
    }
}

const OPTIONS_IN_A_FILE: &str = "the compile cache does not track files of options";

/// Returns whether no checked option reads a file.
#[must_use]
pub fn read_no_file(options: &[String]) -> bool {
    let mut of_ptxas = false;
    options.iter().all(|option| {
        if std::mem::take(&mut of_ptxas) {
            return is_one_of_ptxas(option);
        }
        if !option.starts_with('-') {
            return true;
        }
        let value = option.split_once('=').map(|(_, value)| value);
        if is_named(option, &PTXAS) {
            of_ptxas = value.is_none();
            return value.is_none_or(is_one_of_ptxas);
        }
        option.starts_with("-D") || option.starts_with("-U") || is_listed(option, READ_NO_FILE)
    })
}

/// Returns errors by index. A value may be the next element (`-D`, `X=1`).
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
        let error = match check_option(option) {
            Ok(()) if is_of_ptxas && is_named(option, &PTXAS_FILES) => {
                Some(NotTheUsersOption { option, why: OPTIONS_IN_A_FILE }.into())
            }
            Ok(()) if is_standard && OLD_STANDARDS.contains(&option) => {
                Some(OldStandard { standard: option }.into())
            }
            Err(error) => Some(error),
            Ok(()) if is_option || takes_value => None,
            Ok(()) => Some(NotAnOption { option }.into()),
        };
        refused.extend(error.map(|error| (index, error)));
        takes_value = is_option && !option.contains('=');
    }
    refused
}

/// In these, `constexpr` member functions are implicitly `const`.
const OLD_STANDARDS: &[&str] = &["c++03", "c++11"];

/// Parses `--std=c++17`.
fn standard(option: &str) -> Option<&str> {
    option.strip_prefix("--std=").or_else(|| option.strip_prefix("-std="))
}

/// Returns the macros that `-DN=4`, `-D N=4`, `--define-macro=N` or `-D`, `N` define, by index.
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

/// Reports options that define names of `header`, by index.
#[must_use]
pub fn check_defined<'o>(
    options: impl IntoIterator<Item = &'o str>,
    header: &BTreeSet<String>,
    of_manifest: &dyn Fn(&str) -> bool,
) -> Vec<(usize, Diagnostic)> {
    let taken = defined_names(options).into_iter().filter(|(_, name)| header.contains(*name));
    let error = |(index, name)| {
        let owner = if of_manifest(name) { "the manifest" } else { "the generated header `cubinder.h`" };
        (index, MacroOfHeader { name, owner }.into())
    };
    taken.map(error).collect()
}

/// Spaces or commas may separate several options.
fn is_one_of_ptxas(option: &str) -> bool {
    is_listed(option, PTXAS_READ_NO_FILE) && !option.contains([' ', ','])
}

/// Compares option names, ignoring dashes and values.
#[must_use]
pub fn is_named(option: &str, names: &[&str]) -> bool {
    let name = option.trim_start_matches('-').split('=').next().unwrap_or_default();
    option.starts_with('-') && names.contains(&name)
}

fn is_listed(option: &str, names: &str) -> bool {
    is_named(option, &names.split_whitespace().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cubinder_owns_are_refused() {
        for option in [
            "--gpu-architecture=sm_80",
            "-arch",
            "-arch=sm_80",
            "-Iinclude",
            "-I",
            "--include-path=x",
            "-include=x.h",
            "-G",
            "--pch",
            "-dlto",
            "-rdc=true",
            "--time=-",
            "-no-cache",
            "-DA\n",
            " --pre-include=v.h",
            " -w",
            "\u{3000}-w",
            "--use_pch=x",
            "-Xcudafe=--preinclude=v.h",
            "-Xptxas=--options-file=f",
            "--ptxas-options=-optf=f",
        ] {
            assert!(check_option(option).is_err(), "{option}");
        }
    }

    #[test]
    fn other_options_are_the_users() {
        for option in [
            "--use_fast_math",
            "-DG=1",
            "-Darch",
            "-std=c++20",
            "--maxrregcount=64",
            "-lineinfo",
            "64",
            "-G1",
            "-w",
            "-Xptxas=-v",
            "--ptxas-options=-O1",
            "-DX=-optf",
        ] {
            assert!(check_option(option).is_ok(), "{option}");
        }
    }

    #[test]
    fn a_value_may_follow_its_option() {
        let refused = |options: &[&str]| -> Vec<usize> {
            check_options(options.iter().copied()).into_iter().map(|(index, _)| index).collect()
        };
        assert_eq!(refused(&["-D", "X=1", "--maxrregcount", "64", "-w"]), [0; 0]);
        assert_eq!(refused(&["fast", "-D", "X", "Y", "-DA=1", "B", "-G", "on"]), [0, 3, 5, 6]);
        assert_eq!(refused(&["-w", " --pre-include=v.h"]), [1]);
        for option in ["-Xptxas", "--ptxas-options"] {
            assert_eq!(refused(&[option, "-v", option, "--options-file=f", "-w", "-optf=f"]), [3]);
            assert_eq!(refused(&[option, "-optf", option, "f"]), [1]);
        }
        assert_eq!(refused(&["-D", " X"]), [0; 0]);
    }

    #[test]
    fn only_options_that_are_known_to_read_no_file_are_cached() {
        let known = |options: &[&str]| {
            read_no_file(&options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>())
        };
        for options in [
            &["-DA", "-D", "A=1", "-UB", "--use_fast_math", "-lineinfo", "--std=c++20"][..],
            &["--maxrregcount", "64", "-Xptxas", "-O3", "--ptxas-options=-v", "-Xptxas=-dlcm=cg"],
            &["-Xptxas", "--opt-level=1", "-w", "--diag-suppress=177", "-dopt=on"],
        ] {
            assert!(known(options), "{options:?}");
        }
        for options in [
            &["--new-option"][..],
            &["-Xnvvm=-opt=0"],
            &["-Xptxas", "--apply-controls=f"],
            &["-Xptxas=-O", "-Xptxas=file"],
            &["-Xptxas", "file"],
            &["-w", "-Xptxas", "-v", "-optf=x"],
            &["-Xptxas=@file"],
        ] {
            assert!(!known(options), "{options:?}");
        }
    }

    #[test]
    fn standards_that_the_header_cannot_be_read_by_are_refused() {
        let refused = |options: &[&str]| check_options(options.iter().copied()).len();
        assert_eq!(refused(&["--std=c++11"]), 1);
        assert_eq!(refused(&["-std=c++03"]), 1);
        assert_eq!(refused(&["-std", "c++11"]), 1);
        assert_eq!(refused(&["--std=c++14", "-std", "c++20", "-D", "c++11"]), 0);
    }

    #[test]
    fn names_that_options_define_are_found() {
        let options = [
            "-DN=4",
            "-D",
            "M",
            "--define-macro=T=int",
            "-D F(x)=x",
            "--define-macro",
            "Z=1",
            "-w",
            "-lineinfo",
        ];
        let expected = [(0, "N"), (2, "M"), (3, "T"), (4, "F"), (6, "Z")];
        assert_eq!(defined_names(options), expected);
        let header = ["N", "T"].map(str::to_owned).into();
        let refused = check_defined(options, &header, &|name| name == "N");
        let messages: Vec<&str> = refused.iter().map(|(_, error)| error.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "the option defines `N`, a name of the manifest",
                "the option defines `T`, a name of the generated header `cubinder.h`"
            ]
        );
    }

    #[test]
    fn the_reason_is_said() {
        let error = check_option("--gpu-architecture=sm_80").unwrap_err();
        assert_eq!(error.message, "the option `--gpu-architecture=sm_80` cannot be set");
        assert_eq!(error.notes, ["set targets with `targets` or `--target`"]);
    }
}
