use proptest::prelude::*;

use super::generator::{Tape, nodes};
use super::oracle::{Oracle, Wide};
use super::support::{Calculator, Plugin, World, scope};
use crate::value::Value;
use crate::{
    DeviceFact, Environment, EvalError, Expr, Kind, LowerError, RangeEnvironment, STEP_LIMIT, bind, bounds,
    bounds_each, compile, evaluate, lower, lower_scalar, print,
};

struct Ranges<'a> {
    world: &'a World,
    slack: i64,
}

impl RangeEnvironment for Ranges<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.world.attribute(index).filter(|_| self.slack < 2 || index != 1)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.world.rank(tensor).filter(|_| self.slack < 2 || tensor != 1)
    }

    fn device(&self, fact: DeviceFact) -> (i64, i64) {
        let value = self.world.device[fact as usize];
        if self.slack < 2 { (value - self.slack, value + self.slack) } else { fact.range() }
    }

    fn values(&self, tensor: u32) -> (i64, i64) {
        let (low, high) = (self.world.values.iter().min(), self.world.values.iter().max());
        match (low, high) {
            (Some(low), Some(high)) if tensor == 3 && self.slack < 3 => {
                (low.saturating_sub(self.slack), high.saturating_add(self.slack * 3))
            }
            _ => (i64::MIN, i64::MAX),
        }
    }

    fn size(&self, _: u32) -> (i64, i64) {
        (0, self.world.size.saturating_add(self.slack))
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        let dim = *self.world.shapes.get(tensor as usize)?.get(axis)?;
        (self.slack < 3).then_some(((dim - self.slack).max(0), dim + self.slack * 3))
    }
}

struct ShapesOnly<'a>(&'a World);

impl Environment for ShapesOnly<'_> {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.0.shape(tensor)
    }

    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        self.0.aligned(tensor, bytes)
    }

    fn device(&self, fact: DeviceFact) -> Option<i64> {
        self.0.device(fact)
    }

    fn values(&self, tensor: u32) -> Option<&[i64]> {
        self.0.values(tensor)
    }

    fn size(&self, tensor: u32) -> Option<i64> {
        self.0.size(tensor)
    }
}

fn check(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let world = tape.world();
    let depth = tape.pick(5);
    let tree = match tape.pick(6) {
        5 => tape.dimensions(depth),
        0 | 1 => tape.int(depth),
        2 => tape.bool(depth),
        3 => tape.float(depth),
        _ => tape.ints(depth),
    };
    let text = tree.text();
    let mut oracle = Oracle { world: &world, variables: vec![], steps: 0 };
    let expected = oracle.value(&tree);
    let scope = scope().with_sizes();
    let typed = match compile(&text, &scope) {
        Ok(typed) => typed,
        Err(errors) => {
            assert!(errors.iter().all(|error| error.label == "this always fails"), "{text}: {errors:?}");
            assert_eq!(expected, None, "{text}: {errors:?}");
            return;
        }
    };
    assert_eq!(typed.expr.validate(6, 6), Ok(()), "{text}");
    let value = evaluate(&typed.expr, &world);
    if matches!(value, Err(EvalError::TooManySteps)) {
        assert!(oracle.steps >= STEP_LIMIT / 4, "{text}: {} steps", oracle.steps);
        return;
    }
    assert_eq!(value.as_ref().ok().map(Wide::from_value), expected, "{text}: {value:?}");

    let printed = print(&typed.expr, &Plugin);
    let again = compile(&printed, &scope).unwrap_or_else(|errors| panic!("{printed}: {errors:?}"));
    assert_eq!(again.expr, typed.expr, "{text} prints as {printed}");
    assert_eq!(again.time, typed.time, "{text} prints as {printed}");

    check_bind(&text, &typed.expr, &world, &value);
    check_lower(&text, &typed.expr, &typed.kind, &world, &value);
    for slack in 0..4 {
        check_bounds(&text, &typed.expr, &Ranges { world: &world, slack }, &value);
    }
}

fn check_bind(text: &str, expr: &Expr, world: &World, value: &Result<Value, EvalError>) {
    let bound = bind(expr, &world.at_node_time());
    assert_eq!(bound.validate(6, 6), Ok(()), "{text}");
    let printed = print(&bound, &Plugin);
    assert_eq!(&evaluate(&bound, world), value, "{text} binds to {printed}");
    assert_eq!(&evaluate(&bound, &ShapesOnly(world)), value, "{text} binds to {printed}");
    assert_eq!(bind(&bound, &world.at_node_time()), bound, "{text} binds to {printed}");
    if let Ok(again) = compile(&printed, &scope().with_sizes()) {
        assert_eq!(again.expr, bound, "{text} binds to {printed}");
    }
}

fn check_lower(text: &str, expr: &Expr, kind: &Kind, world: &World, value: &Result<Value, EvalError>) {
    let mut builder = Calculator::new(world);
    let node = world.at_node_time();
    let lowered = match kind {
        Kind::Int => lower_scalar(expr, &node, &mut builder).map(|dim| vec![dim]),
        Kind::Array(_) => lower(expr, &node, &mut builder),
        _ => return,
    };
    let Ok(value) = value else { return };
    let expected = value.as_ints().or_else(|| value.as_int().map(|value| vec![value]));
    match lowered {
        Ok(dims) => assert_eq!(Some(dims), expected, "{text}"),
        Err(LowerError::Unsupported { .. }) => {}
        Err(error) => panic!("{text} is {value} and is lowered to: {error}"),
    }
}

/// Walks may use more steps.
fn within_steps<T>(text: &str, bounds: Result<T, EvalError>) -> Option<T> {
    match bounds {
        Ok(bounds) => Some(bounds),
        Err(EvalError::TooManySteps) => None,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn check_bounds(text: &str, expr: &Expr, ranges: &Ranges<'_>, value: &Result<Value, EvalError>) {
    let each = match value {
        Ok(Value::Float(_)) => return,
        Ok(Value::Array(items)) => {
            let Some(each) = within_steps(text, bounds_each(expr, ranges)).flatten() else { return };
            assert_eq!(each.len(), items.len(), "{text}");
            items.iter().zip(each).map(|(item, bounds)| (item.clone(), bounds)).collect()
        }
        Ok(value) => {
            let Some(bounds) = within_steps(text, bounds(expr, ranges)) else { return };
            vec![(value.clone(), bounds)]
        }
        Err(error) => {
            if let Ok(bounds) = bounds(expr, ranges) {
                assert!(!bounds.total, "{text} fails with {error}");
            }
            return;
        }
    };
    for (value, bounds) in each {
        let value = match value {
            Value::Bool(value) => i64::from(value),
            value => value.as_int().unwrap(),
        };
        assert!(bounds.min <= value && value <= bounds.max, "{text} is {value}, not within {bounds:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reader_agrees_with_the_oracle(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn no_list_of_nodes_makes_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut tape = Tape::new(&bytes);
        let world = tape.world();
        let expr = Expr { nodes: nodes(&mut tape) };
        let valid = expr.validate(6, 6).is_ok();
        let value = evaluate(&expr, &world);
        let bound = bind(&expr, &world.at_node_time());
        prop_assert!(!valid || bound.validate(6, 6).is_ok());
        let _ = print(&expr, &Plugin);
        let mut builder = Calculator::new(&world);
        let _ = lower(&expr, &world.at_node_time(), &mut builder);
        let _ = lower_scalar(&expr, &world.at_node_time(), &mut builder);
        let _ = bounds(&expr, &Ranges { world: &world, slack: 1 });
        let _ = bounds_each(&expr, &Ranges { world: &world, slack: 3 });
        if valid && value.is_ok() {
            let bytes = postcard::to_allocvec(&expr).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Expr>(&bytes).map(|read| evaluate(&read, &world).is_ok()), Ok(true));
        }
    }

    #[test]
    fn no_text_makes_the_compiler_panic(text in "[-+*/%<>=!()\\[\\],. \"'a-fn0-9_x]{0,40}|(x\\.shape|numel\\(x\\)|n|for i in|if|else|not|and|\\[|\\]|\\(|\\)|\\+|//|-|1|2\\.5|\\?| ){0,20}|\\PC{0,20}") {
        if let Err(errors) = compile(&text, &scope()) {
            for error in errors {
                prop_assert!(text.get(error.span.clone()).is_some(), "{:?}", error);
            }
        }
    }
}
