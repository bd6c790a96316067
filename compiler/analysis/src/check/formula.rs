//! Expressions made of others, for statements about them.

use std::hash::{Hash as _, Hasher};
use std::mem::discriminant;

use cubinder_expr::{BinaryOp, Builtin, DeviceFact, Expr, Formula, Node, UnaryOp};
use cubinder_expr::{Interval, Value};
pub(super) use cubinder_expr::{is_within, joined};

/// `true`.
pub(super) fn truth() -> Expr {
    Expr { nodes: vec![Node::Bool(true)] }
}

/// `len(array) <= index or (min <= array[index] and array[index] <= max)`, of an array of integers.
pub(super) fn element_is_within(array: &Expr, index: usize, allowed: Interval) -> Expr {
    let index = i64::try_from(index).unwrap_or(i64::MAX);
    let mut formula = Formula::default();
    let copy = formula.copy(array);
    let found = formula.add(Node::Call(Builtin::Len, vec![copy]));
    let wanted = formula.add(Node::Int(index));
    let short = formula.add(Node::Binary(BinaryOp::Le, found, wanted));
    let within = formula.within(allowed, |formula| {
        let (array, index) = (formula.copy(array), formula.add(Node::Int(index)));
        formula.add(Node::Index { array, index })
    });
    formula.add(Node::Binary(BinaryOp::Or, short, within));
    formula.finish()
}

/// `value == value`, which holds wherever there is a value.
pub(super) fn is_there(value: &Expr) -> Expr {
    let mut formula = Formula::default();
    let left = formula.copy(value);
    let right = formula.copy(value);
    formula.add(Node::Binary(BinaryOp::Eq, left, right));
    formula.finish()
}

/// `value > 0`, of an integer.
pub(super) fn is_positive(value: &Expr) -> Expr {
    let mut formula = Formula::default();
    let value = formula.copy(value);
    let zero = formula.add(Node::Int(0));
    formula.add(Node::Binary(BinaryOp::Gt, value, zero));
    formula.finish()
}

/// `value <= most or most < 0`, of integers.
pub(super) fn is_at_most(value: &Expr, most: &Expr) -> Expr {
    let mut formula = Formula::default();
    let (value, limit) = (formula.copy(value), formula.copy(most));
    let is_at_most = formula.add(Node::Binary(BinaryOp::Le, value, limit));
    let (again, zero) = (formula.copy(most), formula.add(Node::Int(0)));
    let is_negative = formula.add(Node::Binary(BinaryOp::Lt, again, zero));
    formula.add(Node::Binary(BinaryOp::Or, is_at_most, is_negative));
    formula.finish()
}

/// `attribute == value`, of an integer or a boolean.
pub(super) fn has_value(attribute: u32, value: &Value) -> Option<Expr> {
    let node = Node::Attribute(attribute);
    let nodes = match value {
        Value::Int(value) => vec![node, Node::Int(*value), Node::Binary(BinaryOp::Eq, 0, 1)],
        Value::Bool(true) => vec![node],
        Value::Bool(false) => vec![node, Node::Unary(UnaryOp::Not, 0)],
        _ => return None,
    };
    Some(Expr { nodes })
}

/// `tensor.rank >= least`.
pub(super) fn has_rank(tensor: u32, least: i64) -> Expr {
    Expr { nodes: vec![Node::Rank(tensor), Node::Int(least), Node::Binary(BinaryOp::Ge, 0, 1)] }
}

/// `value % of == 0`, of integers.
pub(super) fn is_multiple(value: &Expr, of: &Expr) -> Expr {
    let mut formula = Formula::default();
    let (value, of) = (formula.copy(value), formula.copy(of));
    let rest = formula.add(Node::Binary(BinaryOp::Mod, value, of));
    let zero = formula.add(Node::Int(0));
    formula.add(Node::Binary(BinaryOp::Eq, rest, zero));
    formula.finish()
}

/// `len(array)`.
pub(super) fn length(array: &Expr) -> Expr {
    let mut formula = Formula::default();
    let array = formula.copy(array);
    formula.add(Node::Call(Builtin::Len, vec![array]));
    formula.finish()
}

/// `len(array) == length`.
pub(super) fn has_length(array: &Expr, length: i64) -> Expr {
    let mut formula = Formula::default();
    let array = formula.copy(array);
    let found = formula.add(Node::Call(Builtin::Len, vec![array]));
    let wanted = formula.add(Node::Int(length));
    formula.add(Node::Binary(BinaryOp::Eq, found, wanted));
    formula.finish()
}

/// `rank(tensor) == rank and ...` for each of some tensors.
pub(super) fn has_ranks(ranks: &[(u32, u8)]) -> Expr {
    let equal = |&(tensor, rank): &(u32, u8)| {
        let nodes = vec![Node::Rank(tensor), Node::Int(i64::from(rank)), Node::Binary(BinaryOp::Eq, 0, 1)];
        Expr { nodes }
    };
    let parts: Vec<Expr> = ranks.iter().map(equal).collect();
    joined(BinaryOp::And, &parts).unwrap_or_else(truth)
}

/// Hashes what tells most expressions apart: their operations, in order, and their integers.
pub(super) fn feed(expr: &Expr, hasher: &mut impl Hasher) {
    for node in &expr.nodes {
        discriminant(node).hash(hasher);
        match node {
            Node::Int(value) => value.hash(hasher),
            Node::Attribute(index)
            | Node::Shape(index)
            | Node::Rank(index)
            | Node::Numel(index)
            | Node::Values(index)
            | Node::Size(index) => index.hash(hasher),
            Node::Device(fact) => fact.hash(hasher),
            Node::Binary(op, ..) => op.hash(hasher),
            _ => {}
        }
    }
}

/// The attributes and tensors that an expression reads.
pub(super) fn reads(expr: &Expr) -> Reads {
    let mut reads = Reads::default();
    for node in &expr.nodes {
        match node {
            Node::Attribute(index) => reads.attributes.push(*index),
            Node::Shape(tensor) | Node::Numel(tensor) | Node::Values(tensor) => reads.shapes.push(*tensor),
            Node::Rank(tensor) => reads.ranks.push(*tensor),
            Node::Size(tensor) => reads.sizes.push(*tensor),
            Node::Device(fact) => reads.device.push(*fact),
            _ => {}
        }
    }
    for list in [&mut reads.attributes, &mut reads.shapes, &mut reads.ranks, &mut reads.sizes] {
        list.sort_unstable();
        list.dedup();
    }
    reads
}

/// Indices, each once.
#[derive(Default)]
pub(super) struct Reads {
    pub(super) attributes: Vec<u32>,
    /// Tensors whose dimensions matter, and shape inputs whose values do.
    pub(super) shapes: Vec<u32>,
    /// Tensors whose rank matters by name.
    pub(super) ranks: Vec<u32>,
    /// The size tensors whose sizes it has.
    pub(super) sizes: Vec<u32>,
    /// What it asks of the device, perhaps more than once.
    pub(super) device: Vec<DeviceFact>,
}

#[cfg(test)]
mod tests {
    use cubinder_expr::{Kind, Scope, compile, print};
    use cubinder_model::{AttributeType, Plugin};

    use super::*;

    fn scope() -> Scope {
        Scope::new().attribute("n", 0, Kind::Int).tensor("x", 0, 0, 8)
    }

    fn expr(text: &str) -> Expr {
        compile(text, &scope()).expect("it is right").expr
    }

    fn shown(expr: &Expr) -> String {
        let plugin = Plugin {
            name: String::new(),
            namespace: String::new(),
            version: String::new(),
            summary: String::new(),
            attributes: vec![cubinder_model::Attribute::new("n", AttributeType::I32)],
            inputs: vec![cubinder_model::Input {
                values: None,
                doc: String::new(),
                name: "x".to_owned(),
                rank_min: 0,
                rank_max: 8,
                limits: cubinder_model::ShapeLimits::default(),
            }],
            outputs: Vec::new(),
            require: Vec::new(),
            timing: None,
            tuning: Vec::new(),
            variants: Vec::new(),
        };
        expr.validate(1, 1).expect("it is well formed");
        print(expr, &plugin)
    }

    #[test]
    fn statements_are_well_formed() {
        let sum = expr("sum([d + n for d in x.shape])");
        let allowed = Interval { min: 0, max: 9 };
        assert_eq!(
            shown(&is_within(&sum, allowed)),
            "0 <= sum([i0 + n for i0 in x.shape]) and sum([i1 + n for i1 in x.shape]) <= 9"
        );
        let dims = expr("[d - n for d in x.shape]");
        assert_eq!(
            shown(&element_is_within(&dims, 2, allowed)),
            "len([i0 - n for i0 in x.shape]) <= 2 or 0 <= [i1 - n for i1 in x.shape][2] and [i2 - n for i2 in x.shape][2] <= 9"
        );
        assert_eq!(shown(&has_length(&expr("[n, 1]"), 2)), "len([n, 1]) == 2");
        let parts = [expr("n < 1"), expr("len([d for d in x.shape if d == 0]) > 0"), expr("n > 7")];
        let joined = joined(BinaryOp::Or, &parts).expect("there are some");
        assert_eq!(shown(&joined), "n < 1 or len([i0 for i0 in x.shape if i0 == 0]) > 0 or n > 7");
        assert_eq!(shown(&has_ranks(&[(0, 3)])), "x.rank == 3");
        assert_eq!(has_ranks(&[]), truth());
    }
}
