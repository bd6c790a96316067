//! GPU cases fit the libraries of all routes; how `kernel_tests.py` judges reports. Needs `CUBINDER_BIN` with NVRTC,
//! and `CUBINDER_TEST_PYTHON`.

use std::path::{Path, PathBuf};
use std::process::Command;

use cubinder_skip::skip;
use cubinder_tests::native_cases;
use serde_json::{Value, json};

fn variable(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).map(PathBuf::from);
    if found.is_none() {
        skip(&format!("`{name}` is not set; `cargo xtask test` sets it"));
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[track_caller]
fn succeed(command: &mut Command) {
    let done = command.output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
}

const MANIFESTS: [&str; 5] = [
    "tests/data/run/attributes.toml",
    "tests/data/run/tiles.toml",
    "tests/data/run/pack.toml",
    "manifests/cubinder/multiscale_deformable_attention.toml",
    "tests/data/ok/native_code.toml",
];

#[test]
fn cases_of_the_native_route_fit_the_libraries_of_all_routes() {
    let (Some(compiler), Some(runtime)) = (variable("CUBINDER_BIN"), variable("CUBINDER_RUNTIME_LIBRARY"))
    else {
        return;
    };
    for manifest in MANIFESTS {
        let folder = tempfile::tempdir().unwrap();
        let routes = [("native", "sm_80"), ("plugin", "compute_80")];
        for (route, target) in routes {
            let mut command = Command::new(&compiler);
            command.current_dir(root()).args(["compile", manifest, "-q", "--name", route, "--route", route]);
            command.args(["--target", target, "--out-dir"]).arg(folder.path());
            succeed(command.arg("--runtime-library").arg(&runtime));
        }
        let library = |route: &str| folder.path().join(format!("lib{route}.so"));
        let cases = folder.path().join("cases.toml");
        let count = native_cases::write(&library("native"), Path::new(manifest), &cases).unwrap();
        assert!(count > native_cases::NODES as usize / 2, "{manifest}: {count} cases");
        let again = folder.path().join("again.toml");
        native_cases::write(&library("native"), Path::new(manifest), &again).unwrap();
        assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&cases).unwrap(), "{manifest}");
        for (route, _) in routes {
            let mut command = Command::new(&compiler);
            succeed(command.args(["eval", "--cases"]).arg(&cases).arg("--on").arg(library(route)));
        }
        if manifest.contains("multiscale") {
            let text = std::fs::read_to_string(&cases).unwrap();
            assert!(text.contains("[inputs.starts]\nrange = [0, 30]"), "{text}");
        }
    }
}

fn report(runs: &[(&str, i32, &[u8], &[&str])]) -> Value {
    let case = |(name, id, bytes, kinds): &(&str, i32, &[u8], &[&str])| {
        let digests = [cubinder_model::Digest::compute(bytes).to_string()];
        let digests = if kinds.contains(&"crash") { &[][..] } else { &digests[..] };
        let faults: Vec<Value> = kinds.iter().map(|kind| json!({"kind": kind})).collect();
        let variant = json!({"id": id, "digests": digests, "faults": faults});
        json!({"name": name, "refused": null, "differs": [], "variants": [variant]})
    };
    let cases: Vec<Value> = runs.iter().map(case).collect();
    json!({"result": "failed", "errors": [], "cases": cases})
}

fn judged(python: &Path, native: &Value, ptx: &Value, code: &Value) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let run = json!({
        "name": "routes of one", "what": "the same bytes", "command": "routes", "arguments": ["cases.toml"],
        "libraries": {"native": "native.so", "ptx": "ptx.so", "code": "code.so"},
    });
    let other = json!({"name": "another", "what": "", "command": "test", "arguments": []});
    std::fs::write(folder.path().join("runs.json"), json!([other, run]).to_string()).unwrap();
    for (route, report) in [("native", native), ("ptx", ptx), ("code", code)] {
        std::fs::write(folder.path().join(format!("{route}.so.json")), format!("{report}\n")).unwrap();
    }
    let program = "#!/bin/sh\n[ \"$*\" = \"test cases.toml --on $4 --json\" ] && exec cat \"$4.json\"\n";
    std::fs::write(folder.path().join("cubinder"), program).unwrap();
    let mut command = Command::new(python);
    command.arg("-B").arg(root().join("xtask/python/kernel_tests.py")).arg(folder.path());
    let done = command.args(["--only", "routes"]).output().unwrap();
    (done.status.success(), String::from_utf8([done.stdout, done.stderr].concat()).unwrap())
}

#[test]
fn routes_are_judged_by_the_bytes_of_each_variant() {
    let Some(python) = variable("CUBINDER_TEST_PYTHON") else { return };
    let judged = |native: &Value, ptx: &Value, code: &Value| judged(&python, native, ptx, code);
    let native = report(&[("a", 3, b"one", &[]), ("b", 3, b"two", &["unwritten"]), ("c", 3, b"", &[])]);
    let more = [("a", 1, &b"other"[..], &["wrong"][..]), ("a", 3, b"one", &["wrong"])];
    let rest = [("b", 3, &b"two"[..], &["unwritten"][..]), ("c", 3, b"", &[])];
    let alike = report(&[more, rest].concat());
    let (is_right, said) = judged(&native, &alike, &native);
    assert!(is_right, "{said}");
    let counted = "2 nodes, 2 runs of variants: 2 equal, 0 different; 1 runs without output bytes";
    assert!(said.contains(counted) && said.ends_with("1 passed, 0 failed\n"), "{said}");

    let b = [("b", 3, &b"two"[..], &["unwritten"][..]), ("c", 3, b"", &[])];
    let with = |first: (&'static str, i32, &'static [u8], &'static [&'static str])| {
        report(&[&[first][..], &b[..]].concat())
    };
    let wrong = [
        (with(("a", 3, b"two", &[])), "code: a, variant 3: other bytes"),
        (with(("a", 1, b"one", &[])), "code: a, variant 3: did not run"),
        (with(("a", 3, b"", &["crash"])), "code: a, variant 3: no result"),
        (report(&[("a", 3, b"one", &[]), ("b", 3, b"two", &[]), ("c", 3, b"", &[])]), "faults: unwritten"),
        (json!({"result": "no_gpu", "why": "no driver", "allowed": false}), "code: no_gpu: no driver"),
        (json!("nothing"), "code: no report"),
    ];
    for (code, expected) in wrong {
        let (is_right, said) = judged(&native, &alike, &code);
        assert!(!is_right && said.contains(expected), "{expected}: {said}");
    }
    let (is_right, said) = judged(&with(("a", 3, b"", &["crash"])), &alike, &alike);
    assert!(!is_right && said.contains("native: a, variant 3: "), "{said}");
    let empty = report(&[("c", 3, b"", &[])]);
    let (is_right, said) = judged(&empty, &empty, &empty);
    assert!(!is_right && said.contains("no bytes were compared"), "{said}");
}
