use cubinder_compiler::inspect::{Verbosity, inspect, summary, table};
use cubinder_manifest::resolve;
use cubinder_model::container::{read, write_bundle, write_node, write_node_reference};
use cubinder_model::{
    Arg, ArgValue, Bundle, CodeBytes, CodeObject, CodeRef, Digest, KernelFacts, KernelParam, Node,
    NodeReference, Plugin,
};
use cubinder_source::diagnostic::Source;

const MANIFEST: &str = "schema = 1
plugin = { name = \"copy\", namespace = \"test\" }
inputs = [{ name = \"x\", type = \"f32\" }]
outputs = [{ name = \"y\", type = \"f32\", shape = \"x.shape\" }]
launches = [{ source = \"k.cu\", kernel = \"k\", grid = [1], block = [1], args = { x = \"x\", y = \"y\" } }]";

fn code() -> Vec<CodeObject> {
    let object = |target: &str, bytes: Vec<u8>| CodeObject {
        target: target.parse().unwrap(),
        digest: Digest::compute(&bytes),
        kernels: vec![KernelFacts {
            symbol: "k".to_owned(),
            registers: Some(8),
            shared_bytes: Some(0),
            local_bytes: Some(0),
            max_threads: None,
            params: vec![KernelParam { offset: 0, size: 8 }; 2],
        }],
        bytes: CodeBytes::pack(bytes),
    };
    let code =
        vec![object("sm_80", b"machine".to_vec()), object("compute_80", b"add.s32 %r1, %r2;\n".repeat(9))];
    assert_eq!([false, true].to_vec(), code.iter().map(|code| code.bytes.is_packed()).collect::<Vec<_>>());
    code
}

fn plugin() -> Plugin {
    let mut plugin = resolve::compile(&Source::new("m.toml", MANIFEST)).unwrap().draft.plugin;
    let launch = plugin.variants[0].launch_mut(0).unwrap();
    let tensor = |(index, name): (u32, &str)| Arg { name: name.to_owned(), value: ArgValue::Tensor(index) };
    launch.args = [(0, "x"), (1, "y")].map(tensor).into();
    let reference = |(index, object): (u32, CodeObject)| CodeRef {
        target: object.target,
        code: index,
        symbol: "k".to_owned(),
    };
    launch.code = (0..).zip(code()).map(reference).collect();
    plugin
}

fn bundle() -> Vec<u8> {
    write_bundle(&Bundle { producer: "test".to_owned(), plugins: vec![plugin()], code: code() })
}

fn node() -> Vec<u8> {
    write_node(&Node {
        producer: "test".to_owned(),
        plugin: plugin(),
        attributes: vec![],
        input_ranks: Some(vec![2]),
        workspace_bytes: Some(0),
        code: code(),
    })
}

fn reference() -> Vec<u8> {
    write_node_reference(&NodeReference {
        bundle: read(&bundle()).unwrap().digest.shortened(),
        plugin: 0,
        attributes: vec![],
        row: Some(0),
        input_ranks: Some(vec![2]),
        workspace_bytes: Some(0),
    })
}

fn tells(bytes: &[u8]) -> bool {
    inspect("file", bytes).map_or(true, |report| {
        assert!(!table(&report, Verbosity::Full).is_empty() && !summary(&report).is_empty());
        !report.damaged.is_empty()
    })
}

#[test]
fn every_changed_byte_and_every_truncation_of_one_container_is_told() {
    for bytes in [bundle(), node(), reference()] {
        assert!(!tells(&bytes));
        for index in 0..bytes.len() {
            for flip in 1..=255 {
                let mut changed = bytes.clone();
                changed[index] ^= flip;
                assert!(tells(&changed), "byte {index} ^ {flip:#x}");
            }
        }
        for length in 0..bytes.len() {
            assert!(tells(&bytes[..length]), "{length} bytes");
        }
    }
}

/// Intact copies (plans have each field twice) must not hide damage.
#[test]
fn every_changed_byte_of_a_plans_fields_is_told() {
    let engine = |text: &str| text.as_bytes().to_vec();
    let parts = [
        engine("TensorRT"),
        node(),
        node(),
        engine("between"),
        reference(),
        reference(),
        bundle(),
        engine("end"),
    ];
    let plan = parts.concat();
    assert!(!tells(&plan));
    let mut begin = 0;
    for part in &parts {
        let is_container = part.len() > 20;
        for index in begin..begin + part.len() {
            for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff] {
                let mut changed = plan.clone();
                changed[index] ^= flip;
                assert_eq!(tells(&changed), is_container, "byte {index} ^ {flip:#x}");
            }
        }
        begin += part.len();
    }
}
