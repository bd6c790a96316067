//! `cubinder onnx list` agrees with TensorRT-RTX: its parser rejects or misinterprets models with findings; others
//! build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::models::{self, Case, Fate, MANIFESTS};
use crate::support::load;
use cubinder_onnx::operators;
use cubinder_onnx::proto::ModelProto;
use cubinder_skip::skip;
use cubinder_tests::application::{Answer, Application};
use prost::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Scene {
    folder: TempDir,
    compiler: PathBuf,
    application: Application,
}

impl Scene {
    fn new() -> Option<Scene> {
        let compiler = std::env::var_os("CUBINDER_BIN").map(PathBuf::from);
        let (Some(compiler), Some(application)) = (compiler, Application::from_environment()) else {
            skip("`CUBINDER_BIN` or `CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` sets it");
            return None;
        };
        let scene = Scene { folder: tempfile::tempdir().unwrap(), compiler, application };
        let mut command =
            scene.command(&["compile", "--name", "models", "--target", "sm_89", "--quiet", "--out-dir"]);
        let done = command.arg(scene.folder.path()).args(MANIFESTS).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(scene)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.compiler);
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).args(arguments);
        command
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libmodels.so")
    }

    fn write(&self, name: &str, model: &[u8]) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.onnx"));
        std::fs::write(&path, model).unwrap();
        path
    }

    fn is_right(&self, model: &Path) -> bool {
        let mut command = self.command(&["onnx", "list", "--plugins"]);
        command.arg(self.library()).arg(model).output().unwrap().status.success()
    }

    /// Returns the annotated model's path, and plugin outputs' names, types and shapes from `cubinder onnx shapes`.
    fn annotated(&self, name: &str, model: &[u8]) -> (PathBuf, Vec<(String, String, String)>) {
        let (from, to) = (self.write(name, model), self.folder.path().join(format!("{name}.annotated.onnx")));
        let run = |arguments: &[&str], model: &Path| {
            let mut command = self.command(&["onnx"]);
            let done =
                command.args(arguments).arg("--plugins").arg(self.library()).arg(model).output().unwrap();
            assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap()
        };
        run(&["annotate", "--output", to.to_str().unwrap()], &from);
        let shown = run(&["shapes", "--json"], &to);
        let report: Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
        let outputs =
            report["nodes"].as_array().unwrap().iter().filter_map(|node| node["outputs"].as_array());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let outputs =
            outputs.flatten().map(|one| (text(&one["name"]), text(&one["type"]), text(&one["shape"])));
        (to, outputs.collect())
    }

    fn builds(&self, models: &[PathBuf]) -> Vec<Answer> {
        // Dynamic networks need a profile.
        let is_dynamic = |model: &Path| model.file_stem().is_some_and(|name| name == "unknown_shape");
        let what = |model: &Path| if is_dynamic(model) { "parse" } else { "build" };
        let builds = models.iter().map(|model| json!({"do": what(model), "onnx": model}));
        let steps: Vec<_> = std::iter::once(load(&self.library())).chain(builds).collect();
        self.application.run(&steps).unwrap().into_iter().skip(1).collect()
    }
}

#[test]
fn tensorrt_does_what_list_says() {
    let Some(scene) = Scene::new() else { return };
    let cases: Vec<Case> = models::wrong().into_iter().chain(models::right()).collect();
    let paths: Vec<PathBuf> = cases.iter().map(|case| scene.write(case.name, &case.model)).collect();
    for ((case, path), answer) in cases.iter().zip(&paths).zip(scene.builds(&paths)) {
        assert_eq!(scene.is_right(path), case.fate == Fate::Right, "{}", case.name);
        assert_eq!(answer.is_ok(), case.fate != Fate::Refused, "{}: {:?}", case.name, answer.log);
        if case.fate == Fate::Otherwise {
            // TensorRT warns about omitted attributes, also of valid models.
            let told = answer.log.iter().filter(|(severity, text)| {
                severity == "ERROR" || severity == "WARNING" && !text.contains("not found in plugin node")
            });
            assert_eq!(told.count(), 0, "{}: {:?}", case.name, answer.log);
        }
    }
}

#[test]
fn tensorrt_reads_the_first_of_two_attributes() {
    let Some(scene) = Scene::new() else { return };
    let cases = models::wrong();
    let case = cases.iter().find(|case| case.name == "attribute_twice").unwrap();
    let path = scene.write(case.name, &case.model);
    let steps = [load(&scene.library()), json!({"do": "parse", "onnx": path})];
    let answers = scene.application.run(&steps).unwrap();
    assert_eq!(
        answers[1].members["outputs"],
        json!([["y", "FLOAT", [2, 3, 8, 12]]]),
        "padded by 2 and not by 1"
    );
}

#[test]
fn operators_of_tensorrt_are_its_own() {
    let Some(application) = Application::from_environment() else {
        skip("`CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` sets it");
        return;
    };
    let beyond: Vec<&str> =
        include_str!("../../../compiler/onnx/src/nodes/operators_of_tensorrt.txt").lines().collect();
    let lacked: Vec<&str> =
        include_str!("../../../compiler/onnx/src/nodes/operators_tensorrt_lacks.txt").lines().collect();
    let standard: BTreeSet<&str> = operators::operators().map(|(_, name)| name).collect();
    assert!(
        beyond.iter().all(|name| !standard.contains(name))
            && lacked.iter().all(|name| standard.contains(name))
    );
    let asked: Vec<&str> =
        standard.iter().copied().chain(beyond.iter().copied()).chain(["RoIAlign"]).collect();
    let answers = application.run(&[json!({"do": "supports", "names": asked})]);
    let found = answers.unwrap().remove(0).members;
    let own = standard.iter().filter(|name| !lacked.contains(name)).chain(&beyond);
    assert_eq!(found["names"], json!(own.collect::<Vec<_>>()));
}

fn bare(model: &[u8]) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    let own = ["plugin_namespace", "plugin_version", "aot", "tensorrt_plugin_shape_input_indices"];
    let functions = model.functions.iter_mut().flat_map(|function| &mut function.node);
    let nodes = model.graph.iter_mut().flat_map(|graph| &mut graph.node).chain(functions);
    for node in nodes {
        node.attribute.retain(|attribute| !own.contains(&attribute.name()));
    }
    model.opset_import.retain(|import| import.domain() != "sample");
    model.encode_to_vec()
}

#[test]
fn annotated_models_are_built_with_the_shapes_that_were_told() {
    // A namespace other than the domain, another operator, shapes known later.
    const OTHERS: [&str; 8] = [
        "namespace_alone",
        "plugin_without_a_namespace",
        "namespace_in_every_call",
        "unknown_shape",
        "name_of_an_operator",
        "operator_of_tensorrt",
        "same_in_every_call",
        "other_in_every_call",
    ];
    let Some(scene) = Scene::new() else { return };
    let cases: Vec<Case> = models::right().into_iter().filter(|case| !OTHERS.contains(&case.name)).collect();
    assert!(cases.len() >= 12, "{}", cases.len());
    let told: Vec<_> = cases.iter().map(|case| scene.annotated(case.name, &bare(&case.model))).collect();
    let steps =
        told.iter().flat_map(|(model, _)| ["parse", "build"].map(|what| json!({"do": what, "onnx": model})));
    let steps: Vec<Value> = std::iter::once(load(&scene.library())).chain(steps).collect();
    let answers = scene.application.run(&steps).unwrap();
    for ((case, (_, told)), answers) in cases.iter().zip(&told).zip(answers[1..].chunks(2)) {
        assert!(answers.iter().all(Answer::is_ok), "{}: {answers:?}", case.name);
        let outputs = answers[0].members["outputs"].as_array().unwrap();
        let mut held = 0;
        for (name, ty, shape) in told {
            let Some(found) = outputs.iter().find(|found| found[0] == *name) else { continue };
            let extents: Vec<String> = found[2].as_array().unwrap().iter().map(Value::to_string).collect();
            let expected = match ty.as_str() {
                "f32" | "double" => "FLOAT",
                "f16" => "HALF",
                other => panic!("{}: {name} is {other}", case.name),
            };
            assert_eq!(
                (found[1].as_str(), extents.join("x")),
                (Some(expected), shape.clone()),
                "{}",
                case.name
            );
            held += 1;
        }
        assert!(
            held == outputs.len() || case.name.starts_with("output_of_another"),
            "{}: {told:?}",
            case.name
        );
    }
}

#[test]
fn plugins_of_an_engine_are_those_of_the_library_that_it_carries() {
    let Some(scene) = Scene::new() else { return };
    let embedded = scene.folder.path().join("embedded");
    std::fs::create_dir(&embedded).unwrap();
    let mut command = scene.command(&[
        "compile",
        "--name",
        "carried",
        "--target",
        "sm_89",
        "--quiet",
        "--embed",
        "--out-dir",
    ]);
    let done = command.arg(&embedded).arg(MANIFESTS[0]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let model = scene.write("model", &models::right()[0].model);
    let plan = |name: &str| scene.folder.path().join(name);
    let library =
        std::fs::read_dir(&embedded).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let code = library.iter().find(|path| path.to_string_lossy().ends_with("-code.so")).unwrap();
    let ops = library.iter().find(|path| path.ends_with("libcarried.so")).unwrap();
    let steps = [
        load(ops),
        json!({"do": "build", "onnx": model, "output": plan("with.plan"), "serialize": [code]}),
        json!({"do": "build", "onnx": model, "output": plan("without.plan")}),
    ];
    let answers = scene.application.run(&steps).unwrap();
    assert!(answers.iter().all(Answer::is_ok), "{answers:?}");
    let list = |name: &str| {
        let mut command = scene.command(&["onnx", "list", "--plugins"]);
        command.arg(plan(name)).arg(&model).output().unwrap()
    };
    let done = list("with.plan");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stdout).contains("sample::circ_pad_plugin"));
    let done = list("without.plan");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("without.plan` has no plugins"), "{said}");
}
