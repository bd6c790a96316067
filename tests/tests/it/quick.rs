//! A quick creator in the oracle. Only Enterprise 11.4 has `impl/NvInferPythonPlugin.h`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use cubinder_skip::skip;
use cubinder_tests::headers::{GENERATIONS, Generation, RTX_1_7};
use cubinder_tests::oracle::{Oracle, Outcome};
use cubinder_tests::{cxx, quick_plugin};

const ENTERPRISE_11_4: Generation = GENERATIONS[6];

const FAULTS: &[(&str, &str)] = &[
    ("alias missing", "quick_scale_plugin: getAliasedInput, tactics and texts"),
    ("any block", "quick_scale_plugin: invalid attributes are rejected"),
    ("any request", "quick_scale_plugin: a plugin for every request except a strict one for another kind"),
    ("any tactic", "quick_scale_plugin: the runtime interface has a tactic and no work"),
    ("any type", "quick_scale_plugin: a kernel for each type and tactic, at a stable address"),
    ("clone shares state", "quick_scale_plugin: clones are independent and outlive their original"),
    ("code moves", "quick_scale_plugin: a kernel for each type and tactic, at a stable address"),
    ("core name", "quick_scale_plugin: interfaces and names"),
    ("duplicate tactics", "quick_scale_plugin: getAliasedInput, tactics and texts"),
    ("format", "quick_scale_plugin: format combinations, within the buffer"),
    ("grid rounded down", "quick_scale_plugin: launch parameters and scalars, for every tactic"),
    ("grid turned", "quick_scale_plugin: launch parameters and scalars, for every tactic"),
    ("kernel name", "quick_scale_plugin: a kernel for each type and tactic, at a stable address"),
    ("mixed types", "quick_scale_plugin: format combinations, within the buffer"),
    ("no log", "quick_scale_plugin: a rejected launch value is an error that names it"),
    ("no metadata", "quick_scale_plugin: getAliasedInput, tactics and texts"),
    ("null dimension", "quick_scale_plugin: a builder that returns null is an error"),
    ("output shape", "quick_scale_plugin: outputs: number, types and shapes"),
    ("output type", "quick_scale_plugin: outputs: number, types and shapes"),
    ("ranks unread", "quick_scale_plugin: outputs: number, types and shapes"),
    ("refuses to be configured", "quick_scale_plugin: getAliasedInput, tactics and texts"),
    ("refuses without a word", "quick: a creator keeps its names and tolerates invalid fields"),
    ("scalar missing", "quick_scale_plugin: launch parameters and scalars, for every tactic"),
    ("scalars turned", "quick_scale_plugin: launch parameters and scalars, for every tactic"),
    ("shared memory", "quick_scale_plugin: launch parameters and scalars, for every tactic"),
    ("tactic ignored", "quick_scale_plugin: launch parameters and scalars, for every tactic"),
    ("threads race", "quick_scale_plugin: 8 threads launch at once"),
    ("three outputs", "quick_scale_plugin: outputs: number, types and shapes"),
    ("timing cache id", "quick_scale_plugin: two plugins share no attributes"),
];

fn has_compiler() -> bool {
    let is_there = cxx::compiler_version().is_some();
    if !is_there {
        skip("no C++ compiler; install g++, or set `CXX`");
    }
    is_there
}

#[test]
fn a_quick_plugin_conforms() {
    if !has_compiler() {
        return;
    }
    let library = quick_plugin::build().unwrap();
    let run = Oracle::build(ENTERPRISE_11_4).unwrap().check(&library, None).unwrap();
    assert!(run.is_clean(), "{}, exit code {:?}\n{}", run.totals, run.code, run.failures().join("\n"));
    let layout = "headers: methods of quick plugins lie in the slots that Cubinder is written to";
    for check in FAULTS.iter().map(|(_, check)| check).chain([&layout]) {
        assert!(
            run.checks.iter().any(|done| done.name == *check && done.outcome == Outcome::Passed),
            "`{check}` was not checked"
        );
    }
}

#[test]
fn a_quick_creator_is_one_that_other_releases_leave_alone() {
    if !has_compiler() {
        return;
    }
    let library = quick_plugin::build().unwrap();
    let run = Oracle::build(RTX_1_7).unwrap().check(&library, None).unwrap();
    assert!(run.is_clean(), "{}, exit code {:?}\n{}", run.totals, run.code, run.failures().join("\n"));
    let reason = Outcome::Skipped("these headers have no quick plugins".to_owned());
    assert!(run.checks.iter().any(|done| done.name == "quick: a creator" && done.outcome == reason));
}

#[test]
fn every_planted_fault_is_found() {
    if !has_compiler() {
        return;
    }
    let (library, oracle) = (quick_plugin::build().unwrap(), Oracle::build(ENTERPRISE_11_4).unwrap());
    for (fault, check) in FAULTS {
        let arguments: Vec<OsString> = vec!["--library".into(), library.clone().into()];
        let run = oracle.run(&arguments, &[("ORACLE_FAULT", fault)]).unwrap();
        assert_eq!(run.code, Some(1), "`{fault}`: {} {:?}", run.totals, run.failures());
        assert!(
            run.failures().iter().any(|failure| failure.starts_with(check)),
            "`{check}` does not detect `{fault}`:\n{}",
            run.failures().join("\n")
        );
    }
}

#[test]
fn every_planted_fault_is_listed() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("quick-plugin/quick_plugin.rs");
    let text = std::fs::read_to_string(source).unwrap();
    let planted: BTreeSet<&str> = text
        .split("fault(\"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(planted, FAULTS.iter().map(|(fault, _)| *fault).collect());
}
