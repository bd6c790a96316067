//! Writing the folded tree: nodes, values as literals, and parts of the source as they are.
//!
//! Owns the limits of what is written. Never folds anything.

use super::{Binding, Fold, Folder, Part, TooLarge};
use crate::node::{Expr, Node, NodeId};
use crate::value::Value;

/// The largest value that is written out as literals, in nodes: a longer one stays the expression that makes it.
pub(super) const LITERAL_LIMIT: usize = 1024;

impl Folder<'_> {
    /// Adds a node to the output.
    pub(super) fn emit(&mut self, node: Node) -> Fold<Part> {
        let mut height = 1;
        node.children(&mut |child| {
            height = height.max(1 + self.heights.get(child as usize).copied().unwrap_or(0));
        });
        if height > Expr::DEPTH_LIMIT || self.out.len() >= Expr::NODE_LIMIT {
            return Err(TooLarge);
        }
        let id = NodeId::try_from(self.out.len()).map_err(|_| TooLarge)?;
        self.out.push(node);
        self.heights.push(height);
        Ok(Part::Node(id))
    }

    /// The output node of a part; a known value becomes a literal.
    pub(super) fn emitted(&mut self, part: Part) -> Fold<NodeId> {
        match part {
            Part::Node(id) => Ok(id),
            Part::Known(value, source) => {
                if nodes_of(&value, LITERAL_LIMIT) <= LITERAL_LIMIT {
                    self.literal(value)
                } else {
                    self.written(source)
                }
            }
        }
    }

    fn emit_id(&mut self, node: Node) -> Fold<NodeId> {
        match self.emit(node)? {
            Part::Node(id) | Part::Known(_, id) => Ok(id),
        }
    }

    pub(super) fn literal(&mut self, value: Value) -> Fold<NodeId> {
        let node = match value {
            Value::Int(value) => Node::Int(value),
            Value::Float(value) => Node::Float(value),
            Value::Bool(value) => Node::Bool(value),
            Value::Str(value) => Node::Str(value),
            Value::Array(items) => {
                let items =
                    items.into_iter().map(|item| self.literal(item)).collect::<Fold<Vec<NodeId>>>()?;
                Node::Array(items)
            }
        };
        self.emit_id(node)
    }

    /// Writes a value that is too long for literals as the operation that makes it, on folded operands.
    fn written(&mut self, id: NodeId) -> Fold<NodeId> {
        let source = self.source;
        let operands: &[NodeId] = match source.get(id as usize).ok_or(TooLarge)? {
            Node::Array(items) | Node::Call(_, items) => items,
            Node::Index { array, index } => &[*array, *index],
            _ => return self.verbatim(id),
        };
        let mut parts = Vec::with_capacity(operands.len());
        for &operand in operands {
            parts.push(self.part(operand)?);
        }
        let ids = parts.into_iter().map(|part| self.emitted(part)).collect::<Fold<Vec<NodeId>>>()?;
        let node = match (source.get(id as usize), ids.as_slice()) {
            (Some(Node::Call(builtin, _)), _) => Node::Call(*builtin, ids),
            (Some(Node::Index { .. }), &[array, index]) => Node::Index { array, index },
            _ => Node::Array(ids),
        };
        self.emit_id(node)
    }

    /// Copies a part of the source as it is, except that variables which are bound to elements become literals.
    pub(super) fn verbatim(&mut self, id: NodeId) -> Fold<NodeId> {
        self.fuel = self.fuel.saturating_sub(1);
        if self.unrolling > 0 && self.fuel == 0 {
            return Err(TooLarge);
        }
        let source = self.source;
        let node = match source.get(id as usize).ok_or(TooLarge)? {
            Node::Local(slot) => match self.binding(*slot) {
                Some(Binding::Element(value)) => {
                    let value = value.clone();
                    if nodes_of(&value, LITERAL_LIMIT) > LITERAL_LIMIT {
                        return Err(TooLarge);
                    }
                    return self.literal(value);
                }
                Some(&Binding::Slot(slot)) => Node::Local(slot),
                None => return Err(TooLarge),
            },
            Node::Array(items) => Node::Array(self.verbatims(items)?),
            Node::Call(builtin, args) => Node::Call(*builtin, self.verbatims(args)?),
            Node::Unary(op, operand) => Node::Unary(*op, self.verbatim(*operand)?),
            Node::Binary(op, left, right) => Node::Binary(*op, self.verbatim(*left)?, self.verbatim(*right)?),
            Node::Conditional { condition, then, otherwise } => Node::Conditional {
                condition: self.verbatim(*condition)?,
                then: self.verbatim(*then)?,
                otherwise: self.verbatim(*otherwise)?,
            },
            Node::Index { array, index } => {
                Node::Index { array: self.verbatim(*array)?, index: self.verbatim(*index)? }
            }
            Node::Comprehension { slot, over, condition, body } => {
                let over = self.verbatim(*over)?;
                let new = self.new_slot();
                self.locals.push((*slot, Binding::Slot(new)));
                let condition = condition.map(|condition| self.verbatim(condition)).transpose();
                let body = condition.and_then(|condition| Ok((condition, self.verbatim(*body)?)));
                self.locals.pop();
                let (condition, body) = body?;
                Node::Comprehension { slot: new, over, condition, body }
            }
            leaf => leaf.clone(),
        };
        self.emit_id(node)
    }

    fn verbatims(&mut self, items: &[NodeId]) -> Fold<Vec<NodeId>> {
        items.iter().map(|&item| self.verbatim(item)).collect()
    }

    pub(super) fn new_slot(&mut self) -> u32 {
        let slot = self.slots;
        self.slots += 1;
        slot
    }
}

/// How many nodes write `value` out, as far as `limit`.
pub(super) fn nodes_of(value: &Value, limit: usize) -> usize {
    match value {
        Value::Array(items) if items.len() > limit => items.len(),
        Value::Array(items) => {
            items.iter().fold(1_usize, |total, item| total.saturating_add(nodes_of(item, limit)))
        }
        _ => 1,
    }
}

/// What a copy of `value` costs, as far as `limit`: one for each element, and one for 16 bytes of text.
pub(super) fn cost_of(value: &Value, limit: usize) -> usize {
    match value {
        Value::Array(items) if items.len() > limit => items.len(),
        Value::Array(items) => {
            items.iter().fold(1_usize, |total, item| total.saturating_add(cost_of(item, limit)))
        }
        Value::Str(text) => 1 + text.len() / 16,
        _ => 1,
    }
}
