//! Where inputs begin: the files of the repository, read when they are needed, so that new ones count without being copied.
//!
//! Never fails for a file that has no meaning here: a manifest that is wrong is a seed like any other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cubinder_bundle::container::{write_bundle, write_node, write_node_reference};
use cubinder_bundle::{Bundle, Digest, Node, NodeReference, Value};
use cubinder_compiler::diagnostic::Source;
use cubinder_compiler::resolve;

use crate::bundles::{bundle, packed_code};
use crate::container;

/// The root of the checkout.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a folder with an ending, by name. A folder that is not there has none.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    paths.sort();
    paths
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

fn bytes(texts: Vec<String>) -> Vec<Vec<u8>> {
    texts.into_iter().map(String::into_bytes).collect()
}

fn manifest_texts() -> Vec<String> {
    let folders = ["manifests", "tests/data/ok", "tests/data/run", "tests/data/bad"];
    texts(&folders.map(|folder| files(folder, "toml")).concat())
}

pub(crate) fn manifests() -> Vec<Vec<u8>> {
    bytes(manifest_texts())
}

pub(crate) fn configs() -> Vec<Vec<u8>> {
    let folder = "compiler/src/new/templates";
    bytes(texts(&[root().join("cubinder.toml"), root().join(folder).join("cubinder.toml")]))
}

pub(crate) fn cases() -> Vec<Vec<u8>> {
    let example = r#"manifest = "../manifests/circ_pad_plugin.toml"
[[cases]]
name = "a pair"
shapes = { x = [2, 4] }
attributes = { pads = [1, 1] }
types = { T = "f16" }
aligned = { x = 16 }
[cases.expect]
shapes = { y = [2, 6] }
variant = 1
grid = [1]
block = [256, 1]
shared_bytes = 0
args = { count = 12, x = "x", in_extent = [4, 2, 1, 1, 1, 1, 1, 1] }
[[cases]]
name = "none"
shapes = { x = [2, 4] }
error = "pads"
"#;
    let template = root().join("compiler/src/new/templates/cases.toml");
    let mut all = bytes(texts(&[template]));
    all.push(example.as_bytes().to_vec());
    all
}

pub(crate) fn kernels() -> Vec<Vec<u8>> {
    let folders = [
        "kernels",
        "tests/data/kernels",
        "tests/data/ok",
        "tests/data/run",
        "tests/data/bad",
        "compiler/src/new/templates",
    ];
    bytes(texts(&folders.map(|folder| files(folder, "cu")).concat()))
}

/// Every string of every manifest that is TOML, each once: the expressions are among them.
pub(crate) fn expressions() -> Vec<Vec<u8>> {
    let mut found = BTreeSet::new();
    for text in manifest_texts() {
        if let Ok(table) = text.parse::<toml::Table>() {
            strings(&toml::Value::Table(table), &mut found);
        }
    }
    bytes(found.into_iter().collect())
}

fn strings(value: &toml::Value, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::String(text) => {
            found.insert(text.clone());
        }
        toml::Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        toml::Value::Table(table) => table.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

/// The models of the manifests that are right, in each kind of container.
pub(crate) fn containers() -> Vec<Vec<u8>> {
    let folders = ["manifests", "tests/data/ok", "tests/data/run"];
    let texts = texts(&folders.map(|folder| files(folder, "toml")).concat());
    let mut all = Vec::new();
    for text in texts {
        let Ok(resolved) = resolve::compile(&Source::new("seed.toml", text)) else { continue };
        let mut bundle = bundle(&resolved, true);
        all.push(container::model(&write_bundle(&bundle)));
        let packed = Bundle { code: vec![packed_code()], ..bundle.clone() };
        all.push(container::model(&write_bundle(&packed)));
        all.push(write_bundle(&packed));
        let plugin = bundle.plugins.swap_remove(0);
        let values =
            plugin.attributes.iter().map(|attribute| attribute.default.clone().unwrap_or(Value::Int(1)));
        let attributes: Vec<Value> = values.collect();
        let input_ranks = Some(plugin.inputs.iter().map(|input| input.rank_min).collect());
        let reference = NodeReference {
            workspace_bytes: None,
            bundle: Digest::of(b"bundle").shortened(),
            plugin: 0,
            attributes: attributes.clone(),
            row: Some(0),
            input_ranks,
        };
        all.push(container::model(&write_node_reference(&reference)));
        let node = Node {
            workspace_bytes: None,
            producer: bundle.producer,
            plugin,
            attributes,
            input_ranks: reference.input_ranks.clone(),
            code: bundle.code,
        };
        all.push(container::model(&write_node(&node)));
    }
    all
}
