use super::support::{Maker, circ_pad, elemwise_add};
use cubinder_expr::value::Value;
use cubinder_model::model::Interval;

const GRID: i64 = 2_147_483_647;

#[test]
fn elementwise() {
    let p = elemwise_add();
    assert_eq!(p.within("block_size", 1, 1024), "proved");
    assert_eq!(p.within("block_size", 1, 1000), "inp0 = [], block_size = 1001");
    assert_eq!(p.has_value("ceil_div(numel(out0), block_size)"), "proved");
    assert_eq!(p.within("ceil_div(numel(out0), block_size)", 0, GRID), "inp0 = [2147483648], block_size = 1");
    assert_eq!(p.always("numel(out0) == numel(inp0)"), "proved");
    assert_eq!(p.always("out0.rank == inp0.rank"), "proved");
}

#[test]
fn circular_padding() {
    let p = circ_pad();
    assert_eq!(p.has_value("ceil_div(numel(y), 256)"), "proved");
    assert_eq!(p.has_value("[shift(x.rank - 1 - d) for d in range(8)]"), "proved");
    assert_eq!(p.within("len(pads) // 2", 0, 8), "proved");
    assert_eq!(p.within("pads", 0, 2_147_483_647), "proved");
    assert_eq!(p.within("[get(x.shape, x.rank - 1 - d, 1) for d in range(8)]", 0, i64::MAX), "proved");
    assert_eq!(p.always_where("y.shape[-1] % 4 == 0", "numel(y) % 4 == 0"), "proved");
}

#[test]
fn what_conditions_say() {
    let p = Maker::new()
        .attribute("n", "i64", |_| ())
        .attribute("m", "i64", |_| ())
        .attribute("mode", "string", |a| a.one_of = vec![Value::Str("a".into()), Value::Str("b".into())])
        .attribute("scale", "f32", |a| {
            a.minimum = Some(Value::Float(0.5));
            a.maximum = Some(Value::Float(2.0));
        })
        .input("x", (2, 4), |_| ());
    for text in [
        "n != n or n == n",
        "n <= 5 or n > 5",
        "n == 0 or m % n <= 9223372036854775806",
        "(m // n if n > 1 else 0) <= 4611686018427387904",
        "not (n > m and m > n)",
        "mode == \"a\" or mode == \"b\"",
        "scale > 0.25",
        "numel(x) == 0 or x.shape[0] > 0",
        "x.shape[0] - x.shape[0] == 0",
    ] {
        assert_eq!(p.always(text), "proved", "{text}");
    }
    for (assumed, text) in [
        ("x.shape[-1] % 4 == 0", "x.shape[x.rank - 1] % 4 == 0"),
        ("x.shape[-1] % 4 == 0", "numel(x) % 4 == 0"),
        ("n * 2 + 1 <= 11", "n <= 5"),
        ("n > 0 and n < m", "m > 1"),
        ("n > 0 and n < m", "n < m"),
        ("m // n > 1", "n != 0"),
        ("-(m // n) > 1", "n != 0"),
        ("(m // n > 0 and m > 3) == (m > 5)", "n != 0"),
        ("(1 if m // n > 0 else 2) > 0", "n != 0"),
        ("sum([m // n, m]) == m", "n != 0"),
        ("sum([v for v in [m // n, m]]) == m", "n != 0"),
        ("not (n > 3 or m > 4)", "m <= 4"),
        ("n == 3 or n == 5", "n >= 3 and n <= 5"),
        ("n == 3 or n == 7", "n % 4 == 3"),
        ("1 if n > 0 else 2 == 1", "true"),
        ("numel(x) > 0", "x.shape[1] >= 1"),
        ("aligned(x, 16) and n > 2", "aligned(x, 16)"),
    ] {
        if text == "true" {
            continue;
        }
        assert_eq!(p.always_where(assumed, text), "proved", "{assumed}: {text}");
    }
    assert_eq!(p.always("n // m >= 0 or true"), "x = [0, 0], n = 0, m = 0, mode = \"a\", scale = 1.0");
    assert_eq!(p.never("n == 77"), "x = [0, 0], n = 77, m = 0, mode = \"a\", scale = 1.0");
}

#[test]
fn sides_that_are_not_taken() {
    let p = Maker::new()
        .attribute("block", "i32", |a| {
            a.minimum = Some(Value::Int(0));
            a.maximum = Some(Value::Int(1024));
        })
        .attribute("pads", "i32[]", |a| a.length = Some(cubinder_model::model::Interval { min: 2, max: 2 }))
        .input("x", (1, 4), |_| ());
    for text in [
        "block == 0 and (numel(x) // block if block > 0 else numel(x)) > 1000 and x.rank > 1",
        "(x.shape[3] if x.rank > 3 else x.shape[0]) < 100 and numel(x) > 2",
        "len([i for i in range(x.rank) if (pads[i] if i < len(pads) else x.shape[i]) > 3]) > 2",
    ] {
        assert!(!["proved", "open"].contains(&p.never(text).as_str()), "{text}: {}", p.never(text));
    }
    let sum = "sum([100000000000 for i in range(x.rank) if (pads[i] if i < len(pads) else x.shape[i]) > 3])";
    assert_ne!(p.within(sum, 0, GRID), "proved");
}

#[test]
fn small_halves() {
    let epsilon = |a: &mut cubinder_model::model::Attribute| {
        let small = a.ty.element.rounded(1e-5).map(Value::Float);
        a.one_of = small.into_iter().chain([Value::Float(1.0)]).collect();
    };
    let p = Maker::new().attribute("eps", "f16", epsilon).input("x", (1, 1), |_| ());
    assert_ne!(p.never("eps < 0.5 and numel(x) > 2"), "proved");
    assert_ne!(p.within("3000000000 if eps < 0.5 and numel(x) > 2 else 1", 0, GRID), "proved");
}

#[test]
fn what_shape_inputs_hold() {
    let any = Interval { min: i64::MIN, max: i64::MAX };
    let p = Maker::new()
        .input("x", (2, 2), |_| ())
        .shape_input("target", Interval { min: 2, max: 2 }, Interval { min: 0, max: 4096 })
        .shape_input("free", Interval { min: 0, max: 8 }, any)
        .output("y", "[x.shape[0], target.values[0], target.values[1]]", |_| ());
    assert_eq!(p.within("target.values[0] * target.values[1]", 0, 4096 * 4096), "proved");
    assert_eq!(p.has_value("target.values[1]"), "proved");
    assert_eq!(p.always("len(target.values) == 2 and numel(target) == 2"), "proved");
    assert_eq!(p.within("y.shape[1]", 0, 4096), "proved");
    assert_eq!(
        p.within("target.values[0] + target.values[1]", 0, 5000),
        "x = [0, 0], target.values = [907, 4094], free.values = []"
    );
    assert_eq!(
        p.always_where("x.shape[0] == 1", "target.values[0] > 0"),
        "x = [1, 0], target.values = [0, 0], free.values = []"
    );
    assert_eq!(p.always_where("target.values[0] > 7", "target.values[0] >= 8"), "proved");
    assert_eq!(p.has_value("free.values[0]"), "x = [0, 0], target.values = [0, 0], free.values = []");
}

#[test]
fn a_list_that_stands_alone() {
    let maker = |every| {
        Maker::new()
            .attribute("n", "i64", |a| {
                (a.minimum, a.maximum) = (Some(Value::Int(-2)), Some(Value::Int(2)));
            })
            .attribute("pads", "i32[]", |a| {
                a.length = Some(Interval { min: 0, max: 2 });
                a.one_of = [-1, 0, 2].map(Value::Int).to_vec();
            })
            .attribute("mode", "string", |_| ())
            .input("x", (2, 2), |limits| limits.every = every)
            .shape_input("k", Interval { min: 0, max: 2 }, Interval { min: 0, max: 1 << 40 })
            .output("y", "x.shape", |_| ())
    };
    let text = "len(pads) == 2 and sum(pads) == x.shape[-1] and pads[0] < pads[1]";
    let few = maker(Interval { min: 2, max: 3 });
    assert_eq!(few.never(text), "x = [2, 2], k.values = [], n = 0, pads = [0, 2], mode = \"\"");
    assert_eq!(few.never("sum(pads) > 4"), "proved");
    assert_eq!(few.always("sum(pads) * sum(pads) != 9"), "proved");
    let many = maker(Interval { min: 2, max: i64::MAX });
    assert_eq!(many.never(text), "x = [2, 2], k.values = [], n = 0, pads = [0, 2], mode = \"\"");
}

#[test]
fn what_devices_have() {
    let p = Maker::new().input("x", (1, 1), |_| ()).output("y", "x.shape", |_| ());
    assert_eq!(p.within("min(device.sms * 4, ceil_div(numel(x), 256))", 0, 4096), "proved");
    assert_eq!(p.always("device.shared_bytes >= 48 * 1024 and device.capability >= 50"), "proved");
    assert_eq!(
        p.always("device.sms >= 100"),
        "x = [0], device.sms = 14, device.shared_bytes = 65536, device.capability = 75"
    );
    assert_eq!(
        p.within("device.sms // 2", 1, 512),
        "x = [0], device.sms = 1, device.shared_bytes = 49152, device.capability = 50"
    );
}

#[test]
fn sizes_that_depend_on_data() {
    let p = Maker::new()
        .input("x", (1, 2), |limits| limits.numel.max = 1 << 20)
        .counted("count", "numel(x)", "indices");
    assert_eq!(p.within("indices.shape[0]", 0, 1 << 20), "proved");
    assert_eq!(p.always("indices.rank == 2 and indices.shape[1] == 2"), "proved");
    assert_eq!(p.always("count.rank == 0"), "proved");
}

fn short_lists() -> Maker {
    let number = |a: &mut cubinder_model::model::Attribute| {
        (a.minimum, a.maximum) = (Some(Value::Int(0)), Some(Value::Int(3)));
    };
    let one = |a: &mut cubinder_model::model::Attribute| {
        a.length = Some(Interval { min: 1, max: 1 });
        a.one_of = vec![Value::Int(0), Value::Int(1)];
    };
    Maker::new()
        .attribute("i", "i32", number)
        .attribute("j", "i32", number)
        .attribute("u", "i32[]", one)
        .attribute("v", "i32[]", one)
        .input("x", (1, 1), |_| ())
        .output("y", "x.shape", |_| ())
}

#[test]
fn a_condition_that_never_has_a_value_proves_nothing() {
    let p = Maker::new().input("x", (1, 1), |_| ()).output("y", "x.shape", |_| ());
    let fails = "true if 1 % x.shape[numel(x)] == 0 else true";
    assert_eq!(p.has_value(fails), "x = [0]");
    assert_eq!(p.always(fails), "x = [0]");
    assert_eq!(p.never(fails), "proved", "it is true nowhere");

    let p = short_lists();
    let value = "0 if i + j < 2 else (i + j if u[i] > v[j] else i + j + 1)";
    assert_eq!(p.has_value(value), "x = [0], i = 0, j = 2, u = [0], v = [0]");
    assert_eq!(p.within(value, 0, 0), "proved", "it has no other value");
    for guard in [
        "i + j < 2 or (i + j >= 2 if u[i] > v[j] else i + j >= 2)",
        "not (i + j >= 2 and (i + j < 2 if u[i] > v[j] else i + j < 2))",
    ] {
        assert_eq!(p.has_value(guard), "x = [0], i = 0, j = 2, u = [0], v = [0]", "{guard}");
        assert_eq!(p.always(guard), "x = [0], i = 0, j = 2, u = [0], v = [0]", "{guard}");
        assert_eq!(p.never(&format!("not ({guard})")), "proved", "{guard}");
    }
}

#[test]
fn an_element_that_never_has_a_value_proves_nothing() {
    let p = short_lists();
    let fails = "(i + j if u[i] > v[j] else i + j + 1)";
    for array in [
        format!("[{fails} for k in [1, 2] if i + j >= k + 1]"),
        format!("[{fails} for k in range(i) if i + j >= 2]"),
        format!("[{fails} for k in [1, 2]] if i + j >= 2 else [1]"),
        format!("[{fails} for k in range(i)] if i + j >= 2 else [1]"),
        format!("[k for k in range(i) if {fails} > 0] if i + j >= 2 else [1]"),
        format!("[k for k in [1, 2] if {fails} > k] if i + j >= 2 else [1]"),
    ] {
        let verdict = p.has_value(&format!("sum({array})"));
        assert!(verdict.starts_with("x = [0], i = "), "{array}: {verdict}");
    }
}

#[test]
fn a_side_that_is_never_taken_cannot_fail() {
    let p = short_lists();
    for value in [
        "0 if i + j <= 6 else (i + j if u[i] > v[j] else i + j + 1)",
        "0 if i < 4 else (1 if i < 4 else 2)",
        "0 if i + j < 2 or i > 0 or j > 0 else (i + j if x.shape[0] > 3 else i + j + 1)",
        "u[0] // u[1] if i + j >= 2 and i <= 0 and j <= 0 and (i + j if x.shape[0] > 3 else i + j + 1) > 0 else 2",
        "1 if (i > j if j > 1 else i > 1) and i == 0 and j >= 0 and u[i + 3] > 0 else 2",
        "sum([1 // (k - k) if k > 3 else 2 for k in [i, j]])",
    ] {
        assert_eq!(p.has_value(value), "proved", "{value}");
    }
}

#[test]
fn requirements_without_a_value() {
    let maker = || Maker::new().attribute("n", "i64", |_| ()).input("x", (1, 1), |_| ());
    let p = maker().require("sum([x.shape[0] % (i + 1) for i in range(60000)]) >= 0");
    assert_ne!(p.always("numel(x) > 0"), "proved");
    let p = maker().require("x.shape[numel(x) + 1] == n");
    assert_eq!(p.always("numel(x) < 0"), "proved");
}

#[test]
fn ranks_of_outputs() {
    let of_rank = |rank: usize| {
        let shape = vec!["x.shape[0]"; rank].join(", ");
        Maker::new().input("x", (1, 1), |_| ()).output("y", &format!("[{shape}]"), |_| ())
    };
    assert_eq!(of_rank(7).always("numel(x) > 0"), "x = [0]");
    assert_eq!(of_rank(8).always("numel(x) > 0"), "x = [0]");
    assert_eq!(of_rank(9).always("numel(x) > 0"), "proved", "no such node exists");
}

#[test]
fn terms_beyond_the_budget_prove_nothing() {
    let costly = |count: usize| format!("sum([x.shape[0] % (i + 1) for i in range({count})])");
    let maker = || Maker::new().attribute("n", "i64", |_| ()).input("x", (1, 1), |_| ());
    let (p, sum) = (maker(), costly(60_000));
    for claim in [
        format!("n == 3 and {sum} >= 0"),
        format!("not (n != 3 or {sum} < 0)"),
        format!("n < 4 and ({sum} if n > 2 else -1) >= 0"),
        format!("n < 4 and (-1 if n < 3 else {sum}) >= 0"),
        format!("len([i for i in range(numel(x)) if {sum} >= 0]) == 3"),
        format!("len([{sum} for i in range(numel(x))]) == 3"),
    ] {
        assert_ne!(p.never(&claim), "proved", "{claim}");
    }
    let required = format!("{} >= 0", costly(15_000));
    assert_ne!(maker().require(&required).always(&format!("{required} and numel(x) > 0")), "proved");
}

#[test]
fn parts_that_no_case_reaches() {
    let p = short_lists();
    let contradictory = "i + j < 2 or i > 0 or j > 0";
    for (array, length) in [("range(1 + x.shape[0])", "1 + len"), ("range(min(x.shape[0], 9))", "len")] {
        let value = format!("0 if {contradictory} else {length}([i + j for k in {array}])");
        assert_eq!(p.within(&value, 0, 0), "proved", "{array}");
        assert_eq!(p.has_value(&value), "proved", "{array}");
    }
    let p = Maker::new()
        .attribute("n", "i64", |_| ())
        .attribute("pads", "i32[]", |a| a.length = Some(Interval { min: 0, max: 2 }))
        .input("x", (1, 1), |_| ());
    let positive = "n >= 0 and n < len(pads) and pads[n] > 0";
    let value = format!("0 if not ({positive}) or len(pads) > 1 or n < 1 else pads[n]");
    assert_eq!(p.has_value(&value), "proved");
}

#[test]
fn conditions_leave_cases() {
    let short = |a: &mut cubinder_model::model::Attribute| a.length = Some(Interval { min: 0, max: 2 });
    let p = Maker::new()
        .attribute("n", "i64", |_| ())
        .attribute("m", "i64", |_| ())
        .attribute("mode", "string", |a| {
            a.one_of = ["a", "b", "c"].map(|mode| Value::Str(mode.into())).to_vec();
        })
        .attribute("pads", "i32[]", short)
        .input("x", (1, 1), |_| ());
    for (assumed, text) in [
        ("n == 3 or n == 5", "n == 3"),
        ("mode != \"a\"", "mode == \"b\""),
        ("n * 3 == 6", "n == 1"),
        ("n == m", "n - m != 0"),
        ("(n > 0 and m // n > 1) == (m > 5)", "n != 0"),
        ("len([v for v in pads if v > 3]) == 0", "len(pads) == 0"),
        ("len([v for v in [n, m] if v > 3]) == 0", "n > 3"),
        ("n == 1 and m == 2 or n == 2 and m == 1", "n > m"),
    ] {
        let verdict = p.always_where(assumed, text);
        assert!(!["proved", "open"].contains(&verdict.as_str()), "{assumed}: {text}: {verdict}");
    }
    let verdict = p.never("n > 0 or n > 5");
    assert!(verdict.contains("n = 1"), "{verdict}");
}

#[test]
fn sides_that_always_fail() {
    let p = short_lists();
    assert!(p.within("u[i + 1] if i > 0 else 5", 0, 0).contains("i = 0"));
    assert!(p.within("5 if i < 1 else u[i + 1]", 0, 0).contains("i = 0"));
    assert_eq!(p.within("u[i + 1] if i > 0 else 5", 5, 5), "proved");
    assert!(p.has_value("u[i] + (1 if j > 1 else 2)").contains("i = 1"));
    assert!(p.has_value("1 if u[i] > 0 else 2").contains("i = 1"));
}
