//! From manifests to engines with TensorRT-RTX's registry, parser and builder, without a GPU.

use std::path::Path;

use crate::support::{self, Case, FORMS, Form, PLUGINS, Scene, add, load, pad, unload};
use cubinder_model::container;
use cubinder_tests::application::Answer;
use serde_json::{Value, json};

fn creators() -> Value {
    json!({"do": "creators"})
}

fn ours(answer: &Answer) -> Vec<String> {
    let names = answer.texts("creators").into_iter();
    names.filter(|name| name.starts_with("sample::") || name.starts_with("cubinder::")).collect()
}

fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let mut rest = items.to_vec();
        let item = rest.remove(first);
        permutations(&rest).into_iter().map(move |mut order| {
            order.insert(0, item.clone());
            order
        })
    };
    (0..items.len()).flat_map(with_first).collect()
}

#[test]
fn libraries_live_together_in_any_order() {
    let Some(scene) = Scene::new() else { return };
    // Older versions' creators only reject engines.
    let version = container::FORMAT_VERSION;
    let generic = ["cubinder::Kernel 1".to_owned(), format!("cubinder::Kernel{version} {version}")];
    let mut all: Vec<String> =
        generic.into_iter().chain([scene.kernel("pad"), scene.kernel("add")]).collect();
    all.extend(PLUGINS.map(|(_, plugin)| format!("sample::{plugin} 1")));
    all.sort();
    for form in FORMS {
        let mut libraries = vec![scene.generic.clone()];
        for (name, _) in PLUGINS {
            libraries.extend([scene.ops(form, name), scene.code(name)]);
        }
        let orders = permutations(&libraries);
        assert_eq!(orders.len(), 120);
        let mut steps = Vec::new();
        for order in &orders {
            steps.extend(order.iter().map(|path| load(path)));
            steps.push(creators());
            steps.extend(order.iter().map(|path| unload(path)));
            steps.push(creators());
        }
        let answers = scene.run(&steps);
        for (order, answers) in orders.iter().zip(answers.chunks(12)) {
            for (path, answer) in order.iter().zip(answers) {
                assert!(answer.is_ok(), "{form:?}: {} in {order:?}: {:?}", path.display(), answer.log);
            }
            assert_eq!(ours(&answers[5]), all, "{form:?}: {order:?}");
            assert_eq!(ours(&answers[11]), [""; 0], "{form:?}: {order:?}, all unloaded");
        }
    }
}

#[test]
fn the_same_op_twice_is_refused_whole() {
    let Some(scene) = Scene::new() else { return };
    let pad = scene.ops(Form::Fields, "pad");
    let answers = scene.run(&[
        load(&pad),
        load(&scene.ops(Form::Embedded, "pad")),
        load(&pad),
        creators(),
        unload(&pad),
    ]);
    let taken: Vec<bool> = answers.iter().map(Answer::is_ok).take(3).collect();
    assert_eq!(taken, [true, false, false]);
    assert_eq!(ours(&answers[3]), ["sample::circ_pad_plugin 1"]);
}

#[test]
fn unloaded_libraries_leave_no_mapping() {
    let Some(scene) = Scene::new() else { return };
    let mut libraries = vec![scene.generic.clone()];
    for (name, _) in PLUGINS {
        libraries.extend([scene.ops(Form::Fields, name), scene.ops(Form::Embedded, name), scene.code(name)]);
    }
    let mapped = |path: &Path| json!({"do": "mapped", "part": path});
    let steps: Vec<Value> = libraries
        .iter()
        .flat_map(|path| {
            let mut steps = vec![load(path), mapped(path), unload(path)];
            (1..50).for_each(|_| steps.extend([load(path), unload(path)]));
            steps.push(mapped(path));
            steps
        })
        .collect();
    let answers = scene.run(&steps);
    for (path, answers) in libraries.iter().zip(answers.chunks(steps.len() / libraries.len())) {
        assert!(!answers[1].texts("mappings").is_empty(), "{} was never mapped", path.display());
        let loads = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(loads, 50, "{}", path.display());
        assert_eq!(answers.last().unwrap().texts("mappings"), [""; 0], "{}", path.display());
    }
}

fn of_kind<'a>(report: &'a Value, kind: &str) -> Vec<&'a Value> {
    report["containers"].as_array().unwrap().iter().filter(|container| container["kind"] == kind).collect()
}

fn code_of(report: &Value, plugin: &str, label: &str) -> Value {
    let containers = report["containers"].as_array().unwrap().iter();
    let mut plugins = containers.flat_map(|container| container["plugins"].as_array().unwrap());
    let plugin = plugins.find(|found| found["name"] == plugin).unwrap();
    let mut variants = plugin["variants"].as_array().unwrap().iter();
    variants.find(|variant| variant["label"] == label).unwrap()["code"].clone()
}

fn nodes(containers: &[&Value]) -> Vec<(String, String)> {
    let mut nodes: Vec<_> = containers
        .iter()
        .map(|container| {
            let plugins = container["plugins"].as_array().unwrap();
            assert_eq!(plugins.len(), 1, "{container}");
            let plugin = &plugins[0];
            let name =
                format!("{}::{}", plugin["namespace"].as_str().unwrap(), plugin["name"].as_str().unwrap());
            (name, plugin["attributes"].to_string())
        })
        .collect();
    nodes.sort();
    nodes
}

#[test]
fn engines_hold_the_code_that_was_compiled() {
    let Some(scene) = Scene::new() else { return };
    let mut steps = Vec::new();
    let cases: Vec<Case> = Case::all().collect();
    cases.iter().for_each(|case| steps.extend(case.steps(&scene)));
    let answers = scene.run(&steps);
    for (case, answers) in cases.iter().zip(answers.chunks(steps.len() / cases.len())) {
        let name = case.name();
        for answer in answers {
            let complaints =
                answer.log.iter().filter(|(severity, _)| severity == "ERROR" || severity == "WARNING");
            assert_eq!(complaints.collect::<Vec<_>>(), Vec::<&(String, String)>::new(), "{name}");
        }
        let shape = if case.dynamic { json!([-1, 3, -1, -1]) } else { json!([2, 3, 12, 13]) };
        for built in &answers[3..5] {
            assert!(built.is_ok(), "{name}: {:?}", built.log);
            assert_eq!(built.members["shape"], shape, "{name}");
        }
        let plan = std::fs::read(case.plan(&scene, 1)).unwrap();
        let again = std::fs::read(case.plan(&scene, 2)).unwrap();
        // TensorRT-RTX 1.7 numbers unknown sizes in varying order, also with C++ plugins.
        assert!(plan == again || case.dynamic, "{name}: built twice, two plans");
        assert_eq!(plan.len(), again.len(), "{name}");
        let containers = |run| scene.inspect(&case.plan(&scene, run))["containers"].clone();
        assert_eq!(containers(1), containers(2), "{name}: built twice, two sets of nodes");
        check_plan(&scene, case, &plan);
    }
}

fn check_plan(scene: &Scene, case: &Case, plan: &[u8]) {
    let name = case.name();
    let report = scene.inspect(&case.plan(scene, 1));
    assert_eq!(report["kind"], "engine", "{name}");
    assert_eq!(report["damaged"], json!([]), "{name}");
    let kind = if case.form == Form::Fields { "node" } else { "node reference" };
    let found = of_kind(&report, kind);
    let expected = [
        ("sample::circ_pad_plugin", json!([["pads", "[1, 1, 2, 2]"]])),
        ("sample::circ_pad_plugin", json!([["pads", "[3, 0]"]])),
        ("sample::elemwise_add_plugin", json!([["block_size", "256"]])),
    ];
    assert_eq!(
        nodes(&found),
        expected.map(|(name, attributes)| (name.to_owned(), attributes.to_string())),
        "{name}"
    );
    let label = format!("T={}", case.ty);
    for container in found {
        let plugin = &container["plugins"][0];
        let (library, op) = PLUGINS.into_iter().find(|(_, op)| plugin["name"] == *op).unwrap();
        let variants = plugin["variants"].as_array().unwrap();
        assert_eq!(variants.len(), 1, "{name}: a node has the variants of its types: {plugin}");
        let compiled = code_of(&scene.inspect(&scene.ops(case.form, library)), op, &label);
        assert_eq!(variants[0]["code"], compiled, "{name}");
        assert_eq!(compiled.as_array().unwrap().len(), 2, "{name}: one code object a target");
        if case.form == Form::Embedded {
            assert_eq!(container["refers_to"], scene.bundle(&scene.code(library))[..16], "{name}");
        }
    }
    let bundles: Vec<&str> =
        of_kind(&report, "bundle").iter().map(|bundle| bundle["digest"].as_str().unwrap()).collect();
    let mut libraries = PLUGINS.map(|(name, _)| scene.code(name)).to_vec();
    libraries.retain(|_| case.form == Form::Embedded);
    assert_eq!(bundles.len(), libraries.len(), "{name}");
    for library in libraries {
        assert!(bundles.contains(&scene.bundle(&library).as_str()), "{name}: {}", library.display());
        let library = std::fs::read(library).unwrap();
        assert!(
            plan.windows(library.len()).any(|part| part == library),
            "{name}: the library, byte for byte"
        );
    }
}

#[test]
fn what_a_plugin_refuses_is_in_the_log() {
    let Some(scene) = Scene::new() else { return };
    let eight = json!([1, 1, 1, 1, 1, 1, 1, 1]);
    let models = [
        ("odd pads", pad(&json!({"pads": [1, 1, 1], "aot": 1})), json!([4, 4])),
        ("overlong pads", pad(&json!({"pads": [1, 1, 1, 1, 1, 1], "aot": 1})), json!([4, 4])),
        ("negative pads", pad(&json!({"pads": [1, -1], "aot": 1})), json!([4, 4])),
        ("no pads", pad(&json!({"aot": 1})), json!([4, 4])),
        ("pads is a text", pad(&json!({"pads": "one", "aot": 1})), json!([4, 4])),
        ("pads is a float", pad(&json!({"pads": 1.5, "aot": 1})), json!([4, 4])),
        ("rank 0", pad(&json!({"pads": [], "aot": 1})), json!([])),
        ("an empty dimension", pad(&json!({"pads": [1, 1], "aot": 1})), json!([2, 0])),
        ("more pads than a rank of 8 has", pad(&json!({"pads": vec![1; 18], "aot": 1})), eight),
        ("block_size 0", add(&json!({"block_size": 0, "aot": 1})), json!([4, 4])),
        ("block_size 1025", add(&json!({"block_size": 1025, "aot": 1})), json!([4, 4])),
        ("block_size is a list", add(&json!({"block_size": [1, 2], "aot": 1})), json!([4, 4])),
        ("no block_size", add(&json!({"aot": 1})), json!([4, 4])),
    ];
    let model = scene.path("refused.onnx");
    let mut steps: Vec<Value> =
        PLUGINS.iter().map(|(name, _)| load(&scene.ops(Form::Fields, name))).collect();
    for (_, node, shape) in &models {
        steps.push(json!({"do": "model", "path": model, "nodes": [node], "shape": shape}));
        steps.push(json!({"do": "parse", "onnx": model}));
    }
    let answers = scene.run(&steps);
    let mut text = String::new();
    for ((what, ..), answers) in models.iter().zip(answers[2..].chunks(2)) {
        assert!(!answers[1].is_ok(), "{what}: the parser takes it");
        text.push_str(&format!("{what}\n"));
        let mut said = answers[1].said("sample::");
        said.dedup();
        said.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    let lacks = "missing attribute `pads` (`i32[]`), which has no default";
    assert!(
        text.contains(&format!("no pads\n  ERROR cubinder: sample::circ_pad_plugin `pad_1`: {lacks}\n")),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn attributes_of_every_type_come_from_onnx() {
    let Some(scene) = Scene::new() else { return };
    let said = scene.compile_manifest(Form::Fields, "attributes", "tests/data/run/attributes.toml");
    assert_eq!(said.matches("warning[").count(), said.matches("warning[C0701]").count(), "{said}");
    let tensor = |ty: &str, values: Value| json!({"tensor": ty, "values": values});
    let cases = [
        ("defaults", json!({"show": 1})),
        (
            "plain",
            json!({"show": 1, "tiny": -128, "small": 300, "count": 70000, "large": -5, "half": 0.1, "single": 0.1,
                   "double": 0.1, "mode": "reflect", "table": "größe", "axes": [0, -1], "halves": [0.1, 1.0], "scales": [0.1],
                   "flags": [1, 0], "modes": ["a", "", "b"]}),
        ),
        ("one for a list", json!({"show": 1, "axes": 7, "scales": 0.5, "flags": 1, "modes": "a"})),
        ("a list for one", json!({"show": [1], "tiny": [7], "single": [0.5], "mode": ["a"]})),
        ("empty", json!({"show": 1, "axes": [], "scales": [], "modes": [], "mode": "", "table": ""})),
        (
            "tensors",
            json!({"show": 1, "tiny": tensor("INT8", json!([-7])), "axes": tensor("INT32", json!([1, 2])),
                   "halves": tensor("FLOAT16", json!([0.5, -2.0])), "scales": tensor("DOUBLE", json!([0.1])),
                   "single": tensor("BFLOAT16", json!([0.5])), "flags": tensor("INT8", json!([1, 0]))}),
        ),
        (
            "strings that end empty, and bytes",
            json!({"show": 1, "modes": ["a", "", ""], "table": tensor("INT8", json!([-1, 0]))}),
        ),
        ("more than 32 bits are cut by the parser", json!({"show": 1, "large": 4_294_967_301_i64})),
        ("not an i8", json!({"tiny": 300})),
        ("not a boolean", json!({"show": 2})),
        ("beyond f16", json!({"half": 1e6})),
        ("two for one", json!({"mode": ["a", "b"]})),
        ("none for one", json!({"tiny": []})),
        ("a tensor that cannot be passed", json!({"axes": tensor("INT64", json!([1]))})),
        ("a tensor that looks like f16", json!({"scales": tensor("FLOAT16", json!([1.0]))})),
        ("an integer for a float", json!({"single": 1})),
        ("a float for bytes", json!({"table": 1.0})),
    ];
    let model = scene.path("attributes.onnx");
    let mut steps = vec![load(&scene.ops(Form::Fields, "attributes"))];
    for (_, attributes) in &cases {
        let node = support::node("attributes_plugin", "n", attributes);
        steps.push(json!({"do": "model", "path": model, "nodes": [node]}));
        steps.push(json!({"do": "parse", "onnx": model}));
    }
    let answers = scene.run(&steps);
    let mut text = String::new();
    for ((what, _), answers) in cases.iter().zip(answers[1..].chunks(2)) {
        assert!(!answers[1].is_ok(), "{what}: the parser takes it");
        let mut said = answers[1].said("sample::");
        said.dedup();
        text.push_str(&format!("{what}\n"));
        said.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn aot_keeps_its_meaning() {
    let Some(scene) = Scene::new() else { return };
    let model = scene.path("aot.onnx");
    let mut steps = vec![load(&scene.ops(Form::Fields, "pad"))];
    for attributes in
        [json!({"pads": [1, 1], "aot": 1}), json!({"pads": [1, 1]}), json!({"pads": [1, 1], "aot": 0})]
    {
        steps.push(json!({"do": "model", "path": model, "nodes": [pad(&attributes)]}));
        steps.push(json!({"do": "build", "onnx": model}));
    }
    let answers = scene.run(&steps);
    let built: Vec<&Answer> = answers[1..].iter().skip(1).step_by(2).collect();
    assert!(built.iter().all(|answer| answer.is_ok()));
    assert_eq!(built[0].said("aot"), [""; 0]);
    assert_eq!(built[1].said("`aot` = 0"), [""; 0], "absent requests nothing");
    let said = built[2].said("aot");
    assert_eq!(
        said,
        [
            "INFO cubinder: sample::circ_pad_plugin `pad_1`: `aot` = 0 has no effect: Cubinder always compiles kernels ahead of time"
        ]
    );
}

#[test]
fn a_damaged_library_is_refused() {
    let Some(scene) = Scene::new() else { return };
    for library in [scene.ops(Form::Fields, "pad"), scene.ops(Form::Embedded, "pad"), scene.code("pad")] {
        let report = scene.inspect(&library);
        let container = &report["containers"][0];
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let (start, length) = (number(&container["offsets"][0]), number(&container["bytes"]));
        let good = std::fs::read(&library).unwrap();
        // Magic, version, length, digest, model, code, last byte.
        let places = [0, 16, 24, 31, 40, 64, 72, 200, length / 2, length - 1];
        let damaged = places.map(|place| {
            let mut bytes = good.clone();
            bytes[start + place] ^= 0x10;
            let path = scene.path(&format!("damaged-{place}.so"));
            std::fs::write(&path, bytes).unwrap();
            path
        });
        let mut steps: Vec<Value> = damaged.iter().map(|path| load(path)).collect();
        steps.extend([creators(), load(&library), unload(&library)]);
        let answers = scene.run(&steps);
        for (place, answer) in places.iter().zip(&answers) {
            assert!(!answer.is_ok(), "byte {place} is not detected");
            let said = answer.said("the bundle in this plugin library");
            assert_eq!(said.len(), 1, "byte {place}: {:?}", answer.log);
            assert!(said[0].starts_with("ERROR "), "{said:?}");
        }
        assert_eq!(ours(&answers[places.len()]), [""; 0]);
        assert!(answers[places.len() + 1].is_ok(), "the undamaged library loads after them");
        let said = answers[8].said("the bundle in this plugin library").join("\n");
        assert!(said.contains("damaged: found the digest"), "{said}");
    }
}
