//! Tests of [`super`].

use std::ffi::OsStr;

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
fn options_of_the_optimizer_do_not_meet_debug_information() {
    let options = ["-lineinfo", "-Xptxas", "-O3", "--ptxas-options=-v", "-DA", "-dopt=on", "--std=c++20"];
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    assert_eq!(without_optimizer(&options), ["-DA", "--std=c++20"]);
}

#[test]
fn a_compile_gets_all_options_that_decide_its_code() {
    let unit = crate::test_support::unit(Path::new("folder"), "text", "k", &[]);
    let target: Target = "sm_89".parse().unwrap();
    let of = |purpose, version| {
        let own = ["-DA", "-lineinfo"].map(str::to_owned).to_vec();
        let settings = Settings { include: Vec::new(), options: own };
        let options = options(&unit, purpose, &settings, &[PathBuf::from("inc")], version);
        options.join(OsStr::new(" ")).into_string().unwrap()
    };
    let first = "--std=c++17 --include-path=inc --modify-stack-limit=false";
    let other = crate::test_support::unit(Path::new("folder"), "other", "k", &[]);
    assert_ne!(seed(&unit), seed(&other));
    assert!(seed(&unit).strip_prefix("0x").is_some_and(|digits| digits.len() == 8), "{}", seed(&unit));
    let seeded = format!("{first} --frandom-seed={} --no-cache", seed(&unit));
    let code = Purpose::Code(target);
    assert_eq!(of(code, (13, 0)), format!("--gpu-architecture=sm_89 {seeded} -DA -lineinfo"));
    assert_eq!(of(code, (12, 9)), format!("--gpu-architecture=sm_89 {first} -DA -lineinfo"));
    let debug = "--device-debug --undefine-macro=__CUDACC_DEBUG__ -DA";
    let signature = of(Purpose::Signature(target.arch), (13, 0));
    assert_eq!(signature, format!("--gpu-architecture=compute_89 {seeded} {debug}"));
}

#[test]
fn folders_are_searched_in_order() {
    let unit = crate::test_support::unit(Path::new(""), "", "k", &[]);
    let settings = Settings { include: vec![PathBuf::new(), PathBuf::from("own")], options: Vec::new() };
    let found = include_folders(&unit, &settings, &[PathBuf::from("cuda")]);
    assert_eq!(found, [unit.folder.as_path(), Path::new("."), Path::new("own"), Path::new("cuda")]);
}

#[test]
fn line_information_is_known_by_both_names() {
    let has = |options: &[&str]| {
        has_line_information(&options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>())
    };
    assert!(has(&["-w", "-lineinfo"]) && has(&["--generate-line-info"]));
    assert!(!has(&["-w", "-DA"]) && !has(&[]));
}

#[test]
fn an_nvrtc_without_a_seed_is_said() {
    assert_eq!(doubts((13, 0)), None);
    assert_eq!(doubts((13, 4)), None);
    let warning = doubts((12, 9)).unwrap();
    assert_eq!(warning.message, "NVRTC 12.9 may give other bytes for the same input");
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
    let options =
        ["-DN=4", "-D", "M", "--define-macro=T=int", "-D F(x)=x", "--define-macro", "Z=1", "-w", "-lineinfo"];
    let expected = [(0, "N"), (2, "M"), (3, "T"), (4, "F"), (6, "Z")];
    assert_eq!(defined_names(options), expected);
    let header = ["N", "T"].map(str::to_owned).into();
    let refused = check_defined(options, &header, &|name| name == "N");
    let messages: Vec<&str> = refused.iter().map(|(_, error)| error.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the option defines `N`, which is a name of the manifest",
            "the option defines `T`, which is a name of the generated header `cubinder.h`"
        ]
    );
}

#[test]
fn the_reason_is_said() {
    let error = check_option("--gpu-architecture=sm_80").unwrap_err();
    assert_eq!(error.message, "the option `--gpu-architecture=sm_80` is not the user's to set");
    assert_eq!(error.notes, ["targets are set with `targets` or `--target`"]);
}
