//! TensorRT-RTX's builder with plugins in Rust that use all features of the model.

use std::path::{Path, PathBuf};

use cubinder_expr::{DataType, Format, Value};
use cubinder_library::Mode;
use cubinder_model::container::{self, Container};
use cubinder_model::{AUTO_TACTIC, Guard, Node, Plugin};
use cubinder_skip::skip;
use cubinder_tests::application::{Answer, Application};
use cubinder_tests::handmade::{self, Draft, Tensor};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::support::load;

const F32: Tensor = (DataType::F32, Format::Linear);
const F16: Tensor = (DataType::F16, Format::Linear);
const F16_HWC8: Tensor = (DataType::F16, Format::Hwc8);
const I32: Tensor = (DataType::I32, Format::Linear);
const I64: Tensor = (DataType::I64, Format::Linear);

struct Workshop {
    folder: TempDir,
    application: Application,
    generic: PathBuf,
}

struct Network {
    inputs: Json,
    nodes: Json,
    outputs: Json,
    profiles: Json,
}

impl Workshop {
    fn new() -> Option<Workshop> {
        let generic = std::env::var_os("CUBINDER_RUNTIME_LIBRARY").map(PathBuf::from);
        let (Some(generic), Some(application)) = (generic, Application::from_environment()) else {
            skip(
                "`CUBINDER_RUNTIME_LIBRARY` or `CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` sets it",
            );
            return None;
        };
        Some(Workshop { folder: tempfile::tempdir().unwrap(), application, generic })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn library(&self, plugins: Vec<Plugin>) -> PathBuf {
        let out = self.path("libhandmade.so");
        handmade::write(&self.generic, plugins, Mode::Ops, &out).unwrap();
        out
    }

    fn build(&self, plugins: Vec<Plugin>, network: &Network) -> Answer {
        let (library, model) = (self.library(plugins), self.path("model.onnx"));
        let steps = [
            load(&library),
            json!({"do": "network", "path": model, "inputs": network.inputs, "nodes": network.nodes, "outputs": network.outputs}),
            json!({"do": "build", "onnx": model, "output": self.path("plan"), "profiles": network.profiles, "aliases": true}),
        ];
        self.application.run(&steps).unwrap().pop().unwrap()
    }

    fn built(&self, plugins: Vec<Plugin>, network: &Network) -> Vec<Node> {
        let answer = self.build(plugins, network);
        assert!(answer.is_ok(), "{:#?}", answer.log);
        assert_eq!(answer.said("cubinder"), [""; 0]);
        nodes(&self.path("plan"))
    }
}

fn nodes(plan: &Path) -> Vec<Node> {
    let bytes = std::fs::read(plan).unwrap();
    let mut nodes: Vec<Node> = Vec::new();
    for (_, found) in container::scan(&bytes) {
        match found.unwrap().container {
            Container::Node(node) if !nodes.contains(&node) => nodes.push(node),
            Container::Node(_) => {}
            other => panic!("{other:?}"),
        }
    }
    nodes
}

fn rows(node: &Node) -> Vec<(i32, DataType, Format)> {
    let row = |variant: &cubinder_model::Variant| (variant.id, variant.types[0], variant.formats[0]);
    node.plugin.variants.iter().map(row).collect()
}

fn unary(name: &str, rows: &[(i32, Tensor)]) -> Plugin {
    let draft = Draft::new(name, &[("k", 1)]).input("x", (1, 8)).output("y", "x.shape").unwrap();
    let draft =
        rows.iter().fold(draft, |draft, (id, tensor)| draft.variant(*id, &[*tensor; 2], None).unwrap());
    draft.plugin()
}

#[test]
fn a_plugin_that_takes_one_format_gets_it() {
    let Some(workshop) = Workshop::new() else { return };
    let network = Network {
        inputs: json!([["x", "f16", [1, 5, 6, 7]]]),
        nodes: json!([["channels", ["x"], ["y"], {}]]),
        outputs: json!([["y", "f16", [1, 5, 6, 7]]]),
        profiles: json!([]),
    };
    let built = workshop.built(vec![unary("channels", &[(1, F16_HWC8)])], &network);
    assert_eq!(built.iter().map(rows).collect::<Vec<_>>(), [[(1, DataType::F16, Format::Hwc8)]]);
    let node = &built[0];
    assert_eq!(node.input_ranks, Some(vec![4]));
    assert_eq!((node.plugin.inputs[0].rank_min, node.plugin.inputs[0].rank_max), (4, 4));
    assert_eq!((node.plugin.summary.as_str(), node.plugin.attributes[0].default.clone()), ("", None));
}

#[test]
fn of_several_formats_one_is_settled_on() {
    let Some(workshop) = Workshop::new() else { return };
    let plugin = || unary("choice", &[(1, F16_HWC8), (1, F32), (2, F16), (3, F16), (3, F32), (4, F16_HWC8)]);
    for (ty, expected) in [
        ("f32", vec![vec![(1, DataType::F32, Format::Linear), (3, DataType::F32, Format::Linear)]]),
        (
            "f16",
            vec![
                vec![(2, DataType::F16, Format::Linear), (3, DataType::F16, Format::Linear)],
                vec![(1, DataType::F16, Format::Hwc8), (4, DataType::F16, Format::Hwc8)],
            ],
        ),
    ] {
        let network = Network {
            inputs: json!([["x", ty, [1, 8, 6, 7]]]),
            nodes: json!([["choice", ["x"], ["y"], {"k": 3}]]),
            outputs: json!([["y", ty, [1, 8, 6, 7]]]),
            profiles: json!([]),
        };
        let built = workshop.built(vec![plugin()], &network);
        assert!(built.len() == 1 && expected.contains(&rows(&built[0])), "{ty}: {:?}", rows(&built[0]));
        assert_eq!(built[0].attributes, [Value::Int(3)]);
        let plan = std::fs::read(workshop.path("plan")).unwrap();
        let tactic = format!("_{AUTO_TACTIC}\"");
        assert!(plan.windows(tactic.len()).any(|part| part == tactic.as_bytes()), "{ty}: the first tactic");
    }
}

#[test]
fn a_type_that_no_variant_takes_is_told() {
    let Some(workshop) = Workshop::new() else { return };
    let network = Network {
        inputs: json!([["x", "i64", [4]]]),
        nodes: json!([["choice", ["x"], ["y"], {}]]),
        outputs: json!([["y", "i64", [4]]]),
        profiles: json!([]),
    };
    let answer = workshop.build(vec![unary("choice", &[(1, F16_HWC8), (2, F32)])], &network);
    assert!(!answer.is_ok());
    let said = answer.said("no variant");
    let expected = "ERROR cubinder: sample::choice `y`: no variant supports the types (i64); the plugin supports (f16, f16), (f32, f32)";
    assert!(!said.is_empty() && said.iter().all(|line| line == expected), "{said:?}");
}

#[test]
fn values_without_code_are_refused_when_the_node_is_parsed() {
    let Some(workshop) = Workshop::new() else { return };
    let mut plugin = unary("special", &[(1, F32), (2, F32), (3, F32)]);
    for (variant, value) in plugin.variants.iter_mut().zip([3, 5]) {
        variant.id = 1;
        variant.specialized = vec![(0, Value::Int(value))];
    }
    plugin.variants[2].specialized = vec![(0, Value::Int(5))];
    let network = |k: i64| Network {
        inputs: json!([["x", "f32", [4]]]),
        nodes: json!([["special", ["x"], ["y"], {"k": k}]]),
        outputs: json!([["y", "f32", [4]]]),
        profiles: json!([]),
    };
    let ids = |k| {
        rows(&workshop.built(vec![plugin.clone()], &network(k))[0])
            .iter()
            .map(|row| row.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(3), [1]);
    assert_eq!(ids(5), [1, 3]);
    let answer = workshop.build(vec![plugin.clone()], &network(4));
    assert_eq!(
        answer.said("the code is specialized"),
        [
            "ERROR cubinder: sample::special `y`: the attribute `k` is `4`, but the code is specialized for `3`, `5`"
        ]
    );
}

#[test]
fn aliased_outputs_chain() {
    let Some(workshop) = Workshop::new() else { return };
    let plugin = || {
        let draft = Draft::new("in_place", &[("delta", 1)]).input("bias", (1, 8)).input("x", (1, 8));
        let draft = draft.alias("y", 1).unwrap().variant(1, &[F32; 3], None).unwrap();
        draft.variant(2, &[F32; 3], None).unwrap().plugin()
    };
    let network = Network {
        inputs: json!([["b", "f32", [3]], ["x", "f32", ["n", 3]]]),
        nodes: json!([["in_place", ["b", "x"], ["t"], {}], ["in_place", ["b", "t"], ["y"], {"delta": 2}]]),
        outputs: json!([["y", "f32", [null, 3]]]),
        profiles: json!([{"x": [[1, 3], [2, 3], [8, 3]]}]),
    };
    let built = workshop.built(vec![plugin()], &network);
    let mut deltas: Vec<&Value> = built.iter().map(|node| &node.attributes[0]).collect();
    deltas.sort_by_key(|value| value.as_int());
    assert_eq!(deltas, [&Value::Int(1), &Value::Int(2)]);
    assert!(built.iter().all(|node| node.plugin.outputs[0].alias == Some(1)));
}

#[test]
fn sizes_that_depend_on_data_reach_the_next_plugin() {
    let Some(workshop) = Workshop::new() else { return };
    let finder = || {
        let draft =
            Draft::new("finder", &[]).input("x", (1, 8)).size("count", "numel(x)", "numel(x) // 2").unwrap();
        let draft = draft.output("indices", "[count, x.rank]").unwrap();
        draft.variant(1, &[F32, I64, I32], Some("numel(x) * 4")).unwrap().plugin()
    };
    let taker = || {
        let draft = Draft::new("taker", &[])
            .input("indices", (2, 2))
            .output("y", "[indices.shape[0] * 2, 3]")
            .unwrap();
        draft.variant(1, &[I32, F32], Some("numel(indices)")).unwrap().plugin()
    };
    for shape in [json!([6, 4]), json!(["n", 4])] {
        let is_fixed = shape[0].is_number();
        let profiles = if is_fixed { json!([]) } else { json!([{"x": [[1, 4], [2, 4], [6, 4]]}]) };
        let network = Network {
            inputs: json!([["x", "f32", shape]]),
            nodes: json!([["finder", ["x"], ["c", "i"], {}], ["taker", ["i"], ["y"], {}]]),
            outputs: json!([["c", "i64", []], ["y", "f32", [null, 3]]]),
            profiles,
        };
        let built = workshop.built(vec![finder(), taker()], &network);
        let bytes = |name: &str| {
            let mut named = built.iter().filter(|node| node.plugin.name == name);
            let node = named.next().unwrap();
            assert!(named.next().is_none());
            node.workspace_bytes
        };
        assert_eq!(bytes("finder"), Some(256), "24 elements of 4 bytes");
        assert_eq!(bytes("taker"), Some(256), "at most 24 indices of 2 dimensions");
    }
}

#[test]
fn shape_inputs_decide_shapes() {
    let Some(workshop) = Workshop::new() else { return };
    let plugin = || {
        let draft =
            Draft::new("resize", &[]).input("x", (2, 2)).shape_input("target", 65536).input("b", (1, 1));
        let draft = draft.output("y", "[x.shape[0], target.values[0], target.values[1]]").unwrap();
        draft.variant(1, &[F32, I64, F32, F32], None).unwrap().plugin()
    };
    let network = |attributes: Json| Network {
        inputs: json!([["x", "f32", ["n", 4]], ["t", "i64", [2]], ["b", "f32", [5]]]),
        nodes: json!([["resize", ["x", "t", "b"], ["y"], attributes]]),
        outputs: json!([["y", "f32", [null, null, null]]]),
        profiles: json!([{"x": [[1, 4], [2, 4], [8, 4]], "t": {"values": [[1, 1], [2, 2], [9, 9]]}}]),
    };
    let built = workshop.built(vec![plugin()], &network(json!({"tensorrt_plugin_shape_input_indices": [1]})));
    assert_eq!(built[0].input_ranks, Some(vec![2, 1, 1]));
    assert_eq!(built[0].plugin.variants[0].types[1], DataType::I64);
    let answer = workshop.build(vec![plugin()], &network(json!({})));
    assert!(!answer.is_ok());
    let said = answer.said("shape inputs");
    assert!(
        said[0].contains(
            "the plugin expects 2; the node's attribute `tensorrt_plugin_shape_input_indices` must be [1]"
        ),
        "{said:?}"
    );
}

#[test]
fn every_profile_reserves_the_workspace_that_it_needs() {
    let Some(workshop) = Workshop::new() else { return };
    let mut plugin = Draft::new("work", &[]).input("x", (0, 8)).output("y", "x.shape").unwrap();
    plugin = plugin.variant(1, &[F32; 2], Some("numel(x) * 4")).unwrap();
    plugin = plugin.variant(2, &[F32; 2], Some("numel(x) * 8")).unwrap();
    let small = plugin.expr("numel(x) < 100").unwrap();
    let mut plugin = plugin.plugin();
    plugin.variants[0].guard = Some(Guard { expr: small, text: "numel(x) < 100".to_owned() });
    let network = Network {
        inputs: json!([["x", "f32", ["n", 4]]]),
        nodes: json!([["work", ["x"], ["y"], {}]]),
        outputs: json!([["y", "f32", [null, 4]]]),
        profiles: json!([{"x": [[1, 4], [2, 4], [8, 4]]}, {"x": [[1, 4], [16, 4], [1000, 4]]}]),
    };
    let mut bytes: Vec<_> =
        workshop.built(vec![plugin.clone()], &network).iter().map(|node| node.workspace_bytes).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [Some(256), Some(32_000)]);
    let scalar = Network {
        inputs: json!([["x", "f32", []]]),
        outputs: json!([["y", "f32", []]]),
        profiles: json!([]),
        ..network
    };
    let built = workshop.built(vec![plugin], &scalar);
    assert_eq!((built[0].input_ranks.clone(), built[0].workspace_bytes), (Some(vec![0]), Some(256)));
}

fn crossing() -> Plugin {
    let draft = Draft::new("crossing", &[("k", 1)]).input("a", (0, 8)).input("b", (0, 8));
    let draft = draft.output("y", "a.shape").unwrap().output("z", "b.shape").unwrap();
    draft.variant(1, &[F32; 4], Some("numel(a) * 4")).unwrap().plugin()
}

#[test]
fn constants_one_tensor_twice_and_unread_outputs_are_built() {
    let Some(workshop) = Workshop::new() else { return };
    let constant = json!({"type": "f32", "shape": [2, 3], "values": [1, 2, 3, 4, 5, 6]});
    let network = |rows: Json, profiles: Json| Network {
        inputs: json!([["x", "f32", [rows, 3]]]),
        nodes: json!([
            ["Constant", [], ["c"], constant],
            ["crossing", ["x", "x"], ["t", "unread"], {"k": 1}],
            ["crossing", ["t", "c"], ["u", "v"], {"k": 2}],
            ["crossing", ["c", "c"], ["unread2", "w"], {"k": 3}],
        ]),
        outputs: json!([["u", "f32", [null, 3]], ["v", "f32", [2, 3]], ["w", "f32", [2, 3]]]),
        profiles,
    };
    let several = json!([{"x": [[1, 3], [2, 3], [8, 3]]}, {"x": [[100, 3], [200, 3], [400, 3]]}]);
    for (rows, profiles, bytes) in [
        (json!(4), json!([]), vec![(1, 256), (2, 256), (3, 256)]),
        (json!("n"), several, vec![(1, 256), (1, 4864), (2, 256), (2, 4864), (3, 256)]),
    ] {
        let built = workshop.built(vec![crossing()], &network(rows.clone(), profiles));
        let mut found: Vec<(i64, u64)> = built
            .iter()
            .map(|node| (node.attributes[0].as_int().unwrap(), node.workspace_bytes.unwrap()))
            .collect();
        found.sort_unstable();
        assert_eq!(found, bytes, "{rows}");
        assert!(built.iter().all(|node| node.input_ranks == Some(vec![2, 2])));
    }
}

#[test]
fn tensors_without_dimensions_and_without_elements_are_built() {
    let Some(workshop) = Workshop::new() else { return };
    let network = Network {
        inputs: json!([["s", "f32", []], ["e", "f32", [0, 3]]]),
        nodes: json!([
            ["crossing", ["s", "e"], ["t", "u"], {"k": 1}],
            ["crossing", ["u", "t"], ["y", "z"], {"k": 2}],
        ]),
        outputs: json!([["y", "f32", [0, 3]], ["z", "f32", []]]),
        profiles: json!([]),
    };
    let built = workshop.built(vec![crossing()], &network);
    let mut found: Vec<(i64, Option<Vec<u8>>)> =
        built.iter().map(|node| (node.attributes[0].as_int().unwrap(), node.input_ranks.clone())).collect();
    found.sort_unstable();
    assert_eq!(found, [(1, Some(vec![0, 2])), (2, Some(vec![2, 0]))]);
}

/// TensorRT-RTX 1.7 removes the last creator of a name: another order leaves dangling ones.
#[test]
fn a_library_with_several_versions_of_an_op_leaves_nothing_behind() {
    let Some(workshop) = Workshop::new() else { return };
    let version = |version: &str| Plugin { version: version.to_owned(), ..unary("several", &[(1, F32)]) };
    let (library, model) = (
        workshop.library(vec![version("2"), version("1"), unary("other", &[(1, F32)]), version("3")]),
        workshop.path("model.onnx"),
    );
    let tensor = |name| json!([[name, "f32", [4]]]);
    let parse = json!({"do": "parse", "onnx": model});
    let unloading = json!({"do": "unload", "path": library});
    let creators = json!({"do": "creators"});
    let mut steps = vec![
        json!({"do": "network", "path": model, "inputs": tensor("x"), "nodes": [["several", ["x"], ["y"], {}]], "outputs": tensor("y")}),
        creators.clone(),
    ];
    for _ in 0..2 {
        steps.extend([
            load(&library),
            creators.clone(),
            parse.clone(),
            unloading.clone(),
            creators.clone(),
            parse.clone(),
        ]);
    }
    let answers = workshop.application.run(&steps).unwrap();
    let before = answers[1].texts("creators");
    for round in answers[2..].chunks(6) {
        let [loaded, during, parsed, _, after, gone] = round else { panic!("{round:?}") };
        assert!(loaded.is_ok() && parsed.is_ok(), "{:#?}", [&loaded.log, &parsed.log]);
        let added = ["sample::other 1", "sample::several 1", "sample::several 2", "sample::several 3"];
        assert!(added.iter().all(|name| during.texts("creators").iter().any(|it| it == name)));
        assert_eq!(after.texts("creators"), before);
        assert!(!gone.is_ok() && !gone.said("Plugin not found").is_empty(), "{:#?}", gone.log);
    }
}
