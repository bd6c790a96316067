use std::path::Path;
use std::process::Command;

use cubinder_expr::{DataType, Value};
use cubinder_expr::{Environment, Expr, evaluate};
use cubinder_manifest::resolve::{ArgDraftValue, PluginDraft, compile};
use cubinder_source::diagnostic::{Colour, render};
use cubinder_source::source;

struct Node {
    attributes: Vec<Value>,
    shapes: Vec<Vec<i64>>,
}

impl Environment for Node {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(index as usize)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.shapes.get(tensor as usize).map(Vec::as_slice)
    }
}

fn draft(name: &str) -> PluginDraft {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests").join(name);
    let source = source::text(&path).expect("the manifest exists");
    compile(&source).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain))).draft
}

fn ints(values: &[i64]) -> Value {
    Value::Array(values.iter().copied().map(Value::Int).collect())
}

fn integers(expr: &Expr, node: &Node) -> Vec<i64> {
    evaluate(expr, node).expect("it has a value").as_ints().expect("an array of integers")
}

fn integer(expr: &Expr, node: &Node) -> i64 {
    evaluate(expr, node).expect("it has a value").as_int().expect("an integer")
}

fn argument(draft: &PluginDraft, variant: usize, name: &str, node: &Node) -> Value {
    let arg = draft.units[variant].args.iter().find(|arg| arg.name == name).expect("the argument exists");
    match &arg.value {
        ArgDraftValue::Expr { expr, .. } => evaluate(expr, node).expect("it has a value"),
        ArgDraftValue::Tensor(index) => panic!("`{name}` is tensor {index}"),
        ArgDraftValue::Scratch(index) => panic!("`{name}` is scratch buffer {index}"),
    }
}

fn is_admitted(draft: &PluginDraft, node: &Node) -> bool {
    let holds = |expr: &Expr| evaluate(expr, node).expect("it has a value") == Value::Bool(true);
    draft.plugin.require.iter().all(|rule| holds(&rule.expr))
}

fn circ_pad(shape: &[i64], pads: &[i64]) -> Node {
    Node { attributes: vec![ints(pads)], shapes: vec![shape.to_vec()] }
}

#[test]
fn circ_pad_grows_the_last_dimensions() {
    let draft = draft("circ_pad_plugin.toml");
    let shape = |node: &Node| integers(&draft.plugin.outputs[0].shape, node);
    assert_eq!(shape(&circ_pad(&[10, 3, 32, 32], &[1, 1, 1, 1])), [10, 3, 34, 34]);
    assert_eq!(shape(&circ_pad(&[2, 5, 7], &[1, 2, 3, 4])), [2, 12, 10]);
    assert_eq!(shape(&circ_pad(&[2, 5], &[])), [2, 5]);
    assert_eq!(shape(&circ_pad(&[1; 8], &[1; 16])), [3; 8]);
    let ids: Vec<i32> = draft.plugin.variants.iter().map(|variant| variant.id).collect();
    assert_eq!(ids, [1, 1, 2, 3, 4, 5, 6, 9, 8, 8, 10, 7, 7]);
    let halves: Vec<bool> =
        draft.plugin.variants.iter().map(|variant| variant.types == [DataType::F16; 2]).collect();
    assert_eq!(halves, [false, true, false, true, false, true, true, false, false, true, true, false, true]);
}

#[test]
fn circ_pad_launches_a_thread_an_element_or_a_vector() {
    let draft = draft("circ_pad_plugin.toml");
    let mut node = circ_pad(&[2, 5, 7], &[1, 2, 3, 4]);
    node.shapes.push(vec![2, 12, 10]);
    let grid = |variant: usize, threads: i64, node: &Node| {
        let launch = draft.plugin.variants[variant].launch(0).expect("it launches");
        assert_eq!(integer(&launch.block[0], node), threads);
        integer(&launch.grid[0], node)
    };
    let small = |name| argument(&draft, 0, name, &node);
    assert_eq!(small("count"), Value::Int(240));
    assert_eq!(small("in_extent"), ints(&[7, 5, 2, 1, 1, 1, 1, 1]));
    assert_eq!(small("out_extent"), ints(&[10, 12, 2, 1, 1, 1, 1, 1]));
    // One before in a dimension of 7 starts at element 6; three before in 5, at 2.
    assert_eq!(small("shift"), ints(&[6, 2, 0, 0, 0, 0, 0, 0]));
    let reciprocals = [7, 5, 2, 1, 1, 1, 1, 1].map(|extent| i64::MAX / extent);
    assert_eq!(small("in_reciprocal"), ints(&reciprocals));
    assert_eq!(grid(0, 512, &node), 1);
    assert_eq!(
        draft.plugin.variants[0].launch(0).expect("it launches").kernel,
        "circ_pad<float, 8, 1, 1, false, 1>"
    );
    let short = |name| argument(&draft, 8, name, &node);
    assert_eq!(short("padded"), Value::Int(2));
    assert_eq!(short("in_extent"), ints(&[7, 5]));
    assert_eq!(short("shift"), ints(&[6, 2]));
    // The fallback: eight dimensions, four elements per thread.
    assert_eq!(argument(&draft, 11, "in_extent", &node), ints(&[7, 5, 2, 1, 1, 1, 1, 1]));
    let mut odd = circ_pad(&[64, 64, 255], &[1, 1]);
    odd.shapes.push(vec![64, 64, 257]);
    assert_eq!(grid(11, 256, &odd), 64 * 64 * 257 / 4 / 256);
    // Innermost extents count vectors of four floats.
    let mut rows = circ_pad(&[64, 64, 256], &[0, 0, 1, 1]);
    rows.shapes.push(vec![64, 66, 256]);
    assert_eq!(argument(&draft, 2, "in_extent", &rows), ints(&[64, 64, 64, 1, 1, 1, 1, 1]));
    assert_eq!(argument(&draft, 2, "count", &rows), Value::Int(64 * 66 * 64));
    assert_eq!(grid(2, 256, &rows), 64 * 66 * 64 / 2 / 256);
    assert_eq!(argument(&draft, 5, "in_extent", &rows), ints(&[256, 64, 64, 1, 1, 1, 1, 1]));
    assert_eq!(grid(5, 256, &rows), 64 * 66 * 256 / 8 / 256);
}

#[test]
fn circ_pad_refuses_odd_overlong_and_negative_pads_and_padding_nothing() {
    let draft = draft("circ_pad_plugin.toml");
    let admits = |pads: &[i64]| is_admitted(&draft, &circ_pad(&[2, 5], pads));
    assert!(admits(&[]) && admits(&[0, 1]) && admits(&[1, 1, 1, 1]));
    assert!(!admits(&[1]) && !admits(&[1, 1, 1]));
    assert!(!admits(&[1; 6]));
    assert!(!admits(&[0, -1]));
    assert!(is_admitted(&draft, &circ_pad(&[2, 0], &[0, 0, 1, 1])));
    assert!(!is_admitted(&draft, &circ_pad(&[2, 0], &[0, 1])));
}

#[test]
fn elemwise_add_uses_the_nodes_block_size() {
    let draft = draft("elemwise_add_plugin.toml");
    let node = |block_size| Node {
        attributes: vec![Value::Int(block_size)],
        shapes: vec![vec![10, 3, 32, 32], vec![10, 3, 32, 32]],
    };
    let launch = draft.plugin.variants[0].launch(0).unwrap();
    assert_eq!(integer(&launch.grid[0], &node(256)), 120);
    assert_eq!(integer(&launch.block[0], &node(256)), 256);
    assert_eq!(integers(&draft.plugin.outputs[0].shape, &node(256)), [10, 3, 32, 32]);
    assert!(is_admitted(&draft, &node(1)) && is_admitted(&draft, &node(1024)));
    assert!(!is_admitted(&draft, &node(0)) && !is_admitted(&draft, &node(1025)));
}

#[test]
fn adding_in_place_is_an_alias_in_the_formats_that_are_meant() {
    let draft = draft("elemwise_add_plugin_.toml");
    assert_eq!(draft.plugin.outputs[0].alias, Some(0));
    let offered: Vec<(DataType, &str)> =
        draft.plugin.variants.iter().map(|variant| (variant.types[0], variant.formats[0].name())).collect();
    let mut expected = vec![(DataType::F32, "linear"), (DataType::F32, "hwc"), (DataType::F16, "linear")];
    expected.retain(|pair| offered.contains(pair));
    assert_eq!((expected.len(), offered.len()), (3, 3), "{offered:?}");
}

#[test]
fn non_zero_bounds_its_size_and_cuts_its_input_into_whole_tiles() {
    let draft = draft("non_zero_plugin.toml");
    let node = |shape: &[i64]| Node { attributes: vec![], shapes: vec![shape.to_vec()] };
    let size = draft.plugin.outputs[1].size.as_ref().expect("the count is a size tensor");
    assert_eq!(integer(&size.upper, &node(&[3, 5, 7])), 105);
    assert_eq!(integer(&size.opt, &node(&[3, 5, 7])), 52);
    let variant = &draft.plugin.variants[0];
    assert_eq!((variant.launches().count(), variant.scratch.len()), (2, 1));
    // One block for empty input writes the count; else one per tile of 1024, at most 1024.
    for (shape, blocks) in [
        (vec![0], 1),
        (vec![1], 1),
        (vec![1024], 1),
        (vec![5, 205], 2),
        (vec![1024, 1024], 1024),
        (vec![1024, 1025], 513),
        (vec![2_147_483_647], 1024),
    ] {
        for launch in variant.launches() {
            assert_eq!(integer(&launch.grid[0], &node(&shape)), blocks, "{shape:?}");
        }
        assert_eq!(integer(&variant.scratch[0].bytes, &node(&shape)), 4 * blocks, "{shape:?}");
    }
}

#[test]
fn nms_is_one_launch_for_few_boxes_and_takes_no_memory_for_pairs() {
    let draft = draft("cubinder/nms.toml");
    let node = |boxes: i64| Node {
        attributes: vec![Value::Float(0.5), Value::Float(0.0)],
        shapes: vec![vec![boxes, 4], vec![boxes], vec![boxes]],
    };
    let size = draft.plugin.outputs[1].size.as_ref().expect("the count is a size tensor");
    assert_eq!(integer(&size.upper, &node(77)), 77);
    let variant = |id: i32| draft.plugin.variants.iter().find(|variant| variant.id == id).expect("a variant");
    let mut launches = variant(1).launches();
    let launch = launches.next().expect("a launch");
    assert!(launches.next().is_none() && variant(1).scratch.is_empty());
    assert_eq!((integer(&launch.grid[0], &node(0)), integer(&launch.block[0], &node(0))), (1, 256));
    for (id, boxes, padded) in [(2, 1, 512), (2, 512, 512), (2, 513, 1024), (3, 262_144, 262_144)] {
        let bytes: i64 =
            variant(id).scratch.iter().map(|scratch| integer(&scratch.bytes, &node(boxes))).sum();
        assert_eq!(bytes, 66 * padded + 4, "{boxes} boxes");
        for launch in variant(id).launches() {
            assert!(launch.grid.iter().all(|axis| integer(axis, &node(boxes)) > 0), "{}", launch.kernel);
        }
    }
}

#[test]
fn the_checker_has_nothing_to_say_of_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests");
    for folder in [root.clone(), root.join("cubinder")] {
        let entries = std::fs::read_dir(&folder).expect("the folder exists");
        let manifests = entries.map(|entry| entry.expect("an entry").path());
        for path in manifests.filter(|path| path.extension().is_some_and(|end| end == "toml")) {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cubinder"));
            let output = command.arg("check").arg(&path).output().expect("the program runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && !said.contains("warning"), "{}: {said}", path.display());
        }
    }
}

#[test]
fn the_cases_are_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join("tests/data/testing/shipped");
    let entries = std::fs::read_dir(&folder).expect("the folder exists");
    let files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let cases: Vec<_> =
        files.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    let count = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder exists");
        let names = entries.map(|entry| entry.expect("an entry").path());
        names.filter(|path| path.extension().is_some_and(|end| end == "toml")).count()
    };
    let manifests = count("manifests") + count("manifests/cubinder");
    assert!(cases.len() >= manifests, "{} files of cases for {manifests} manifests", cases.len());
    for path in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cubinder"));
        command.args(["eval", "--nvrtc", "/nowhere", "--cases"]).arg(path);
        let output = command.output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
