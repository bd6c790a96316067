use super::symbol::{Number, Symbol};
use super::{FLOATS, LENGTH, Lowered, Lowerer, Num, ShapeBuilder, ShapeOp, Sym};
use crate::node::{Builtin, NodeId};
use crate::ops::{self, EvalError};
use crate::print::{Anonymous, print_node};
use crate::value::Value;

impl<B: ShapeBuilder> Lowerer<'_, B> {
    /// Sums elements times whether their index matches.
    pub(super) fn pick(
        &mut self,
        id: NodeId,
        items: &[Sym<B>],
        index: &B::Dim,
        from_end: bool,
        default: Option<Sym<B>>,
    ) -> Lowered<B> {
        let len = i64::try_from(items.len()).map_err(|_| EvalError::Malformed)?;
        let booleans = items.iter().chain(&default).all(|item| item.bool().is_some()) && !items.is_empty();
        let (mut total, mut chosen) = (Number::Known(0), Number::Known(0));
        for (position, item) in (0..len).zip(items) {
            let item = self.picked(id, item)?;
            let mut here =
                self.operation(ShapeOp::Equal, Number::Dim(index.clone()), Number::Known(position))?;
            if from_end {
                let end = Number::Known(position - len);
                let also = self.operation(ShapeOp::Equal, Number::Dim(index.clone()), end)?;
                here = self.operation(ShapeOp::Sum, here, also)?;
            }
            let item = self.operation(ShapeOp::Prod, here.clone(), item)?;
            total = self.operation(ShapeOp::Sum, total, item)?;
            chosen = self.operation(ShapeOp::Sum, chosen, here)?;
        }
        if let Some(default) = default {
            let default = self.picked(id, &default)?;
            let missing = self.not(chosen)?;
            let default = self.operation(ShapeOp::Prod, missing, default)?;
            total = self.operation(ShapeOp::Sum, total, default)?;
        } else if items.is_empty() {
            return Err(EvalError::IndexOutOfRange { index: 0, len: 0 }.into());
        }
        Ok(if booleans { Symbol::from_bool(total) } else { Symbol::from_int(total) })
    }

    fn picked(&self, id: NodeId, item: &Sym<B>) -> Lowered<B, Num<B>> {
        let number = item.int().or_else(|| item.bool());
        number.ok_or_else(|| self.unsupported(id, "a shape can select only integers and booleans"))
    }

    pub(super) fn call(&mut self, id: NodeId, builtin: Builtin, args: &[NodeId]) -> Lowered<B> {
        let args = self.nodes(args)?;
        if let Some(args) = Symbol::all_known(&args) {
            return self.charged(Symbol::Known(ops::call(builtin, &args)?));
        }
        self.residual_call(id, builtin, &args)
    }

    fn residual_call(&mut self, id: NodeId, builtin: Builtin, args: &[Sym<B>]) -> Lowered<B> {
        match (builtin, args) {
            (Builtin::Min | Builtin::Max | Builtin::Sum | Builtin::Prod, [array]) => {
                let items = self.items(id, array.clone(), "its argument is not an array")?;
                self.reduce(id, builtin, &items)
            }
            (Builtin::Min | Builtin::Max, items) => self.reduce(id, builtin, items),
            (Builtin::Abs, [value]) => {
                let Some(number) = value.int() else { return Err(self.unsupported(id, FLOATS)) };
                let negative = self.operation(ShapeOp::Sub, Number::Known(0), number.clone())?;
                self.operation(ShapeOp::Max, number, negative).map(Symbol::from_int)
            }
            (Builtin::CeilDiv, [a, b]) => match (a.int(), b.int()) {
                (Some(a), Some(b)) => self.divide(id, ShapeOp::CeilDiv, a, b).map(Symbol::from_int),
                _ => Err(self.unsupported(id, FLOATS)),
            },
            (Builtin::Len, [Symbol::Array(items)]) => {
                let len = i64::try_from(items.len()).map_err(|_| EvalError::Malformed)?;
                Ok(Symbol::Known(Value::Int(len)))
            }
            (Builtin::Get, [array, index, default]) => {
                let items = self.items(id, array.clone(), "its argument is not an array")?;
                match index {
                    Symbol::Known(Value::Int(index)) => {
                        let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
                        Ok(item.unwrap_or(default).clone())
                    }
                    Symbol::Int(index) => self.pick(id, &items, index, false, Some(default.clone())),
                    _ => Err(self.unsupported(id, "its index is not an integer")),
                }
            }
            (Builtin::Range, _) => Err(self.unsupported(id, LENGTH)),
            (Builtin::Int, [value @ Symbol::Int(_)]) => Ok(value.clone()),
            _ => Err(self.unsupported(id, FLOATS)),
        }
    }

    fn reduce(&mut self, id: NodeId, builtin: Builtin, items: &[Sym<B>]) -> Lowered<B> {
        let (op, start) = match builtin {
            Builtin::Min => (ShapeOp::Min, None),
            Builtin::Max => (ShapeOp::Max, None),
            Builtin::Sum => (ShapeOp::Sum, Some(Number::Known(0))),
            _ => (ShapeOp::Prod, Some(Number::Known(1))),
        };
        let mut total = start;
        for item in items {
            let Some(item) = item.int() else { return Err(self.unsupported(id, FLOATS)) };
            total = Some(match total {
                Some(total) => self.operation(op, total, item)?,
                None => item,
            });
        }
        match total {
            Some(total) => Ok(Symbol::from_int(total)),
            None => Err(EvalError::Undefined(print_node(self.expr, id, &Anonymous)).into()),
        }
    }
}
