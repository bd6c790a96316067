mod models;
mod scanning;

use proptest::prelude::*;

use super::*;
use cubinder_expr::value::Value;

use crate::code::{Arch, ArchSuffix, KernelParam, TargetKind};
use crate::model::{
    Arg, ArgValue, Attribute, AttributeElement, AttributeType, CodeRef, Guard, Input, Interval, Launch,
    MAX_VARIANT_ID, Output, Plugin, Requirement, ShapeLimits, SizeBound, Step, TunedDevice, TunedPoint,
    Variant,
};
use cubinder_expr as expr;
use cubinder_expr::Expr;
use cubinder_expr::data_type::{DataType, ScalarType};
use cubinder_expr::format::Format;

fn target(kind: TargetKind) -> Target {
    Target { kind, arch: Arch { major: 8, minor: 9, suffix: ArchSuffix::None } }
}

fn int(value: i64) -> Expr {
    Expr { nodes: vec![expr::Node::Int(value)] }
}

fn code(kind: TargetKind, bytes: &[u8]) -> CodeObject {
    CodeObject {
        target: target(kind),
        digest: Digest::compute(bytes),
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

fn reference() -> NodeReference {
    NodeReference {
        workspace_bytes: Some(1 << 20),
        bundle: Digest::compute(b"bundle").shortened(),
        plugin: 5,
        attributes: vec![Value::Array(vec![Value::Int(-1)])],
        row: Some(3),
        input_ranks: None,
    }
}

fn node_with_packed_code() -> Node {
    let text = [b".version 9.0\n".to_vec(), b"add.s32 %r1, %r2, %r3;\n".repeat(9)].concat();
    let mut node = node();
    node.code[1].digest = Digest::compute(&text);
    node.code[1].bytes = CodeBytes::pack(text);
    assert!(node.code[1].bytes.is_packed());
    node
}

fn seal(bytes: &mut [u8]) {
    let kind = if bytes.starts_with(&REFERENCE_MAGIC) { Kind::NodeReference } else { Kind::Node };
    header::seal(kind, bytes);
}

fn beginning(version: u16, length: u32) -> Vec<u8> {
    [REFERENCE_MAGIC.as_slice(), &version.to_le_bytes(), &length.to_le_bytes()].concat()
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
        @"format version 3, but this version of Cubinder reads only version 2: use a newer libcubinder.so"
    );
}

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
            "format version 1, but this version of Cubinder reads only version 2: compile the plugins again"
        );
    }
}

#[test]
fn compressed_code_is_held_against_its_digest_when_it_is_unpacked() {
    let mut node = node_with_packed_code();
    node.code[1].digest = Digest::compute(b"other");
    let bytes = write_node(&node);
    let error = read(&bytes).unwrap_err().to_string();
    assert!(error.ends_with("its digest does not match"), "{error}");
    let shared = Arc::from(bytes);
    let Container::Node(node) = read_shared(&shared).unwrap().container else { panic!("a node was written") };
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
fn shared_code_is_not_copied() {
    let bytes: Arc<[u8]> = write_node(&node_with_packed_code()).into();
    let Container::Node(shared) = read_shared(&bytes).unwrap().container else {
        panic!("a node was written")
    };
    assert_eq!(write_node(&shared), *bytes);
    for object in shared.code {
        assert!(bytes.as_ptr_range().contains(&object.bytes.stored().as_ptr()));
    }
}

#[test]
fn a_number_in_more_bytes_than_it_needs_is_refused() {
    let mut bytes = write_node_reference(&reference());
    assert_eq!(bytes[SHORT_BYTES + 8], 5);
    bytes.splice(SHORT_BYTES + 8..SHORT_BYTES + 9, [0x85, 0x00]);
    seal(&mut bytes);
    let refused = ReadError::Malformed("the model: not the canonical encoding".to_owned());
    assert_eq!(read(&bytes), Err(refused));
}

#[test]
fn a_header_is_the_least_that_a_container_has() {
    let mut short = beginning(2, 21);
    short.resize(40, 0);
    assert_eq!(read(&short), Err(malformed("length 21 is shorter than the header")));
    short[10] = 22;
    assert!(matches!(read(&short), Err(ReadError::Digest { .. })));
    short[10] = 41;
    assert_eq!(read(&short), Err(ReadError::Truncated { expected: 41, found: 40 }));
    assert_eq!(read(&short[..12]), Err(ReadError::Truncated { expected: 22, found: 12 }));
    let long = header::long(Kind::Bundle);
    assert_eq!(read(&long[..28]), Err(ReadError::Truncated { expected: 64, found: 28 }));
    assert_eq!(read(&long[..15]), Err(ReadError::NoMagic));
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
