use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cubinder_model::container::{self, Container};

use crate::support::{Project, Run};

/// Code objects by target, and the bundle.
fn contents(project: &Project) -> (BTreeMap<String, Vec<Vec<u8>>>, Vec<u8>) {
    let library = project.read("build/libscale.so");
    let (start, found) = container::scan(&library).next().expect("a bundle");
    let found = found.unwrap();
    let Container::Bundle(bundle) = found.container else { panic!("no bundle") };
    let mut code: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for object in &bundle.code {
        code.entry(object.target.to_string()).or_default().push(object.raw().unwrap().into_owned());
    }
    code.values_mut().for_each(|objects| objects.sort());
    (code, library[start..start + found.length].to_vec())
}

fn files(project: &Project, folder: &str) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut found: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for entry in fs::read_dir(project.path(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let [plugin, target, digest, _] = name.split('.').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((plugin, digest.len()), ("scale_plugin", 8), "{name}");
        found.entry(target.to_owned()).or_default().push(fs::read(path).unwrap());
    }
    found.values_mut().for_each(|objects| objects.sort());
    found
}

#[test]
fn the_code_of_a_library_and_an_engine_is_written_unchanged() {
    let Some(project) = Project::new() else { return };
    project.compile(&["--target", "sm_80,sm_90,compute_80"]);
    let (code, bundle) = contents(&project);
    assert_eq!(code.keys().collect::<Vec<_>>(), ["compute_80", "sm_80", "sm_90"]);
    project.write("model.plan", [b"ptrt".as_slice(), &bundle, b"more", &bundle, &[0; 9]].concat());
    for (file, folder) in [("build/libscale.so", "library"), ("model.plan", "engine")] {
        for form in ["cubin", "ptx"] {
            project.run(&["extract", file, "--as", form, "--out-dir", folder]).assert_ok();
        }
        assert!(files(&project, folder) == code, "{file}");
    }
    project
        .run(&["extract", "build/libscale.so", "--as", "cubin", "--target", "sm_90", "--out-dir", "some"])
        .assert_ok();
    assert!(files(&project, "some") == BTreeMap::from([("sm_90".to_owned(), code["sm_90"].clone())]));
    let printed = project.run(&["extract", "model.plan", "--as", "ptx", "--plugin", "scale_plugin"]);
    printed.assert_ok();
    let text = String::from_utf8(code["compute_80"][0].clone()).unwrap();
    assert!(printed.stdout.starts_with("// scale_plugin.compute_80.") && printed.stdout.contains(&text));
}

#[test]
fn names_in_untrusted_files_are_no_paths() {
    let Some(project) = Project::new() else { return };
    project.compile(&["--target", "compute_80"]);
    let (_, bundle) = contents(&project);
    let Container::Bundle(mut bundle) = container::read(&bundle).unwrap().container else {
        panic!("no bundle")
    };
    for name in ["../../escaped", "/escaped", "\u{1b}[2J"] {
        bundle.plugins[0].name = name.to_owned();
        project.write("bad.bundle", container::write_bundle(&bundle));
        project.run(&["extract", "bad.bundle", "--as", "ptx", "--out-dir", "a/b/out"]).assert_ok();
        for entry in fs::read_dir(project.path("a/b/out")).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            assert!(file.starts_with("code.compute_80."), "{file}");
        }
        let printed = project.run(&["extract", "bad.bundle", "--as", "ptx"]);
        assert!(printed.stdout.starts_with("// code.compute_80."), "{}", printed.stdout);
    }
    assert!(!project.path("a/escaped").exists());
}

#[test]
fn one_code_object_is_written_to_a_named_file() {
    let Some(project) = Project::new() else { return };
    project.edit("manifests/scale.toml", "T = [\"f32\", \"f16\"]", "T = [\"f32\"]");
    project.compile(&["--target", "sm_90,compute_80"]);
    let (code, _) = contents(&project);
    project.run(&["extract", "build/libscale.so", "--as", "cubin", "-o", "out/scale.cubin"]).assert_ok();
    assert!(project.read("out/scale.cubin") == code["sm_90"][0]);
    project.run(&["extract", "out/scale.cubin", "--as", "cubin", "-o", "again.cubin"]).assert_ok();
    assert!(project.read("again.cubin") == code["sm_90"][0]);
    project
        .run(&["extract", "again.cubin", "--as", "cubin", "-o", "again.cubin"])
        .assert_refused("the input");
    let missing = project.run(&["extract", "build/libscale.so", "--as", "cubin"]);
    assert!(missing.stderr.contains("missing `--output` or `--out-dir`"), "{}", missing.stderr);
}

#[test]
fn what_cannot_be_extracted_is_refused_by_name() {
    let Some(project) = Project::new() else { return };
    project.compile(&["--target", "sm_80,sm_90"]);
    project.write("text.ptx", "no code");
    let mut text = String::new();
    for arguments in [
        &["build/libscale.so", "--as", "ptx"][..],
        &["build/libscale.so", "--as", "cubin", "--target", "sm_89,sm_86", "--out-dir", "out"],
        &["build/libscale.so", "--as", "sass", "--plugin", "other"],
        &["build/libscale.so", "--as", "cubin", "-o", "one.cubin"],
        &["text.ptx", "--as", "ptx"],
    ] {
        let run = project.run(&[&["extract"], arguments].concat());
        run.assert_refused(&arguments.join(" "));
        text.push_str(&format!("$ cubinder extract {}\n{}\n", arguments.join(" "), run.stderr));
    }
    // Digests depend on the release of NVRTC.
    let words = text.split_inclusive(['.', ' ', '\n']);
    let is_digest = |word: &str| word.len() == 9 && word[..8].bytes().all(|byte| byte.is_ascii_hexdigit());
    let text: String = words.map(|word| if is_digest(word) { "[DIGEST]." } else { word }).collect();
    insta::assert_snapshot!(project.plain(&text));
    assert!(!project.path("one.cubin").exists() && !project.path("out").exists());
}

#[test]
fn machine_code_is_disassembled_by_nvdisasm() {
    let Some(project) = Project::new() else { return };
    project.compile(&["--target", "sm_90"]);
    let (code, _) = contents(&project);
    let sass = |script: Option<&str>| {
        if let Some(script) = script {
            project.write("cuda/bin/nvdisasm", format!("#!/bin/sh\n{script}\n"));
            let program = project.path("cuda/bin/nvdisasm");
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = project.command(&["extract", "build/libscale.so", "--as", "sass"]);
        let command = command.env("CUDA_HOME", project.path("cuda")).env("PATH", "/nowhere");
        Run::of(command.output().unwrap())
    };
    let missing = sass(None);
    missing.assert_refused("no nvdisasm");
    insta::assert_snapshot!("nvdisasm_missing", missing.stderr);
    let done = sass(Some("[ \"$1\" = --print-code ] && /usr/bin/wc -c < \"$2\""));
    done.assert_ok();
    let sizes = done.stdout.lines().filter_map(|line| line.trim().parse::<usize>().ok());
    let (mut sizes, mut expected) =
        (sizes.collect::<Vec<_>>(), code["sm_90"].iter().map(Vec::len).collect::<Vec<_>>());
    sizes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sizes, expected, "{}", done.stdout);
    let failed = sass(Some("echo 'nvdisasm fatal: unsupported' >&2; exit 3"));
    failed.assert_refused("a failing nvdisasm");
    assert!(failed.stderr.contains("note: nvdisasm fatal: unsupported"), "{}", failed.stderr);
}
