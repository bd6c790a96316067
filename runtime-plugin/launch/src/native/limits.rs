//! Shape limits as requirements, for launches without another check.

use cubinder_expr::{BinaryOp, Builtin, Expr, Formula, Node, is_within};
use cubinder_model::model::{Interval, Requirement, ShapeLimits};

/// Returns a tensor's limits as requirements on `rank` dimensions; `shape` is an array.
#[must_use]
pub fn limits(name: &str, shape: &Expr, rank: usize, limits: &ShapeLimits) -> Vec<Requirement> {
    let axes = (0..rank).flat_map(|axis| {
        bounds(&format!("{name}.shape[{axis}]"), &extent(shape, axis), name, limits.dim(axis))
    });
    let mut numel = Formula::default();
    let array = numel.copy(shape);
    numel.add(Node::Call(Builtin::Prod, vec![array]));
    axes.chain(bounds(&format!("numel({name})"), &numel.finish(), name, limits.numel)).collect()
}

/// Returns the requirements that an output's dimensions are not negative.
#[must_use]
pub fn sizes(name: &str, shape: &Expr, rank: usize) -> Vec<Requirement> {
    let requirement = |axis| Requirement {
        expr: is_within(&extent(shape, axis), Interval::ANY_SIZE),
        text: format!("{name}.shape[{axis}] >= 0"),
        message: "dimensions must not be negative".to_owned(),
    };
    (0..rank).map(requirement).collect()
}

fn extent(shape: &Expr, axis: usize) -> Expr {
    let mut formula = Formula::default();
    let array = formula.copy(shape);
    let index = formula.add(Node::Int(i64::try_from(axis).unwrap_or(i64::MAX)));
    formula.add(Node::Index { array, index });
    formula.finish()
}

fn bounds(text: &str, value: &Expr, name: &str, allowed: Interval) -> Vec<Requirement> {
    let ends = [
        (allowed.min > Interval::ANY_SIZE.min).then_some((BinaryOp::Ge, ">=", allowed.min)),
        (allowed.max < Interval::ANY_SIZE.max).then_some((BinaryOp::Le, "<=", allowed.max)),
    ];
    let requirement = |(op, sign, end): (BinaryOp, &str, i64)| {
        let mut formula = Formula::default();
        let (value, limit) = (formula.copy(value), formula.add(Node::Int(end)));
        formula.add(Node::Binary(op, value, limit));
        Requirement {
            expr: formula.finish(),
            text: format!("{text} {sign} {end}"),
            message: format!("the manifest limits the shape of `{name}`"),
        }
    };
    ends.into_iter().flatten().map(requirement).collect()
}
