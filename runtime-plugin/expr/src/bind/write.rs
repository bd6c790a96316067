use super::{Binding, Fold, Folder, Part, TooLarge};
use crate::node::{Expr, Node, NodeId, height_of};
use crate::value::Value;

pub(super) const LITERAL_LIMIT: usize = 1024;

impl Folder<'_> {
    pub(super) fn emit(&mut self, node: Node) -> Fold<Part> {
        let height = height_of(&node, &self.heights);
        if height > Expr::DEPTH_LIMIT || self.out.len() >= Expr::NODE_LIMIT {
            return Err(TooLarge);
        }
        let id = NodeId::try_from(self.out.len()).map_err(|_| TooLarge)?;
        self.out.push(node);
        self.heights.push(height);
        Ok(Part::Node(id))
    }

    pub(super) fn emitted(&mut self, part: Part) -> Fold<NodeId> {
        match part {
            Part::Node(id) => Ok(id),
            Part::Known(value, source) => {
                if value.nodes(LITERAL_LIMIT) <= LITERAL_LIMIT {
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

    fn written(&mut self, id: NodeId) -> Fold<NodeId> {
        let node = self.source.get(id as usize).ok_or(TooLarge)?;
        if !matches!(node, Node::Array(_) | Node::Call(..) | Node::Index { .. }) {
            return self.verbatim(id);
        }
        let mut parts = Vec::new();
        for operand in node.children() {
            parts.push(self.part(operand)?);
        }
        let ids = parts.into_iter().map(|part| self.emitted(part)).collect::<Fold<Vec<NodeId>>>()?;
        self.emit_id(node.with_children(ids))
    }

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
                    if value.nodes(LITERAL_LIMIT) > LITERAL_LIMIT {
                        return Err(TooLarge);
                    }
                    return self.literal(value);
                }
                Some(&Binding::Slot(slot)) => Node::Local(slot),
                None => return Err(TooLarge),
            },
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
            node => {
                let mut children = Vec::new();
                for child in node.children() {
                    children.push(self.verbatim(child)?);
                }
                node.with_children(children)
            }
        };
        self.emit_id(node)
    }

    pub(super) fn new_slot(&mut self) -> u32 {
        let slot = self.slots;
        self.slots += 1;
        slot
    }
}
