//! Terms: deduplicated nodes of several expressions, to share facts. Variables are numbered by nesting;
//! outputs' shapes are expanded.

use std::collections::HashMap;
use std::sync::Arc;

use crate::node::{BinaryOp, Builtin, DeviceFact, Expr, Node, NodeId, UnaryOp};
use crate::ops::{self, EvalError};

/// Index of a term, less than its users'.
pub type TermId = u32;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Term {
    Int(i64),
    /// Bits of a float.
    Float(u64),
    Bool(bool),
    Str(String),
    Attribute(u32),
    Shape(u32),
    Dim(u32, u32),
    Rank(u32),
    Numel(u32),
    Aligned(u32, u32),
    Device(DeviceFact),
    Values(u32),
    Size(u32),
    Local(u32),
    Array(Vec<TermId>),
    Unary(UnaryOp, TermId),
    Binary(BinaryOp, TermId, TermId),
    Conditional(TermId, TermId, TermId),
    Index(TermId, TermId),
    Call(Builtin, Vec<TermId>),
    Comprehension {
        slot: u32,
        over: TermId,
        condition: Option<TermId>,
        body: TermId,
    },
}

/// A table of terms, optionally extending a frozen one.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    base: Option<Arc<Terms>>,
    offset: usize,
    own: Vec<Term>,
    ids: HashMap<Term, TermId>,
    shapes: HashMap<u32, TermId>,
    highest: u32,
}

impl Terms {
    /// Creates a table that extends `base`.
    pub fn on(base: Arc<Terms>) -> Terms {
        let (offset, shapes, highest) = (base.len(), base.shapes.clone(), base.highest);
        Terms { base: Some(base), offset, shapes, highest, ..Terms::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.offset + self.own.len()
    }

    pub(super) fn get(&self, id: TermId) -> Option<&Term> {
        match (id as usize).checked_sub(self.offset) {
            Some(at) => self.own.get(at),
            None => self.base.as_ref()?.get(id),
        }
    }

    pub(super) fn find(&self, term: &Term) -> Option<TermId> {
        let id = self.base.as_ref().and_then(|base| base.find(term));
        id.or_else(|| self.ids.get(term).copied())
    }

    fn put(&mut self, term: Term) -> Result<TermId, EvalError> {
        if let Some(id) = self.find(&term) {
            return Ok(id);
        }
        let id = TermId::try_from(self.len()).map_err(|_| EvalError::Malformed)?;
        self.own.push(term.clone());
        self.ids.insert(term, id);
        Ok(id)
    }

    pub(super) fn comparison(&self, op: BinaryOp, left: TermId, right: TermId) -> Option<TermId> {
        self.find(&ordered(op, left, right))
    }

    /// Defines the shape of `tensor` for later terms.
    pub fn define_shape(&mut self, tensor: u32, shape: TermId) {
        self.shapes.insert(tensor, shape);
        for term in &self.own {
            if let Term::Comprehension { slot, .. } = term {
                self.highest = self.highest.max(*slot);
            }
        }
    }

    /// Returns the number of elements of a shape.
    pub fn numel_of(&mut self, shape: TermId) -> Result<TermId, EvalError> {
        match self.get(shape) {
            Some(&Term::Shape(tensor)) => self.put(Term::Numel(tensor)),
            _ => self.put(Term::Call(Builtin::Prod, vec![shape])),
        }
    }

    /// Adds an expression. `rank` returns known ranks.
    pub fn add(&mut self, expr: &Expr, rank: &dyn Fn(u32) -> Option<usize>) -> Result<TermId, EvalError> {
        if expr.validate(u32::MAX as usize, u32::MAX as usize).is_err() {
            return Err(EvalError::Malformed);
        }
        let slots = self.canonical_slots(&expr.nodes);
        let mut ids: Vec<TermId> = Vec::with_capacity(expr.nodes.len());
        for node in &expr.nodes {
            let id = self.node(expr, node, &ids, &slots, rank)?;
            ids.push(id);
        }
        ids.last().copied().ok_or(EvalError::Malformed)
    }

    fn node(
        &mut self,
        expr: &Expr,
        node: &Node,
        ids: &[TermId],
        slots: &HashMap<u32, u32>,
        rank: &dyn Fn(u32) -> Option<usize>,
    ) -> Result<TermId, EvalError> {
        let at = |id: &NodeId| ids.get(*id as usize).copied().ok_or(EvalError::Malformed);
        let slot = |slot: &u32| slots.get(slot).copied().ok_or(EvalError::Malformed);
        let term = match node {
            Node::Int(value) => Term::Int(*value),
            Node::Float(value) => Term::Float(value.to_bits()),
            Node::Bool(value) => Term::Bool(*value),
            Node::Str(text) => Term::Str(text.clone()),
            Node::Attribute(attribute) => Term::Attribute(*attribute),
            Node::Shape(tensor) => match self.shapes.get(tensor) {
                Some(&shape) => return Ok(shape),
                None => Term::Shape(*tensor),
            },
            Node::Rank(tensor) => match self.shapes.get(tensor) {
                Some(&shape) => match self.get(shape) {
                    Some(Term::Array(items)) => Term::Int(i64::try_from(items.len()).unwrap_or(i64::MAX)),
                    Some(&Term::Shape(tensor)) => Term::Rank(tensor),
                    _ => Term::Call(Builtin::Len, vec![shape]),
                },
                None => Term::Rank(*tensor),
            },
            Node::Numel(tensor) => match self.shapes.get(tensor) {
                Some(&shape) => return self.numel_of(shape),
                None => Term::Numel(*tensor),
            },
            Node::Aligned { tensor, bytes } => Term::Aligned(*tensor, *bytes),
            Node::Device(fact) => Term::Device(*fact),
            Node::Values(tensor) => Term::Values(*tensor),
            Node::Size(tensor) => Term::Size(*tensor),
            Node::Local(local) => Term::Local(slot(local)?),
            Node::Array(items) => Term::Array(items.iter().map(at).collect::<Result<_, _>>()?),
            Node::Unary(op, operand) => Term::Unary(*op, at(operand)?),
            Node::Binary(op, left, right) => ordered(*op, at(left)?, at(right)?),
            Node::Conditional { condition, then, otherwise } => {
                Term::Conditional(at(condition)?, at(then)?, at(otherwise)?)
            }
            Node::Index { array, index } => {
                let whole = expr.nodes.get(*array as usize);
                let (array, index) = (at(array)?, at(index)?);
                match self.dimension(whole, array, index, rank)? {
                    Some(id) => return Ok(id),
                    None => Term::Index(array, index),
                }
            }
            Node::Call(builtin, args) => Term::Call(*builtin, args.iter().map(at).collect::<Result<_, _>>()?),
            Node::Comprehension { slot: local, over, condition, body } => Term::Comprehension {
                slot: slot(local)?,
                over: at(over)?,
                condition: condition.as_ref().map(at).transpose()?,
                body: at(body)?,
            },
        };
        self.put(term)
    }

    fn dimension(
        &mut self,
        whole: Option<&Node>,
        array: TermId,
        index: TermId,
        rank: &dyn Fn(u32) -> Option<usize>,
    ) -> Result<Option<TermId>, EvalError> {
        if !matches!(whole, Some(Node::Shape(_))) {
            return Ok(None);
        }
        let Some(&Term::Int(index)) = self.get(index) else { return Ok(None) };
        match self.get(array) {
            // Other dimensions have values wherever this one has.
            Some(Term::Array(items)) => {
                Ok(ops::position(items.len(), index).and_then(|at| items.get(at).copied()))
            }
            Some(&Term::Shape(tensor)) => self.dim_of(tensor, index, rank),
            _ => Ok(None),
        }
    }

    /// Returns dimension `index` of a tensor of known rank.
    pub fn dim_of(
        &mut self,
        tensor: u32,
        index: i64,
        rank: &dyn Fn(u32) -> Option<usize>,
    ) -> Result<Option<TermId>, EvalError> {
        let axis = rank(tensor).and_then(|rank| ops::position(rank, index));
        match axis.and_then(|axis| u32::try_from(axis).ok()) {
            Some(axis) => self.put(Term::Dim(tensor, axis)).map(Some),
            None => Ok(None),
        }
    }

    fn canonical_slots(&self, nodes: &[Node]) -> HashMap<u32, u32> {
        let mut slots = HashMap::new();
        let mut highest: Vec<u32> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let own = match node {
                Node::Shape(tensor) | Node::Numel(tensor) | Node::Rank(tensor)
                    if self.shapes.contains_key(tensor) =>
                {
                    self.highest
                }
                _ => 0,
            };
            let inside = node.children().filter_map(|child| highest.get(child as usize).copied());
            let mut number = inside.fold(own, u32::max);
            if let Node::Comprehension { slot, .. } = node {
                number = number.saturating_add(1);
                slots.insert(*slot, number);
            }
            highest.push(number);
        }
        slots
    }

    /// Returns the term of an attribute.
    pub fn attribute(&mut self, attribute: u32) -> Result<TermId, EvalError> {
        self.put(Term::Attribute(attribute))
    }

    /// Returns a shape input's values.
    pub fn values(&mut self, tensor: u32) -> Result<TermId, EvalError> {
        self.put(Term::Values(tensor))
    }

    /// Returns the term of an input's rank.
    pub fn rank(&mut self, tensor: u32) -> Result<TermId, EvalError> {
        self.put(Term::Rank(tensor))
    }

    /// Returns an input's number of elements.
    pub fn numel(&mut self, tensor: u32) -> Result<TermId, EvalError> {
        self.put(Term::Numel(tensor))
    }
}

/// Orders operands: evaluation order is irrelevant.
fn ordered(op: BinaryOp, left: TermId, right: TermId) -> Term {
    let (op, left, right) = match op {
        BinaryOp::Gt => (BinaryOp::Lt, right, left),
        BinaryOp::Ge => (BinaryOp::Le, right, left),
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne if right < left => (op, right, left),
        _ => (op, left, right),
    };
    Term::Binary(op, left, right)
}
