//! `--depfile` lists exactly the files that affect the output.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{self, Project};

fn inputs(depfile: &str) -> BTreeSet<PathBuf> {
    let (_, rest) = depfile.split_once(": \\\n").unwrap();
    let (list, _) = rest.split_once("\n\n").unwrap();
    list.split(" \\\n").map(|line| PathBuf::from(line.trim())).collect()
}

fn relative(inputs: &BTreeSet<PathBuf>) -> Vec<&str> {
    inputs.iter().filter(|path| path.is_relative()).map(|path| path.to_str().unwrap()).collect()
}

#[test]
fn every_file_that_decides_is_named() {
    let Some(project) = Project::new() else { return };
    project.write("kernels/near.cuh", "#include \"deep/er.cuh\"\n#include <cuda_fp16.h>\n");
    project.write("kernels/deep/er.cuh", "#pragma once\n");
    project.write("kernels/never.cuh", "#pragma once\n");
    project.write("include/far.cuh", "#pragma once\n");
    project.write("manifests/taps.bin", [0, 0, 128, 63]);
    project.edit("kernels/scale.cu", "template", "#include \"near.cuh\"\n#include <far.cuh>\ntemplate");
    project.edit(
        "manifests/scale.toml",
        "[types]",
        "[tables.taps]\ntype = \"f32\"\nfile = \"taps.bin\"\n\n[types]",
    );
    project.edit("kernels/scale.cu", "* factor", "* factor * manifest::taps[0]");
    project.edit("cubinder.toml", "targets", "include = [\"include\"]\ntargets");
    project.compile(&["--embed", "--depfile", "build/deep/scale.d"]);
    let text = String::from_utf8(project.read("build/deep/scale.d")).unwrap();
    assert!(text.starts_with("build/libscale.so build/libscale-code.so: \\\n"), "{text}");
    let found = inputs(&text);
    assert_eq!(
        relative(&found),
        [
            "cubinder.toml",
            "include/far.cuh",
            "kernels/deep/er.cuh",
            "kernels/near.cuh",
            "kernels/scale.cu",
            "manifests/scale.toml",
            "manifests/taps.bin"
        ]
    );
    let absolute: Vec<_> = found.iter().filter(|path| path.is_absolute()).collect();
    assert_eq!(absolute.len(), 2, "NVRTC and the runtime library: {absolute:?}");
    assert!(found.iter().all(|path| text.contains(&format!("\n{}:\n", path.display()))), "{text}");
    project.compile(&["--embed", "--depfile", "again.d"]);
    assert!(project.read("again.d") == text.as_bytes());
}

#[test]
fn whatever_file_a_manifest_can_name_is_named() {
    let Some(project) = Project::new() else { return };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/ok").canonicalize().unwrap();
    let mut named = 0;
    for manifest in ["every_key.toml", "literals.toml", "minimal.toml", "tables.toml"] {
        let manifest = data.join(manifest);
        let text = fs::read_to_string(&manifest).unwrap();
        let files: Vec<PathBuf> = text
            .split('"')
            .filter(|word| !word.is_empty() && !word.contains('\n'))
            .map(|word| data.join(word))
            .filter(|path| path.is_file())
            .collect();
        named += files.len();
        let run =
            project.run(&["compile", "--target", "sm_90", "--depfile", "d", manifest.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let found = inputs(&String::from_utf8(project.read("d")).unwrap());
        let found: BTreeSet<PathBuf> = found.iter().filter_map(|path| path.canonicalize().ok()).collect();
        for file in files.iter().chain([&manifest]) {
            assert!(found.contains(&file.canonicalize().unwrap()), "{} is not in {found:?}", file.display());
        }
    }
    assert!(named >= 4, "{named} files are named by manifests");
}

#[test]
fn what_only_the_preprocessor_can_tell_is_said() {
    let Some(project) = Project::new() else { return };
    project.write("kernels/near.cuh", "#pragma once\n");
    project.edit("kernels/scale.cu", "template", "#define NAME \"near.cuh\"\n#include NAME\ntemplate");
    assert_eq!(project.run(&["compile"]).stderr, "", "the run works without a depfile");
    let run = project.run(&["compile", "--depfile", "d"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    insta::assert_snapshot!(run.stderr);
    assert!(project.path("d").is_file());
}

#[test]
fn a_depfile_takes_no_other_files_place() {
    let Some(project) = Project::new() else { return };
    let mut text = String::new();
    for name in ["manifests/../manifests/scale.toml", "build/libscale.so", "cubinder.toml/d"] {
        let run = project.run(&["compile", "--depfile", name]);
        run.assert_refused(name);
        text.push_str(&run.stderr);
    }
    insta::assert_snapshot!(text);
    assert!(project.read("manifests/scale.toml") == support::MANIFEST.as_bytes());
}

#[test]
fn a_depfile_replaces_no_read_only_file() {
    let Some(project) = Project::new() else { return };
    project.write("scale.d", "mine");
    fs::set_permissions(project.path("scale.d"), fs::Permissions::from_mode(0o444)).unwrap();
    let refused = project.run(&["compile", "--depfile", "scale.d"]);
    refused.assert_refused("a depfile that is read-only");
    assert!(
        refused.stderr.starts_with("error: cannot write `scale.d`: it is read-only"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("help: make it writable with `chmod u+w scale.d`"), "{}", refused.stderr);
    assert_eq!(project.read("scale.d"), b"mine");
    assert!(!project.path("build").exists());
}

#[test]
fn what_fails_writes_none() {
    let Some(project) = Project::new() else { return };
    project.edit("kernels/scale.cu", "y[index]", "z[index]");
    project.run(&["compile", "--depfile", "d"]).assert_refused("a kernel that does not compile");
    assert!(!project.path("d").exists());
}
