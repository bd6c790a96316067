//! Seeds: the repository's files, including invalid ones.

use std::collections::BTreeSet;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use cubinder_expr::{DataType, Value};
use cubinder_manifest::resolve;
use cubinder_model::container::{REFERENCE_MAGIC, write_bundle, write_node, write_node_reference};
use cubinder_model::provenance::{self, Compiler, File, Headers, Origin, Read};
use cubinder_model::{Bundle, Digest, Node, NodeReference, Provenance};
use cubinder_node::trial::{Array, data, npy};
use cubinder_remote::untrusted;
use cubinder_source::diagnostic::Source;

use crate::bundles::{bundle, packed_code};

pub(crate) const SECOND_FILE: &[u8] = b"\n//// second file\n";
/// Separates a Triton input's texts: two compiles' JSON and IR, lines of constants.
pub(crate) const SEPARATOR: u8 = 0x1e;

pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const REFERENCE_HEADER_BYTES: usize = 22;
pub(crate) const RECORD_HEADER_BYTES: usize = 32;

/// Returns the root of the checkout.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

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

pub(crate) fn tunings() -> Vec<Vec<u8>> {
    bytes(texts(&[files("tests/data/tuning", "toml"), files("manifests/tuning", "toml")].concat()))
}

/// Zstandard frames, whole, cut and skippable, and a result with two files.
pub(crate) fn remote() -> Vec<Vec<u8>> {
    let text: Vec<u8> = (0..3000_u32).flat_map(|number| (number / 3).to_le_bytes()).collect();
    let frames = [text.as_slice(), b"text", b""].map(untrusted::compress);
    let skippable = [0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let mut all = vec![[skippable.as_slice(), &frames[1], &frames[2], &frames[1]].concat()];
    all.push(frames[0][..frames[0].len() / 2].to_vec());
    all.extend(frames);
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let file = |path: &str, content: &[u8]| {
        let digest = cubinder_remote::Digest::compute(content).to_string();
        let (hash, _) = digest.split_at(64);
        let digest = [field(1, hash.as_bytes()), vec![2 << 3, content.len() as u8]].concat();
        field(2, &[field(1, path.as_bytes()), field(2, &digest), field(5, content)].concat())
    };
    all.push([file("code", b"bytes"), file("log", b"")].concat());
    all
}

pub(crate) fn numpy() -> Vec<Vec<u8>> {
    let arrays: Vec<Array> = DataType::ALL
        .into_iter()
        .filter_map(|ty| data::random(ty, &[2, 3], data::default_range(ty), 1).ok())
        .collect();
    let mut all: Vec<Vec<u8>> = arrays.iter().filter_map(|array| npy::write(array).ok()).collect();
    let named = arrays.iter().take(3).zip(["x", "y", "z"]).map(|(array, name)| (name, array));
    all.extend(npy::write_archive(named, Cursor::new(Vec::new())).map(Cursor::into_inner));
    all.extend(bombs());
    all
}

/// Inflate to 16 MiB: a tensor, an endless header.
fn bombs() -> Vec<Vec<u8>> {
    let npy = |shape: &str| {
        let header = format!("{{'descr': '|i1', 'fortran_order': False, 'shape': ({shape},), }}\n");
        let length = u16::try_from(header.len()).unwrap_or(0).to_le_bytes();
        [b"\x93NUMPY\x01\x00", length.as_slice(), header.as_bytes()].concat()
    };
    let endless = b"\x93NUMPY\x02\x00\xff\xff\xff\x7f".to_vec();
    let starts = [npy("16777216"), npy("3"), npy("9223372036854775807"), endless];
    let archive = |start: &Vec<u8>| -> zip::result::ZipResult<Vec<u8>> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        archive.start_file("x.npy", options)?;
        archive.write_all(start)?;
        let zeros = vec![0; 1 << 20];
        for _ in 0..16 {
            archive.write_all(&zeros)?;
        }
        Ok(archive.finish()?.into_inner())
    };
    starts.iter().filter_map(|start| archive(start).ok()).collect()
}

pub(crate) fn cases() -> Vec<Vec<u8>> {
    let example = r#"manifest = "../manifests/circ_pad_plugin.toml"
[[cases]]
name = "a pair"
shapes = { x = [2, 4] }
attributes = { pads = [1, 1] }
types = { T = "f16" }
aligned = { x = 16 }
inputs = { x = { range = [-1, 1] } }
tolerance = { y = { atol = 1e-3 } }
reference = "a.py:b"
seed = 1
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
    let templates = below("compiler/src/new/templates", "toml");
    let cases = templates.into_iter().filter(|path| path.ends_with("cases.toml"));
    let mut all = bytes(texts(&cases.collect::<Vec<_>>()));
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
    bytes(texts(&folders.map(|folder| below(folder, "cu")).concat()))
}

fn below(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten();
    let inner = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    let mut found = files(folder, ending);
    let mut inner: Vec<String> = inner.collect();
    inner.sort();
    found.extend(inner.iter().flat_map(|name| files(&format!("{folder}/{name}"), ending)));
    found
}

fn code(folders: &[&str], endings: &[&str]) -> Vec<Vec<u8>> {
    let paths = folders.iter().flat_map(|folder| endings.iter().flat_map(|ending| below(folder, ending)));
    paths.filter_map(|path| std::fs::read(path).ok()).collect()
}

pub(crate) fn cubins() -> Vec<Vec<u8>> {
    let mut all = code(&["tests/data/code", "tests/data/code/triton"], &["cubin", "fatbin"]);
    let pairs = [("scale.sm_80.cubin", "scale.sm_90.cubin"), ("scale.sm_90.cubin", "scale.ptx")];
    all.extend(pairs.iter().filter_map(|(one, other)| pair(one, other)));
    all
}

pub(crate) fn ptx() -> Vec<Vec<u8>> {
    let mut all = code(&["tests/data/code", "tests/data/code/triton"], &["ptx"]);
    let pairs = [
        ("clusters_2.ptx", "clusters_4.ptx"),
        ("scale.ptx", "scale.ptx"),
        ("scale.ptx", "scale.sm_90.cubin"),
    ];
    all.extend(pairs.iter().filter_map(|(one, other)| pair(one, other)));
    all.extend(hostile_ptx());
    all
}

fn pair(one: &str, other: &str) -> Option<Vec<u8>> {
    let read = |name: &str| std::fs::read(root().join("tests/data/code").join(name)).ok();
    Some([read(one)?, SECOND_FILE.to_vec(), read(other)?].concat())
}

/// Doubling names, thousands of unterminated blocks.
fn hostile_ptx() -> Vec<Vec<u8>> {
    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let doubling = |levels: usize| {
        let level = |digit: &u8| format!("S0_IS{0}_S{0}_E", char::from(*digit));
        let levels: String = DIGITS.iter().skip(1).take(levels).map(level).collect();
        format!("{HEAD}.visible .entry _Z1k1A1pIS_S_E{levels}(.param .u64 p)\n{{ ret; }}\n")
    };
    let kernel = ".visible .entry k(.param .u64 p)\n{ ret; }\n";
    let texts = [
        doubling(20),
        doubling(35),
        format!("{HEAD}{}", ".entry a\n".repeat(4000)),
        format!("{HEAD}{}", ".entry a(){\n".repeat(4000)),
        format!("{HEAD}{}{kernel}", ".extern\n".repeat(8000)),
        format!("{HEAD}{kernel}{}", kernel.repeat(1000)),
    ];
    texts.into_iter().map(String::into_bytes).collect()
}

pub(crate) fn triton() -> Vec<Vec<u8>> {
    let mut all = code(&["tests/data/code/triton"], &["json", "ttir"]);
    let (jsons, texts) =
        (code(&["tests/data/code/triton"], &["json"]), code(&["tests/data/code/triton"], &["ttir"]));
    let pairs: Vec<Vec<u8>> =
        jsons.iter().zip(&texts).map(|(json, text)| [json.as_slice(), &[SEPARATOR], text].concat()).collect();
    let constants = b"BLOCK=1024\none:ACT=relu\ntwo:ACT=gelu".as_slice();
    let both = |pair: &[Vec<u8>]| {
        let parts: Vec<&[u8]> = pair.iter().map(Vec::as_slice).chain([constants]).collect();
        parts.join(&SEPARATOR)
    };
    all.extend(pairs.windows(2).map(both));
    all
}

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

fn model(container: &[u8]) -> Vec<u8> {
    if container.starts_with(&REFERENCE_MAGIC) {
        return container.get(REFERENCE_HEADER_BYTES..).unwrap_or_default().to_vec();
    }
    let body = container.get(HEADER_BYTES..).unwrap_or_default();
    let Some((length, rest)) = body.split_first_chunk() else { return Vec::new() };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    rest.get(..length).unwrap_or_default().to_vec()
}

pub(crate) fn containers() -> Vec<Vec<u8>> {
    let folders = ["manifests", "tests/data/ok", "tests/data/run"];
    let texts = texts(&folders.map(|folder| files(folder, "toml")).concat());
    let mut all = Vec::new();
    for text in texts {
        let Ok(resolved) = resolve::compile(&Source::new("seed.toml", text)) else { continue };
        let mut bundle = bundle(&resolved, true);
        all.push(model(&write_bundle(&bundle)));
        let packed = Bundle { code: vec![packed_code()], ..bundle.clone() };
        all.push(model(&write_bundle(&packed)));
        all.push(write_bundle(&packed));
        let plugin = bundle.plugins.swap_remove(0);
        let values =
            plugin.attributes.iter().map(|attribute| attribute.default.clone().unwrap_or(Value::Int(1)));
        let attributes: Vec<Value> = values.collect();
        let input_ranks = Some(plugin.inputs.iter().map(|input| input.rank_min).collect());
        let reference = NodeReference {
            workspace_bytes: None,
            bundle: Digest::compute(b"bundle").shortened(),
            plugin: 0,
            attributes: attributes.clone(),
            row: Some(0),
            input_ranks,
        };
        all.push(model(&write_node_reference(&reference)));
        let node = Node {
            workspace_bytes: None,
            producer: bundle.producer,
            plugin,
            attributes,
            input_ranks: reference.input_ranks.clone(),
            code: bundle.code,
        };
        all.push(model(&write_node(&node)));
    }
    all.extend(records());
    all
}

fn records() -> Vec<Vec<u8>> {
    let file = |path: &str| File { path: path.to_owned(), digest: Digest::compute(path.as_bytes()) };
    let source = |read: Read| Origin::Source {
        file: file("kernels/k.cu"),
        read,
        headers: Headers::from_files(vec![file("cuda_fp16.h")]),
        is_open: true,
        options: vec!["--use_fast_math".to_owned()],
    };
    let files = Read::Files(vec![file("kernels/k.cuh"), file("<lib/a.h>")]);
    let (count, digest) = files.together();
    let imported = Origin::Imported { file: file("code/k.cubin"), made_by: "triton 3.9.0".to_owned() };
    let compiler = Some(Compiler { name: "NVRTC 13.0".to_owned(), identity: digest });
    [source(files), source(Read::Together(count, digest))]
        .into_iter()
        .map(|source| {
            let (manifests, tuning) = (vec![file("manifests/k.toml")], vec![file("tuning/h200.toml")]);
            let mut record =
                Provenance { compiler: compiler.clone(), manifests, tuning, ..Provenance::default() };
            record.add([source.clone(), imported.clone()]);
            record.add([source]);
            let bytes = provenance::write(&record, digest);
            bytes.get(RECORD_HEADER_BYTES..).unwrap_or_default().to_vec()
        })
        .collect()
}
