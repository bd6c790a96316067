//! `cubinder build` and `cubinder doctor` with TensorRT-RTX's wheels, which lack a link, without a GPU.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::models;
use crate::pip_wheel;
use cubinder_skip::skip;
use cubinder_tests::application::Application;
use serde_json::Value;
use tempfile::TempDir;

const FIELDS: &str = "fields/libcirc_pad_plugin.so";
const EMBEDDED: &str = "embedded/libcirc_pad_plugin.so";

pub(crate) struct Scene {
    folder: TempDir,
    compiler: PathBuf,
    application: Application,
}

impl Scene {
    pub(crate) fn new() -> Option<Scene> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let (Some(compiler), Some(libraries), Some(application)) =
            (variable("CUBINDER_BIN"), variable("CUBINDER_TENSORRT_LIBS"), Application::from_environment())
        else {
            skip("`CUBINDER_BIN` or `CUBINDER_TENSORRT_LIBS` is not set; `cargo xtask test` sets it");
            return None;
        };
        if !libraries.join("__init__.py").is_file() {
            skip("TensorRT-RTX's libraries are not from its wheel");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let packages = pip_wheel::install(folder.path(), &libraries);
        let application = application.with_packages(&packages, &libraries).unwrap();
        let scene = Scene { folder, compiler, application };
        for (form, more) in [("fields", None), ("embedded", Some("--embed"))] {
            let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/data/run/circ_pad_plugin.toml");
            let mut command = scene.command(&[
                "compile",
                manifest,
                "--target",
                "sm_89,compute_80",
                "--quiet",
                "--out-dir",
                form,
            ]);
            assert_done(&command.args(more).output().unwrap());
        }
        fs::write(scene.path("model.onnx"), &models::right()[0].model).unwrap();
        Some(scene)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command whose only TensorRT is the application's Python.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let python = self.application.python_command();
        let mut command = Command::new(&self.compiler);
        command.args(arguments).current_dir(self.folder.path());
        command.envs(python.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("CUBINDER_PYTHON", python.get_program()).env("PATH", "/usr/bin:/bin");
        for name in ["VIRTUAL_ENV", "TENSORRT_RTX_HOME", "TENSORRT_HOME"] {
            command.env_remove(name);
        }
        command
    }

    fn build(&self, library: &str, plan: &str, more: &[&str]) -> Output {
        let arguments = ["build", "model.onnx", "-o", plan, "--plugins", library];
        self.command(&[&arguments[..], more].concat()).output().unwrap()
    }

    fn inspect(&self, plan: &str) -> Value {
        let output = self.command(&["inspect", plan, "--json"]).output().unwrap();
        assert_done(&output);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn assert_done(output: &Output) {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn an_engine_is_built_without_a_gpu_and_without_the_link() {
    let Some(scene) = Scene::new() else { return };
    let doctor = scene.command(&["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["subject"] == "TensorRT-RTX").unwrap();
    assert_eq!(check["status"], "problem", "{check}");
    assert!(check["fix"].as_str().unwrap().starts_with("ln -s libtensorrt_rtx.so.1 "), "{check}");

    assert_done(&scene.build(FIELDS, "model.plan", &["--gpu", "sm_89"]));
    let report = scene.inspect("model.plan");
    assert_eq!(report["containers"][0]["plugins"][0]["name"], "circ_pad_plugin", "{report}");
    let plan = fs::read(scene.path("model.plan")).unwrap();
    assert_done(&scene.build(FIELDS, "again.plan", &["--gpu", "sm_89", "--verbose"]));
    assert!(fs::read(scene.path("again.plan")).unwrap() == plan, "the plan is reproducible");
    assert_done(&scene.build(FIELDS, "default.plan", &[]));
    assert!(fs::read(scene.path("default.plan")).unwrap() != plan, "more GPUs by default");

    let fix = check["fix"].as_str().unwrap();
    let link = Command::new("sh").args(["-ec", fix]).current_dir(scene.folder.path()).status().unwrap();
    assert!(link.success());
    let doctor = scene.command(&["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let mut checks = report["checks"].as_array().unwrap().iter();
    assert_eq!(checks.find(|check| check["subject"] == "TensorRT-RTX").unwrap()["status"], "ok", "{report}");
    assert_done(&scene.build(FIELDS, "again.plan", &["--gpu", "sm_89"]));
    assert!(fs::read(scene.path("again.plan")).unwrap() == plan);
}

#[test]
fn a_plan_carries_its_library() {
    let Some(scene) = Scene::new() else { return };
    assert_done(&scene.build(EMBEDDED, "alone.plan", &["--embed"]));
    let plan = fs::read(scene.path("alone.plan")).unwrap();
    let code = fs::read(scene.path("embedded/libcirc_pad_plugin-code.so")).unwrap();
    assert!(contains(&plan, &code[..4096]));
    assert_done(&scene.build(FIELDS, "model.plan", &[]));
    assert!(!contains(&fs::read(scene.path("model.plan")).unwrap(), &code[..4096]));
}

#[test]
fn errors_of_tensorrt_are_explained() {
    let Some(scene) = Scene::new() else { return };
    let fails = |output: Output, cause: &str, help: &str| {
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(cause) && stderr.contains(help), "{stderr}");
        assert!(!scene.path("model.plan").exists());
    };
    let copy = scene.path("copy.so");
    fs::copy(scene.path(FIELDS), copy).unwrap();
    let twice = scene.build(FIELDS, "model.plan", &["--plugins", "copy.so"]);
    fails(twice, "two libraries contain a plugin of one name and version", "pass only one of them");
    fails(
        scene.build(FIELDS, "model.plan", &["--gpu", "sm_90"]),
        "it does not support sm_90",
        "it supports sm_75, sm_80, sm_86, sm_89, sm_120, sm_121",
    );
    let none = ["build", "model.onnx", "-o", "model.plan", "--no-check"];
    let none = scene.command(&none).output().unwrap();
    fails(none, "no loaded library contains the plugin of a node", "cubinder onnx list MODEL");
    fs::write(scene.path("other.so"), "\x7fELF").unwrap();
    let other = scene.build("other.so", "model.plan", &["--no-check"]);
    fails(other, "it rejects the library `", "compile it again");
}

#[test]
fn the_scripts_know_nothing_of_this_project() {
    let scripts = ["builder.py", "runner.py", "client.py"].map(|name| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../compiler/tensorrt/src");
        fs::read_to_string(PathBuf::from(folder).join(name)).unwrap()
    });
    let mentions = scripts.map(|script| script.to_lowercase().matches("cubinder").count());
    assert_eq!(mentions, [2, 2, 0], "only the first lines say who runs them");
}
