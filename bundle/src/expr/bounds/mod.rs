//! Interval bounds: what values an expression can have over ranges of shapes.
//!
//! Sound, not exact: every value that evaluation can give lies within the bounds. Each part is bounded on its own, so
//! `x.shape[0] - x.shape[0]` is not seen to be 0, and a condition does not narrow its sides.

mod extent;

use extent::{Extent, corners, divisors, equal, floor, less};

use super::node::{BinaryOp, Builtin, Expr, Node, NodeId, UnaryOp};
use super::ops::{self, ARRAY_LIMIT, EvalError, STEP_LIMIT};
use crate::value::Value;

/// What is known about attributes and shapes.
pub trait RangeEnvironment {
    /// The value of an attribute; none where it can be anything.
    fn attribute(&self, index: u32) -> Option<&Value>;

    /// The rank of a tensor; none where it can be 0 to 8, TensorRT's highest.
    fn rank(&self, tensor: u32) -> Option<usize>;

    /// The least and the greatest size that a dimension can have; none where it can be anything from 0.
    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)>;
}

/// Limits of an integer; a boolean counts as 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// No value is below it.
    pub min: i64,
    /// No value is above it.
    pub max: i64,
    /// Whether evaluation is proved to have a value everywhere: no overflow, no division by zero, no index out of range.
    pub total: bool,
}

/// The bounds of an integer or a boolean.
///
/// # Errors
/// Evaluation fails everywhere, and this is how; or the expression is not an integer or a boolean.
pub fn bounds(expr: &Expr, env: &dyn RangeEnvironment) -> Result<Bounds, EvalError> {
    let mut bounder = Bounder::new(expr, env);
    let range = bounder.node(expr.root())?;
    bounder.finished(&range)
}

/// The bounds of every element of an array of integers, such as an output's shape. None where its length is not
/// known.
///
/// # Errors
/// As [`bounds`].
pub fn bounds_each(expr: &Expr, env: &dyn RangeEnvironment) -> Result<Option<Vec<Bounds>>, EvalError> {
    let mut bounder = Bounder::new(expr, env);
    match bounder.node(expr.root())? {
        Extent::Any => Ok(None),
        range => match range.items() {
            Some(items) => {
                items.iter().map(|item| bounder.finished(item)).collect::<Result<_, _>>().map(Some)
            }
            None => Err(EvalError::Kind { operation: "bounds", found: "what is not an array".into() }),
        },
    }
}

struct Bounder<'a> {
    expr: &'a Expr,
    env: &'a dyn RangeEnvironment,
    locals: Vec<(u32, Extent)>,
    total: bool,
    steps: usize,
    depth: usize,
}

type Bounded = Result<Extent, EvalError>;

impl<'a> Bounder<'a> {
    fn new(expr: &'a Expr, env: &'a dyn RangeEnvironment) -> Bounder<'a> {
        Bounder { expr, env, locals: Vec::new(), total: true, steps: STEP_LIMIT, depth: 0 }
    }

    fn finished(&self, range: &Extent) -> Result<Bounds, EvalError> {
        let total = self.total;
        if let Some((min, max)) = range.ints() {
            return Ok(Bounds { min, max, total });
        }
        match range.bools() {
            Some(Some(value)) => Ok(Bounds { min: i64::from(value), max: i64::from(value), total }),
            Some(None) => Ok(Bounds { min: 0, max: 1, total }),
            None if *range == Extent::Any => Ok(Bounds { min: i64::MIN, max: i64::MAX, total: false }),
            None => Err(EvalError::Kind { operation: "bounds", found: range.show() }),
        }
    }

    fn charge(&mut self, steps: usize) -> Result<(), EvalError> {
        self.steps = self.steps.checked_sub(steps).ok_or(EvalError::TooManySteps)?;
        Ok(())
    }

    /// Nothing is proved about what follows.
    fn unsure(&mut self, range: Extent) -> Bounded {
        self.total = false;
        Ok(range)
    }

    fn node(&mut self, id: NodeId) -> Bounded {
        self.charge(1)?;
        if self.depth >= Expr::DEPTH_LIMIT {
            return Err(EvalError::Malformed);
        }
        self.depth += 1;
        let range = self.dispatch(id);
        self.depth -= 1;
        range
    }

    fn dispatch(&mut self, id: NodeId) -> Bounded {
        let expr = self.expr;
        match expr.nodes.get(id as usize).ok_or(EvalError::Malformed)? {
            Node::Array(items) => self.nodes(items).map(Extent::array),
            Node::Unary(op, operand) => {
                let operand = self.node(*operand)?;
                self.unary(*op, &operand)
            }
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                self.logical(*op, *left, *right)
            }
            Node::Binary(op, left, right) => {
                let left = self.node(*left)?;
                let right = self.node(*right)?;
                self.binary(*op, &left, &right)
            }
            Node::Conditional { condition, then, otherwise } => {
                self.conditional(*condition, *then, *otherwise)
            }
            Node::Index { array, index } => {
                let array = self.node(*array)?;
                let index = self.node(*index)?;
                self.index(&array, &index)
            }
            Node::Call(builtin, args) => {
                let args = self.nodes(args)?;
                self.call(*builtin, &args)
            }
            Node::Comprehension { slot, over, condition, body } => {
                self.comprehension(*slot, *over, *condition, *body)
            }
            leaf => self.leaf(leaf),
        }
    }

    fn nodes(&mut self, items: &[NodeId]) -> Result<Vec<Extent>, EvalError> {
        // A plain loop: adapters would deepen the stack of every level of the tree.
        let mut ranges = Vec::with_capacity(items.len());
        for &item in items {
            ranges.push(self.node(item)?);
        }
        Ok(ranges)
    }

    #[inline(never)]
    fn leaf(&mut self, node: &Node) -> Bounded {
        match node {
            Node::Int(value) => Ok(Extent::Known(Value::Int(*value))),
            Node::Float(value) => Ok(Extent::Known(Value::Float(*value))),
            Node::Bool(value) => Ok(Extent::Known(Value::Bool(*value))),
            Node::Str(value) => Ok(Extent::Known(Value::Str(value.clone()))),
            Node::Attribute(attribute) => match self.env.attribute(*attribute) {
                Some(value) => {
                    let range = Extent::Known(value.clone());
                    self.charge(range.size())?;
                    Ok(range)
                }
                None => self.unsure(Extent::Any),
            },
            Node::Rank(tensor) => match self.env.rank(*tensor) {
                Some(rank) => {
                    let rank = i64::try_from(rank).map_err(|_| EvalError::Malformed)?;
                    Ok(Extent::Known(Value::Int(rank)))
                }
                None => Ok(Extent::Int(0, HIGHEST_RANK)),
            },
            Node::Shape(tensor) => match self.dims(*tensor)? {
                Some(dims) => Ok(Extent::array(dims)),
                None => self.unsure(Extent::Any),
            },
            Node::Numel(tensor) => match self.dims(*tensor)? {
                Some(dims) => self.product(&dims),
                None => self.unsure(Extent::Int(0, i64::MAX)),
            },
            Node::Local(slot) => {
                let found = self.locals.iter().rev().find(|(found, _)| found == slot);
                let range = found.map(|(_, range)| range.clone()).ok_or(EvalError::Malformed)?;
                self.charge(range.size())?;
                Ok(range)
            }
            _ => Err(EvalError::Malformed),
        }
    }

    fn dims(&mut self, tensor: u32) -> Result<Option<Vec<Extent>>, EvalError> {
        let Some(rank) = self.env.rank(tensor) else { return Ok(None) };
        self.charge(rank)?;
        let dim = |axis| self.env.dim(tensor, axis).unwrap_or((0, i64::MAX));
        Ok(Some((0..rank).map(|axis| Extent::of_ints(dim(axis))).collect()))
    }

    /// An exact range of integers, cut to those that fit.
    fn fitted(&mut self, (low, high): (i128, i128), text: impl FnOnce() -> String) -> Bounded {
        let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
        if low > most || high < least {
            return Err(EvalError::Overflow { kind: "integer", operation: text() });
        }
        self.total &= low >= least && high <= most;
        let cut = |value: i128| i64::try_from(value.clamp(least, most)).unwrap_or(i64::MAX);
        Ok(Extent::of_ints((cut(low), cut(high))))
    }

    fn unary(&mut self, op: UnaryOp, operand: &Extent) -> Bounded {
        if let Extent::Known(value) = operand {
            return ops::unary(op, value).map(Extent::Known);
        }
        match (op, operand.ints()) {
            (UnaryOp::Neg, Some((low, high))) => {
                self.fitted((-i128::from(high), -i128::from(low)), || format!("-{}", operand.show()))
            }
            (UnaryOp::Not, _) => Ok(Extent::Bool),
            // The negative of a float has a value.
            (UnaryOp::Neg, None) => Ok(Extent::Any),
        }
    }

    fn logical(&mut self, op: BinaryOp, left: NodeId, right: NodeId) -> Bounded {
        let decides = op == BinaryOp::Or;
        match self.node(left)?.bools() {
            Some(Some(value)) if value == decides => Ok(Extent::Known(Value::Bool(value))),
            Some(Some(_)) => self.node(right),
            _ => match self.node(right) {
                Ok(Extent::Known(Value::Bool(value))) if value == decides => {
                    Ok(Extent::Known(Value::Bool(value)))
                }
                Ok(_) => Ok(Extent::Bool),
                Err(error) if error.is_about_values() => self.unsure(Extent::Known(Value::Bool(decides))),
                Err(error) => Err(error),
            },
        }
    }

    fn conditional(&mut self, condition: NodeId, then: NodeId, otherwise: NodeId) -> Bounded {
        if let Some(Some(value)) = self.node(condition)?.bools() {
            return self.node(if value { then } else { otherwise });
        }
        match (self.node(then), self.node(otherwise)) {
            (Ok(then), Ok(otherwise)) => {
                self.charge(then.size())?;
                Ok(then.join(&otherwise))
            }
            (Err(error), Ok(side)) | (Ok(side), Err(error)) if error.is_about_values() => self.unsure(side),
            (Err(error), Err(other)) if error.is_about_values() => Err(other),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Extent, right: &Extent) -> Bounded {
        if let (Extent::Known(left), Extent::Known(right)) = (left, right) {
            return ops::binary(op, left, right).map(Extent::Known);
        }
        match op {
            BinaryOp::Eq | BinaryOp::Ne => {
                self.charge(left.size())?;
                let same = equal(left, right);
                return Ok(Extent::of_bool(same.map(|same| same == (op == BinaryOp::Eq))));
            }
            BinaryOp::Lt => return Ok(Extent::of_bool(less(left, right))),
            BinaryOp::Gt => return Ok(Extent::of_bool(less(right, left))),
            BinaryOp::Ge => return Ok(Extent::of_bool(less(left, right).map(|less| !less))),
            BinaryOp::Le => return Ok(Extent::of_bool(less(right, left).map(|less| !less))),
            _ => {}
        }
        let (Some(a), Some(b)) = (left.ints(), right.ints()) else { return self.unsure(Extent::Any) };
        let text = || format!("{} {} {}", left.show(), op.symbol(), right.show());
        let wide = |(low, high): (i64, i64)| (i128::from(low), i128::from(high));
        let (wide_a, wide_b) = (wide(a), wide(b));
        match op {
            BinaryOp::Add => self.fitted((wide_a.0 + wide_b.0, wide_a.1 + wide_b.1), text),
            BinaryOp::Sub => self.fitted((wide_a.0 - wide_b.1, wide_a.1 - wide_b.0), text),
            BinaryOp::Mul => self.fitted(corners(wide_a, wide_b, |a, b| a * b), text),
            BinaryOp::FloorDiv => self.quotient(wide_a, wide_b, floor, text),
            BinaryOp::Mod => self.remainder(wide_a, wide_b, text),
            _ => Err(EvalError::Kind { operation: op.symbol(), found: text() }),
        }
    }

    fn quotient(
        &mut self,
        a: (i128, i128),
        b: (i128, i128),
        divide: fn(i128, i128) -> i128,
        text: impl FnOnce() -> String,
    ) -> Bounded {
        let mut range: Option<(i128, i128)> = None;
        for part in divisors(b) {
            let (low, high) = corners(a, part, divide);
            range = Some(range.map_or((low, high), |range| (range.0.min(low), range.1.max(high))));
        }
        self.total &= !(b.0..=b.1).contains(&0);
        match range {
            Some(range) => self.fitted(range, text),
            None => Err(EvalError::DivisionByZero(text())),
        }
    }

    fn remainder(&mut self, a: (i128, i128), b: (i128, i128), text: impl FnOnce() -> String) -> Bounded {
        let mut range: Option<(i128, i128)> = None;
        for part in divisors(b) {
            let (low, high) = if part.0 == part.1 && floor(a.0, part.0) == floor(a.1, part.0) {
                // No multiple of the divisor lies between: the remainder runs along with the dividend.
                let base = floor(a.0, part.0) * part.0;
                (a.0 - base, a.1 - base)
            } else if part.0 > 0 && a.0 >= 0 {
                let low = if a.1 < part.0 { a.0 } else { 0 };
                (low, a.1.min(part.1 - 1))
            } else if part.0 > 0 {
                (0, part.1 - 1)
            } else {
                (part.0 + 1, 0)
            };
            range = Some(range.map_or((low, high), |range| (range.0.min(low), range.1.max(high))));
        }
        self.total &= !(b.0..=b.1).contains(&0);
        match range {
            Some(range) => self.fitted(range, text),
            None => Err(EvalError::DivisionByZero(text())),
        }
    }

    fn index(&mut self, array: &Extent, index: &Extent) -> Bounded {
        let (Some(items), Some((low, high))) = (array.items(), index.ints()) else {
            return self.unsure(Extent::Any);
        };
        let len = i64::try_from(items.len()).map_err(|_| EvalError::Malformed)?;
        self.charge(items.len())?;
        let mut range: Option<Extent> = None;
        for (position, item) in (0..len).zip(&items) {
            if (low..=high).contains(&position) || (low..=high).contains(&(position - len)) {
                range = Some(range.map_or_else(|| item.clone(), |range| range.join(item)));
            }
        }
        self.total &= low >= -len && high < len;
        range.ok_or(EvalError::IndexOutOfRange { index: low, len: items.len() })
    }

    fn get(&mut self, array: &Extent, index: &Extent, default: &Extent) -> Bounded {
        let (Some(items), Some((low, high))) = (array.items(), index.ints()) else { return Ok(Extent::Any) };
        let len = i64::try_from(items.len()).map_err(|_| EvalError::Malformed)?;
        self.charge(items.len())?;
        let mut range = (low < 0 || high >= len).then(|| default.clone());
        for (position, item) in (0..len).zip(&items) {
            if (low..=high).contains(&position) {
                range = Some(range.map_or_else(|| item.clone(), |range| range.join(item)));
            }
        }
        range.ok_or(EvalError::Malformed)
    }

    fn call(&mut self, builtin: Builtin, args: &[Extent]) -> Bounded {
        let known: Option<Vec<Value>> = args
            .iter()
            .map(|arg| match arg {
                Extent::Known(value) => Some(value.clone()),
                _ => None,
            })
            .collect();
        if let Some(args) = known {
            let range = Extent::Known(ops::call(builtin, &args)?);
            self.charge(range.size())?;
            return Ok(range);
        }
        let text = || {
            let shown: Vec<String> = args.iter().map(Extent::show).collect();
            format!("{}({})", builtin.name(), shown.join(", "))
        };
        match (builtin, args) {
            (Builtin::Min | Builtin::Max | Builtin::Sum | Builtin::Prod, [array]) => match array.items() {
                Some(items) => self.reduce(builtin, &items, text),
                None => self.unsure(Extent::Any),
            },
            (Builtin::Min | Builtin::Max, items) => self.reduce(builtin, items, text),
            (Builtin::Abs, [value]) => match value.ints() {
                Some((low, high)) => {
                    let (low, high) = (i128::from(low), i128::from(high));
                    let least = if low > 0 { low } else { (-high).max(0) };
                    self.fitted((least, high.max(-low)), text)
                }
                None => Ok(Extent::Any),
            },
            (Builtin::CeilDiv, [a, b]) => match (a.ints(), b.ints()) {
                (Some(a), Some(b)) => {
                    let wide = |(low, high): (i64, i64)| (i128::from(low), i128::from(high));
                    self.quotient(wide(a), wide(b), |a, b| -floor(-a, b), text)
                }
                _ => self.unsure(Extent::Any),
            },
            (Builtin::Len, [array]) => {
                let limit = i64::try_from(ARRAY_LIMIT).unwrap_or(i64::MAX);
                let len = array.items().map(|items| i64::try_from(items.len()).unwrap_or(limit));
                Ok(Extent::of_ints(len.map_or((0, limit), |len| (len, len))))
            }
            (Builtin::Get, [array, index, default]) => self.get(array, index, default),
            (Builtin::Int, [value]) if value.ints().is_some() => Ok(value.clone()),
            (Builtin::Int, _) => self.unsure(Extent::Int(i64::MIN, i64::MAX)),
            (Builtin::Float, _) => Ok(Extent::Any),
            // Floats that overflow or are not defined, arrays of unknown length.
            _ => self.unsure(Extent::Any),
        }
    }

    fn reduce(&mut self, builtin: Builtin, items: &[Extent], text: impl FnOnce() -> String) -> Bounded {
        if builtin == Builtin::Prod {
            return self.product(items);
        }
        let mut total: Option<(i128, i128)> = (builtin == Builtin::Sum).then_some((0, 0));
        for item in items {
            let Some((low, high)) = item.ints() else { return self.unsure(Extent::Any) };
            let (low, high) = (i128::from(low), i128::from(high));
            total = Some(match (builtin, total) {
                (_, None) => (low, high),
                (Builtin::Min, Some(total)) => (total.0.min(low), total.1.min(high)),
                (Builtin::Max, Some(total)) => (total.0.max(low), total.1.max(high)),
                (_, Some(total)) => (total.0 + low, total.1 + high),
            });
        }
        match total {
            Some(total) => self.fitted(total, text),
            None => Err(EvalError::Undefined(text())),
        }
    }

    fn product(&mut self, items: &[Extent]) -> Bounded {
        // Beyond what fits a product only comes back by a factor of 0, which its range holds: it may be cut there.
        const CUT: i128 = (1 << 63) + 1;
        let mut total = (1_i128, 1_i128);
        for item in items {
            let Some((low, high)) = item.ints() else { return self.unsure(Extent::Any) };
            total = corners(total, (i128::from(low), i128::from(high)), |a, b| a * b);
            total = (total.0.clamp(-CUT, CUT), total.1.clamp(-CUT, CUT));
        }
        self.fitted(total, || items.iter().map(Extent::show).collect::<Vec<String>>().join(" * "))
    }

    fn comprehension(&mut self, slot: u32, over: NodeId, condition: Option<NodeId>, body: NodeId) -> Bounded {
        let Some(over) = self.node(over)?.items() else { return self.unsure(Extent::Any) };
        let mut items = Vec::new();
        let mut length_known = true;
        for item in over {
            self.locals.push((slot, item));
            let range = self.element(condition, body);
            self.locals.pop();
            match range? {
                Element::Kept(range) => items.push(range),
                Element::LeftOut => {}
                Element::Perhaps => length_known = false,
            }
        }
        Ok(if length_known { Extent::array(items) } else { Extent::Any })
    }

    fn element(&mut self, condition: Option<NodeId>, body: NodeId) -> Result<Element, EvalError> {
        let kept = match condition {
            Some(condition) => self.node(condition)?.bools().unwrap_or(None),
            None => Some(true),
        };
        match (kept, self.node_if(kept != Some(false), body)) {
            (Some(false), _) => Ok(Element::LeftOut),
            (_, Ok(None)) => Ok(Element::LeftOut),
            (Some(true), Ok(Some(range))) => Ok(Element::Kept(range)),
            (None, Ok(_)) => Ok(Element::Perhaps),
            (None, Err(error)) if error.is_about_values() => {
                self.total = false;
                Ok(Element::Perhaps)
            }
            (_, Err(error)) => Err(error),
        }
    }

    fn node_if(&mut self, wanted: bool, id: NodeId) -> Result<Option<Extent>, EvalError> {
        if wanted { self.node(id).map(Some) } else { Ok(None) }
    }
}

enum Element {
    Kept(Extent),
    LeftOut,
    Perhaps,
}

/// TensorRT's `Dims::MAX_DIMS`.
const HIGHEST_RANK: i64 = 8;
