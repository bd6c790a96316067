//! The conformance oracle on plugin libraries, for every release with headers. Skipped without `CUBINDER_BIN` and
//! `CUBINDER_RUNTIME_LIBRARY`, or `CUBINDER_TEST_LIBRARIES`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cubinder_skip::skip;
use cubinder_tests::compiled::{Compiled, Pair, Recipe};
use cubinder_tests::fake_driver::{Age, Checks, Subject};
use cubinder_tests::headers::{self, RTX_1_7};
use cubinder_tests::oracle::{self, Oracle, Outcome, Run};
use cubinder_tests::{cxx, reference_plugin};

/// Each with a check that must find it.
const FAULTS: &[(&str, &str)] = &[
    ("aborts", "circ_pad_plugin: a rejected configuration changes nothing"),
    ("alias", "circ_pad_plugin: getAliasedInput returns the aliased inputs"),
    ("alignment expected", "circ_pad_plugin: fields load from any address"),
    ("another format", "circ_pad_plugin: supportsFormatCombination at every position, type and format"),
    ("any field type", "circ_pad_plugin: rejects floats for pads"),
    ("any phase", "circ_pad_plugin: an unknown phase is rejected"),
    ("any shape", "circ_pad_plugin: onShapeChange rejects tensors that were not configured"),
    ("any tactic", "circ_pad_plugin: setTactic rejects tactics that were not offered"),
    ("aot unanswered", "circ_pad_plugin: aot = 0 is logged"),
    ("aot undeclared", "circ_pad_plugin: the creator declares its attributes"),
    ("attach is itself", "circ_pad_plugin: attachToContext returns a new object"),
    ("attach wants a context", "circ_pad_plugin: attachToContext works without a context"),
    ("build kind", "circ_pad_plugin: capability interfaces"),
    ("capability missing", "circ_pad_plugin: capability interfaces"),
    ("capability moves", "circ_pad_plugin: capability pointers are stable"),
    ("clone dies with its original", "circ_pad_plugin: a clone outlives its original"),
    ("clone forgets the configuration", "circ_pad_plugin: a clone keeps the configuration"),
    ("clone is itself", "circ_pad_plugin: a clone is another object"),
    ("clone shares state", "circ_pad_plugin: configuring a clone leaves the original unchanged"),
    ("collection unchecked", "circ_pad_plugin: invalid collections are rejected, building"),
    ("configures anything", "circ_pad_plugin: configurePlugin rejects combinations that were not offered"),
    ("copies on the host", "circ_pad_plugin: enqueue without a driver fails with a reason"),
    ("core name", "circ_pad_plugin: core name"),
    ("core version", "circ_pad_plugin: core name"),
    ("creator kind", "library: every creator is a V3One or a quick creator"),
    ("creator namespace", "circ_pad_plugin: has a creator"),
    ("creators change", "library: getCreators returns the same at every call"),
    ("damage unnoticed", "circ_pad_plugin: a changed byte is rejected"),
    ("damage unsaid", "circ_pad_plugin: a changed byte is rejected"),
    ("duplicate tactics", "circ_pad_plugin: tactics are positive, distinct and as many as announced"),
    ("dynamic shapes refused", "circ_pad_plugin: configurePlugin takes static and dynamic shapes"),
    ("empty messages", "logger: every message has a severity and a text"),
    ("enqueue succeeds", "circ_pad_plugin: enqueue without a driver fails with a reason"),
    ("extra fields unnoticed", "circ_pad_plugin: missing, unknown and repeated fields are rejected"),
    ("field names change", "library: creators declare their fields"),
    ("field twice", "circ_pad_plugin: fields are the same at every call"),
    ("field without a name", "circ_pad_plugin: fields are the same at every call"),
    ("fields change", "circ_pad_plugin: fields are the same at every call"),
    ("fields lost", "circ_pad_plugin: a plugin of an engine keeps its fields and names"),
    ("fields move", "circ_pad_plugin: fields are the same at every call"),
    ("keeps a file open", "unloading: no file stays open"),
    ("language", "library: every creator is a V3One or a quick creator"),
    ("leak", "circ_pad_plugin: memory does not grow"),
    ("metadata changes", "circ_pad_plugin: getMetadataString is a stable text that names the plugin"),
    ("mixed types", "circ_pad_plugin: supportsFormatCombination at every position, type and format"),
    ("name twice", "together: no two creators of one name"),
    ("negative pads", "circ_pad_plugin: rejects negative pads"),
    ("negative tactic", "circ_pad_plugin: tactics are positive, distinct and as many as announced"),
    ("no creators", "library: loads"),
    ("no formats", "circ_pad_plugin: getFormatCombinationLimit leaves room for every combination"),
    ("no loader", "circ_pad_plugin: a plugin of an engine keeps its fields and names"),
    ("no log", "circ_pad_plugin: rejects an odd number of pads"),
    ("node name is read", "circ_pad_plugin: a null node name is accepted"),
    ("null attach", "circ_pad_plugin: attachToContext returns a new object"),
    ("null clone", "circ_pad_plugin: a clone is another object"),
    ("null data unnoticed", "circ_pad_plugin: null data and another type are rejected"),
    ("null dimension", "circ_pad_plugin: a builder that returns null is an error"),
    ("null field names", "library: creators declare their fields"),
    ("null fields", "circ_pad_plugin: fields are the same at every call"),
    ("odd pads", "circ_pad_plugin: rejects an odd number of pads"),
    ("output shape", "circ_pad_plugin: output shapes, static"),
    ("output type", "circ_pad_plugin: outputs, with the types that match the inputs"),
    ("plugin kind", "circ_pad_plugin: plugin interface"),
    ("plugins share attributes", "circ_pad_plugin: two plugins share no attributes"),
    ("prints", "library: works without a logger"),
    ("shape of constants", "circ_pad_plugin: output shapes, symbolic"),
    ("stays mapped", "unloading: nothing stays mapped after 50 loads"),
    ("tactic 0", "circ_pad_plugin: tactics are positive, distinct and as many as announced"),
    ("tactic refused", "circ_pad_plugin: setTactic accepts offered tactics, and 0 without tactics"),
    (
        "tactics without asking how many",
        "circ_pad_plugin: tactics are positive, distinct and as many as announced",
    ),
    ("takes any type", "circ_pad_plugin: outputs, with the types that match the inputs"),
    ("threads race", "circ_pad_plugin: 16 threads at once"),
    ("timing cache id", "circ_pad_plugin: equal nodes share one id for the timing cache, others never do"),
    ("truncation unnoticed", "circ_pad_plugin: a shortened field is rejected"),
    ("two outputs", "circ_pad_plugin: outputs, with the types that match the inputs"),
    ("type unnoticed", "circ_pad_plugin: null data and another type are rejected"),
    ("unknown capability", "circ_pad_plugin: an unknown capability is null"),
    ("workspace from opt", "circ_pad_plugin: getWorkspaceSize covers the maximum shapes"),
    ("metadata without the op", "circ_pad_plugin: getMetadataString is a stable text that names the plugin"),
    ("a format too many", "everything_plugin: supportsFormatCombination at every position, type and format"),
    ("alias beside", "everything_plugin: getAliasedInput returns the aliased inputs"),
    ("alias missing", "everything_plugin: getAliasedInput returns the aliased inputs"),
    ("alias of another", "everything_plugin: getAliasedInput returns the aliased inputs"),
    ("alias out of range", "everything_plugin: getAliasedInput returns the aliased inputs"),
    ("any format at run time", "everything_plugin: onShapeChange rejects tensors that were not configured"),
    ("arithmetic on a size", "everything_plugin: output shapes, symbolic"),
    ("configured though refused", "everything_plugin: a rejected configuration changes nothing"),
    (
        "configures any format",
        "everything_plugin: configurePlugin rejects combinations that were not offered",
    ),
    ("floats for an integer", "everything_plugin: rejects floats for level"),
    ("formats of any rank", "everything_plugin: formats are offered only for ranks that they support"),
    (
        "formats of another type",
        "everything_plugin: supportsFormatCombination at every position, type and format",
    ),
    ("formats read ahead", "everything_plugin: supportsFormatCombination at every position, type and format"),
    ("inputs of two types", "everything_plugin: outputs, with the types that match the inputs"),
    ("level beyond its range", "everything_plugin: rejects a level outside its range"),
    ("no timing id", "everything_plugin: getTimingCacheID is stable, on clones too"),
    ("output format free", "everything_plugin: supportsFormatCombination at every position, type and format"),
    ("room for one format", "everything_plugin: getFormatCombinationLimit leaves room for every combination"),
    (
        "shape inputs unchecked",
        "everything_plugin: getOutputShapes rejects other ranks, other counts and null",
    ),
    ("size bound", "everything_plugin: output shapes, symbolic"),
    ("size declared twice", "everything_plugin: output shapes, symbolic"),
    ("size in another output", "everything_plugin: output shapes, symbolic"),
    ("size in no output", "everything_plugin: output shapes, symbolic"),
    ("size of another type", "everything_plugin: outputs, with the types that match the inputs"),
    ("size optimum", "everything_plugin: output shapes, symbolic"),
    ("size undeclared", "everything_plugin: output shapes, symbolic"),
    (
        "tactics for every format",
        "everything_plugin: tactics are positive, distinct and as many as announced",
    ),
    (
        "tactics in another order",
        "everything_plugin: tactics are positive, distinct and as many as announced",
    ),
    ("timing id changes", "everything_plugin: getTimingCacheID is stable, on clones too"),
    (
        "timing id of the name",
        "everything_plugin: equal nodes share one id for the timing cache, others never do",
    ),
    (
        "timing id of the seed",
        "everything_plugin: equal nodes share one id for the timing cache, others never do",
    ),
    (
        "timing id without attributes",
        "everything_plugin: equal nodes share one id for the timing cache, others never do",
    ),
    ("timing id of the format", "everything_plugin: the id for the timing cache is fixed at creation"),
    ("timing id of the type", "everything_plugin: the id for the timing cache is fixed at creation"),
    ("values ignored", "everything_plugin: output shapes, static"),
    ("workspace forgets a buffer", "everything_plugin: getWorkspaceSize covers the maximum shapes"),
    ("workspace of opt shapes", "everything_plugin: getWorkspaceSize covers the maximum shapes"),
    ("workspace unrounded", "everything_plugin: getWorkspaceSize covers the maximum shapes"),
    ("any boolean", "attributes: invalid values are rejected by name"),
    ("any bytes for text", "attributes: invalid values are rejected by name"),
    ("attribute twice", "attributes: invalid values are rejected by name"),
    ("attribute unnamed", "attributes: invalid values are rejected by name"),
    ("attribute without data", "attributes: invalid values are rejected by name"),
    ("empty lists refused", "attributes: an empty list has no data"),
    ("half beyond its range", "attributes: invalid values are rejected by name"),
    ("integers for floats", "attributes: invalid values are rejected by name"),
    ("last letter lost", "attributes: each is read from every type of field, at any address"),
    ("numbers cut", "attributes: invalid values are rejected by name"),
    ("two texts for one", "attributes: invalid values are rejected by name"),
    ("two values for one", "attributes: invalid values are rejected by name"),
];

const FAULTS_ABOVE_A_DRIVER: &[(&str, &str)] = &[
    ("a step left out", "an engine queues its steps, within the reserved workspace"),
    ("allocates in enqueue", "unchanged shapes cost the steps and no memory"),
    ("another stream", "an engine queues its steps, within the reserved workspace"),
    ("clones keep shapes", "enqueue without a change of shapes queues nothing"),
    ("copies in place", "a builder that times, static shapes"),
    ("copies without padding", "an aliased output at another address first gets a copy of its input"),
    ("empty steps", "a builder that times, static shapes"),
    ("fill beyond the workspace", "a builder that times, static shapes"),
    ("fill with another byte", "a builder that times, static shapes"),
    ("kernel of another type", "a builder that times, dynamic shapes"),
    ("no copy for other addresses", "an aliased output at another address first gets a copy of its input"),
    ("reads another tensor", "an engine queues its steps, within the reserved workspace"),
    ("runs without shapes", "enqueue without a change of shapes queues nothing"),
    ("scratch beyond the workspace", "a builder that times, static shapes"),
    ("scratch of the build", "a builder that times, dynamic shapes"),
    ("tactic ignored", "a tactic set after the shapes takes effect"),
    ("extent of the build", "a builder that times, static shapes"),
    ("values unchecked", "output shapes that no shape input values produce are rejected"),
    ("workspace unchecked", "shapes that need more workspace than was reserved are rejected"),
];

const PLUGINS: Recipe<'_> = Recipe {
    manifests: &[
        "manifests/circ_pad_plugin.toml",
        "manifests/elemwise_add_plugin.toml",
        "manifests/elemwise_add_plugin_.toml",
        "manifests/non_zero_plugin.toml",
        "tests/data/run/attributes.toml",
        "tests/data/conformance/everything.toml",
        "tests/data/conformance/layouts.toml",
        "tests/data/conformance/sequence.toml",
    ],
    targets: &["sm_89", "compute_80"],
};

const SMALL: Recipe<'_> =
    Recipe { manifests: &["tests/data/conformance/sequence.toml"], targets: &["compute_80"] };

fn has_compiler() -> bool {
    let is_there = cxx::compiler_version().is_some();
    if !is_there {
        skip("no C++ compiler; install g++, or set `CXX`");
    }
    is_there
}

#[track_caller]
fn assert_clean(run: &Run, what: &str) {
    assert!(
        run.is_clean(),
        "{what}: {}, exit code {:?}\n{}\n{}",
        run.totals,
        run.code,
        run.failures().join("\n"),
        run.stderr
    );
}

#[test]
fn a_good_library_passes_with_every_release() {
    if !has_compiler() {
        return;
    }
    for generation in headers::generations().unwrap() {
        let oracle = Oracle::build(generation).unwrap();
        let run = oracle.check(&oracle.broken_library(), None).unwrap();
        assert_clean(&run, generation.name);
        let has = |part: &str| run.checks.iter().any(|check| check.name.contains(part));
        assert!(
            ["circ_pad", "elemwise_add", "everything"]
                .iter()
                .all(|op| has(&format!("{op}_plugin: 16 threads"))),
            "{}",
            run.totals
        );
    }
}

#[test]
fn every_planted_fault_is_found() {
    if !has_compiler() {
        return;
    }
    let oracle = Oracle::build(RTX_1_7).unwrap();
    for (fault, check) in FAULTS {
        let case = match check.split_once(": ") {
            Some(("everything_plugin", _)) => "everything",
            Some(("attributes", _)) => "attributes",
            _ => "circ_pad",
        };
        let arguments: Vec<OsString> =
            vec!["--library".into(), oracle.broken_library().into(), "--case".into(), case.into()];
        let run = oracle.run(&arguments, &[("ORACLE_FAULT", fault)]).unwrap();
        if run.checks.iter().any(|done| done.name == *check && matches!(done.outcome, Outcome::Skipped(_))) {
            continue;
        }
        assert_eq!(run.code, Some(1), "`{fault}`: {} {:?}", run.totals, run.failures());
        assert!(
            run.failures().iter().any(|failure| failure.starts_with(check)),
            "`{check}` does not detect `{fault}`:\n{}",
            run.failures().join("\n")
        );
        assert!(run.totals.contains(" failed"), "`{fault}`: the totals are missing");
    }
}

#[test]
fn every_planted_fault_is_found_above_a_driver() {
    if !has_compiler() {
        return;
    }
    let library = Oracle::build(RTX_1_7).unwrap().broken_library();
    let pair = Pair { plugins: library.clone(), runtime: library };
    let checks = Checks::build().unwrap();
    let run = checks.run(Subject::General, &pair, Age::New).unwrap();
    assert_clean(&run, "the good library above a driver");
    for (fault, check) in FAULTS_ABOVE_A_DRIVER {
        let run = checks.run_with(Subject::General, &pair, Age::New, &[("ORACLE_FAULT", fault)]).unwrap();
        let name = format!("everything_plugin: {check}: ");
        assert!(
            run.failures().iter().any(|failure| failure.starts_with(&name)),
            "`{check}` does not detect `{fault}`:\n{}",
            run.failures().join("\n")
        );
    }
}

#[test]
fn every_planted_fault_is_listed() {
    let sources = cxx::sources(&oracle::folder()).unwrap();
    let broken = sources.iter().filter(|(path, _)| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("broken"))
    });
    let text: String = broken.map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect();
    let planted: BTreeSet<&str> = text
        .split("fault(\"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(name, _)| name)
        .collect();
    let listed = FAULTS.iter().chain(FAULTS_ABOVE_A_DRIVER).map(|(fault, _)| *fault).collect();
    assert_eq!(planted, listed);
}

#[test]
fn the_reference_plugin_conforms() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in reference_plugin::CODE {
        std::fs::write(folder.path().join(name), "no machine code").unwrap();
    }
    let library = folder.path().join("libreference.so");
    reference_plugin::build(RTX_1_7, folder.path(), &library).unwrap();
    let run = Oracle::build(RTX_1_7).unwrap().check(&library, None).unwrap();
    assert_clean(&run, "the reference plugin");
    assert!(run.checks.iter().any(|check| check.name.starts_with("CircPadReference: ")));
}

#[test]
fn wrong_arguments_are_explained() {
    if !has_compiler() {
        return;
    }
    let oracle = Oracle::build(RTX_1_7).unwrap();
    for arguments in [vec![], vec!["--library"], vec!["--library", "a.so", "--case", "none"]] {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let run = oracle.run(&arguments, &[]).unwrap();
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(run.stderr.contains("error: ") && run.stderr.contains("usage: "), "{}", run.stderr);
    }
    let run = oracle.check(Path::new("/nowhere/lib.so"), None).unwrap();
    assert_eq!(run.code, Some(1));
    assert!(run.failures()[0].contains("/nowhere/lib.so"), "{:?}", run.failures());
}

#[test]
fn compiled_libraries_conform_with_every_release() {
    if !has_compiler() {
        return;
    }
    let Some(compiled) = Compiled::from_environment(PLUGINS).unwrap() else {
        return skip(
            "neither `CUBINDER_BIN` nor `CUBINDER_TEST_LIBRARIES` is set; `cargo xtask test` sets it",
        );
    };
    assert!(!compiled.libraries.is_empty(), "nothing was compiled");
    for generation in headers::generations().unwrap() {
        let oracle = Oracle::build(generation).unwrap();
        for pair in &compiled.libraries {
            let run = oracle.check(&pair.plugins, Some(&pair.runtime)).unwrap();
            assert_clean(&run, &format!("{} with {}", pair.plugins.display(), generation.name));
            assert_all_plugins(&run);
        }
    }
}

#[test]
fn compiled_libraries_queue_what_they_should() {
    if !has_compiler() {
        return;
    }
    let Some(compiled) = Compiled::by(PLUGINS).unwrap() else {
        return skip("`CUBINDER_BIN` or `CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets both");
    };
    let checks = Checks::build().unwrap();
    for pair in &compiled.libraries {
        for age in [Age::New, Age::Old] {
            let run = checks.run(Subject::General, pair, age).unwrap();
            assert_clean(&run, &format!("{} above a driver that is {age:?}", pair.plugins.display()));
            for plugin in ["everything_plugin", "layouts_plugin", "sequence_plugin"] {
                for check in [
                    "a builder that times, dynamic shapes",
                    "an operator of the C interface queues the steps of an engine",
                ] {
                    let name = format!("{plugin}: {check}");
                    assert!(run.checks.iter().any(|check| check.name == name), "`{name}` was not checked");
                }
            }
        }
    }
}

#[test]
fn every_changed_byte_and_every_truncation_of_a_small_plan_is_refused() {
    if !has_compiler() {
        return;
    }
    let Some(compiled) = Compiled::by(SMALL).unwrap() else {
        return skip("`CUBINDER_BIN` or `CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets both");
    };
    let oracle = Oracle::build(RTX_1_7).unwrap();
    for pair in &compiled.libraries {
        let mut arguments = vec![OsString::from("--library"), pair.plugins.clone().into()];
        arguments.extend(["--runtime-library".into(), pair.runtime.clone().into()]);
        arguments.extend(["--damage", "all", "--case", "sequence"].map(OsString::from));
        let run = oracle.run(&arguments, &[]).unwrap();
        assert_clean(&run, &pair.plugins.display().to_string());
        for check in ["a changed byte is rejected", "a shortened field is rejected"] {
            assert!(
                run.checks.iter().any(|done| done.name == format!("sequence_plugin: {check}")),
                "{}",
                run.totals
            );
        }
    }
}

#[track_caller]
fn assert_all_plugins(run: &Run) {
    for plugin in [
        "circ_pad_plugin",
        "elemwise_add_plugin",
        "elemwise_add_plugin_",
        "non_zero_plugin",
        "everything_plugin",
        "layouts_plugin",
        "sequence_plugin",
    ] {
        let name = format!("{plugin}: has a creator");
        assert!(run.checks.iter().any(|check| check.name == name), "`{plugin}` was not checked");
    }
}

#[test]
fn the_generic_library_conforms_alone() {
    let Some(library) = std::env::var_os("CUBINDER_RUNTIME_LIBRARY").map(PathBuf::from) else {
        return skip("`CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets it");
    };
    if !has_compiler() {
        return;
    }
    for generation in headers::generations().unwrap() {
        let run = Oracle::build(generation).unwrap().check(&library, None).unwrap();
        assert_clean(&run, generation.name);
    }
}
