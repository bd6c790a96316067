use std::time::Instant;

use cubinder_model::Provenance;
use cubinder_model::container::FORMAT_VERSION;
use cubinder_model::provenance::{Origin, Read, Section};

use super::*;

fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/compat");
    std::fs::read(format!("{folder}/{FORMAT_VERSION}/{name}")).unwrap()
}

fn own() -> Arc<OwnBundle> {
    Arc::new(OwnBundle::read(file("bundle").leak()).unwrap())
}

fn node_with_workspace(bytes: u64) -> Vec<u8> {
    let Container::Node(node) = container::read(&file("node")).unwrap().container else {
        panic!("it is a node")
    };
    container::write_node(&Node { workspace_bytes: Some(bytes), ..node })
}

#[test]
fn a_node_that_is_written_again_is_the_same() {
    let field = node_with_workspace(0x5000);
    let restored = restore_node(&field.into()).unwrap();
    assert_eq!(restored.workspace_bytes, Some(0x5000));
    let known = BuildFacts {
        kinds: restored.kinds.as_ref(),
        input_ranks: restored.input_ranks.as_deref(),
        workspace_bytes: restored.workspace_bytes,
    };
    let Definition::Node { node, .. } = &restored.definition else { panic!("it came from a field") };
    assert!(!node.producer.is_empty());
    assert_eq!(restored.definition.node(known, &restored.attributes).producer, node.producer);
    assert_eq!(restored.definition.reference(known, &restored.attributes), None, "no library has its code");
}

#[test]
fn a_reference_names_the_first_row_of_the_node_s_types_and_formats() {
    let of_file = own();
    let mut bundle = of_file.bundle.clone();
    let row = bundle.plugins[0].variants[0].clone();
    let count = row.types.len();
    let kinds = [
        (DataType::F32, Format::Linear),
        (DataType::F16, Format::Linear),
        (DataType::F16, Format::Hwc8),
        (DataType::F16, Format::Hwc8),
    ];
    let rows = kinds.map(|(ty, format)| Variant {
        types: vec![ty; count],
        formats: vec![format; count],
        ..row.clone()
    });
    bundle.plugins[0].variants = rows.to_vec();
    let own = Arc::new(OwnBundle::new(bundle, of_file.digest, &[]));
    let definition = Definition::Bundle { own, index: 0 };
    let attributes = [Value::Int(7)];
    let reference = |known: BuildFacts<'_>| definition.reference(known, &attributes).unwrap();
    for (index, expected) in [0, 1, 2, 2].into_iter().enumerate() {
        let kinds = TensorKinds::from_variant(&rows[index]);
        assert_eq!(
            reference(BuildFacts { kinds: Some(&kinds), ..BuildFacts::default() }).row,
            Some(expected)
        );
    }
    let known = BuildFacts { kinds: None, input_ranks: Some(&[4]), workspace_bytes: Some(64) };
    let expected = NodeReference {
        bundle: of_file.digest.shortened(),
        plugin: 0,
        attributes: attributes.to_vec(),
        row: None,
        input_ranks: Some(vec![4]),
        workspace_bytes: Some(64),
    };
    assert_eq!(reference(known), expected);
}

#[test]
fn a_reference_is_read_beside_its_own_bundle_alone() {
    let own = own();
    let restored = restore_reference(&file("reference").into(), &own).unwrap();
    assert_eq!(restored.definition.plugin(), &own.bundle.plugins[0]);
    let other = OwnBundle::new(own.bundle.clone(), Digest::compute(b"other"), &[]);
    let error = restore_reference(&file("reference").into(), &Arc::new(other)).err().unwrap().to_string();
    let needed = own.digest.shortened();
    assert!(
        error.contains(&format!("it requires the code library of bundle {needed}, but this is")),
        "{error}"
    );
}

fn library_of(count: usize) -> Arc<OwnBundle> {
    let of_file = &own().bundle;
    let (plugin, code) = (&of_file.plugins[0], &of_file.code);
    let name = |number: usize| format!("plugin_{number}");
    let made_of = |number: usize| provenance::File { path: name(number), digest: Digest::compute(b"text") };
    let mut bundle = Bundle { plugins: Vec::new(), code: Vec::new(), ..of_file.clone() };
    let mut record = Provenance { cubinder: "0.1.0".to_owned(), ..Provenance::default() };
    for number in 0..count {
        let mut own = plugin.clone();
        own.name = name(number);
        for variant in &mut own.variants {
            for launch in variant.launches_mut() {
                launch.code.iter_mut().for_each(|it| it.code += u32::try_from(bundle.code.len()).unwrap());
            }
        }
        bundle.plugins.push(own);
        record.manifests.push(made_of(number));
        for (index, object) in code.iter().enumerate() {
            let bytes = format!("code {index} of {number}").into_bytes();
            bundle.code.push(CodeObject {
                digest: Digest::compute(&bytes),
                bytes: bytes.into(),
                ..object.clone()
            });
            let (file, read) = (made_of(number), Read::Files(vec![made_of(number)]));
            record.add([Origin::Source { file, read, headers: None, is_open: false, options: Vec::new() }]);
        }
    }
    let mut bytes = container::write_bundle(&bundle);
    let (digest, _) = container::digest(&bytes).unwrap();
    bytes.extend(provenance::write(&record, digest));
    Arc::new(OwnBundle::read(bytes.leak()).unwrap())
}

#[test]
fn a_node_takes_what_it_has_and_not_what_its_library_has() {
    const NODES: usize = 20;
    let attributes = [Value::Int(7)];
    let written = |count: usize| {
        let own = library_of(count);
        let field = |index: usize| {
            Definition::Bundle { own: Arc::clone(&own), index }.field(BuildFacts::default(), &attributes)
        };
        let last = field(count - 1);
        let start = Instant::now();
        (0..NODES).for_each(|_| assert_eq!(field(count - 1), last));
        (last, start.elapsed())
    };
    let fastest = |count: usize| (0..3).map(|_| written(count).1).min().unwrap();
    let (few, many) = (fastest(1), fastest(2000));
    assert!(many < few * 20, "{NODES} nodes: {few:?} with one plugin, {many:?} with 2000");
    let field = written(30).0;
    let (of, length) = container::digest(&field).unwrap();
    let Ok(Some(Section::Provenance(record))) = provenance::find(&field[length..], of) else {
        panic!("the node has no record")
    };
    assert_eq!(record.manifests.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["plugin_29"]);
    assert!(
        !record.origins.is_empty() && record.code.len() == record.origins_of(0).count() * record.code.len()
    );
}
