//! Builds engines with TensorRT-RTX in both forms, without a GPU, and compares them with the libraries. `cargo xtask
//! gpu-test` runs these networks (`xtask/python/networks.py`).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::{FORMS, Form, load};
use cubinder_skip::skip;
use cubinder_tests::application::{Answer, Application};
use serde_json::{Value, json};
use tempfile::TempDir;

#[derive(Debug, Clone)]
struct Network {
    kind: &'static str,
    ty: &'static str,
    shape: &'static str,
    profiles: &'static [&'static str],
    set: Value,
    ops: &'static [(&'static str, usize)],
}

const PAD: &str = "circ_pad_plugin";
const ADD: &str = "elemwise_add_plugin";
const INPLACE: &str = "elemwise_add_plugin_";
const NON_ZERO: &str = "non_zero_plugin";

fn fixed(
    kind: &'static str,
    ty: &'static str,
    shape: &'static str,
    set: Value,
    ops: &'static [(&'static str, usize)],
) -> Network {
    Network { kind, ty, shape, profiles: &[], set, ops }
}

fn dynamic(
    kind: &'static str,
    ty: &'static str,
    shape: &'static str,
    profiles: &'static [&'static str],
    ops: &'static [(&'static str, usize)],
) -> Network {
    Network { kind, ty, shape, profiles, set: json!({}), ops }
}

fn networks() -> Vec<Network> {
    const IMAGES: &str = "batch,3,height,width";
    const ONE: &[&str] = &["1x3x4x4:10x3x32x32:16x3x64x64"];
    const THREE: &[&str] =
        &["1x3x4x4:1x3x32x32:1x3x64x64", "2x3x8x8:8x3x32x32:16x3x32x32", "10x3x32x32:10x3x32x32:10x3x32x32"];
    let mut all = Vec::new();
    for ty in ["f32", "f16"] {
        all.push(dynamic("chain", ty, IMAGES, ONE, &[(PAD, 2), (ADD, 1)]));
        all.push(dynamic("chain", ty, IMAGES, THREE, &[(PAD, 2), (ADD, 1)]));
        all.push(fixed("chain", ty, "2,3,12,13", json!({}), &[(PAD, 2), (ADD, 1)]));
        all.push(fixed("pads", ty, "10,3,32,32", json!({}), &[(PAD, 2)]));
        all.push(dynamic("pads", ty, IMAGES, ONE, &[(PAD, 2)]));
        all.push(fixed("add", ty, "1000", json!({}), &[(ADD, 1)]));
        all.push(fixed("add", ty, "0,5", json!({}), &[(ADD, 1)]));
        all.push(fixed("add", ty, "", json!({"block_size": 32}), &[(ADD, 1)]));
        all.push(fixed("adds", ty, "64", json!({"nodes": 10}), &[(ADD, 1)]));
        all.push(fixed("adds", ty, "64", json!({"nodes": 100}), &[(ADD, 1)]));
    }
    for ty in ["f32", "f16"] {
        all.push(fixed("inplace", ty, "10,3,32,32", json!({}), &[(INPLACE, 2)]));
        all.push(fixed("inplace", ty, "7", json!({"delta": -3}), &[(INPLACE, 2)]));
        all.push(dynamic("inplace", ty, IMAGES, ONE, &[(INPLACE, 2)]));
        for shape in [
            "7",
            "0",
            "128,128",
            "2,3,4",
            "2,3,4,5",
            "1,2,3,4,5",
            "2,1,2,3,1,4",
            "1,2,1,2,3,2,5",
            "2,1,2,1,2,3,2,5",
        ] {
            all.push(fixed("non_zero", ty, shape, json!({}), &[(NON_ZERO, 1)]));
        }
        all.push(dynamic("non_zero", ty, IMAGES, ONE, &[(NON_ZERO, 1)]));
        all.push(dynamic("non_zero_counted", ty, IMAGES, THREE, &[(NON_ZERO, 1)]));
    }
    all.push(fixed("adds", "f32", "64", json!({"nodes": 1000}), &[(ADD, 1)]));
    for (shape, pads) in [
        ("7", json!([2, 3])),
        ("5,4", json!([9, 13])),
        ("2,3,4", json!([1, 0, 0, 2, 3, 3])),
        ("1,1,1,1", json!([2, 2, 2, 2, 2, 2, 2, 2])),
        ("2,1,3,2,5", json!([1, 1])),
        ("2,2,1,3,2,5", json!([0, 1, 1, 0])),
        ("2,1,2,1,3,2,5", json!([1, 2, 3, 4, 5, 6])),
        ("2,1,2,1,2,3,2,5", json!([1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0])),
        ("3,4", json!([])),
        ("2,0,5", json!([1, 1])),
    ] {
        all.push(fixed("pad", "f32", shape, json!({"pads": pads}), &[(PAD, 1)]));
    }
    all
}

struct Library {
    name: &'static str,
    folder: TempDir,
    application: Application,
    compiler: std::path::PathBuf,
}

impl Library {
    fn new(name: &'static str, manifests: &[&str]) -> Option<Library> {
        let compiler = std::env::var_os("CUBINDER_BIN").map(std::path::PathBuf::from);
        let (Some(compiler), Some(application)) = (compiler, Application::from_environment()) else {
            skip("`CUBINDER_BIN` or `CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` sets it");
            return None;
        };
        let library = Library { name, folder: tempfile::tempdir().unwrap(), application, compiler };
        for form in FORMS {
            let mut command = Command::new(&library.compiler);
            command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
            command.args(["compile", "--name", name, "--target", "sm_89", "--quiet", "--out-dir"]);
            command.arg(library.folder.path().join(form.folder()));
            command.args((form == Form::Embedded).then_some("--embed")).args(manifests);
            let done = command.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        Some(library)
    }

    fn path(&self, form: Form, name: &str) -> std::path::PathBuf {
        self.folder.path().join(form.folder()).join(name)
    }

    fn libraries(&self, form: Form) -> Vec<std::path::PathBuf> {
        let mut libraries = vec![self.path(form, &format!("lib{}.so", self.name))];
        libraries.extend((form == Form::Embedded).then(|| self.code(form)));
        libraries
    }

    fn code(&self, form: Form) -> std::path::PathBuf {
        self.path(form, &format!("lib{}-code.so", self.name))
    }

    fn plan(&self, form: Form, index: usize) -> std::path::PathBuf {
        self.path(form, &format!("{index}.plan"))
    }

    fn inspect(&self, file: &Path) -> Value {
        let done = Command::new(&self.compiler).args(["inspect", "--json"]).arg(file).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    fn build(&self, form: Form, networks: &[Network]) -> Vec<Answer> {
        let mut steps: Vec<Value> = self.libraries(form).iter().map(|path| load(path)).collect();
        let before = steps.len();
        for (index, network) in networks.iter().enumerate() {
            let model = self.path(form, &format!("{index}.onnx"));
            steps.push(json!({
                "do": "named_network", "path": model, "network": network.kind, "type": network.ty, "shape": network.shape,
                "set": network.set,
            }));
            let mut build = json!({
                "do": "build_network", "onnx": model, "output": self.plan(form, index), "profiles": network.profiles,
                "network": network.kind,
            });
            if form == Form::Embedded {
                build["serialize"] = json!([self.code(form)]);
            }
            steps.push(build);
        }
        let answers = self.application.run(&steps).unwrap();
        answers.into_iter().skip(before).skip(1).step_by(2).collect()
    }
}

fn nodes(report: &Value, kind: &str) -> BTreeSet<(String, String)> {
    let containers = report["containers"].as_array().unwrap().iter().filter(|found| found["kind"] == kind);
    containers
        .map(|container| {
            let plugin = &container["plugins"][0];
            (plugin["name"].as_str().unwrap().to_owned(), plugin["attributes"].to_string())
        })
        .collect()
}

fn code(report: &Value) -> BTreeSet<String> {
    let containers = report["containers"].as_array().unwrap().iter();
    let code = containers.flat_map(|container| container["code"].as_array().into_iter().flatten());
    code.map(|code| code["digest"].as_str().unwrap().to_owned()).collect()
}

fn builds(library: &Library, networks: &[Network]) {
    for form in FORMS {
        let compiled = code(&library.inspect(library.libraries(form).last().unwrap()));
        for (index, (network, answer)) in networks.iter().zip(library.build(form, networks)).enumerate() {
            let name = format!("{form:?} {network:?}");
            assert!(answer.is_ok(), "{name}: {:?}", answer.log);
            // The parser warns about 64-bit integer outputs.
            let complaints = answer.log.iter().filter(|(severity, text)| {
                (severity == "ERROR" || severity == "WARNING") && !text.ends_with("has Int64 binding.")
            });
            assert_eq!(complaints.collect::<Vec<_>>(), Vec::<&(String, String)>::new(), "{name}");
            let report = library.inspect(&library.plan(form, index));
            assert_eq!(report["damaged"], json!([]), "{name}");
            let kind = if form == Form::Fields { "node" } else { "node reference" };
            let found = nodes(&report, kind);
            for (op, count) in network.ops {
                let of_op = found.iter().filter(|(name, _)| name == op).count();
                assert_eq!(of_op, *count, "{name}: {op} among {found:?}");
            }
            assert_eq!(
                found.len(),
                network.ops.iter().map(|(_, count)| count).sum::<usize>(),
                "{name}: {found:?}"
            );
            let held = code(&report);
            assert!(!held.is_empty() && held.is_subset(&compiled), "{name}: code that was not compiled");
        }
    }
}

#[test]
fn engines_of_every_kind_are_built_without_a_gpu() {
    let Some(library) = Library::new("shipped", &[]) else { return };
    let networks = networks();
    assert!(networks.len() >= 30, "{}", networks.len());
    builds(&library, &networks);
}

/// Types and formats in tests/data/run/pack.toml; some need 5 dimensions.
const KINDS: usize = 29;
const OF_VOLUMES: [usize; 5] = [3, 11, 12, 17, 22];

#[test]
fn engines_with_every_type_and_format_are_built_without_a_gpu() {
    let manifests =
        ["pack", "unpack", "flip", "weigh", "split"].map(|name| format!("tests/data/run/{name}.toml"));
    let manifests: Vec<&str> = manifests.iter().map(String::as_str).collect();
    let Some(library) = Library::new("types", &manifests) else { return };
    let mut networks = Vec::new();
    for kind in 0..KINDS {
        let shape = if OF_VOLUMES.contains(&kind) { "2,5,2,3,4" } else { "2,5,3,4" };
        let ops = &[("pack_plugin", 1), ("unpack_plugin", 1)];
        networks.push(fixed("layouts", "f32", shape, json!({"kinds": [kind]}), ops));
    }
    for ty in ["f32", "f16", "bf16", "f8", "i8", "i32", "i64", "bool"] {
        networks.push(fixed("flip", ty, "3,5,7", json!({}), &[("flip_plugin", 1)]));
    }
    for shape in ["", "0", "2,1,2,1,2,3,2,5"] {
        networks.push(fixed("flip", "f32", shape, json!({}), &[("flip_plugin", 1)]));
        networks.push(fixed("split", "f32", shape, json!({}), &[("split_plugin", 1)]));
    }
    for ty in ["f32", "f16", "f8"] {
        networks.push(fixed("weigh", ty, "4,300", json!({}), &[("weigh_plugin", 1)]));
    }
    builds(&library, &networks);
}

#[test]
fn engines_with_aliases_by_every_name_are_built_without_a_gpu() {
    let manifests = ["by_input", "by_output", "by_both", "guarded", "then_read", "two"]
        .map(|name| format!("tests/data/run/aliases/{name}.toml"));
    let manifests: Vec<&str> = manifests.iter().map(String::as_str).collect();
    let Some(library) = Library::new("aliases", &manifests) else { return };
    let networks = [
        ("lerp_by_input_1", &[("lerp_by_input_", 1)]),
        ("lerp_by_input_2", &[("lerp_by_input_", 1)]),
        ("lerp_by_output_2", &[("lerp_by_output_", 1)]),
        ("lerp_by_both_2", &[("lerp_by_both_", 1)]),
        ("lerp_guarded_2", &[("lerp_guarded_", 1)]),
        ("lerp_then_read", &[("lerp_then_read_", 1)]),
        ("approach", &[("approach_", 1)]),
    ];
    let networks = networks.map(|(kind, ops)| fixed(kind, "f32", "2,3,32,32", json!({}), ops));
    builds(&library, &networks);
}
