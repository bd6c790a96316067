//! Partial evaluation: folds what is known, keeps the rest.
//!
//! The folded tree has the value of the original wherever that has one, and fails with the same error where it has
//! none: a known part that fails stays in place for evaluation to report (only limits on steps may differ). A
//! comprehension over a known array is unrolled while that stays small. The result is canonical: two trees that say the
//! same in the same form fold to equal lists of nodes.

use super::eval::{self, Environment};
use super::node::{BinaryOp, Builtin, Expr, Node, NodeId, UnaryOp};
use super::ops::{self, EvalError};
use crate::value::Value;

/// Replaces everything that `env` knows (attributes, ranks; shapes too, where it has them) by its value and folds.
///
/// Never fails: a tree that [`Expr::validate`] refuses is returned as it is.
#[must_use]
pub fn bind(expr: &Expr, env: &dyn Environment) -> Expr {
    fold(expr, &Bound(env)).expr
}

/// What folding may rely on.
pub(super) trait Facts {
    fn environment(&self) -> &dyn Environment;
    /// The lowest and the highest rank that a tensor can have.
    fn ranks(&self, tensor: u32) -> Option<(usize, usize)>;
}

struct Bound<'a>(&'a dyn Environment);

impl Facts for Bound<'_> {
    fn environment(&self) -> &dyn Environment {
        self.0
    }

    fn ranks(&self, tensor: u32) -> Option<(usize, usize)> {
        self.0.rank(tensor).map(|rank| (rank, rank))
    }
}

/// A folded tree, and the parts of the original that are sure to be evaluated and sure to fail.
pub(super) struct Folded {
    pub(super) expr: Expr,
    pub(super) failures: Vec<(NodeId, EvalError)>,
}

pub(super) fn fold(expr: &Expr, facts: &dyn Facts) -> Folded {
    if expr.check_tree().is_err() {
        return Folded { expr: expr.clone(), failures: Vec::new() };
    }
    let mut folder = Folder::new(&expr.nodes, facts);
    let root = folder.part(expr.root()).and_then(|part| folder.emitted(part));
    if root.is_ok() {
        return Folded { expr: Expr { nodes: folder.out }, failures: folder.failures };
    }
    // Too large or too deep once folded: what is kept says the same, with its variables numbered anew.
    let failures = folder.failures;
    let mut copier = Folder::new(&expr.nodes, facts);
    let copied = copier.verbatim(expr.root());
    let expr = if copied.is_ok() { Expr { nodes: copier.out } } else { expr.clone() };
    Folded { expr, failures }
}

/// Node visits after which nothing is unrolled any more; what is left is copied once.
const FUEL: usize = 200_000;

/// Elements of known values that are made or copied before folding stops; it bounds time and memory.
const WORK: usize = 2_000_000;

/// The largest value that is written out as literals, in nodes: a longer one stays the expression that makes it.
const LITERAL_LIMIT: usize = 1024;

/// The most nodes that unrolling one comprehension may leave.
const UNROLL_LIMIT: usize = 1024;

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
            Node::Attribute(_) | Node::Shape(_) | Node::Rank(_) | Node::Numel(_) => self.leaf(id, node),
            Node::Local(slot) => match self.binding(*slot) {
                Some(Binding::Element(value)) => {
                    let value = value.clone();
                    self.work = self.work.saturating_sub(nodes_of(&value, WORK));
                    known(value)
                }
                Some(&Binding::Slot(slot)) => self.emit(Node::Local(slot)),
                None => Err(TooLarge),
            },
            Node::Array(items) => {
                self.operation(id, items, &|items| Ok(Value::Array(items.to_vec())), &Node::Array)
            }
            Node::Unary(op, operand) => self.unary(id, *op, *operand),
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                self.logical(id, *op, *left, *right)
            }
            Node::Binary(op, left, right) => self.binary(id, *op, *left, *right),
            Node::Conditional { condition, then, otherwise } => {
                self.conditional(*condition, *then, *otherwise)
            }
            Node::Index { array, index } => self.index(id, *array, *index),
            Node::Call(builtin, args) => self.call(id, *builtin, args),
            Node::Comprehension { slot, over, condition, body } => {
                self.comprehension(*slot, *over, *condition, *body)
            }
        }
    }

    fn binding(&self, slot: u32) -> Option<&Binding> {
        self.locals.iter().rev().find(|(found, _)| *found == slot).map(|(_, binding)| binding)
    }

    fn leaf(&mut self, id: NodeId, node: &Node) -> Fold<Part> {
        let env = self.facts.environment();
        let value = match *node {
            Node::Attribute(attribute) => env.attribute(attribute).cloned(),
            Node::Shape(tensor) => {
                env.shape(tensor).map(|shape| Value::Array(shape.iter().copied().map(Value::Int).collect()))
            }
            Node::Rank(tensor) => self.rank(tensor),
            // One that overflows stays.
            Node::Numel(tensor) => eval::numel(env, tensor).ok(),
            _ => None,
        };
        match value {
            Some(value) if self.afford(&value) => Ok(Part::Known(value, id)),
            _ => self.emit(node.clone()),
        }
    }

    /// Pays for a known value; nothing is folded any more once the work is spent.
    fn afford(&mut self, value: &Value) -> bool {
        match self.work.checked_sub(nodes_of(value, WORK)) {
            Some(left) => {
                self.work = left;
                true
            }
            None => false,
        }
    }

    fn rank(&self, tensor: u32) -> Option<Value> {
        let (lowest, highest) = self.facts.ranks(tensor)?;
        if lowest != highest {
            return None;
        }
        i64::try_from(lowest).ok().map(Value::Int)
    }

    /// Adds a node to the output.
    fn emit(&mut self, node: Node) -> Fold<Part> {
        let mut height = 1;
        node.children(&mut |child| {
            height = height.max(1 + self.heights.get(child as usize).copied().unwrap_or(0));
        });
        if height > Expr::DEPTH_LIMIT || self.out.len() >= Expr::NODE_LIMIT {
            return Err(TooLarge);
        }
        let id = NodeId::try_from(self.out.len()).map_err(|_| TooLarge)?;
        self.out.push(node);
        self.heights.push(height);
        Ok(Part::Node(id))
    }

    /// The output node of a part; a known value becomes a literal.
    fn emitted(&mut self, part: Part) -> Fold<NodeId> {
        match part {
            Part::Node(id) => Ok(id),
            Part::Known(value, source) => {
                if nodes_of(&value, LITERAL_LIMIT) <= LITERAL_LIMIT {
                    self.literal(value)
                } else {
                    self.written(source)
                }
            }
        }
    }

    fn emit_id(&mut self, node: Node) -> Fold<NodeId> {
        match self.emit(node)? {
            Part::Node(id) | Part::Known(_, id) => Ok(id),
        }
    }

    fn literal(&mut self, value: Value) -> Fold<NodeId> {
        let node = match value {
            Value::Int(value) => Node::Int(value),
            Value::Float(value) => Node::Float(value),
            Value::Bool(value) => Node::Bool(value),
            Value::Str(value) => Node::Str(value),
            Value::Array(items) => {
                let items =
                    items.into_iter().map(|item| self.literal(item)).collect::<Fold<Vec<NodeId>>>()?;
                Node::Array(items)
            }
        };
        self.emit_id(node)
    }

    /// Writes a value that is too long for literals as the operation that makes it, on folded operands.
    fn written(&mut self, id: NodeId) -> Fold<NodeId> {
        let source = self.source;
        let operands: &[NodeId] = match source.get(id as usize).ok_or(TooLarge)? {
            Node::Array(items) | Node::Call(_, items) => items,
            Node::Index { array, index } => &[*array, *index],
            _ => return self.verbatim(id),
        };
        let mut parts = Vec::with_capacity(operands.len());
        for &operand in operands {
            parts.push(self.part(operand)?);
        }
        let ids = parts.into_iter().map(|part| self.emitted(part)).collect::<Fold<Vec<NodeId>>>()?;
        let node = match (source.get(id as usize), ids.as_slice()) {
            (Some(Node::Call(builtin, _)), _) => Node::Call(*builtin, ids),
            (Some(Node::Index { .. }), &[array, index]) => Node::Index { array, index },
            _ => Node::Array(ids),
        };
        self.emit_id(node)
    }

    /// Copies a part of the source as it is, except that variables which are bound to elements become literals.
    fn verbatim(&mut self, id: NodeId) -> Fold<NodeId> {
        self.fuel = self.fuel.saturating_sub(1);
        if self.unrolling > 0 && self.fuel == 0 {
            return Err(TooLarge);
        }
        let source = self.source;
        let node = match source.get(id as usize).ok_or(TooLarge)? {
            Node::Local(slot) => match self.binding(*slot) {
                Some(Binding::Element(value)) => {
                    let value = value.clone();
                    if nodes_of(&value, LITERAL_LIMIT) > LITERAL_LIMIT {
                        return Err(TooLarge);
                    }
                    return self.literal(value);
                }
                Some(&Binding::Slot(slot)) => Node::Local(slot),
                None => return Err(TooLarge),
            },
            Node::Array(items) => Node::Array(self.verbatims(items)?),
            Node::Call(builtin, args) => Node::Call(*builtin, self.verbatims(args)?),
            Node::Unary(op, operand) => Node::Unary(*op, self.verbatim(*operand)?),
            Node::Binary(op, left, right) => Node::Binary(*op, self.verbatim(*left)?, self.verbatim(*right)?),
            Node::Conditional { condition, then, otherwise } => Node::Conditional {
                condition: self.verbatim(*condition)?,
                then: self.verbatim(*then)?,
                otherwise: self.verbatim(*otherwise)?,
            },
            Node::Index { array, index } => {
                Node::Index { array: self.verbatim(*array)?, index: self.verbatim(*index)? }
            }
            Node::Comprehension { slot, over, condition, body } => {
                let over = self.verbatim(*over)?;
                let new = self.new_slot();
                self.locals.push((*slot, Binding::Slot(new)));
                let condition = condition.map(|condition| self.verbatim(condition)).transpose();
                let body = condition.and_then(|condition| Ok((condition, self.verbatim(*body)?)));
                self.locals.pop();
                let (condition, body) = body?;
                Node::Comprehension { slot: new, over, condition, body }
            }
            leaf => leaf.clone(),
        };
        self.emit_id(node)
    }

    fn verbatims(&mut self, items: &[NodeId]) -> Fold<Vec<NodeId>> {
        items.iter().map(|&item| self.verbatim(item)).collect()
    }

    fn new_slot(&mut self) -> u32 {
        let slot = self.slots;
        self.slots += 1;
        slot
    }

    fn failed(&mut self, id: NodeId, error: EvalError) {
        // Inlining can put one mistake in many places; a few are enough.
        const KEPT: usize = 16;
        if self.lazy == 0 && self.failures.len() < KEPT {
            self.failures.push((id, error));
        }
    }

    /// An operation that evaluates all of its operands.
    fn operation(
        &mut self,
        id: NodeId,
        operands: &[NodeId],
        compute: &dyn Fn(&[Value]) -> Result<Value, EvalError>,
        node: &dyn Fn(Vec<NodeId>) -> Node,
    ) -> Fold<Part> {
        // A plain loop: adapters would deepen the stack of every level of the tree.
        let mut parts = Vec::with_capacity(operands.len());
        for &operand in operands {
            parts.push(self.part(operand)?);
        }
        self.applied(id, parts, compute, node)
    }

    /// An operation on parts that have been folded.
    fn applied(
        &mut self,
        id: NodeId,
        mut parts: Vec<Part>,
        compute: &dyn Fn(&[Value]) -> Result<Value, EvalError>,
        node: &dyn Fn(Vec<NodeId>) -> Node,
    ) -> Fold<Part> {
        if self.work > 0 && parts.iter().all(|part| matches!(part, Part::Known(..))) {
            let (values, sources): (Vec<Value>, Vec<NodeId>) = parts
                .into_iter()
                .filter_map(|part| match part {
                    Part::Known(value, source) => Some((value, source)),
                    Part::Node(_) => None,
                })
                .unzip();
            match compute(&values) {
                Ok(value) if self.afford(&value) => return Ok(Part::Known(value, id)),
                Ok(_) => self.work = 0,
                Err(error) => self.failed(id, error),
            }
            parts =
                values.into_iter().zip(sources).map(|(value, source)| Part::Known(value, source)).collect();
        }
        let ids = parts.into_iter().map(|part| self.emitted(part)).collect::<Fold<Vec<NodeId>>>()?;
        self.emit(node(ids))
    }

    fn unary(&mut self, id: NodeId, op: UnaryOp, operand: NodeId) -> Fold<Part> {
        let compute = |values: &[Value]| match values {
            [value] => ops::unary(op, value),
            _ => Err(EvalError::Malformed),
        };
        self.operation(id, &[operand], &compute, &|ids| match ids.first() {
            Some(&operand) => Node::Unary(op, operand),
            None => Node::Array(ids),
        })
    }

    fn binary(&mut self, id: NodeId, op: BinaryOp, left: NodeId, right: NodeId) -> Fold<Part> {
        let compute = |values: &[Value]| match values {
            [left, right] => ops::binary(op, left, right),
            _ => Err(EvalError::Malformed),
        };
        self.operation(id, &[left, right], &compute, &|ids| match *ids.as_slice() {
            [left, right] => Node::Binary(op, left, right),
            _ => Node::Array(ids),
        })
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
        let condition = self.emitted(condition)?;
        let then = self.emitted(then)?;
        let otherwise = self.emitted(otherwise)?;
        self.emit(Node::Conditional { condition, then, otherwise })
    }

    fn index(&mut self, id: NodeId, array: NodeId, index: NodeId) -> Fold<Part> {
        let compute = |values: &[Value]| match values {
            [Value::Array(items), Value::Int(index)] => ops::index(items, *index).cloned(),
            [array, index] => Err(ops::wrong_kind("[]", &[array, index])),
            _ => Err(EvalError::Malformed),
        };
        let part = self.operation(id, &[array, index], &compute, &|ids| match *ids.as_slice() {
            [array, index] => Node::Index { array, index },
            _ => Node::Array(ids),
        })?;
        self.check_rank(id, &part);
        Ok(part)
    }

    /// `x.shape[7]` fails where `x` can have at most 7 dimensions.
    fn check_rank(&mut self, id: NodeId, part: &Part) {
        let Part::Node(new) = *part else { return };
        let Some(Node::Index { array, index }) = self.out.get(new as usize) else { return };
        let (Some(Node::Shape(tensor)), Some(Node::Int(index))) =
            (self.out.get(*array as usize), self.out.get(*index as usize))
        else {
            return;
        };
        let (index, tensor) = (*index, *tensor);
        if let Some((_, len)) = self.facts.ranks(tensor)
            && ops::position(len, index).is_none()
        {
            self.failed(id, EvalError::IndexOutOfRange { index, len });
        }
    }

    fn call(&mut self, id: NodeId, builtin: Builtin, args: &[NodeId]) -> Fold<Part> {
        match args {
            [array] if builtin == Builtin::Len => self.length(id, *array),
            _ => self
                .operation(id, args, &|values| ops::call(builtin, values), &|ids| Node::Call(builtin, ids)),
        }
    }

    /// `len(x.shape)` is the rank, which is known earlier.
    fn length(&mut self, id: NodeId, array: NodeId) -> Fold<Part> {
        let start = self.out.len();
        let array = self.part(array)?;
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
        self.applied(id, vec![array], &|values| ops::call(Builtin::Len, values), &|ids| {
            Node::Call(Builtin::Len, ids)
        })
    }

    fn comprehension(
        &mut self,
        slot: u32,
        over: NodeId,
        condition: Option<NodeId>,
        body: NodeId,
    ) -> Fold<Part> {
        let over = self.part(over)?;
        if let Part::Known(Value::Array(items), source) = &over {
            let marks = (self.out.len(), self.slots, self.failures.len());
            self.unrolling += 1;
            let unrolled = self.unroll(slot, items, condition, body, *source);
            self.unrolling -= 1;
            if let Ok(Some(part)) = unrolled {
                return Ok(part);
            }
            self.out.truncate(marks.0);
            self.heights.truncate(marks.0);
            self.slots = marks.1;
            self.failures.truncate(marks.2);
        }
        let over = self.emitted(over)?;
        let new = self.new_slot();
        self.locals.push((slot, Binding::Slot(new)));
        let inside = self.lazily(|folder| {
            let condition = match condition {
                Some(condition) => {
                    let part = folder.part(condition)?;
                    Some(folder.emitted(part)?)
                }
                None => None,
            };
            let body = folder.part(body)?;
            Ok((condition, folder.emitted(body)?))
        });
        self.locals.pop();
        let (condition, body) = inside?;
        self.emit(Node::Comprehension { slot: new, over, condition, body })
    }

    /// The elements, if every condition is known and what they leave is small.
    fn unroll(
        &mut self,
        slot: u32,
        items: &[Value],
        condition: Option<NodeId>,
        body: NodeId,
        source: NodeId,
    ) -> Fold<Option<Part>> {
        let start = self.out.len();
        let mut parts = Vec::new();
        for item in items {
            self.locals.push((slot, Binding::Element(item.clone())));
            let part = self.element(condition, body);
            self.locals.pop();
            match part? {
                Element::Kept(part) => parts.push(part),
                Element::LeftOut => {}
                Element::Undecided => return Ok(None),
            }
            if self.out.len() - start > UNROLL_LIMIT {
                return Ok(None);
            }
        }
        let mut values = Vec::with_capacity(parts.len());
        for part in &parts {
            match part {
                Part::Known(value, _) => values.push(value.clone()),
                Part::Node(_) => break,
            }
        }
        if values.len() == parts.len() {
            let value = Value::Array(values);
            // A long value would be copied from its source, and there is none that stands alone here.
            let small = nodes_of(&value, LITERAL_LIMIT) <= LITERAL_LIMIT;
            return Ok(small.then_some(Part::Known(value, source)));
        }
        let mut ids = Vec::with_capacity(parts.len());
        for part in parts {
            // The element's variable is no longer bound, so its source cannot be copied.
            ids.push(match part {
                Part::Node(id) => id,
                Part::Known(value, _) if nodes_of(&value, UNROLL_LIMIT) <= UNROLL_LIMIT => {
                    self.literal(value)?
                }
                Part::Known(..) => return Ok(None),
            });
        }
        if self.out.len() - start > UNROLL_LIMIT {
            return Ok(None);
        }
        self.emit(Node::Array(ids)).map(Some)
    }

    fn element(&mut self, condition: Option<NodeId>, body: NodeId) -> Fold<Element> {
        if let Some(condition) = condition {
            match self.part(condition)? {
                Part::Known(Value::Bool(true), _) => {}
                Part::Known(Value::Bool(false), _) => return Ok(Element::LeftOut),
                _ => return Ok(Element::Undecided),
            }
        }
        self.part(body).map(Element::Kept)
    }
}

/// One element of a comprehension that is being unrolled.
enum Element {
    Kept(Part),
    LeftOut,
    Undecided,
}

/// How many nodes write `value` out, as far as `limit`.
fn nodes_of(value: &Value, limit: usize) -> usize {
    match value {
        Value::Array(items) if items.len() > limit => items.len(),
        Value::Array(items) => {
            items.iter().fold(1_usize, |total, item| total.saturating_add(nodes_of(item, limit)))
        }
        _ => 1,
    }
}
