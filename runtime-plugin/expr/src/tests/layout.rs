use super::support::{World, scope};
use crate::format::Format;
use crate::value::Value;
use crate::{Scope, compile, evaluate};

fn value(text: &str, scope: &Scope, world: &World) -> Value {
    let typed = compile(text, scope).expect("a valid expression");
    evaluate(&typed.expr, world).expect("a value")
}

#[test]
fn extents_in_memory_are_those_of_the_format() {
    let mut world = World::example();
    for shape in [vec![3, 4, 5], vec![2, 33, 4, 5], vec![1, 2, 3, 4, 5, 6, 7, 9], vec![0, 1, 0, 1]] {
        for format in Format::ALL.into_iter().filter(|format| format.min_rank() <= shape.len()) {
            let rank = u8::try_from(shape.len()).expect("a small rank");
            let free = scope().formats([(0, format)]);
            let fixed = free.clone().tensor("x", 0, rank, rank);
            world.shapes[0].clone_from(&shape);
            let ints = |extents: Vec<i64>| Value::Array(extents.into_iter().map(Value::Int).collect());
            let padded = format.padded(&shape).map(ints);
            for scope in [free, fixed] {
                assert_eq!(Some(value("x.padded", &scope, &world)), padded, "{format:?} {shape:?}");
                assert_eq!(value("x.vector", &scope, &world), Value::Int(format.vector()));
                assert_eq!(value("x.format", &scope, &world), Value::Str(format.name().to_owned()));
            }
        }
    }
}

#[test]
fn formats_are_known_when_the_plugin_is_compiled() {
    let scope = scope().formats([(0, Format::Hwc8)]);
    let is_folded = |text: &str| compile(text, &scope).expect("a valid expression").expr.nodes.len() == 1;
    assert!(is_folded("x.format == 'hwc8' and x.vector == 8"));
    assert!(is_folded("y.format == 'linear'"), "a tensor without a format");
}

#[test]
fn formats_are_not_known_everywhere() {
    for text in ["x.format", "x.vector", "x.padded[0]"] {
        let errors = compile(text, &scope()).expect_err("unknown formats");
        assert!(errors[0].message.ends_with("is not known here"), "{errors:?}");
    }
}
