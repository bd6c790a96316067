use anyhow::Result;
use cubinder_skip::skip;
use cubinder_tests::compiled::{Compiled, Pair, Recipe};
use cubinder_tests::cxx;
use cubinder_tests::fake_driver::{Age, Checks, Subject};

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

const OTHER_DEVICES: Recipe<'_> =
    Recipe { manifests: &["tests/data/run/tiles.toml"], targets: &["sm_75", "sm_90a"] };

const FAULTS: Recipe<'_> = Recipe {
    manifests: &[
        "tests/data/run/tiles.toml",
        "tests/data/run/vectors.toml",
        "tests/data/run/sequences/steps.toml",
        "tests/data/conformance/everything.toml",
    ],
    targets: &["sm_89", "sm_90", "compute_80"],
};

/// Checks both forms with both drivers. `expected`: parts of names.
#[track_caller]
fn check(subject: Subject, recipe: Recipe<'_>, expected: &[&str]) -> Result<()> {
    check_in(subject, recipe, expected, |_| vec![Vec::new()])
}

type Additions = Vec<(&'static str, String)>;

#[track_caller]
fn check_in(
    subject: Subject,
    recipe: Recipe<'_>,
    expected: &[&str],
    environments: fn(&Checks) -> Vec<Additions>,
) -> Result<()> {
    let Some((compiled, checks)) = made(recipe)? else { return Ok(()) };
    let environments = environments(&checks);
    for (pair, environment) in
        compiled.libraries.iter().flat_map(|pair| environments.iter().map(move |it| (pair, it)))
    {
        for age in [Age::New, Age::Old] {
            run(&checks, (subject, pair, age), environment, expected)?;
        }
    }
    Ok(())
}

#[track_caller]
fn run(
    checks: &Checks,
    (subject, pair, age): (Subject, &Pair, Age),
    environment: &Additions,
    expected: &[&str],
) -> Result<()> {
    let added: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let run = checks.run_with(subject, pair, age, &added)?;
    let failures = run.failures();
    assert!(
        run.is_clean(),
        "{} above a driver that is {age:?} with {added:?}: {}, exit code {:?}\n{}\n{}",
        pair.plugins.display(),
        run.totals,
        run.code,
        failures.join("\n"),
        run.stderr
    );
    for part in expected {
        assert!(run.checks.iter().any(|check| check.name.contains(part)), "{part}: {}", run.totals);
    }
    Ok(())
}

#[track_caller]
fn check_by_turns(subject: Subject, recipe: Recipe<'_>, expected: &[&str]) -> Result<()> {
    let Some((compiled, checks)) = made(recipe)? else { return Ok(()) };
    for (pair, age) in compiled.libraries.iter().zip([Age::New, Age::Old]) {
        run(&checks, (subject, pair, age), &Vec::new(), expected)?;
    }
    Ok(())
}

#[track_caller]
fn made(recipe: Recipe<'_>) -> Result<Option<(Compiled, Checks)>> {
    if cxx::compiler_version().is_none() {
        skip("no C++ compiler; install g++, or set `CXX`");
        return Ok(None);
    }
    let Some(compiled) = Compiled::by(recipe)? else {
        skip("`CUBINDER_BIN` or `CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets both");
        return Ok(None);
    };
    assert_eq!(compiled.libraries.len(), 2, "one with code in fields and one with a code library");
    Ok(Some((compiled, Checks::build()?)))
}

#[test]
fn plugins_launch_what_they_should_and_outlive_failures() {
    let expected = [
        "tiles_plugin: a tactic set after the shapes is launched",
        "vectors_plugin: addresses change without a change of shapes",
        "tiles_plugin: a thread without a context enqueues in that of the stream",
        "vectors_plugin: a profile that exceeds the limits is rejected",
        "aligned_plugin: nothing is launched if no variant may run",
        "steps_plugin: steps are queued in order",
        "steps_plugin: the log shows what runs",
        "eight_plugin: the same shapes",
        "circ_pad_plugin: equal nodes load and prepare once in each context",
        "vectors_plugin: equal nodes keep their own shapes and tactics",
    ];
    check(Subject::Plugins, PLUGINS, &expected).unwrap();
}

#[test]
fn every_call_of_the_driver_may_fail_in_every_part_of_a_life() {
    let expected = [
        "vectors_plugin, three variants: every call of the driver may fail with CUDA_ERROR_OUT_OF_MEMORY (2), once",
        "steps_plugin, a device with clusters: every call of the driver may fail with CUDA_ERROR_ILLEGAL_ADDRESS (700), from then on",
        "everything_plugin: every call of the driver may fail with CUDA_ERROR_DEINITIALIZED (4), from then on",
        "everything_plugin, a thread without a context: every call of the driver may fail",
    ];
    check_by_turns(Subject::Faults, FAULTS, &expected).unwrap();
}

#[test]
fn closing_a_library_leaves_the_captures_of_others_alone() {
    let expected = [
        "one thread captures, and the same thread closes a library",
        "one thread captures, and another thread closes a library",
        "invalidates the capture",
    ];
    check(Subject::Captures, FAULTS, &expected).unwrap();
}

#[test]
fn sixteen_threads_live_with_four_engines_while_calls_fail() {
    let expected = [
        "16 threads, 4 engines: no call fails",
        "16 threads, 4 engines: calls fail at random",
        "16 threads, 4 engines: copies of the library are opened and closed",
    ];
    check_by_turns(Subject::Threads, FAULTS, &expected).unwrap();
}

#[test]
fn the_process_ends_while_threads_are_at_work() {
    let expected = ["the process ends while threads queue and load"];
    check(Subject::Ends, FAULTS, &expected).unwrap();
}

#[test]
fn code_for_other_devices_is_refused_with_what_to_do() {
    check(Subject::OtherDevices, OTHER_DEVICES, &["code for other devices is rejected"]).unwrap();
}

#[test]
fn the_checks_refuse_a_driver_that_is_no_stand_in() {
    if cxx::compiler_version().is_none() {
        return skip("no C++ compiler; install g++, or set `CXX`");
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

#[test]
fn profilers_see_ranges_and_what_is_launched_stays_the_same() {
    fn profiled(checks: &Checks) -> Vec<Additions> {
        let path = checks.tool().display().to_string();
        vec![vec![("CUBINDER_NVTX", "1".to_owned()), ("NVTX_INJECTION64_PATH", path)]]
    }
    let expected =
        ["a range for each enqueue", "a range ends if the driver refuses", "ranges cost no memory"];
    check_in(Subject::Ranges, PLUGINS, &expected, profiled).unwrap();
    let expected = [
        "steps_plugin: an unchanged sequence costs its calls and no memory",
        "eight_plugin: the same shapes",
    ];
    check_in(Subject::Plugins, PLUGINS, &expected, profiled).unwrap();
}

#[test]
fn without_a_profiler_every_node_runs() {
    fn environments(checks: &Checks) -> Vec<Additions> {
        let path = |path: std::path::PathBuf| path.display().to_string();
        let with = |asked: &str, tool: Option<String>, mood: &str, warning: &str| {
            let mut added = vec![("EXPECTED_WARNING", warning.to_owned()), ("FAKE_TOOL", mood.to_owned())];
            added.push(("CUBINDER_NVTX", asked.to_owned()));
            added.extend(tool.map(|tool| ("NVTX_INJECTION64_PATH", tool)));
            added
        };
        let tool = || Some(path(checks.tool()));
        vec![
            with("0", tool(), "", ""),
            with("", tool(), "", ""),
            with("1", None, "", ""),
            with("1", tool(), "deaf", ""),
            with("yes", tool(), "", "no NVTX ranges: CUBINDER_NVTX is `yes`, expected 0 or 1"),
            with("1", tool(), "refuse", "cannot be attached: `InitializeInjectionNvtx2` returned 0"),
            with("1", Some(path(checks.driver())), "", "has no function `InitializeInjectionNvtx2`"),
            with(
                "1",
                Some("/nowhere/libtool.so".to_owned()),
                "",
                "/nowhere/libtool.so` (NVTX_INJECTION64_PATH) cannot be loaded",
            ),
        ]
    }
    check_in(Subject::Ranges, PLUGINS, &["without a profiler every node runs"], environments).unwrap();
}
