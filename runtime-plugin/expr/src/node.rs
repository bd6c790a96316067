//! The resolved tree: names are indices, functions are inlined, constants of the variant are folded.
//!
//! A tree is a flat list in which children come before their parents. That makes it safe to read from an engine (no
//! recursion while decoding, a bound on depth is one pass) and cheap to walk.

use serde::{Deserialize, Serialize};

/// Index of a node in its expression; always less than the index of any node that refers to it.
pub type NodeId = u32;

/// A resolved expression. The root is the last node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expr {
    /// Children before parents.
    pub nodes: Vec<Node>,
}

impl Expr {
    /// The value of an expression that is an integer already.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        match self.nodes.as_slice() {
            [Node::Int(value)] => Some(*value),
            _ => None,
        }
    }

    /// The part whose last node is `root`, by itself: none where there is no such node.
    #[must_use]
    pub fn part(&self, root: NodeId) -> Option<Expr> {
        let nodes = self.nodes.get(..=root as usize)?;
        let mut is_of_it = vec![false; nodes.len()];
        *is_of_it.last_mut()? = true;
        for (index, node) in nodes.iter().enumerate().rev() {
            if is_of_it.get(index) == Some(&true) {
                node.children(&mut |child| {
                    if let Some(child) = is_of_it.get_mut(child as usize) {
                        *child = true;
                    }
                });
            }
        }
        let before = |id: NodeId| is_of_it.iter().take(id as usize).filter(|is_of_it| **is_of_it).count();
        let moved = |id: NodeId| NodeId::try_from(before(id)).unwrap_or(NodeId::MAX);
        let kept = nodes.iter().zip(&is_of_it).filter(|(_, is_of_it)| **is_of_it);
        Some(Expr { nodes: kept.map(|(node, _)| node.map_children(moved)).collect() })
    }
}

/// One node of an expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Node {
    /// An integer literal.
    Int(i64),
    /// A float literal.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A string literal.
    Str(String),
    /// The value of an attribute, by its index in the plugin. Known at node time.
    Attribute(u32),
    /// The shape of a tensor (inputs, then outputs): an array of `rank` integers. Known at shape time.
    Shape(u32),
    /// The rank of a tensor. Known at node time.
    Rank(u32),
    /// The number of elements of a tensor. Known at shape time.
    Numel(u32),
    /// `aligned(x, 16)`: whether the address of a tensor is a multiple of so many bytes. Known at launch time.
    Aligned {
        /// The tensor.
        tensor: u32,
        /// A power of two, at most [`Node::ALIGNMENT_LIMIT`].
        bytes: u32,
    },
    /// `device.sms` and so on. Known when kernels are launched.
    Device(DeviceFact),
    /// The values of a shape input, by its index: an array of as many integers as it has elements. Known at shape time.
    Values(u32),
    /// The size that a size tensor holds, by its index over inputs, then outputs. Known once the kernels have run, so it can only be a
    /// dimension of an output, and nothing is computed with it.
    Size(u32),
    /// The variable of an enclosing comprehension, by its slot.
    Local(u32),
    /// `[a, b, c]`.
    Array(Vec<NodeId>),
    /// `-a`, `not a`.
    Unary(UnaryOp, NodeId),
    /// `a + b` and so on. `and` and `or` do not evaluate the right side where the left decides.
    Binary(BinaryOp, NodeId, NodeId),
    /// `then if condition else otherwise`; only the side that is taken is evaluated.
    Conditional {
        /// A boolean.
        condition: NodeId,
        /// The value where it holds.
        then: NodeId,
        /// The value where it does not.
        otherwise: NodeId,
    },
    /// `array[index]`; a negative index counts from the end.
    Index {
        /// The array.
        array: NodeId,
        /// An integer.
        index: NodeId,
    },
    /// A built-in function.
    Call(Builtin, Vec<NodeId>),
    /// `[body for slot in over if condition]`.
    Comprehension {
        /// The variable's slot; unique in the expression.
        slot: u32,
        /// An array.
        over: NodeId,
        /// Elements for which it does not hold are left out.
        condition: Option<NodeId>,
        /// Evaluated once for each element.
        body: NodeId,
    },
}

/// What a launch can depend on of the device that it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeviceFact {
    /// How many multiprocessors it has.
    Sms,
    /// The most dynamic shared memory that a block can ask for, bytes (`CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`).
    SharedBytes,
    /// Its compute capability: 90 for 9.0.
    Capability,
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnaryOp {
    /// `-a`
    Neg,
    /// `not a`
    Not,
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a // b`: floor division, as in Python.
    FloorDiv,
    /// `a % b`: the remainder of floor division, as in Python.
    Mod,
    /// `a / b`: between floats only.
    Div,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
    /// `a and b`
    And,
    /// `a or b`
    Or,
}

/// Built-in functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Builtin {
    /// `min(a, b, ...)` or `min(array)`.
    Min,
    /// `max(a, b, ...)` or `max(array)`.
    Max,
    /// `abs(a)`
    Abs,
    /// `ceil_div(a, b)`: division rounded up.
    CeilDiv,
    /// `len(array)`
    Len,
    /// `get(array, index, default)`: the default where the index is below 0 or beyond the end.
    Get,
    /// `range(n)` or `range(a, b)`.
    Range,
    /// `sum(array)`: 0 where it is empty.
    Sum,
    /// `prod(array)`: 1 where it is empty.
    Prod,
    /// `sqrt(a)`
    Sqrt,
    /// `rsqrt(a)`
    Rsqrt,
    /// `exp(a)`
    Exp,
    /// `log(a)`
    Log,
    /// `float(a)`
    Float,
    /// `int(a)`: towards zero.
    Int,
}

impl DeviceFact {
    /// Every fact, in the order in which errors list them.
    pub const ALL: [DeviceFact; 3] = [DeviceFact::Sms, DeviceFact::SharedBytes, DeviceFact::Capability];

    /// The name behind `device.` in expressions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DeviceFact::Sms => "sms",
            DeviceFact::SharedBytes => "shared_bytes",
            DeviceFact::Capability => "capability",
        }
    }

    /// The fact with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DeviceFact> {
        Self::ALL.into_iter().find(|fact| fact.name() == name)
    }

    /// The least and the greatest that it can be; proofs rely on it, so it is generous. Every device since compute capability 5.0 gives a
    /// block 48 KiB (CUDA C++ programming guide 13.0, "compute capabilities").
    #[must_use]
    pub const fn range(self) -> (i64, i64) {
        match self {
            DeviceFact::Sms => (1, 1024),
            DeviceFact::SharedBytes => (48 << 10, 1 << 20),
            DeviceFact::Capability => (50, 999),
        }
    }
}

impl std::fmt::Display for DeviceFact {
    /// As expressions write it: `device.sms`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "device.{}", self.name())
    }
}

impl UnaryOp {
    /// How it is written.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Not => "not",
        }
    }
}

impl BinaryOp {
    /// How it is written.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::FloorDiv => "//",
            BinaryOp::Mod => "%",
            BinaryOp::Div => "/",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
        }
    }
}

impl Builtin {
    /// Every built-in function, in the order in which errors list them.
    pub const ALL: [Builtin; 15] = [
        Builtin::Min,
        Builtin::Max,
        Builtin::Abs,
        Builtin::CeilDiv,
        Builtin::Len,
        Builtin::Get,
        Builtin::Range,
        Builtin::Sum,
        Builtin::Prod,
        Builtin::Sqrt,
        Builtin::Rsqrt,
        Builtin::Exp,
        Builtin::Log,
        Builtin::Float,
        Builtin::Int,
    ];

    /// The name used in expressions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Builtin::Min => "min",
            Builtin::Max => "max",
            Builtin::Abs => "abs",
            Builtin::CeilDiv => "ceil_div",
            Builtin::Len => "len",
            Builtin::Get => "get",
            Builtin::Range => "range",
            Builtin::Sum => "sum",
            Builtin::Prod => "prod",
            Builtin::Sqrt => "sqrt",
            Builtin::Rsqrt => "rsqrt",
            Builtin::Exp => "exp",
            Builtin::Log => "log",
            Builtin::Float => "float",
            Builtin::Int => "int",
        }
    }

    /// The function with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Builtin> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }
}

impl Node {
    /// The most bytes of alignment that an expression can ask for: what an application has to give TensorRT in every tensor
    /// (`IExecutionContext::setTensorAddress`, `NvInferRuntime.h`, TensorRT-RTX 1.3 to 1.7).
    pub const ALIGNMENT_LIMIT: u32 = 256;

    /// A slot that no comprehension has. While names are resolved, its variable stands for what a parameter may be, and for
    /// what is wrong.
    pub(super) const ANYTHING: u32 = u32::MAX;

    /// Whether `bytes` is a power of two that is not above [`Node::ALIGNMENT_LIMIT`].
    #[must_use]
    pub const fn is_alignment(bytes: u32) -> bool {
        bytes.is_power_of_two() && bytes <= Node::ALIGNMENT_LIMIT
    }

    /// Returns the node with the children that `map` returns for its own.
    pub(super) fn map_children(&self, map: impl Fn(NodeId) -> NodeId) -> Node {
        let all = |ids: &[NodeId]| ids.iter().map(|&id| map(id)).collect();
        match self {
            Node::Array(items) => Node::Array(all(items)),
            Node::Call(builtin, args) => Node::Call(*builtin, all(args)),
            Node::Unary(op, operand) => Node::Unary(*op, map(*operand)),
            Node::Binary(op, left, right) => Node::Binary(*op, map(*left), map(*right)),
            Node::Conditional { condition, then, otherwise } => {
                Node::Conditional { condition: map(*condition), then: map(*then), otherwise: map(*otherwise) }
            }
            Node::Index { array, index } => Node::Index { array: map(*array), index: map(*index) },
            Node::Comprehension { slot, over, condition, body } => Node::Comprehension {
                slot: *slot,
                over: map(*over),
                condition: condition.map(&map),
                body: map(*body),
            },
            leaf => leaf.clone(),
        }
    }

    /// Calls `visit` with every child, in the order of the fields.
    pub(super) fn children(&self, visit: &mut dyn FnMut(NodeId)) {
        match self {
            Node::Int(_)
            | Node::Float(_)
            | Node::Bool(_)
            | Node::Str(_)
            | Node::Attribute(_)
            | Node::Shape(_)
            | Node::Rank(_)
            | Node::Numel(_)
            | Node::Aligned { .. }
            | Node::Device(_)
            | Node::Values(_)
            | Node::Size(_)
            | Node::Local(_) => {}
            Node::Array(items) | Node::Call(_, items) => items.iter().for_each(|&item| visit(item)),
            Node::Unary(_, operand) => visit(*operand),
            Node::Binary(_, left, right) => {
                visit(*left);
                visit(*right);
            }
            Node::Conditional { condition, then, otherwise } => {
                visit(*condition);
                visit(*then);
                visit(*otherwise);
            }
            Node::Index { array, index } => {
                visit(*array);
                visit(*index);
            }
            Node::Comprehension { over, condition, body, .. } => {
                visit(*over);
                condition.iter().for_each(|&condition| visit(condition));
                visit(*body);
            }
        }
    }
}
