//! The deepest tree fits a thread's stack.

use super::support::{Calculator, Plugin, World, scope};
use crate::value::Value;
use crate::{
    Expr, RangeEnvironment, bind, bounds, compile_syntax, evaluate, lower, lower_scalar, parse, print,
};

/// Stack of test threads and rayon's; optimized code uses a fraction.
const STACK: usize = 2 * 1024 * 1024;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
}

struct Anything;

impl RangeEnvironment for Anything {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn rank(&self, _: u32) -> Option<usize> {
        Some(2)
    }

    fn dim(&self, _: u32, _: usize) -> Option<(i64, i64)> {
        None
    }
}

fn deepest() -> Vec<String> {
    let nested = |open: &str, core: &str, close: &str, levels: usize| {
        let times = (Expr::DEPTH_LIMIT - 4) / levels;
        format!("{}{core}{}", open.repeat(times), close.repeat(times))
    };
    vec![
        nested("(", "n", ")", 1),
        nested("-", "n", "", 1),
        nested("abs(", "x.shape[0]", ")", 1),
        nested("[", "x.shape[0]", "]", 1),
        nested("1 if x.shape[0] > 5 else ", "x.shape[1]", "", 1),
        nested("[1 for i in ", "x.shape", "]", 1),
        nested("x.shape[0] > 1 and (", "x.shape[1] > 1", ")", 1),
        nested("x.shape[", "1", "]", 1),
        nested("x.shape[0] + (", "1", ")", 1),
    ]
}

#[test]
fn every_walk_fits() {
    for text in deepest() {
        on_a_small_stack(move || {
            let syntax = parse(&text).unwrap();
            let expr = compile_syntax(&syntax, &scope()).unwrap().expr;
            let world = World::example();
            let mut builder = Calculator::new(&world);
            drop(evaluate(&expr, &world));
            drop(lower(&expr, &world.at_node_time(), &mut builder));
            drop(lower_scalar(&expr, &world.at_node_time(), &mut builder));
            drop(bounds(&expr, &Anything));
            drop(bind(&expr, &world.at_node_time()));
            let printed = print(&expr, &Plugin);
            assert_eq!(compile_syntax(&parse(&printed).unwrap(), &scope()).unwrap().expr, expr);
        });
    }
}
