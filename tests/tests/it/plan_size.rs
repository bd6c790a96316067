//! Bytes per node in a plan, without TensorRT's own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::support::{Form, Scene, load, node, unload};
use cubinder_tests::{cxx, headers};
use serde_json::{Value, json};

const MOST: usize = 256;

fn empty_plugin(out: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("empty-plugin");
    let mut arguments = cxx::options(&headers::folder().unwrap(), headers::RTX_1_7);
    arguments.extend(["-O1", "-shared", "empty.cpp", "-o"].map(OsString::from));
    arguments.push(out.into());
    cxx::compile(&folder, &arguments).unwrap();
}

fn bytes_a_node(
    scene: &Scene,
    libraries: &[PathBuf],
    carried: &[PathBuf],
    op: &str,
    attributes: &Value,
) -> usize {
    let model = scene.path("chain.onnx");
    let mut steps: Vec<Value> = libraries.iter().map(|library| load(library)).collect();
    let counts = [10, 1000];
    for count in counts {
        let nodes: Vec<Value> =
            (0..count).map(|index| node(op, &format!("n{index:03}"), attributes)).collect();
        steps.push(json!({"do": "model", "path": model, "nodes": nodes}));
        steps.push(json!({"do": "build", "onnx": model, "serialize": carried}));
    }
    steps.extend(libraries.iter().map(|library| unload(library)));
    let answers = scene.run(&steps);
    let built: Vec<usize> = answers
        .iter()
        .filter_map(|answer| answer.members["bytes"].as_u64())
        .map(|bytes| usize::try_from(bytes).unwrap())
        .collect();
    assert_eq!(
        built.len(),
        counts.len(),
        "{op}: {:?}",
        answers.iter().map(|answer| &answer.log).collect::<Vec<_>>()
    );
    (built[1] - built[0]) / (counts[1] - counts[0])
}

#[test]
fn nodes_that_refer_to_a_library_in_the_plan_are_small() {
    let Some(scene) = Scene::new() else { return };
    let empty = scene.path("libempty.so");
    empty_plugin(&empty);
    // Tactics take space: the empty plugin offers as many.
    let least = |tactics: u32| {
        let libraries = std::slice::from_ref(&empty);
        bytes_a_node(&scene, libraries, libraries, "empty", &json!({"tactics": tactics}))
    };
    scene.compile_manifest(Form::Embedded, "variants", "manifests/circ_pad_plugin.toml");
    for (name, op, attributes, tactics) in [
        ("add", "elemwise_add_plugin", json!({"block_size": 256, "aot": 1}), 0),
        ("pad", "circ_pad_plugin", json!({"pads": [0, 0, 0, 0], "aot": 1}), 0),
        // The automatic one, small inputs', and the last two.
        ("variants", "circ_pad_plugin", json!({"pads": [0, 0, 0, 0], "aot": 1}), 4),
    ] {
        let libraries = [scene.ops(Form::Embedded, name), scene.code(name)];
        let taken = bytes_a_node(&scene, &libraries, &libraries[1..], op, &attributes);
        let least = least(tactics);
        println!("{name}: {taken} bytes per node, {least} for an empty plugin, {tactics} tactics");
        assert!(
            taken <= least + MOST,
            "{name}: {taken} bytes per node, {least} for an empty plugin, {tactics} tactics"
        );
        // Subtracting too much would hide the node's bytes.
        assert!(taken > least, "{name}: {taken} bytes per node, {least} for an empty plugin");
    }
}
