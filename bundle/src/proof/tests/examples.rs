//! What is proved and what is refuted, and by which case.

use super::support::{Maker, circ_pad, elemwise_add};
use crate::value::Value;

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
    println!("{}", p.within("ceil_div(numel(y), 256)", 0, GRID));
    println!("{}", p.within("[get(y.shape, y.rank - 1 - d, 1) for d in range(8)]", 0, GRID));
    println!("{}", p.always("y.shape[-1] % 4 == 0"));
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
