//! Files of older format versions are read unchanged or rejected by name.
//!
//! `tests/data/compat/<format version>/` has a bundle, a node's field and a reference; snapshots have `inspect` and
//! `eval` output. Released files never change. `cargo xtask compat-fixtures` writes the current version's.

use std::fs;
use std::path::{Path, PathBuf};

use cubinder_compiler::inspect;
use cubinder_expr as expr;
use cubinder_expr::Expr;
use cubinder_expr::{DataType, Format, Value};
use cubinder_manifest::resolve;
use cubinder_model::container::{self, Container, FORMAT_VERSION, ReadError};
use cubinder_model::{
    Arg, ArgValue, Bundle, CodeBytes, CodeObject, CodeRef, Digest, Fill, Guard, KernelFacts, KernelParam,
    Memory, Node, NodeReference, Plugin, Scratch, Step, TunedDevice, TunedPoint, Work,
};
use cubinder_node::eval::{self, Compiler, Environment};
use cubinder_node::query::Query;
use cubinder_source::diagnostic::{Colour, Source, render};

const MANIFEST: &str = r#"schema = 1
[plugin]
name = "window"
namespace = "compat"
summary = "Keeps what older versions wrote."
require = [{ expr = "len(pads) % 2 == 0", message = "pads come in pairs" }]
[attributes.pads]
type = "i32[]"
default = [1, 1]
length = "0..=16"
range = "0..=100"
[attributes.scale]
type = "f32"
default = 0.5
[attributes.mode]
type = "string"
default = "wrap"
one_of = ["wrap", "zero"]
[[inputs]]
name = "x"
type = "T"
rank = "1..=4"
limits = { dims = "1..=65536" }
[[outputs]]
name = "y"
type = "T"
shape = "[x.shape[i] + (pads[0] + pads[1] if i == x.rank - 1 else 0) for i in range(x.rank)]"
[types]
T = ["f32", "f16"]
[[variants]]
id = 1
constants = { VEC = 4 }
guard = "numel(y) % VEC == 0 and aligned(x, 16) and aligned(y, 16)"
[[variants]]
id = 2
constants = { VEC = 1 }
[[launches]]
source = "k.cu"
kernel = "window<T, VEC>"
grid = ["ceil_div(numel(y), 256 * VEC)"]
block = [256]
[launches.args]
x = "x"
"#;

fn folder(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/compat").join(version.to_string())
}

fn reading(version: u32, name: &str) -> Vec<u8> {
    let path = folder(version).join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()))
}

fn int(value: i64) -> Expr {
    Expr { nodes: vec![expr::Node::Int(value)] }
}

fn code() -> Vec<CodeObject> {
    let object = |target: &str, bytes: Vec<u8>| CodeObject {
        target: target.parse().unwrap(),
        digest: Digest::compute(&bytes),
        kernels: vec![KernelFacts {
            symbol: "window".to_owned(),
            registers: Some(16),
            shared_bytes: Some(0),
            local_bytes: Some(0),
            max_threads: Some(256),
            params: [0, 8, 16, 20].map(|offset| KernelParam { offset, size: 8 - offset / 5 }).to_vec(),
        }],
        bytes: CodeBytes::pack(bytes),
    };
    vec![
        object("sm_90", b"machine code".to_vec()),
        object("compute_80", b"add.s32 %r1, %r2, 1;\n".repeat(20)),
    ]
}

fn plugin() -> Plugin {
    let resolved = resolve::compile(&Source::new("window.toml", MANIFEST))
        .unwrap_or_else(|error| panic!("{}", render(&error, Colour::Plain)));
    let mut plugin = resolved.draft.plugin;
    let scalar = |ty, expr| ArgValue::Scalar { ty, expr };
    let arg = |(name, value): (&str, ArgValue)| Arg { name: name.to_owned(), value };
    let args = [
        ("x", ArgValue::ReadTensor(0)),
        ("y", ArgValue::Tensor(1)),
        (
            "n",
            scalar(cubinder_expr::ScalarType::Int { bytes: 4 }, Expr { nodes: vec![expr::Node::Numel(1)] }),
        ),
        ("scale", scalar(cubinder_expr::ScalarType::F32, Expr { nodes: vec![expr::Node::Attribute(1)] })),
    ];
    let reference = |(code, object): (u32, CodeObject)| CodeRef {
        target: object.target,
        code,
        symbol: "window".to_owned(),
    };
    for variant in &mut plugin.variants {
        let launch = variant.launch_mut(0).unwrap();
        launch.args = args.clone().map(arg).into();
        launch.code = (0..).zip(code()).map(reference).collect();
    }
    plugin.tuning = vec![measured(&plugin)];
    plugin
}

fn measured(plugin: &Plugin) -> TunedDevice {
    let rows = |ty: DataType| {
        let rows = (0..).zip(&plugin.variants).filter(move |(_, variant)| variant.types[0] == ty);
        let rows: Vec<u32> = rows.map(|(row, _)| row).collect();
        rows.into_iter().rev().collect()
    };
    let point = |ty| TunedPoint {
        attributes: vec![(0, Value::Array(vec![Value::Int(2), Value::Int(2)]))],
        shapes: vec![vec![4, 64], vec![4, 68]],
        ranking: rows(ty),
    };
    let points = vec![point(DataType::F32), point(DataType::F16)];
    TunedDevice { name: "NVIDIA H200".to_owned(), capability: 90, sms: 132, points }
}

/// Has the features that [`plugin`] lacks; never evaluated.
fn rich() -> Plugin {
    let mut plugin = plugin();
    plugin.name = "rich".to_owned();
    plugin.timing = Some(vec![0]);
    plugin.tuning[0].points.remove(0);
    let variant = &mut plugin.variants[0];
    variant.formats = vec![Format::Hwc8, Format::Linear];
    variant.specialized = vec![(1, Value::Float(0.5))];
    variant.scratch = vec![Scratch { name: "partial".to_owned(), bytes: int(4096) }];
    let launch = variant.launch_mut(0).unwrap();
    launch.cluster = Some([int(1), int(1), int(1)]);
    launch.cooperative = true;
    launch.programmatic = true;
    launch.args.push(Arg { name: "partial".to_owned(), value: ArgValue::Scratch(0) });
    let always = Guard { expr: Expr { nodes: vec![expr::Node::Bool(true)] }, text: "true".to_owned() };
    let fill = |memory| Step { when: Some(always.clone()), work: Work::Fill(Fill { memory, byte: 7 }) };
    variant.steps.insert(0, fill(Memory::Scratch(0)));
    variant.steps.insert(1, fill(Memory::Output(0)));
    plugin
}

fn attributes() -> Vec<Value> {
    vec![Value::Array(vec![Value::Int(2), Value::Int(2)]), Value::Float(0.25), Value::Str("zero".into())]
}

fn written() -> [(&'static str, Vec<u8>); 3] {
    let bundle = container::write_bundle(&Bundle {
        producer: "cubinder".to_owned(),
        plugins: vec![plugin(), rich()],
        code: code(),
    });
    let digest = container::read(&bundle).unwrap().digest;
    let mut of_node = plugin();
    of_node.keep_variants(|variant| variant.types[0] == DataType::F16);
    let node = container::write_node(&Node {
        producer: "cubinder".to_owned(),
        plugin: of_node,
        attributes: attributes(),
        input_ranks: Some(vec![2]),
        workspace_bytes: Some(4096),
        code: code(),
    });
    let reference = container::write_node_reference(&NodeReference {
        bundle: digest.shortened(),
        plugin: 0,
        attributes: attributes(),
        row: Some(1),
        input_ranks: Some(vec![2]),
        workspace_bytes: Some(0),
    });
    [("bundle", bundle), ("node", node), ("reference", reference)]
}

fn shown(bytes: &[u8]) -> String {
    let mut text = match inspect::inspect("file", bytes) {
        Ok(report) => inspect::table(&report, inspect::Verbosity::Full),
        Err(error) => return format!("{error}\n"),
    };
    let subjects =
        eval::compiled("file", bytes).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
    for subject in subjects.list.iter().filter(|subject| subject.plugin.name != "rich") {
        let query = Query { shapes: vec![("x".to_owned(), vec![4, 60])], ..Query::default() };
        let outcome = eval::evaluate(subject, &query, &Compiler::new(Environment::default()));
        let outcome = outcome.unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let evaluations = vec![outcome.evaluation];
        text.push_str(&eval::table(&eval::Report { file: "file".into(), kind: "file", evaluations }));
    }
    text
}

fn plan(parts: &[Vec<u8>]) -> Vec<u8> {
    [b"TensorRT".as_slice(), &parts.concat()].concat()
}

#[test]
fn what_a_version_wrote_is_read_as_it_was_meant_or_refused_by_name() {
    if std::env::var_os("CUBINDER_WRITE_COMPAT").is_some_and(|value| value == "1") {
        write();
    }
    for version in 1..=FORMAT_VERSION {
        let parts = ["bundle", "node", "reference"].map(|name| reading(version, name));
        let read: Vec<_> = parts.iter().map(|bytes| container::read(bytes)).collect();
        let refused = |read: &Result<_, ReadError>| *read == Err(ReadError::Version { found: version });
        if version < FORMAT_VERSION && read.iter().all(refused) {
            for bytes in &parts {
                let expected = format!(
                    "format version {version}, but this version of Cubinder reads only version {FORMAT_VERSION}: compile the plugins again"
                );
                assert!(shown(bytes).contains(&expected), "{}", shown(bytes));
            }
            continue;
        }
        for (bytes, read) in parts.iter().zip(read) {
            let found = read.unwrap_or_else(|error| panic!("{}", changed(version, &error.to_string())));
            let again = match &found.container {
                Container::Bundle(bundle) => container::write_bundle(bundle),
                Container::Node(node) => container::write_node(node),
                Container::NodeReference(reference) => container::write_node_reference(reference),
            };
            assert!(version < FORMAT_VERSION || again == *bytes, "{}", changed(version, "written otherwise"));
        }
        insta::assert_snapshot!(format!("version_{version}"), shown(&plan(&parts)));
    }
}

fn changed(version: u32, why: &str) -> String {
    format!(
        "format version {version} is not what it was: {why}\nafter a release, a changed format needs a new `FORMAT_VERSION`; \
         before a release, `cargo xtask compat-fixtures` updates the files"
    )
}

fn write() {
    let folder = folder(FORMAT_VERSION);
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in written() {
        fs::write(folder.join(name), bytes).unwrap();
    }
}
