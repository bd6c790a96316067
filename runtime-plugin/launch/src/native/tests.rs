use proptest::prelude::*;

use super::*;
use crate::proof::Domain;
use crate::{EvaluatedLaunch, EvaluatedStep, Facts, LaunchLimits, Steps, sequence};
use cubinder_expr as expr;
use cubinder_expr::data_type::DataType;
use cubinder_expr::{Kind, Scope};
use cubinder_model::model::{
    Arg, Attribute, AttributeElement, AttributeType, Guard, Input, Interval, Output, Requirement, Scratch,
    ShapeLimits, Step, Variant,
};

/// Computes as TensorRT does: wrapping, no division by zero.
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
        formats: vec![cubinder_expr::Format::Linear; 2],
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
            for _ in WordPart::for_type(ty) {
                let word = words.next().unwrap().to_le_bytes();
                bytes.extend_from_slice(&word[..ty.size().min(4) as usize]);
            }
        }
    }
    assert_eq!(words.next(), None);
    bytes
}

fn compare(launch: &Launch, shape: [i64; 2], k: i64) -> Result<(), String> {
    compare_where(None, launch, shape, k)
}

fn compare_where(when: Option<&str>, launch: &Launch, shape: [i64; 2], k: i64) -> Result<(), String> {
    let mut variant = variant(launch.clone());
    let when = when.map(|text| Guard { expr: parsed(text), text: text.to_owned() });
    variant.steps[0].when.clone_from(&when);
    let plugin = plugin(variant);
    let attributes = [Value::Int(k), Value::Float(0.1)];
    let shapes: [&[i64]; 2] = [&shape, &shape];
    let facts = Facts { attributes: &attributes, ranks: &[2], shapes: &shapes, ..Facts::default() };
    let first =
        sequence(&plugin, &plugin.variants[0], |_| LaunchLimits::ANYTHING, &facts, &mut Steps::default());
    let node = Facts { attributes: &attributes, ranks: &[2, 2], ..Facts::default() };
    let native = lower(&plugin, when.as_ref(), &[], launch, &node, &mut Calculator(&shapes));
    let native = native.map_err(|fault| fault.to_string())?;
    assert_eq!(native.words.len(), words(launch).len());
    let node = Facts { shapes: &shapes, ..node };
    let numbers = evaluate(&plugin, when.as_ref(), launch, &node).map_err(|fault| fault.to_string())?;
    assert_eq!(numbers.grid.map(i64::from), native.grid);
    assert_eq!(numbers.args.len(), 2 + native.words.len());
    let Ok(first) = first else { return Ok(()) };
    let EvaluatedStep::Launch(first) = &first.steps[0] else {
        assert_eq!((&first.steps[0], native.words[0]), (&EvaluatedStep::LeftOut, 1));
        return Ok(());
    };
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
    assert_eq!(words[1], Word::Element { arg: 2, element: 0, part: WordPart::Whole });
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

#[test]
fn nothing_is_done_where_the_condition_does_not_hold() {
    let launch = launch("ceil_div(numel(y), x.shape[0] - 2)", vec![scalar(I32, "7 // (x.shape[0] - 2)")]);
    for shape in [[1, 3], [2, 3], [3, 3], [0, 3], [9, 9]] {
        compare_where(Some("x.shape[0] > 2"), &launch, shape, 1).unwrap();
        compare_where(Some("x.shape[0] > 2 and k == 1"), &launch, shape, 1).unwrap();
        compare_where(Some("k == 2"), &launch, shape, 1).unwrap();
    }
}

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
        "argument `k` is 300, which does not fit its type i8: -128 to 127"
    );
    assert_eq!(
        refused(vec![array(I64, 3, "x.shape")]),
        "argument `x.shape` has length 2, the kernel expects exactly 3"
    );
    assert_eq!(
        refused(vec![scalar(ScalarType::F32, "x.shape[0]")]),
        "argument `x.shape[0]` has no value: it is a float that depends on shapes, but TensorRT evaluates only integers"
    );
}

fn evaluated(launch: &Launch, k: i64, columns: i64) -> Result<EvaluatedLaunch, String> {
    let plugin = plugin(variant(launch.clone()));
    let shape = [3, columns];
    let (shapes, attributes) = ([&shape[..], &shape], [Value::Int(k), Value::Float(0.0)]);
    let facts = Facts { attributes: &attributes, shapes: &shapes, ..Facts::default() };
    evaluate(&plugin, None, launch, &facts).map_err(|fault| fault.to_string())
}

#[test]
fn extents_that_attributes_decide_are_held_against_what_cuda_takes() {
    let of = |block: &str, shared: &str, k| {
        let launch = launch("1", Vec::new());
        let block = [parsed(block), parsed("2"), parsed("1")];
        evaluated(&Launch { block, shared_bytes: parsed(shared), ..launch }, k, 8)
            .map(|done| (done.block, done.shared_bytes))
    };
    assert_eq!(of("k", "k", 512), Ok(([512, 2, 1], 512)));
    let refused = |block, shared, k| of(block, shared, k).unwrap_err();
    assert_eq!(refused("k", "0", 4096), "block x is 4096, the maximum is 1024");
    assert_eq!(refused("k", "0", 0), "block x is 0, the minimum is 1");
    assert_eq!(refused("k", "0", -5), "block x is -5, the minimum is 1");
    assert_eq!(refused("k", "0", 1024), "the number of threads in a block is 2048, the maximum is 1024");
    assert_eq!(refused("1", "k * 1024", 49), "dynamic shared memory in bytes is 50176, the maximum is 49152");
}

#[test]
fn one_block_is_launched_where_there_is_nothing_to_do() {
    let launch = Launch {
        grid: [parsed("3 if x.shape[1] > 0 else 0"), parsed("5"), parsed("1")],
        block: [parsed("min(x.shape[1], 64)"), parsed("2"), parsed("1")],
        shared_bytes: parsed("x.shape[1] * 4 + 16"),
        ..launch("1", Vec::new())
    };
    let of = |columns| {
        let done = evaluated(&launch, 1, columns).unwrap();
        (done.grid, done.block, done.shared_bytes, done.numbers)
    };
    assert_eq!(of(8), ([3, 5, 1], [8, 2, 1], 48, vec![0; 4]));
    assert_eq!(of(0), ([1, 1, 1], [1, 2, 1], 0, vec![1, 0, 0, 0]));
}

#[test]
fn what_attributes_leave_out_does_not_matter() {
    let launch = Launch {
        block: [parsed("k"), parsed("1"), parsed("1")],
        shared_bytes: parsed("k * x.shape[1]"),
        ..launch("2", vec![scalar(I64, "numel(x)")])
    };
    let plugin = plugin(variant(launch.clone()));
    let when = Guard { expr: parsed("k > 0"), text: "k > 0".to_owned() };
    let of = |when: Option<&Guard>, launch: &Launch, k| {
        let shape = [3, 8];
        let (shapes, attributes) = ([&shape[..], &shape], [Value::Int(k), Value::Float(0.0)]);
        let facts = Facts { attributes: &attributes, shapes: &shapes, ..Facts::default() };
        let done = evaluate(&plugin, when, launch, &facts).map_err(|fault| fault.to_string())?;
        Ok::<_, String>((done.grid, done.block, done.shared_bytes, done.numbers.len(), done.numbers[0]))
    };
    assert_eq!(of(Some(&when), &launch, 2), Ok(([2, 1, 1], [2, 1, 1], 16, 12, 0)));
    assert_eq!(of(Some(&when), &launch, 0), Ok(([1, 1, 1], [1, 1, 1], 0, 12, 1)));
    assert_eq!(of(None, &launch, 0), Err("block x is 0, the minimum is 1".to_owned()));
    let none = Launch { grid: [parsed("k"), parsed("1"), parsed("1")], ..launch };
    assert_eq!(of(None, &none, 0), Ok(([1, 1, 1], [1, 1, 1], 0, 12, 1)));
}

#[test]
fn nothing_is_done_where_a_requirement_does_not_hold() {
    let launch = launch("ceil_div(numel(x), 128)", Vec::new());
    let plugin = plugin(variant(launch.clone()));
    let require =
        |text: &str| Requirement { expr: parsed(text), text: text.to_owned(), message: String::new() };
    let all = [require("k == 1"), require("x.shape[1] % 4 == 0"), require("x.shape == y.shape")];
    let all: Vec<&Requirement> = all.iter().collect();
    let word = |x: [i64; 2], y: [i64; 2]| {
        let (shapes, attributes) = ([&x[..], &y], [Value::Int(1), Value::Float(0.0)]);
        let facts = Facts { attributes: &attributes, shapes: &shapes, ..Facts::default() };
        let done = lower(&plugin, None, &all, &launch, &facts, &mut Calculator(&shapes)).unwrap();
        (done.words[0], done.grid[0])
    };
    assert_eq!(word([3, 100], [3, 100]), (0, 3));
    assert_eq!(word([3, 102], [3, 102]), (1, 1));
    assert_eq!(word([3, 100], [3, 104]), (1, 1));
}

#[test]
fn a_kernel_of_another_compiler_takes_what_tensorrt_passes() {
    let tensor = |name: &str, tensor| Arg { name: name.to_owned(), value: ArgValue::Tensor(tensor) };
    let (x, y) = (|| tensor("x", 0), || tensor("y", 1));
    let small = || scalar(I32, "k");
    let mut plugin = plugin(variant(launch("1", Vec::new())));
    let said = |plugin: &Plugin, args: Vec<Arg>| {
        argument_mismatch(plugin, &args).map(|argument_mismatch| argument_mismatch.to_string())
    };
    for numbers in [vec![], vec![small(), scalar(U32, "k"), scalar(ScalarType::F32, "e")]] {
        let args = [vec![x()], numbers, vec![y()]].concat();
        assert_eq!(said(&plugin, args), None);
    }
    let read_only = Arg { name: "x".to_owned(), value: ArgValue::ReadTensor(0) };
    assert_eq!(said(&plugin, vec![read_only, y()]), None);
    let wrong = [
        (vec![], "TensorRT passes the address of `x` as argument 1, but the kernel expects fewer"),
        (
            vec![y(), x()],
            "TensorRT passes the address of `x` as argument 1, but the kernel expects `y` there",
        ),
        (vec![x()], "TensorRT passes the address of `y` as argument 2, but the kernel expects fewer"),
        (
            vec![x(), y(), small()],
            "TensorRT passes no arguments after the outputs, but the kernel expects `k` there",
        ),
        (vec![x(), scalar(I64, "k"), y()], "`k` has 8 bytes, but TensorRT passes 4-byte integers"),
        (vec![x(), scalar(I8, "k"), y()], "`k` has 1 byte, but TensorRT passes 4-byte integers"),
        (
            vec![x(), scalar(ScalarType::Bool, "k == 1"), y()],
            "`k == 1` has 1 byte, but TensorRT passes 4-byte integers",
        ),
        (
            vec![x(), array(U16, 2, "[k, k]"), y()],
            "`[k, k]` has 4 bytes, but TensorRT passes 4-byte integers",
        ),
        (
            vec![x(), x(), y()],
            "TensorRT passes the address of `y` as argument 2, but the kernel expects `x` there",
        ),
    ];
    for (args, expected) in wrong {
        assert_eq!(said(&plugin, args).as_deref(), Some(expected));
    }
    plugin.outputs[0].alias = Some(0);
    assert_eq!(said(&plugin, vec![x(), small()]), None, "an aliased output has no separate address");
}

#[test]
fn a_kernel_of_another_compiler_is_not_told_that_there_is_nothing_to_do() {
    let mut launch = launch("ceil_div(numel(x), 128)", vec![scalar(I32, "numel(x)")]);
    let mut evaluated = |symbol: String| {
        let target = "compute_80".parse().unwrap();
        launch.code = vec![cubinder_model::model::CodeRef { target, code: 0, symbol }];
        let plugin = plugin(variant(launch.clone()));
        let (shapes, attributes) = ([&[3_i64, 100][..], &[3, 100]], [Value::Int(1), Value::Float(0.0)]);
        let facts = Facts { attributes: &attributes, shapes: &shapes, ..Facts::default() };
        let evaluated = evaluate(&plugin, None, &launch, &facts).unwrap();
        (evaluated.grid, evaluated.numbers.len() / 4, evaluated.args.len())
    };
    assert_eq!(evaluated(symbol("test", "op")), ([3, 1, 1], 2, 4));
    assert_eq!(evaluated(own_symbol("test", "op")), ([3, 1, 1], 1, 3));
}

#[test]
fn symbols_tell_whose_kernels_they_are() {
    for (of_symbol, op) in [
        (symbol("sample", "circ_pad"), Some("sample::circ_pad")),
        (own_symbol("sample", "circ_pad"), Some("sample::circ_pad")),
        (symbol("", "plain"), Some("plain")),
        (own_symbol("", "plain"), Some("plain")),
        (symbol("a.b", "c-d"), Some("a_b::c_d")),
        ("cubinder_own".to_owned(), None),
        ("cubinder__x".to_owned(), None),
        ("scale".to_owned(), None),
    ] {
        assert_eq!(op_of_symbol(&of_symbol).as_deref(), op, "{of_symbol}");
    }
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
            "it has the scratch buffer `sums`, but TensorRT provides none",
            "its launch is cooperative",
            "grid x depends on addresses or the device",
            "argument `1.0 / float(x.shape[0])` is a float that depends on shapes, but TensorRT evaluates only integers",
        ]
    );
    odd.steps.push(odd.steps[0].clone());
    assert!(obstacles(&plugin(odd.clone()), &odd).contains(&Obstacle::Steps(2)));
}

proptest! {
    #[test]
    fn integers_of_64_bits_come_out_as_they_went_in(value in any::<i64>(), rows in 1_i64..5) {
        // Depends on shapes, so operations compute the words.
        let text = format!("({value}) - 1 + x.shape[0] - (x.shape[0] - 1)").replace("(-9223372036854775808)", "(-9223372036854775807 - 1)");
        let launch = launch("1", vec![scalar(I64, &text)]);
        compare(&launch, [rows, 1], 1).unwrap();
    }
}

#[test]
fn arguments_that_depend_on_shapes_are_proved_to_fit_their_types() {
    let unfit_of = |ty: ScalarType, text: &str, min: i64, max: i64| {
        let launch = launch("1", vec![scalar(ty, text)]);
        let plugin = plugin(variant(launch.clone()));
        let attributes = [Value::Int(0), Value::Float(0.0)];
        let profile = [vec![Interval { min: 0, max: max - min }, Interval { min: 1, max: 1 }]];
        let domain = Domain::new(&plugin).with_attributes(&attributes).with_profile(&profile);
        let parts = unproved(&domain, &launch, 0).into_iter();
        let of_argument = parts.filter(|part| matches!(part.role, Role::Argument(_)));
        of_argument.map(|part| (part.range, part.never)).collect::<Vec<_>>()
    };
    let unfit = |ty, min, max| unfit_of(ty, &format!("x.shape[0] + ({min})"), min, max);
    let wide = i64::from(i32::MAX);
    for (ty, min, max) in [
        (I8, -128, 127),
        (U16, 0, 65_535),
        (ScalarType::Natural { bits: 7 }, 0, 127),
        (I32, -wide - 1, wide),
        (U32, 0, 2 * wide + 1),
    ] {
        let range = Interval { min, max };
        assert_eq!(unfit(ty, min, max), [], "{ty:?}");
        assert_eq!(unfit(ty, min - 1, max), [(range, false)], "{ty:?}");
        assert_eq!(unfit(ty, min, max + 1), [(range, false)], "{ty:?}");
        assert_eq!(unfit(ty, min - 2, min - 1), [(range, true)], "{ty:?}");
        assert_eq!(unfit(ty, max + 1, max + 2), [(range, true)], "{ty:?}");
    }
    assert_eq!(unfit(I64, -5, 5), []);
    assert_eq!(unfit(U64, 0, 5), []);
    assert_eq!(unfit(U64, -1, 5), [(Interval { min: 0, max: i64::MAX }, false)]);
    assert_eq!(unfit(ScalarType::F32, -1, 5), []);
    for end in ["9223372036854775807 + 0 // x.shape[0]", "-9223372036854775807 - 1 + 0 // x.shape[0]"] {
        assert_eq!(
            unfit_of(I64, end, 0, 5),
            [(Interval { min: i64::MIN, max: i64::MAX }, false)],
            "{end} has no value if the shape is 0"
        );
    }
}

fn positive(text: &str) -> String {
    format!("1 <= {text} and {text} <= 9223372036854775807")
}

#[test]
fn a_kernel_runs_where_its_step_and_its_grid_allow() {
    let plugin = plugin(variant(launch("1", Vec::new())));
    let when = Guard { expr: parsed("k == 1"), text: String::new() };
    let text = |when: Option<&Guard>, grid: &str| {
        running(when, &launch(grid, Vec::new())).map(|expr| expr::print(&expr, &plugin))
    };
    assert_eq!([text(None, "1"), text(None, "2")], [None, None]);
    assert_eq!(text(None, "0"), Some(positive("0")));
    assert_eq!(text(None, "x.shape[0]"), Some(positive("x.shape[0]")));
    assert_eq!(text(Some(&when), "1").as_deref(), Some("k == 1"));
    assert_eq!(text(Some(&when), "x.shape[0]"), Some(format!("{} and k == 1", positive("x.shape[0]"))));
}

#[test]
fn outputs_have_to_be_written_where_they_have_elements() {
    let statements = |grid: &str, change: &dyn Fn(&mut Plugin, &mut Launch)| {
        let mut launch = launch(grid, Vec::new());
        let mut plugin = plugin(variant(launch.clone()));
        change(&mut plugin, &mut launch);
        let written = writes(&plugin, None, &launch).into_iter();
        written.map(|(name, expr)| (name, expr::print(&expr, &plugin))).collect::<Vec<_>>()
    };
    let statement = format!("0 <= numel(y) and numel(y) <= 0 or {}", positive("x.shape[0]"));
    assert_eq!(statements("x.shape[0]", &|_, _| {}), [("y".to_owned(), statement)]);
    assert_eq!(statements("1", &|_, _| {}), [], "it always runs");
    assert_eq!(statements("x.shape[0]", &|plugin, _| plugin.outputs[0].alias = Some(0)), []);
    assert_eq!(statements("x.shape[0]", &|_, launch| launch.args.truncate(1)), [], "it writes nothing");
}

#[test]
fn extents_are_compared_with_the_limits_of_cuda() {
    let open = |block: [&str; 3], declared: u32| {
        let mut launch = launch("x.shape[0]", Vec::new());
        launch.grid = [(); 3].map(|()| parsed("x.shape[0]"));
        launch.block = block.map(parsed);
        let plugin = plugin(variant(launch.clone()));
        let parts = unproved(&Domain::new(&plugin), &launch, declared).into_iter();
        parts.map(|part| (part.role, part.range.min, part.range.max)).collect::<Vec<_>>()
    };
    let grid =
        [(Role::Grid('x'), 0, 2_147_483_647), (Role::Grid('y'), 0, 65_535), (Role::Grid('z'), 0, 65_535)];
    let shared = |most: i64| (Role::SharedBytes, 0, most);
    let [x, y, z] = [('x', 1024), ('y', 1024), ('z', 64)].map(|(axis, most)| (Role::Block(axis), 1, most));
    let threads = (Role::Threads, 1, 1024);
    let expected = |parts: &[(Role, i64, i64)]| [&grid, parts].concat();
    assert_eq!(open(["32", "2", "1"], 0), expected(&[shared(48 * 1024)]));
    assert_eq!(open(["32", "2", "1"], 1000), expected(&[shared(48 * 1024 - 1000)]));
    assert_eq!(open(["32", "2", "1"], 60_000), expected(&[shared(0)]));
    assert_eq!(open(["x.shape[0]", "1", "1"], 0), expected(&[x.clone(), shared(48 * 1024)]));
    assert_eq!(open(["x.shape[0]", "2", "1"], 0), expected(&[x.clone(), threads.clone(), shared(48 * 1024)]));
    assert_eq!(open(["x.shape[0]"; 3], 0), expected(&[x, y, z, threads, shared(48 * 1024)]));
}
