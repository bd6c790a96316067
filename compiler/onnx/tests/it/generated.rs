//! Checks that messages and operators equal those of the pinned `onnx` package. `CUBINDER_UPDATE_ONNX=1`
//! rewrites both.

use cubinder_skip::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

fn variable(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).map(PathBuf::from);
    if found.is_none() {
        skip(&format!("`{name}` is not set; `cargo xtask test` does it"));
    }
    found
}

fn compare(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated").join(file);
    if std::env::var_os("CUBINDER_UPDATE_ONNX").is_some_and(|value| value == "1") {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "compiler/onnx/src/generated/{file} is not what the `onnx` package gives: CUBINDER_UPDATE_ONNX=1 writes it anew"
    );
}

#[test]
fn messages_are_those_of_the_onnx_package() {
    let Some(paths) = variable("CUBINDER_TEST_PYTHONPATH") else { return };
    let folder = std::env::split_paths(&paths).find(|path| path.join("onnx/onnx.proto").is_file());
    let folder = folder.expect("the onnx package is on the path");
    let files = protox::compile(["onnx/onnx.proto"], [&folder]).unwrap();
    let made = tempfile::tempdir().unwrap();
    let mut config = prost_build::Config::new();
    // `onnx.proto`'s comments are not copied.
    config.out_dir(made.path()).disable_comments(["."]).compile_fds(files).unwrap();
    compare("onnx.rs", &std::fs::read_to_string(made.path().join("onnx.rs")).unwrap());
}

const OPERATORS: &str = "
import onnx.defs
first = {}
for schema in onnx.defs.get_all_schemas_with_history():
    key = (schema.domain, schema.name)
    first[key] = min(first.get(key, schema.since_version), schema.since_version)
for (domain, name), version in sorted(first.items()):
    print(domain or 'ai.onnx', name, version)
";

#[test]
fn operators_are_those_of_the_onnx_package() {
    let (Some(python), Some(paths)) =
        (variable("CUBINDER_TEST_PYTHON"), variable("CUBINDER_TEST_PYTHONPATH"))
    else {
        return;
    };
    let mut command = Command::new(python);
    command.args(["-c", OPERATORS]).env("PYTHONPATH", paths).env("PYTHONDONTWRITEBYTECODE", "1");
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    compare("operators.txt", &String::from_utf8(done.stdout).unwrap());
}
