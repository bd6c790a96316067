//! Expressions over attributes and shapes.

mod node;

pub use node::{BinaryOp, Builtin, Expr, Node, NodeId, UnaryOp};
