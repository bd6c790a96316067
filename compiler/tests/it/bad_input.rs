//! Unreadable input: exit code 1, never a panic or a signal.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{CONFIG, KERNEL, MANIFEST, Project, Run};
use cubinder_model::container;

fn garbage(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

enum Instead {
    Bytes(Vec<u8>),
    Folder,
    Missing,
    Sparse(u64),
}

fn bad_files(good: &[u8]) -> Vec<(String, Instead)> {
    let mut flipped = good.to_vec();
    flipped[good.len() / 3] ^= 0x80;
    let mut files = vec![
        ("empty".to_owned(), Instead::Bytes(Vec::new())),
        ("garbage".to_owned(), Instead::Bytes(garbage(4096))),
        ("good, then garbage".to_owned(), Instead::Bytes([good, &garbage(64)].concat())),
        ("zeros".to_owned(), Instead::Bytes(vec![0; 4096])),
        ("one byte flipped".to_owned(), Instead::Bytes(flipped)),
        ("a folder".to_owned(), Instead::Folder),
        ("not there".to_owned(), Instead::Missing),
        ("huge".to_owned(), Instead::Sparse(1 << 40)),
    ];
    for part in [1, 2, 3] {
        let length = good.len() * part / 4;
        files.push((format!("cut at {length}"), Instead::Bytes(good[..length].to_vec())));
    }
    files
}

impl Instead {
    fn put(&self, path: &Path) {
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else if path.exists() {
            fs::remove_file(path).unwrap();
        }
        match self {
            Instead::Bytes(bytes) => fs::write(path, bytes).unwrap(),
            Instead::Folder => fs::create_dir(path).unwrap(),
            Instead::Missing => {}
            Instead::Sparse(length) => fs::File::create(path).unwrap().set_len(*length).unwrap(),
        }
    }
}

fn run_within_bounds(project: &Project, arguments: &[&str]) -> Run {
    let program = project.command(arguments);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -v 2097152; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    shell.current_dir(program.get_current_dir().unwrap());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.process_group(0);
    Run::of(shell.output().unwrap())
}

/// `flipped` and `then garbage` may stay valid.
#[test]
fn compile_refuses_what_it_cannot_read() {
    let Some(project) = Project::new() else { return };
    project.compile(&["--out-dir", "good"]);
    let runtime = fs::read(std::env::var_os("CUBINDER_RUNTIME_LIBRARY").unwrap()).unwrap();
    let inputs: [(&str, Vec<u8>, &[&str]); 4] = [
        ("cubinder.toml", CONFIG.into(), &[]),
        ("manifests/scale.toml", MANIFEST.into(), &[]),
        ("kernels/scale.cu", KERNEL.into(), &[]),
        ("libruntime.so", runtime, &["--runtime-library", "libruntime.so"]),
    ];
    for (name, good, arguments) in inputs {
        for (what, instead) in bad_files(&good) {
            instead.put(&project.path(name));
            let run = run_within_bounds(&project, &[&["compile"], arguments].concat());
            let what = format!("{name}: {what}");
            if name == "libruntime.so" && run.code == Some(0) {
                assert!(what.ends_with("garbage") || what.ends_with("flipped"), "{what}: {}", run.stdout);
            } else {
                run.assert_refused(&what);
                let limited = what.ends_with(": huge") && name != "libruntime.so";
                assert!(!limited || run.stderr.contains("exceeds 64 MiB"), "{what}: {}", run.stderr);
            }
        }
        Instead::Bytes(good).put(&project.path(name));
    }
    project.compile(&["--out-dir", "again"]);
    assert!(project.read("good/libscale.so") == project.read("again/libscale.so"));
}

#[test]
fn devices_are_refused() {
    let project = Project::without_tools();
    let said = |arguments: &[&str]| {
        let run = run_within_bounds(&project, arguments);
        run.assert_refused(&format!("{arguments:?}"));
        run.stderr
    };
    assert!(
        said(&["inspect", "/dev/zero"])
            .contains("it is a pipe, a device or a socket, expected a regular file")
    );
    assert!(
        said(&["compile", "--config", "/dev/zero"])
            .contains("it is a pipe, a device or a socket, expected a regular file")
    );
}

#[test]
fn pipes_are_refused() {
    let project = Project::without_tools();
    let made = std::process::Command::new("mkfifo").arg(project.path("pipe")).status();
    assert!(made.unwrap().success());
    let manifest = |source: &str, table: &str| {
        format!(
            r#"
            schema = 1
            [plugin]
            name = "piped"
            [tables.window]
            type = "f32"
            {table}
            [[inputs]]
            name = "x"
            type = "f32"
            [[outputs]]
            name = "y"
            type = "f32"
            shape = "x.shape"
            [[launches]]
            source = "{source}"
            kernel = "piped"
            grid = [1]
            block = [1]
            args = {{ x = "x", y = "y" }}
            "#
        )
    };
    project.write(
        "piped.cu",
        "__global__ void piped(const float* x, float* y) { *y = *x * manifest::window[0]; }",
    );
    for text in [manifest("pipe", r#"values = "[1.0]""#), manifest("piped.cu", r#"file = "pipe""#)] {
        project.write("piped.toml", &text);
        let run = run_within_bounds(&project, &["check", "piped.toml"]);
        run.assert_refused(&text);
        assert!(
            run.stderr.contains("it is a pipe, a device or a socket, expected a regular file"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("the manifest names it here"), "{}", run.stderr);
    }
}

#[test]
fn names_are_no_danger() {
    let project = Project::without_tools();
    let long = "x".repeat(5000);
    for name in [".", "/dev/null", "no\nline", "\u{1b}[31mred", "..", long.as_str()] {
        for arguments in [&["inspect", name][..], &["inspect", "--json", name]] {
            run_within_bounds(&project, arguments).assert_refused(&format!("{arguments:?}"));
        }
        run_within_bounds(&project, &["compile", "--config", name])
            .assert_refused(&format!("config {name:?}"));
    }
}

fn inspectable(project: &Project) -> Vec<(&'static str, Vec<u8>)> {
    project.compile(&["--embed"]);
    let library = project.read("build/libscale.so");
    let (offset, found) = container::scan(&library).next().unwrap();
    let found = found.unwrap();
    let bundle = library[offset..offset + found.length].to_vec();
    let container::Container::Bundle(contents) = &found.container else { panic!("no bundle") };
    let [cubin, ptx] = [0, 1].map(|index| contents.code[index].raw().unwrap().to_vec());
    // `inspect` treats any file with containers as an engine.
    let plan = [garbage(1000), bundle.clone(), garbage(1000), bundle.clone(), garbage(10)].concat();
    vec![
        ("library.so", library),
        ("code.so", project.read("build/libscale-code.so")),
        ("bundle", bundle),
        ("kernel.cubin", cubin),
        ("kernel.ptx", ptx),
        ("engine.plan", plan),
    ]
}

#[test]
fn inspect_refuses_what_it_cannot_read() {
    let Some(project) = Project::new() else { return };
    for (name, good) in inspectable(&project) {
        let path: PathBuf = project.path(name);
        fs::write(&path, &good).unwrap();
        project.run(&["inspect", name]).assert_ok();
        for (what, instead) in bad_files(&good) {
            instead.put(&path);
            let run = run_within_bounds(&project, &["inspect", name]);
            let what = format!("{name}: {what}");
            match run.code {
                // No digest covers bytes outside containers, cubins' instructions, or PTX's text.
                Some(0) => assert!(
                    what.ends_with("flipped")
                        || what.ends_with("garbage")
                        || name.ends_with(".ptx")
                        || name == "engine.plan",
                    "{what}: {}",
                    run.stdout
                ),
                Some(1) if run.stdout.contains("warning: a damaged container") => {}
                _ => run.assert_refused(&what),
            }
        }
    }
}

#[test]
fn damage_in_an_engine_is_told() {
    let Some(project) = Project::new() else { return };
    let plan = inspectable(&project).pop().unwrap().1;
    let length = (plan.len() - 2010) / 2;
    // Damage starts after the magic, which marks a container.
    for place in [16, 20, 24, 32, 63, 64, 72, 100, length / 2, length - 1] {
        for which in [0, 1] {
            let mut damaged = plan.clone();
            damaged[1000 + which * (length + 1000) + place] ^= 0x04;
            project.write("engine.plan", &damaged);
            let run = project.run(&["inspect", "engine.plan"]);
            assert_eq!(run.code, Some(1), "byte {place} of container {which}: {}{}", run.stdout, run.stderr);
            let at = 1000 + which * (length + 1000);
            assert!(
                run.stdout.contains(&format!("warning: a damaged container at byte {at}: ")),
                "byte {place} of container {which}: {}",
                run.stdout
            );
            assert!(run.stdout.contains("\ntest::scale_plugin "), "the other one is shown: {}", run.stdout);
        }
    }
}
