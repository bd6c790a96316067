//! Finds parts that are always evaluated and always fail.

use super::{Folder, Part};
use crate::node::{BinaryOp, Builtin, Node, NodeId, level};
use crate::ops::{self, EvalError};
use crate::print;
use crate::value::Value;

const SHOWN: usize = 40;

impl Folder<'_> {
    pub(super) fn failed(&mut self, id: NodeId, error: EvalError) {
        const KEPT: usize = 16;
        if self.lazy == 0 && self.failures.len() < KEPT {
            self.failures.push((id, error));
        }
    }

    pub(super) fn check_hopeless(&mut self, id: NodeId, parts: &[Part]) {
        if self.lazy > 0 {
            return;
        }
        let error = match (self.source.get(id as usize), parts) {
            (
                Some(Node::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::Div), ..)),
                [dividend, divisor],
            ) if is_zero(divisor) => {
                let dividend = self.shown(dividend, level::MULTIPLIED);
                let zero = if *op == BinaryOp::Div { "0.0" } else { "0" };
                Some(EvalError::DivisionByZero(format!("{dividend} {} {zero}", op.symbol())))
            }
            (Some(Node::Call(Builtin::CeilDiv, _)), [dividend, divisor]) if is_zero(divisor) => {
                let dividend = self.shown(dividend, level::LOOSEST);
                Some(EvalError::DivisionByZero(format!("ceil_div({dividend}, 0)")))
            }
            (Some(Node::Index { .. }), [array, index]) => self.beyond(array, index),
            _ => None,
        };
        if let Some(error) = error {
            self.failed(id, error);
        }
    }

    fn beyond(&self, array: &Part, index: &Part) -> Option<EvalError> {
        let len = match array {
            Part::Known(Value::Array(items), _) => items.len(),
            Part::Known(..) => return None,
            Part::Node(array) => match self.out.get(*array as usize)? {
                Node::Array(items) => items.len(),
                Node::Shape(tensor) => self.facts.ranks(*tensor)?.1,
                _ => return None,
            },
        };
        match index {
            Part::Known(Value::Int(index), _) if ops::position(len, *index).is_none() => {
                Some(EvalError::IndexOutOfRange { index: *index, len })
            }
            Part::Node(_) if len == 0 => {
                let (array, index) = (self.shown(array, level::PRIMARY), self.shown(index, level::LOOSEST));
                Some(EvalError::Undefined(format!("{array}[{index}], an element of an empty array,")))
            }
            _ => None,
        }
    }

    fn shown(&self, part: &Part, loosest: u8) -> String {
        let text = match part {
            Part::Known(value, _) => value.to_string(),
            Part::Node(id) => print::print_part(&self.out, *id, self.facts.names(), loosest),
        };
        match text.char_indices().nth(SHOWN) {
            Some(_) => "...".to_owned(),
            None => text,
        }
    }
}

fn is_zero(part: &Part) -> bool {
    match part {
        Part::Known(Value::Int(value), _) => *value == 0,
        Part::Known(Value::Float(value), _) => *value == 0.0,
        _ => false,
    }
}
