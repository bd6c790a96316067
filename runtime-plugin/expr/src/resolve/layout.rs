use super::errors::FormatUnknown;
use super::types::Type;
use super::{Operand, Resolver};
use crate::error::Span;
use crate::format::Format;
use crate::node::{BinaryOp, Builtin, Node, NodeId};

impl Resolver<'_> {
    pub(super) fn layout(&mut self, tensor: u32, field: &str, name_span: &Span, span: &Span) -> Operand {
        let Some(format) = self.scope.format(tensor) else {
            return self.reject(FormatUnknown { field }.with_span(name_span), span);
        };
        match field {
            "format" => self.emit(Node::Str(format.name().to_owned()), Type::Str, span),
            "vector" => self.emit(Node::Int(format.vector()), Type::Int, span),
            _ => self.padded(tensor, format, span),
        }
    }

    fn padded(&mut self, tensor: u32, format: Format, span: &Span) -> Operand {
        let ints = Type::array(Type::Int);
        if format.vector() == 1 {
            return self.emit(Node::Shape(tensor), ints, span);
        }
        let from_end = i64::try_from(format.channel_from_end()).unwrap_or(i64::MAX);
        if let Some((least, most)) = self.scope.ranks(tensor).filter(|(least, most)| least == most) {
            let channel = i64::from(least) - from_end;
            let items = (0..i64::from(most)).map(|axis| {
                let index = self.int(axis, span);
                let extent = self.extent(tensor, index, span);
                if axis == channel { self.whole_vectors(extent, format, span) } else { extent }
            });
            let items: Vec<NodeId> = items.collect();
            return self.emit(Node::Array(items), ints, span);
        }
        // [... if axis == x.rank - 3 else x.shape[axis] for axis in range(x.rank)]
        let slot = self.slot();
        let rank = self.emit(Node::Rank(tensor), Type::Int, span).id;
        let over = self.emit(Node::Call(Builtin::Range, vec![rank]), ints.clone(), span).id;
        let axis = self.emit(Node::Local(slot), Type::Int, span).id;
        let rank = self.emit(Node::Rank(tensor), Type::Int, span).id;
        let from_end = self.int(from_end, span);
        let channel = self.emit(Node::Binary(BinaryOp::Sub, rank, from_end), Type::Int, span).id;
        let condition = self.emit(Node::Binary(BinaryOp::Eq, axis, channel), Type::Bool, span).id;
        let axis = self.emit(Node::Local(slot), Type::Int, span).id;
        let extent = self.extent(tensor, axis, span);
        let then = self.whole_vectors(extent, format, span);
        let axis = self.emit(Node::Local(slot), Type::Int, span).id;
        let otherwise = self.extent(tensor, axis, span);
        let body = self.emit(Node::Conditional { condition, then, otherwise }, Type::Int, span).id;
        self.emit(Node::Comprehension { slot, over, condition: None, body }, ints, span)
    }

    fn int(&mut self, value: i64, span: &Span) -> NodeId {
        self.emit(Node::Int(value), Type::Int, span).id
    }

    fn extent(&mut self, tensor: u32, index: NodeId, span: &Span) -> NodeId {
        let array = self.emit(Node::Shape(tensor), Type::array(Type::Int), span).id;
        self.emit(Node::Index { array, index }, Type::Int, span).id
    }

    fn whole_vectors(&mut self, channels: NodeId, format: Format, span: &Span) -> NodeId {
        let vector = self.int(format.vector(), span);
        let vectors = self.emit(Node::Call(Builtin::CeilDiv, vec![channels, vector]), Type::Int, span).id;
        let vector = self.int(format.vector(), span);
        self.emit(Node::Binary(BinaryOp::Mul, vectors, vector), Type::Int, span).id
    }
}
