use super::*;
use cubinder_expr::{DeviceFact, EvalError};
use cubinder_model::model::{Fill, Memory, Scratch, Work};

const F32: [DataType; 2] = [DataType::F32; 2];

fn guard(nodes: Vec<Node>) -> Option<Guard> {
    Some(Guard { expr: Expr { nodes }, text: "guard".to_owned() })
}

fn specialized(values: &[(u32, i64)]) -> Variant {
    let specialized = values.iter().map(|(index, value)| (*index, Value::Int(*value))).collect();
    Variant { specialized, ..variant(1, DataType::F32, None) }
}

#[test]
fn everything_of_a_node_decides_what_serves_it() {
    let variant = specialized(&[(0, 3)]);
    let right = Signature { attributes: &[Value::Int(3)], types: &F32, formats: &[Format::Linear; 2] };
    let types = Signature { types: &[DataType::F32, DataType::F16], ..right };
    let formats = Signature { formats: &[Format::Linear, Format::Hwc8], ..right };
    let attributes = Signature { attributes: &[Value::Int(4)], ..right };
    let begun = Signature { types: &F32[..1], formats: &[], ..right };
    let others = [
        types,
        formats,
        attributes,
        Signature { attributes: &[], ..right },
        begun,
        Signature { types: &F32[..1], ..right },
        Signature { formats: &[], ..right },
    ];
    assert!(right.is_served_by(&variant));
    assert!(!others.iter().any(|node| node.is_served_by(&variant)));
}

#[test]
fn formats_are_told_where_some_are_special() {
    let mut plugin = plugin();
    let said = |plugin: &Plugin, formats: &[Format]| {
        let types = [DataType::I8, DataType::F32];
        no_variant(plugin, &Signature { attributes: &[], types: &types, formats }).to_string()
    };
    let offered = "no variant supports the types (i8, f32); the plugin supports (f32, f32), (f16, f16)";
    assert_eq!(said(&plugin, &[Format::Linear; 2]), offered);
    assert_eq!(said(&plugin, &[]), offered);
    plugin.variants[2].formats[1] = Format::Hwc8;
    assert_eq!(said(&plugin, &[]), offered, "formats are unknown, so they are not the error");
    assert_eq!(
        said(&plugin, &[Format::Linear; 2]),
        "no variant supports the types and formats (i8, f32); the plugin supports (f32, f32), (f16, f16 hwc8)"
    );
}

#[test]
fn not_more_variants_are_told_than_anybody_reads() {
    let with = |count: i64| {
        let rows = (0..count).map(|value| specialized(&[(0, value)]));
        Plugin { variants: rows.collect(), ..plugin() }
    };
    let said = |count| check_specialized(&with(count), &[Value::Int(-1)]).unwrap_err().to_string();
    let values = |count: i64| (0..count).map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    let begin = "the attribute `k` is `-1`, but the code is specialized for";
    assert_eq!(said(1), format!("{begin} `0`"));
    assert_eq!(said(32), format!("{begin} {}", values(32)));
    for count in [33, 34, 100] {
        assert_eq!(said(count), format!("{begin} {}, ...", values(32)));
    }
}

#[test]
fn attributes_are_held_against_code_one_after_the_other() {
    let mut plugin = plugin();
    plugin.attributes.push(Attribute::new("n", AttributeType::I32));
    plugin.variants =
        vec![specialized(&[(0, 1), (1, 10)]), specialized(&[(1, 20), (0, 2)]), specialized(&[(0, 3)])];
    let check = |values: &[i64]| {
        let values: Vec<Value> = values.iter().copied().map(Value::Int).collect();
        check_specialized(&plugin, &values).map_err(|unmet| unmet.to_string())
    };
    for right in [&[1, 10][..], &[2, 20], &[3, 99], &[1], &[]] {
        assert_eq!(check(right), Ok(()), "{right:?}");
    }
    let wrong = |text: &str| Err(text.to_owned());
    assert_eq!(
        check(&[4, 10]),
        wrong("the attribute `k` is `4`, but the code is specialized for `1`, `2`, `3`")
    );
    assert_eq!(check(&[1, 20]), wrong("the attribute `n` is `20`, but the code is specialized for `10`"));
}

#[test]
fn where_the_order_of_times_asks_for_too_much_that_of_the_manifest_counts() {
    let shapes: &[&[i64]] = &[&[2, 4], &[2, 4]];
    let facts = Facts { attributes: &[Value::Int(1)], shapes, ..Facts::default() };
    let mut plugin = plugin();
    let mut nodes = vec![Node::Int(0)];
    for tensor in 0..16 {
        let at = nodes.len() as u32;
        nodes.extend([
            Node::Aligned { tensor, bytes: 2 },
            Node::Int(3_i64.pow(tensor)),
            Node::Int(0),
            Node::Conditional { condition: at, then: at + 1, otherwise: at + 2 },
            Node::Binary(BinaryOp::Add, at - 1, at + 3),
        ]);
    }
    let sum = nodes.len() as u32 - 1;
    nodes.extend([Node::Int(1), Node::Binary(BinaryOp::Eq, sum, sum + 1)]);
    plugin.variants = vec![variant(1, DataType::F32, None), variant(2, DataType::F32, guard(nodes))];
    let decided = |order: &[usize], tactic| {
        let decided = decide(&plugin, order, tactic, &facts, &mut Steps::default());
        decided.map(|decided| decided.candidates).map_err(|unmet| unmet.to_string())
    };
    assert_eq!(decided(&[0, 1], AUTO_TACTIC), Ok(vec![0]));
    assert_eq!(decided(&[1, 0], AUTO_TACTIC), Ok(vec![0]));
    let refused = decided(&[1, 0], 2).unwrap_err();
    assert!(
        refused.contains("in more than 2048 combinations"),
        "a tactic is not replaced by another: {refused}"
    );
    let refused = decided(&[1], AUTO_TACTIC).unwrap_err();
    assert!(refused.contains("in more than 2048 combinations"), "{refused}");
}

#[test]
fn addresses_decide_nothing_beforehand() {
    let plugin = plugin();
    let facts = |alignments| Facts {
        attributes: &[Value::Int(1)],
        shapes: &[&[2, 4], &[2, 4]],
        alignments,
        ..Facts::default()
    };
    let decided = |facts: &Facts<'_>| decide(&plugin, &[0, 1], AUTO_TACTIC, facts, &mut Steps::default());
    let found = decided(&facts(&[256, 256])).unwrap();
    assert_eq!(found.candidates, [0, 1]);
    assert_eq!(found, decided(&facts(&[])).unwrap());
    let odd = Facts { shapes: &[&[2, 3], &[2, 3]], ..facts(&[256, 256]) };
    let refused = decide(&plugin, &[2], AUTO_TACTIC, &odd, &mut Steps::default()).unwrap_err().to_string();
    assert!(refused.ends_with("is false; k = 1, x is 2x3, y is 2x3"), "independent of addresses: {refused}");
}

#[test]
fn a_guard_is_excluded_by_one_part_that_is_false() {
    let excluded = |nodes: Vec<Node>| {
        let facts = Facts { shapes: &[&[2, 4]], ..Facts::default() };
        is_excluded(guard(nodes).as_ref(), &facts, &mut Steps::default())
    };
    let unknown = || Node::Aligned { tensor: 0, bytes: 16 };
    let and = |left, right| Node::Binary(BinaryOp::And, left, right);
    assert!(excluded(vec![Node::Bool(false)]));
    assert!(!excluded(vec![Node::Bool(true)]));
    assert!(!excluded(vec![unknown()]));
    assert!(!excluded(vec![Node::Int(0)]), "not a boolean");
    assert!(!excluded(Vec::new()), "it may be true");
    assert!(excluded(vec![unknown(), Node::Bool(false), and(0, 1)]));
    assert!(excluded(vec![Node::Bool(false), unknown(), and(0, 1)]));
    assert!(!excluded(vec![Node::Bool(true), unknown(), and(0, 1)]));
    let or = Node::Binary(BinaryOp::Or, 0, 1);
    assert!(!excluded(vec![unknown(), Node::Bool(false), or]), "the other operand may be true");
}

#[test]
fn anything_of_a_variant_may_ask_for_the_device() {
    let device = || Expr { nodes: vec![Node::Device(DeviceFact::Sms)] };
    let plain = variant(1, DataType::F32, None);
    assert!(!asks_for_device(&plain));
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Variant));
    let asks: [Change<'_>; 9] = [
        ("guard", &|it| it.guard = guard(device().nodes)),
        ("condition", &|it| it.steps[0].when = guard(device().nodes)),
        ("scratch", &|it| it.scratch.push(Scratch { name: "s".to_owned(), bytes: device() })),
        ("grid", &|it| it.launch_mut(0).unwrap().grid[1] = device()),
        ("block", &|it| it.launch_mut(0).unwrap().block[2] = device()),
        ("shared memory", &|it| it.launch_mut(0).unwrap().shared_bytes = device()),
        ("cluster", &|it| it.launch_mut(0).unwrap().cluster = Some([int(1), device(), int(1)])),
        ("argument", &|it| {
            let ty = ScalarType::Int { bytes: 4 };
            it.launch_mut(0).unwrap().args[2].value = ArgValue::Scalar { ty, expr: device() };
        }),
        ("second launch", &|it| {
            let mut launch = it.launch(0).unwrap().clone();
            launch.grid[0] = device();
            it.steps.insert(
                0,
                Step { when: None, work: Work::Fill(Fill { memory: Memory::Output(0), byte: 0 }) },
            );
            it.steps.push(Step::launch(launch));
        }),
    ];
    for (what, change) in asks {
        let mut variant = plain.clone();
        change(&mut variant);
        assert!(asks_for_device(&variant), "{what}");
    }
}

#[test]
fn a_variant_runs_only_where_its_guard_is_plainly_true() {
    let of = |nodes: Vec<Node>| verdict(guard(nodes).as_ref(), &Facts::default(), &mut Steps::default());
    assert_eq!(verdict(None, &Facts::default(), &mut Steps::default()), GuardVerdict::Holds);
    assert_eq!(of(vec![Node::Bool(true)]), GuardVerdict::Holds);
    assert_eq!(of(vec![Node::Bool(false)]), GuardVerdict::Fails);
    assert_eq!(of(vec![Node::Int(1)]), GuardVerdict::Fails);
    assert_eq!(of(vec![Node::Numel(3)]), GuardVerdict::NoValue(EvalError::UnknownTensor(3)));
}

#[test]
fn where_none_may_run_each_says_why() {
    let mut plugin = plugin();
    for (variant, nodes) in plugin.variants.iter_mut().zip([
        vec![Node::Bool(false)],
        vec![Node::Int(5)],
        vec![Node::Int(1), Node::Int(0), Node::Binary(BinaryOp::FloorDiv, 0, 1)],
    ]) {
        variant.guard = guard(nodes);
    }
    assert_eq!(
        none_holds(&plugin, &[2, 0, 1, 9], &Facts::default()).to_string(),
        "no variant can run: variant 1: guard `guard` has no value (division by zero: 1 // 0); variant 1: guard `guard` is false; \
         variant 2: guard `guard` is `5`, not a boolean"
    );
}
