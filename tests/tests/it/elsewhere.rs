//! Circular padding by nvcc, CuPy, Numba and Triton becomes one plugin; Triton's specialized, autotuned and cluster
//! kernels are imported and completed (`tests/data/other_compilers`). `cargo xtask gpu-test` runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{FORMS, Form, Scene, load, node, pad};
use cubinder_skip::skip;
use serde_json::{Value, json};
use tempfile::TempDir;

const COMPILERS: [&str; 4] = ["nvcc", "cupy", "numba", "triton"];

struct Made {
    folder: TempDir,
    python: PathBuf,
    scene: Scene,
}

impl Made {
    fn new() -> Option<Made> {
        let Some(compilers) = std::env::var_os("CUBINDER_TEST_COMPILERS").map(PathBuf::from) else {
            skip("`CUBINDER_TEST_COMPILERS` is not set; `cargo xtask test` sets it");
            return None;
        };
        let scene = Scene::new()?;
        let folder = tempfile::tempdir().unwrap();
        let python = compilers.join("bin/python");
        let mut command = Command::new(&python);
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/data/other_compilers/compile.py"))
            .arg(folder.path());
        // Avoids users' caches.
        command.env("HOME", folder.path()).env("TRITON_CACHE_DIR", folder.path().join("cache"));
        command.env_remove("CUDA_HOME").env_remove("CUDA_PATH").env("PYTHONNOUSERSITE", "1");
        succeeded(&command.output().unwrap());
        Some(Made { folder, python, scene })
    }

    fn manifest(&self, compiler: &str) -> PathBuf {
        self.folder.path().join(format!("{compiler}.toml"))
    }

    fn cubinder(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.scene.compiler);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("CUBINDER_CACHE", self.folder.path().join("none"));
        command.env_remove("CUDA_HOME").env_remove("CUBINDER_NVRTC");
        command
    }
}

fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn evaluation(made: &Made, manifest: &str, given: &[&str]) -> Value {
    let mut command = made.cubinder(&["eval", "--json", "--arch", "sm_90"]);
    let output = succeeded(&command.args(given).arg(made.manifest(manifest)).output().unwrap());
    let report: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    report["evaluations"][0].clone()
}

fn evaluated(made: &Made, compiler: &str, ty: &str) -> Value {
    let ty = format!("T={ty}");
    let report =
        evaluation(made, compiler, &["--shape", "x=2x3x8x8", "--attr", "pads=1,1,2,2", "--type", &ty]);
    let launch = &report["launches"][0];
    let arguments = launch["args"].as_array().unwrap_or_else(|| panic!("{report}"));
    let author = |name: &str| {
        ["x", "y", "count", "n0", "n1", "n2", "n3", "m1", "m2", "m3", "b0", "b1", "b2", "b3"].contains(&name)
    };
    let mut kept: Vec<Value> = arguments
        .iter()
        .filter(|argument| argument["name"].as_str().is_some_and(author))
        .map(|argument| json!([argument["name"], argument["value"], argument["tensor"]]))
        .collect();
    kept.sort_by_key(ToString::to_string);
    json!({"grid": launch["grid"], "arguments": kept})
}

fn members(value: &Value, key: &str) -> Vec<Value> {
    value[key].as_array().cloned().unwrap_or_default()
}

fn variants(file: &Value, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Value)> {
    let containers = members(file, "containers");
    let wanted = containers.iter().filter(|container| container["kind"].as_str().is_some_and(&is_wanted));
    let plugins = wanted.flat_map(|container| members(container, "plugins"));
    let of_plugin = plugins.flat_map(|plugin| members(&plugin, "variants"));
    of_plugin
        .filter_map(|variant| {
            let ty = variant["tensors"][0]["type"].as_str()?.to_owned();
            Some((ty, json!([variant["kernels"], variant["code"]])))
        })
        .collect()
}

fn has_code_of(scene: &Scene, plan: &Path, library: &Path, ty: &str) {
    let (engine, library) = (scene.inspect(plan), scene.inspect(library));
    let launched = variants(&engine, |kind| kind.starts_with("node"));
    let (own, others): (Vec<_>, Vec<_>) =
        variants(&library, |kind| kind == "bundle").into_iter().partition(|(of, _)| of == ty);
    assert!(!launched.is_empty() && !own.is_empty() && !others.is_empty(), "{ty}: {engine} {library}");
    for variant in &launched {
        assert!(own.contains(variant), "{ty}: {variant:?} {own:?}");
        assert!(others.iter().all(|(_, code)| *code != variant.1), "{ty}: {variant:?} {others:?}");
    }
    let containers = members(&engine, "containers");
    let inside: Vec<Value> = containers
        .iter()
        .flat_map(|container| members(container, "code"))
        .map(|code| code["digest"].clone())
        .collect();
    for code in launched.iter().flat_map(|(_, it)| it[1].as_array().cloned().unwrap_or_default()) {
        assert!(inside.contains(&code[1]), "{ty}: {code} {inside:?}");
    }
}

#[test]
fn kernels_of_four_compilers_become_the_same_plugin() {
    let Some(made) = Made::new() else { return };
    for ty in ["f32", "f16"] {
        let launches = COMPILERS.map(|compiler| evaluated(&made, compiler, ty));
        assert_eq!(launches[0]["arguments"].as_array().map(Vec::len), Some(14), "{}", launches[0]);
        for (compiler, launch) in COMPILERS.iter().zip(&launches) {
            assert_eq!(launch, &launches[0], "{compiler}, {ty}");
        }
    }
    for compiler in COMPILERS {
        succeeded(&made.cubinder(&["check"]).arg(made.manifest(compiler)).output().unwrap());
        for form in FORMS {
            let output = made.scene.path(&format!("{compiler}-{}", form.folder()));
            let mut command =
                made.cubinder(&["compile", "--name", compiler, "--target", "sm_80,sm_89,sm_90", "--out-dir"]);
            command
                .arg(&output)
                .arg(made.manifest(compiler))
                .args((form == Form::Embedded).then_some("--embed"));
            succeeded(&command.output().unwrap());
            let ops = output.join(format!("lib{compiler}.so"));
            let code = output.join(format!("lib{compiler}-code.so"));
            let embedded = form == Form::Embedded;
            let steps = ["f32", "f16"].map(|ty| {
                let model = made.scene.path(&format!("{compiler}-{}-{ty}.onnx", form.folder()));
                let nodes = [pad(&json!({"pads": [1, 1, 2, 2], "aot": 1}))];
                let serialize = if embedded { vec![code.clone()] } else { Vec::new() };
                [
                    json!({"do": "model", "path": model, "nodes": nodes, "type": ty, "shape": [2, 3, 8, 8]}),
                    json!({"do": "build", "onnx": model, "output": model.with_extension("plan"), "serialize": serialize}),
                ]
            });
            let steps: Vec<Value> = [load(&ops)].into_iter().chain(steps.into_iter().flatten()).collect();
            for answer in made.scene.run(&steps) {
                assert!(answer.members["ok"] != json!(false), "{compiler}: {:?}", answer.log);
            }
            for ty in ["f32", "f16"] {
                let plan = made.scene.path(&format!("{compiler}-{}-{ty}.plan", form.folder()));
                has_code_of(&made.scene, &plan, &ops, ty);
            }
        }
    }
}

#[test]
fn tritons_own_output_is_imported() {
    let Some(made) = Made::new() else { return };
    let mut command =
        made.cubinder(&["import", "triton", "cache", "--kernel", "circ_pad", "--constant", "BLOCK=256"]);
    command.args(["-o", "imported.toml"]);
    succeeded(&command.output().unwrap());
    let text = std::fs::read_to_string(made.folder.path().join("imported.toml")).unwrap();
    for part in [
        "T = [\"f16\", \"f32\"]",
        "\"count: i32\"",
        "\"global_scratch: u64\"",
        "block = [128]",
        "BLOCK == 256",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let checked = made.cubinder(&["check", "imported.toml"]).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(said.contains("VALUE_OF_n0"), "{said}");
}

struct Imported {
    kernel: &'static str,
    attributes: Value,
    targets: &'static str,
    cases: &'static [(&'static [&'static str], u64, u64, u64)],
}

fn imported() -> [Imported; 3] {
    [
        // 1 for contiguous neighbours, 2 for others.
        Imported {
            kernel: "sum_along",
            attributes: json!({"axis": 1, "aot": 1}),
            targets: "sm_80,sm_89,sm_90",
            cases: &[
                (&["--shape", "x=4x6x300"], 1, 24, 128),
                (&["--shape", "x=4x6x300", "--attr", "axis=2"], 1, 24, 128),
                (&["--shape", "x=4x6x1", "--attr", "axis=1"], 1, 4, 128),
                (&["--shape", "x=4x6x300", "--attr", "axis=1"], 2, 1200, 128),
                (&["--shape", "x=4x6x300", "--attr", "axis=-3"], 2, 1800, 128),
            ],
        },
        Imported {
            kernel: "clip",
            attributes: json!({"least": -1.0, "most": 2.0, "aot": 1}),
            targets: "sm_80,sm_89,sm_90",
            cases: &[
                (&["--shape", "x=4096", "--attr", "least=-1", "--attr", "most=2"], 1, 8, 64),
                (&["--shape", "x=4097", "--attr", "least=-1", "--attr", "most=2"], 2, 5, 256),
            ],
        },
        // 1024 elements are a cluster of two blocks.
        Imported {
            kernel: "affine",
            attributes: json!({"factor": 2.0, "shift": -1.0, "aot": 1}),
            targets: "sm_90",
            cases: &[(&["--shape", "x=2049", "--attr", "factor=2", "--attr", "shift=-1"], 1, 6, 128)],
        },
    ]
}

#[test]
fn tritons_kernels_are_imported_and_built() {
    let Some(made) = Made::new() else { return };
    let mut command = Command::new(&made.python);
    command.arg("complete.py").arg(&made.scene.compiler).current_dir(made.folder.path());
    succeeded(&command.output().unwrap());
    for Imported { kernel, attributes, targets, cases } in imported() {
        succeeded(&made.cubinder(&["check"]).arg(made.manifest(kernel)).output().unwrap());
        for (given, variant, grid, block) in cases {
            let report = evaluation(&made, kernel, given);
            let variants = report["variants"].as_array().unwrap_or_else(|| panic!("{report}"));
            let chosen: Vec<u64> = variants
                .iter()
                .filter(|variant| variant["chosen"] == json!(true))
                .filter_map(|variant| variant["id"].as_u64())
                .collect();
            assert_eq!(chosen, [*variant], "{kernel} {given:?}");
            let launch = &report["launches"][0];
            assert_eq!(launch["grid"], json!([grid, 1, 1]), "{kernel} {given:?}");
            assert_eq!(launch["block"], json!([block, 1, 1]), "{kernel} {given:?}");
            let cluster = if kernel == "affine" { json!([2, 1, 1]) } else { Value::Null };
            assert_eq!(launch["cluster"], cluster, "{kernel} {given:?}");
        }
        for form in FORMS {
            let output = made.scene.path(&format!("{kernel}-{}", form.folder()));
            let mut command = made.cubinder(&["compile", "--name", kernel, "--target", targets, "--out-dir"]);
            command
                .arg(&output)
                .arg(made.manifest(kernel))
                .args((form == Form::Embedded).then_some("--embed"));
            succeeded(&command.output().unwrap());
            let ops = output.join(format!("lib{kernel}.so"));
            let code = output.join(format!("lib{kernel}-code.so"));
            let serialize = if form == Form::Embedded { vec![code] } else { Vec::new() };
            let mut steps = vec![load(&ops)];
            let plans =
                ["f32", "f16"].map(|ty| made.scene.path(&format!("{kernel}-{}-{ty}.plan", form.folder())));
            for (ty, plan) in ["f32", "f16"].into_iter().zip(&plans) {
                let model = plan.with_extension("onnx");
                let nodes = [node(kernel, kernel, &attributes)];
                steps.push(
                    json!({"do": "model", "path": model, "nodes": nodes, "type": ty, "shape": [4, 6, 300]}),
                );
                steps.push(json!({"do": "build", "onnx": model, "output": plan, "serialize": serialize}));
            }
            for answer in made.scene.run(&steps) {
                assert!(answer.members["ok"] != json!(false), "{kernel}: {:?}", answer.log);
            }
            for (ty, plan) in ["f32", "f16"].into_iter().zip(&plans) {
                has_code_of(&made.scene, plan, &ops, ty);
            }
        }
    }
}
