use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use cubinder_expr::{BinaryOp, Builtin, DeviceFact, Expr, Formula, Interval, Node, UnaryOp, Value};
pub(super) use cubinder_expr::{is_within, joined};

pub(super) fn truth() -> Expr {
    Expr { nodes: vec![Node::Bool(true)] }
}

pub(super) fn int(value: i64) -> Expr {
    Expr { nodes: vec![Node::Int(value)] }
}

pub(super) fn device(fact: DeviceFact) -> Expr {
    Expr { nodes: vec![Node::Device(fact)] }
}

pub(super) fn binary(op: BinaryOp, left: &Expr, right: &Expr) -> Expr {
    let mut formula = Formula::default();
    let (left, right) = (formula.copy(left), formula.copy(right));
    formula.add(Node::Binary(op, left, right));
    formula.finish()
}

pub(super) fn element_is_within(array: &Expr, index: usize, allowed: Interval) -> Expr {
    let index = int(i64::try_from(index).unwrap_or(i64::MAX));
    let mut formula = Formula::default();
    let (copy, position) = (formula.copy(array), formula.copy(&index));
    formula.add(Node::Index { array: copy, index: position });
    let is_short = binary(BinaryOp::Le, &length(array), &index);
    binary(BinaryOp::Or, &is_short, &is_within(&formula.finish(), allowed))
}

/// Builds `value == value`.
pub(super) fn is_there(value: &Expr) -> Expr {
    binary(BinaryOp::Eq, value, value)
}

pub(super) fn is_positive(value: &Expr) -> Expr {
    binary(BinaryOp::Gt, value, &int(0))
}

/// Builds `value <= most or most < 0`.
pub(super) fn is_at_most(value: &Expr, most: &Expr) -> Expr {
    binary(BinaryOp::Or, &binary(BinaryOp::Le, value, most), &binary(BinaryOp::Lt, most, &int(0)))
}

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

pub(super) fn rank(tensor: u32, op: BinaryOp, rank: i64) -> Expr {
    Expr { nodes: vec![Node::Rank(tensor), Node::Int(rank), Node::Binary(op, 0, 1)] }
}

pub(super) fn is_multiple(value: &Expr, divisor: &Expr) -> Expr {
    binary(BinaryOp::Eq, &binary(BinaryOp::Mod, value, divisor), &int(0))
}

pub(super) fn divides(expr: &Expr) -> bool {
    expr.nodes.iter().any(|node| matches!(node, Node::Binary(BinaryOp::FloorDiv, ..)))
}

pub(super) fn length(array: &Expr) -> Expr {
    let mut formula = Formula::default();
    let array = formula.copy(array);
    formula.add(Node::Call(Builtin::Len, vec![array]));
    formula.finish()
}

pub(super) fn has_ranks(ranks: &[(u32, u8)]) -> Expr {
    let equal = |(tensor, of): &(u32, u8)| rank(*tensor, BinaryOp::Eq, i64::from(*of));
    joined(BinaryOp::And, &ranks.iter().map(equal).collect::<Vec<Expr>>()).unwrap_or_else(truth)
}

#[derive(Clone, PartialEq)]
pub(super) struct ExprKey<'e>(pub(super) Vec<&'e Expr>);

impl<'e> From<&'e [Expr]> for ExprKey<'e> {
    fn from(expressions: &'e [Expr]) -> ExprKey<'e> {
        ExprKey(expressions.iter().collect())
    }
}

impl Eq for ExprKey<'_> {}

impl Hash for ExprKey<'_> {
    /// These parts distinguish most expressions.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for node in self.0.iter().flat_map(|expr| &expr.nodes) {
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
}

pub(super) fn reads(expr: &Expr) -> Reads {
    let mut reads = Reads::default();
    for node in &expr.nodes {
        match node {
            Node::Attribute(index) => _ = reads.attributes.insert(*index),
            Node::Shape(index) | Node::Numel(index) | Node::Values(index) => _ = reads.shapes.insert(*index),
            Node::Rank(index) => _ = reads.ranks.insert(*index),
            Node::Size(index) => _ = reads.sizes.insert(*index),
            Node::Device(fact) => _ = reads.device.insert(*fact),
            _ => {}
        }
    }
    reads
}

#[derive(Default, PartialEq)]
pub(super) struct Reads {
    pub(super) attributes: BTreeSet<u32>,
    /// Tensors with relevant dimensions or values.
    pub(super) shapes: BTreeSet<u32>,
    pub(super) ranks: BTreeSet<u32>,
    pub(super) sizes: BTreeSet<u32>,
    pub(super) device: BTreeSet<DeviceFact>,
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
        compile(text, &scope()).expect("valid expression").expr
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
        expr.validate(1, 1).expect("well-formed expression");
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
        assert_eq!(shown(&length(&expr("[n, 1]"))), "len([n, 1])");
        let parts = [expr("n < 1"), expr("len([d for d in x.shape if d == 0]) > 0"), expr("n > 7")];
        let joined = joined(BinaryOp::Or, &parts).expect("parts are not empty");
        assert_eq!(shown(&joined), "n < 1 or len([i0 for i0 in x.shape if i0 == 0]) > 0 or n > 7");
        assert_eq!(shown(&has_ranks(&[(0, 3)])), "x.rank == 3");
        assert_eq!(has_ranks(&[]), truth());
    }
}
