use std::ffi::OsStr;

use super::*;

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
    assert_eq!(warning.message, "NVRTC 12.9 may return different code for the same input");
}
