//! Checked evaluation in bounded time and stack.

use super::node::{BinaryOp, Builtin, DeviceFact, Expr, Node, NodeId};
use super::ops::{self, ARRAY_LIMIT, EvalError, STEP_LIMIT};
use crate::value::Value;

/// Facts for an evaluation; `None` if unknown. Tensors are indexed over inputs, then outputs.
pub trait Environment {
    /// Returns the environment of other facts.
    fn base(&self) -> Option<&dyn Environment> {
        None
    }

    /// Returns an attribute, by index.
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.base()?.attribute(index)
    }

    /// Returns a tensor's shape.
    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.base()?.shape(tensor)
    }

    /// Returns whether an address is a multiple of `bytes`, a power of two.
    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        self.base()?.aligned(tensor, bytes)
    }

    /// Returns a fact about the device.
    fn device(&self, fact: DeviceFact) -> Option<i64> {
        self.base()?.device(fact)
    }

    /// Returns a shape input's values.
    fn values(&self, tensor: u32) -> Option<&[i64]> {
        self.base()?.values(tensor)
    }

    /// Returns a size tensor's value, known after a run.
    fn size(&self, tensor: u32) -> Option<i64> {
        self.base()?.size(tensor)
    }

    /// Returns a rank, which may be known before the shape.
    fn rank(&self, tensor: u32) -> Option<usize> {
        let known = self.base().and_then(|base| base.rank(tensor));
        known.or_else(|| self.shape(tensor).map(<[i64]>::len))
    }
}

/// Evaluates within [`STEP_LIMIT`] and [`ARRAY_LIMIT`].
pub fn evaluate(expr: &Expr, env: &dyn Environment) -> Result<Value, EvalError> {
    evaluate_within(expr, env, &mut { STEP_LIMIT })
}

/// As [`evaluate`]; subtracts used steps from `steps`.
pub fn evaluate_within(expr: &Expr, env: &dyn Environment, steps: &mut usize) -> Result<Value, EvalError> {
    let left = (*steps).min(STEP_LIMIT);
    let mut evaluator = Evaluator { nodes: &expr.nodes, env, locals: Vec::new(), steps: left, depth: 0 };
    let value = evaluator.node(expr.root());
    // Insufficient steps count as spent.
    let spent = matches!(value, Err(EvalError::TooManySteps)) && left < STEP_LIMIT;
    *steps -= if spent { left } else { left - evaluator.steps };
    value
}

struct Evaluator<'a> {
    nodes: &'a [Node],
    env: &'a dyn Environment,
    locals: Vec<(u32, Value)>,
    steps: usize,
    depth: usize,
}

impl<'a> Evaluator<'a> {
    #[inline]
    fn charge(&mut self, steps: usize) -> Result<(), EvalError> {
        self.steps = self.steps.checked_sub(steps).ok_or(EvalError::TooManySteps)?;
        Ok(())
    }

    fn node(&mut self, id: NodeId) -> Result<Value, EvalError> {
        self.charge(1)?;
        if self.depth >= Expr::DEPTH_LIMIT {
            return Err(EvalError::Malformed);
        }
        self.depth += 1;
        let value = self.dispatch(id);
        self.depth -= 1;
        value
    }

    fn dispatch(&mut self, id: NodeId) -> Result<Value, EvalError> {
        let nodes = self.nodes;
        match nodes.get(id as usize).ok_or(EvalError::Malformed)? {
            Node::Int(value) => Ok(Value::Int(*value)),
            Node::Float(value) => Ok(Value::Float(*value)),
            Node::Bool(value) => Ok(Value::Bool(*value)),
            Node::Str(_) | Node::Attribute(_) | Node::Local(_) => self.copy(id),
            Node::Shape(tensor) => self.shape(*tensor),
            Node::Rank(tensor) => self.rank(*tensor),
            Node::Numel(tensor) => numel(self.env, *tensor),
            Node::Aligned { bytes, .. } if !Node::is_alignment(*bytes) => Err(EvalError::Malformed),
            Node::Aligned { tensor, bytes } => {
                let aligned = self.env.aligned(*tensor, *bytes).map(Value::Bool);
                aligned.ok_or(EvalError::UnknownAddress(*tensor))
            }
            Node::Device(fact) => {
                self.env.device(*fact).map(Value::Int).ok_or(EvalError::UnknownDevice(*fact))
            }
            Node::Values(tensor) => self.values(*tensor),
            Node::Size(tensor) => {
                self.env.size(*tensor).map(Value::Int).ok_or(EvalError::UnknownSize(*tensor))
            }
            Node::Array(items) => Ok(Value::Array(self.items(items)?)),
            Node::Unary(op, operand) => ops::unary(*op, &self.node(*operand)?),
            Node::Binary(op, left, right) => self.binary(*op, *left, *right),
            Node::Conditional { condition, then, otherwise } => {
                let taken = if self.condition("if", *condition)? { *then } else { *otherwise };
                self.node(taken)
            }
            Node::Index { array, index } => self.index(*array, *index),
            Node::Call(builtin, args) => self.call(*builtin, args),
            Node::Comprehension { slot, over, condition, body } => {
                self.comprehension(*slot, *over, *condition, *body)
            }
        }
    }

    #[inline]
    fn held(&self, id: NodeId) -> Result<Option<&Value>, EvalError> {
        let found = match self.nodes.get(id as usize) {
            Some(Node::Attribute(attribute)) => {
                self.env.attribute(*attribute).ok_or(EvalError::UnknownAttribute(*attribute))
            }
            Some(Node::Local(slot)) => {
                let local = self.locals.iter().rev().find(|(found, _)| found == slot);
                local.map(|(_, value)| value).ok_or(EvalError::Malformed)
            }
            _ => return Ok(None),
        };
        found.map(Some)
    }

    #[inline(never)]
    fn copy(&mut self, id: NodeId) -> Result<Value, EvalError> {
        if let Some(Node::Str(text)) = self.nodes.get(id as usize) {
            self.charge(text.len() / 16)?;
            return Ok(Value::Str(text.clone()));
        }
        // Charged first: large copies take time.
        let size = self.held(id)?.map_or(0, |value| value.cost(STEP_LIMIT));
        self.charge(size)?;
        self.held(id)?.cloned().ok_or(EvalError::Malformed)
    }

    #[inline(never)]
    fn shape(&mut self, tensor: u32) -> Result<Value, EvalError> {
        let shape = self.env.shape(tensor).ok_or(EvalError::UnknownTensor(tensor))?;
        self.charge(shape.len())?;
        Ok(Value::of_ints(shape))
    }

    #[inline(never)]
    fn values(&mut self, tensor: u32) -> Result<Value, EvalError> {
        let values = self.env.values(tensor).ok_or(EvalError::UnknownValues(tensor))?;
        if values.len() > ARRAY_LIMIT {
            return Err(EvalError::ArrayTooLong(values.len().to_string()));
        }
        self.charge(values.len())?;
        Ok(Value::of_ints(values))
    }

    fn rank(&self, tensor: u32) -> Result<Value, EvalError> {
        let rank = self.env.rank(tensor).and_then(|rank| i64::try_from(rank).ok());
        rank.map(Value::Int).ok_or(EvalError::UnknownTensor(tensor))
    }

    #[inline(never)]
    fn items(&mut self, items: &[NodeId]) -> Result<Vec<Value>, EvalError> {
        if items.len() > ARRAY_LIMIT {
            return Err(EvalError::ArrayTooLong(items.len().to_string()));
        }
        // Iterator adapters use more stack.
        let mut values = Vec::with_capacity(items.len());
        for &item in items {
            values.push(self.node(item)?);
        }
        Ok(values)
    }

    fn condition(&mut self, operation: &'static str, id: NodeId) -> Result<bool, EvalError> {
        match self.node(id)? {
            Value::Bool(value) => Ok(value),
            other => Err(ops::wrong_kind(operation, &[&other])),
        }
    }

    #[inline(never)]
    fn binary(&mut self, op: BinaryOp, left: NodeId, right: NodeId) -> Result<Value, EvalError> {
        if let BinaryOp::And | BinaryOp::Or = op {
            let left = self.condition(op.symbol(), left)?;
            if left == (op == BinaryOp::Or) {
                return Ok(Value::Bool(left));
            }
            return Ok(Value::Bool(self.condition(op.symbol(), right)?));
        }
        let left = self.node(left)?;
        let right = self.node(right)?;
        ops::binary(op, &left, &right)
    }

    #[inline(never)]
    fn index(&mut self, array: NodeId, index: NodeId) -> Result<Value, EvalError> {
        // Reports the array's errors first, without copying it.
        let listed = match self.nodes.get(array as usize) {
            Some(Node::Shape(tensor)) => {
                Some(self.env.shape(*tensor).ok_or(EvalError::UnknownTensor(*tensor))?)
            }
            Some(Node::Values(tensor)) => {
                Some(self.env.values(*tensor).ok_or(EvalError::UnknownValues(*tensor))?)
            }
            _ => None,
        };
        if let Some(items) = listed {
            let index = self.integer("[]", index)?;
            return ops::index(items, index).copied().map(Value::Int);
        }
        if self.held(array)?.is_some() {
            let index = self.integer("[]", index)?;
            let item = match self.held(array)? {
                Some(Value::Array(items)) => ops::index(items, index)?,
                Some(other) => return Err(ops::wrong_kind("[]", &[other])),
                None => return Err(EvalError::Malformed),
            };
            let (size, item) = (item.cost(STEP_LIMIT), item.clone());
            self.charge(size)?;
            return Ok(item);
        }
        let array = self.node(array)?;
        let index = self.integer("[]", index)?;
        match array {
            Value::Array(items) => ops::index(&items, index).cloned(),
            other => Err(ops::wrong_kind("[]", &[&other])),
        }
    }

    fn integer(&mut self, operation: &'static str, id: NodeId) -> Result<i64, EvalError> {
        let value = self.node(id)?;
        value.as_int().ok_or_else(|| ops::wrong_kind(operation, &[&value]))
    }

    #[inline(never)]
    fn call(&mut self, builtin: Builtin, args: &[NodeId]) -> Result<Value, EvalError> {
        let args = self.items(args)?;
        let value = ops::call(builtin, &args)?;
        if let (Builtin::Range, Value::Array(items)) = (builtin, &value) {
            self.charge(items.len())?;
        }
        Ok(value)
    }

    #[inline(never)]
    fn comprehension(
        &mut self,
        slot: u32,
        over: NodeId,
        condition: Option<NodeId>,
        body: NodeId,
    ) -> Result<Value, EvalError> {
        let items = match self.node(over)? {
            Value::Array(items) => items,
            other => return Err(ops::wrong_kind("for", &[&other])),
        };
        let mut values = Vec::new();
        for item in items {
            self.locals.push((slot, item));
            let kept = condition.map_or(Ok(true), |condition| self.condition("if", condition));
            let value = kept.and_then(|kept| if kept { self.node(body).map(Some) } else { Ok(None) });
            self.locals.pop();
            values.extend(value?);
        }
        Ok(Value::Array(values))
    }
}

pub(super) fn numel(env: &dyn Environment, tensor: u32) -> Result<Value, EvalError> {
    let shape = env.shape(tensor).ok_or(EvalError::UnknownTensor(tensor))?;
    ops::exact_product(shape).map(Value::Int).ok_or_else(|| {
        let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
        EvalError::Overflow { kind: "integer", operation: dims.join(" * ") }
    })
}

#[cfg(test)]
mod tests {
    use super::{Environment, evaluate};
    use crate::value::Value;
    use crate::{BinaryOp, Builtin, EvalError, Expr, Node};

    struct Nothing;

    impl Environment for Nothing {
        fn attribute(&self, _: u32) -> Option<&Value> {
            None
        }
        fn shape(&self, _: u32) -> Option<&[i64]> {
            None
        }
    }

    fn run(nodes: Vec<Node>) -> Result<Value, EvalError> {
        evaluate(&Expr { nodes }, &Nothing)
    }

    #[test]
    fn malformed_trees_are_errors() {
        assert_eq!(run(vec![]), Err(EvalError::Malformed));
        assert_eq!(run(vec![Node::Local(3)]), Err(EvalError::Malformed));
        assert_eq!(run(vec![Node::Binary(BinaryOp::Add, 0, 0)]), Err(EvalError::Malformed));
        assert_eq!(run(vec![Node::Attribute(3)]), Err(EvalError::UnknownAttribute(3)));
        assert_eq!(run(vec![Node::Numel(7)]), Err(EvalError::UnknownTensor(7)));
        let ill_typed = run(vec![Node::Int(1), Node::Bool(true), Node::Binary(BinaryOp::Add, 0, 1)]);
        assert_eq!(ill_typed.unwrap_err().to_string(), "`+` does not accept integer and boolean");
    }

    #[test]
    fn shared_nodes_cannot_take_forever() {
        let mut nodes = vec![Node::Int(0)];
        for index in 0..150 {
            nodes.push(Node::Binary(BinaryOp::Add, index, index));
        }
        assert_eq!(run(nodes), Err(EvalError::TooManySteps));
    }

    #[test]
    fn nested_loops_and_copies_cannot_take_forever() {
        let range = |nodes: &mut Vec<Node>| {
            nodes.push(Node::Int(60_000));
            nodes.push(Node::Call(Builtin::Range, vec![nodes.len() as u32 - 1]));
            nodes.len() as u32 - 1
        };
        let mut nodes = Vec::new();
        let outer = range(&mut nodes);
        let inner = range(&mut nodes);
        nodes.push(Node::Local(1));
        nodes.push(Node::Comprehension { slot: 1, over: inner, condition: None, body: inner + 1 });
        nodes.push(Node::Comprehension { slot: 0, over: outer, condition: None, body: inner + 2 });
        assert_eq!(run(nodes), Err(EvalError::TooManySteps));
    }

    #[test]
    fn the_deepest_tree_fits_a_small_stack() {
        let mut nodes = vec![Node::Int(1)];
        for index in 1..Expr::DEPTH_LIMIT as u32 {
            nodes.push(Node::Call(Builtin::Abs, vec![index - 1]));
        }
        let deep = Expr { nodes };
        assert_eq!(deep.validate(0, 0), Ok(()));
        let thread = std::thread::Builder::new().stack_size(1024 * 1024);
        let value = thread.spawn(move || evaluate(&deep, &Nothing)).unwrap().join().unwrap();
        assert_eq!(value, Ok(Value::Int(1)));
    }
}
