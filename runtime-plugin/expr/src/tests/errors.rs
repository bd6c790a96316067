use super::support::{render, scope};
use crate::{TensorKind, compile};

fn errors(texts: &[&str]) -> String {
    let rendered = texts.iter().map(|text| match compile(text, &scope()) {
        Ok(typed) => panic!("{text} compiles to {typed:?}"),
        Err(errors) => render(text, &errors),
    });
    rendered.collect::<Vec<String>>().join("\n")
}

#[test]
fn what_does_not_parse() {
    insta::assert_snapshot!(errors(&[
        "",
        "1 +",
        "(1 + 2",
        "[1, 2",
        "x.shape[0",
        "1 2",
        "n + * 2",
        "1 < n < 3",
        "n == 1 == flag",
        "2 * not flag",
        "n = 3",
        "n && flag",
        "!flag",
        "2 ** 3",
        "x.shape[1:2]",
        "flag ? 1 : 2",
        "1 if flag",
        "[i for in range(3)]",
        "[i for i range(3)]",
        "[i for i in range(3) for j in range(3)]",
        "9223372036854775808",
        "1e999",
        "4k",
        "'open",
        "x.",
        "ü + §",
    ]));
}

#[test]
fn what_other_languages_have() {
    insta::assert_snapshot!(errors(&[
        "(x.shape[0], 2)",
        "x.shape[0], 2",
        "sum(d for d in x.shape)",
        "(d for d in x.shape)",
        "lambda a: a",
        "{1: 2}",
        "n & 3",
        "n & 5",
        "n | 3",
        "n ^ 1",
        "~n",
        "1 << 8",
        "n >> 1",
        "n << pads[0]",
        "n === 1",
        "n == 1;",
        "5L",
        "256u",
        "0xFF",
        "1.5f",
        "(int)n",
        "(double) n * 2",
        "mode == \u{201c}tanh\u{201d}",
        "mode == \"a\" b",
        "mode in ['a', 'b']",
        "mode is 'a'",
        "mode == tanh",
        "tanh != mode",
        "T == f16",
        "'f32' == T",
        "x.numel()",
        "x.shape(0)",
        "x.dim()",
        "pads.append(1)",
        "x.shape.prod()",
        "x.padded(1)",
        "ceil_div(prod(x.shape), 256",
        "[n, n",
        "[n",
        "x(0)",
        "pads(0)",
        "x.shape + [1]",
        "x.shape + y.shape",
        "x.shape * 2",
        "ceil(n / 2.0)",
        "floor(scale)",
        "round(scale)",
        "pow(2, n)",
        "cdiv(n, 2)",
        "shape(x)",
        "any([flag])",
        "frobnicate(n)",
    ]));
}

#[test]
fn what_is_not_known() {
    insta::assert_snapshot!(errors(&[
        "pds[0]",
        "True",
        "x.shap[0]",
        "x.size",
        "ceildiv(n, 2)",
        "size(x)",
        "numel",
        "pad",
        "n(3)",
        "n.shape",
        "pads.len",
        "x + 1",
        "T",
        "sizeof(x)",
        "sizeof(U)",
        "numel(pads)",
        "numel(q)",
        "[j for i in range(3)]",
    ]));
}

#[test]
fn what_has_the_wrong_kind() {
    insta::assert_snapshot!(errors(&[
        "n / 2",
        "n // 2.0",
        "scale % 2",
        "flag + 1",
        "pads + pads",
        "mode < 'b'",
        "mode == 1",
        "pads == 1",
        "not n",
        "-flag",
        "n and flag",
        "1 if n else 2",
        "1 if flag else 'a'",
        "[1, true]",
        "pads[scale]",
        "n[0]",
        "[i for i in n]",
        "[i for i in pads if i]",
        "[i for i in mode]",
        "min(n)",
        "min(flag, 1)",
        "sum([flag])",
        "len(mode)",
        "get(pads, 0, 0.5)",
        "get(pads, flag, 1)",
        "range(1.5)",
        "sqrt(flag)",
        "ceil_div(1.5, 2)",
    ]));
}

#[test]
fn what_has_the_wrong_number_of_arguments() {
    insta::assert_snapshot!(errors(&[
        "ceil_div(1)",
        "min()",
        "range(1, 2, 3)",
        "numel()",
        "sizeof(T, T)",
        "pad(pads, x.rank, 0)",
        "last()",
    ]));
}

#[test]
fn what_asks_for_addresses() {
    let wrong = [
        "aligned(x)",
        "aligned(x, 16, 1)",
        "aligned(n, 16)",
        "aligned(x.shape, 16)",
        "aligned(q, 16)",
        "aligned(T, sizeof(T))",
        "aligned(x, 0)",
        "aligned(x, -16)",
        "aligned(x, 24)",
        "aligned(x, BLOCK * sizeof(T))",
        "aligned(x, 16.0)",
        "aligned(x, flag)",
        "aligned(x, n)",
        "aligned(x, 16 // ZERO)",
        "[aligned(x, i) for i in TILE]",
        "aligned(x, x.shape[0])",
        "aligned(x, q)",
        "aligned(x, sum([sum(range(60000)) for i in range(60000)]))",
        "vectors(x, 3)",
        "vectors(n, 4)",
        "aligned(x, 16) + 1",
        "alignd(x, 16)",
    ];
    insta::assert_snapshot!(errors(&wrong));
}

#[test]
fn only_guards_ask_for_addresses() {
    let elsewhere = scope().without_addresses();
    let rendered = ["n + 1 if flag and aligned(x, 16) else 2", "vectors(x, 4)", "aligned(x, 3)"]
        .map(|text| render(text, &compile(text, &elsewhere).unwrap_err()));
    insta::assert_snapshot!(rendered.join("\n"));
    assert!(compile("x.shape[0] % 4 == 0", &elsewhere).is_ok());
}

#[test]
fn what_is_not_known_yet() {
    let elsewhere = scope().without_addresses().without_device();
    let shape = elsewhere.clone().with_sizes();
    let launch = scope().tensor_of_kind("target", 3, (1, 1), TensorKind::UnseenShapeInput);
    let rendered = [
        ("device.sms", &elsewhere),
        ("device.smss", &scope()),
        ("device.warp", &scope()),
        ("device", &scope()),
        ("divice.sms", &scope()),
        ("x.values[0]", &scope()),
        ("target.value[0]", &scope()),
        ("target + 1", &scope()),
        ("total", &scope()),
        ("total.values[0]", &scope()),
        ("found.shape[0] + found.rank + numel(found)", &scope()),
        ("aligned(target, 16)", &scope()),
        ("target.values[0] + target.shape[0] + numel(target) + target.rank", &launch),
        ("target", &launch),
        ("[total * 2, 1]", &shape),
        ("[total] if flag else [1]", &shape),
        ("twice(total)", &shape),
    ]
    .map(|(text, scope)| render(text, &compile(text, scope).unwrap_err()));
    insta::assert_snapshot!(rendered.join("\n"));
    assert!(compile("[total, target.values[0]]", &shape).is_ok());
}

#[test]
fn what_always_fails() {
    insta::assert_snapshot!(errors(&[
        "7 // ZERO",
        "n + 7 % (3 - 3)",
        "9223372036854775807 + 1",
        "[1, 2][2] + n",
        "x.shape[8]",
        "z.shape[-3]",
        "sqrt(-1)",
        "1.0 / 0",
        "range(100000)",
        "[10 // i for i in range(2)]",
        "half(1 // 0)",
        "max([])",
        "numel(y) // ZERO",
        "(n + numel(y)) % 0 + 1",
        "ceil_div(n, ZERO)",
        "scale / 0",
        "n / -0.0",
        "[x.shape[0] // i for i in range(2)]",
        "[n, numel(y), 1][3]",
        "[n, 1][-3]",
        "[][n]",
        "half([n, 2][2]) if n // ZERO > 1 else 3",
        "sum([i * numel(y) for i in range(100)]) + numel(x) // (z.rank - 2)",
        "(n + n + n + n + n + n + n + n + n + n + n) // 0",
    ]));
}

#[test]
fn what_may_not_be_evaluated_may_fail() {
    for text in [
        "n // 0 if flag else 1",
        "1 if flag else [n, 1][2]",
        "flag and numel(x) % ZERO == 0",
        "flag or ceil_div(n, 0) == 1",
        "[d // 0 for d in x.shape]",
        "[d for d in x.shape if scale / 0 > 1.0]",
        "get([n, 1], 5, 0)",
        "n // 0 if ZERO > 0 else 1",
    ] {
        assert!(compile(text, &scope()).is_ok(), "{text}");
    }
}

#[test]
fn what_goes_wrong_in_a_function_is_told_at_the_call() {
    insta::assert_snapshot!(errors(&[
        "loops(1)",
        "n + ping(2)",
        "half(0.5) + 1",
        "last(pads)",
        "half(half(flag))",
        "half(pds)",
    ]));
}

#[test]
fn all_mistakes_of_one_expression_are_told_at_once() {
    insta::assert_snapshot!(errors(&["[pds[0], n / 2, x.shpe, 1 if n else 2]", "1 // 0 + 7 % 0"]));
}

#[test]
fn what_is_too_large() {
    let deep = format!("{}n{}", "abs(".repeat(250), ")".repeat(250));
    let wide = format!("[{}n]", "n, ".repeat(20_000));
    let doubled = format!("{}n{}", "twice(".repeat(20), ")".repeat(20));
    let messages: Vec<String> = [deep, wide, doubled]
        .iter()
        .flat_map(|text| compile(text, &scope()).unwrap_err())
        .map(|error| error.message)
        .collect();
    assert_eq!(
        messages,
        [
            "the expression is nested more than 200 levels deep",
            "the expression has more than 16384 parts after functions are inlined",
            "in `twice`: the expression has more than 16384 parts after functions are inlined",
        ]
    );
}
