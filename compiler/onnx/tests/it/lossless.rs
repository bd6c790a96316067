use std::io::Cursor;

use cubinder_onnx::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto};
use cubinder_onnx::testing::*;
use cubinder_onnx::{Edits, Error, Model, NodeId, Owner};
use proptest::prelude::*;
use prost::Message;

fn read(bytes: &[u8]) -> Result<Model, Error> {
    Model::read(Cursor::new(bytes))
}

fn written(bytes: &[u8], change: impl FnOnce(&mut Edits<'_>)) -> Vec<u8> {
    let model = read(bytes).unwrap();
    let mut edits = Edits::new(&model);
    change(&mut edits);
    let mut out = Vec::new();
    edits.write(Cursor::new(bytes), &mut out).unwrap();
    let seen = Model::read(edits.view(Cursor::new(bytes))).unwrap();
    let again = read(&out).unwrap();
    let nodes = |model: &Model| model.nodes().map(|(id, node)| (id, node.proto.clone())).collect::<Vec<_>>();
    assert_eq!(nodes(&seen), nodes(&again));
    out
}

/// Edits by decoding and encoding everything. Only for models that prost encodes unchanged.
fn expected(bytes: &[u8], change: impl FnOnce(&mut ModelProto)) -> Vec<u8> {
    let mut model = ModelProto::decode(bytes).unwrap();
    change(&mut model);
    model.encode_to_vec()
}

fn inner(name: &str) -> GraphProto {
    let node = node(("sample", "pad"), &["x"], &[name], vec![ints("pads", &[1, 1])]);
    graph(vec![], vec![node], vec![value(name, FLOAT, "?")])
}

fn branches() -> Vec<u8> {
    let attributes =
        vec![graph_attribute("then_branch", inner("a")), graph_attribute("else_branch", inner("b"))];
    let nodes = vec![
        node(("", "If"), &["c"], &["t"], attributes),
        node(("sample", "pad"), &["t"], &["y"], vec![int("n", 3), string("mode", "wrap")]),
    ];
    let mut graph =
        graph(vec![value("x", FLOAT, "2,3"), value("c", 9, "")], nodes, vec![value("y", FLOAT, "n,?")]);
    graph.initializer.push(tensor("large", FLOAT, &[100_000], &vec![7; 400_000]));
    graph.initializer.push(integers("small", &[1, -1]));
    model(graph, &["sample"])
}

#[test]
fn weights_are_left_out_and_everything_else_is_read() {
    let bytes = branches();
    let model = read(&bytes).unwrap();
    assert_eq!((model.ir_version, model.opsets.len(), model.graphs.len()), (8, 2, 3));
    let network = &model.graphs[0];
    assert_eq!(network.initializers[0].raw_data, None, "large data are not read");
    assert_eq!(network.initializers[0].dims, [100_000]);
    assert_eq!(network.initializers[1], integers("small", &[1, -1]));
    assert_eq!(network.inputs[0].ty, value("x", FLOAT, "2,3").r#type);
    assert_eq!(network.nodes[1].proto.attribute, vec![int("n", 3), string("mode", "wrap")]);
    let owner = Owner::Node { node: NodeId { graph: 0, node: 0 }, attribute: "then_branch".to_owned() };
    assert_eq!(model.graphs[1].owner, owner);
    assert_eq!(model.graphs[2].nodes[0].proto.output, ["b"]);
    assert_eq!(model.nodes().count(), 4);
    assert_eq!(network.nodes[0].proto.attribute.len(), 2);
    assert!(network.nodes[0].proto.attribute.iter().all(|attribute| attribute.g.is_none()));
}

#[test]
fn without_edits_nothing_changes() {
    let bytes = branches();
    assert_eq!(written(&bytes, |_| {}), bytes);
}

#[test]
fn a_node_changes_and_every_length_around_it_fits() {
    let bytes = branches();
    let id = NodeId { graph: 2, node: 0 };
    for domain in ["s", "sample", &"long".repeat(100), &"longer".repeat(10_000)] {
        let found = written(&bytes, |edits| {
            edits.set_domain(id, domain);
            edits.set_attribute(id, &ints("pads", &[4, 5, 6]));
            edits.set_attribute(id, &int("aot", 1));
            edits.set_op_type(NodeId { graph: 0, node: 1 }, "other");
            edits.set_attribute(NodeId { graph: 0, node: 0 }, &int("last", 1));
            edits.import(0, "new", 7);
        });
        let wanted = expected(&bytes, |model| {
            model.opset_import.push(OperatorSetIdProto { domain: Some("new".to_owned()), version: Some(7) });
            let nodes = &mut model.graph.as_mut().unwrap().node;
            let inner: &mut NodeProto = &mut nodes[0].attribute[1].g.as_mut().unwrap().node[0];
            inner.domain = Some(domain.to_owned());
            inner.attribute = vec![ints("pads", &[4, 5, 6]), int("aot", 1)];
            nodes[0].attribute.push(int("last", 1));
            nodes[1].op_type = Some("other".to_owned());
        });
        // Added fields are in another order.
        assert_eq!(
            ModelProto::decode(found.as_slice()).unwrap(),
            ModelProto::decode(wanted.as_slice()).unwrap()
        );
        assert_eq!(found.len(), wanted.len());
    }
}

#[test]
fn what_is_set_twice_is_what_it_was_set_to_last() {
    let bytes = branches();
    let id = NodeId { graph: 0, node: 1 };
    let found = written(&bytes, |edits| {
        edits.set_attribute(id, &int("n", 1));
        edits.set_attribute(id, &int("n", 2));
    });
    let wanted = expected(&bytes, |model| model.graph.as_mut().unwrap().node[1].attribute[0] = int("n", 2));
    assert_eq!(found, wanted);
}

#[test]
fn functions_have_operator_sets_of_their_own() {
    let function = FunctionProto {
        name: Some("twice".to_owned()),
        domain: Some("local".to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        node: vec![node(("other", "pad"), &["x"], &["y"], vec![])],
        opset_import: vec![OperatorSetIdProto { domain: Some("other".to_owned()), version: Some(1) }],
        ..FunctionProto::default()
    };
    let mut model = ModelProto::decode(branches().as_slice()).unwrap();
    model.functions.push(function);
    let bytes = model.encode_to_vec();
    let model = read(&bytes).unwrap();
    assert!(
        matches!(&model.graphs[3].owner, Owner::Function { domain, name, .. } if domain == "local" && name == "twice")
    );
    assert_eq!(model.opsets_of(3).len(), 1);
    let found = written(&bytes, |edits| {
        edits.set_domain(NodeId { graph: 3, node: 0 }, "sample");
        edits.import(3, "sample", 1);
    });
    let wanted = expected(&bytes, |model| {
        model.functions[0].node[0].domain = Some("sample".to_owned());
        let import = OperatorSetIdProto { domain: Some("sample".to_owned()), version: Some(1) };
        model.functions[0].opset_import.push(import);
    });
    assert_eq!(found, wanted);
}

#[test]
fn unknown_fields_stay() {
    let node = [node(("sample", "pad"), &["x"], &["y"], vec![]).encode_to_vec(), unknown()].concat();
    let graph = [field(1, &node), unknown(), field(2, b"graph")].concat();
    let bytes = [unknown(), field(7, &graph), unknown()].concat();
    assert_eq!(written(&bytes, |_| {}), bytes);
    let id = NodeId { graph: 0, node: 0 };
    let found = written(&bytes, |edits| edits.set_attribute(id, &int("aot", 1)));
    let node = [node, field(5, &int("aot", 1).encode_to_vec())].concat();
    let graph = [field(1, &node), unknown(), field(2, b"graph")].concat();
    assert_eq!(found, [unknown(), field(7, &graph), unknown()].concat());
}

fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    prost::encode_length_delimiter(payload.len(), &mut bytes).unwrap();
    bytes.extend(payload);
    bytes
}

/// Field 200: a number, 4 bytes, 8 bytes and text.
fn unknown() -> Vec<u8> {
    let key = |kind: u16| [0xc0 | kind as u8, 0x0c];
    [&key(0)[..], &[5], &key(5), &[1, 2, 3, 4], &key(1), &[9; 8], &key(2), &[3], b"???"].concat()
}

#[test]
fn what_is_no_model_is_refused_with_the_place() {
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(said(b""), "not an ONNX model: it contains no graph");
    let text = said(b"schema = 1\n[plugin]\n");
    assert!(text.starts_with("not an ONNX model: at byte 19, in ModelProto: "), "{text}");
    let bytes = branches();
    let cut = said(&bytes[..bytes.len() - 100]);
    assert!(cut.starts_with("the file is truncated: at byte ") && cut.contains(" remain"), "{cut}");
    let twice = [bytes.as_slice(), &bytes].concat();
    assert!(said(&twice).ends_with("duplicate graph"));
}

#[test]
fn deep_graphs_are_refused() {
    let mut graph = inner("y");
    for _ in 0..100 {
        let attributes = vec![graph_attribute("body", graph)];
        graph =
            cubinder_onnx::testing::graph(vec![], vec![node(("", "Loop"), &[], &["y"], attributes)], vec![]);
    }
    let error = read(&model(graph, &[])).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

/// 3 GiB of weights in a sparse file, and 10,000 nodes.
#[test]
fn weights_beyond_memory_are_never_read() {
    use std::io::{Seek, SeekFrom, Write};
    const WEIGHTS: u64 = 3 << 30;
    let named = |number: usize| if number == 0 { "x".to_owned() } else { format!("t{number}") };
    let nodes: Vec<NodeProto> = (0..10_000)
        .map(|number| {
            let (from, to) = (named(number), named(number + 1));
            node(
                ("sample", "pad"),
                &[&from],
                &[&to],
                vec![ints("pads", &[1, 1]), string("plugin_version", "1")],
            )
        })
        .collect();
    let graph =
        graph(vec![value("x", FLOAT, "2,3")], nodes, vec![value("t10000", FLOAT, "?")]).encode_to_vec();
    // An initializer: name, type, and raw data of that length.
    let mut data = Vec::new();
    prost::encode_length_delimiter(WEIGHTS as usize, &mut data).unwrap();
    let head = [&[0x10, 1, 0x42, 1, b'w', 0x4a][..], &data].concat();
    let tensor = head.len() as u64 + WEIGHTS;
    let mut before = vec![0x2a];
    prost::encode_length_delimiter(tensor as usize, &mut before).unwrap();
    before.extend(&head);
    let mut start = vec![0x08, 8, 0x3a];
    let length = before.len() as u64 + WEIGHTS + graph.len() as u64;
    prost::encode_length_delimiter(length as usize, &mut start).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[start.as_slice(), &before].concat()).unwrap();
    file.seek(SeekFrom::Current(WEIGHTS as i64)).unwrap();
    file.write_all(&graph).unwrap();
    let started = std::time::Instant::now();
    let model = Model::read(&file).unwrap();
    let took = started.elapsed();
    assert_eq!((model.graphs[0].nodes.len(), model.graphs[0].initializers.len()), (10_000, 1));
    // An unoptimized run takes half of it.
    assert!(took.as_secs() < 4, "{took:?}");
    let mut edits = Edits::new(&model);
    edits.set_domain(NodeId { graph: 0, node: 9_999 }, "other");
    assert!(!edits.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_come_out_as_they_are(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), at in any::<prop::sample::Index>()) {
        let whole = branches();
        let at = at.index(1000);
        bytes = [&whole[..at], &bytes, &whole[at..]].concat();
        if let Ok(model) = read(&bytes) {
            let mut out = Vec::new();
            Edits::new(&model).write(Cursor::new(&bytes), &mut out).unwrap();
            prop_assert_eq!(&out, &bytes);
            let mut edits = Edits::new(&model);
            for (id, _) in model.nodes() {
                edits.set_domain(id, "changed");
                edits.set_attribute(id, &int("aot", 1));
            }
            let mut out = Vec::new();
            edits.write(Cursor::new(&bytes), &mut out).unwrap();
            let again = read(&out).unwrap();
            prop_assert_eq!(again.nodes().count(), model.nodes().count());
            prop_assert!(again.nodes().all(|(_, node)| node.domain() == "changed"));
        }
    }
}

fn group(number: u8) -> Vec<u8> {
    let inner = [0x1b, 0x08, 0x05, 0x1c];
    [&[number << 3 | 3, 0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i'][..], &inner, &[number << 3 | 4]].concat()
}

#[test]
fn groups_come_out_as_they_were() {
    let mut made = node(("sample", "pad"), &["x"], &["y"], vec![int("n", 1)]).encode_to_vec();
    made.extend(group(15));
    let mut network = [vec![0x0a, u8::try_from(made.len()).unwrap()], made].concat();
    network.extend(group(14));
    let bytes =
        [vec![0x08, 8], group(13), vec![0x3a, u8::try_from(network.len()).unwrap()], network].concat();
    let id = NodeId { graph: 0, node: 0 };
    assert_eq!(written(&bytes, |_| {}), bytes);
    let found = written(&bytes, |edits| edits.set_attribute(id, &int("n", 2)));
    let changed = bytes.iter().zip(&found).filter(|(before, after)| before != after).count();
    assert_eq!((found.len(), changed), (bytes.len(), 1));
    for wrong in [vec![0x6b, 0x08, 1], vec![0x6b, 0x74], vec![0x6b; 100], vec![0x6c]] {
        assert!(read(&[vec![0x08, 8], wrong].concat()).is_err());
    }
}

#[test]
fn a_file_that_lost_its_end_is_told_from_one_that_is_no_model() {
    let bytes = branches();
    for end in [bytes.len() - 1, bytes.len() / 2, 20, 6] {
        let error = read(&bytes[..end]).unwrap_err();
        assert!(matches!(error, Error::CutOff { .. }), "{end}: {error}");
    }
    for other in [&b"version https://git-lfs.github.com/spec/v1\n"[..], b"\x7fELF\x02\x01\x01", b"PK\x03\x04"]
    {
        let error = read(other).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Domain(usize, String),
    OpType(usize, String),
    Attribute(usize, String, Vec<i64>),
    Import(String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let node = || 0..4_usize;
    let text = || prop_oneof!["[a-c]{1,2}", "[a-z]{100,200}"];
    let step = prop_oneof![
        (node(), text()).prop_map(|(node, text)| Step::Domain(node, text)),
        (node(), text()).prop_map(|(node, text)| Step::OpType(node, text)),
        (node(), "pads|n|mode|new", proptest::collection::vec(any::<i64>(), 0..40))
            .prop_map(|(node, name, values)| Step::Attribute(node, name, values)),
        text().prop_map(Step::Import),
    ];
    proptest::collection::vec(step, 0..8)
}

fn set_attribute(node: &mut NodeProto, name: &str, values: &[i64]) {
    match node.attribute.iter_mut().rev().find(|attribute| attribute.name() == name) {
        Some(attribute) => *attribute = ints(name, values),
        None => node.attribute.push(ints(name, values)),
    }
}

proptest! {
    #[test]
    fn edits_change_what_they_name_and_nothing_else(steps in steps()) {
        let bytes = branches();
        let ids: Vec<NodeId> = read(&bytes).unwrap().nodes().map(|(id, _)| id).collect();
        let found = written(&bytes, |edits| {
            for step in &steps {
                match step {
                    Step::Domain(node, text) => edits.set_domain(ids[*node], text),
                    Step::OpType(node, text) => edits.set_op_type(ids[*node], text),
                    Step::Attribute(node, name, values) => edits.set_attribute(ids[*node], &ints(name, values)),
                    Step::Import(domain) => edits.import(0, domain, 1),
                }
            }
        });
        // The last of several values counts; a missing attribute is added each time.
        let mut last: std::collections::BTreeMap<(usize, String), &Step> = std::collections::BTreeMap::new();
        for step in &steps {
            match step {
                Step::Domain(node, _) => last.insert((*node, "/domain".to_owned()), step),
                Step::OpType(node, _) => last.insert((*node, "/op".to_owned()), step),
                Step::Attribute(node, name, _) => last.insert((*node, name.clone()), step),
                Step::Import(_) => None,
            };
        }
        let mut wanted = ModelProto::decode(bytes.as_slice()).unwrap();
        for step in last.values() {
            let graph = wanted.graph.as_mut().unwrap();
            let (Step::Domain(index, _) | Step::OpType(index, _) | Step::Attribute(index, ..)) = step else { continue };
            let node = match ids[*index] {
                NodeId { graph: 0, node } => &mut graph.node[node],
                NodeId { graph: inner, .. } => {
                    &mut graph.node[0].attribute[inner - 1].g.as_mut().unwrap().node[0]
                }
            };
            match step {
                Step::Domain(_, text) => node.domain = Some(text.clone()),
                Step::OpType(_, text) => node.op_type = Some(text.clone()),
                Step::Attribute(_, name, values) => set_attribute(node, name, values),
                Step::Import(_) => {}
            }
        }
        let mut found = ModelProto::decode(found.as_slice()).unwrap();
        let imports = steps.iter().filter_map(|step| if let Step::Import(domain) = step { Some(domain.as_str()) } else { None });
        let imported: Vec<&str> = found.opset_import.iter().skip(2).map(OperatorSetIdProto::domain).collect();
        prop_assert_eq!(imported, imports.collect::<Vec<_>>());
        found.opset_import.truncate(2);
        // Added attributes have another order, and may repeat.
        for model in [&mut found, &mut wanted] {
            let graph = model.graph.as_mut().unwrap();
            for node in &mut graph.node {
                ordered(node);
            }
        }
        prop_assert_eq!(found, wanted);
    }
}

fn ordered(node: &mut NodeProto) {
    let mut last = std::collections::BTreeMap::new();
    for mut attribute in std::mem::take(&mut node.attribute) {
        for node in attribute.g.iter_mut().flat_map(|graph| &mut graph.node) {
            ordered(node);
        }
        last.insert(attribute.name().to_owned(), attribute);
    }
    node.attribute = last.into_values().collect();
}
