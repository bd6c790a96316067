//! The resolved tree: indices for names, inlined functions, folded constants. A flat list: decoding never recurses.

use serde::{Deserialize, Serialize};

/// Index of a node, less than its users'.
pub type NodeId = u32;

/// A resolved expression; the root is the last node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expr {
    /// Children before parents.
    pub nodes: Vec<Node>,
}

impl Expr {
    /// Returns the value of an integer literal.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        match self.nodes.as_slice() {
            [Node::Int(value)] => Some(*value),
            _ => None,
        }
    }

    /// Returns the part with this root; `None` if out of range.
    #[must_use]
    pub fn part(&self, root: NodeId) -> Option<Expr> {
        let nodes = self.nodes.get(..=root as usize)?;
        let mut is_of_it = vec![false; nodes.len()];
        *is_of_it.last_mut()? = true;
        for (index, node) in nodes.iter().enumerate().rev() {
            if is_of_it.get(index) == Some(&true) {
                for child in node.children() {
                    *is_of_it.get_mut(child as usize)? = true;
                }
            }
        }
        let before = |id: NodeId| is_of_it.iter().take(id as usize).filter(|is_of_it| **is_of_it).count();
        let moved = |id: NodeId| NodeId::try_from(before(id)).unwrap_or(NodeId::MAX);
        let kept = nodes.iter().zip(&is_of_it).filter(|(_, is_of_it)| **is_of_it);
        Some(Expr { nodes: kept.map(|(node, _)| node.map_children(moved)).collect() })
    }
}

/// A node of an expression. Tensors are indexed over inputs, then outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Node {
    /// Integer literal.
    Int(i64),
    /// Float literal.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// String literal.
    Str(String),
    /// An attribute, by index in the plugin. Known at node time.
    Attribute(u32),
    /// Integer array. Known at shape time.
    Shape(u32),
    /// Known at node time.
    Rank(u32),
    /// Known at shape time.
    Numel(u32),
    /// `aligned(x, 16)`. Known at launch time.
    Aligned {
        /// Tensor.
        tensor: u32,
        /// Power of two, at most [`Node::ALIGNMENT_LIMIT`].
        bytes: u32,
    },
    /// `device.sms`. Known at launch time.
    Device(DeviceFact),
    /// A shape input's values, an integer array. Known at shape time.
    Values(u32),
    /// Size tensor's value. Known after a run: only valid as a dimension.
    Size(u32),
    /// Enclosing comprehension's variable.
    Local(u32),
    /// `[a, b, c]`.
    Array(Vec<NodeId>),
    /// `-a`, `not a`.
    Unary(UnaryOp, NodeId),
    /// `and` and `or` evaluate the right side only if needed.
    Binary(BinaryOp, NodeId, NodeId),
    /// `then if condition else otherwise`; evaluates only the taken side.
    Conditional {
        /// Boolean.
        condition: NodeId,
        /// Value if true.
        then: NodeId,
        /// Value if false.
        otherwise: NodeId,
    },
    /// A negative index counts from the end.
    Index {
        /// Array.
        array: NodeId,
        /// Integer.
        index: NodeId,
    },
    /// Built-in function.
    Call(Builtin, Vec<NodeId>),
    /// `[body for slot in over if condition]`.
    Comprehension {
        /// Number of the variable, unique in the expression.
        slot: u32,
        /// Array.
        over: NodeId,
        /// Elements for which it is false are omitted.
        condition: Option<NodeId>,
        /// Evaluated for each element.
        body: NodeId,
    },
}

named! {
    /// Facts about a device.
    #[derive(PartialOrd, Ord)]
    DeviceFact, name;
    /// The range that proofs assume. Blocks have 48 KiB of shared memory since compute capability 5.0 (CUDA C++
    /// programming guide 13.0, "compute capabilities").
    pub range: (i64, i64) {
        /// Number of multiprocessors.
        Sms = "sms", (1, 1024);
        /// Maximum dynamic shared memory of a block (`CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`).
        SharedBytes = "shared_bytes", (48 << 10, 1 << 20);
        /// Compute capability: 90 for 9.0.
        Capability = "capability", (50, 999);
    }
}

impl std::fmt::Display for DeviceFact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "device.{}", self.name())
    }
}

/// Larger numbers bind tighter.
pub(super) mod level {
    pub(crate) const LOOSEST: u8 = 0;
    pub(crate) const CONDITIONAL: u8 = 1;
    pub(crate) const DISJUNCTION: u8 = 2;
    pub(crate) const NOT: u8 = 7;
    pub(crate) const COMPARISON: u8 = 9;
    pub(crate) const MULTIPLIED: u8 = 13;
    pub(crate) const NEGATE: u8 = 15;
    pub(crate) const PRIMARY: u8 = 17;
}

named! {
    /// Unary operators.
    UnaryOp, symbol;
    pub(super) level: u8 {
        /// `-a`
        Neg = "-", level::NEGATE;
        /// `not a`
        Not = "not", level::NOT;
    }
}

named! {
    /// Binary operators.
    BinaryOp, symbol;
    pub(super) level: u8 {
        /// `a + b`
        Add = "+", 11;
        /// `a - b`
        Sub = "-", 11;
        /// `a * b`
        Mul = "*", level::MULTIPLIED;
        /// Floor division, as in Python.
        FloorDiv = "//", level::MULTIPLIED;
        /// The remainder of floor division, as in Python.
        Mod = "%", level::MULTIPLIED;
        /// `a / b`: floats only.
        Div = "/", level::MULTIPLIED;
        /// `a == b`
        Eq = "==", level::COMPARISON;
        /// `a != b`
        Ne = "!=", level::COMPARISON;
        /// `a < b`
        Lt = "<", level::COMPARISON;
        /// `a <= b`
        Le = "<=", level::COMPARISON;
        /// `a > b`
        Gt = ">", level::COMPARISON;
        /// `a >= b`
        Ge = ">=", level::COMPARISON;
        /// `a and b`
        And = "and", 5;
        /// `a or b`
        Or = "or", 3;
    }
}

named! {
    /// Built-in functions.
    Builtin, name;
    /// Minimum and maximum arguments, and the signature.
    pub(super) arity: (usize, usize, &'static str) {
        /// `min(a, b, ...)` or `min(array)`.
        Min = "min", (1, usize::MAX, "`min(a, b)` or `min(array)`");
        /// `max(a, b, ...)` or `max(array)`.
        Max = "max", (1, usize::MAX, "`max(a, b)` or `max(array)`");
        /// `abs(a)`
        Abs = "abs", (1, 1, "`abs(a)`");
        /// Division rounded up.
        CeilDiv = "ceil_div", (2, 2, "`ceil_div(a, b)`");
        /// `len(array)`
        Len = "len", (1, 1, "`len(array)`");
        /// The default if out of range or negative.
        Get = "get", (3, 3, "`get(array, index, default)`");
        /// `range(n)` or `range(a, b)`.
        Range = "range", (1, 2, "`range(n)` or `range(a, b)`");
        /// 0 if empty.
        Sum = "sum", (1, 1, "`sum(array)`");
        /// 1 if empty.
        Prod = "prod", (1, 1, "`prod(array)`");
        /// `sqrt(a)`
        Sqrt = "sqrt", (1, 1, "`sqrt(a)`");
        /// `rsqrt(a)`
        Rsqrt = "rsqrt", (1, 1, "`rsqrt(a)`");
        /// `exp(a)`
        Exp = "exp", (1, 1, "`exp(a)`");
        /// `log(a)`
        Log = "log", (1, 1, "`log(a)`");
        /// `float(a)`
        Float = "float", (1, 1, "`float(a)`");
        /// `int(a)`: towards zero.
        Int = "int", (1, 1, "`int(a)`");
    }
}

pub(super) fn height_of(node: &Node, heights: &[usize]) -> usize {
    let height = |child: NodeId| heights.get(child as usize).copied().unwrap_or(0);
    1 + node.children().map(height).max().unwrap_or(0)
}

impl Node {
    /// Bytes to which TensorRT aligns every address (`IExecutionContext::setTensorAddress`,
    /// `NvInferRuntime.h`, TensorRT-RTX 1.3 to 1.7).
    pub const ALIGNMENT_LIMIT: u32 = 256;

    /// A slot without a comprehension: parameters, erroneous parts.
    pub(super) const ANYTHING: u32 = u32::MAX;

    /// Returns whether `bytes` is a power of two up to [`Node::ALIGNMENT_LIMIT`].
    #[must_use]
    pub const fn is_alignment(bytes: u32) -> bool {
        bytes.is_power_of_two() && bytes <= Node::ALIGNMENT_LIMIT
    }

    pub(super) fn tensor(&self) -> Option<u32> {
        match self {
            Node::Shape(tensor) | Node::Rank(tensor) | Node::Numel(tensor) => Some(*tensor),
            Node::Aligned { tensor, .. } | Node::Values(tensor) | Node::Size(tensor) => Some(*tensor),
            Node::Int(_) | Node::Float(_) | Node::Bool(_) | Node::Str(_) | Node::Attribute(_) => None,
            Node::Device(_) | Node::Local(_) | Node::Array(_) | Node::Unary(..) | Node::Binary(..) => None,
            Node::Conditional { .. } | Node::Index { .. } | Node::Call(..) | Node::Comprehension { .. } => {
                None
            }
        }
    }

    pub(super) fn map_children(&self, mut map: impl FnMut(NodeId) -> NodeId) -> Node {
        let mut node = self.clone();
        let mut change = |id: &mut NodeId| *id = map(*id);
        match &mut node {
            Node::Array(items) | Node::Call(_, items) => items.iter_mut().for_each(change),
            Node::Unary(_, operand) => change(operand),
            Node::Binary(_, left, right) | Node::Index { array: left, index: right } => {
                [left, right].into_iter().for_each(change);
            }
            Node::Conditional { condition, then, otherwise } => {
                [condition, then, otherwise].into_iter().for_each(change);
            }
            Node::Comprehension { over, condition, body, .. } => {
                [Some(over), condition.as_mut(), Some(body)].into_iter().flatten().for_each(change);
            }
            _ => {}
        }
        node
    }

    pub(super) fn with_children(&self, children: Vec<NodeId>) -> Node {
        let mut children = children.into_iter();
        self.map_children(|own| children.next().unwrap_or(own))
    }

    pub(super) fn children(&self) -> impl Iterator<Item = NodeId> {
        let (items, others): (&[NodeId], _) = match self {
            Node::Array(items) | Node::Call(_, items) => (items, [None; 3]),
            Node::Unary(_, operand) => (&[], [Some(*operand), None, None]),
            Node::Binary(_, left, right) | Node::Index { array: left, index: right } => {
                (&[], [Some(*left), Some(*right), None])
            }
            Node::Conditional { condition, then, otherwise } => {
                (&[], [Some(*condition), Some(*then), Some(*otherwise)])
            }
            Node::Comprehension { over, condition, body, .. } => {
                (&[], [Some(*over), *condition, Some(*body)])
            }
            Node::Int(_) | Node::Float(_) | Node::Bool(_) | Node::Str(_) | Node::Attribute(_) => {
                (&[], [None; 3])
            }
            Node::Shape(_) | Node::Rank(_) | Node::Numel(_) | Node::Aligned { .. } => (&[], [None; 3]),
            Node::Device(_) | Node::Values(_) | Node::Size(_) | Node::Local(_) => (&[], [None; 3]),
        };
        items.iter().copied().chain(others.into_iter().flatten())
    }
}
