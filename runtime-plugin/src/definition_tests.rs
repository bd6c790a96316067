use cubinder_bundle::container::FORMAT_VERSION;

use super::*;

/// What this version wrote: `tests/data/compat`.
fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/compat");
    std::fs::read(format!("{folder}/{FORMAT_VERSION}/{name}")).unwrap()
}

fn own() -> Arc<OwnBundle> {
    Arc::new(OwnBundle::read(file("bundle").leak()).unwrap())
}

/// The node of the file with another workspace, so that no other test has it.
fn node_with_workspace(bytes: u64) -> Vec<u8> {
    let Container::Node(node) = container::read(&file("node")).unwrap().container else {
        panic!("it is a node")
    };
    container::write_node(&Node { workspace_bytes: Some(bytes), ..node })
}

#[test]
fn a_node_that_is_written_again_is_the_same() {
    let field = node_with_workspace(0x5000);
    let restored = restore_node(&field).unwrap();
    assert_eq!(restored.workspace_bytes, Some(0x5000));
    let known = Known {
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
    let own = Arc::new(OwnBundle { bundle, digest: of_file.digest, sections: &[] });
    let definition = Definition::Bundle { own, index: 0 };
    let attributes = [Value::Int(7)];
    let reference = |known: Known<'_>| definition.reference(known, &attributes).unwrap();
    for (index, expected) in [0, 1, 2, 2].into_iter().enumerate() {
        let kinds = TensorKinds::of(&rows[index]);
        assert_eq!(reference(Known { kinds: Some(&kinds), ..Known::default() }).row, Some(expected));
    }
    let known = Known { kinds: None, input_ranks: Some(&[4]), workspace_bytes: Some(64) };
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
    let restored = restore_reference(&file("reference"), &own).unwrap();
    assert_eq!(restored.definition.plugin(), &own.bundle.plugins[0]);
    let other = OwnBundle { bundle: own.bundle.clone(), digest: Digest::of(b"other"), sections: &[] };
    let error = restore_reference(&file("reference"), &Arc::new(other)).err().unwrap().to_string();
    let needed = own.digest.shortened();
    assert!(error.contains(&format!("it needs the code library of bundle {needed}, and this is")), "{error}");
}

/// Nodes in use share what was read, and nothing is kept of others.
#[test]
fn nodes_are_kept_while_they_are_used() {
    let digest = |field: &[u8]| container::digest(field).unwrap().0;
    let [used, left, last] = [0x1000, 0x2000, 0x3000].map(node_with_workspace);
    let node = |restored: &Restored| match &restored.definition {
        Definition::Node { node, .. } => Arc::clone(node),
        Definition::Bundle { .. } => panic!("it came from a field"),
    };
    let first = restore_node(&used).unwrap();
    drop(restore_node(&left).unwrap());
    let third = restore_node(&last).unwrap();
    assert!(nodes().contains_key(&digest(&used)) && nodes().contains_key(&digest(&last)));
    assert!(!nodes().contains_key(&digest(&left)), "it is in use no more");
    assert!(Arc::ptr_eq(&node(&first), &node(&restore_node(&used).unwrap())));
    drop((first, third));
    // It does not wait for another thread that has the table.
    let is_known = || nodes().contains_key(&digest(&used));
    for _ in 0..1000 {
        forget_nodes();
        if !is_known() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("the table of nodes is not forgotten");
}
