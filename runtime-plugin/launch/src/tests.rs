use super::*;
use cubinder_expr::data_type::{DataType, ScalarType};
use cubinder_expr::format::Format;
use cubinder_expr::value::Value;
use cubinder_expr::{BinaryOp, Builtin, Expr, Node};
use cubinder_model::attribute_check::{Unmet, check_attribute, missing_attribute};
use cubinder_model::model::{
    AUTO_TACTIC, Arg, ArgValue, Attribute, AttributeType, Guard, Input, Interval, Launch, Output, Plugin,
    Requirement, ShapeLimits, Step, Variant,
};

fn linear(types: &[DataType; 2]) -> Signature<'_> {
    Signature { attributes: &[Value::Int(1)], types, formats: &[Format::Linear; 2] }
}

fn int(value: i64) -> Expr {
    Expr { nodes: vec![Node::Int(value)] }
}

fn blocks(block: i64) -> Expr {
    Expr { nodes: vec![Node::Numel(1), Node::Int(block), Node::Call(Builtin::CeilDiv, vec![0, 1])] }
}

fn vectorised(by: i64) -> Guard {
    let nodes = vec![
        Node::Numel(1),
        Node::Int(by),
        Node::Binary(BinaryOp::Mod, 0, 1),
        Node::Int(0),
        Node::Binary(BinaryOp::Eq, 2, 3),
        Node::Aligned { tensor: 0, bytes: 16 },
        Node::Binary(BinaryOp::And, 4, 5),
    ];
    Guard { expr: Expr { nodes }, text: format!("numel(y) % {by} == 0 and aligned(x, 16)") }
}

fn variant(id: i32, ty: DataType, guard: Option<Guard>) -> Variant {
    let count =
        ArgValue::Scalar { ty: ScalarType::Int { bytes: 4 }, expr: Expr { nodes: vec![Node::Numel(1)] } };
    let extents = ArgValue::Array {
        ty: ScalarType::Int { bytes: 8 },
        len: 2,
        expr: Expr { nodes: vec![Node::Shape(0)] },
    };
    let launch = Launch {
        cluster: None,
        cooperative: false,
        programmatic: false,
        kernel: "scale".to_owned(),
        grid: [blocks(256), int(1), int(1)],
        block: [int(256), int(1), int(1)],
        shared_bytes: int(64),
        args: vec![
            Arg { name: "in".to_owned(), value: ArgValue::Tensor(0) },
            Arg { name: "out".to_owned(), value: ArgValue::Tensor(1) },
            Arg { name: "count".to_owned(), value: count },
            Arg { name: "extents".to_owned(), value: extents },
        ],
        code: Vec::new(),
    };
    Variant {
        id,
        label: String::new(),
        types: vec![ty; 2],
        guard,
        formats: vec![cubinder_expr::Format::Linear; 2],
        specialized: Vec::new(),
        scratch: Vec::new(),
        steps: vec![cubinder_model::Step::launch(launch)],
    }
}

fn plugin() -> Plugin {
    Plugin {
        name: "scale".to_owned(),
        namespace: "test".to_owned(),
        version: "1".to_owned(),
        summary: String::new(),
        attributes: vec![Attribute::new("k", AttributeType::I32)],
        inputs: vec![Input {
            values: None,
            doc: String::new(),
            name: "x".to_owned(),
            rank_min: 1,
            rank_max: 2,
            limits: ShapeLimits {
                every: Interval { min: 0, max: 100_000 },
                dims: Vec::new(),
                numel: Interval { min: 0, max: 1_000_000 },
            },
        }],
        outputs: vec![Output {
            alias: None,
            size: None,
            doc: String::new(),
            name: "y".to_owned(),
            shape: Expr { nodes: vec![Node::Shape(0)] },
            limits: ShapeLimits::default(),
        }],
        require: vec![Requirement {
            expr: Expr { nodes: vec![Node::Attribute(0), Node::Int(0), Node::Binary(BinaryOp::Gt, 0, 1)] },
            text: "k > 0".to_owned(),
            message: "`k` must be positive".to_owned(),
        }],
        timing: None,
        tuning: Vec::new(),
        variants: vec![
            variant(1, DataType::F32, Some(vectorised(4))),
            variant(2, DataType::F32, None),
            variant(1, DataType::F16, Some(vectorised(8))),
        ],
    }
}

fn with_steps(plugin: &Plugin, steps: Vec<Step>) -> Variant {
    Variant { steps, ..plugin.variants[1].clone() }
}

fn numbers(
    plugin: &Plugin,
    launch: &Launch,
    takes: &LaunchLimits<'_>,
    facts: &Facts<'_>,
) -> Result<EvaluatedLaunch, Box<LaunchError>> {
    let variant = with_steps(plugin, vec![Step::launch(launch.clone())]);
    let found = sequence(plugin, &variant, |_| *takes, facts, &mut Steps::default())?;
    match found.steps.into_iter().next() {
        Some(EvaluatedStep::Launch(launch)) => Ok(launch),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_launch_becomes_numbers() {
    let plugin = plugin();
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[3, 100], &[3, 100]], ..Facts::default() };
    let found =
        numbers(&plugin, plugin.variants[1].launch(0).unwrap(), &LaunchLimits::ANYTHING, &facts).unwrap();
    assert_eq!((found.grid, found.block, found.shared_bytes), ([2, 1, 1], [256, 1, 1], 64));
    let extents = Value::Array(vec![Value::Int(3), Value::Int(100)]);
    assert_eq!(
        found.args,
        [
            EvaluatedArgument::Input(0),
            EvaluatedArgument::Output(0),
            EvaluatedArgument::Numbers { start: 0, value: Value::Int(300) },
            EvaluatedArgument::Numbers { start: 8, value: extents },
        ]
    );
    let mut bytes = [300_i32.to_le_bytes().to_vec(), vec![0; 4]].concat();
    bytes.extend([3_i64, 100].iter().flat_map(|extent| extent.to_le_bytes()));
    assert_eq!(found.numbers, bytes);
}

#[test]
fn an_empty_tensor_is_no_launch() {
    let plugin = plugin();
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[0, 5], &[0, 5]], ..Facts::default() };
    let found =
        numbers(&plugin, plugin.variants[1].launch(0).unwrap(), &LaunchLimits::ANYTHING, &facts).unwrap();
    assert!(found.is_empty() && found.args.is_empty());
    assert_eq!(found.grid, [0, 1, 1]);
}

#[test]
fn a_grid_of_0_never_leaves_an_output_as_it_is() {
    let plugin = plugin();
    let launch = |grid: i64| {
        let mut launch = plugin.variants[1].launch(0).unwrap().clone();
        launch.grid[1] = Expr { nodes: vec![Node::Int(grid)] };
        launch
    };
    let of = |shape: &[i64], grid| {
        let facts = Facts { attributes: &[Value::Int(1)], shapes: &[shape, shape], ..Facts::default() };
        numbers(&plugin, &launch(grid), &LaunchLimits::ANYTHING, &facts)
    };
    assert!(of(&[3, 5], 1).is_ok());
    assert!(of(&[3, 0], 0).is_ok_and(|found| found.is_empty()));
    let error = of(&[3, 5], 0).unwrap_err();
    assert_eq!(
        (&error.role, &error.problem),
        (&Role::Grid('y'), &Problem::NothingLaunched { rounds_down: false })
    );
    assert!(error.to_string().contains("grid y is 0, but no output is empty"), "{error}");
}

#[test]
fn what_cannot_be_launched_is_refused_with_its_reason() {
    let plugin = plugin();
    let sized = |shape: &[i64], change: &dyn Fn(&mut Launch), takes: &LaunchLimits<'_>| {
        let mut launch = plugin.variants[1].launch(0).unwrap().clone();
        change(&mut launch);
        let facts = Facts { attributes: &[Value::Int(1)], shapes: &[shape, shape], ..Facts::default() };
        numbers(&plugin, &launch, takes, &facts).map(drop).map_err(|error| error.to_string())
    };
    let refused = |shape: &[i64], change: &dyn Fn(&mut Launch)| {
        sized(shape, change, &LaunchLimits::ANYTHING).unwrap_err()
    };
    assert_eq!(
        refused(&[70_000, 70_000], &|_| {}),
        "`test::scale` cannot launch `scale`: argument `count` is 4900000000, which does not fit its type i32: -2147483648 to \
         2147483647\n  x: [70000, 70000]\n  y: [70000, 70000]\nuse a wider type in the kernel, or limit the shapes"
    );
    assert!(refused(&[1], &|_| {}).contains("`extents` has length 1, the kernel expects exactly 2"));
    let block = |launch: &mut Launch| launch.block = [int(64), int(64), int(1)];
    assert!(
        refused(&[1, 1], &block).contains("the number of threads in a block is 4096, the maximum is 1024")
    );
    let grid = |launch: &mut Launch| launch.grid[1] = int(65_536);
    assert!(refused(&[1, 1], &grid).contains("grid y is 65536, the maximum is 65535"));
    let negative = |launch: &mut Launch| launch.shared_bytes = int(-1);
    assert!(refused(&[1, 1], &negative).contains("dynamic shared memory in bytes is -1, the minimum is 0"));
    let narrow = LaunchLimits { max_threads: 128, ..LaunchLimits::ANYTHING };
    let error = sized(&[1, 1], &|_| {}, &narrow).unwrap_err();
    assert!(error.contains("is 256, the maximum for this kernel on this GPU is 128"), "{error}");
    let other = LaunchLimits { params: Some(&[8, 8, 8, 16]), ..LaunchLimits::ANYTHING };
    assert!(sized(&[1, 1], &|_| {}, &other).unwrap_err().contains("`count` has 4 bytes"));
    let same = LaunchLimits { params: Some(&[8, 8, 4, 16]), ..LaunchLimits::ANYTHING };
    assert_eq!(sized(&[1, 1], &|_| {}, &same), Ok(()));
}

fn decided(plugin: &Plugin, ty: DataType, facts: &Facts<'_>) -> Result<GuardDecision, Unmet> {
    let order = in_order(plugin, &linear(&[ty; 2]), AUTO_TACTIC, facts)?;
    decide(plugin, &order, AUTO_TACTIC, facts, &mut Steps::default())
}

#[test]
fn the_first_variant_whose_guard_holds_runs() {
    let plugin = plugin();
    let chosen = |shape: &[i64], alignments: &[u64], ty: DataType| {
        let facts = Facts { attributes: &[Value::Int(1)], shapes: &[shape, shape], ..Facts::default() };
        let decided = decided(&plugin, ty, &facts).ok()?;
        decided.pick(|tensor| alignments.get(tensor).copied())
    };
    assert_eq!(chosen(&[2, 4], &[256, 256], DataType::F32), Some(0));
    assert_eq!(chosen(&[2, 4], &[0, 0], DataType::F32), Some(0), "null is aligned");
    assert_eq!(chosen(&[2, 4], &[8, 256], DataType::F32), Some(1));
    assert_eq!(chosen(&[2, 3], &[256, 256], DataType::F32), Some(1));
    assert_eq!(chosen(&[2, 3], &[], DataType::F32), Some(1), "no address is inspected");
    assert_eq!(chosen(&[2, 4], &[256, 256], DataType::F16), Some(2));
    assert_eq!(chosen(&[2, 4], &[8, 256], DataType::F16), None);
    assert_eq!(chosen(&[2, 2], &[256, 256], DataType::F16), None);
    assert_eq!(chosen(&[2, 4], &[256, 256], DataType::I8), None);
}

#[test]
fn a_tactic_comes_first_and_the_others_follow() {
    let mut plugin = plugin();
    plugin.variants.insert(2, variant(7, DataType::F32, None));
    let order = |tactic| {
        in_order(&plugin, &linear(&[DataType::F32; 2]), tactic, &Facts::default())
            .map_err(|unmet| unmet.to_string())
    };
    assert_eq!(order(AUTO_TACTIC), Ok(vec![0, 1, 2]));
    assert_eq!(order(0), Ok(vec![0, 1, 2]));
    assert_eq!(order(2), Ok(vec![1, 2, 0]));
    assert_eq!(order(7), Ok(vec![2, 0, 1]));
    assert_eq!(order(3).unwrap_err(), "no variant 3 exists for the node's types");
    let other = in_order(&plugin, &linear(&[DataType::I8, DataType::F32]), 0, &Facts::default())
        .unwrap_err()
        .to_string();
    assert_eq!(other, "no variant supports the types (i8, f32); the plugin supports (f32, f32), (f16, f16)");
}

#[test]
fn formats_and_what_code_was_compiled_for_decide_which_variants_serve() {
    use DataType::F16;
    let mut plugin = plugin();
    let row = |id, formats: [Format; 2], k: Option<i64>| Variant {
        formats: formats.to_vec(),
        specialized: k.map(|k| (0, Value::Int(k))).into_iter().collect(),
        ..variant(id, F16, None)
    };
    let (linear, hwc8) = ([Format::Linear; 2], [Format::Hwc8; 2]);
    plugin.variants =
        vec![row(1, hwc8, Some(3)), row(1, hwc8, Some(5)), row(2, linear, None), row(3, hwc8, None)];
    let order = |formats: &[Format], k: i64, tactic| {
        let attributes = [Value::Int(k)];
        let node = Signature { attributes: &attributes, types: &[F16; 2], formats };
        in_order(&plugin, &node, tactic, &Facts::default()).map_err(|unmet| unmet.to_string())
    };
    assert_eq!(order(&hwc8, 3, AUTO_TACTIC), Ok(vec![0, 3]));
    assert_eq!(order(&hwc8, 5, AUTO_TACTIC), Ok(vec![1, 3]));
    assert_eq!(order(&hwc8, 5, 3), Ok(vec![3, 1]));
    assert_eq!(order(&hwc8, 4, AUTO_TACTIC), Ok(vec![3]));
    assert_eq!(order(&linear, 4, AUTO_TACTIC), Ok(vec![2]));
    assert_eq!(order(&hwc8, 4, 1).unwrap_err(), "no variant 1 exists for the node's types and formats");
    assert_eq!(
        order(&[Format::Chw2, Format::Linear], 3, 0).unwrap_err(),
        "no variant supports the types and formats (f16 chw2, f16); the plugin supports (f16 hwc8, f16 hwc8), (f16, f16)"
    );
    plugin.variants.truncate(2);
    let check = |attributes: &[Value]| {
        let facts = Facts { attributes, ..Facts::default() };
        let checked = check(&plugin, rules_of_attributes(&plugin), &facts, &mut Steps::default());
        checked.map_err(|unmet| unmet.to_string())
    };
    assert_eq!(check(&[]), Ok(()), "nothing is known");
    assert_eq!(check(&[Value::Int(5)]), Ok(()));
    assert_eq!(
        check(&[Value::Int(4)]).unwrap_err(),
        "the attribute `k` is `4`, but the code is specialized for `3`, `5`"
    );
    assert_eq!(check(&[Value::Int(0)]).unwrap_err(), "`k` must be positive: `k > 0` is false; k = 0");
}

#[test]
fn nodes_are_held_against_what_the_plugin_says() {
    let plugin = plugin();
    let found = |shape: &[i64], k: i64| {
        let facts = Facts { attributes: &[Value::Int(k)], shapes: &[shape], ..Facts::default() };
        check(&plugin, rules_of_shapes(&plugin), &facts, &mut Steps::default()).map_err(|Unmet(why)| why)
    };
    assert_eq!(found(&[1000, 1000], 1), Ok(()));
    assert_eq!(found(&[0, 100_000], 1), Ok(()));
    for (shape, k, expected) in [
        (&[1, 1, 100_001][..], 0, "input `x` has rank 3, expected 1 to 2"),
        (&[3, 100_001], 0, "`k` must be positive: `k > 0` is false; k = 0, x is 3x100001"),
        (&[3, 100_001], 1, "dimension 1 of `x` is 100001 in 3x100001; the manifest limits it to 0..=100000"),
        (
            &[1001, 1000],
            1,
            "the number of elements of `x` is 1001000 in 1001x1000; the manifest limits it to 0..=1000000",
        ),
    ] {
        assert_eq!(found(shape, k).unwrap_err(), expected);
    }
    let open = |facts: &Facts<'_>| {
        let mut verdicts = rules_of_attributes(&plugin).chain(rules_of_shapes(&plugin));
        verdicts.all(|rule| rule.check(&plugin, facts, &mut Steps::default()) == Ok(None))
    };
    assert!(open(&Facts::default()), "nothing is known, so nothing is rejected");
    let attributes_alone = |k| {
        let facts = Facts { attributes: &[Value::Int(k)], ..Facts::default() };
        check(&plugin, rules_of_attributes(&plugin), &facts, &mut Steps::default())
    };
    assert_eq!(attributes_alone(1), Ok(()));
    let error = attributes_alone(0).unwrap_err().to_string();
    assert_eq!(error, "`k` must be positive: `k > 0` is false; k = 0");
}

#[test]
fn attributes_are_held_against_their_rules() {
    let k = Attribute { minimum: Some(Value::Int(1)), ..Attribute::new("k", AttributeType::I32) };
    assert_eq!(check_attribute(&k, &Value::Int(1)), Ok(()));
    let error = check_attribute(&k, &Value::Int(0)).unwrap_err().to_string();
    assert_eq!(error, "the attribute `k` is `0`, the minimum is `1`");
    assert_eq!(missing_attribute(&k).to_string(), "missing attribute `k` (`i32`), which has no default");
}

#[test]
fn what_may_run_for_some_addresses_is_known_without_them() {
    let plugin = plugin();
    let facts = |shapes| Facts { attributes: &[Value::Int(1)], shapes, ..Facts::default() };
    let candidates = |ty, shapes| decided(&plugin, ty, &facts(shapes)).map(|decided| decided.candidates);
    assert_eq!(candidates(DataType::F32, &[&[2, 4], &[2, 4]]), Ok(vec![0, 1]));
    assert_eq!(candidates(DataType::F32, &[&[2, 3], &[2, 3]]), Ok(vec![1]));
    let shapes: &[&[i64]] = &[&[2, 3], &[2, 3]];
    assert_eq!(
        candidates(DataType::F16, shapes).unwrap_err().to_string(),
        "no variant can run: variant 1: guard `numel(y) % 8 == 0 and aligned(x, 16)` is false; k = 1, x is 2x3, y is 2x3"
    );
    let placed = Facts { alignments: &[4, 3 << 20], ..facts(shapes) };
    let order = in_order(&plugin, &linear(&[DataType::F16; 2]), 0, &Facts::default()).unwrap();
    assert_eq!(
        none_holds(&plugin, &order, &placed).to_string(),
        "no variant can run: variant 1: guard `numel(y) % 8 == 0 and aligned(x, 16)` is false; k = 1, x is 2x3, y is 2x3, x is \
         aligned to 4, y is aligned to 4096"
    );
}

#[test]
fn outputs_have_shapes_or_a_reason_why_not() {
    let mut plugin = plugin();
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[2, 3]], ..Facts::default() };
    let output_shapes = |plugin: &Plugin| output_shapes(plugin, &facts, &mut Steps::default());
    assert_eq!(output_shapes(&plugin), Ok(vec![vec![2, 3]]));
    plugin.outputs[0].limits.numel = Interval { min: 0, max: 5 };
    let error = output_shapes(&plugin).unwrap_err().to_string();
    assert_eq!(error, "the number of elements of `y` is 6 in 2x3; the manifest limits it to 0..=5");
    plugin.outputs[0].shape = Expr { nodes: vec![Node::Int(-1), Node::Array(vec![0])] };
    let error = output_shapes(&plugin).unwrap_err().to_string();
    assert_eq!(error, "the shape of `y`: [-1] has a negative dimension; k = 1, x is 2x3");
}

fn long(n: i64) -> Expr {
    let nodes = vec![
        Node::Int(n),
        Node::Call(Builtin::Range, vec![0]),
        Node::Local(0),
        Node::Comprehension { slot: 0, over: 1, condition: None, body: 2 },
        Node::Call(Builtin::Sum, vec![3]),
    ];
    Expr { nodes }
}

#[test]
fn work_is_bounded_for_all_expressions_together() {
    let spent = format!("the expressions of the node exceed {NODE_STEP_LIMIT} evaluation steps");
    let mut plugin = plugin();
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[2, 4], &[2, 4]], ..Facts::default() };
    let many = |count: usize| {
        let arg = |index| Arg {
            name: format!("a{index}"),
            value: ArgValue::Scalar { ty: ScalarType::Int { bytes: 8 }, expr: long(60_000) },
        };
        Launch { args: (0..count).map(arg).collect(), ..plugin.variants[1].launch(0).unwrap().clone() }
    };
    assert!(numbers(&plugin, &many(20), &LaunchLimits::ANYTHING, &facts).is_ok());
    let error = numbers(&plugin, &many(500), &LaunchLimits::ANYTHING, &facts).unwrap_err().to_string();
    assert!(error.contains(&format!("has no value: {spent}")), "{error}");

    let holds = |expr: Expr| {
        let mut nodes = expr.nodes;
        let sum = nodes.len() as u32 - 1;
        nodes.extend([Node::Int(0), Node::Binary(BinaryOp::Ge, sum, sum + 1)]);
        nodes
    };
    let text = String::new();
    let require = Requirement {
        expr: Expr { nodes: holds(long(60_000)) },
        text: text.clone(),
        message: "m".to_owned(),
    };
    plugin.require = vec![require; 256];
    let error = check(&plugin, rules_of_shapes(&plugin), &facts, &mut Steps::default()).unwrap_err();
    assert!(error.to_string().contains(&spent), "{error}");

    let mut nodes = holds(long(60_000));
    let root = nodes.len() as u32 - 1;
    nodes.extend([Node::Aligned { tensor: 0, bytes: 16 }, Node::Binary(BinaryOp::And, root, root + 1)]);
    let asks = Expr { nodes };
    let mut nodes = holds(long(60_000));
    nodes.push(Node::Unary(cubinder_expr::UnaryOp::Not, root));
    for expr in [asks, Expr { nodes }] {
        let guard = Guard { expr, text: text.clone() };
        plugin.variants = (1..=1000).map(|id| variant(id, DataType::F32, Some(guard.clone()))).collect();
        let error = decided(&plugin, DataType::F32, &facts).unwrap_err();
        assert!(error.to_string().contains(&spent), "{error}");
    }
}

#[test]
fn what_is_long_is_not_shown_whole() {
    let plugin = plugin();
    let many = Value::Array(vec![Value::Int(7); 100_000]);
    let text = Value::Str("\u{e4}".repeat(100_000));
    for (value, end) in [(many, ", ... 100000 elements]"), (text, "... 200000 bytes")] {
        let attributes = [value];
        let facts = Facts { attributes: &attributes, ..Facts::default() };
        let shown = describe(&plugin, &facts);
        assert!(shown.len() < 400 && shown.starts_with("; k = ") && shown.ends_with(end), "{shown}");
    }
}

mod aliases;
mod facts;
mod limits;
mod rules;
mod sequences;
mod tuned;
mod variants;
