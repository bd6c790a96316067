//! `cubinder compile` when NVRTC (`tests/fake-nvrtc`) crashes, exits, hangs, prints, fails to load, or is too old: an
//! error, no partial files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use cubinder_skip::skip;
use cubinder_tests::cxx;

struct Scene {
    folder: tempfile::TempDir,
    program: PathBuf,
    runtime: PathBuf,
}

impl Scene {
    fn new() -> Option<Scene> {
        Scene::with(&[])
    }

    fn with(options: &[&str]) -> Option<Scene> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let (Some(program), Some(runtime)) = (variable("CUBINDER_BIN"), variable("CUBINDER_RUNTIME_LIBRARY"))
        else {
            skip("`CUBINDER_BIN` or `CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets both");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("fake-nvrtc");
        let library = folder.path().join("nvrtc/libnvrtc.so.13");
        std::fs::create_dir(library.parent().unwrap()).unwrap();
        let mut arguments: Vec<std::ffi::OsString> = [
            "-x",
            "c",
            "-std=gnu11",
            "-fPIC",
            "-shared",
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
            "nvrtc.c",
            "-o",
        ]
        .map(Into::into)
        .to_vec();
        arguments.splice(0..0, options.iter().map(Into::into));
        arguments.push(library.clone().into());
        cxx::compile(&sources, &arguments).unwrap();
        // Required when searching NVRTC.
        std::fs::copy(&library, library.with_file_name("libnvrtc-builtins.so.13.0")).unwrap();
        Some(Scene { folder, program, runtime })
    }

    fn plugin(&self, name: &str, text: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = std::fs::read_to_string(folder.join("manifests/elemwise_add_plugin.toml")).unwrap();
        let kernel = std::fs::read_to_string(folder.join("kernels/elemwise_add.cu")).unwrap();
        let manifest = manifest
            .replace("elemwise_add_plugin", name)
            .replace("../kernels/elemwise_add.cu", &format!("{name}.cu"));
        std::fs::write(self.folder.path().join(format!("{name}.toml")), manifest).unwrap();
        std::fs::write(self.folder.path().join(format!("{name}.cu")), format!("// fake: {text}\n{kernel}"))
            .unwrap();
    }

    fn compile(&self, more: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(more, variables).output().unwrap()
    }

    fn command(&self, more: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(self.folder.path())
            .args(["compile", "--name", "all", "--target", "sm_90", "--nvrtc", "nvrtc"]);
        command.arg("--runtime-library").arg(&self.runtime).args(more);
        command.envs(variables.iter().copied()).env("CUBINDER_CACHE", self.folder.path().join("cache"));
        command
    }

    fn is_written(&self) -> bool {
        self.folder.path().join("liball.so").exists()
    }
}

#[test]
fn a_compiler_that_crashes_takes_nothing_with_it() {
    let Some(scene) = Scene::new() else { return };
    scene.plugin("crashing", "crash");
    scene.plugin("ending", "exit");
    scene.plugin("printing", "print");
    for jobs in ["1", "4"] {
        let output = scene.compile(&["crashing.toml", "ending.toml", "printing.toml", "--jobs", jobs], &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        for part in [
            "error: NVRTC 13.0 crashed on `crashing.cu` for `sm_90`",
            "the process was terminated by signal 6; it compiled nothing else",
            "the process printed: malloc(): the stand-in is corrupted",
            "error: NVRTC 13.0 crashed on `ending.cu` for `sm_90`",
            "the process exited with code 3; it compiled nothing else",
            "use another NVRTC: `--nvrtc <libnvrtc.so or its folder>`",
            "the stand-in compiles nothing",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert!(!said.contains("__nv_nvrtc_builtin_header.h"), "the trace of includes is not shown\n{said}");
        assert!(!scene.is_written());
    }
}

/// Excludes zombies.
fn is_running(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

fn wait_for<T>(ask: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn a_compile_ends_with_who_asked_for_it() {
    let Some(scene) = Scene::new() else { return };
    scene.plugin("endless", "endless");
    let said = scene.folder.path().join("process");
    let variables = [("FAKE_NVRTC_PROCESS", said.to_str().unwrap())];
    let mut command = scene.command(&["endless.toml", "--jobs", "1"], &variables);
    let mut program = command.stderr(Stdio::null()).spawn().unwrap();
    let process = wait_for(|| std::fs::read_to_string(&said).ok()?.strip_suffix('\n').map(str::to_owned));
    let process = process.expect("it compiles");
    assert!(is_running(&process));
    // SIGKILL: it cannot stop its children.
    program.kill().unwrap();
    program.wait().unwrap();
    let has_ended = wait_for(|| (!is_running(&process)).then_some(()));
    if has_ended.is_none() {
        Command::new("kill").args(["-KILL", &process]).status().unwrap();
    }
    assert!(has_ended.is_some(), "it compiles for no one");
}

#[test]
fn a_header_that_changes_while_kernels_are_compiled_is_said() {
    let Some(scene) = Scene::new() else { return };
    scene.plugin("changing", "change\n#include \"sub/one.cuh\"");
    std::fs::create_dir(scene.folder.path().join("sub")).unwrap();
    let header = |name: &str| scene.folder.path().join("sub").join(name);
    std::fs::write(header("one.cuh"), "#include \"two.cuh\"\n").unwrap();
    for name in ["one.cuh", "two.cuh"] {
        let changes = header(name);
        let variables = [("FAKE_NVRTC_CHANGES", changes.to_str().unwrap())];
        let output = scene.compile(&["changing.toml"], &variables);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let message = format!("error: `sub/{name}` changed while kernels were compiled\n");
        assert!(said.starts_with(&message) && said.contains("help: compile again"), "{said}");
        assert!(!scene.is_written());
    }
    let output = scene.compile(&["changing.toml"], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the stand-in compiles nothing"), "{said}");
}

#[test]
fn an_nvrtc_without_include_traces_is_asked_once() {
    let Some(scene) = Scene::new() else { return };
    scene.plugin("one", "nothing");
    scene.plugin("two", "nothing");
    let calls = scene.folder.path().join("calls");
    let variables = [("FAKE_NVRTC_UNTRACED", calls.to_str().unwrap())];
    let output = scene.compile(&["one.toml", "two.toml", "--jobs", "1"], &variables);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("the stand-in compiles nothing"), "{printed}");
    let calls = std::fs::read_to_string(calls).unwrap();
    let plain = calls.strip_prefix("traced\n").unwrap();
    assert!(plain.lines().count() > 1 && !plain.contains("traced"), "{calls}");
}

#[test]
fn a_compiler_that_does_not_load_is_said() {
    let Some(scene) = Scene::new() else { return };
    scene.plugin("any", "nothing");
    let output = scene.compile(&["any.toml"], &[("FAKE_NVRTC_LOAD", "1")]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot use NVRTC: cannot load `"), "{said}");
    let ending = "`: the process was terminated by signal 6; it printed `the stand-in does not load`";
    assert!(said.contains(ending), "{said}");
    assert!(!scene.is_written());
}

#[test]
fn a_compiler_that_is_too_old_says_what_is_needed() {
    let Some(scene) = Scene::with(&["-DFAKE_11_0"]) else { return };
    scene.plugin("any", "nothing");
    let output = scene.compile(&["any.toml"], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let message = "libnvrtc.so.13` is NVRTC 11.0, which has no function `nvrtcGetNumSupportedArchs`; 11.2 or later is required";
    assert!(said.starts_with("error: cannot use NVRTC: `") && said.contains(message), "{said}");
    assert!(said.contains("help: run `cargo xtask setup`, or specify another one"), "{said}");
    assert!(!scene.is_written());
}

#[test]
fn a_library_that_is_no_nvrtc_is_refused() {
    let Some(scene) = Scene::new() else { return };
    scene.plugin("any", "nothing");
    std::fs::copy(&scene.runtime, scene.folder.path().join("nvrtc/libnvrtc.so.13")).unwrap();
    let output = scene.compile(&["any.toml"], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("libnvrtc.so.13` is not NVRTC: it has no function `nvrtcVersion`"), "{said}");
    assert!(!scene.is_written());
}
