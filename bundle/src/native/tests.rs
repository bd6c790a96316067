use proptest::prelude::*;

use super::*;
use crate::data_type::DataType;
use crate::expr::{self, Kind, Scope};
use crate::launch::{Doing, Facts, Steps, Takes, sequence};
use crate::model::{
    Arg, Attribute, AttributeElement, AttributeType, Input, Output, Scratch, ShapeLimits, Step, Variant,
};

/// Computes as TensorRT does: in wrapping 64-bit integers, refusing to divide by zero.
struct Calculator<'a>(&'a [&'a [i64]]);

impl ShapeBuilder for Calculator<'_> {
    type Dim = i64;
    type Error = &'static str;

    fn constant(&mut self, value: i64) -> Result<i64, &'static str> {
        Ok(value)
    }

    fn dim(&mut self, tensor: u32, axis: usize) -> Result<i64, &'static str> {
        self.0.get(tensor as usize).and_then(|shape| shape.get(axis)).copied().ok_or("no such dimension")
    }

    fn value_count(&mut self, _: u32) -> Result<usize, &'static str> {
        Err("no shape input")
    }

    fn value(&mut self, _: u32, _: usize) -> Result<i64, &'static str> {
        Err("no shape input")
    }

    fn size(&mut self, _: u32) -> Result<i64, &'static str> {
        Err("no size tensor")
    }

    fn operation(&mut self, op: ShapeOp, a: &i64, b: &i64) -> Result<i64, &'static str> {
        let (a, b) = (*a, *b);
        Ok(match op {
            ShapeOp::Sum => a.wrapping_add(b),
            ShapeOp::Prod => a.wrapping_mul(b),
            ShapeOp::Max => a.max(b),
            ShapeOp::Min => a.min(b),
            ShapeOp::Sub => a.wrapping_sub(b),
            ShapeOp::Equal => i64::from(a == b),
            ShapeOp::Less => i64::from(a < b),
            ShapeOp::FloorDiv | ShapeOp::CeilDiv if b == 0 => return Err("Divide by zero"),
            ShapeOp::FloorDiv => i64::try_from(i128::from(a).div_euclid(i128::from(b))).unwrap(),
            ShapeOp::CeilDiv => i64::try_from(-(-i128::from(a)).div_euclid(i128::from(b))).unwrap(),
        })
    }
}

const I32: ScalarType = ScalarType::Int { bytes: 4 };
const I64: ScalarType = ScalarType::Int { bytes: 8 };
const U32: ScalarType = ScalarType::UInt { bytes: 4 };
const U64: ScalarType = ScalarType::UInt { bytes: 8 };
const I8: ScalarType = ScalarType::Int { bytes: 1 };
const U16: ScalarType = ScalarType::UInt { bytes: 2 };

fn parsed(text: &str) -> Expr {
    let scope = Scope::new().attribute("k", 0, Kind::Int).attribute("e", 1, Kind::Float);
    let scope = scope.tensor("x", 0, 2, 2).tensor("y", 1, 2, 2);
    expr::compile(text, &scope).unwrap().expr
}

fn scalar(ty: ScalarType, text: &str) -> Arg {
    Arg { name: text.to_owned(), value: ArgValue::Scalar { ty, expr: parsed(text) } }
}

fn array(ty: ScalarType, len: u32, text: &str) -> Arg {
    Arg { name: text.to_owned(), value: ArgValue::Array { ty, len, expr: parsed(text) } }
}

fn launch(grid: &str, args: Vec<Arg>) -> Launch {
    let tensors = [("x", 0), ("y", 1)]
        .map(|(name, tensor)| Arg { name: name.to_owned(), value: ArgValue::Tensor(tensor) });
    Launch {
        cluster: None,
        cooperative: false,
        programmatic: false,
        kernel: "k".to_owned(),
        grid: [parsed(grid), parsed("1"), parsed("1")],
        block: [parsed("128"), parsed("1"), parsed("1")],
        shared_bytes: parsed("4 * k"),
        args: tensors.into_iter().chain(args).collect(),
        code: Vec::new(),
    }
}

fn variant(launch: Launch) -> Variant {
    Variant {
        id: 1,
        label: String::new(),
        types: vec![DataType::F32; 2],
        formats: vec![crate::Format::Linear; 2],
        specialized: Vec::new(),
        guard: None,
        scratch: Vec::new(),
        steps: vec![Step::launch(launch)],
    }
}

fn plugin(variant: Variant) -> Plugin {
    let limits = ShapeLimits::default;
    Plugin {
        name: "op".to_owned(),
        namespace: "test".to_owned(),
        version: "1".to_owned(),
        summary: String::new(),
        attributes: vec![
            Attribute::new("k", AttributeType::I32),
            Attribute::new("e", AttributeType { element: AttributeElement::F32, list: false }),
        ],
        inputs: vec![Input {
            values: None,
            doc: String::new(),
            name: "x".to_owned(),
            rank_min: 2,
            rank_max: 2,
            limits: limits(),
        }],
        outputs: vec![Output {
            alias: None,
            size: None,
            doc: String::new(),
            name: "y".to_owned(),
            shape: parsed("x.shape"),
            limits: limits(),
        }],
        require: Vec::new(),
        timing: None,
        tuning: Vec::new(),
        variants: vec![variant],
    }
}

/// The bytes of the author's numbers, put together from words as a wrapper does it.
fn put_together(launch: &Launch, words: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut words = words.iter().skip(1).map(|word| i32::try_from(*word).expect("a word has 32 bits"));
    for arg in &launch.args {
        let (ty, count) = match &arg.value {
            ArgValue::Scalar { ty, .. } => (*ty, 1),
            ArgValue::Array { ty, len, .. } => (*ty, *len),
            _ => continue,
        };
        bytes.resize(bytes.len().next_multiple_of(launch::alignment(ty)), 0);
        for _ in 0..count {
            for _ in Part::of(ty) {
                let word = words.next().unwrap().to_le_bytes();
                bytes.extend_from_slice(&word[..ty.size().min(4) as usize]);
            }
        }
    }
    assert_eq!(words.next(), None);
    bytes
}

/// Holds what TensorRT would be told against what the first route launches, which is its own evaluation.
fn compare(launch: &Launch, shape: [i64; 2], k: i64) -> Result<(), String> {
    let plugin = plugin(variant(launch.clone()));
    let attributes = [Value::Int(k), Value::Float(0.1)];
    let shapes: [&[i64]; 2] = [&shape, &shape];
    let facts = Facts { attributes: &attributes, ranks: &[2], shapes: &shapes, ..Facts::default() };
    let first = sequence(&plugin, &plugin.variants[0], |_| Takes::ANYTHING, &facts, &mut Steps::default());
    let node = Facts { attributes: &attributes, ranks: &[2, 2], ..Facts::default() };
    let native =
        lower(&plugin, launch, &node, &mut Calculator(&shapes)).map_err(|fault| fault.to_string())?;
    assert_eq!(native.words.len(), words(launch).len());
    let Ok(first) = first else { return Ok(()) };
    let Doing::Launch(first) = &first.steps[0] else { panic!("{first:?}") };
    assert_eq!(native.words[0] != 0, first.is_empty());
    if first.is_empty() {
        assert!(native.grid.iter().all(|extent| *extent >= 1), "{native:?}");
        return Ok(());
    }
    assert_eq!(native.grid, first.grid.map(i64::from));
    assert_eq!(native.block, first.block.map(i64::from));
    assert_eq!(native.shared_bytes, i64::from(first.shared_bytes));
    assert_eq!(put_together(launch, &native.words), first.numbers);
    Ok(())
}

/// Every type of number, alone and in arrays, known when the node is and when shapes are.
fn all_types() -> Launch {
    launch(
        "ceil_div(numel(y), 128)",
        vec![
            scalar(I8, "k - 5"),
            scalar(I32, "numel(y) - 7"),
            scalar(U32, "numel(x) * 3"),
            scalar(I64, "(x.shape[0] - 3) * 5000000000"),
            scalar(U64, "numel(y) * 4294967296 + x.shape[1]"),
            scalar(U16, "x.shape[1]"),
            scalar(ScalarType::F32, "e"),
            scalar(ScalarType::F64, "e / 3.0"),
            scalar(ScalarType::Bool, "x.shape[0] > 2"),
            scalar(ScalarType::Bool, "k > 2"),
            array(I64, 2, "x.shape"),
            array(U16, 3, "[k, 65535, x.shape[0]]"),
            array(ScalarType::F32, 2, "[e, 1.0]"),
            array(ScalarType::Bool, 2, "[true, x.shape[0] == x.shape[1]]"),
        ],
    )
}

#[test]
fn a_value_takes_as_many_words_as_its_type_needs() {
    let words = words(&all_types());
    assert_eq!(words[0], Word::Nothing);
    assert_eq!(words[1], Word::Element { arg: 2, element: 0, part: Part::Whole });
    let wide: Vec<&Word> = words.iter().filter(|word| matches!(word, Word::Element { arg: 5, .. })).collect();
    assert_eq!(wide.len(), 2);
    assert_eq!(words.len(), 1 + 3 + 2 * 2 + 2 + 2 + 2 + 4 + 3 + 2 + 2);
}

#[test]
fn numbers_of_every_type_come_out_as_they_went_in() {
    for shape in [[1, 1], [3, 5], [70_000, 40_000], [2, 65_535], [65_535, 30_000]] {
        for k in [-100, 0, 5, 100] {
            let k: i64 = k;
            let launch = all_types();
            compare(&launch, shape, k.clamp(0, 100)).unwrap();
        }
    }
}

#[test]
fn nothing_is_done_where_a_tensor_is_empty() {
    for grid in
        ["ceil_div(numel(y), 128)", "x.shape[0] * ceil_div(128, x.shape[1])", "numel(y) // x.shape[0]"]
    {
        let launch =
            launch(grid, vec![scalar(I32, "numel(y) // x.shape[1]"), scalar(I64, "numel(x) % x.shape[0]")]);
        for shape in [[0, 5], [5, 0], [0, 0], [4, 6]] {
            compare(&launch, shape, 1).unwrap();
        }
    }
}

/// Where nothing is empty a division by zero is TensorRT's to refuse, as the first route refuses it.
#[test]
fn a_division_by_zero_is_not_hidden() {
    let launch = launch("ceil_div(numel(y), x.shape[0] - 2)", Vec::new());
    assert_eq!(compare(&launch, [2, 3], 1), Err("grid x: Divide by zero".to_owned()));
    compare(&launch, [3, 3], 1).unwrap();
    compare(&launch, [2, 0], 1).unwrap();
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |args| compare(&launch("1", args), [2, 3], 300).unwrap_err();
    assert_eq!(
        refused(vec![scalar(I8, "k")]),
        "argument `k` is 300, which its type i8 does not hold: -128 to 127"
    );
    assert_eq!(
        refused(vec![array(I64, 3, "x.shape")]),
        "argument `x.shape` has 2 elements, the kernel takes exactly 3"
    );
    assert_eq!(
        refused(vec![scalar(ScalarType::F32, "x.shape[0]")]),
        "argument `x.shape[0]` has no value: it is a float that depends on shapes, and TensorRT computes integers alone"
    );
}

#[test]
fn what_the_interface_cannot_do_is_named() {
    let whole = variant(all_types());
    assert_eq!(obstacles(&plugin(whole.clone()), &whole), []);
    let mut launch =
        launch("ceil_div(numel(y), device.sms)", vec![scalar(ScalarType::F32, "1.0 / float(x.shape[0])")]);
    launch.cooperative = true;
    let mut odd = variant(launch);
    odd.scratch.push(Scratch { name: "sums".to_owned(), bytes: parsed("128") });
    let found: Vec<String> = obstacles(&plugin(odd.clone()), &odd).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "it has the scratch buffer `sums`, and TensorRT gives none",
            "its launch is cooperative",
            "grid x depends on addresses or the device",
            "argument `1.0 / float(x.shape[0])` is a float that depends on shapes, and TensorRT computes integers alone",
        ]
    );
    odd.steps.push(odd.steps[0].clone());
    assert!(obstacles(&plugin(odd.clone()), &odd).contains(&Obstacle::Steps(2)));
}

proptest! {
    #[test]
    fn integers_of_64_bits_come_out_as_they_went_in(value in any::<i64>(), rows in 1_i64..5) {
        // The value depends on shapes, so that the words are computed by operations.
        let text = format!("({value}) - 1 + x.shape[0] - (x.shape[0] - 1)").replace("(-9223372036854775808)", "(-9223372036854775807 - 1)");
        let launch = launch("1", vec![scalar(I64, &text)]);
        compare(&launch, [rows, 1], 1).unwrap();
    }
}
