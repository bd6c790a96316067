use std::path::Path;

use cubinder_expr::Format;
use cubinder_launch::Device;
use cubinder_model::{Node, Plugin};
use cubinder_node::eval::read_subjects;
use cubinder_node::trial::shapes::{Sizes, random};

use super::*;

const DEVICE: Device = Device { sms: 128, shared_bytes: 101_376, capability: 89 };

fn plugins() -> Vec<Plugin> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders =
        ["manifests", "manifests/cubinder", "tests/data/ok", "tests/data/run", "tests/data/conformance"];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let all: Vec<Plugin> = files
        .iter()
        .flat_map(|file| read_subjects(file).unwrap().list)
        .map(|subject| subject.plugin)
        .collect();
    assert!(all.len() > 30, "{} plugins", all.len());
    all
}

fn bare(plugin: &Plugin) -> Definition {
    Definition::bare(Arc::new(Node {
        producer: String::new(),
        plugin: plugin.clone(),
        attributes: Vec::new(),
        input_ranks: None,
        workspace_bytes: None,
        code: Vec::new(),
    }))
}

fn operator(plugin: &Plugin, sizes: &Sizes) -> Option<Operator> {
    let row = &plugin.variants[sizes.row];
    let types: Vec<i32> = row.types[..plugin.inputs.len()].iter().map(|ty| ty.tensorrt()).collect();
    let created = Operator::from_definition(bare(plugin), sizes.attributes.clone(), &types);
    let is_linear = row.formats.iter().all(|format| *format == Format::Linear);
    assert!(created.is_ok() || !is_linear, "{}: {:?}", plugin.name, created.err());
    created.ok()
}

fn flat(plugin: &Plugin, sizes: &Sizes) -> (Vec<i32>, Vec<i64>) {
    let parts = sizes.shapes.iter().zip(&sizes.values).zip(&plugin.inputs);
    let parts = parts.map(|((shape, values), input)| if input.values.is_some() { values } else { shape });
    let (mut ranks, mut extents) = (Vec::new(), Vec::new());
    for part in parts {
        ranks.push(i32::try_from(part.len()).unwrap());
        extents.extend(part);
    }
    (ranks, extents)
}

fn computed(words: &[i64], ranks: &[i32], extents: &[i64], sizes: &[i64]) -> Vec<Vec<i64>> {
    use cubinder_expr::ShapeOp::{CeilDiv, Equal, FloorDiv, Less, Max, Min, Prod, Sub, Sum};
    let operations = [Sum, Prod, Max, Min, Sub, Equal, Less, FloorDiv, CeilDiv];
    let (count, rest) = words.split_first().unwrap();
    let (instructions, mut rest) = rest.split_at(3 * usize::try_from(*count).unwrap());
    let at = |index: i64| usize::try_from(index).unwrap();
    let starts: Vec<usize> = ranks
        .iter()
        .scan(0, |next, rank| {
            let start = *next;
            *next += at((*rank).into());
            Some(start)
        })
        .collect();
    let mut values = Vec::new();
    for instruction in instructions.chunks(3) {
        values.push(match *instruction {
            [-1, value, 0] => value,
            [-2, input, index] => extents[starts[at(input)] + at(index)],
            [-3, output, 0] => sizes[at(output)],
            [op, first, second] => operations[at(op)].apply(values[at(first)], values[at(second)]).unwrap(),
            _ => unreachable!(),
        });
    }
    let mut outputs = Vec::new();
    while let Some((rank, others)) = rest.split_first() {
        let (indices, others) = others.split_at(at(*rank));
        outputs.push(indices.iter().map(|index| values[at(*index)]).collect());
        rest = others;
    }
    outputs
}

#[test]
fn programs_compute_the_shapes() {
    let mut checked = 0;
    for plugin in plugins() {
        let known: Vec<Sizes> = (0..4).filter_map(|seed| random(&plugin, DEVICE, &[], seed)).collect();
        for sizes in (0..8).filter_map(|seed| random(&plugin, DEVICE, &known, seed)) {
            let Some(operator) = operator(&plugin, &sizes) else { continue };
            let (ranks, extents) = flat(&plugin, &sizes);
            let given = InputShapes { ranks: &ranks, extents: &extents };
            let bounds = operator.with_facts(given, |facts, steps| operator.bounds(facts, steps)).unwrap();
            let program = operator.shape_program(&ranks).unwrap();
            let found = |sizes: &[i64]| computed(&program, &ranks, &extents, sizes);
            let expected = |sizes| operator.output_shapes(given, sizes).unwrap();
            let bounds: Vec<i64> = bounds.into_iter().map(Option::unwrap_or_default).collect();
            let zeros = vec![0; bounds.len()];
            assert_eq!(found(&bounds), expected(None), "{}: {ranks:?} {extents:?}", plugin.name);
            assert_eq!(found(&zeros), expected(Some(&zeros)), "{}: {ranks:?} {extents:?}", plugin.name);
            if bounds != zeros {
                let beyond: Vec<i64> = bounds.iter().map(|bound| bound + 1).collect();
                assert!(operator.output_shapes(given, Some(&beyond)).is_err(), "{}", plugin.name);
            }
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked} nodes");
}
