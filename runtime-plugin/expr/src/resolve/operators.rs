use super::calls::wrong_count;
use super::errors::{IntegersDivided, WrongTypes};
use super::types::Type;
use super::{Operand, Resolver};
use crate::error::Span;
use crate::foreign;
use crate::node::{BinaryOp, Builtin, Node, level};

impl Resolver<'_> {
    pub(super) fn operands(
        &mut self,
        op: BinaryOp,
        left: Operand,
        right: Operand,
        span: &Span,
    ) -> (Operand, Operand, Type) {
        let symbol = op.symbol();
        let rule = match op {
            BinaryOp::And | BinaryOp::Or => {
                let left = self.wanted(left, &Type::Bool, &format!("the left side of `{symbol}`"));
                let right = self.wanted(right, &Type::Bool, &format!("the right side of `{symbol}`"));
                return (left, right, Type::Bool);
            }
            BinaryOp::FloorDiv | BinaryOp::Mod => {
                self.check_integers(symbol, &left, &right, span);
                return (left, right, Type::Int);
            }
            BinaryOp::Div if left.ty == Type::Int && right.ty == Type::Int => {
                self.error(IntegersDivided {}.with_span(span));
                return (left, right, Type::Unknown);
            }
            BinaryOp::Eq | BinaryOp::Ne => "compares values of one kind",
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => "compares numbers",
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => "expects numbers",
        };
        let is_equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let are_numbers = left.ty.is_number() && right.ty.is_number();
        let ty = left.ty.unify(&right.ty).filter(|_| is_equality || are_numbers);
        if ty.is_none() {
            let rule = format!("`{symbol}` {rule}");
            let error = WrongTypes { rule: &rule, left: &left.ty, right: &right.ty }.with_span(span);
            let arrays = [&left.ty, &right.ty].into_iter().filter(|ty| matches!(ty, Type::Array(_))).count();
            self.error(match arrays {
                1 | 2 if is_equality => error,
                2 if op == BinaryOp::Add => error.help(foreign::CONCATENATION),
                1 | 2 => error.help("for each element, write `[a[i] + b[i] for i in range(len(a))]`"),
                _ => error,
            });
        }
        let result = match &ty {
            _ if op.level() == level::COMPARISON => Type::Bool,
            Some(ty) if op == BinaryOp::Div && !ty.is_unknown() => Type::Float,
            ty => ty.clone().unwrap_or(Type::Unknown),
        };
        match ty {
            Some(ty) => (self.converted(left, &ty), self.converted(right, &ty), result),
            None => (left, right, result),
        }
    }

    fn check_integers(&mut self, symbol: &str, left: &Operand, right: &Operand, span: &Span) {
        let is_integer = |operand: &Operand| matches!(operand.ty, Type::Int | Type::Unknown);
        if is_integer(left) && is_integer(right) {
            return;
        }
        let rule = format!("`{symbol}` divides integers");
        let error = WrongTypes { rule: &rule, left: &left.ty, right: &right.ty }.with_span(span);
        let are_numbers = left.ty.is_number() && right.ty.is_number();
        let help = "use `int(a / b)`, which rounds toward zero; `/` divides floats";
        self.error(if are_numbers { error.help(help) } else { error });
    }

    pub(super) fn builtin(&mut self, builtin: Builtin, args: Vec<Operand>, span: &Span) -> Operand {
        let (least, most, signature) = builtin.arity();
        if args.len() < least || args.len() > most {
            let error = wrong_count(builtin.name(), (least, most), args.len(), signature, span);
            return self.reject(error, span);
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
                // For an empty array the result is the integer 0 or 1.
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

    fn emit_call(&mut self, builtin: Builtin, args: &[Operand], ty: Type, span: &Span) -> Operand {
        self.emit(Node::Call(builtin, args.iter().map(|arg| arg.id).collect()), ty, span)
    }

    fn number(&mut self, args: Vec<Operand>, by: &str) -> (Vec<Operand>, Type) {
        let mut ty = Type::Unknown;
        for arg in &args {
            ty = arg.ty.clone();
            if !arg.ty.is_number() {
                let error = arg.wrong_type(&format!("{by} must be a number"));
                self.error(if arg.ty == Type::Bool { error.help("write `1 if a else 0`") } else { error });
                ty = Type::Unknown;
            }
        }
        (args, ty)
    }

    fn extreme(&mut self, builtin: Builtin, args: Vec<Operand>, span: &Span) -> Operand {
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
            self.error(array.wrong_type(&format!("`{}` expects an array", builtin.name())));
        }
        array.ty.element()
    }

    fn number_elements(&mut self, builtin: Builtin, args: &[Operand]) -> Type {
        let element = self.array_argument(builtin, args);
        if !element.is_number() {
            if let Some(array) = args.first() {
                self.error(array.wrong_type(&format!("`{}` expects an array of numbers", builtin.name())));
            }
            return Type::Unknown;
        }
        element
    }

    fn get(&mut self, args: Vec<Operand>, span: &Span) -> Operand {
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
