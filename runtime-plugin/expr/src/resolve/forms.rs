//! Forms (`numel`, `sizeof`, `aligned`): arguments name tensors, types or parameters.

use super::calls::wrong_count;
use super::errors::{AddressOutsideGuard, AlignmentTooSlow, AlwaysFails, HostAddress, LateAlignment};
use super::errors::{LessThanAByte, NotATensor, NotAType, NotAnAlignment, UnknownType};
use super::types::Type;
use super::{Operand, Resolver, ScopeFacts};
use crate::data_type::DataType;
use crate::error::ExprError;
use crate::error::Span;
use crate::eval;
use crate::node::{Expr, Node};
use crate::ops::EvalError;
use crate::scope::{Entity, TensorKind};
use crate::syntax::{Syntax, SyntaxKind};
use crate::value::Value;

enum Named {
    Tensor(u32, TensorKind),
    Anything,
    /// Not a tensor; already reported.
    Wrong,
}

impl Resolver<'_> {
    fn tensor_named(&mut self, form: &str, arg: &Syntax, help: Option<&str>) -> Named {
        if let SyntaxKind::Name(name) = &arg.kind {
            if let Some(Entity::Tensor { index, kind, .. }) = self.entity(name) {
                return Named::Tensor(index, kind);
            }
            if self.is_anything(name) {
                return Named::Anything;
            }
        }
        let before = self.errors.len();
        let value = self.value(arg);
        if self.errors.len() == before {
            let error = NotATensor { form, found: value.ty }.with_span(&arg.span);
            self.error(ExprError { help: help.map(str::to_owned), ..error });
        }
        Named::Wrong
    }

    pub(super) fn numel(&mut self, args: &[Syntax], span: &Span) -> Operand {
        let [arg] = args else {
            return self.reject(wrong_count("numel", (1, 1), args.len(), "`numel(x)`", span), span);
        };
        let help = "use `len(a)` for the length of an array, `prod(a)` for the product of its elements";
        match self.tensor_named("numel", arg, Some(help)) {
            Named::Tensor(index, TensorKind::DataDependent) => self.shape_of_data(index, Type::Int, span),
            Named::Tensor(index, TensorKind::UnseenShapeInput) => self.unseen(index, Type::Int, span),
            Named::Tensor(index, _) => self.emit(Node::Numel(index), Type::Int, span),
            Named::Anything => self.anything(Type::Int, span),
            Named::Wrong => self.nothing(span),
        }
    }

    pub(super) fn size_of(&mut self, args: &[Syntax], span: &Span) -> Operand {
        let [arg] = args else {
            return self.reject(wrong_count("sizeof", (1, 1), args.len(), "`sizeof(T)`", span), span);
        };
        if let SyntaxKind::Name(name) = &arg.kind {
            let ty = match self.entity(name) {
                Some(Entity::Type(ty)) => Some(ty),
                Some(_) => None,
                None => DataType::from_name(name),
            };
            if let Some(ty) = ty {
                let Some(size) = ty.size() else { return self.without_size(name, ty, span) };
                return self.emit(Node::Int(i64::from(size)), Type::Int, span);
            }
            if self.is_anything(name) {
                return self.anything(Type::Int, span);
            }
        }
        let error = match &arg.kind {
            SyntaxKind::Name(name) if self.entity(name).is_none() => {
                UnknownType { name }.with_span(&arg.span)
            }
            _ => NotAType {}.with_span(&arg.span),
        };
        self.reject(error, span)
    }

    fn without_size(&mut self, name: &str, ty: DataType, span: &Span) -> Operand {
        let prefix = if name == ty.name() { String::new() } else { format!("`{name}` is `{}`: ", ty.name()) };
        let error = LessThanAByte { prefix, ty: ty.name(), share: 8 / ty.bits() };
        self.reject(error.with_span(span), span)
    }

    pub(super) fn aligned(&mut self, args: &[Syntax], span: &Span) -> Operand {
        let [tensor, bytes] = args else {
            return self.reject(wrong_count("aligned", (2, 2), args.len(), "`aligned(x, 16)`", span), span);
        };
        let tensor = self.tensor_named("aligned", tensor, None);
        let bytes = self.alignment(bytes);
        if !self.addresses {
            return self.reject(AddressOutsideGuard {}.with_span(span), span);
        }
        match (tensor, bytes) {
            (Named::Tensor(_, TensorKind::ShapeInput | TensorKind::UnseenShapeInput), _) => {
                self.reject(HostAddress {}.with_span(span), span)
            }
            (Named::Tensor(tensor, _), Some(bytes)) => {
                self.emit(Node::Aligned { tensor, bytes }, Type::Bool, span)
            }
            (Named::Wrong, _) => self.nothing(span),
            (Named::Anything, _) | (_, None) => self.anything(Type::Bool, span),
        }
    }

    /// Evaluates a number of bytes; `None` if reported, or a parameter decides.
    fn alignment(&mut self, syntax: &Syntax) -> Option<u32> {
        let (errors, start) = (self.errors.len(), self.nodes.len());
        let operand = self.value(syntax);
        let operand = self.wanted(operand, &Type::Int, "the alignment of `aligned`");
        let expr = Expr { nodes: self.taken(start).0 };
        let depends = expr.nodes.contains(&Node::Local(Node::ANYTHING));
        if depends || self.full || self.errors.len() > errors {
            return None;
        }
        let found = eval::evaluate_within(&expr, &ScopeFacts(self.scope), &mut self.alignment_steps);
        let error = match found {
            Ok(Value::Int(found)) => {
                let bytes = u32::try_from(found).ok().filter(|&bytes| Node::is_alignment(bytes));
                if bytes.is_some() {
                    return bytes;
                }
                NotAnAlignment { most: Node::ALIGNMENT_LIMIT, found }.with_span(&operand.span)
            }
            Ok(_) | Err(EvalError::Kind { .. }) => return None,
            Err(error) if error.is_about_values() => {
                AlwaysFails { error: error.to_string() }.with_span(&operand.span)
            }
            Err(EvalError::TooManySteps) => {
                self.alignment_steps = 0;
                AlignmentTooSlow {}.with_span(&operand.span)
            }
            Err(_) => LateAlignment {}.with_span(&operand.span),
        };
        self.error(error);
        None
    }
}
