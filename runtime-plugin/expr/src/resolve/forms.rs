//! Forms: what looks like a call and takes the name of a tensor or of a type, which is not a value.
//!
//! Owns `numel`, `sizeof` and `aligned`: they are resolved here, and no tree has a call of them. The name may be a parameter of
//! the helper function around, and stands for what the call gives.

use std::ops::Range;

use super::types::Type;
use super::{Operand, Resolver, ScopeFacts, wrong_count};
use crate::data_type::DataType;
use crate::error::ExprError;
use crate::eval;
use crate::node::{Expr, Node};
use crate::ops::EvalError;
use crate::scope::{Entity, TensorKind};
use crate::syntax::{Syntax, SyntaxKind};
use crate::value::Value;

/// The tensor that an argument names.
enum Named {
    Tensor(u32, TensorKind),
    /// Whatever a parameter stands for, in a function that is checked on its own.
    Anything,
    /// None, which has been reported.
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
            let message = format!("`{form}` takes a tensor, found {}", value.ty);
            let error = ExprError::wrong_kind(arg.span.clone(), message, "not a tensor");
            self.error(ExprError { help: help.map(str::to_owned), ..error });
        }
        Named::Wrong
    }

    pub(super) fn numel(&mut self, args: &[Syntax], span: &Range<usize>) -> Operand {
        let [arg] = args else {
            return self.reject(
                wrong_count("numel", (1, 1), args.len(), "`numel(x)`", span),
                Type::Unknown,
                span,
            );
        };
        let help = "the length of an array is `len(a)`, the product of its elements `prod(a)`";
        match self.tensor_named("numel", arg, Some(help)) {
            Named::Tensor(index, TensorKind::DataDependent) => self.shape_of_data(index, Type::Int, span),
            Named::Tensor(index, TensorKind::UnseenShapeInput) => self.unseen(index, Type::Int, span),
            Named::Tensor(index, _) => self.emit(Node::Numel(index), Type::Int, span),
            Named::Anything => self.anything(Type::Int, span),
            Named::Wrong => self.nothing(span),
        }
    }

    pub(super) fn size_of(&mut self, args: &[Syntax], span: &Range<usize>) -> Operand {
        let [arg] = args else {
            return self.reject(
                wrong_count("sizeof", (1, 1), args.len(), "`sizeof(T)`", span),
                Type::Unknown,
                span,
            );
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
                ExprError::unknown_name(arg.span.clone(), format!("unknown type `{name}`"), "not known here")
            }
            _ => ExprError::wrong_kind(arg.span.clone(), "`sizeof` takes a type", "not a type"),
        };
        self.reject(error.help("name a type parameter, or a type such as `f32`"), Type::Unknown, span)
    }

    /// The size of a type of which several elements share a byte.
    fn without_size(&mut self, name: &str, ty: DataType, span: &Range<usize>) -> Operand {
        let share = 8 / ty.bits();
        let is = if name == ty.name() { String::new() } else { format!("`{name}` is `{}`: ", ty.name()) };
        let message = format!("{is}`{}` has no size in bytes: {share} elements share a byte", ty.name());
        let error = ExprError::no_value(span.clone(), message, "less than a byte");
        self.reject(
            error.help(format!("the bytes of `n` elements are `ceil_div(n, {share})`")),
            Type::Unknown,
            span,
        )
    }

    /// `aligned(x, 16)`.
    pub(super) fn aligned(&mut self, args: &[Syntax], span: &Range<usize>) -> Operand {
        let [tensor, bytes] = args else {
            return self.reject(
                wrong_count("aligned", (2, 2), args.len(), "`aligned(x, 16)`", span),
                Type::Unknown,
                span,
            );
        };
        let tensor = self.tensor_named("aligned", tensor, None);
        let bytes = self.alignment(bytes);
        if !self.addresses {
            let error =
                ExprError::out_of_place(span.clone(), "only a guard can ask for addresses", "not known here");
            return self.reject(
                error.help(
                    "addresses are known when a kernel is launched: move this to the `guard` of a variant",
                ),
                Type::Unknown,
                span,
            );
        }
        match (tensor, bytes) {
            (Named::Tensor(_, TensorKind::ShapeInput | TensorKind::UnseenShapeInput), _) => {
                let message = "a shape input lies in the host's memory: kernels do not get its address";
                let error = ExprError::wrong_kind(span.clone(), message, "not on the device");
                self.reject(error.help("leave it out"), Type::Unknown, span)
            }
            (Named::Tensor(tensor, _), Some(bytes)) => {
                self.emit(Node::Aligned { tensor, bytes }, Type::Bool, span)
            }
            (Named::Wrong, _) => self.nothing(span),
            (Named::Anything, _) | (_, None) => self.anything(Type::Bool, span),
        }
    }

    /// A number of bytes; none where it is wrong, which is reported, or depends on what a parameter stands for.
    fn alignment(&mut self, syntax: &Syntax) -> Option<u32> {
        let (errors, start) = (self.errors.len(), self.nodes.len());
        let operand = self.value(syntax);
        let operand = self.wanted(operand, &Type::Int, "the alignment of `aligned`");
        // The alignment is a part of the node, so its own nodes go.
        let expr = Expr { nodes: self.taken(start).0 };
        let depends = expr.nodes.contains(&Node::Local(Node::ANYTHING));
        if depends || self.full || self.errors.len() > errors {
            return None;
        }
        let found = eval::evaluate_within(&expr, &ScopeFacts(self.scope), &mut self.alignment_steps);
        let span = operand.span;
        let error = match found {
            Ok(Value::Int(bytes)) => {
                match u32::try_from(bytes).ok().filter(|&bytes| Node::is_alignment(bytes)) {
                    Some(bytes) => return Some(bytes),
                    None => {
                        let most = Node::ALIGNMENT_LIMIT;
                        let message =
                            format!("an alignment is a power of two from 1 to {most}, found {bytes}");
                        let error = ExprError::no_value(span, message, format!("this is {bytes}"));
                        error.help(format!(
                            "TensorRT asks applications for tensors at multiples of {most} bytes, no more"
                        ))
                    }
                }
            }
            Ok(_) | Err(EvalError::Kind { .. }) => return None,
            Err(error) if error.is_about_values() => {
                ExprError::no_value(span, error.to_string(), "this always fails")
            }
            Err(EvalError::TooManySteps) => {
                self.alignment_steps = 0;
                let message = "the alignments of this expression take too long to compute";
                ExprError::syntax(span, message, "too many steps").help("write the number")
            }
            Err(_) => {
                let message = "an alignment must be known when the plugin is compiled";
                let error = ExprError::out_of_place(span, message, "known later");
                error.help("use numbers, constants and `sizeof`, such as `VEC * sizeof(T)`")
            }
        };
        self.error(error);
        None
    }
}
