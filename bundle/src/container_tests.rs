use proptest::prelude::*;

use super::*;
use crate::code::{Arch, ArchSuffix, KernelParam, TargetKind};
use crate::data_type::{DataType, ScalarType};
use crate::expr::{self, Expr};
use crate::format::Format;
use crate::model::{
    Arg, ArgValue, Attribute, AttributeElement, AttributeType, CodeRef, Guard, Input, Interval, Launch,
    MAX_VARIANT_ID, Output, Plugin, Requirement, ShapeLimits, SizeBound, Step, TunedDevice, TunedPoint,
    Variant,
};

fn target(kind: TargetKind) -> Target {
    Target { kind, arch: Arch { major: 8, minor: 9, suffix: ArchSuffix::None } }
}

fn int(value: i64) -> Expr {
    Expr { nodes: vec![expr::Node::Int(value)] }
}

fn code(kind: TargetKind, bytes: &[u8]) -> CodeObject {
    CodeObject {
        target: target(kind),
        digest: Digest::of(bytes),
        kernels: vec![KernelFacts {
            symbol: "_Z3addPKfPf".to_owned(),
            registers: Some(16),
            shared_bytes: Some(0),
            local_bytes: None,
            max_threads: None,
            params: vec![KernelParam { offset: 0, size: 8 }],
        }],
        bytes: bytes.to_vec().into(),
    }
}

fn tuned_point() -> TunedPoint {
    TunedPoint { attributes: vec![(0, Value::Int(64))], shapes: vec![vec![2, 3]; 2], ranking: vec![0] }
}

fn tuned(capability: u16, sms: u32, points: Vec<TunedPoint>) -> TunedDevice {
    TunedDevice { name: "a GPU".to_owned(), capability, sms, points }
}

fn plugin() -> Plugin {
    Plugin {
        name: "add".to_owned(),
        namespace: "sample".to_owned(),
        version: "1".to_owned(),
        summary: "Adds.".to_owned(),
        attributes: vec![Attribute {
            default: Some(Value::Int(256)),
            minimum: Some(Value::Int(1)),
            maximum: Some(Value::Int(1024)),
            ..Attribute::new("block_size", AttributeType::I32)
        }],
        inputs: vec![Input {
            values: None,
            doc: String::new(),
            name: "x".to_owned(),
            rank_min: 0,
            rank_max: 8,
            limits: ShapeLimits::default(),
        }],
        outputs: vec![Output {
            alias: None,
            size: None,
            doc: String::new(),
            name: "y".to_owned(),
            shape: Expr { nodes: vec![expr::Node::Shape(0)] },
            limits: ShapeLimits::default(),
        }],
        require: vec![Requirement {
            expr: Expr { nodes: vec![expr::Node::Bool(true)] },
            text: "true".to_owned(),
            message: "always".to_owned(),
        }],
        timing: None,
        tuning: vec![tuned(90, 132, vec![tuned_point()])],
        variants: vec![Variant {
            id: 1,
            label: "T=f32".to_owned(),
            types: vec![DataType::F32, DataType::F32],
            guard: None,
            formats: vec![Format::Linear; 2],
            specialized: Vec::new(),
            scratch: Vec::new(),
            steps: vec![Step::launch(Launch {
                cluster: None,
                cooperative: false,
                programmatic: false,
                kernel: "add<float>".to_owned(),
                grid: [int(4), int(1), int(1)],
                block: [Expr { nodes: vec![expr::Node::Attribute(0)] }, int(1), int(1)],
                shared_bytes: int(0),
                args: vec![
                    Arg { name: "x".to_owned(), value: ArgValue::Tensor(0) },
                    Arg {
                        name: "n".to_owned(),
                        value: ArgValue::Scalar {
                            ty: ScalarType::Int { bytes: 4 },
                            expr: Expr { nodes: vec![expr::Node::Numel(1)] },
                        },
                    },
                ],
                code: vec![
                    CodeRef { target: target(TargetKind::Cubin), code: 0, symbol: "_Z3addPKfPf".to_owned() },
                    CodeRef { target: target(TargetKind::Ptx), code: 1, symbol: "_Z3addPKfPf".to_owned() },
                ],
            })],
        }],
    }
}

fn bundle() -> Bundle {
    Bundle {
        producer: "cubinder test".to_owned(),
        plugins: vec![plugin()],
        code: vec![code(TargetKind::Cubin, b"\x7fELF and so on"), code(TargetKind::Ptx, b".version 9.0")],
    }
}

pub(crate) fn node() -> Node {
    Node {
        workspace_bytes: None,
        producer: "cubinder test".to_owned(),
        plugin: plugin(),
        attributes: vec![Value::Int(128)],
        input_ranks: Some(vec![4]),
        code: bundle().code,
    }
}

/// A reference with everything in it.
fn reference() -> NodeReference {
    NodeReference {
        workspace_bytes: Some(1 << 20),
        bundle: Digest::of(b"bundle").shortened(),
        plugin: 5,
        attributes: vec![Value::Array(vec![Value::Int(-1)])],
        row: Some(3),
        input_ranks: None,
    }
}

/// A node whose code becomes smaller.
fn node_with_packed_code() -> Node {
    let text = [b".version 9.0\n".to_vec(), b"add.s32 %r1, %r2, %r3;\n".repeat(9)].concat();
    let mut node = node();
    node.code[1].digest = Digest::of(&text);
    node.code[1].bytes = CodeBytes::pack(text);
    assert!(node.code[1].bytes.is_packed());
    node
}

/// Puts right the length and the digest of bytes that were changed on purpose.
fn seal(bytes: &mut [u8]) {
    let kind = if bytes.starts_with(&REFERENCE_MAGIC) { Kind::NodeReference } else { Kind::Node };
    header::seal(kind, bytes);
}

#[test]
fn what_is_written_is_read() {
    let bytes = write_bundle(&bundle());
    let found = read(&bytes).unwrap();
    assert_eq!(found.container, Container::Bundle(bundle()));
    assert_eq!(found.length, bytes.len());
    assert_eq!(read(&write_node(&node())).unwrap().container, Container::Node(node()));
    assert_eq!(
        read(&write_node(&node_with_packed_code())).unwrap().container,
        Container::Node(node_with_packed_code())
    );
    let read_back = read(&write_node_reference(&reference())).unwrap();
    assert_eq!(read_back.container, Container::NodeReference(reference()));
    assert_eq!(read_back.length, write_node_reference(&reference()).len());
}

#[test]
fn code_is_aligned_and_verbatim() {
    let bytes = write_bundle(&bundle());
    for object in bundle().code {
        let raw = object.raw().unwrap();
        let at = bytes.windows(raw.len()).position(|window| window == &*raw).unwrap();
        assert_eq!(at % CODE_ALIGNMENT, 0);
    }
}

#[test]
fn every_changed_byte_is_refused() {
    for bytes in [write_node(&node_with_packed_code()), write_node_reference(&reference())] {
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 0x01;
            assert!(read(&changed).is_err(), "byte {index}");
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for bytes in [write_node(&node_with_packed_code()), write_node_reference(&reference())] {
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn sealed_damage_is_refused_or_means_something_else() {
    for bytes in [write_node(&node_with_packed_code()), write_node_reference(&reference())] {
        let good = read(&bytes).unwrap().container;
        for index in 8..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[index] ^= flip;
                seal(&mut changed);
                if let Ok(found) = read(&changed) {
                    assert!(changed == bytes || found.container != good, "byte {index} does not matter");
                }
            }
        }
    }
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let mut bytes = write_bundle(&bundle());
    bytes[16] = 3;
    seal(&mut bytes);
    insta::assert_snapshot!(
        read(&bytes).unwrap_err(),
        @"format version 3, and this version of Cubinder reads version 2 only: use a newer libcubinder.so"
    );
}

/// What a reference takes in an engine, where TensorRT-RTX stores it twice for each node.
#[test]
fn a_reference_is_small() {
    let reference = NodeReference {
        workspace_bytes: Some(1 << 20),
        attributes: vec![Value::Array([1, 1, 1, 1].map(Value::Int).to_vec())],
        row: Some(200),
        input_ranks: Some(vec![4, 4]),
        ..reference()
    };
    insta::assert_snapshot!(write_node_reference(&reference).len(), @"53");
}

#[test]
fn an_older_format_is_refused_by_name() {
    let mut long = write_bundle(&bundle());
    long[16] = 1;
    let mut short = write_node_reference(&reference());
    short[8] = 1;
    for mut bytes in [long, short] {
        seal(&mut bytes);
        assert_eq!(
            read(&bytes).unwrap_err().to_string(),
            "format version 1, and this version of Cubinder reads version 2 only: compile the plugins again"
        );
    }
}

/// Only what runs is unpacked, so code that is not what its digest says is found by who unpacks it.
#[test]
fn compressed_code_is_held_against_its_digest_when_it_is_unpacked() {
    let mut node = node_with_packed_code();
    node.code[1].digest = Digest::of(b"other");
    let bytes = write_node(&node);
    let error = read(&bytes).unwrap_err().to_string();
    assert!(error.ends_with("it does not have its digest"), "{error}");
    let Container::Node(node) = read_to_run(&bytes).unwrap().container else { panic!("a node was written") };
    assert_eq!(node.code[1].raw(), Err(crate::packed::BadCode::Digest));
    assert!(node.code[0].raw().is_ok());
}

#[test]
fn compressed_code_stays_compressed() {
    let node = node_with_packed_code();
    let bytes = write_node(&node);
    let Container::Node(found) = read(&bytes).unwrap().container else { panic!("a node was written") };
    assert_eq!(found.code[1].bytes.stored(), node.code[1].bytes.stored());
    assert_eq!(write_node(&found), bytes);
}

#[test]
fn mapped_code_is_not_copied() {
    let bytes: &'static [u8] = write_bundle(&bundle()).leak();
    let found = read_mapped(bytes).unwrap();
    assert_eq!(found, read(bytes).unwrap());
    let Container::Bundle(mapped) = found.container else { panic!("a bundle was written") };
    for object in mapped.code {
        assert!(bytes.as_ptr_range().contains(&object.bytes.stored().as_ptr()));
        assert!(bytes.as_ptr_range().contains(&object.raw().unwrap().as_ptr()));
    }
}

#[test]
fn a_number_in_more_bytes_than_it_needs_is_refused() {
    let mut bytes = write_node_reference(&reference());
    assert_eq!(bytes[SHORT_BYTES + 8], 5);
    bytes.splice(SHORT_BYTES + 8..SHORT_BYTES + 9, [0x85, 0x00]);
    seal(&mut bytes);
    let refused = ReadError::Malformed("the model: not as a writer encodes it".to_owned());
    assert_eq!(read(&bytes), Err(refused));
}

#[test]
fn a_model_that_refers_to_nothing_is_refused() {
    let refused = |change: &dyn Fn(&mut Node)| {
        let mut node = node();
        change(&mut node);
        match read(&write_node(&node)) {
            Err(ReadError::Malformed(error)) => error,
            other => panic!("expected malformed, found {other:?}"),
        }
    };
    let errors = [
        refused(&|node| node.attributes.clear()),
        refused(&|node| node.attributes[0] = Value::Float(0.5)),
        refused(&|node| node.plugin.variants[0].types.clear()),
        refused(&|node| node.plugin.variants[0].id = 0),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().code[0].code = 9),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().code[0].symbol.push('x')),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().args[0].value = ArgValue::Tensor(2)),
        refused(&|node| {
            node.plugin.variants[0].launch_mut(0).unwrap().args[0].value = ArgValue::ReadTensor(2);
        }),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().block[0] = int(1).and_attribute(7)),
        refused(&|node| node.plugin.outputs[0].shape = Expr { nodes: vec![expr::Node::Shape(1)] }),
        refused(&|node| node.plugin.name.push('\0')),
        refused(&|node| node.plugin.inputs[0].rank_max = 9),
        refused(&|node| node.code.push(node.code[0].clone())),
        refused(&|node| node.input_ranks = Some(vec![])),
        refused(&|node| node.input_ranks = Some(vec![9])),
        refused(&|node| {
            let arg = node.plugin.variants[0].launch(0).unwrap().args[0].clone();
            node.plugin.variants[0].launch_mut(0).unwrap().args = vec![arg; 513];
        }),
        refused(&|node| {
            let value = ArgValue::Array { ty: ScalarType::F64, len: 4096, expr: int(0) };
            node.plugin.variants[0].launch_mut(0).unwrap().args[0].value = value;
        }),
        refused(&|node| node.plugin.require = vec![node.plugin.require[0].clone(); 257]),
        refused(&|node| node.attributes[0] = Value::Int(1025)),
        refused(&|node| node.plugin.attributes[0].default = Some(Value::Int(0))),
        refused(&|node| node.plugin.attributes[0].maximum = Some(Value::Int(0))),
        refused(&|node| node.plugin.attributes[0].one_of = (1..=1025).map(Value::Int).collect()),
        refused(&|node| node.plugin.variants[0].id = MAX_VARIANT_ID + 1),
        refused(&|node| node.plugin.variants.push(node.plugin.variants[0].clone())),
        refused(&|node| node.plugin.inputs[0].limits.every = Interval { min: 3, max: 2 }),
        refused(&|node| node.plugin.outputs[0].limits.numel.min = -1),
        refused(&|node| node.plugin.inputs[0].limits.dims = vec![Interval::ANY_SIZE; 2]),
        refused(&|node| node.plugin.outputs[0].limits.dims = vec![Interval::ANY_SIZE; 9]),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().grid[0] = aligned(0, 16)),
        refused(&|node| node.plugin.outputs[0].shape = aligned(0, 16)),
        refused(&|node| node.plugin.require[0].expr = aligned(0, 16)),
        refused(&|node| guard(node, aligned(0, 24))),
        refused(&|node| guard(node, aligned(2, 16))),
        refused(&|node| guard(node, all_aligned(17))),
        refused(&|node| node.plugin.tuning = vec![tuned(90, 132, Vec::new()); 65]),
        refused(&|node| node.plugin.tuning.push(tuned(90, 132, Vec::new()))),
        refused(&|node| node.plugin.tuning = vec![tuned(90, 1, vec![tuned_point(); 4097])]),
        refused(&|node| first_point(node).shapes = vec![vec![1; 1 << 16], vec![1]]),
        refused(&|node| first_point(node).shapes = vec![vec![1; 9]; 2]),
        refused(&|node| first_point(node).shapes.clear()),
        refused(&|node| first_point(node).attributes.push((0, Value::Int(64)))),
        refused(&|node| first_point(node).attributes[0].0 = 1),
        refused(&|node| first_point(node).attributes[0].1 = Value::Int(0)),
        refused(&|node| node.plugin.tuning[0].points = vec![long_point(node); 2]),
        refused(&|node| first_point(node).ranking.clear()),
        refused(&|node| first_point(node).ranking = vec![1]),
        refused(&|node| first_point(node).ranking.push(0)),
        refused(&|node| first_point(node).ranking = vec![0; 65]),
        refused(&|node| {
            let other = Variant { types: vec![DataType::F16; 2], ..node.plugin.variants[0].clone() };
            node.plugin.variants.push(other);
            first_point(node).ranking.push(1);
        }),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn what_is_not_known_where_it_is_asked_for_is_refused() {
    let leaf = |leaf: expr::Node| Expr { nodes: vec![leaf] };
    let refused = |change: &dyn Fn(&mut Plugin)| {
        let mut node = node();
        change(&mut node.plugin);
        node.input_ranks = None;
        match read(&write_node(&node)) {
            Err(ReadError::Malformed(error)) => error,
            other => panic!("expected malformed, found {other:?}"),
        }
    };
    let any = Interval { min: 0, max: 9 };
    let guard = |plugin: &mut Plugin, expr: Expr| {
        plugin.variants[0].guard = Some(Guard { expr, text: "as a test".to_owned() });
    };
    let sizes = Expr { nodes: vec![expr::Node::Size(1), expr::Node::Array(vec![0])] };
    let bound = || SizeBound { upper: int(9), opt: int(3) };
    let scalar = Expr { nodes: vec![expr::Node::Array(Vec::new())] };
    let device = expr::Node::Device(expr::DeviceFact::Sms);
    let errors = [
        refused(&|plugin| guard(plugin, leaf(expr::Node::Values(0)))),
        refused(&|plugin| guard(plugin, leaf(expr::Node::Values(7)))),
        refused(&|plugin| guard(plugin, leaf(expr::Node::Size(1)))),
        refused(&|plugin| plugin.outputs[0].shape = sizes.clone()),
        refused(&|plugin| plugin.outputs[0].shape = leaf(device.clone())),
        refused(&|plugin| plugin.require[0].expr = leaf(device.clone())),
        refused(&|plugin| plugin.outputs[0].size = Some(bound())),
        refused(&|plugin| {
            plugin.outputs[0].shape = scalar.clone();
            plugin.outputs[0].size = Some(bound());
        }),
        refused(&|plugin| plugin.outputs[0].alias = Some(1)),
        refused(&|plugin| {
            plugin.outputs[0].shape = scalar.clone();
            plugin.outputs[0].alias = Some(0);
        }),
        refused(&|plugin| plugin.inputs[0].values = Some(any)),
        refused(&|plugin| {
            plugin.inputs[0] =
                Input { values: Some(any), rank_min: 1, rank_max: 1, ..plugin.inputs[0].clone() };
        }),
        refused(&|plugin| {
            let limits = ShapeLimits { every: Interval { min: 0, max: 8 }, ..ShapeLimits::default() };
            let input =
                Input { values: Some(any), rank_min: 1, rank_max: 1, limits, ..plugin.inputs[0].clone() };
            plugin.inputs[0] = input;
        }),
    ];
    insta::assert_snapshot!(errors.join("\n"));
    let mut node = node();
    guard(&mut node.plugin, leaf(device));
    assert_eq!(read(&write_node(&node)).unwrap().container, Container::Node(node));
}

#[test]
fn references_that_take_long_to_follow_are_refused() {
    let mut node = node();
    let kernel = KernelFacts { symbol: "_".to_owned(), ..node.code[0].kernels[0].clone() };
    let mut kernels = vec![kernel; 20_000];
    kernels.extend(node.code[0].kernels.clone());
    node.code[0].kernels = kernels;
    let launch = node.plugin.variants[0].launch_mut(0).unwrap();
    launch.code.truncate(1);
    assert_eq!(launch.code[0].code, 0);
    let launch = launch.clone();
    assert!(read(&write_node(&node)).is_ok());
    node.plugin.variants[0].steps = vec![Step::launch(launch); 256];
    let error = read(&write_node(&node)).unwrap_err().to_string();
    assert!(error.contains("5120256 symbols to look through, the most is 4194304"), "{error}");
}

fn aligned(tensor: u32, bytes: u32) -> Expr {
    Expr { nodes: vec![expr::Node::Aligned { tensor, bytes }] }
}

/// As many different questions about the addresses of two tensors.
fn all_aligned(count: u32) -> Expr {
    let mut nodes: Vec<expr::Node> =
        (0..count).map(|index| expr::Node::Aligned { tensor: index % 2, bytes: 1 << (index / 2) }).collect();
    nodes.push(expr::Node::Array((0..count).collect()));
    Expr { nodes }
}

fn first_point(node: &mut Node) -> &mut TunedPoint {
    &mut node.plugin.tuning[0].points[0]
}

const STRING: AttributeType = AttributeType { element: AttributeElement::String, list: false };

/// Makes the attribute text, and a point that has 520 KiB of it.
fn long_point(node: &mut Node) -> TunedPoint {
    node.plugin.attributes[0] = Attribute::new("name", STRING);
    node.attributes[0] = Value::Str(String::new());
    let attributes = vec![(0, Value::Str("a".repeat(520 << 10)))];
    TunedPoint { attributes, ..first_point(node).clone() }
}

/// Rows for long texts, which every point ranks together.
#[test]
fn reading_compares_no_ranked_row_more_than_once() {
    let mut node = node();
    node.plugin.attributes[0] = Attribute::new("name", STRING);
    let name = Value::Str("a".repeat(4 << 20));
    node.attributes[0] = name.clone();
    let row = Variant { specialized: vec![(0, name)], ..node.plugin.variants[0].clone() };
    node.plugin.variants = (1..=3).map(|id| Variant { id, ..row.clone() }).collect();
    let point =
        TunedPoint { attributes: Vec::new(), ranking: vec![2, 0, 1], ..first_point(&mut node).clone() };
    node.plugin.tuning[0].points = vec![point; 4096];
    let bytes = write_node(&node);
    let start = std::time::Instant::now();
    assert_eq!(read(&bytes).map(|_| ()), Ok(()));
    // Comparing them for each point takes many seconds.
    assert!(start.elapsed() < std::time::Duration::from_secs(3), "{:?}", start.elapsed());
}

fn guard(node: &mut Node, expr: Expr) {
    node.plugin.variants[0].guard = Some(Guard { expr, text: "as a test".to_owned() });
}

#[test]
fn sixteen_questions_about_addresses_are_not_too_many() {
    let mut node = node();
    guard(&mut node, all_aligned(16));
    assert_eq!(read(&write_node(&node)).unwrap().container, Container::Node(node));
}

impl Expr {
    fn and_attribute(mut self, index: u32) -> Expr {
        self.nodes.push(expr::Node::Attribute(index));
        self
    }
}

#[test]
fn containers_are_found_in_a_file() {
    let first = write_node(&node());
    let second = write_bundle(&bundle());
    let mut damaged = first.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let third = write_node_reference(&reference());
    // The magics alone, as a program that reads containers has them, begin none.
    let program = [MAGIC.as_slice(), &REFERENCE_MAGIC, b"\x48\x39\xc1", &REFERENCE_MAGIC].concat();
    let plan = b"plan\x89\x89CUB".as_slice();
    let parts = [plan, &first, &damaged, b"....", &second, &third, &program, &MAGIC[..7]];
    let file = parts.concat();
    let found: Vec<_> = scan(&file).collect();
    assert_eq!(found.len(), 4);
    assert!(matches!(found[3].1.as_ref().unwrap().container, Container::NodeReference(_)));
    assert_eq!(found[0].0, 9);
    assert!(matches!(found[0].1.as_ref().unwrap().container, Container::Node(_)));
    assert!(matches!(found[1].1, Err(ReadError::Digest { .. })));
    assert!(matches!(found[2].1.as_ref().unwrap().container, Container::Bundle(_)));
    for (offset, found) in found.iter().filter_map(|(offset, found)| Some((*offset, found.as_ref().ok()?))) {
        assert_eq!(found.offset, offset);
        let alone = read(&file[offset..offset + found.length]).unwrap();
        assert_eq!((alone.container, alone.digest), (found.container.clone(), found.digest));
    }
}

/// What begins like a reference and claims `length` bytes.
fn beginning(version: u16, length: u32) -> Vec<u8> {
    [REFERENCE_MAGIC.as_slice(), &version.to_le_bytes(), &length.to_le_bytes()].concat()
}

/// A megabyte takes no time, so what small files hold is found whatever stands before it.
#[test]
fn a_file_is_searched_until_a_megabyte_was_hashed_in_vain() {
    let right = write_node_reference(&reference());
    let searched = |false_ones: &[Vec<u8>]| {
        let mut file = false_ones.concat();
        file.resize(40_000, 0);
        file.extend_from_slice(&right);
        assert!(file.len() * MOST_IN_VAIN < 1 << 20);
        scan(&file).map(|(_, found)| found.map(|found| found.container)).collect::<Vec<_>>()
    };
    let mut false_ones = vec![beginning(2, 1 << 15); 32];
    let found = searched(&false_ones);
    assert_eq!(found.len(), 33);
    assert!(found[..32].iter().all(|found| matches!(found, Err(ReadError::Digest { .. }))));
    assert_eq!(found[32], Ok(Container::NodeReference(reference())));
    false_ones.push(beginning(2, 22));
    let found = searched(&false_ones);
    assert_eq!((found.len(), found.last()), (34, Some(&Err(ReadError::TooManyBeginnings))));
    // What the file does not hold is not hashed.
    let found = searched(&vec![beginning(2, 1 << 20); 40]);
    assert_eq!(found.len(), 41);
    assert_eq!(found[40], Ok(Container::NodeReference(reference())));
}

/// Only what may be a container is told of: a program that reads them holds their magics, too.
#[test]
fn what_follows_a_magic_says_whether_it_is_a_beginning() {
    let long = |version: u32, kind: u32| {
        [MAGIC.as_slice(), &version.to_le_bytes(), &kind.to_le_bytes(), &[0; 60]].concat()
    };
    let short = |version, length| [beginning(version, length), vec![0; 60]].concat();
    let version = |found| Err(ReadError::Version { found });
    let length = |length| Err(malformed(&format!("length {length} is less than the header's")));
    for (bytes, expected) in [
        (long(2, 1), Some(length(0))),
        (long(0, 1), None),
        (long(2, 0), None),
        (long(0x100, 2), None),
        (long(2, 0x100), None),
        (long(0xff, 0xff), Some(version(0xff))),
        (long(2, 3), Some(Err(malformed("kind 3, expected 1 or 2")))),
        (short(2, 5), Some(length(5))),
        (short(3, 5), None),
        (short(3, 21), None),
        (short(3, 22), Some(version(3))),
        (short(0, 22), None),
        (short(0x100, 22), None),
    ] {
        let found: Vec<_> = scan(&bytes).map(|(offset, found)| (offset, found.map(|_| ()))).collect();
        let expected: Vec<_> = expected.into_iter().map(|found| (0, found)).collect();
        assert_eq!(found, expected, "{bytes:x?}");
    }
}

#[test]
fn a_header_is_the_least_that_a_container_has() {
    let mut short = beginning(2, 21);
    short.resize(40, 0);
    assert_eq!(read(&short), Err(malformed("length 21 is less than the header's")));
    short[10] = 22;
    assert!(matches!(read(&short), Err(ReadError::Digest { .. })));
    short[10] = 41;
    assert_eq!(read(&short), Err(ReadError::Truncated { expected: 41, found: 40 }));
    assert_eq!(read(&short[..12]), Err(ReadError::Truncated { expected: 22, found: 12 }));
    let long = header::long(Kind::Bundle);
    assert_eq!(read(&long[..28]), Err(ReadError::Truncated { expected: 64, found: 28 }));
    assert_eq!(read(&long[..15]), Err(ReadError::NoMagic));
}

/// Each of these beginnings claims the rest of the file: to hash it for each would take minutes for megabytes.
#[test]
fn a_file_of_false_beginnings_takes_no_longer_than_others() {
    const COUNT: usize = 50_000;
    let mut file = write_node(&node());
    let size = file.len() + COUNT * 14;
    for number in 0..COUNT {
        file.extend_from_slice(&REFERENCE_MAGIC);
        file.extend_from_slice(&2_u16.to_le_bytes());
        file.extend_from_slice(&((COUNT - number) as u32 * 14).to_le_bytes());
    }
    assert_eq!(file.len(), size);
    let started = std::time::Instant::now();
    let found: Vec<_> = scan(&file).collect();
    let spent = started.elapsed();
    assert!(spent < std::time::Duration::from_secs(20), "{spent:?}");
    assert!(found[0].1.is_ok());
    assert_eq!(found.last().unwrap().1, Err(ReadError::TooManyBeginnings));
    assert!((10..40).contains(&found.len()), "{}", found.len());
}

/// Whatever a digest might say: what has two wrong bytes in the magic is not hashed.
#[test]
fn two_wrong_bytes_in_a_magic_make_no_container() {
    for right in [write_node(&node()), write_node_reference(&reference())] {
        let wrong = |places: [usize; 2]| {
            let mut bytes = right.clone();
            places.iter().for_each(|place| bytes[*place] ^= 1);
            scan(&bytes).map(|(_, found)| found.map(drop)).collect::<Vec<_>>()
        };
        let damaged = || Err(malformed("its first bytes are damaged"));
        assert_eq!(wrong([5, 5]), [Ok(())], "nothing is wrong");
        for places in [[0, 1], [1, 3], [4, 5], [6, 7]] {
            assert_eq!(wrong(places), [], "{places:?}");
        }
        let mut one = right.clone();
        one[6] ^= 1;
        assert_eq!(scan(&one).map(|(_, found)| found.map(drop)).collect::<Vec<_>>(), [damaged()]);
    }
}

/// Also where the damage is in what containers are found by.
#[test]
fn no_single_changed_byte_makes_a_container_vanish() {
    let parts = [
        write_node(&node_with_packed_code()),
        b"between".to_vec(),
        write_node_reference(&reference()),
        write_bundle(&bundle()),
    ];
    let plan = parts.concat();
    let good: Vec<_> = scan(&plan).collect();
    assert_eq!(good.len(), 3);
    let between = parts[0].len()..parts[0].len() + parts[1].len();
    for index in 0..plan.len() {
        for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff] {
            let mut changed = plan.clone();
            changed[index] ^= flip;
            let found: Vec<_> = scan(&changed).collect();
            let is_told = found.iter().any(|(_, found)| found.is_err());
            assert!(is_told != between.contains(&index), "byte {index} ^ {flip:#x}: {found:?}");
        }
    }
}

proptest! {
    #[test]
    fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&bytes).is_err());
        let mut sealed = write_node(&node());
        sealed.truncate(MODEL_OFFSET);
        sealed.extend_from_slice(&bytes);
        seal(&mut sealed);
        let _ = read(&sealed);
    }
}
