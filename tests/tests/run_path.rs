//! What compiled plugins load and launch, above a stand-in for NVIDIA's driver: `tests/fake-driver`.
//!
//! The libraries are made by `CUBINDER_BIN` with `CUBINDER_RUNTIME_LIBRARY`; `cargo xtask test` sets both. Without them a test
//! says `skipped`; where `CUBINDER_REQUIRE_TOOLKIT=1` stands, a skip is a failure.

use anyhow::Result;
use cubinder_tests::compiled::{Compiled, Recipe};
use cubinder_tests::cxx;
use cubinder_tests::fake_driver::{Age, Checks, Subject};

/// The device of the stand-in, PTX for it, and a device with clusters.
const PLUGINS: Recipe<'_> = Recipe {
    manifests: &[
        "tests/data/run/circ_pad_plugin.toml",
        "manifests/elemwise_add_plugin.toml",
        "tests/data/run/tiles.toml",
        "tests/data/run/vectors.toml",
        "tests/data/run/aligned.toml",
        "tests/data/run/sequences/steps.toml",
        "tests/data/run/sequences/eight.toml",
    ],
    targets: &["sm_89", "sm_90", "compute_80"],
};

/// Nothing that runs on the device of the stand-in.
const OTHER_DEVICES: Recipe<'_> =
    Recipe { manifests: &["tests/data/run/tiles.toml"], targets: &["sm_75", "sm_90a"] };

/// Says why a test cannot run here. Where everything has to be there, that is a failure.
fn skip(reason: &str) {
    assert!(std::env::var_os("CUBINDER_REQUIRE_TOOLKIT").is_none_or(|value| value != "1"), "{reason}");
    println!("skipped: {reason}");
}

/// Runs the checks on both forms of the libraries, above a new driver and an old one. `expected` are parts of the names of some.
#[track_caller]
fn check(subject: Subject, recipe: Recipe<'_>, expected: &[&str]) -> Result<()> {
    if cxx::compiler_version().is_none() {
        skip("no C++ compiler; install g++, or name one with `CXX`");
        return Ok(());
    }
    let Some(compiled) = Compiled::by(recipe)? else {
        skip("`CUBINDER_BIN` or `CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets both");
        return Ok(());
    };
    assert_eq!(compiled.libraries.len(), 2, "one with code in fields and one with a code library");
    let checks = Checks::build()?;
    for pair in &compiled.libraries {
        for age in [Age::New, Age::Old] {
            let run = checks.run(subject, pair, age)?;
            let failures = run.failures();
            assert!(
                run.is_clean(),
                "{} above a driver that is {age:?}: {}, exit code {:?}\n{}\n{}",
                pair.plugins.display(),
                run.totals,
                run.code,
                failures.join("\n"),
                run.stderr
            );
            for part in expected {
                assert!(run.checks.iter().any(|check| check.name.contains(part)), "{part}: {}", run.totals);
            }
        }
    }
    Ok(())
}

#[test]
fn plugins_launch_what_they_should_and_outlive_failures() {
    let expected = [
        "tiles_plugin: a tactic set after the shapes is launched",
        "vectors_plugin: addresses change without a change of shapes",
        "vectors_plugin: a profile beyond the limits is refused",
        "aligned_plugin: where no variant may run nothing is launched",
        "steps_plugin: steps are queued in order",
        "steps_plugin: the log is told what runs",
        "eight_plugin: the same shapes",
    ];
    check(Subject::Plugins, PLUGINS, &expected).unwrap();
}

#[test]
fn code_for_other_devices_is_refused_with_what_to_do() {
    check(Subject::OtherDevices, OTHER_DEVICES, &["code for other devices is refused"]).unwrap();
}

#[test]
fn the_checks_refuse_a_driver_that_is_no_stand_in() {
    if cxx::compiler_version().is_none() {
        return skip("no C++ compiler; install g++, or name one with `CXX`");
    }
    let checks = Checks::build().unwrap();
    for (arguments, said) in [
        (vec!["--library", "a.so", "--runtime-library", "b.so"], "is not the stand-in"),
        (vec!["--library", "a.so"], "usage: "),
    ] {
        let run = checks.run_without(&arguments).unwrap();
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
}
