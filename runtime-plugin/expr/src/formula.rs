use super::{BinaryOp, Expr, Node, NodeId};
use crate::interval::Interval;

/// A list of nodes, the root last.
#[derive(Debug, Default)]
pub struct Formula {
    nodes: Vec<Node>,
    slots: u32,
}

impl Formula {
    /// Adds a node after its children.
    pub fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.last()
    }

    fn last(&self) -> NodeId {
        NodeId::try_from(self.nodes.len().saturating_sub(1)).unwrap_or(NodeId::MAX)
    }

    /// Appends a copy with fresh variables.
    pub fn copy(&mut self, expr: &Expr) -> NodeId {
        let shift = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        let slots = self.slots;
        let slot = |slot: u32| slot.saturating_add(slots);
        for node in &expr.nodes {
            let mut node = node.map_children(|id| id.saturating_add(shift));
            match &mut node {
                Node::Local(local) => *local = slot(*local),
                Node::Comprehension { slot: own, .. } => {
                    *own = slot(*own);
                    self.slots = self.slots.max(own.saturating_add(1));
                }
                _ => {}
            }
            self.nodes.push(node);
        }
        self.last()
    }

    /// Adds `min <= value and value <= max`; builds the value twice.
    pub fn within(&mut self, allowed: Interval, value: impl Fn(&mut Formula) -> NodeId) -> NodeId {
        let least = self.add(Node::Int(allowed.min));
        let low = value(self);
        let low = self.add(Node::Binary(BinaryOp::Le, least, low));
        let high = value(self);
        let most = self.add(Node::Int(allowed.max));
        let high = self.add(Node::Binary(BinaryOp::Le, high, most));
        self.add(Node::Binary(BinaryOp::And, low, high))
    }

    /// Returns the expression.
    #[must_use]
    pub fn finish(self) -> Expr {
        Expr { nodes: self.nodes }
    }
}

/// Returns `min <= value and value <= max`.
#[must_use]
pub fn is_within(value: &Expr, allowed: Interval) -> Expr {
    let mut formula = Formula::default();
    formula.within(allowed, |formula| formula.copy(value));
    formula.finish()
}

/// Joins by a left-associative operator; `None` without parts.
#[must_use]
pub fn joined<'e>(op: BinaryOp, parts: impl IntoIterator<Item = &'e Expr>) -> Option<Expr> {
    let mut formula = Formula::default();
    let mut whole: Option<NodeId> = None;
    for part in parts {
        let part = formula.copy(part);
        whole = Some(match whole {
            None => part,
            Some(left) => formula.add(Node::Binary(op, left, part)),
        });
    }
    whole.map(|_| formula.finish())
}
