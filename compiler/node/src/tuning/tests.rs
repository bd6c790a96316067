use insta::assert_snapshot;
use proptest::prelude::*;

use cubinder_expr::Value;

use super::*;
use crate::diagnostic::{Colour, render};
use crate::query::RawAttributeValue;

const TEXT: &str = r#"# By hand.
schema = 1

[device]
name = "NVIDIA H200"
capability = "9.0"
sms = 132
driver = 13000

[[points]]
plugin = "cubinder::rms_norm"
version = "1"
case = "rows of a large model"
types = { T = "bf16" }
formats = { F = "hwc8" }
attributes = { epsilon = 1e-5, axes = [1, -1], mode = "a\tb", exact = true }
shapes = { x = [512, 4096], weight = [4096] }
values = { target = [4, -8] }
code = "0123456789abcdef"
microseconds = { 4 = 3.30, 6 = 3.02, 10 = 7 }

[[points]]
plugin = "alone"
version = "2"
shapes = {}
microseconds = { 1 = 0.5 }
"#;

fn file(text: &str) -> File {
    match read(&Source::new("tuning/nvidia-h200.toml", text)) {
        Ok(file) => file,
        Err(diagnostics) => panic!("{}", render(&diagnostics, Colour::Plain)),
    }
}

fn errors(text: &str) -> String {
    match read(&Source::new("tuning/nvidia-h200.toml", text)) {
        Ok(file) => panic!("expected errors, found {file:?}"),
        Err(diagnostics) => render(&diagnostics, Colour::Plain),
    }
}

#[test]
fn a_gpu_is_called_what_a_terminal_can_show() {
    let text = TEXT.replace("NVIDIA H200", r"\u001b[2J");
    let errors = errors(&text);
    assert!(errors.contains("contains control characters") && !errors.contains('\u{1b}'), "{errors}");
}

#[test]
fn every_key_is_read_and_written() {
    let read = file(TEXT);
    assert_snapshot!(write(&read.tuning));
    assert_eq!(file(&write(&read.tuning)).tuning.points.len(), 2);
    let point = &read.tuning.points[0];
    assert_eq!(point.ranking(), [6, 4, 10]);
    let axes = RawAttributeValue::Value(Value::Array(vec![Value::Int(1), Value::Int(-1)]));
    assert_eq!(point.query.attributes[1].1, axes);
    let at = |span: Span| TEXT[span.range].to_owned();
    assert_eq!(at(read.span(1, PointKey::Plugin)), "\"alone\"");
    assert_eq!(at(read.span(1, PointKey::Version)), "\"2\"");
    assert_eq!(at(read.span(0, PointKey::Variant(6))), "6 = 3.02");
    assert_eq!(at(read.span(0, PointKey::Query(Part::Shape, "weight"))), "[4096]");
    assert_eq!(at(read.span(0, PointKey::Query(Part::Shape, "other"))), "[[points]]", "its header");
}

#[test]
fn mistakes_are_told_with_their_places() {
    assert_snapshot!(
        "mistakes",
        errors(
            r#"schema = 1
point = []
[device]
name = 3
capability = "90"
sms = 0
drivers = 13000
[[points]]
plugin = "a::b"
versoin = "1"
types = { T = 16 }
shapes = { x = [1, -2], y = 3 }
values = { v = [0.5] }
attributes = { a = {} }
microseconds = { 0 = 1.0, 01 = 1.0, x = 1.0, 2 = "fast", 3 = -1.0, 4 = nan }
[[points]]
plugin = "a::b"
version = "1"
microseconds = {}
"#
        )
    );
    assert_snapshot!("nothing", errors(""));
    assert_snapshot!("another_edition", errors("schema = 2\n[gpu]\n"));
}

#[test]
fn of_equal_times_the_first_comes_first() {
    let point = Point { microseconds: vec![(3, 1.0), (1, 1.0), (2, 0.5)], ..Point::default() };
    assert_eq!(point.ranking(), [2, 3, 1]);
}

fn values() -> impl Strategy<Value = Value> {
    let one = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (-1e300..1e300_f64).prop_map(Value::Float),
        any::<bool>().prop_map(Value::Bool),
        any::<String>().prop_map(Value::Str),
    ];
    prop_oneof![one.clone(), proptest::collection::vec(one, 0..3).prop_map(Value::Array)]
}

fn pairs<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<(String, T)>> {
    proptest::collection::btree_map("[a-z]{1,3}|.{0,4}", of, 0..3).prop_map(|map| map.into_iter().collect())
}

prop_compose! {
    fn points()(
        names in (any::<String>(), any::<String>(), any::<Option<String>>(), any::<Option<String>>()),
        types in pairs(any::<String>()),
        formats in pairs(any::<String>()),
        attributes in pairs(values().prop_map(RawAttributeValue::Value)),
        shapes in pairs(proptest::collection::vec(0..i64::MAX, 0..4)),
        values in pairs(proptest::collection::vec(any::<i64>(), 0..3)),
        times in proptest::collection::btree_map(1..1000_i32, 0.0..1e9_f64, 1..5),
    ) -> Point {
        let (plugin, version, case, code) = names;
        let mut point = Point {
            plugin, version, case, code,
            query: Query { types, formats, attributes, shapes, values, ..Query::default() },
            microseconds: times.into_iter().collect(),
        };
        let order = point.ranking();
        point.microseconds.sort_by_key(|(id, _)| order.iter().position(|known| known == id));
        point
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        name in any::<String>(),
        numbers in (1..=12_u8, 0..=9_u8, 1..=u32::MAX, proptest::option::of(1..=u32::MAX)),
        points in proptest::collection::vec(points(), 0..3),
    ) {
        let (major, minor, sms, driver) = numbers;
        let device = Device { name, capability: ComputeCapability { major, minor }, sms, driver };
        let tuning = Tuning { device, points };
        prop_assert_eq!(&file(&write(&tuning)).tuning, &tuning);
    }

    #[test]
    fn any_text_is_answered(text in ".{0,200}") {
        let _ = read(&Source::new("t.toml", text.clone()));
        let _ = read(&Source::new("t.toml", format!("{TEXT}{text}")));
    }
}
