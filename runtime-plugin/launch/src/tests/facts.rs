use super::*;
use crate::steps::weight;
use cubinder_expr::{DeviceFact, Environment, EvalError};
use cubinder_model::model::Interval;

const DEVICE: Device = Device { sms: 132, shared_bytes: 232_448, capability: 90 };

fn with_shape_input() -> Plugin {
    let mut plugin = plugin();
    let values = Some(Interval { min: 0, max: 9 });
    plugin.inputs.push(Input {
        name: "s".to_owned(),
        values,
        rank_min: 1,
        rank_max: 1,
        ..plugin.inputs[0].clone()
    });
    plugin
}

#[test]
fn expressions_see_what_is_known() {
    let facts = Facts {
        attributes: &[Value::Int(7), Value::Bool(true)],
        shapes: &[&[2, 3], &[0], &[4, -1]],
        values: &[&[], &[5, 6]],
        sizes: &[None, Some(12)],
        device: Some(DEVICE),
        alignments: &[48, 0],
        ranks: &[],
    };
    assert_eq!(
        [0, 1, 2].map(|it| facts.attribute(it)),
        [Some(&Value::Int(7)), Some(&Value::Bool(true)), None]
    );
    assert_eq!([0, 1].map(|it| facts.shape(it)), [Some(&[2, 3][..]), Some(&[0][..])]);
    assert_eq!([2, 3].map(|it| facts.shape(it)), [None, None], "one with an unknown dimension is not known");
    assert_eq!([0, 1, 2, 3].map(|it| facts.rank(it)), [Some(2), Some(1), Some(2), None]);
    assert_eq!([0, 1, 2].map(|it| facts.values(it)), [Some(&[][..]), Some(&[5, 6][..]), None]);
    assert_eq!([0, 1, 2].map(|it| facts.size(it)), [None, Some(12), None]);
    let device = [DeviceFact::Sms, DeviceFact::SharedBytes, DeviceFact::Capability];
    assert_eq!(device.map(|fact| facts.device(fact)), [Some(132), Some(232_448), Some(90)]);
    assert_eq!(device.map(|fact| Facts::default().device(fact)), [None; 3]);

    assert_eq!([1, 16, 32].map(|bytes| facts.aligned(0, bytes)), [Some(true), Some(true), Some(false)]);
    assert_eq!(facts.aligned(1, 64), Some(true), "null is a multiple of everything");
    assert_eq!(facts.aligned(0, 0), Some(false), "nothing is a multiple of 0");
    assert_eq!(facts.aligned(2, 1), None, "no address is known");
}

#[test]
fn ranks_may_be_known_before_shapes() {
    let facts = Facts { ranks: &[4], shapes: &[&[1, 2], &[3]], ..Facts::default() };
    assert_eq!([0, 1, 2].map(|it| facts.rank(it)), [Some(4), Some(1), None]);
}

#[test]
fn what_is_known_is_told() {
    let plugin = with_shape_input();
    let told = |facts: &Facts<'_>| describe(&plugin, facts);
    assert_eq!(told(&Facts::default()), "");
    assert_eq!(told(&Facts { ranks: &[2, 1], ..Facts::default() }), "; x has rank 2, s has rank 1");
    let shapes: &[&[i64]] = &[&[2, 3], &[UNKNOWN_EXTENT], &[]];
    assert_eq!(
        told(&Facts { shapes, ranks: &[2, 1], ..Facts::default() }),
        "; x is 2x3, s: unknown shape, y is a scalar"
    );
    let shapes: &[&[i64]] = &[&[2, UNKNOWN_EXTENT], &[4]];
    assert_eq!(told(&Facts { shapes, ..Facts::default() }), "; x is 2x-1, s is 4", "x is no shape input");
    let values: &[&[i64]] = &[&[], &[5, 6]];
    assert_eq!(told(&Facts { values, ..Facts::default() }), "; s contains [5, 6]");
    let alignments = &[0, 24, 4096, 1 << 40];
    assert_eq!(
        told(&Facts { alignments, ..Facts::default() }),
        "; x is null, s is aligned to 8, y is aligned to 4096, ? is aligned to 4096"
    );
}

#[test]
fn as_many_elements_as_anybody_reads_are_shown() {
    let plugin = plugin();
    let shown = |value: Value| describe(&plugin, &Facts { attributes: &[value], ..Facts::default() });
    let list = |length: usize| Value::Array(vec![Value::Int(7); length]);
    let sevens = vec!["7"; 64].join(", ");
    assert_eq!(shown(list(64)), format!("; k = [{sevens}]"));
    assert_eq!(shown(list(65)), format!("; k = [{sevens}, ... 65 elements]"));
    assert_eq!(shown(list(0)), "; k = []");
    let text = |length: usize| "t".repeat(length);
    assert_eq!(shown(Value::Str(text(64))), format!("; k = \"{}\"", text(64)));
    assert_eq!(shown(Value::Str(text(65))), format!("; k = \"{}\"... 65 bytes", text(64)));
    assert_eq!(shown(Value::Array(vec![list(1), Value::Bool(true)])), "; k = [[7], true]");
}

#[test]
fn names_are_those_of_onnx() {
    let plugin = plugin();
    assert_eq!(plugin.full_name(), "test::scale");
    assert_eq!(Plugin { namespace: String::new(), ..plugin }.full_name(), "scale");
}

#[test]
fn extents_are_bounded_by_what_shape_inputs_may_hold() {
    let mut plugin = with_shape_input();
    let shapes: &[&[i64]] = &[&[2, 3], &[1]];
    let facts = Facts { attributes: &[Value::Int(1)], shapes, ..Facts::default() };
    let extents = |plugin: &Plugin, steps: &mut Steps| {
        let extents = extents_for_any_values(plugin, &plugin.outputs[0], &facts, steps)?;
        Some(extents.iter().map(|extent| (extent.min, extent.max)).collect::<Vec<_>>())
    };
    plugin.outputs[0].shape = Expr {
        nodes: vec![
            Node::Values(1),
            Node::Int(0),
            Node::Index { array: 0, index: 1 },
            Node::Int(4),
            Node::Array(vec![2, 3]),
        ],
    };
    let mut steps = Steps::default();
    assert_eq!(extents(&plugin, &mut steps), Some(vec![(0, 9), (4, 4)]));
    let mut few = Steps::default();
    assert_eq!(few.charge(NODE_STEP_LIMIT - 4), Ok(()));
    assert_eq!(extents(&plugin, &mut few), None);
    assert!(few.is_spent() && !steps.is_spent());
    plugin.outputs[0].shape = Expr {
        nodes: vec![
            Node::Values(1),
            Node::Int(0),
            Node::Index { array: 0, index: 1 },
            Node::Call(Builtin::Range, vec![2]),
        ],
    };
    assert_eq!(extents(&plugin, &mut Steps::default()), None, "not even the rank is known");
}

#[test]
fn steps_are_taken_off_until_none_is_left() {
    let mut steps = Steps::default();
    assert_eq!(steps.charge(NODE_STEP_LIMIT - 1), Ok(()));
    assert_eq!((steps.is_spent(), steps.charge(1)), (false, Ok(())));
    assert!(steps.is_spent());
    assert_eq!(steps.charge(0), Ok(()));
    assert_eq!(steps.charge(1), Err(EvalError::TooManySteps));
    let nodes = [Node::Int(1), Node::Str(String::new()), Node::Str("a".repeat(32))];
    assert_eq!(weight(&nodes), 1 + 1 + 3, "a step for 16 bytes of text");
    let mut steps = Steps::default();
    assert_eq!(steps.why(&EvalError::TooManySteps), "the evaluation exceeds 1000000 steps");
    assert_eq!(steps.why(&EvalError::UnknownTensor(1)), EvalError::UnknownTensor(1).to_string());
    assert_eq!(steps.charge(usize::MAX), Err(EvalError::TooManySteps));
    assert_eq!(
        steps.why(&EvalError::TooManySteps),
        "the expressions of the node exceed 8000000 evaluation steps"
    );
    assert_eq!(steps.why(&EvalError::UnknownTensor(1)), EvalError::UnknownTensor(1).to_string());
}
