//! The types of operands while an expression is checked, and which operands an operation takes.
//!
//! Owns the typing rules. Never evaluates anything.

use std::fmt;
use std::ops::Range;

use super::{Operand, Resolver, wrong_count};
use crate::error::ExprError;
use crate::foreign;
use crate::node::{BinaryOp, Builtin, Node};
use crate::scope::Kind;
use crate::value::Value;

/// A kind, or nothing yet: the element of an empty array, or something that has been reported as wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    Float,
    Bool,
    Str,
    Array(Box<Type>),
    Unknown,
}

impl Type {
    pub(super) fn array(element: Type) -> Type {
        Type::Array(Box::new(element))
    }

    pub(super) fn of_kind(kind: &Kind) -> Type {
        match kind {
            Kind::Int => Type::Int,
            Kind::Float => Type::Float,
            Kind::Bool => Type::Bool,
            Kind::Str => Type::Str,
            Kind::Array(element) => Type::array(Type::of_kind(element)),
        }
    }

    pub(super) fn of_value(value: &Value) -> Type {
        match value {
            Value::Int(_) => Type::Int,
            Value::Float(_) => Type::Float,
            Value::Bool(_) => Type::Bool,
            Value::Str(_) => Type::Str,
            Value::Array(items) => {
                let element =
                    items.iter().try_fold(Type::Unknown, |ty, item| ty.unify(&Type::of_value(item)));
                Type::array(element.unwrap_or(Type::Unknown))
            }
        }
    }

    /// What is not known is an integer: an empty array is one of integers.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Type::Int | Type::Unknown => Kind::Int,
            Type::Float => Kind::Float,
            Type::Bool => Kind::Bool,
            Type::Str => Kind::Str,
            Type::Array(element) => Kind::Array(Box::new(element.kind())),
        }
    }

    /// The type that values of both have, integers turned into floats where one is.
    pub(super) fn unify(&self, other: &Type) -> Option<Type> {
        match (self, other) {
            (Type::Int, Type::Float) | (Type::Float, Type::Int) => Some(Type::Float),
            _ => self.same(other),
        }
    }

    /// The type that is both, without converting.
    fn same(&self, other: &Type) -> Option<Type> {
        match (self, other) {
            (Type::Unknown, ty) | (ty, Type::Unknown) => Some(ty.clone()),
            (Type::Array(left), Type::Array(right)) => left.same(right).map(Type::array),
            (left, right) => (left == right).then(|| left.clone()),
        }
    }

    pub(super) fn is_unknown(&self) -> bool {
        *self == Type::Unknown
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Type::Int | Type::Float | Type::Unknown)
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self, Type::Array(_) | Type::Unknown)
    }

    pub(super) fn element(&self) -> Type {
        match self {
            Type::Array(element) => (**element).clone(),
            _ => Type::Unknown,
        }
    }

    /// `an integer`.
    pub(super) fn with_article(&self) -> String {
        let article = if matches!(self, Type::Int | Type::Array(_)) { "an" } else { "a" };
        format!("{article} {self}")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Unknown => f.write_str("anything"),
            Type::Array(element) if element.is_unknown() => f.write_str("empty array"),
            _ => self.kind().fmt(f),
        }
    }
}

impl Resolver<'_> {
    /// The operands as an operator takes them, and the type of its result.
    pub(super) fn operands(
        &mut self,
        op: BinaryOp,
        left: Operand,
        right: Operand,
        span: &Range<usize>,
    ) -> (Operand, Operand, Type) {
        let symbol = op.symbol();
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let left = self.wanted(left, &Type::Bool, &format!("the left side of `{symbol}`"));
                let right = self.wanted(right, &Type::Bool, &format!("the right side of `{symbol}`"));
                (left, right, Type::Bool)
            }
            BinaryOp::Eq | BinaryOp::Ne => {
                let (left, right, _) =
                    self.common(left, right, &format!("`{symbol}` compares values of one kind"), span);
                (left, right, Type::Bool)
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                let (left, right, _) =
                    self.numbers(left, right, &format!("`{symbol}` compares numbers"), span);
                (left, right, Type::Bool)
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                self.numbers(left, right, &format!("`{symbol}` takes numbers"), span)
            }
            BinaryOp::FloorDiv | BinaryOp::Mod => self.integers(op, left, right, span),
            BinaryOp::Div => {
                if left.ty == Type::Int && right.ty == Type::Int {
                    let message = "`/` divides floats, found integer and integer";
                    let error = ExprError::wrong_kind(span.clone(), message, "both sides are integers");
                    self.error(error.help("write `//` for floor division, or `float(a) / b`"));
                    return (left, right, Type::Unknown);
                }
                let (left, right, ty) = self.numbers(left, right, "`/` takes numbers", span);
                let ty = if ty.is_unknown() { ty } else { Type::Float };
                (left, right, ty)
            }
        }
    }

    /// Both sides of one type.
    fn common(
        &mut self,
        left: Operand,
        right: Operand,
        rule: &str,
        span: &Range<usize>,
    ) -> (Operand, Operand, Type) {
        match left.ty.unify(&right.ty) {
            Some(ty) => (self.converted(left, &ty), self.converted(right, &ty), ty),
            None => {
                self.mismatch(&left, &right, rule, span);
                (left, right, Type::Unknown)
            }
        }
    }

    fn mismatch(&mut self, left: &Operand, right: &Operand, rule: &str, span: &Range<usize>) {
        let message = format!("{rule}, found {} and {}", left.ty, right.ty);
        let error = ExprError::wrong_kind(span.clone(), message, format!("{} and {}", left.ty, right.ty));
        let arrays = matches!((&left.ty, &right.ty), (Type::Array(_), _) | (_, Type::Array(_)));
        self.error(if arrays && !rule.starts_with("`=") && !rule.starts_with("`!") {
            let adds =
                rule.starts_with("`+`") && matches!((&left.ty, &right.ty), (Type::Array(_), Type::Array(_)));
            error.help(if adds {
                foreign::CONCATENATION
            } else {
                "to work on each element, write `[a[i] + b[i] for i in range(len(a))]`"
            })
        } else {
            error
        });
    }

    fn numbers(
        &mut self,
        left: Operand,
        right: Operand,
        rule: &str,
        span: &Range<usize>,
    ) -> (Operand, Operand, Type) {
        if left.ty.is_number() && right.ty.is_number() {
            return self.common(left, right, rule, span);
        }
        self.mismatch(&left, &right, rule, span);
        (left, right, Type::Unknown)
    }

    fn integers(
        &mut self,
        op: BinaryOp,
        left: Operand,
        right: Operand,
        span: &Range<usize>,
    ) -> (Operand, Operand, Type) {
        let integer = |ty: &Type| matches!(ty, Type::Int | Type::Unknown);
        if !integer(&left.ty) || !integer(&right.ty) {
            let message = format!("`{}` divides integers, found {} and {}", op.symbol(), left.ty, right.ty);
            let error = ExprError::wrong_kind(span.clone(), message, format!("{} and {}", left.ty, right.ty));
            let numbers = left.ty.is_number() && right.ty.is_number();
            self.error(if numbers {
                error.help("`/` divides floats; `int(a / b)` rounds towards zero")
            } else {
                error
            });
        }
        (left, right, Type::Int)
    }

    /// A call of a built-in function on resolved arguments.
    pub(super) fn builtin(&mut self, builtin: Builtin, args: Vec<Operand>, span: &Range<usize>) -> Operand {
        let (least, most, signature) = builtin.arity();
        if args.len() < least || args.len() > most {
            let error = wrong_count(builtin.name(), (least, most), args.len(), signature, span);
            return self.reject(error, Type::Unknown, span);
        }
        let name = builtin.name();
        let by = |what: &str| format!("{what} of `{name}`");
        match builtin {
            Builtin::Min | Builtin::Max => self.extreme(builtin, args, span),
            Builtin::Abs => {
                let (args, ty) = self.number(args, &by("the argument"));
                self.emit_call(builtin, &args, ty, span)
            }
            Builtin::CeilDiv | Builtin::Range => {
                let args: Vec<Operand> =
                    args.into_iter().map(|arg| self.wanted(arg, &Type::Int, &by("an argument"))).collect();
                let ty = if builtin == Builtin::Range { Type::array(Type::Int) } else { Type::Int };
                self.emit_call(builtin, &args, ty, span)
            }
            Builtin::Len => {
                self.array_argument(builtin, &args);
                // The rank is known before the shape.
                if let [Operand { id, .. }] = args.as_slice()
                    && let Some(tensor) = self.shape_of(*id)
                {
                    return self.replace(*id, Node::Rank(tensor), Type::Int, span);
                }
                self.emit_call(builtin, &args, Type::Int, span)
            }
            Builtin::Get => self.get(args, span),
            Builtin::Sum | Builtin::Prod => {
                let element = self.number_elements(builtin, &args);
                let ty = if element == Type::Float { Type::Float } else { Type::Int };
                let value = self.emit_call(builtin, &args, Type::Int, span);
                // Of no floats it is the integer 0 or 1.
                self.converted(value, &ty)
            }
            Builtin::Sqrt | Builtin::Rsqrt | Builtin::Exp | Builtin::Log => {
                let (args, _) = self.number(args, &by("the argument"));
                let args: Vec<Operand> =
                    args.into_iter().map(|arg| self.converted(arg, &Type::Float)).collect();
                self.emit_call(builtin, &args, Type::Float, span)
            }
            Builtin::Float | Builtin::Int => {
                let ty = if builtin == Builtin::Float { Type::Float } else { Type::Int };
                let (args, from) = self.number(args, &by("the argument"));
                match args.first() {
                    Some(arg) if from == ty => Operand { span: span.clone(), ..arg.clone() },
                    _ => self.emit_call(builtin, &args, ty, span),
                }
            }
        }
    }

    fn emit_call(&mut self, builtin: Builtin, args: &[Operand], ty: Type, span: &Range<usize>) -> Operand {
        self.emit(Node::Call(builtin, args.iter().map(|arg| arg.id).collect()), ty, span)
    }

    /// A single number.
    fn number(&mut self, args: Vec<Operand>, by: &str) -> (Vec<Operand>, Type) {
        let mut ty = Type::Unknown;
        for arg in &args {
            ty = arg.ty.clone();
            if !arg.ty.is_number() {
                let message = format!("{by} must be a number, found {}", arg.ty);
                let error = ExprError::wrong_kind(arg.span.clone(), message, arg.ty.to_string());
                self.error(if arg.ty == Type::Bool { error.help("write `1 if a else 0`") } else { error });
                ty = Type::Unknown;
            }
        }
        (args, ty)
    }

    fn extreme(&mut self, builtin: Builtin, args: Vec<Operand>, span: &Range<usize>) -> Operand {
        if let [_] = args.as_slice() {
            let ty = self.number_elements(builtin, &args);
            return self.emit_call(builtin, &args, ty, span);
        }
        let by = format!("an argument of `{}`", builtin.name());
        let (args, _) = self.number(args, &by);
        if args.iter().any(|arg| !arg.ty.is_number()) {
            return self.nothing(span);
        }
        let (args, ty) = self.unified(args, &format!("the arguments of `{}`", builtin.name()));
        self.emit_call(builtin, &args, ty, span)
    }

    fn array_argument(&mut self, builtin: Builtin, args: &[Operand]) -> Type {
        let Some(array) = args.first() else { return Type::Unknown };
        if !array.ty.is_array() {
            let message = format!("`{}` takes an array, found {}", builtin.name(), array.ty);
            self.error(ExprError::wrong_kind(array.span.clone(), message, array.ty.to_string()));
        }
        array.ty.element()
    }

    fn number_elements(&mut self, builtin: Builtin, args: &[Operand]) -> Type {
        let element = self.array_argument(builtin, args);
        if !element.is_number() {
            if let Some(array) = args.first() {
                let message = format!("`{}` takes an array of numbers, found {}", builtin.name(), array.ty);
                self.error(ExprError::wrong_kind(array.span.clone(), message, array.ty.to_string()));
            }
            return Type::Unknown;
        }
        element
    }

    fn get(&mut self, args: Vec<Operand>, span: &Range<usize>) -> Operand {
        let element = self.array_argument(Builtin::Get, &args);
        let mut checked = Vec::with_capacity(args.len());
        let mut ty = element.clone();
        for (position, arg) in args.into_iter().enumerate() {
            checked.push(match position {
                0 => arg,
                1 => self.wanted(arg, &Type::Int, "the index of `get`"),
                _ if element.is_unknown() => {
                    ty = arg.ty.clone();
                    arg
                }
                _ => self.wanted(arg, &element, "the default of `get`"),
            });
        }
        self.emit_call(Builtin::Get, &checked, ty, span)
    }
}
