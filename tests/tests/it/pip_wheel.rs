//! TensorRT-RTX from pip: the error without the library link that its wheel lacks, and the fix.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::load;
use cubinder_skip::skip;
use cubinder_tests::application::Application;
use serde_json::json;

const LINK: &str = "libtensorrt_rtx.so";

fn documented_command() -> String {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/troubleshooting.md")).unwrap();
    let section = page.split("\n## TensorRT-RTX from pip aborts\n").nth(1).unwrap();
    let block = section.split("```sh elsewhere\n").nth(1).unwrap();
    block.split("```").next().unwrap().trim().to_owned()
}

pub(crate) fn install(folder: &Path, libraries: &Path) -> PathBuf {
    let packages = folder.join("site-packages");
    let package = packages.join("tensorrt_rtx_libs");
    fs::create_dir_all(&package).unwrap();
    for entry in fs::read_dir(libraries).unwrap().map(Result::unwrap) {
        if entry.file_name() != LINK && entry.path().is_file() {
            symlink(entry.path(), package.join(entry.file_name())).unwrap();
        }
    }
    packages
}

#[test]
fn the_documented_command_keeps_the_parser_from_aborting() {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(compiler), Some(libraries), Some(application)) =
        (variable("CUBINDER_BIN"), variable("CUBINDER_TENSORRT_LIBS"), Application::from_environment())
    else {
        skip("`CUBINDER_BIN` or `CUBINDER_TENSORRT_LIBS` is not set; `cargo xtask test` sets it");
        return;
    };
    if !libraries.join("__init__.py").is_file() {
        skip("TensorRT-RTX's libraries are not from its wheel");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let packages = install(folder.path(), &libraries);
    let application = application.with_packages(&packages, &libraries).unwrap();
    let mut compile = Command::new(compiler);
    compile.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    compile.args([
        "compile",
        "tests/data/run/circ_pad_plugin.toml",
        "--target",
        "sm_89",
        "--quiet",
        "--out-dir",
    ]);
    let compiled = compile.arg(folder.path()).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let model = folder.path().join("model.onnx");
    let nodes = json!([["circ_pad_plugin", "pad", {"pads": [1, 1]}]]);
    let steps = [
        load(&folder.path().join("libcirc_pad_plugin.so")),
        json!({"do": "model", "path": model, "nodes": nodes, "shape": [4, 4]}),
        json!({"do": "parse", "onnx": model}),
    ];

    let aborted = application.run(&steps).unwrap_err().to_string();
    assert!(
        aborted.contains("SIGABRT") && aborted.contains("terminate called without an active exception"),
        "{aborted}"
    );

    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let python = application.python_command();
    let mut script = "#!/bin/sh\n".to_owned();
    for (name, value) in python.get_envs() {
        let value = value.unwrap_or_default().to_string_lossy();
        script.push_str(&format!("export {}='{value}'\n", name.to_string_lossy()));
    }
    script.push_str(&format!("exec '{}' \"$@\"\n", Path::new(python.get_program()).display()));
    fs::write(bin.join("python"), script).unwrap();
    fs::set_permissions(bin.join("python"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    for _ in 0..2 {
        let done =
            Command::new("sh").args(["-ec", &documented_command()]).env("PATH", &path).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert!(packages.join("tensorrt_rtx_libs").join(LINK).is_file());
    let answers = application.run(&steps).unwrap();
    assert!(answers[2].is_ok(), "{:?}", answers[2].log);
}

#[test]
fn the_readme_leads_to_the_command() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    assert!(readme.contains("docs/troubleshooting.md#tensorrt-rtx-from-pip-aborts"));
    assert!(readme.contains("terminate called without an active exception"));
    let quickstart =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/quickstart.md")).unwrap();
    assert!(quickstart.contains("troubleshooting.md#tensorrt-rtx-from-pip-aborts"));
    assert!(quickstart.contains("cubinder build ") && !quickstart.contains(".parse"));
}
