//! Lowers integer expressions to TensorRT's shape operations.
//!
//! Equals evaluation where that has a value; elsewhere TensorRT wraps silently (observed with TensorRT-RTX 1.7.1).
//! Conditionals become `c * x + (1 - c) * y`; untaken divisors 1, since TensorRT rejects division by zero. Cannot lower
//! floats and arrays of unknown length.

mod builder;
mod calls;
mod symbol;

pub use builder::{LowerError, ShapeBuilder, ShapeOp};
use symbol::Number;
pub use symbol::Symbol;

use super::eval::Environment;
use super::node::{BinaryOp, Expr, Node, NodeId, UnaryOp};
use super::ops::{self, ARRAY_LIMIT, EvalError, STEP_LIMIT};
use super::print::{Anonymous, print_node};
use crate::value::Value;

/// Lowers an integer array to one dimension per element. `env` has attributes and ranks.
pub fn lower<B: ShapeBuilder>(
    expr: &Expr,
    env: &dyn Environment,
    builder: &mut B,
) -> Result<Vec<B::Dim>, LowerError<B::Error>> {
    let mut lowerer = Lowerer::new(expr, env, builder);
    let root = expr.root();
    let array = lowerer.node(root)?;
    let items = lowerer.items(root, array, "it is not an array of integers")?;
    items.into_iter().map(|item| lowerer.dimension(root, &item)).collect()
}

/// Lowers one integer.
pub fn lower_scalar<B: ShapeBuilder>(
    expr: &Expr,
    env: &dyn Environment,
    builder: &mut B,
) -> Result<B::Dim, LowerError<B::Error>> {
    let mut lowerer = Lowerer::new(expr, env, builder);
    let root = expr.root();
    let value = lowerer.node(root)?;
    lowerer.dimension(root, &value)
}

/// Lowers a value; known parts remain values. If `spared` is 1, it is unused, and zero divisors become 1.
pub fn lower_value<B: ShapeBuilder>(
    expr: &Expr,
    env: &dyn Environment,
    builder: &mut B,
    spared: Option<&B::Dim>,
) -> Result<Symbol<B::Dim>, LowerError<B::Error>> {
    let mut lowerer = Lowerer::new(expr, env, builder);
    lowerer.spared = spared.cloned();
    lowerer.node(expr.root())
}

type Lowered<B, T = Sym<B>> = Result<T, LowerError<<B as ShapeBuilder>::Error>>;
type Sym<B> = Symbol<<B as ShapeBuilder>::Dim>;
type Num<B> = Number<<B as ShapeBuilder>::Dim>;

const FLOATS: &str = "it requires floats, but shapes are integers";
const ADDRESS: &str = "shapes cannot depend on addresses";
const DEVICE: &str = "shapes cannot depend on the device";
const LENGTH: &str = "the length of an array cannot depend on shapes";

struct Lowerer<'a, B: ShapeBuilder> {
    expr: &'a Expr,
    env: &'a dyn Environment,
    builder: &'a mut B,
    locals: Vec<(u32, Sym<B>)>,
    /// 1 if evaluated, else 0; `None` if always.
    taken: Option<B::Dim>,
    /// 1 if unused; `None` if never.
    spared: Option<B::Dim>,
    steps: usize,
    depth: usize,
}

impl<'a, B: ShapeBuilder> Lowerer<'a, B> {
    fn new(expr: &'a Expr, env: &'a dyn Environment, builder: &'a mut B) -> Self {
        Lowerer {
            expr,
            env,
            builder,
            locals: Vec::new(),
            taken: None,
            spared: None,
            steps: STEP_LIMIT,
            depth: 0,
        }
    }

    fn unsupported(&self, node: NodeId, reason: &'static str) -> LowerError<B::Error> {
        LowerError::Unsupported { node, text: print_node(self.expr, node, &Anonymous), reason }
    }

    fn charge(&mut self, steps: usize) -> Lowered<B, ()> {
        self.steps = self.steps.checked_sub(steps).ok_or(EvalError::TooManySteps)?;
        Ok(())
    }

    fn charged(&mut self, value: Sym<B>) -> Lowered<B> {
        self.charge(value.size())?;
        Ok(value)
    }

    fn items(&self, node: NodeId, array: Sym<B>, reason: &'static str) -> Lowered<B, Vec<Sym<B>>> {
        array.into_items().map_err(|_| self.unsupported(node, reason))
    }

    fn dimension(&mut self, node: NodeId, value: &Sym<B>) -> Lowered<B, B::Dim> {
        match value.int() {
            Some(number) => self.dim_of(number),
            None => Err(self.unsupported(node, "a dimension must be an integer")),
        }
    }

    fn dim_of(&mut self, number: Num<B>) -> Lowered<B, B::Dim> {
        match number {
            Number::Known(value) => self.builder.constant(value).map_err(LowerError::Builder),
            Number::Dim(dim) => Ok(dim),
        }
    }

    fn node(&mut self, id: NodeId) -> Lowered<B> {
        self.charge(1)?;
        if self.depth >= Expr::DEPTH_LIMIT {
            return Err(EvalError::Malformed.into());
        }
        self.depth += 1;
        let value = self.dispatch(id);
        self.depth -= 1;
        value
    }

    fn dispatch(&mut self, id: NodeId) -> Lowered<B> {
        let expr = self.expr;
        match expr.nodes.get(id as usize).ok_or(EvalError::Malformed)? {
            Node::Array(items) => Ok(Symbol::array(self.nodes(items)?)),
            Node::Unary(op, operand) => self.unary(id, *op, *operand),
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                self.logical(id, *op, *left, *right)
            }
            Node::Binary(op, left, right) => {
                let (left, right) = (self.node(*left)?, self.node(*right)?);
                self.binary(id, *op, left, right)
            }
            Node::Conditional { condition, then, otherwise } => {
                self.conditional(id, *condition, *then, *otherwise)
            }
            Node::Index { array, index } => self.index(id, *array, *index),
            Node::Call(builtin, args) => self.call(id, *builtin, args),
            Node::Comprehension { slot, over, condition, body } => {
                self.comprehension(id, *slot, *over, *condition, *body)
            }
            Node::Aligned { .. } => Err(self.unsupported(id, ADDRESS)),
            Node::Device(_) => Err(self.unsupported(id, DEVICE)),
            leaf => self.leaf(leaf),
        }
    }

    #[inline(never)]
    fn leaf(&mut self, node: &Node) -> Lowered<B> {
        match node {
            Node::Int(value) => Ok(Symbol::Known(Value::Int(*value))),
            Node::Float(value) => Ok(Symbol::Known(Value::Float(*value))),
            Node::Bool(value) => Ok(Symbol::Known(Value::Bool(*value))),
            Node::Str(value) => Ok(Symbol::Known(Value::Str(value.clone()))),
            Node::Attribute(attribute) => {
                let value = self.env.attribute(*attribute).ok_or(EvalError::UnknownAttribute(*attribute))?;
                self.charged(Symbol::Known(value.clone()))
            }
            Node::Rank(tensor) => {
                let rank = i64::try_from(self.rank(*tensor)?).map_err(|_| EvalError::Malformed)?;
                Ok(Symbol::Known(Value::Int(rank)))
            }
            Node::Shape(tensor) => {
                let axes = 0..self.rank(*tensor)?;
                self.charge(axes.len())?;
                axes.map(|axis| self.axis(*tensor, axis)).collect::<Lowered<B, Vec<_>>>().map(Symbol::array)
            }
            Node::Numel(tensor) => {
                let mut product = Number::Known(1);
                for axis in 0..self.rank(*tensor)? {
                    let dim = self.builder.dim(*tensor, axis).map_err(LowerError::Builder)?;
                    product = self.operation(ShapeOp::Prod, product, Number::Dim(dim))?;
                }
                Ok(Symbol::from_int(product))
            }
            Node::Values(tensor) => {
                if let Some(values) = self.env.values(*tensor) {
                    return self.charged(Symbol::Known(Value::of_ints(values)));
                }
                let count = self.builder.value_count(*tensor).map_err(LowerError::Builder)?;
                if count > ARRAY_LIMIT {
                    return Err(EvalError::ArrayTooLong(count.to_string()).into());
                }
                self.charge(count)?;
                let value = |index| self.builder.value(*tensor, index).map(Symbol::Int);
                let values = (0..count).map(value).collect::<Result<Vec<_>, _>>();
                values.map(Symbol::array).map_err(LowerError::Builder)
            }
            Node::Size(tensor) => self.builder.size(*tensor).map(Symbol::Int).map_err(LowerError::Builder),
            Node::Local(slot) => {
                let found = self.locals.iter().rev().find(|(found, _)| found == slot);
                let value = found.map(|(_, value)| value.clone()).ok_or(EvalError::Malformed)?;
                self.charged(value)
            }
            _ => Err(EvalError::Malformed.into()),
        }
    }

    fn nodes(&mut self, items: &[NodeId]) -> Lowered<B, Vec<Sym<B>>> {
        if items.len() > ARRAY_LIMIT {
            return Err(EvalError::ArrayTooLong(items.len().to_string()).into());
        }
        // Iterator adapters use more stack.
        let mut values = Vec::with_capacity(items.len());
        for &item in items {
            values.push(self.node(item)?);
        }
        Ok(values)
    }

    fn rank(&self, tensor: u32) -> Lowered<B, usize> {
        Ok(self.env.rank(tensor).ok_or(EvalError::UnknownTensor(tensor))?)
    }

    fn axis(&mut self, tensor: u32, axis: usize) -> Lowered<B> {
        self.builder.dim(tensor, axis).map(Symbol::Int).map_err(LowerError::Builder)
    }

    fn operation(&mut self, op: ShapeOp, a: Num<B>, b: Num<B>) -> Lowered<B, Num<B>> {
        use Number::{Dim, Known};
        match (op, &a, &b) {
            (_, Known(a), Known(b)) => {
                if let Some(value) = op.apply(*a, *b) {
                    return Ok(Known(value));
                }
            }
            (ShapeOp::Sum, Known(0), other) | (ShapeOp::Prod, Known(1), other) => return Ok(other.clone()),
            (ShapeOp::Sum | ShapeOp::Sub, other, Known(0))
            | (ShapeOp::Prod | ShapeOp::FloorDiv | ShapeOp::CeilDiv, other, Known(1)) => {
                return Ok(other.clone());
            }
            (ShapeOp::Prod, Known(0), _) | (ShapeOp::Prod, _, Known(0)) => return Ok(Known(0)),
            _ => {}
        }
        self.charge(1)?;
        let (a, b) = (self.dim_of(a)?, self.dim_of(b)?);
        self.builder.operation(op, &a, &b).map(Dim).map_err(LowerError::Builder)
    }

    fn not(&mut self, a: Num<B>) -> Lowered<B, Num<B>> {
        self.operation(ShapeOp::Sub, Number::Known(1), a)
    }

    fn unary(&mut self, id: NodeId, op: UnaryOp, operand: NodeId) -> Lowered<B> {
        let operand = self.node(operand)?;
        if let Symbol::Known(value) = &operand {
            return Ok(Symbol::Known(ops::unary(op, value)?));
        }
        match (op, operand.int(), operand.bool()) {
            (UnaryOp::Neg, Some(number), _) => {
                self.operation(ShapeOp::Sub, Number::Known(0), number).map(Symbol::from_int)
            }
            (UnaryOp::Not, _, Some(number)) => self.not(number).map(Symbol::from_bool),
            _ => Err(self.unsupported(id, "its operand has the wrong kind")),
        }
    }

    fn under<T>(&mut self, side: &B::Dim, work: impl FnOnce(&mut Self) -> Lowered<B, T>) -> Lowered<B, T> {
        let outer = self.taken.clone();
        let inner = match &outer {
            Some(outer) => self.builder.operation(ShapeOp::Prod, outer, side).map_err(LowerError::Builder)?,
            None => side.clone(),
        };
        self.taken = Some(inner);
        let result = work(self);
        self.taken = outer;
        result
    }

    fn logical(&mut self, id: NodeId, op: BinaryOp, left: NodeId, right: NodeId) -> Lowered<B> {
        let decides = op == BinaryOp::Or;
        let kind = "its operand is not a boolean";
        let left = match self.node(left)? {
            Symbol::Known(Value::Bool(value)) if value == decides => {
                return Ok(Symbol::Known(Value::Bool(value)));
            }
            Symbol::Known(Value::Bool(_)) => {
                let right = self.node(right)?;
                return if right.bool().is_some() { Ok(right) } else { Err(self.unsupported(id, kind)) };
            }
            Symbol::Bool(left) => left,
            _ => return Err(self.unsupported(id, kind)),
        };
        let side = if decides {
            let side = self.not(Number::Dim(left.clone()))?;
            self.dim_of(side)?
        } else {
            left.clone()
        };
        let right = match self.under(&side, |lowerer| lowerer.node(right)) {
            Ok(right) => right,
            // Evaluation has a value only where the left side decides.
            Err(LowerError::Evaluate(error)) if error.is_about_values() => {
                return Ok(Symbol::Known(Value::Bool(decides)));
            }
            Err(error) => return Err(error),
        };
        let Some(right) = right.bool() else { return Err(self.unsupported(id, kind)) };
        let left = Number::Dim(left);
        let number = match (&right, decides) {
            (Number::Known(value), _) if (*value != 0) == decides => right,
            (Number::Known(_), _) => left,
            (_, true) => self.operation(ShapeOp::Max, left, right)?,
            (_, false) => self.operation(ShapeOp::Prod, left, right)?,
        };
        Ok(Symbol::from_bool(number))
    }

    fn conditional(&mut self, id: NodeId, condition: NodeId, then: NodeId, otherwise: NodeId) -> Lowered<B> {
        let condition = match self.node(condition)? {
            Symbol::Known(Value::Bool(value)) => return self.node(if value { then } else { otherwise }),
            Symbol::Bool(condition) => condition,
            _ => return Err(self.unsupported(id, "its condition is not a boolean")),
        };
        let inverse = self.not(Number::Dim(condition.clone()))?;
        let inverse = self.dim_of(inverse)?;
        let then = self.under(&condition, |lowerer| lowerer.node(then));
        let otherwise = self.under(&inverse, |lowerer| lowerer.node(otherwise));
        match (then, otherwise) {
            (Ok(then), Ok(otherwise)) => self.select(id, &condition, &inverse, then, otherwise),
            // If taken, the result has no value either.
            (Err(LowerError::Evaluate(error)), Ok(side)) | (Ok(side), Err(LowerError::Evaluate(error)))
                if error.is_about_values() =>
            {
                Ok(side)
            }
            (Err(LowerError::Evaluate(error)), Err(other)) if error.is_about_values() => Err(other),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    fn select(
        &mut self,
        id: NodeId,
        condition: &B::Dim,
        inverse: &B::Dim,
        then: Sym<B>,
        otherwise: Sym<B>,
    ) -> Lowered<B> {
        if let (Symbol::Known(then), Symbol::Known(otherwise)) = (&then, &otherwise)
            && then == otherwise
        {
            return Ok(Symbol::Known(then.clone()));
        }
        let booleans = then.bool().zip(otherwise.bool());
        if let Some((a, b)) = then.int().zip(otherwise.int()).or_else(|| booleans.clone()) {
            let a = self.operation(ShapeOp::Prod, Number::Dim(condition.clone()), a)?;
            let b = self.operation(ShapeOp::Prod, Number::Dim(inverse.clone()), b)?;
            let number = self.operation(ShapeOp::Sum, a, b)?;
            return Ok(if booleans.is_some() { Symbol::from_bool(number) } else { Symbol::from_int(number) });
        }
        let reason = "only integers, booleans and arrays of them can depend on shapes";
        let (then, otherwise) = (self.items(id, then, reason)?, self.items(id, otherwise, reason)?);
        if then.len() != otherwise.len() {
            return Err(self.unsupported(id, LENGTH));
        }
        let mut items = Vec::with_capacity(then.len());
        for (then, otherwise) in then.into_iter().zip(otherwise) {
            self.charge(1)?;
            items.push(self.select(id, condition, inverse, then, otherwise)?);
        }
        Ok(Symbol::array(items))
    }

    fn binary(&mut self, id: NodeId, op: BinaryOp, left: Sym<B>, right: Sym<B>) -> Lowered<B> {
        if let (Symbol::Known(left), Symbol::Known(right)) = (&left, &right) {
            return Ok(Symbol::Known(ops::binary(op, left, right)?));
        }
        if let BinaryOp::Eq | BinaryOp::Ne = op {
            let same = self.equal(id, left, right)?;
            let number = if op == BinaryOp::Eq { same } else { self.not(same)? };
            return Ok(Symbol::from_bool(number));
        }
        let (Some(a), Some(b)) = (left.int(), right.int()) else {
            return Err(self.unsupported(id, FLOATS));
        };
        let number = match op {
            BinaryOp::Add => self.operation(ShapeOp::Sum, a, b),
            BinaryOp::Sub => self.operation(ShapeOp::Sub, a, b),
            BinaryOp::Mul => self.operation(ShapeOp::Prod, a, b),
            BinaryOp::FloorDiv => self.divide(id, ShapeOp::FloorDiv, a, b),
            BinaryOp::Mod => {
                let quotient = self.divide(id, ShapeOp::FloorDiv, a.clone(), b.clone())?;
                let product = self.operation(ShapeOp::Prod, quotient, b)?;
                self.operation(ShapeOp::Sub, a, product)
            }
            BinaryOp::Lt | BinaryOp::Gt | BinaryOp::Le | BinaryOp::Ge => {
                let (a, b) = if let BinaryOp::Lt | BinaryOp::Ge = op { (a, b) } else { (b, a) };
                let less = self.operation(ShapeOp::Less, a, b)?;
                let holds = if let BinaryOp::Lt | BinaryOp::Gt = op { less } else { self.not(less)? };
                return Ok(Symbol::from_bool(holds));
            }
            BinaryOp::Div | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or => {
                return Err(self.unsupported(id, FLOATS));
            }
        };
        number.map(Symbol::from_int)
    }

    fn equal(&mut self, id: NodeId, left: Sym<B>, right: Sym<B>) -> Lowered<B, Num<B>> {
        let booleans = left.bool().zip(right.bool());
        if let Some((a, b)) = left.int().zip(right.int()).or(booleans) {
            return self.operation(ShapeOp::Equal, a, b);
        }
        if let (Symbol::Known(left), Symbol::Known(right)) = (&left, &right) {
            let same = ops::binary(BinaryOp::Eq, left, right)?;
            return Ok(Number::Known(i64::from(same == Value::Bool(true))));
        }
        let (left, right) = (self.items(id, left, FLOATS)?, self.items(id, right, FLOATS)?);
        if left.len() != right.len() {
            return Ok(Number::Known(0));
        }
        let mut same = Number::Known(1);
        for (left, right) in left.into_iter().zip(right) {
            self.charge(1)?;
            let item = self.equal(id, left, right)?;
            same = self.operation(ShapeOp::Prod, same, item)?;
        }
        Ok(same)
    }

    /// Makes zero divisors of unused values 1.
    fn spare(&mut self, divisor: Num<B>) -> Lowered<B, Num<B>> {
        match (&divisor, self.spared.clone()) {
            (Number::Dim(_), Some(spared)) => {
                let is_zero = self.operation(ShapeOp::Equal, divisor.clone(), Number::Known(0))?;
                let instead = self.operation(ShapeOp::Prod, is_zero, Number::Dim(spared))?;
                self.operation(ShapeOp::Sum, divisor, instead)
            }
            _ => Ok(divisor),
        }
    }

    fn divide(&mut self, id: NodeId, op: ShapeOp, a: Num<B>, b: Num<B>) -> Lowered<B, Num<B>> {
        let b = self.spare(b)?;
        match (&b, self.taken.clone()) {
            (Number::Known(0), _) => {
                Err(EvalError::DivisionByZero(print_node(self.expr, id, &Anonymous)).into())
            }
            // Not a division: the minimum integer by -1 traps on some machines.
            (Number::Known(-1), _) => self.operation(ShapeOp::Sub, Number::Known(0), a),
            (Number::Dim(_), Some(taken)) => {
                let inverse = self.not(Number::Dim(taken.clone()))?;
                let divisor = self.operation(ShapeOp::Prod, Number::Dim(taken), b)?;
                let divisor = self.operation(ShapeOp::Sum, divisor, inverse)?;
                self.operation(op, a, divisor)
            }
            _ => self.operation(op, a, b),
        }
    }

    fn index(&mut self, id: NodeId, array: NodeId, index: NodeId) -> Lowered<B> {
        if let Some(Node::Shape(tensor)) = self.expr.nodes.get(array as usize) {
            let rank = self.rank(*tensor)?;
            if let Symbol::Known(Value::Int(index)) = self.node(index)? {
                return match ops::position(rank, index) {
                    Some(axis) => self.axis(*tensor, axis),
                    None => Err(EvalError::IndexOutOfRange { index, len: rank }.into()),
                };
            }
        }
        let array = self.node(array)?;
        let items = self.items(id, array, "it is not an array")?;
        match self.node(index)? {
            Symbol::Known(Value::Int(index)) => Ok(ops::index(&items, index)?.clone()),
            Symbol::Int(index) => self.pick(id, &items, &index, true, None),
            _ => Err(self.unsupported(id, "its index is not an integer")),
        }
    }

    fn comprehension(
        &mut self,
        id: NodeId,
        slot: u32,
        over: NodeId,
        condition: Option<NodeId>,
        body: NodeId,
    ) -> Lowered<B> {
        let over = self.node(over)?;
        let over = self.items(id, over, "it does not iterate over an array")?;
        let mut items = Vec::new();
        for item in over {
            self.locals.push((slot, item));
            let value = self.element(id, condition, body);
            self.locals.pop();
            items.extend(value?);
        }
        Ok(Symbol::array(items))
    }

    fn element(&mut self, id: NodeId, condition: Option<NodeId>, body: NodeId) -> Lowered<B, Option<Sym<B>>> {
        if let Some(condition) = condition {
            match self.node(condition)? {
                Symbol::Known(Value::Bool(true)) => {}
                Symbol::Known(Value::Bool(false)) => return Ok(None),
                Symbol::Bool(_) => return Err(self.unsupported(id, LENGTH)),
                _ => return Err(self.unsupported(id, "its condition is not a boolean")),
            }
        }
        self.node(body).map(Some)
    }
}
