//! Over 1,000 models of the `onnx` package: none changes or has plugins; inferred shapes equal ONNX's.

// Clippy exempts only test functions.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::proto::AttributeProto;
use crate::testing::{FLOAT, graph, int, ints, model, node, string, value};
use crate::{Edits, Model, operators};

use super::annotate::{AnnotationScope, Mapping, annotate};
use super::find::UNSUPPORTED;
use super::list::{list, walk};
use super::plugins::Plugins;
use super::tensors::{Dim, Tensor, Tensors};
use crate::diagnostic::Source;
use crate::eval;

fn plugins() -> Plugins {
    let text = include_str!("../../../../manifests/circ_pad_plugin.toml");
    Plugins::from_subjects(eval::manifest(&Source::new("circ_pad_plugin.toml", text)).unwrap().list)
}

/// Observed with TensorRT-RTX 1.7.1.
#[test]
fn the_empty_namespace_comes_before_the_domain() {
    let text = include_str!("../../../../manifests/circ_pad_plugin.toml");
    let line = "namespace = \"sample\"\n";
    assert_eq!(text.matches(line).count(), 1);
    let read = |text: &str| eval::manifest(&Source::new("circ_pad_plugin.toml", text)).unwrap().list;
    let plugins =
        Plugins::from_subjects([text, &text.replace(line, "")].into_iter().flat_map(read).collect());
    let found = |domain: &str, more: Vec<AttributeProto>| {
        let attributes = [vec![ints("pads", &[1, 1])], more].concat();
        let node = node((domain, "circ_pad_plugin"), &["x"], &["y"], attributes);
        let graph = graph(vec![value("x", FLOAT, "2,3")], vec![node], vec![value("y", FLOAT, "?")]);
        let model = Model::read(Cursor::new(model(graph, &[domain]))).unwrap();
        list("model", &model, &plugins).nodes.remove(0).plugin.unwrap()
    };
    let namespace = |name: &str| vec![string("plugin_namespace", name)];
    for (domain, more, plugin) in [
        ("sample", vec![], "circ_pad_plugin"),
        ("other", vec![], "circ_pad_plugin"),
        ("sample", namespace(""), "circ_pad_plugin"),
        ("sample", vec![int("plugin_namespace", 1)], "circ_pad_plugin"),
        ("sample", namespace("sample"), "sample::circ_pad_plugin"),
        ("sample", namespace("other"), "sample::circ_pad_plugin"),
    ] {
        assert_eq!(found(domain, more.clone()), plugin, "{domain} {more:?}");
    }
}

fn write_models(folder: &Path, client: &str, arguments: &[&str]) -> bool {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(python), Some(paths)) =
        (variable("CUBINDER_TEST_PYTHON"), variable("CUBINDER_TEST_PYTHONPATH"))
    else {
        cubinder_skip::skip("`CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` does it");
        return false;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients").join(client);
    let mut command = Command::new(python);
    command.arg(script).arg(folder).args(arguments);
    command.env("PYTHONPATH", paths).env("PYTHONDONTWRITEBYTECODE", "1");
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    true
}

fn corpus(folder: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    if !write_models(folder, "onnx_models.py", &[]) {
        return None;
    }
    let mut models: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
        })
        .collect();
    models.sort();
    Some(models)
}

#[test]
fn models_of_the_onnx_package_stay_as_they_are_and_shapes_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let Some(models) = corpus(folder.path()) else { return };
    assert!(models.len() > 1500, "{} models", models.len());
    let plugins = plugins();
    let (mut shapes, mut types) = (0, 0);
    let mut met = BTreeSet::new();
    for (name, bytes) in &models {
        let model = Model::read(Cursor::new(bytes)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = list(name, &model, &plugins);
        let of_nobody = report.nodes.iter().filter(|node| operators::is_domain(&node.domain));
        let (lacked, unknown): (Vec<_>, Vec<_>) =
            of_nobody.partition(|node| node.findings.iter().all(|finding| finding.problem == UNSUPPORTED));
        assert_eq!(
            unknown.iter().map(|node| &node.op_type).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "{name}"
        );
        met.extend(lacked.into_iter().map(|node| node.op_type.clone()));
        let annotated = annotate(&model, &plugins, &Mapping::default(), AnnotationScope::Named);
        assert!(annotated.edits.is_empty() && annotated.nodes.is_empty(), "{name}");
        let mut out = Vec::new();
        Edits::new(&model).write(Cursor::new(bytes), &mut out).unwrap();
        assert!(out == *bytes, "{name}");
        let (more_shapes, more_types) = outputs_are_right(name, model, &plugins);
        shapes += more_shapes;
        types += more_types;
    }
    let lacked: BTreeSet<&str> = include_str!("operators_tensorrt_lacks.txt").lines().collect();
    assert!(met.iter().all(|op| lacked.contains(op.as_str())) && met.len() >= 40, "{met:?}");
    // Counts of the pinned `onnx` package.
    assert!(shapes >= 500 && types >= 700, "{shapes} shapes and {types} types follow");
}

fn outputs_are_right(name: &str, mut model: Model, plugins: &Plugins) -> (usize, usize) {
    let stated = Tensors::new(&model);
    let outputs = std::mem::take(&mut model.graphs[0].outputs);
    model.graphs[0].values.clear();
    let mut found = Tensors::new(&model);
    walk(&model, plugins, &mut found);
    let (mut shapes, mut types) = (0, 0);
    for output in outputs {
        if model.graphs[0].inputs.iter().any(|input| input.name == output.name) {
            continue;
        }
        let (stated, found) = (stated.get(0, &output.name), found.get(0, &output.name));
        let (Some(stated), Some(found)) = (stated, found) else { continue };
        if let (Some(stated), Some(found)) = (stated.element, found.element) {
            assert_eq!(found, stated, "{name}: the type of {}", output.name);
            types += 1;
        }
        if let (Some(_), Some(_)) = (&stated.dims, &found.dims) {
            assert!(
                agrees(stated, found),
                "{name}: {} is {:?}, found {:?}",
                output.name,
                stated.dims,
                found.dims
            );
            shapes += usize::from(found.dims.iter().flatten().all(|dim| dim.extent().is_some()));
        }
    }
    (shapes, types)
}

fn agrees(stated: &Tensor, found: &Tensor) -> bool {
    let (Some(stated), Some(found)) = (&stated.dims, &found.dims) else { return true };
    let agrees = |(stated, found): (&Dim, &Dim)| match (stated.extent(), found.extent()) {
        (Some(stated), Some(found)) => stated == found,
        _ => true,
    };
    stated.len() == found.len() && stated.iter().zip(found).all(agrees)
}

#[test]
fn shapes_of_random_models_are_those_of_onnx() {
    const COUNT: usize = 400;
    let folder = tempfile::tempdir().unwrap();
    let seed = std::env::var("CUBINDER_SEED").unwrap_or_else(|_| "1".to_owned());
    if !write_models(folder.path(), "onnx_random.py", &[&COUNT.to_string(), &seed]) {
        return;
    }
    let plugins = plugins();
    let (mut all, mut followed, mut missed) = (0, 0, std::collections::BTreeMap::<String, usize>::new());
    let mut wrong = Vec::new();
    for index in 0..COUNT {
        let open = |name: &str| Model::open(&folder.path().join(format!("{index}.{name}")));
        let (Ok(model), Ok(inferred)) = (open("onnx"), open("inferred.onnx")) else { continue };
        let stated = Tensors::new(&inferred);
        let mut found = Tensors::new(&model);
        let met = walk(&model, &plugins, &mut found);
        assert!(met.iter().all(|met| met.subject.is_some()), "model {index} of seed {seed}");
        for node in &model.graphs[0].nodes {
            for name in &node.proto.output {
                let (stated, found) = (stated.get(0, name), found.get(0, name));
                let (Some(stated), found) = (stated, found.cloned().unwrap_or_default()) else { continue };
                let place = || {
                    format!(
                        "model {index} of seed {seed}, {} {name}: {stated:?}, found {found:?}",
                        node.op_type()
                    )
                };
                if found.element.is_some() && found.element != stated.element || !agrees(stated, &found) {
                    wrong.push(place());
                }
                let is_whole = |tensor: &Tensor| {
                    tensor.dims.as_ref().is_some_and(|dims| dims.iter().all(|dim| dim.extent().is_some()))
                };
                if is_whole(stated) {
                    all += 1;
                    followed += usize::from(is_whole(&found));
                    if !is_whole(&found) {
                        *missed.entry(node.op_type().to_owned()).or_default() += 1;
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{followed} of {all} shapes follow; not those of {missed:?}");
    assert!(
        all > 5 * COUNT && followed * 10 > all * 9,
        "{followed} of {all} shapes follow; not those of {missed:?}"
    );
}
