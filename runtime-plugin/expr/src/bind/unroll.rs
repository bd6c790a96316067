use super::write::LITERAL_LIMIT;
use super::{Binding, Fold, Folder, Part};
use crate::node::{Node, NodeId};
use crate::value::Value;

const UNROLL_LIMIT: usize = 1024;

impl Folder<'_> {
    pub(super) fn comprehension(
        &mut self,
        slot: u32,
        over: NodeId,
        condition: Option<NodeId>,
        body: NodeId,
    ) -> Fold<Part> {
        let over = self.part(over)?;
        if let Part::Known(Value::Array(items), source) = &over {
            let marks = (self.out.len(), self.slots, self.failures.len());
            self.unrolling += 1;
            let unrolled = self.unroll(slot, items, condition, body, *source);
            self.unrolling -= 1;
            if let Ok(Some(part)) = unrolled {
                return Ok(part);
            }
            self.out.truncate(marks.0);
            self.heights.truncate(marks.0);
            self.slots = marks.1;
            self.failures.truncate(marks.2);
        }
        let over = self.emitted(over)?;
        let new = self.new_slot();
        self.locals.push((slot, Binding::Slot(new)));
        let inside = self.lazily(|folder| {
            let condition = match condition {
                Some(condition) => {
                    let part = folder.part(condition)?;
                    Some(folder.emitted(part)?)
                }
                None => None,
            };
            let body = folder.part(body)?;
            Ok((condition, folder.emitted(body)?))
        });
        self.locals.pop();
        let (condition, body) = inside?;
        self.emit(Node::Comprehension { slot: new, over, condition, body })
    }

    fn unroll(
        &mut self,
        slot: u32,
        items: &[Value],
        condition: Option<NodeId>,
        body: NodeId,
        source: NodeId,
    ) -> Fold<Option<Part>> {
        let start = self.out.len();
        let mut parts = Vec::new();
        for item in items {
            if !self.afford(item) {
                return Ok(None);
            }
            self.locals.push((slot, Binding::Element(item.clone())));
            let part = self.element(condition, body);
            self.locals.pop();
            match part? {
                Element::Kept(part) => parts.push(part),
                Element::LeftOut => {}
                Element::Undecided => return Ok(None),
            }
            if self.out.len() - start > UNROLL_LIMIT {
                return Ok(None);
            }
        }
        let values = parts.iter().map(|part| match part {
            Part::Known(value, _) => Some(value.clone()),
            Part::Node(_) => None,
        });
        if let Some(values) = values.collect() {
            let value = Value::Array(values);
            // Longer values would be copied from a source that is not closed here.
            let small = value.nodes(LITERAL_LIMIT) <= LITERAL_LIMIT;
            return Ok(small.then_some(Part::Known(value, source)));
        }
        let mut ids = Vec::with_capacity(parts.len());
        for part in parts {
            // The element's variable is out of scope.
            ids.push(match part {
                Part::Node(id) => id,
                Part::Known(value, _) if value.nodes(UNROLL_LIMIT) <= UNROLL_LIMIT => self.literal(value)?,
                Part::Known(..) => return Ok(None),
            });
        }
        if self.out.len() - start > UNROLL_LIMIT {
            return Ok(None);
        }
        self.emit(Node::Array(ids)).map(Some)
    }

    fn element(&mut self, condition: Option<NodeId>, body: NodeId) -> Fold<Element> {
        if let Some(condition) = condition {
            match self.part(condition)? {
                Part::Known(Value::Bool(true), _) => {}
                Part::Known(Value::Bool(false), _) => return Ok(Element::LeftOut),
                _ => return Ok(Element::Undecided),
            }
        }
        self.part(body).map(Element::Kept)
    }
}

enum Element {
    Kept(Part),
    LeftOut,
    Undecided,
}
