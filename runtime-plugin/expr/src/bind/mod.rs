//! Partial evaluation: folds what is known, keeps the rest.
//!
//! The folded tree has the value of the original wherever that has one, and fails with the same error where it has
//! none: a known part that fails stays in place for evaluation to report (only limits on steps may differ). A
//! comprehension over a known array is unrolled while that stays small. The result is canonical: two trees that say the
//! same in the same form fold to equal lists of nodes.

mod failures;
mod unroll;
mod write;

use super::eval::{self, Environment};
use super::node::{BinaryOp, Builtin, Expr, Node, NodeId};
use super::ops::{self, EvalError};
use super::print::{Anonymous, Names};
use crate::value::Value;

/// Replaces everything that `env` knows (attributes, ranks; shapes too, where it has them) by its value and folds.
///
/// Never fails: a tree that [`Expr::validate`] refuses is returned as it is.
#[must_use]
pub fn bind(expr: &Expr, env: &dyn Environment) -> Expr {
    fold(expr, &Bound(env)).expr
}

/// As [`bind`]; takes off `steps` what it took, as far as there is that much left. Who binds again and again stops at 0.
pub fn bind_within(expr: &Expr, env: &dyn Environment, steps: &mut usize) -> Expr {
    let folded = fold(expr, &Bound(env));
    *steps = steps.saturating_sub(folded.cost);
    folded.expr
}

/// What folding may rely on.
pub(super) trait Facts {
    fn environment(&self) -> &dyn Environment;
    /// The lowest and the highest rank that a tensor can have.
    fn ranks(&self, tensor: u32) -> Option<(usize, usize)>;
    /// For messages.
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

/// A folded tree, and the parts of the original that are sure to be evaluated and sure to fail.
pub(super) struct Folded {
    pub(super) expr: Expr,
    pub(super) failures: Vec<(NodeId, EvalError)>,
    /// What folding took, in steps of evaluation.
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
    // Too large or too deep once folded: what is kept says the same, with its variables numbered anew.
    let failures = folder.failures;
    let mut copier = Folder::new(&expr.nodes, facts);
    let copied = copier.verbatim(expr.root());
    let cost = cost + copier.cost();
    let expr = if copied.is_ok() { Expr { nodes: copier.out } } else { expr.clone() };
    Folded { expr, failures, cost }
}

/// Node visits after which nothing is unrolled any more; what is left is copied once.
const FUEL: usize = 200_000;

/// Elements of known values that are made or copied before folding stops; it bounds time and memory.
const WORK: usize = 2_000_000;

/// A folded part.
enum Part {
    /// Its value, and the source that computes it.
    Known(Value, NodeId),
    /// A node of the output.
    Node(NodeId),
}

/// What a variable of the source stands for.
enum Binding {
    /// Itself, under a new slot.
    Slot(u32),
    /// An element of a comprehension that is being unrolled.
    Element(Value),
}

/// The output would become larger than an expression can be.
struct TooLarge;

type Fold<T> = Result<T, TooLarge>;

struct Folder<'a> {
    source: &'a [Node],
    facts: &'a dyn Facts,
    out: Vec<Node>,
    heights: Vec<usize>,
    locals: Vec<(u32, Binding)>,
    slots: u32,
    /// Above 0 inside what may never be evaluated.
    lazy: usize,
    fuel: usize,
    work: usize,
    /// How many comprehensions around are being unrolled.
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

    /// What it took so far, and the look at every node before.
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
                    // Charged before it is copied; nothing is unrolled without work left.
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
            // A list that is beyond what is left is not copied first: an engine may have a long one, and ask for it often.
            Node::Attribute(attribute) => {
                env.attribute(attribute).filter(|value| value.cost(self.work) <= self.work).cloned()
            }
            Node::Shape(tensor) => env.shape(tensor).map(Value::of_ints),
            Node::Rank(tensor) => self.rank(tensor),
            // One that overflows stays.
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

    /// Pays for a known value; nothing is folded any more once the work is spent.
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

    /// An operation that evaluates all of its operands.
    fn operation(&mut self, id: NodeId, node: &Node) -> Fold<Part> {
        // A plain loop: adapters would deepen the stack of every level of the tree.
        let mut parts = Vec::new();
        for operand in node.children() {
            parts.push(self.part(operand)?);
        }
        self.applied(id, node, parts)
    }

    /// An operation on parts that have been folded.
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

    /// `len(x.shape)` is the rank, which is known earlier.
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
