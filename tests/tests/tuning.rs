//! `cubinder tune`, above a stand-in for NVIDIA's driver, whose clock says how long each kernel takes.
//!
//! What the command needs is as in `testing.rs`.

#![allow(clippy::expect_used, clippy::panic)]

mod command;

use command::{Run, command, finish};
use serde_json::{Value, json};

/// What the kernels of `tests/data/testing/planted.cu` take, nanoseconds: the vectors are slower.
const TIMES: &str = "plantedILi4E=3000,plantedILi1E=2000";

const CASES: [&str; 2] = ["tune", "tests/data/testing/tuned.toml"];

fn tune(arguments: &[&str], environment: &[(&str, &str)]) -> Option<Run> {
    let mut command = command(&[&CASES, arguments].concat())?;
    Some(finish(command.env("FAKE_TIMES", TIMES).envs(environment.iter().copied())))
}

fn cases(report: &Value) -> Vec<Value> {
    report["cases"].as_array().cloned().expect("cases")
}

#[test]
fn variants_are_ranked_by_the_clock_of_the_device() {
    let Some(shown) = tune(&[], &[]) else { return };
    shown.assert_code(0);
    insta::assert_snapshot!(shown.stdout);
    let run = tune(&["--json"], &[("FAKE_GPU_BYTES", "1000000000")]).expect("as before");
    run.assert_code(0);
    let report = run.report();
    let device = json!({"name": "Stand-In 4090", "capability": "8.9", "sms": 128, "driver": 13000});
    assert_eq!((&report["result"], &report["device"]), (&json!("tuned"), &device));
    // 256 MiB at 2 bytes a picosecond, and half a microsecond for each copy.
    assert_eq!(report["copy_gigabytes_per_second"], 999.1);
    let case = cases(&report).remove(0);
    assert_eq!(case["plugin"], "test::planted");
    assert_eq!((&case["shapes"], &case["attributes"]), (&json!({"x": [1000]}), &json!({"fault": 0})));
    assert_eq!((&case["bytes"], &case["automatic"]), (&json!(8000), &json!(1)));
    let variants = case["variants"].as_array().expect("variants");
    let times: Vec<(&Value, &Value)> =
        variants.iter().map(|timed| (&timed["variant"], &timed["microseconds"])).collect();
    assert_eq!(times, [(&json!(1), &json!(3.0)), (&json!(2), &json!(2.0))]);
    assert_eq!((&variants[0]["least"], &variants[0]["most"]), (&json!(3.0), &json!(3.0)));
}

/// Fills are a part of a run, and sizes that only kernels know are as large as they may be.
#[test]
fn everything_that_a_variant_does_counts() {
    let Some(mut sized) = command(&["tune", "tests/data/testing/tuned_positive.toml", "--json"]) else {
        return;
    };
    let sized = finish(sized.env("FAKE_TIMES", "positive=5000"));
    sized.assert_code(0);
    let case = cases(&sized.report()).remove(0);
    // Half a microsecond for the fill.
    assert_eq!((&case["variants"][0]["microseconds"], &case["bytes"]), (&json!(5.5), &json!(2004)));
}

#[test]
fn a_variant_that_cannot_be_measured_is_named() {
    for (fault, why) in
        [("6", "variant 1: "), ("9", "variant 1: the process that measures ended"), ("14", "variant 1: ")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cases.toml");
        let manifest = command::root().join("tests/data/testing/planted.toml");
        let text = format!(
            "manifest = {manifest:?}\n[[cases]]\nname = \"one\"\nshapes = {{ x = [64] }}\nattributes = {{ fault = {fault} }}\n\
             [[cases]]\nname = \"another\"\nshapes = {{ x = [64] }}\n"
        );
        std::fs::write(&path, text).expect("written");
        let arguments = ["tune", path.to_str().expect("UTF-8"), "--timeout", "10"];
        let Some(mut failed) = command(&arguments) else { return };
        let failed = finish(&mut failed);
        failed.assert_code(1);
        let expected = format!("the case `one` cannot be measured: {why}");
        assert!(failed.stderr.contains(&expected), "{fault}: {}", failed.stderr);
    }
}

#[test]
fn what_cannot_be_measured_is_told_before_anything_is() {
    let Some(no_such) = tune(&["--case", "nowhere"], &[]) else { return };
    no_such.assert_code(1);
    assert!(no_such.stderr.contains("no case whose name contains `nowhere`"), "{}", no_such.stderr);
    let mut plain = command(&["tune", "tests/data/testing/planted.toml"]).expect("as before");
    let plain = finish(&mut plain);
    plain.assert_code(1);
    assert!(plain.stderr.contains("nothing says with which shapes to measure"), "{}", plain.stderr);
    // Mistakes in cases are told where there is no GPU too.
    let mut mistaken = command(&["tune", "tests/data/testing/mistaken.toml"]).expect("as before");
    let mistaken = finish(mistaken.env("FAKE_INIT", "100"));
    mistaken.assert_code(1);
    let none = tune(&[], &[("FAKE_INIT", "100")]).expect("as before");
    none.assert_code(3);
    assert!(none.stderr.contains("there is no GPU to measure on"), "{}", none.stderr);
    let none = tune(&["--json"], &[("FAKE_INIT", "100")]).expect("as before");
    none.assert_code(3);
    assert_eq!(none.report()["result"], "no_gpu");
}
