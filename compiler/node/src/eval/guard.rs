//! Explains a guard's result by its deciding comparisons.

use cubinder_expr as expr;
use cubinder_expr::Value;
use cubinder_expr::{BinaryOp, Environment, Expr, Names, Node, NodeId, UnaryOp};
use cubinder_launch::Steps;
use serde::Serialize;

/// Deciding part of a guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Part, with constants replaced by their values.
    pub text: String,
    /// Result: `false: 2 == 0`.
    pub found: String,
}

/// Bounds the work for untrusted models.
const MOST_PARTS: usize = 64;

/// Returns the parts that decide a boolean. `alignment` maps tensors.
#[must_use]
pub fn reasons(
    expr: &Expr,
    environment: &dyn Environment,
    names: &dyn Names,
    alignment: &dyn Fn(u32) -> Option<u64>,
    steps: &mut Steps,
) -> Vec<Reason> {
    let mut walk = Walk { expr, environment, names, alignment, steps, left: MOST_PARTS, found: Vec::new() };
    if let Some(root) = expr.nodes.len().checked_sub(1).and_then(|root| NodeId::try_from(root).ok()) {
        walk.part(root);
    }
    walk.found
}

struct Walk<'a> {
    expr: &'a Expr,
    environment: &'a dyn Environment,
    names: &'a dyn Names,
    alignment: &'a dyn Fn(u32) -> Option<u64>,
    steps: &'a mut Steps,
    left: usize,
    found: Vec<Reason>,
}

impl Walk<'_> {
    fn part(&mut self, id: NodeId) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        let expr = self.expr;
        match expr.nodes.get(id as usize) {
            Some(Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right)) => {
                // `false and`, `true or` decide alone.
                let decides = Value::Bool(*op == BinaryOp::Or);
                let alone = |found: &Result<Value, expr::EvalError>| {
                    found.as_ref().map_or(true, |value| *value == decides)
                };
                if alone(&self.value(*left)) {
                    self.part(*left);
                } else if alone(&self.value(*right)) {
                    self.part(*right);
                } else {
                    self.part(*left);
                    self.part(*right);
                }
            }
            Some(Node::Unary(UnaryOp::Not, operand)) => self.part(*operand),
            Some(node) => {
                let found = match self.value(id) {
                    Ok(value) => self.detail(node, &value),
                    Err(error) => format!("undefined: {}", self.steps.why(&error)),
                };
                self.found.push(Reason { text: expr::print_node(expr, id, self.names), found });
            }
            None => {}
        }
    }

    fn detail(&mut self, node: &Node, value: &Value) -> String {
        match node {
            Node::Binary(op, left, right) => match (self.value(*left), self.value(*right)) {
                (Ok(left), Ok(right)) => format!("{value}: {left} {} {right}", op.symbol()),
                _ => value.to_string(),
            },
            Node::Aligned { tensor, .. } => match (self.names.tensor(*tensor), (self.alignment)(*tensor)) {
                (Some(name), Some(bytes)) => format!("{value}: {name} is aligned to {bytes} bytes"),
                _ => value.to_string(),
            },
            _ => value.to_string(),
        }
    }

    fn value(&mut self, id: NodeId) -> Result<Value, expr::EvalError> {
        let nodes = self.expr.nodes.get(..=id as usize).ok_or(expr::EvalError::Malformed)?;
        self.steps.charge(nodes.len())?;
        self.steps.value(&Expr { nodes: nodes.to_vec() }, self.environment)
    }
}

#[cfg(test)]
mod tests {
    use cubinder_launch::Facts;

    use super::*;

    struct Named;

    impl Names for Named {
        fn attribute(&self, _: u32) -> Option<&str> {
            Some("k")
        }
        fn tensor(&self, _: u32) -> Option<&str> {
            Some("x")
        }
    }

    fn explain(nodes: Vec<Node>) -> Vec<String> {
        let facts =
            Facts { attributes: &[Value::Int(3)], shapes: &[&[2, 6]], alignments: &[8], ..Facts::default() };
        let found = reasons(&Expr { nodes }, &facts, &Named, &|_| Some(8), &mut Steps::default());
        found.into_iter().map(|reason| format!("{} is {}", reason.text, reason.found)).collect()
    }

    fn divides(nodes: &mut Vec<Node>, by: i64) -> NodeId {
        let start = nodes.len() as NodeId;
        nodes.extend([
            Node::Numel(0),
            Node::Int(by),
            Node::Binary(BinaryOp::Mod, start, start + 1),
            Node::Int(0),
            Node::Binary(BinaryOp::Eq, start + 2, start + 3),
        ]);
        start + 4
    }

    #[test]
    fn the_conjunct_that_fails_is_named() {
        let mut nodes = Vec::new();
        let three = divides(&mut nodes, 3);
        let eight = divides(&mut nodes, 8);
        nodes.push(Node::Binary(BinaryOp::And, three, eight));
        assert_eq!(explain(nodes), ["numel(x) % 8 == 0 is false: 4 == 0"]);
    }

    #[test]
    fn where_both_sides_decide_both_are_named() {
        let mut nodes = Vec::new();
        let five = divides(&mut nodes, 5);
        nodes.push(Node::Aligned { tensor: 0, bytes: 16 });
        nodes.push(Node::Binary(BinaryOp::Or, five, five + 1));
        let expected =
            ["numel(x) % 5 == 0 is false: 2 == 0", "aligned(x, 16) is false: x is aligned to 8 bytes"];
        assert_eq!(explain(nodes.clone()), expected);
        let root = nodes.len() as NodeId - 1;
        nodes.push(Node::Unary(UnaryOp::Not, root));
        assert_eq!(explain(nodes), expected);
    }

    #[test]
    fn what_has_no_value_says_why() {
        let nodes = vec![
            Node::Int(1),
            Node::Int(0),
            Node::Binary(BinaryOp::FloorDiv, 0, 1),
            Node::Int(1),
            Node::Binary(BinaryOp::Eq, 2, 3),
        ];
        assert_eq!(explain(nodes), ["1 // 0 == 1 is undefined: division by zero: 1 // 0"]);
        assert!(explain(vec![]).is_empty());
    }

    #[test]
    fn shared_parts_take_no_time() {
        let mut nodes = vec![Node::Bool(true)];
        for index in 0..12 {
            nodes.push(Node::Binary(BinaryOp::And, index, index));
        }
        assert!(explain(nodes).len() <= MOST_PARTS);
    }

    #[test]
    fn many_guards_take_no_longer_than_their_steps() {
        let mut nodes = vec![Node::Int(1); 16_000];
        nodes.push(Node::Array((0..16_000).collect()));
        nodes.push(Node::Call(expr::Builtin::Len, vec![16_000]));
        nodes.push(Node::Binary(BinaryOp::Eq, 16_001, 0));
        let guard = Expr { nodes };
        let mut steps = Steps::default();
        let mut last = Vec::new();
        for _ in 0..200 {
            last = reasons(&guard, &Facts::default(), &Named, &|_| None, &mut steps);
        }
        assert!(
            last[0]
                .found
                .starts_with("undefined: the expressions of the node exceed 8000000 evaluation steps"),
            "{last:?}"
        );
    }
}
