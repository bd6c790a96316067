use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Run, run_copy};
use serde_json::Value;

fn installed(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("bin")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_cubinder"), root.join("bin/cubinder")).unwrap();
    for file in files {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), "").unwrap();
    }
    (folder, root)
}

fn paths(root: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(root.join("bin/cubinder"));
    command.arg("paths").args(arguments).env_clear().env("HOME", root.join("home"));
    run_copy(&mut command)
}

#[test]
fn everything_is_found_from_the_place_of_the_program() {
    let packages = "lib/python3.11/site-packages";
    let files =
        ["cubinder/__init__.py", "nvidia/cu13/lib/libnvrtc.so.13"].map(|file| format!("{packages}/{file}"));
    let (_folder, root) = installed(&[
        "lib/libcubinder.so",
        "lib/cmake/cubinder/cubinder-config.cmake",
        "share/cubinder/manifests/circ_pad_plugin.toml",
        "share/doc/cubinder/manifest.md",
        &files[0],
        &files[1],
    ]);
    let said = paths(&root, &[]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("installed", said.stdout.replace(root.to_str().unwrap(), "[ROOT]"));
    let object: Value = serde_json::from_str(&paths(&root, &["--json"]).stdout).unwrap();
    assert_eq!(object["runtime_library"], root.join("lib/libcubinder.so").to_str().unwrap());
    assert_eq!(object["plugins"], root.join("share/cubinder/manifests").to_str().unwrap());
    assert_eq!(object["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(object["include"], Value::Null);
    let missing: Vec<&String> = object["missing"].as_object().unwrap().keys().collect();
    assert_eq!(missing, ["include"]);
    let one = paths(&root, &["runtime-library"]);
    assert_eq!(one.stdout, format!("{}\n", root.join("lib/libcubinder.so").display()));
    let link = root.join("link");
    std::os::unix::fs::symlink(root.join("bin/cubinder"), &link).unwrap();
    let through = Command::new(link).args(["paths", "cmake"]).output().unwrap();
    assert_eq!(
        String::from_utf8(through.stdout).unwrap(),
        format!("{}\n", root.join("lib/cmake/cubinder").display())
    );
}

#[test]
fn what_is_not_there_is_said() {
    let (_folder, root) = installed(&[]);
    let mut text = String::new();
    for name in ["runtime-library", "cmake", "documentation", "nvrtc"] {
        let said = paths(&root, &[name]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
        text.push_str(&said.stderr);
        text.push('\n');
    }
    insta::assert_snapshot!("missing", text.replace(root.to_str().unwrap(), "[ROOT]"));
}
