//! Interval bounds of expressions over ranges. Sound, not exact. Conditions narrow sides of `and`, `or`, conditionals,
//! and comprehensions' elements. Only parts written alike are equal.

mod extent;
mod facts;
mod given;
mod ints;
mod term;
mod walk;

pub use given::{AttributeRange, RangeEnvironment};

pub use extent::Extent;
pub use facts::Facts;
pub use ints::Ints;
pub use term::{TermId, Terms};
pub use walk::{Stop, Walk};

use super::node::Expr;
use super::ops::{EvalError, STEP_LIMIT};

/// Bounds of an integer, or of a boolean as 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Lower bound.
    pub min: i64,
    /// Upper bound.
    pub max: i64,
    /// Evaluation provably never fails.
    pub total: bool,
}

/// Bounds an integer or a boolean. Fails if evaluation always fails or the tree is invalid.
pub fn bounds(expr: &Expr, env: &dyn RangeEnvironment) -> Result<Bounds, EvalError> {
    let (range, total) = walk(expr, env, &mut { STEP_LIMIT })?;
    finished(&range, total)
}

/// Bounds each element of an integer array; `None` if its length is unknown.
pub fn bounds_each(expr: &Expr, env: &dyn RangeEnvironment) -> Result<Option<Vec<Bounds>>, EvalError> {
    bounds_each_within(expr, env, &mut { STEP_LIMIT })
}

/// Bounds as [`bounds_each`]; subtracts used steps from `steps`.
pub fn bounds_each_within(
    expr: &Expr,
    env: &dyn RangeEnvironment,
    left: &mut usize,
) -> Result<Option<Vec<Bounds>>, EvalError> {
    let (range, total) = walk(expr, env, left)?;
    match range {
        Extent::Any | Extent::List(..) => Ok(None),
        range => match range.items() {
            Some(items) => items.iter().map(|item| finished(item, total)).collect::<Result<_, _>>().map(Some),
            None => {
                Err(EvalError::Kind { operation: "bounds", found: "a value that is not an array".into() })
            }
        },
    }
}

fn walk(expr: &Expr, env: &dyn RangeEnvironment, left: &mut usize) -> Result<(Extent, bool), EvalError> {
    let mut terms = Terms::default();
    let root = terms.add(expr, &|tensor| env.rank(tensor))?;
    let limit = STEP_LIMIT.min(*left);
    let mut walk = Walk::new(&terms, env, Facts::default(), limit);
    let found = walk.term(root);
    *left = left.saturating_sub(limit - walk.left());
    match found {
        Ok(range) => Ok((range, walk.is_total())),
        Err(Stop::Error(error)) => Err(error),
        // Only the environment can be contradictory.
        Err(Stop::Contradiction) => Err(EvalError::Malformed),
    }
}

fn finished(range: &Extent, total: bool) -> Result<Bounds, EvalError> {
    if let Some(ints) = range.ints() {
        return Ok(Bounds { min: ints.low, max: ints.high, total });
    }
    match range.bools() {
        Some(Some(value)) => Ok(Bounds { min: i64::from(value), max: i64::from(value), total }),
        Some(None) => Ok(Bounds { min: 0, max: 1, total }),
        None if *range == Extent::Any => Ok(Bounds { min: i64::MIN, max: i64::MAX, total: false }),
        None => Err(EvalError::Kind { operation: "bounds", found: range.show() }),
    }
}
