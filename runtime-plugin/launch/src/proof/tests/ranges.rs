use super::support::Maker;
use crate::proof::frame::{Finding, Frame};
use crate::proof::pool::Meter;
use crate::proof::{Claim, Domain, Verdict};
use cubinder_expr::value::Value;
use cubinder_model::model::{Attribute, Interval};

fn maker() -> Maker {
    let integers = |min: i64, max: i64| {
        move |a: &mut Attribute| (a.minimum, a.maximum) = (Some(Value::Int(min)), Some(Value::Int(max)))
    };
    let floats = |min: f64, max: f64| {
        move |a: &mut Attribute| (a.minimum, a.maximum) = (Some(Value::Float(min)), Some(Value::Float(max)))
    };
    let list = |count: (i64, i64), (min, max): (i64, i64)| {
        move |a: &mut Attribute| {
            a.length = Some(Interval { min: count.0, max: count.1 });
            (a.minimum, a.maximum) = (Some(Value::Int(min)), Some(Value::Int(max)));
        }
    };
    Maker::new()
        .attribute("n", "i64", |_| ())
        .attribute("m", "i64", |_| ())
        .attribute("i", "i64", integers(0, 3))
        .attribute("j", "i64", integers(1, 9))
        .attribute("k", "i64", integers(-5, 5))
        .attribute("l", "i64", integers(-9, -2))
        .attribute("f", "f32", floats(0.5, 2.0))
        .attribute("g", "f32", floats(-1.0, 3.0))
        .attribute("h", "f32", |_| ())
        .attribute("c", "f32", |a| a.one_of = vec![Value::Float(4.0)])
        .attribute("flag", "bool", |_| ())
        .attribute("other", "bool", |_| ())
        .attribute("pads", "i32[]", list((0, 2), (-4, 4)))
        .attribute("bits", "i32[]", list((0, 3), (0, 1)))
        .attribute("two", "i32[]", list((2, 2), (1, 6)))
        .attribute("some", "i64[]", |a| a.length = Some(Interval { min: 1, max: 200 }))
        .input("x", (2, 2), |limits| limits.every = Interval { min: 2, max: 10 })
        .input("v", (3, 3), |_| ())
        .shape_input("s", Interval { min: 1, max: 2 }, Interval { min: 0, max: 7 })
        .shape_input("t", Interval { min: 0, max: 100_000 }, Interval { min: 0, max: 1 })
}

fn check(of: &[(&str, &str)]) {
    let p = maker();
    for (text, bounds) in of {
        assert_eq!(p.bounded("true", text), *bounds, "{text}");
    }
}

fn check_where(of: &[(&str, &str, &str)]) {
    let p = maker();
    for (assumed, text, bounds) in of {
        assert_eq!(p.bounded(assumed, text), *bounds, "{text} where {assumed}");
    }
}

#[test]
fn arithmetic() {
    check(&[
        ("abs(j)", "1..=9"),
        ("abs(f)", "0.5..=2.0"),
        ("abs(-f)", "0.5..=2.0"),
        ("ceil_div(8 * j + 4, 4)", "3..=19 of 2k + 1"),
        ("ceil_div(8 * j + 1, 4)", "3..=19"),
        ("j % (j + 9)", "1..=9"),
        ("(i + 1) % (i + 4)", "0..=4"),
        ("sqrt(c)", "2.0"),
        ("(i - 9) % 16", "7..=10"),
        ("max(f, g)", "0.5..=3.0"),
        ("exp(f)", "anything"),
        ("int(f * 4611686018427387904.0)", "..=, or it fails"),
        ("max(n, 9223372036854775807) + 1", "no value, or it fails"),
        ("aligned(x, 1)", "true"),
        ("int(i)", "0..=3"),
        ("float(f)", "0.5..=2.0"),
        ("flag or 10 // (i - i) > 0", "true, or it fails"),
    ]);
}

#[test]
fn sums_and_products() {
    check(&[
        ("sum([i * 4 + 3, j * 4 + 2])", "9..=53 of 4k + 1"),
        ("sum([f, g])", "anything, or it fails"),
        ("prod(bits)", "0..=1"),
        ("prod([2 for v in bits])", "0..=, or it fails"),
        ("max(pads)", "-4..=4, or it fails"),
        ("min(some)", "..="),
    ]);
}

#[test]
fn elements_of_lists() {
    check(&[
        ("pads[2]", "no value, or it fails"),
        ("two[-2]", "1..=6"),
        ("get(pads, 2, 7)", "7"),
        ("get(pads, l, 7)", "7"),
        ("get(some, i, 7)", "..="),
        ("s.values", "[0..=7; 1..=2]"),
        ("t.values", "[0..=1; 0..=65536], or it fails"),
        ("range(65536 + i)", "[0..=65538; 65536..=65536], or it fails"),
        ("[10 // (e - e) for e in pads]", "[], or it fails"),
        ("[10 // (e - e) for e in [i, j] if e > 2]", "[], or it fails"),
        ("[10 // (e - e) for e in pads if e > n and e < n]", "[]"),
    ]);
    check_where(&[
        ("n >= 0 and n <= len(pads)", "pads[n]", "-4..=4, or it fails"),
        ("n > m", "range(n, m)", "[]"),
        ("min(two) >= 3", "two", "[3..=6, 3..=6]"),
        ("max(two) <= 3", "two", "[1..=3, 1..=3]"),
        ("two == [i, k]", "i", "1..=3"),
        ("len([e for e in pads if e < 0]) >= 1", "pads", "[-4..=4; 1..=2]"),
    ]);
}

#[test]
fn comparisons_narrow_numbers() {
    check_where(&[
        ("j != 1", "j", "2..=9"),
        ("i != 3", "i", "0..=2"),
        ("abs(l) <= 4", "l", "-4..=-2"),
        ("-k >= 3", "k", "-5..=-3"),
        ("min(i, j) >= 2", "i", "2..=3"),
        ("max(i, j) <= 2", "j", "1..=2"),
        ("j // 4 == 1", "j", "4..=7"),
        ("n // -2 == 3", "n", "..="),
        ("ceil_div(j, 4) == 2", "j", "5..=8"),
        ("ceil_div(n, -2) == 3", "n", "..="),
        ("ceil_div(n, m) > 0", "m", "..= but 0"),
        ("n % 4 == 1", "(n + 3) % 4", "0, or it fails"),
        ("prod([i, j]) >= 20", "i", "3"),
        ("prod([j, i + 2, 3]) <= 12", "j", "1..=2"),
        ("prod([k, 2]) == 6", "k", "-5..=5"),
        ("not (h < 1.0)", "h", "anything"),
        ("not (f < g)", "g", "-1.0..=2.0"),
        ("(j if flag else i) > 5", "j", "6..=9"),
        ("true != (i > 1)", "i", "0..=1"),
    ]);
}

#[test]
fn comparisons_narrow_shapes() {
    check_where(&[
        ("numel(x) >= 95", "x.shape", "[10, 10]"),
        ("x.shape == [5, 4]", "x.shape[0] * x.shape[1]", "20"),
        ("v.shape == [5, 4, 3]", "v.shape[1] + 1", "5"),
    ]);
}

#[test]
fn comparisons_decide_others() {
    check_where(&[
        ("n - m == 0", "n != m", "false"),
        ("n - m < 0", "m <= n", "false"),
        ("n - m >= 0", "n == m", "a bool"),
        ("n - m >= 0", "n <= m", "a bool"),
        ("i <= j", "i < j", "a bool"),
        ("i < j", "i == j", "false"),
        ("n <= m", "n != m", "a bool"),
        ("not (n <= m)", "m < n", "true"),
        ("i < 2 and (i >= 2) == flag", "flag", "false"),
    ]);
    check(&[
        ("(1 if flag != other else 2) if flag == other else 2", "2"),
        ("(1 if h != 1.0 else 2) if h == 1.0 else 2", "2"),
        ("(1 if h == 1.0 else 2) if h != 1.0 else 2", "2"),
        ("1 if n == m else (1 if m < n else 2)", "1..=2"),
        ("2 if not (n != m) else (1 if m < n else 2)", "1..=2"),
        ("(1 if m < n else 2) if n != m else 2", "1..=2"),
        ("1 if n < m else (1 if m < n else 2)", "1..=2"),
        // NaN is neither less nor greater.
        ("(1 if g <= h else 2) if not (h < g) else 1", "1..=2"),
    ]);
}

#[test]
fn long_products() {
    let p = maker();
    let product = |count: usize| format!("prod([i{}]) == 3", ", 1".repeat(count - 1));
    assert_eq!(p.bounded(&product(64), "i"), "3");
    assert_eq!(p.bounded(&product(65), "i"), "0..=3");
}

#[test]
fn sizes_that_depend_on_data() {
    let p = Maker::new()
        .input("x", (1, 2), |limits| limits.numel.max = 1 << 20)
        .counted("count", "numel(x)", "indices");
    assert_eq!(p.bounded("true", "indices.shape[0]"), "0..=1048576");
}

#[test]
fn claims_that_bounds_decide() {
    let p = maker();
    assert!(!["proved", "open"].contains(&p.within("[n, m]", 0, 5).as_str()));
    assert_eq!(p.never("max(n, 9223372036854775807) + 1 > m"), "proved", "it has no value");
    let few =
        Maker::new().attribute("n", "i64", |_| ()).input("x", (1, 1), |_| ()).output("y", "x.shape", |_| ());
    let before = few.domain().before_outputs();
    assert_eq!(before.always(&few.expr("numel(x) >= 0")), Verdict::Proved);
    assert_eq!(before.always(&few.expr("numel(y) >= 0")), Verdict::Open, "there may be no output");
    let ranks = [Some(1)];
    let frame = Frame::new(&before, &ranks, &mut Meter::new(None)).unwrap();
    let count = frame.extent(&few.expr("numel(y)"), &mut Meter::new(None)).unwrap();
    assert_eq!(count.ints().unwrap().low, 0);
    assert!(before.provable(&few.expr("numel(x) >= 0")) && !before.provable(&few.expr("numel(y) >= 0")));
    assert!(few.domain().provable(&few.expr("numel(y) >= 0")));
}

#[test]
fn attributes_and_ranks_that_are_known() {
    let p = Maker::new().attribute("a", "i64", |_| ()).input("x", (2, 2), |_| ());
    let values = [Value::Int(1)];
    let domain = p.domain().with_attributes(&values);
    assert!(domain.proves(&p.expr("x.shape[a] == x.shape[1]")));
    let open = Maker::new().input("x", (1, 2), |_| ());
    assert!(open.domain().proves(&open.expr("x.shape[x.rank - 1] == x.shape[-1]")));
    let Verdict::Refuted(case) = domain.always(&p.expr("x.shape[0] != 3")) else { panic!() };
    assert_eq!(p.describe(&case), "x = [3, 0], a = 1");
}

#[test]
fn claims_that_a_frame_decides() {
    let p = maker();
    let domain = p.domain();
    let ranks = [Some(2), Some(3), Some(1), Some(1)];
    let mut meter = Meter::new(None);
    let frame = Frame::new(&domain, &ranks, &mut meter).unwrap();
    let (outside, inside) = (p.expr("[n, m]"), p.expr("[i, 5]"));
    let overflow = p.expr("max(n, 9223372036854775807) + 1 > m");
    let mut is_proved = |claim| matches!(frame.look_at(claim, &mut meter), Finding::Proved);
    let allowed = Interval { min: 0, max: 5 };
    assert!(!is_proved(Claim::Within(&outside, allowed)));
    assert!(is_proved(Claim::Within(&inside, allowed)));
    assert!(is_proved(Claim::Never(&overflow)), "it has no value");
    let number = p.expr("max(n, 9223372036854775807) + 1");
    assert!(is_proved(Claim::Within(&number, allowed)), "it has no value");
    let product = p.expr("(i % 2 + 2) * (j % 2 + 5) != 13");
    assert!(is_proved(Claim::Always(&product)));
    let Finding::Within(regions) = frame.look_at(Claim::Within(&outside, allowed), &mut meter) else {
        panic!()
    };
    assert_eq!(regions.len(), 1);
}

#[test]
fn walks_have_a_budget() {
    let p = maker();
    let costly = |count: usize| format!("sum([x.shape[0] % (e + 1) for e in range({count})])");
    assert_eq!(p.bounded("true", &costly(1_000)), "1980..=9945");
    assert_eq!(p.bounded("true", &costly(60_000)), "no value, or it fails");
    // Nested lists, up to 200 numbers.
    let nested = |body: &str| format!("len([[{body} for b in some] for c in some])");
    assert_eq!(p.bounded("true", &nested("1")), "1..=200");
    assert_eq!(p.bounded("true", &nested("[1 for a in some]")), "1..=200, or it fails");
    let side = format!("({} if flag else 2)", costly(7_000));
    assert_eq!(p.bounded("true", &side), "2..=69945");
    for text in [
        format!("[{} for e in pads if e > n]", costly(60_000)),
        format!("(1 if flag else 2) if {side} > 2 else 1"),
        format!("[e for e in pads if {side} > 2]"),
        format!("(1 if flag else 2) if len([e for e in pads if {side} > e]) == 0 else 1"),
    ] {
        assert_eq!(p.bounded("true", &text), "no value, or it fails", "{text}");
    }
    let required = format!("{} >= 0 and n == 3", costly(9_000));
    assert_eq!(maker().require(&required).bounded("true", "n"), "3");
}

#[test]
fn steps_are_counted() {
    let p = Maker::new()
        .attribute("n", "i64", |_| ())
        .attribute("m", "i64", |_| ())
        .input("x", (3, 3), |_| ())
        .require("n > 2")
        .counted("count", "sum([x.shape[0] + e for e in [1, 2, 3]])", "indices");
    let frame = |domain: &Domain<'_>, meter: &mut Meter<'_>| drop(Frame::new(domain, &[Some(3)], meter));
    assert_eq!(p.steps(frame), 186);
    let value = p.expr("n + m * 2");
    let both = |domain: &Domain<'_>, meter: &mut Meter<'_>| {
        drop(Frame::new(domain, &[Some(3)], meter).unwrap().extent(&value, meter));
    };
    assert_eq!(p.steps(both) - p.steps(frame), 20);
    for (text, expected) in [("n + m * 2 < 5", 53), ("prod([n, n, 3]) < 99", 73)] {
        let claim = p.expr(text);
        let decided = |domain: &Domain<'_>, meter: &mut Meter<'_>| {
            drop(Frame::new(domain, &[Some(3)], meter).unwrap().look_at(Claim::Always(&claim), meter));
        };
        assert_eq!(p.steps(decided) - p.steps(frame), expected, "{text}");
    }
}
