use super::support::{Calculator, Plugin, World, scope, value};
use crate::value::Value;
use crate::{
    BinaryOp, BindingTime, Expr, Kind, LowerError, Node, Scope, bind, check_function, compile, evaluate,
    lower, lower_scalar, parse, print,
};

#[track_caller]
fn same(text: &str, expected: &str) {
    assert_eq!(value(text), value(expected), "{text} and {expected}");
    assert!(value(expected).is_ok(), "{expected}: {:?}", value(expected));
}

#[test]
fn shapes_are_concatenated_by_a_comprehension() {
    same(
        "[z.shape[i] if i < z.rank else x.shape[i - z.rank] for i in range(z.rank + x.rank)] == [1]",
        "false",
    );
    same(
        "[z.shape[i] if i < z.rank else z.shape[i - z.rank] for i in range(z.rank + z.rank)]",
        "[z.shape[0], z.shape[1], z.shape[0], z.shape[1]]",
    );
}

#[test]
fn precedence_is_pythons() {
    same("1 + 2 * 3", "7");
    same("(1 + 2) * 3", "9");
    same("-7 // 2", "-4");
    same("-(7 // 2)", "-3");
    same("2 * -3", "-6");
    same("10 - 3 - 2", "5");
    same("3 * 5 // 2", "7");
    same("7 % 3 * 2", "2");
    same("not 1 == 2", "true");
    same("not true or true", "true");
    same("true or false and false", "true");
    same("1 + 1 == 2 and 3 > 2", "true");
    same("1 if true else 2 if true else 3", "1");
    same("1 if false else 2 if false else 3", "3");
    same("1 + 1 if n == 3 else 7 + 1", "2");
    same("[i if i > 1 else 0 for i in range(3) if i != 1 or flag]", "[0, 0, 2]");
    same("--n", "3");
    same("-x.shape[1]", "-3");
    same("-9223372036854775808", "-9223372036854775807 - 1");
}

#[test]
fn values_of_the_example() {
    same("x.shape", "[10, 3, 32, 32]");
    same(
        "[x.shape[i] + pad(pads, x.rank, i, 0) + pad(pads, x.rank, i, 1) for i in range(x.rank)]",
        "[10, 3, 39, 35]",
    );
    same("x.shape[-1] * x.rank + numel(y)", "158");
    same("sizeof(T) + sizeof(f32)", "6");
    same("last(x) + last(y)", "38");
    same("clamp(n, 5, 9)", "5");
    same("sum([clamp(i, 1, 2) for i in range(4)])", "6");
    same("[[i * j for j in range(i)] for i in range(3)]", "[[], [0], [0, 2]]");
    same("mode == 'wrap' and mode != \"edge\"", "true");
    same("y.shape == [5, 6]", "true");
    same("n * scale", "1.5");
    same("1 if flag else scale", "1.0");
    same("[1, scale]", "[1.0, 0.5]");
    same("sum(weights) / 2", "0.5");
    same("sum([]) + prod([])", "1");
    same("min(1, scale, 2)", "0.5");
    same("int(-2.7) + int(n)", "1");
    same("rsqrt(4)", "0.5");
    same("float(n)", "3.0");
    same("inf > 1e300", "true");
    same("get(pads, 9, 7) + get(pads, -1, 7)", "14");
    same("ceil_div(-7, 2)", "-3");
    same("TILE[1] + len(TILE)", "18");
    same("sum(range(2, 5))", "9");
    same("len(range(5, 2))", "0");
    same("abs(-scale)", "0.5");
    same("max(x.shape)", "32");
    same("first(pads)", "1");
}

#[test]
fn alignments() {
    // The tensors are at 0x7000, 0x7010 and 0x7004.
    same("[aligned(x, 256), aligned(y, 256), aligned(y, 16), aligned(z, 4)]", "[true, false, true, true]");
    same("aligned(z, 1) and not aligned(z, 8)", "true");
    same("aligned(y, 8 * sizeof(T)) and not aligned(y, BLOCK)", "true");
    same("aligned(y, TILE[1] if ZERO == 0 else 1 // 0)", "true");
    same("aligned(y, z.rank * 4) and aligned(y, int(16))", "true");
    same("vectors(z, 2) and not vectors(z, 4)", "true");
    same("[aligned(x, 16) for i in range(2)]", "[true, true]");
    let aligned = compile("aligned(y, 8 * sizeof(T))", &scope()).unwrap().expr;
    assert_eq!(aligned.nodes, [Node::Aligned { tensor: 1, bytes: 16 }]);
    assert_eq!(
        evaluate(&aligned, &World::example().at_node_time()).unwrap_err().to_string(),
        "the address of tensor 1 is unknown"
    );
    assert_eq!(bind(&aligned, &World::example()).nodes, [Node::Bool(true)]);
}

#[test]
fn devices_and_values() {
    same("[device.sms, device.shared_bytes, device.capability]", "[132, 232448, 90]");
    same("min(device.sms * 4, ceil_div(numel(x), BLOCK))", "120");
    same("[target.values[0], target.values[-1], len(target.values), target.shape[0]]", "[4, -8, 2, 2]");
    same("sum(target.values) + numel(target) + target.rank", "-1");
    same("[v * 2 for v in target.values if v > 0]", "[8]");
    assert_eq!(value("target.values[2]"), Err("index 2 is out of range for an array of length 2".into()));
    let node_time = World::example().at_node_time();
    let fails = |text| evaluate(&compile(text, &scope()).unwrap().expr, &node_time).unwrap_err().to_string();
    assert_eq!(fails("device.sms"), "`device.sms` is unknown without a device");
    assert_eq!(fails("target.values[0]"), "the values of tensor 3 are unknown");
    let bound = bind(&compile("device.sms * target.values[0]", &scope()).unwrap().expr, &World::example());
    assert_eq!(bound.nodes, [Node::Int(528)]);
    same("[device for device in range(2)]", "[0, 1]");
}

#[test]
fn a_size_is_a_dimension_and_nothing_else() {
    let shape = |text: &str| compile(text, &scope().with_sizes()).map(|typed| typed.expr);
    let expr = shape("[total, x.rank + 1]").unwrap();
    assert_eq!(evaluate(&expr, &World::example()).unwrap().to_string(), "[9, 5]");
    assert_eq!(
        evaluate(&expr, &World::example().at_node_time()).unwrap_err().to_string(),
        "the size in tensor 4 is unknown before the kernels run"
    );
    assert_eq!(print(&expr, &Plugin), "[total, x.rank + 1]");
    assert_eq!(crate::sizes_of(&expr), [4]);
    let world = World::example();
    assert_eq!(lower(&expr, &world.at_node_time(), &mut Calculator::new(&world)), Ok(vec![9, 5]));
    assert!(shape("[total, 2] if ZERO == 0 else [2, total]").is_ok(), "one side remains");
    for text in
        ["[total + 1]", "total", "[[total]][0]", "[total for i in range(x.rank)]", "[total] if flag else [1]"]
    {
        assert!(shape(text).is_err(), "{text}");
    }
}

#[test]
fn variables_of_a_call_do_not_leak_into_a_function() {
    // `first` has its own `i`; its argument uses the caller's.
    same("[first([i, 9]) for i in range(3)]", "[0, 1, 2]");
    let leaking = scope().function("leak", crate::Function { params: vec![], body: parse("i").unwrap() });
    let errors = compile("[leak() for i in range(3)]", &leaking).unwrap_err();
    assert_eq!(errors[0].message, "in `leak`: unknown name `i`");
}

#[test]
fn only_the_side_that_is_taken_is_evaluated() {
    same("7 // n if n != 0 else 0", "2");
    same("1 if n > 0 else 1 // 0", "1");
    same("n == 3 or 1 // 0 == 1", "true");
    same("n == 4 and x.shape[7] == 1", "false");
    same("64 // ZERO if ZERO > 0 else 1", "1");
    assert_eq!(value("7 // (n - 3)"), Err("division by zero: 7 // 0".into()));
    assert_eq!(value("x.shape[n + 1]"), Err("index 4 is out of range for an array of length 4".into()));
}

#[test]
fn kinds_and_times() {
    let typed = |text| compile(text, &scope()).map(|typed| (typed.kind.to_string(), typed.time)).unwrap();
    assert_eq!(typed("1 + 2"), ("integer".into(), BindingTime::Compile));
    assert_eq!(typed("BLOCK * sizeof(T)"), ("integer".into(), BindingTime::Compile));
    assert_eq!(typed("n / 2.0"), ("float".into(), BindingTime::Node));
    assert_eq!(typed("len(x.shape) > 2"), ("boolean".into(), BindingTime::Node));
    assert_eq!(typed("z.rank"), ("integer".into(), BindingTime::Compile));
    assert_eq!(typed("x.shape"), ("array of integers".into(), BindingTime::Shape));
    assert_eq!(typed("[]"), ("array of integers".into(), BindingTime::Compile));
    assert_eq!(typed("[[1.5], []]"), ("array of arrays of floats".into(), BindingTime::Compile));
    assert_eq!(typed("mode"), ("string".into(), BindingTime::Node));
    assert_eq!(typed("numel(x) if ZERO == 1 else n"), ("integer".into(), BindingTime::Node));
    assert_eq!(typed("device.sms * 2"), ("integer".into(), BindingTime::Launch));
    assert_eq!(typed("target.values"), ("array of integers".into(), BindingTime::Shape));
    assert_eq!(typed("len(target.shape) + target.rank"), ("integer".into(), BindingTime::Compile));
    assert_eq!(typed("aligned(x, 16) and flag"), ("boolean".into(), BindingTime::Launch));
    assert_eq!(typed("aligned(x, 16) and ZERO == 1 or flag"), ("boolean".into(), BindingTime::Launch));
    assert_eq!(typed("ZERO == 1 and aligned(x, 16)"), ("boolean".into(), BindingTime::Compile));
}

#[test]
fn binding_folds_what_a_node_knows() {
    let bound = |text: &str| {
        let typed = compile(text, &scope()).unwrap();
        print(&bind(&typed.expr, &World::example().at_node_time()), &Plugin)
    };
    let padded = "[x.shape[i] + pad(pads, x.rank, i, 0) for i in range(x.rank)]";
    assert_eq!(bound(padded), "[x.shape[0] + 0, x.shape[1] + 0, x.shape[2] + 3, x.shape[3] + 1]");
    assert_eq!(bound("ceil_div(numel(y), BLOCK * n)"), "ceil_div(numel(y), 768)");
    assert_eq!(bound("x.shape[0] // (n - 3)"), "x.shape[0] // 0");
    assert_eq!(bound("x.shape[0] if flag else 1 // 0"), "x.shape[0]");
    assert_eq!(bound("[d for d in x.shape if d > n]"), "[i0 for i0 in x.shape if i0 > 3]");
    assert_eq!(bound("y.shape[0] > 1 and flag"), "y.shape[0] > 1 and true");
    assert_eq!(bound("len([i for i in range(x.rank) if i % 2 == 1])"), "2");
    assert_eq!(bound("range(5000)[x.shape[0]]"), "range(5000)[x.shape[0]]");
    assert_eq!(bound("range(n, 5000 * n)[x.shape[0]]"), "range(3, 15000)[x.shape[0]]");
    assert_eq!(bound("len(x.shape if flag else y.shape)"), "4");
}

#[test]
fn printing_keeps_what_parentheses_say() {
    for text in [
        "x.shape[0] - (x.shape[1] - x.shape[2])",
        "x.shape[0] - x.shape[1] - x.shape[2]",
        "-(x.shape[0] + n) // 2",
        "not (flag and x.rank > 2)",
        "not flag and x.rank > 2",
        "(x.rank < 3) == flag",
        "(1 if flag else 2) + n",
        "1 if flag else 2 if n > 2 else 3",
        "(1 if flag else 2) if n > 2 else 3",
        "[(1 if i0 > 2 else 3) for i0 in x.shape if i0 > 1]",
        "[[i1 + i0 for i1 in range(i0)] for i0 in x.shape]",
        "mode == \"a\\\"b\\\\\\n\"",
        "scale * -1.5",
        "(x.shape if flag else y.shape)[0]",
        "min(x.shape) + get(pads, -1, 0)",
        "scale < inf",
        "float(n) * scale",
        "aligned(y, 16) and not aligned(x, 1)",
        "device.sms * target.values[0] - device.capability",
    ] {
        let expr = compile(text, &scope()).unwrap().expr;
        let printed = print(&expr, &Plugin);
        assert_eq!(compile(&printed, &scope()).unwrap().expr, expr, "{text} prints as {printed}");
        assert_eq!(
            printed.replace("[(", "[").replace(") for", " for"),
            text.replace("[(", "[").replace(") for", " for")
        );
    }
}

#[test]
fn variables_are_named_apart_from_what_is_used() {
    let scope = Scope::new().attribute("i0", 0, Kind::ints()).attribute("i_1", 1, Kind::Int);
    struct Awkward;
    impl crate::Names for Awkward {
        fn attribute(&self, index: u32) -> Option<&str> {
            ["i0", "i_1"].get(index as usize).copied()
        }
        fn tensor(&self, _: u32) -> Option<&str> {
            None
        }
    }
    let expr = compile("[v + i_1 for v in i0]", &scope).unwrap().expr;
    let printed = print(&expr, &Awkward);
    assert_eq!(printed, "[i__0 + i_1 for i__0 in i0]");
    assert_eq!(compile(&printed, &scope).unwrap().expr, expr);
}

fn lowered(text: &str) -> Result<Vec<i64>, LowerError<String>> {
    let world = World::example();
    let typed = compile(text, &scope()).unwrap();
    let mut builder = Calculator::new(&world);
    if typed.kind == Kind::Int {
        return lower_scalar(&typed.expr, &world.at_node_time(), &mut builder).map(|dim| vec![dim]);
    }
    lower(&typed.expr, &world.at_node_time(), &mut builder)
}

#[test]
fn lowering_computes_what_evaluation_does() {
    for text in [
        "[x.shape[i] + pad(pads, x.rank, i, 0) + pad(pads, x.rank, i, 1) for i in range(x.rank)]",
        "[d // 3 * 3 + d % 3 for d in x.shape]",
        "[-d % 7 for d in x.shape]",
        "[max(x.shape), min(x.shape), sum(x.shape), prod(y.shape), numel(x)]",
        "[d if d > 5 and d < 20 else -d for d in x.shape]",
        "[d if d <= 5 or not d != 32 else d * 2 for d in x.shape]",
        "x.shape[y.shape[0] - 4] + x.shape[y.shape[0] - 6]",
        "get(x.shape, y.shape[0] - 4, 11) + get(x.shape, y.shape[0] - 9, 11)",
        "1 if y.shape == [5, 6] else 2",
        "1 if x.shape == y.shape else 2",
        "y.shape if x.shape[0] > 3 else z.shape",
        "ceil_div(numel(x), BLOCK) + abs(1 - x.shape[0]) + len(x.shape) + int(x.shape[0])",
        "[target.values[0] * x.shape[0], len(target.values), target.values[-1], target.shape[0]]",
        "[max(v, 0) + x.shape[1] for v in target.values]",
        "x.shape[target.values[0] - 3] if target.values[1] < 0 else 7",
        "[[d, d + 1] for d in x.shape][1]",
        "len([d for d in x.shape])",
        "int(n * scale) + x.shape[0]",
    ] {
        let expected = evaluate(&compile(text, &scope()).unwrap().expr, &World::example()).unwrap();
        let expected = expected.as_ints().or_else(|| expected.as_int().map(|value| vec![value])).unwrap();
        assert_eq!(lowered(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_divisor_in_a_side_that_is_not_taken_cannot_stop_tensorrt() {
    // Divisors are 0 where the condition is false: x.shape[1] is 3.
    for (text, expected) in [
        ("7 // (x.shape[1] - 3) if x.shape[1] > 3 else 5", 5),
        ("5 if x.shape[1] <= 3 else 7 % (x.shape[1] - 3)", 5),
        ("1 if x.shape[1] > 3 and 7 // (x.shape[1] - 3) > 1 else 2", 2),
        ("1 if x.shape[1] == 3 or 7 // (x.shape[1] - 3) > 1 else 2", 1),
        ("(ceil_div(7, x.shape[1] - 3) if x.shape[0] > 1 else 4) if x.shape[1] > 3 else 6", 6),
        ("(ceil_div(7, x.shape[1] - 3) if x.shape[1] > 3 else 4) if x.shape[0] > 1 else 6", 4),
        ("1 // 0 if x.shape[1] > 3 else 5", 5),
        ("5 if x.shape[1] == 3 else x.shape[n + 5]", 5),
        ("5 if x.shape[1] == 3 else len(range(BLOCK * BLOCK * n))", 5),
        ("(9 // n if x.shape[1] > 2 else 3) + 1", 4),
    ] {
        assert_eq!(lowered(text), Ok(vec![expected]), "{text}");
    }
}

#[test]
fn what_tensorrt_cannot_say_is_named() {
    let message = |text| lowered(text).unwrap_err().to_string();
    assert_eq!(
        message("[int(x.shape[0] * 0.5)]"),
        "`float(tensor0.shape[0])` cannot be computed by TensorRT's shape operations: it requires floats, but shapes are integers"
    );
    assert_eq!(
        message("[d for d in x.shape if d > 3]"),
        "`[i0 for i0 in tensor0.shape if i0 > 3]` cannot be computed by TensorRT's shape operations: the length of an array cannot depend on shapes"
    );
    assert_eq!(
        message("[x.shape[0] * device.sms]"),
        "`device.sms` cannot be computed by TensorRT's shape operations: shapes cannot depend on the device"
    );
    assert_eq!(message("x.shape[0] // (n - 3)"), "division by zero: tensor0.shape[0] // (attribute1 - 3)");
    assert_eq!(
        message("[i for i in range(x.shape[0])]").split(": ").nth(1),
        Some("the length of an array cannot depend on shapes")
    );
    assert_eq!(
        message("x.shape if x.shape[0] > 1 else y.shape").split(": ").nth(1),
        Some("the length of an array cannot depend on shapes")
    );
}

#[test]
fn lowering_asks_the_builder_for_nothing_that_is_known() {
    let operations = |text: &str| {
        let world = World::example();
        let mut builder = Calculator::new(&world);
        let typed = compile(text, &scope()).unwrap();
        lower_scalar(&typed.expr, &world.at_node_time(), &mut builder).unwrap();
        builder.operations
    };
    assert_eq!(operations("n * 2 + len(pads)"), 0);
    assert_eq!(operations("x.shape[0] * 1 + 0 * numel(x)"), 3, "the product of the shape, and nothing else");
    assert_eq!(operations("x.shape[0] // n"), 1);
    assert_eq!(operations("x.shape[0] if n > 2 else numel(x)"), 0);
}

#[test]
fn functions_are_checked_before_they_are_called() {
    let check = |params: &[&str], body: &str| {
        let params = params.iter().map(|&param| param.to_owned()).collect();
        let function = crate::Function { params, body: parse(body).unwrap() };
        let errors = check_function("f", &function, &scope());
        errors.into_iter().map(|error| (error.span, error.message)).collect::<Vec<_>>()
    };
    assert_eq!(check(&["t", "i"], "t.shape[i] + numel(t) + sizeof(t) + i[0]"), []);
    assert_eq!(check(&["t"], "t.shape[i]"), [(8..9, "unknown name `i`".to_owned())]);
    assert_eq!(check(&["t"], "f(t)"), [(0..4, "`f` calls itself".to_owned())]);
    assert_eq!(check(&["t"], "last(t) + 'a'").len(), 1);
    assert_eq!(check(&["t", "k"], "aligned(t, 2 * k * sizeof(t)) and aligned(x, k) and vectors(t, k)"), []);
    assert_eq!(check(&["k"], "vectors(x, k + 1) and aligned(x, k.rank) and aligned(x, len(k.shape))"), []);
    assert_eq!(
        check(&["t"], "aligned(t, 3)"),
        [(11..12, "an alignment must be a power of two from 1 to 256, found 3".to_owned())]
    );
    let anywhere = Scope::new().without_addresses();
    let function = crate::Function { params: vec!["t".into()], body: parse("aligned(t, 4)").unwrap() };
    assert_eq!(check_function("f", &function, &anywhere), []);
}

#[test]
fn hostile_texts_end_soon() {
    let scope = scope();
    let nested = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    for text in [
        nested("(", ")"),
        nested("[", "]"),
        nested("-", ""),
        nested("not ", ""),
        nested("abs(", ")"),
        nested("1 if true else ", ""),
        nested("n + ", ""),
        nested("n ** ", ""),
        nested("x.shape[", "]"),
        nested("[1 for i in ", "]"),
        format!("n{}", "[0]".repeat(100_000)),
        format!("[{}]", "q, ".repeat(100_000)),
        format!("[{}]", "1, ".repeat(100_000)),
        format!("{}n{}", "twice(".repeat(100), ")".repeat(100)),
        format!("[{}]", "range(60000), ".repeat(5000)),
        format!("sum([{}])", "len(range(60000)), ".repeat(5000)),
        format!("[{}]", "aligned(x, len(range(60000))), ".repeat(5000)),
        format!("[{}]", "aligned(x, sum([i for i in range(60000)])), ".repeat(5000)),
    ] {
        let start = std::time::Instant::now();
        let result = compile(&text, &scope);
        assert!(start.elapsed().as_secs() < 5, "{}...", &text[..40]);
        if let Ok(typed) = result {
            assert_eq!(typed.expr.validate(6, 6), Ok(()));
        }
    }
}

#[test]
fn large_literals_stay_what_makes_them() {
    let typed =
        compile("[range(1000)[n] + sum(range(60000)) for i in range(60000)][x.shape[0]]", &scope()).unwrap();
    assert_eq!(typed.expr.validate(6, 6), Ok(()));
    let printed = print(&typed.expr, &Plugin);
    assert_eq!(compile(&printed, &scope()).unwrap().expr, typed.expr);
    assert_eq!(value("sum([1 for i in range(60000)])"), Ok(Value::Int(60000)));
}

#[test]
fn a_part_is_an_expression_of_its_own() {
    let tree = |nodes: &[Node]| Expr { nodes: nodes.to_vec() };
    let whole = tree(&[
        Node::Int(1),
        Node::Rank(0),
        Node::Int(2),
        Node::Binary(BinaryOp::Add, 0, 2),
        Node::Array(vec![3, 1]),
    ]);
    let sum = tree(&[Node::Int(1), Node::Int(2), Node::Binary(BinaryOp::Add, 0, 1)]);
    assert_eq!(whole.part(3), Some(sum));
    assert_eq!(whole.part(1), Some(tree(&[Node::Rank(0)])));
    assert_eq!(whole.part(4), Some(whole.clone()));
    assert_eq!(whole.part(5), None);
}
