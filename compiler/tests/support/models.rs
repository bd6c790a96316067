//! Models for `cubinder onnx list`; `tests/tests/it/onnx.rs` includes this file and runs TensorRT.

// Each test program uses a part.
#![allow(dead_code, unreachable_pub)]
// Clippy exempts only test functions.
#![allow(clippy::unwrap_used)]

use cubinder_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, ValueInfoProto,
};
use cubinder_onnx::testing::*;
use prost::Message;

pub const MANIFESTS: [&str; 5] = [
    "tests/data/run/circ_pad_plugin.toml",
    "manifests/elemwise_add_plugin.toml",
    "tests/data/run/stretch.toml",
    "tests/data/ok/constraints.toml",
    "tests/data/ok/specialized.toml",
];

/// TensorRT's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// The parser rejects it.
    Refused,
    /// The network differs from the model.
    Otherwise,
    Right,
}

pub struct Case {
    pub name: &'static str,
    pub model: Vec<u8>,
    pub fate: Fate,
}

fn own(namespace: &str) -> Vec<AttributeProto> {
    vec![string("plugin_namespace", namespace), string("plugin_version", "1"), int("aot", 1)]
}

fn one(op: &str, namespace: &str, attributes: Vec<AttributeProto>) -> NodeProto {
    node((namespace, op), &["x"], &["y"], [own(namespace), attributes].concat())
}

pub fn pad(pads: AttributeProto) -> NodeProto {
    one("circ_pad_plugin", "sample", vec![pads])
}

fn pads() -> AttributeProto {
    ints("pads", &[1, 1])
}

fn network(shape: &str, node: NodeProto) -> GraphProto {
    graph(vec![value("x", FLOAT, shape)], vec![node], vec![value("y", FLOAT, "?")])
}

fn simple(node: NodeProto) -> Vec<u8> {
    model(network("2,3,8,8", node), &["sample", "com.example", "test"])
}

fn with(graph: GraphProto) -> Vec<u8> {
    model(graph, &["sample", "com.example", "test"])
}

fn but(mut node: NodeProto, without: &str, attributes: Vec<AttributeProto>) -> NodeProto {
    node.attribute.retain(|attribute| attribute.name() != without);
    node.attribute.extend(attributes);
    node
}

fn function(calls: &[&[i64]]) -> Vec<u8> {
    let by = AttributeProto { ref_attr_name: Some("by".to_owned()), ints: vec![], ..pads() };
    called(pad(by), &calls.iter().map(|pads| ints("by", pads)).collect::<Vec<_>>())
}

/// Returns a model of [`super::MANIFEST`]'s plugin.
pub fn scale(shape: &str) -> Vec<u8> {
    let node = node(("test", "scale_plugin"), &["x"], &["y"], vec![float("factor", 2.0), int("aot", 1)]);
    with(network(shape, node))
}

/// Returns a model with a function whose plugin node gets an attribute from each call.
pub fn said_by_calls(attribute: &str, calls: &[&str]) -> Vec<u8> {
    let by = AttributeProto { ref_attr_name: Some("by".to_owned()), s: None, ..string(attribute, "") };
    let calls: Vec<AttributeProto> = calls.iter().map(|value| string("by", value)).collect();
    called(but(pad(pads()), attribute, vec![by]), &calls)
}

fn called(inner: NodeProto, calls: &[AttributeProto]) -> Vec<u8> {
    let call = |(index, by): (usize, &AttributeProto)| {
        let name = |index: usize| if index == 0 { "x".to_owned() } else { format!("y{index}") };
        let (from, to) = (name(index), name(index + 1));
        node(("local", "padded"), &[&from], &[&to], vec![by.clone()])
    };
    let nodes = calls.iter().enumerate().map(call).collect();
    let last = format!("y{}", calls.len());
    let bytes = model(
        graph(vec![value("x", FLOAT, "2,3,8,8")], nodes, vec![value(&last, FLOAT, "?")]),
        &["sample", "local"],
    );
    let mut model = ModelProto::decode(bytes.as_slice()).unwrap();
    let imports = [("", 17), ("sample", 1)].map(|(domain, version)| OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    });
    model.functions.push(FunctionProto {
        name: Some("padded".to_owned()),
        domain: Some("local".to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        attribute: vec!["by".to_owned()],
        node: vec![inner],
        opset_import: imports.to_vec(),
        ..FunctionProto::default()
    });
    model.encode_to_vec()
}

/// Inputs 1 and 2 are shape inputs.
pub fn stretch(indices: Option<&[i64]>, target: &[i64], inputs: Vec<ValueInfoProto>) -> GraphProto {
    let shape_inputs = indices.map(|indices| ints("tensorrt_plugin_shape_input_indices", indices));
    let attributes = own("test").into_iter().chain(shape_inputs).collect();
    let node = node(("test", "stretch"), &["x", "target", "times"], &["y"], attributes);
    let mut graph = graph(inputs, vec![node], vec![value("y", FLOAT, "?")]);
    graph.initializer = vec![integers("target", target), tensor("times", INT32, &[1], &2_i32.to_le_bytes())];
    graph
}

fn square() -> Vec<ValueInfoProto> {
    vec![value("x", FLOAT, "2,2")]
}

pub fn constraints(attributes: Vec<AttributeProto>, shape: &str) -> GraphProto {
    let all = [own("com.example"), vec![int("small", 3)], attributes].concat();
    let node = node(("com.example", "constraints"), &["x", "z"], &["y"], all);
    let inputs = vec![value("x", FLOAT, shape), value("z", FLOAT, "16")];
    graph(inputs, vec![node], vec![value("y", FLOAT, "?")])
}

fn ruled(attributes: Vec<AttributeProto>) -> Vec<u8> {
    with(constraints(attributes, "2,4,16"))
}

fn window(attribute: AttributeProto) -> Vec<u8> {
    with(network("16,16", one("window_sum", "", vec![attribute, int("reversed", 0)])))
}

fn window_of(domain: &str) -> NodeProto {
    let attributes = vec![int("kernel_size", 3), int("reversed", 0), int("aot", 1)];
    node((domain, "window_sum"), &["x"], &["y"], attributes)
}

pub fn wrong() -> Vec<Case> {
    use Fate::{Otherwise, Refused};
    let case = |name, fate, model| Case { name, model, fate };
    let named =
        |op, domain: &str| NodeProto { domain: Some(domain.to_owned()), op_type: Some(op), ..pad(pads()) };
    let op = |op: &str| NodeProto { op_type: Some(op.to_owned()), ..pad(pads()) };
    let inputs = |names: &[&str]| NodeProto {
        input: names.iter().map(|name| (*name).to_owned()).collect(),
        ..pad(pads())
    };
    let outputs = |names: &[&str]| NodeProto {
        output: names.iter().map(|name| (*name).to_owned()).collect(),
        ..pad(pads())
    };
    let typed = |element| {
        with(graph(vec![value("x", element, "2,3,8,8")], vec![pad(pads())], vec![value("y", element, "?")]))
    };
    let tensor_pads = |element, raw: &[u8]| -> TensorProto { tensor("pads", element, &[2], raw) };
    vec![
        case("misspelt", Refused, simple(op("circ_pad_pulgin"))),
        case("misspelt_in_the_default_domain", Refused, simple(named("circ_pad_pulgin".to_owned(), ""))),
        case("misspelt_operator", Refused, simple(node(("", "Rleu"), &["x"], &["y"], vec![]))),
        case("no_such_plugin", Refused, simple(op("something_else"))),
        case(
            "wrong_domain",
            Refused,
            simple(but(named("circ_pad_plugin".to_owned(), "other"), "plugin_namespace", vec![])),
        ),
        case(
            "wrong_domain_and_namespace",
            Refused,
            simple(but(
                named("circ_pad_plugin".to_owned(), "other"),
                "plugin_namespace",
                vec![string("plugin_namespace", "sampel")],
            )),
        ),
        case(
            "default_domain_without_namespace",
            Refused,
            simple(but(named("circ_pad_plugin".to_owned(), ""), "plugin_namespace", vec![])),
        ),
        case(
            "wrong_version",
            Refused,
            simple(but(pad(pads()), "plugin_version", vec![string("plugin_version", "2")])),
        ),
        case(
            "version_that_is_no_text",
            Refused,
            simple(but(pad(pads()), "plugin_version", vec![int("plugin_version", 1)])),
        ),
        case("operator_that_tensorrt_lacks", Refused, simple(node(("", "Det"), &["x"], &["y"], vec![]))),
        case(
            "operator_of_another_domain_that_tensorrt_lacks",
            Refused,
            simple(node(("ai.onnx.ml", "Binarizer"), &["x"], &["y"], vec![float("threshold", 0.5)])),
        ),
        case(
            "version_of_a_plugin_without_a_namespace",
            Refused,
            with(network("16,16", but(window_of("com.example"), "", vec![string("plugin_version", "2")]))),
        ),
        case("attribute_twice", Otherwise, simple(but(pad(ints("pads", &[2, 2])), "", vec![pads()]))),
        case("version_twice", Otherwise, simple(but(pad(pads()), "", vec![string("plugin_version", "2")]))),
        case(
            "version_twice_and_the_second_is_right",
            Refused,
            simple(but(
                but(pad(pads()), "plugin_version", vec![string("plugin_version", "2")]),
                "",
                vec![string("plugin_version", "1")],
            )),
        ),
        case(
            "namespace_twice",
            Otherwise,
            simple(but(pad(pads()), "", vec![string("plugin_namespace", "other")])),
        ),
        case("flag_twice", Otherwise, simple(but(pad(pads()), "", vec![int("aot", 1)]))),
        case("missing_attribute", Refused, simple(but(pad(pads()), "pads", vec![]))),
        case("beyond_32_bits", Otherwise, simple(pad(ints("pads", &[1, (1 << 32) + 2])))),
        case("text_for_integers", Refused, simple(pad(string("pads", "1,1")))),
        case("floats_for_integers", Refused, simple(pad(floats("pads", &[1.0, 1.0])))),
        case(
            "tensor_of_64_bits_for_integers",
            Refused,
            simple(pad(tensor_attribute(
                "pads",
                tensor_pads(INT64, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
            ))),
        ),
        case("misspelt_attribute", Otherwise, ruled(vec![int("cuont", 2)])),
        case("list_for_one", Refused, ruled(vec![ints("count", &[1, 2])])),
        case("not_one_of", Refused, ruled(vec![int("count", 3)])),
        case("out_of_range", Refused, ruled(vec![int("tiny", 9)])),
        case("float_beyond_half", Refused, ruled(vec![float("half", 1e6)])),
        case("wrong_length", Refused, ruled(vec![floats("scales", &[0.5])])),
        case("wrong_word", Refused, ruled(vec![string("mode", "clamp")])),
        case("requirement", Refused, simple(pad(ints("pads", &[1, 1, 1])))),
        case("requirement_of_a_rank", Refused, simple(pad(ints("pads", &[0; 10])))),
        case("no_code_for_a_value", Refused, window(int("kernel_size", 2))),
        case("input_left_out", Refused, simple(inputs(&[""]))),
        case("optional_input", Refused, simple(inputs(&["x", ""]))),
        case("too_many_inputs", Refused, simple(inputs(&["x", "x"]))),
        case("no_inputs", Refused, simple(inputs(&[]))),
        case("input_that_nobody_makes", Refused, simple(inputs(&["q"]))),
        case("too_many_outputs", Refused, simple(outputs(&["y", "z"]))),
        case(
            "output_without_a_name",
            Refused,
            with(graph(vec![value("x", FLOAT, "2,3")], vec![outputs(&[""])], vec![value("x", FLOAT, "2,3")])),
        ),
        case("wrong_rank", Refused, with(network("", pad(pads())))),
        case("wrong_type", Refused, typed(INT32)),
        case("type_of_bytes", Refused, typed(UINT8)),
        case("beyond_limits", Refused, with(constraints(vec![], "2,5,16"))),
        case("shape_inputs_not_said", Refused, with(stretch(None, &[4, 4], square()))),
        case("shape_inputs_said_wrong", Refused, with(stretch(Some(&[1]), &[4, 4], square()))),
        case(
            "shape_inputs_where_there_are_none",
            Refused,
            simple(but(pad(pads()), "", vec![ints("tensorrt_plugin_shape_input_indices", &[0])])),
        ),
        case("wrong_in_every_call", Refused, function(&[&[1, 1, 1], &[1, 1, 1]])),
        case(
            "wrong_version_and_more",
            Refused,
            simple(but(
                but(pad(string("pads", "1,1")), "plugin_version", vec![string("plugin_version", "3")]),
                "",
                vec![int("padz", 1)],
            )),
        ),
        case("shape_input_beyond_limits", Refused, with(stretch(Some(&[1, 2]), &[4, 5000], square()))),
    ]
}

/// A rule fails for all values of a named dimension: the parser accepts it, each run fails.
pub fn never_right() -> Vec<u8> {
    with(network("n,0", pad(pads())))
}

/// Returns valid models that may look invalid.
pub fn right() -> Vec<Case> {
    let case = |name, model| Case { name, model, fate: Fate::Right };
    let other = NodeProto { domain: Some("other".to_owned()), ..pad(pads()) };
    let double = graph(vec![value("x", DOUBLE, "2,3")], vec![pad(pads())], vec![value("y", DOUBLE, "?")]);
    let constant = GraphProto {
        initializer: vec![tensor("x", FLOAT, &[2, 3], &[0; 24])],
        ..graph(vec![], vec![pad(pads())], vec![value("y", FLOAT, "?")])
    };
    let raw: Vec<u8> = [1_i32, 1].iter().flat_map(|value| value.to_le_bytes()).collect();
    vec![
        case("plain", simple(pad(pads()))),
        case(
            "domain_alone",
            simple(but(but(pad(pads()), "plugin_namespace", vec![]), "plugin_version", vec![])),
        ),
        case("namespace_alone", simple(other)),
        case("plugin_without_a_namespace", with(network("16,16", window_of("com.example")))),
        case("namespace_in_every_call", said_by_calls("plugin_namespace", &["sample", "sample"])),
        case("unknown_attribute", simple(but(pad(pads()), "", vec![string("remark", "from the exporter")]))),
        case("doubles_become_floats", with(double)),
        case("constant_input", with(constant)),
        case("tensor_for_integers", simple(pad(tensor_attribute("pads", tensor("pads", INT32, &[2], &raw))))),
        case("empty_list", simple(pad(ints("pads", &[])))),
        case("shape_inputs", with(stretch(Some(&[1, 2]), &[4, 4], square()))),
        case("shape_inputs_from_the_end", with(stretch(Some(&[-1, -2]), &[4, 4], square()))),
        case("rules_that_are_kept", ruled(vec![int("count", 2), string("mode", "reflect"), int("tiny", -8)])),
        case("unknown_shape", with(network("n,?,8,w", pad(pads())))),
        case("output_of_another_type", other_output(FLOAT16, "2,3,8,10")),
        case("output_of_another_shape", other_output(FLOAT, "2,3,8,8")),
        case("stale_shapes_between_plugins", stale(FLOAT, "2,3,8,8")),
        case("stale_types_between_plugins", stale(FLOAT16, "2,3,8,10")),
        case("name_of_an_operator", simple(node(("mine", "Relu"), &["x"], &["y"], vec![]))),
        case(
            "operator_of_tensorrt",
            simple(node(
                ("com.microsoft", "ScaledTanh"),
                &["x"],
                &["y"],
                vec![float("alpha", 1.0), float("beta", 1.0)],
            )),
        ),
        case("same_in_every_call", function(&[&[1, 1], &[1, 1]])),
        case("other_in_every_call", function(&[&[1, 1], &[0, 0, 2, 2]])),
    ]
}

pub fn foreign() -> Vec<u8> {
    let own = |op: &str, domain: &str, from: &str, to: &str, attributes| {
        node((domain, op), &[from], &[to], attributes)
    };
    let branch = |name: &str| {
        let node = own("CircPad", "mmcv", "a", name, vec![pads()]);
        graph(vec![], vec![node], vec![value(name, FLOAT, "?")])
    };
    let branches =
        vec![graph_attribute("then_branch", branch("t")), graph_attribute("else_branch", branch("e"))];
    let nodes = vec![
        own("CircPad", "mmcv", "x", "a", vec![ints("pads", &[1, 1]), int("aot", 0)]),
        node(("", "If"), &["c"], &["b"], branches),
        own("Add1", "", "b", "d", vec![int("block_size", 64)]),
        own("Relu", "", "d", "r", vec![]),
        node(("com.example", "constraints"), &["r3", "z"], &["y"], vec![int("small", 3)]),
        own("twice", "local", "r", "y2", vec![]),
    ];
    let inputs = vec![
        value("x", FLOAT, "2,3,8,8"),
        value("c", 9, ""),
        value("r3", FLOAT16, "n,4,16"),
        value("z", FLOAT, "16"),
    ];
    let graph = graph(inputs, nodes, vec![value("y", FLOAT16, "?"), value("y2", FLOAT, "?")]);
    let function = FunctionProto {
        name: Some("twice".to_owned()),
        domain: Some("local".to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        node: vec![own("elemwise_add_plugin", "old", "x", "y", vec![int("block_size", 32)])],
        ..FunctionProto::default()
    };
    let mut model = ModelProto::decode(model(graph, &["mmcv", "local"]).as_slice()).unwrap();
    model.functions.push(function);
    model.encode_to_vec()
}

/// As exporters write it: named dimensions, computed shapes, plugins between ordinary operators.
pub fn dynamic() -> Vec<u8> {
    let standard =
        |op: &str, inputs: &[&str], output: &str, attributes| node(("", op), inputs, &[output], attributes);
    let constant = |name: &str, values: &[i64]| {
        standard("Constant", &[], name, vec![tensor_attribute("value", integers("", values))])
    };
    let named = |name: &str, node: NodeProto| NodeProto { name: Some(name.to_owned()), ..node };
    let plugin =
        |name: &str, op: &str, namespace: &str, inputs: &[&str], output: &str, more: Vec<AttributeProto>| {
            named(name, node((namespace, op), inputs, &[output], [own(namespace), more].concat()))
        };
    let nodes = vec![
        standard("Conv", &["x", "weights"], "features", vec![ints("pads", &[1, 1, 1, 1])]),
        standard("Relu", &["features"], "active", vec![]),
        plugin("pad", "circ_pad_plugin", "sample", &["active"], "padded", vec![ints("pads", &[1, 1, 2, 2])]),
        standard(
            "AveragePool",
            &["padded"],
            "pooled",
            vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])],
        ),
        plugin("add", "elemwise_add_plugin", "sample", &["pooled"], "more", vec![int("block_size", 128)]),
        standard("Shape", &["more"], "shape", vec![]),
        constant("first", &[0]),
        standard("Gather", &["shape", "first"], "batch", vec![int("axis", 0)]),
        constant("rest", &[-1]),
        standard("Concat", &["batch", "rest"], "rows", vec![int("axis", 0)]),
        standard("Reshape", &["more", "rows"], "flat", vec![]),
        constant("three", &[3]),
        standard("Mul", &["batch", "three"], "thrice", vec![]),
        standard("Concat", &["thrice", "three"], "target", vec![int("axis", 0)]),
        plugin(
            "stretch",
            "stretch",
            "test",
            &["flat", "target", "times"],
            "y",
            vec![ints("tensorrt_plugin_shape_input_indices", &[1, 2])],
        ),
    ];
    let mut graph =
        graph(vec![value("x", FLOAT, "batch,3,height,2*half")], nodes, vec![value("y", FLOAT, "?,?")]);
    graph.initializer = vec![
        tensor("weights", FLOAT, &[8, 3, 3, 3], &[0; 8 * 27 * 4]),
        tensor("times", INT32, &[1], &2_i32.to_le_bytes()),
    ];
    with(graph)
}

fn other_output(element: i32, shape: &str) -> Vec<u8> {
    let graph = graph(
        vec![value("x", FLOAT, "2,3,8,8")],
        vec![
            NodeProto { output: vec!["t".to_owned()], ..pad(pads()) },
            node(("", "Relu"), &["t"], &["y"], vec![]),
        ],
        vec![value("y", FLOAT, "?")],
    );
    with(GraphProto { value_info: vec![value("t", element, shape)], ..graph })
}

fn stale(element: i32, shape: &str) -> Vec<u8> {
    let between = |from: &str, to: &str| NodeProto {
        name: Some(to.to_owned()),
        input: vec![from.to_owned()],
        output: vec![to.to_owned()],
        ..pad(pads())
    };
    let nodes = vec![between("x", "t"), node(("", "Relu"), &["t"], &["u"], vec![]), between("u", "y")];
    let graph = graph(vec![value("x", FLOAT, "2,3,8,8")], nodes, vec![value("y", FLOAT, "?")]);
    with(GraphProto { value_info: vec![value("t", element, shape), value("u", element, shape)], ..graph })
}

/// The input is dynamic, but tensor `t` still has its old shape.
pub fn made_dynamic() -> Vec<u8> {
    let nodes = vec![
        node(("", "Relu"), &["x"], &["t"], vec![]),
        NodeProto { input: vec!["t".to_owned()], ..pad(pads()) },
    ];
    let graph = graph(vec![value("x", FLOAT, "n,3,4,4")], nodes, vec![value("y", FLOAT, "?")]);
    with(GraphProto { value_info: vec![value("t", FLOAT, "1,3,4,4")], ..graph })
}

pub fn many(count: usize) -> Vec<u8> {
    let name = |index: usize| if index == 0 { "x".to_owned() } else { format!("t{index}") };
    let one = |index: usize| {
        let attributes = [own("sample"), vec![int("block_size", 64)]].concat();
        node(("sample", "elemwise_add_plugin"), &[&name(index)], &[&name(index + 1)], attributes)
    };
    let nodes = (0..count).map(one).collect();
    with(graph(vec![value("x", FLOAT, "2,3")], nodes, vec![value(&name(count), FLOAT, "?")]))
}

pub fn opaque() -> Vec<u8> {
    let nodes = vec![
        node(("", "NonMaxSuppression"), &["x"], &["hidden"], vec![]),
        NodeProto { input: vec!["hidden".to_owned()], ..pad(pads()) },
    ];
    with(graph(vec![value("x", FLOAT, "n,4")], nodes, vec![value("y", FLOAT, "?")]))
}

pub fn with_weights_beside_it(file: &str) -> Vec<u8> {
    let mut graph = network("2,4", pad(pads()));
    graph.initializer.push(TensorProto {
        raw_data: None,
        data_location: Some(1),
        external_data: vec![StringStringEntryProto {
            key: Some("location".to_owned()),
            value: Some(file.to_owned()),
        }],
        ..tensor("weight", FLOAT, &[2, 4], &[])
    });
    with(graph)
}
