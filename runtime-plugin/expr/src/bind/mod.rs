//! Partial evaluation. The result has the original's value or error, except for step limits. Canonical: equivalent
//! trees fold to equal nodes.

mod failures;
mod unroll;
mod write;

use super::eval::{self, Environment};
use super::node::{BinaryOp, Builtin, Expr, Node, NodeId};
use super::ops::{self, EvalError};
use super::print::{Anonymous, Names};
use crate::value::Value;

/// Folds the parts that `env` determines. Returns invalid trees unchanged ([`Expr::validate`]).
#[must_use]
pub fn bind(expr: &Expr, env: &dyn Environment) -> Expr {
    fold(expr, &Bound(env)).expr
}

/// Folds as [`bind`]; subtracts the cost from `steps`, saturating at 0.
pub fn bind_within(expr: &Expr, env: &dyn Environment, steps: &mut usize) -> Expr {
    let folded = fold(expr, &Bound(env));
    *steps = steps.saturating_sub(folded.cost);
    folded.expr
}

pub(super) trait Facts {
    fn environment(&self) -> &dyn Environment;
    fn ranks(&self, tensor: u32) -> Option<(usize, usize)>;
    fn names(&self) -> &dyn Names;
}

struct Bound<'a>(&'a dyn Environment);

impl Facts for Bound<'_> {
    fn environment(&self) -> &dyn Environment {
        self.0
    }

    fn ranks(&self, tensor: u32) -> Option<(usize, usize)> {
        self.0.rank(tensor).map(|rank| (rank, rank))
    }

    fn names(&self) -> &dyn Names {
        &Anonymous
    }
}

pub(super) struct Folded {
    pub(super) expr: Expr,
    pub(super) failures: Vec<(NodeId, EvalError)>,
    cost: usize,
}

pub(super) fn fold(expr: &Expr, facts: &dyn Facts) -> Folded {
    if expr.check_tree().is_err() {
        return Folded { expr: expr.clone(), failures: Vec::new(), cost: expr.nodes.len() };
    }
    let mut folder = Folder::new(&expr.nodes, facts);
    let root = folder.part(expr.root()).and_then(|part| folder.emitted(part));
    let cost = folder.cost();
    if root.is_ok() {
        return Folded { expr: Expr { nodes: folder.out }, failures: folder.failures, cost };
    }
    // Too large or deep: copies the original.
    let failures = folder.failures;
    let mut copier = Folder::new(&expr.nodes, facts);
    let copied = copier.verbatim(expr.root());
    let cost = cost + copier.cost();
    let expr = if copied.is_ok() { Expr { nodes: copier.out } } else { expr.clone() };
    Folded { expr, failures, cost }
}

const FUEL: usize = 200_000;

const WORK: usize = 2_000_000;

enum Part {
    Known(Value, NodeId),
    Node(NodeId),
}

enum Binding {
    Slot(u32),
    Element(Value),
}

struct TooLarge;

type Fold<T> = Result<T, TooLarge>;

struct Folder<'a> {
    source: &'a [Node],
    facts: &'a dyn Facts,
    out: Vec<Node>,
    heights: Vec<usize>,
    locals: Vec<(u32, Binding)>,
    slots: u32,
    lazy: usize,
    fuel: usize,
    work: usize,
    unrolling: usize,
    failures: Vec<(NodeId, EvalError)>,
}

impl<'a> Folder<'a> {
    fn new(source: &'a [Node], facts: &'a dyn Facts) -> Folder<'a> {
        Folder {
            source,
            facts,
            out: Vec::new(),
            heights: Vec::new(),
            locals: Vec::new(),
            slots: 0,
            lazy: 0,
            fuel: FUEL,
            work: WORK,
            unrolling: 0,
            failures: Vec::new(),
        }
    }

    fn cost(&self) -> usize {
        self.source.len() + (FUEL - self.fuel) + (WORK - self.work)
    }

    fn part(&mut self, id: NodeId) -> Fold<Part> {
        self.fuel = self.fuel.saturating_sub(1);
        if self.unrolling > 0 && self.fuel == 0 {
            return Err(TooLarge);
        }
        let source = self.source;
        let Some(node) = source.get(id as usize) else { return Err(TooLarge) };
        let known = |value| Ok(Part::Known(value, id));
        match node {
            Node::Int(value) => known(Value::Int(*value)),
            Node::Float(value) => known(Value::Float(*value)),
            Node::Bool(value) => known(Value::Bool(*value)),
            Node::Str(value) => known(Value::Str(value.clone())),
            Node::Local(slot) => match self.binding(*slot) {
                Some(Binding::Element(value)) => {
                    let left = self.work.checked_sub(value.cost(self.work)).ok_or(TooLarge)?;
                    let value = value.clone();
                    self.work = left;
                    known(value)
                }
                Some(&Binding::Slot(slot)) => self.emit(Node::Local(slot)),
                None => Err(TooLarge),
            },
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                self.logical(id, *op, *left, *right)
            }
            Node::Call(Builtin::Len, args) if args.len() == 1 => self.length(id, node),
            Node::Array(_) | Node::Unary(..) | Node::Binary(..) | Node::Index { .. } | Node::Call(..) => {
                self.operation(id, node)
            }
            Node::Conditional { condition, then, otherwise } => {
                self.conditional(*condition, *then, *otherwise)
            }
            Node::Comprehension { slot, over, condition, body } => {
                self.comprehension(*slot, *over, *condition, *body)
            }
            leaf => self.leaf(id, leaf),
        }
    }

    fn binding(&self, slot: u32) -> Option<&Binding> {
        self.locals.iter().rev().find(|(found, _)| *found == slot).map(|(_, binding)| binding)
    }

    fn leaf(&mut self, id: NodeId, node: &Node) -> Fold<Part> {
        let env = self.facts.environment();
        let value = match *node {
            // Engines may contain long lists and use them often.
            Node::Attribute(attribute) => {
                env.attribute(attribute).filter(|value| value.cost(self.work) <= self.work).cloned()
            }
            Node::Shape(tensor) => env.shape(tensor).map(Value::of_ints),
            Node::Rank(tensor) => self.rank(tensor),
            Node::Numel(tensor) => eval::numel(env, tensor).ok(),
            Node::Aligned { tensor, bytes } if Node::is_alignment(bytes) => {
                env.aligned(tensor, bytes).map(Value::Bool)
            }
            Node::Device(fact) => env.device(fact).map(Value::Int),
            Node::Values(tensor) => env
                .values(tensor)
                .filter(|values| values.len() <= self.work.min(ops::ARRAY_LIMIT))
                .map(Value::of_ints),
            Node::Size(tensor) => env.size(tensor).map(Value::Int),
            _ => None,
        };
        match value {
            Some(value) if self.afford(&value) => Ok(Part::Known(value, id)),
            _ => self.emit(node.clone()),
        }
    }

    fn afford(&mut self, value: &Value) -> bool {
        let left = self.work.checked_sub(value.cost(self.work));
        self.work = left.unwrap_or(self.work);
        left.is_some()
    }

    fn rank(&self, tensor: u32) -> Option<Value> {
        let (lowest, highest) = self.facts.ranks(tensor)?;
        let rank = i64::try_from(lowest).ok().filter(|_| lowest == highest);
        rank.map(Value::Int)
    }

    fn operation(&mut self, id: NodeId, node: &Node) -> Fold<Part> {
        // Iterator adapters use more stack.
        let mut parts = Vec::new();
        for operand in node.children() {
            parts.push(self.part(operand)?);
        }
        self.applied(id, node, parts)
    }

    fn applied(&mut self, id: NodeId, node: &Node, mut parts: Vec<Part>) -> Fold<Part> {
        if self.work > 0 && parts.iter().all(|part| matches!(part, Part::Known(..))) {
            let (values, sources): (Vec<Value>, Vec<NodeId>) = parts
                .into_iter()
                .filter_map(|part| match part {
                    Part::Known(value, source) => Some((value, source)),
                    Part::Node(_) => None,
                })
                .unzip();
            match ops::apply(node, &values) {
                Ok(value) if self.afford(&value) => return Ok(Part::Known(value, id)),
                Ok(_) => self.work = 0,
                Err(error) => self.failed(id, error),
            }
            parts =
                values.into_iter().zip(sources).map(|(value, source)| Part::Known(value, source)).collect();
        } else {
            self.check_hopeless(id, &parts);
        }
        let ids = parts.into_iter().map(|part| self.emitted(part)).collect::<Fold<Vec<NodeId>>>()?;
        self.emit(node.with_children(ids))
    }

    fn lazily<T>(&mut self, work: impl FnOnce(&mut Self) -> Fold<T>) -> Fold<T> {
        self.lazy += 1;
        let result = work(self);
        self.lazy -= 1;
        result
    }

    fn logical(&mut self, id: NodeId, op: BinaryOp, left: NodeId, right: NodeId) -> Fold<Part> {
        let left = self.part(left)?;
        if let Part::Known(Value::Bool(value), _) = left {
            if value == (op == BinaryOp::Or) {
                return Ok(Part::Known(Value::Bool(value), id));
            }
            return self.part(right);
        }
        let right = self.lazily(|folder| folder.part(right))?;
        let (left, right) = (self.emitted(left)?, self.emitted(right)?);
        self.emit(Node::Binary(op, left, right))
    }

    fn conditional(&mut self, condition: NodeId, then: NodeId, otherwise: NodeId) -> Fold<Part> {
        let condition = self.part(condition)?;
        if let Part::Known(Value::Bool(value), _) = condition {
            return self.part(if value { then } else { otherwise });
        }
        let then = self.lazily(|folder| folder.part(then))?;
        let otherwise = self.lazily(|folder| folder.part(otherwise))?;
        let (condition, then) = (self.emitted(condition)?, self.emitted(then)?);
        let otherwise = self.emitted(otherwise)?;
        self.emit(Node::Conditional { condition, then, otherwise })
    }

    /// Folds `len(x.shape)` to the rank, known earlier.
    fn length(&mut self, id: NodeId, node: &Node) -> Fold<Part> {
        let start = self.out.len();
        let array = self.part(node.children().next().ok_or(TooLarge)?)?;
        if let Part::Node(new) = array
            && let Some(&Node::Shape(tensor)) = self.out.get(new as usize)
        {
            self.out.truncate(start);
            self.heights.truncate(start);
            return match self.rank(tensor) {
                Some(rank) => Ok(Part::Known(rank, id)),
                None => self.emit(Node::Rank(tensor)),
            };
        }
        self.applied(id, node, vec![array])
    }
}
