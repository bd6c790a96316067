//! `cubinder run` and `cubinder compare` with a stand-in for TensorRT-RTX and the stand-in driver.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use cubinder_expr::Value as ElementValue;
use cubinder_model::container::{self, Container};
use cubinder_model::{Bundle, Node, NodeReference, ShortDigest};
use cubinder_node::trial::{Array, Number, npy};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{self, Run, finish, root};
use crate::engine_build;
use cubinder_tests::fake_driver::{self, Age};

struct Scene {
    folder: TempDir,
    runtime_library: PathBuf,
}

impl Scene {
    fn new() -> Option<Scene> {
        command::command(&[])?;
        let folder = tempfile::tempdir().unwrap();
        let runtime_library = std::env::var_os("CUBINDER_RUNTIME_LIBRARY")?.into();
        let scene = Scene { folder, runtime_library };
        let x = json!({"name": "x", "mode": "INPUT", "type": "FLOAT", "shape": [-1, 8], "profile": [[1, 8], [4, 8], [16, 8]]});
        let y = json!({"name": "y", "mode": "OUTPUT", "type": "FLOAT", "shape": [-1, 8], "like": "x"});
        scene.engine("model.plan", &json!({"function": "scale", "tensors": [x, y]}), &[]);
        scene.engine("wrong.plan", &json!({"function": "wrong", "tensors": [x, y]}), &[]);
        scene.engine("uncaptured.plan", &json!({"function": "scale", "tensors": [x, y], "runs": 1}), &[]);
        let static_x = json!({"name": "x", "mode": "INPUT", "type": "FLOAT", "shape": [2, 8]});
        let found = json!({"name": "y", "mode": "OUTPUT", "type": "FLOAT", "shape": [-1]});
        scene.engine("found.plan", &json!({"function": "positive", "tensors": [static_x, found]}), &[]);
        let size = json!({"name": "size", "mode": "INPUT", "type": "INT64", "shape": [1], "location": "HOST", "values": [[1], [3], [4]]});
        scene.engine("resize.plan", &json!({"function": "resize", "tensors": [static_x, size, y]}), &[]);
        let n = json!({"name": "n", "mode": "OUTPUT", "type": "INT32", "shape": [-1, 8], "like": "x"});
        scene.engine("two.plan", &json!({"function": "two", "tensors": [x, y, n], "warning": "slow"}), &[]);
        fs::write(scene.path("other.plan"), "not a plan").unwrap();
        fs::write(scene.path("reference.py"), REFERENCE).unwrap();
        Some(scene)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn engine(&self, name: &str, engine: &Value, containers: &[Vec<u8>]) {
        let mut engine = engine.clone();
        let needs = engine["needs"].take();
        engine["needs"] = if needs.is_null() { json!([]) } else { needs };
        let plan = [format!("{engine}\n").into_bytes(), containers.concat()].concat();
        fs::write(self.path(name), plan).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command::command(arguments).expect("as before");
        let own = root().join("tests/clients/stand-in");
        let path = std::env::var("CUBINDER_TEST_PYTHONPATH").unwrap();
        command.env("PYTHONPATH", format!("{}:{path}", own.display()));
        command.env("CUBINDER_RUNTIME_LIBRARY", &self.runtime_library).env("PYTHONDONTWRITEBYTECODE", "1");
        for name in ["TENSORRT_RTX_HOME", "TENSORRT_HOME", "VIRTUAL_ENV"] {
            command.env_remove(name);
        }
        command.env("PATH", "/usr/bin:/bin").current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        finish(&mut self.command(arguments))
    }

    fn plain(&self, text: &str) -> String {
        let python = std::env::var("CUBINDER_TEST_PYTHON").unwrap();
        let folder = self.folder.path().display().to_string();
        let library = self.runtime_library.display().to_string();
        let names = [(folder, "[FOLDER]"), (library, "[LIBRARY]"), (python, "[PYTHON]")];
        names.iter().fold(text.to_owned(), |text, (path, name)| text.replace(path.as_str(), name))
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn floats(&self, name: &str, shape: &[i64], numbers: &[f64]) {
        let numbers = numbers.iter().copied().map(Number::Float);
        let array = Array::of_numbers(cubinder_expr::DataType::F32, shape.to_vec(), numbers).unwrap();
        fs::write(self.path(name), npy::write(&array).unwrap()).unwrap();
    }
}

const REFERENCE: &str = "
import numpy

def scale(x):
    return x * 2

def pair(x):
    return x * 2, x.astype(numpy.int32)

def named(x):
    return {'y': x * 2}

def flat(x):
    return (x * 2).ravel()

def broken(x):
    raise ValueError('no')

def scaled(x, factor, mode):
    assert mode == 'double'
    return x * numpy.float32(factor)
";

fn node(bundle: &Bundle, pads: i64) -> Vec<u8> {
    container::write_node(&Node {
        producer: bundle.producer.clone(),
        attributes: vec![ElementValue::Array(vec![ElementValue::Int(pads); 8])],
        input_ranks: None,
        workspace_bytes: None,
        code: bundle.code.clone(),
        plugin: bundle.plugins[0].clone(),
    })
}

fn reference(bundle: ShortDigest) -> Vec<u8> {
    container::write_node_reference(&NodeReference {
        workspace_bytes: None,
        bundle,
        plugin: 0,
        attributes: vec![],
        row: None,
        input_ranks: None,
    })
}

#[test]
fn an_engine_runs_with_random_inputs_and_with_files() {
    let Some(scene) = Scene::new() else { return };
    let random = scene.run(&["run", "model.plan", "--output", "out.npz"]);
    random.assert_code(0);
    assert_eq!(random.stderr, "");
    let again = scene.run(&["run", "model.plan", "--seed", "0", "-o", "again.npz"]);
    assert_eq!(fs::read(scene.path("out.npz")).unwrap(), fs::read(scene.path("again.npz")).unwrap());
    assert_eq!(random.stdout.replace("out.npz", "again.npz"), again.stdout);
    let other = scene.run(&["run", "model.plan", "--seed", "1", "--shape", "x=2x8"]);
    scene.floats("x.npy", &[1, 8], &[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN, 7.0, -8.5]);
    let file = scene.run(&["run", "model.plan", "--input", "x=x.npy"]);
    let shapes = scene.run(&["run", "resize.plan"]);
    let found = scene.run(&["run", "found.plan"]);
    let [x, y] = [("x", "INPUT"), ("y", "OUTPUT")]
        .map(|(name, mode)| json!({"name": name, "mode": mode, "type": "FLOAT", "shape": []}));
    scene.engine("scalar.plan", &json!({"function": "scale", "tensors": [x, y]}), &[]);
    let scalar = scene.run(&["run", "scalar.plan"]);
    let two = scene.run(&["run", "two.plan"]);
    let all = [random, other, file, shapes, found, scalar, two].map(|run| {
        run.assert_code(0);
        run.stdout + &run.stderr
    });
    insta::assert_snapshot!("ran", scene.plain(&all.join("\n")));
}

#[test]
fn the_page_shows_what_an_engine_prints() {
    let Some(scene) = Scene::new() else { return };
    let [x, y] = [("x", "INPUT"), ("y", "OUTPUT")]
        .map(|(name, mode)| json!({"name": name, "mode": mode, "type": "FLOAT", "shape": [4, 1024]}));
    scene.engine("model.plan", &json!({"function": "scale", "tensors": [x, y]}), &[]);
    let run = scene.run(&["run", "model.plan"]);
    let table = run.stdout.split_once('\n').unwrap().1;
    let page = fs::read_to_string(root().join("docs/run.md")).unwrap();
    assert!(page.contains(table), "docs/run.md lacks:\n{table}");
}

#[test]
fn the_bindings_of_tensorrt_rtx_reject_what_is_not_a_plan() {
    let Some(scene) = engine_build::Scene::new() else { return };
    fs::write(scene.path("other.plan"), [b'x'; 4096]).unwrap();
    let fails = |command: &mut Command, cause: &str| {
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(cause) && stderr.contains("help: "), "{stderr}");
    };
    let mut command = scene.command(&["run", "other.plan"]);
    fails(&mut command, "the CUDA driver is missing: libcuda.so.1");
    // Sufficient up to the plan's header.
    let driver = fake_driver::driver_folder(Age::New).unwrap().display().to_string();
    let set = |(name, value): (&OsStr, Option<&OsStr>)| {
        (name == "LD_LIBRARY_PATH").then(|| value.unwrap_or_default().to_string_lossy().into_owned())
    };
    let libraries = command.get_envs().find_map(set).unwrap_or_default();
    command.env("LD_LIBRARY_PATH", format!("{driver}:{libraries}"));
    fails(&mut command, "TensorRT-RTX cannot run `other.plan`: the file is not an engine of this TensorRT");
}

#[test]
fn outputs_of_one_run_are_inputs_and_expectations_of_others() {
    let Some(scene) = Scene::new() else { return };
    scene.run(&["run", "model.plan", "-o", "out.npz"]).assert_code(0);
    let same = scene.run(&["compare", "model.plan", "--expect", "out.npz"]);
    same.assert_code(0);
    assert!(same.stdout.ends_with("ok      y: equal\n"), "{}", same.stdout);
    scene.run(&["compare", "model.plan", "--seed", "1", "--expect", "out.npz"]).assert_code(1);
    let own = scene.run(&["run", "model.plan", "--input", "x=out.npz:y", "-o", "twice.npz"]);
    own.assert_code(0);
    let unknown = scene.run(&["run", "model.plan", "--inputs", "out.npz"]);
    assert!(unknown.stderr.contains("unknown tensor `x`; it contains `y`"), "{}", unknown.stderr);
}

#[test]
fn an_output_replaces_no_file_that_is_read() {
    let Some(scene) = Scene::new() else { return };
    scene.floats("x.npy", &[2, 8], &[1.0; 16]);
    let library = scene.path("libcubinder.so");
    fs::copy(&scene.runtime_library, &library).unwrap();
    scene.run(&["run", "model.plan", "-o", "out.npz"]).assert_code(0);
    fs::write(scene.path("model.onnx"), "model").unwrap();
    std::os::unix::fs::symlink("out.npz", scene.path("link.npz")).unwrap();
    for (output, arguments) in [
        ("model.plan", &["run", "model.plan"][..]),
        ("x.npy", &["run", "model.plan", "--input", "x=x.npy"]),
        ("out.npz", &["run", "model.plan", "--inputs", "./out.npz"]),
        ("libcubinder.so", &["run", "model.plan", "--plugins", "libcubinder.so"]),
        ("out.npz", &["compare", "model.plan", "--expect", "out.npz"]),
        ("link.npz", &["compare", "model.plan", "--expect", "out.npz"]),
        ("reference.py", &["compare", "model.plan", "--reference", "reference.py:scale"]),
        ("model.onnx", &["compare", "model.plan", "--onnx", "model.onnx"]),
        (
            "reference.py",
            &["compare", "model.plan", "--onnx", "model.onnx", "--op", "a::b=reference.py:scale"],
        ),
    ] {
        let before = fs::read(scene.path(output)).unwrap();
        let run = scene.run(&[arguments, &["--output", output]].concat());
        run.assert_code(1);
        let error = format!("error: the output `{output}` is a file that this command reads\n");
        assert!(run.stderr.starts_with(&error), "{arguments:?}: {}", run.stderr);
        assert!(fs::read(scene.path(output)).unwrap() == before, "{arguments:?}");
    }
    // Expected values are opened first.
    let broken = scene.run(&["compare", "other.plan", "--expect", "x.npy"]);
    assert!(broken.stderr.starts_with("error: `--expect x.npy`: not a `.npz` file"), "{}", broken.stderr);
}

#[test]
fn times_are_measured_with_and_without_a_graph() {
    let Some(scene) = Scene::new() else { return };
    for more in [&[][..], &["--cuda-graph"]] {
        let run = scene.run(&[&["run", "model.plan", "--iterations", "20", "--json"], more].concat());
        run.assert_code(0);
        let times = &run.report()["microseconds"];
        let [least, median, p99] = ["min", "median", "p99"].map(|name| times[name].as_f64().unwrap());
        assert!(0.0 <= least && least <= median && median <= p99, "{times}");
        assert_eq!((&times["iterations"], &times["cuda_graph"]), (&json!(20), &json!(!more.is_empty())));
    }
    let text = scene.run(&["run", "model.plan", "--iterations", "20", "--cuda-graph"]).stdout;
    assert!(text.contains("GPU time: median ") && text.contains("(20 runs, as a CUDA graph)"), "{text}");
}

#[test]
fn the_libraries_that_nodes_need_are_loaded() {
    let Some(scene) = Scene::new() else { return };
    let base: Value = fs::read(scene.path("model.plan"))
        .map(|plan| serde_json::from_slice(plan.split(|byte| *byte == b'\n').next().unwrap()).unwrap())
        .unwrap();
    let manifest = root().join("tests/data/run/circ_pad_plugin.toml");
    let compile = |output: &str, target: &str| {
        let manifest = manifest.to_str().unwrap();
        let run =
            scene.run(&["compile", manifest, "--embed", "--target", target, "--quiet", "--out-dir", output]);
        run.assert_code(0);
        let library = scene.path(output).join("libcirc_pad_plugin-code.so");
        let bytes = fs::read(&library).unwrap();
        let attached = cubinder_library::read_bytes(&library, &bytes).unwrap().unwrap();
        let bundle = bytes[attached.range.start as usize..attached.range.end as usize].to_vec();
        let found = container::read(&bundle).unwrap();
        let Container::Bundle(content) = found.container else { panic!("not a bundle") };
        (found.digest.shortened(), bundle, content)
    };
    let (digest, bundle, content) = compile(".", "sm_89");
    let node = |pads| node(&content, pads);
    let engine = |name: &str, needs: &[&str], containers: &[Vec<u8>]| {
        let mut engine = base.clone();
        engine["needs"] = json!(needs);
        scene.engine(name, &engine, containers);
    };
    // TensorRT stores each container twice.
    engine("nodes.plan", &["libcubinder.so"], &[node(1), node(1), node(2)]);
    engine("code.plan", &["libcirc_pad_plugin-code.so"], &[reference(digest)]);
    engine("carried.plan", &[], &[reference(digest), bundle]);
    let code = scene.path("libcirc_pad_plugin-code.so").display().to_string();
    let library = scene.runtime_library.display().to_string();
    let mut text = String::new();
    for arguments in [
        &["nodes.plan"][..],
        &["nodes.plan", "--plugins", &library],
        &["code.plan"],
        &["code.plan", "-p", &code],
        &["carried.plan", "--verbose"],
        &["model.plan", "--plugins", "libcirc_pad_plugin.so"],
        &["model.plan", "--allow-host-code", "--verbose"],
    ] {
        let run = scene.run(&[&["run"], arguments].concat());
        run.assert_code(0);
        text.push_str(&format!("# {}\n{}{}\n", arguments.join(" "), run.stderr, run.stdout));
    }
    let (other, ..) = compile("other", "sm_80");
    engine("other-code.plan", &[], &[reference(other)]);
    for arguments in [&["other-code.plan"][..], &["nodes.plan", "--plugins", "none.so"]] {
        let run = scene.run(&[&["run"], arguments].concat());
        run.assert_code(1);
        text.push_str(&format!("# {}\n{}\n", arguments.join(" "), run.stderr));
    }
    let mut missing = scene.command(&["run", "nodes.plan"]);
    let missing = finish(missing.env("CUBINDER_RUNTIME_LIBRARY", "/nowhere.so"));
    missing.assert_code(1);
    text.push_str(&format!("# without libcubinder.so\n{}", missing.stderr));
    let text = text.replace(&digest.to_string(), "[DIGEST]").replace(&other.to_string(), "[OTHER]");
    insta::assert_snapshot!("libraries", scene.plain(&text));
}

#[test]
fn outputs_are_compared_with_functions_models_and_files() {
    let Some(scene) = Scene::new() else { return };
    let model = "from onnx import TensorProto, helper, save\n\
        x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ['n', 8]) for n in 'xy')\n\
        nodes = [helper.make_node('scale', ['x'], ['t'], domain='custom', factor=4.0, mode='double', aot=1, plugin_version='1'),\n\
                 helper.make_node('Mul', ['t', 'half'], ['y'])]\n\
        half = helper.make_tensor('half', TensorProto.FLOAT, [], [0.5])\n\
        graph = helper.make_graph(nodes, 'g', [x], [y], [half])\n\
        opsets = [helper.make_opsetid('', 17), helper.make_opsetid('custom', 1)]\n\
        save(helper.make_model(graph, opset_imports=opsets, ir_version=8), 'model.onnx')\n";
    let mut python = Command::new(std::env::var("CUBINDER_TEST_PYTHON").unwrap());
    python.env("PYTHONPATH", std::env::var("CUBINDER_TEST_PYTHONPATH").unwrap());
    assert!(python.args(["-c", model]).current_dir(scene.folder.path()).status().unwrap().success());
    let mut text = String::new();
    let mut compare = |code: i32, plan: &str, arguments: &[&str]| {
        let run = scene.run(&[&["compare", plan], arguments].concat());
        run.assert_code(code);
        let verdicts: Vec<&str> = run.stdout.lines().skip_while(|line| !line.starts_with("output")).collect();
        let verdicts: Vec<&str> = verdicts.into_iter().filter(|line| !line.starts_with("output")).collect();
        text.push_str(&format!(
            "# {plan} {}\n{}{}\n\n",
            arguments.join(" "),
            run.stderr,
            verdicts.join("\n")
        ));
    };
    compare(0, "model.plan", &["--reference", "reference.py:scale"]);
    compare(0, "model.plan", &["--reference", "reference.py:named"]);
    compare(0, "two.plan", &["--reference", "reference.py:pair"]);
    compare(0, "model.plan", &["--onnx", "model.onnx", "--op", "custom::scale=reference.py:scaled"]);
    compare(1, "wrong.plan", &["--reference", "reference.py:scale"]);
    compare(0, "wrong.plan", &["--reference", "reference.py:scale", "--atol", "0.5"]);
    compare(0, "wrong.plan", &["--reference", "reference.py:scale", "--tolerance", "y=0.3:0"]);
    compare(1, "model.plan", &["--reference", "reference.py:flat"]);
    compare(1, "two.plan", &["--reference", "reference.py:named"]);
    compare(1, "two.plan", &["--reference", "reference.py:scale"]);
    compare(1, "model.plan", &["--reference", "reference.py:broken"]);
    compare(2, "model.plan", &["--reference", "reference.py:scal"]);
    compare(1, "model.plan", &["--onnx", "none.onnx"]);
    compare(2, "model.plan", &["--onnx", "none.onnx", "--op", "scale"]);
    compare(1, "model.plan", &["--expect", "none.npz"]);
    compare(1, "model.plan", &["--reference", "reference.py:scale", "--tolerance", "z=1:1"]);
    compare(2, "model.plan", &["--reference", "reference.py:scale", "--tolerance", "y=1"]);
    compare(2, "model.plan", &["--reference", "reference.py:scale", "--tolerance", "y=1e999:0"]);
    for number in ["inf", "1e999", "NaN", "-1"] {
        compare(2, "model.plan", &["--reference", "reference.py:scale", &format!("--atol={number}")]);
    }
    compare(2, "model.plan", &[]);
    insta::assert_snapshot!("compared", scene.plain(&text));
    let without = scene.run(&["compare", "model.plan", "--onnx", "model.onnx"]);
    without.assert_code(1);
    assert!(without.stderr.contains("compute each plugin node with `--op "), "{}", without.stderr);
    assert!(without.stderr.contains("custom"), "{}", without.stderr);
}

#[test]
fn pytorch_functions_are_references() {
    let pytorch = std::env::var_os("CUBINDER_TEST_PYTORCH").map(PathBuf::from);
    let (Some(scene), Some(pytorch)) = (Scene::new(), pytorch) else {
        return cubinder_skip::skip("`CUBINDER_TEST_PYTORCH` is not set");
    };
    let text = "import torch\n\ndef scale(x):\n    x = torch.from_numpy(x)\n    return (x * 2).requires_grad_()\n\n\
                def half(x):\n    return (torch.from_numpy(x) * 2).bfloat16()\n";
    fs::write(scene.path("torch_reference.py"), text).unwrap();
    let folder = pytorch.display();
    let script =
        format!("unset PYTHONPATH\nLD_LIBRARY_PATH='{folder}/stand-ins' exec '{folder}/bin/python' \"$@\"");
    let python = scene.program("python-with-torch", &script);
    let compare = |function: &str, more: &[&str]| {
        let arguments =
            ["compare", "model.plan", "--reference", function, "--python", python.to_str().unwrap()];
        scene.run(&[&arguments[..], more].concat())
    };
    compare("torch_reference.py:scale", &[]).assert_code(0);
    compare("torch_reference.py:half", &["--rtol", "1e-2"]).assert_code(0);
    compare("torch_reference.py:half", &[]).assert_code(1);
}

#[test]
fn every_mistake_has_a_cause_and_a_remedy() {
    let Some(scene) = Scene::new() else { return };
    let mut text = String::new();
    let mut fails = |name: &str, run: Run| {
        assert!(matches!(run.code, Some(1 | 2)), "{name}: {:?} {}{}", run.code, run.stdout, run.stderr);
        assert_eq!(run.stdout, "", "{name}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains("help: "), "{name}: {}", run.stderr);
        text.push_str(&format!("# {name}\n{}\n", scene.plain(&run.stderr)));
    };
    let x = json!({"name": "x", "mode": "INPUT", "type": "FP4", "shape": [2]});
    let y = json!({"name": "y", "mode": "OUTPUT", "type": "FLOAT", "shape": [2], "format": "CHW32"});
    scene.engine("types.plan", &json!({"function": "scale", "tensors": [x, y]}), &[]);
    let x = json!({"name": "x", "mode": "INPUT", "type": "FLOAT", "shape": [2]});
    let y = json!({"name": "y", "mode": "OUTPUT", "type": "FLOAT", "shape": [2]});
    scene.engine("plugin.plan", &json!({"function": "scale", "tensors": [x, y], "needs": ["Scale"]}), &[]);
    scene.floats("x.npy", &[2, 4], &[0.0; 8]);
    fs::write(scene.path("broken.npy"), "none").unwrap();
    fails("no plan", scene.run(&["run", "none.plan"]));
    fails("not a plan", scene.run(&["run", "other.plan"]));
    fails("an unknown input", scene.run(&["run", "model.plan", "--input", "X=x.npy", "--shape", "z=1x8"]));
    fails("no file", scene.run(&["run", "model.plan", "--input", "x"]));
    fails("a text file", scene.run(&["run", "model.plan", "--input", "x=x.txt"]));
    fails("a file twice", scene.run(&["run", "model.plan", "--input", "x=x.npy", "--input", "x=x.npy"]));
    fails("a missing file", scene.run(&["run", "model.plan", "--input", "x=none.npy"]));
    fails("a broken file", scene.run(&["run", "model.plan", "--input", "x=broken.npy"]));
    fails("a file of another shape", scene.run(&["run", "model.plan", "--input", "x=x.npy"]));
    fails("a file and a shape", scene.run(&["run", "model.plan", "--input", "x=x.npy", "--shape", "x=1x8"]));
    fails("a shape out of range", scene.run(&["run", "model.plan", "--shape", "x=17x8"]));
    fails("another static shape", scene.run(&["run", "found.plan", "--shape", "x=3x8"]));
    fails("no shape", scene.run(&["run", "model.plan", "--shape", "x=axb"]));
    fails("a type and a format", scene.run(&["run", "types.plan"]));
    fails("a missing plugin", scene.run(&["run", "plugin.plan"]));
    fails(
        "a graph that cannot be captured",
        scene.run(&["run", "uncaptured.plan", "--iterations", "1", "--cuda-graph"]),
    );
    fails(
        "a graph with a shape that depends on data",
        scene.run(&["run", "found.plan", "--iterations", "1", "--cuda-graph"]),
    );
    fails("a graph without runs", scene.run(&["run", "model.plan", "--cuda-graph"]));
    fails("a folder as output", scene.run(&["run", "model.plan", "--output", "."]));
    let mut no_driver = scene.command(&["run", "model.plan"]);
    fails("no driver", finish(no_driver.env_remove("LD_LIBRARY_PATH")));
    let program = scene.program("trtexec", "");
    fails("only a program", scene.run(&["run", "model.plan", "--with", program.to_str().unwrap()]));
    insta::assert_snapshot!("mistakes", text);
}

#[test]
fn programs_read_the_result() {
    let Some(scene) = Scene::new() else { return };
    let page = fs::read_to_string(root().join("docs/json.md")).unwrap();
    let section = page.split("\n## `run` and `compare`").nth(1).unwrap().split("\n## ").next().unwrap();
    let arguments = ["two.plan", "--json", "--iterations", "2", "--output", "out.npz"];
    let ran = scene.run(&[&["run"], &arguments[..]].concat());
    ran.assert_code(0);
    let reference = ["--reference", "reference.py:named"];
    let mut compared = scene.run(&[&["compare"], &arguments[..], &reference].concat()).report();
    let mut wrong =
        scene.run(&["compare", "wrong.plan", "--json", "--reference", "reference.py:scale"]).report();
    let shape = scene.run(&["compare", "model.plan", "--json", "--reference", "reference.py:flat"]).report();
    fn fields(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(object) => object.iter().for_each(|(name, value)| {
                found.push(name.clone());
                // Described with `test`.
                if name != "elements" {
                    fields(value, found);
                }
            }),
            Value::Array(list) => list.iter().for_each(|value| fields(value, found)),
            _ => {}
        }
    }
    for report in [&ran.report(), &compared, &wrong, &shape] {
        let mut found = Vec::new();
        fields(report, &mut found);
        for field in found {
            let is_common = ["result", "errors", "warnings", "product", "version", "path", "module"];
            let is_common = is_common.contains(&field.as_str());
            assert!(is_common || section.contains(&format!("`{field}`")), "docs/json.md lacks `{field}`");
        }
    }
    for name in ["median", "p99", "min"] {
        compared["microseconds"][name] = 0.into();
    }
    let comparison = wrong["comparisons"][0].take();
    let text = [compared, comparison].map(|value| serde_json::to_string_pretty(&value).unwrap());
    insta::assert_snapshot!("json", scene.plain(&text.join("\n")));
    let failed = scene.run(&["run", "none.plan", "--json"]);
    assert_eq!((failed.code, &failed.report()["result"]), (Some(1), &json!("failed")));
}
