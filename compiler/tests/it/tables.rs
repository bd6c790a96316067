//! Rust's padding panics above 65,535 characters.

use crate::support::{MANIFEST, Project, Run};
use cubinder_onnx::testing::{FLOAT, float, graph, int, model, node, string, value};

const LONG: usize = 70_000;

fn project() -> Project {
    let project = Project::without_tools();
    let manifest = MANIFEST.replace("[[inputs]]", "[attributes.mode]\ntype = \"string\"\n\n[[inputs]]");
    project.write("manifests/scale.toml", manifest);
    project
}

#[track_caller]
fn assert_printed(run: &Run, long: &str) {
    assert_eq!(run.code, Some(0), "{}", run.stderr.chars().take(2000).collect::<String>());
    assert!(run.stdout.contains(long), "{}", run.stdout.chars().take(2000).collect::<String>());
}

#[test]
fn eval_prints_an_attribute_of_any_length() {
    let long = "m".repeat(LONG);
    let mode = format!("mode={long}");
    let attributes = ["--attr", "factor=2.0", "--attr", mode.as_str()];
    let run = project().run(&[&["eval", "manifests/scale.toml", "--shape", "x=4"], &attributes[..]].concat());
    assert_printed(&run, &long);
}

#[test]
fn inspect_prints_a_kernel_of_any_name() {
    let (project, long) = (project(), "k".repeat(LONG));
    let ptx =
        format!(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {long}()\n{{\nret;\n}}\n");
    project.write("long.ptx", ptx);
    assert_printed(&project.run(&["inspect", "long.ptx"]), &long);
}

#[test]
fn onnx_shapes_prints_an_attribute_of_any_length() {
    let (project, long) = (project(), "m".repeat(LONG));
    let attributes = vec![
        string("plugin_namespace", "test"),
        string("plugin_version", "1"),
        int("aot", 1),
        string("mode", &long),
        float("factor", 2.0),
    ];
    let node = node(("test", "scale_plugin"), &["x"], &["y"], attributes);
    let graph = graph(vec![value("x", FLOAT, "4")], vec![node], vec![value("y", FLOAT, "4")]);
    project.write("model.onnx", model(graph, &["test"]));
    let plugins = ["--plugins", "manifests/scale.toml", "--verbose"];
    assert_printed(&project.run(&[&["onnx", "shapes", "model.onnx"], &plugins[..]].concat()), &long);
}
