//! A tree back to text, with no more parentheses than it needs.
//!
//! For every tree that [`super::compile`] made, compiling the text over the same names gives the same tree. Any other
//! list of nodes prints as something too, for messages.

use std::fmt::Write;

use super::node::{BinaryOp, Expr, Node, NodeId, UnaryOp};

/// The names that indices stand for.
pub trait Names {
    /// The name of an attribute.
    fn attribute(&self, index: u32) -> Option<&str>;
    /// The name of a tensor, by its index over inputs, then outputs.
    fn tensor(&self, index: u32) -> Option<&str>;
}

/// No names: indices print as `attribute0` and `tensor0`.
pub(super) struct Anonymous;

impl Names for Anonymous {
    fn attribute(&self, _: u32) -> Option<&str> {
        None
    }

    fn tensor(&self, _: u32) -> Option<&str> {
        None
    }
}

/// The text of `expr`.
#[must_use]
pub fn print(expr: &Expr, names: &dyn Names) -> String {
    print_node(expr, expr.root(), names)
}

/// The text of the part of `expr` that starts at `node`.
#[must_use]
pub fn print_node(expr: &Expr, node: NodeId, names: &dyn Names) -> String {
    print_part(&expr.nodes, node, names, LOOSEST)
}

/// The text of a part, in parentheses where it binds more loosely than its place asks.
pub(super) fn print_part(nodes: &[Node], node: NodeId, names: &dyn Names, loosest: u8) -> String {
    let mut printer = Printer {
        nodes,
        names,
        variable: variable(nodes, names),
        text: String::new(),
        depth: 0,
        // Every node once, for a tree; a list in which nodes are shared is cut.
        left: nodes.len(),
    };
    printer.node(node, loosest);
    printer.text
}

/// What variables start with, so that none looks like a name that the expression uses.
fn variable(nodes: &[Node], names: &dyn Names) -> String {
    let mut prefix = "i".to_owned();
    let taken = |prefix: &str| {
        nodes.iter().any(|node| {
            let name = match node {
                Node::Attribute(index) => names.attribute(*index),
                Node::Shape(tensor)
                | Node::Rank(tensor)
                | Node::Numel(tensor)
                | Node::Values(tensor)
                | Node::Size(tensor)
                | Node::Aligned { tensor, .. } => names.tensor(*tensor),
                _ => None,
            };
            let rest = name.and_then(|name| name.strip_prefix(prefix));
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    while taken(&prefix) {
        prefix.push('_');
    }
    prefix
}

/// As in the parser: a larger number binds tighter.
pub(super) const LOOSEST: u8 = 0;
const CONDITIONAL: u8 = 1;
const DISJUNCTION: u8 = 2;
const NOT: u8 = 7;
const COMPARISON: u8 = 9;
/// What is multiplied or divided, on the left.
pub(super) const MULTIPLIED: u8 = 13;
const NEGATE: u8 = 15;
pub(super) const PRIMARY: u8 = 17;

struct Printer<'a> {
    nodes: &'a [Node],
    names: &'a dyn Names,
    variable: String,
    text: String,
    depth: usize,
    left: usize,
}

impl Printer<'_> {
    fn node(&mut self, id: NodeId, loosest: u8) {
        let nodes = self.nodes;
        let node = nodes.get(id as usize);
        let (Some(node), Some(left)) =
            (node.filter(|_| self.depth < Expr::DEPTH_LIMIT), self.left.checked_sub(1))
        else {
            self.text.push_str("...");
            return;
        };
        self.left = left;
        self.depth += 1;
        let parentheses = level(node) < loosest;
        if parentheses {
            self.text.push('(');
        }
        self.bare(node);
        if parentheses {
            self.text.push(')');
        }
        self.depth -= 1;
    }

    fn bare(&mut self, node: &Node) {
        match node {
            Node::Int(value) => self.add(format_args!("{value}")),
            Node::Float(value) if value.is_nan() => self.text.push_str("nan"),
            Node::Float(value) => self.add(format_args!("{value:?}")),
            Node::Bool(value) => self.add(format_args!("{value}")),
            Node::Str(value) => self.string(value),
            Node::Attribute(index) => match self.names.attribute(*index) {
                Some(name) => self.text.push_str(name),
                None => self.add(format_args!("attribute{index}")),
            },
            Node::Shape(tensor) => {
                self.tensor(*tensor);
                self.text.push_str(".shape");
            }
            Node::Rank(tensor) => {
                self.tensor(*tensor);
                self.text.push_str(".rank");
            }
            Node::Numel(tensor) => {
                self.text.push_str("numel(");
                self.tensor(*tensor);
                self.text.push(')');
            }
            Node::Aligned { tensor, bytes } => {
                self.text.push_str("aligned(");
                self.tensor(*tensor);
                self.add(format_args!(", {bytes})"));
            }
            Node::Device(fact) => self.add(format_args!("{fact}")),
            Node::Values(tensor) => {
                self.tensor(*tensor);
                self.text.push_str(".values");
            }
            Node::Size(tensor) => self.tensor(*tensor),
            Node::Local(slot) => self.local(*slot),
            Node::Array(items) => {
                self.text.push('[');
                self.list(items);
                self.text.push(']');
            }
            Node::Unary(UnaryOp::Neg, operand) => {
                self.text.push('-');
                self.node(*operand, NEGATE);
            }
            Node::Unary(UnaryOp::Not, operand) => {
                self.text.push_str("not ");
                self.node(*operand, NOT);
            }
            Node::Binary(op, left, right) => {
                let level = binary_level(*op);
                // Comparisons do not chain, so neither side may be one.
                self.node(*left, if level == COMPARISON { level + 1 } else { level });
                self.add(format_args!(" {} ", op.symbol()));
                self.node(*right, level + 1);
            }
            Node::Conditional { condition, then, otherwise } => {
                self.node(*then, DISJUNCTION);
                self.text.push_str(" if ");
                self.node(*condition, DISJUNCTION);
                self.text.push_str(" else ");
                self.node(*otherwise, CONDITIONAL);
            }
            Node::Index { array, index } => {
                self.node(*array, PRIMARY);
                self.text.push('[');
                self.node(*index, LOOSEST);
                self.text.push(']');
            }
            Node::Call(builtin, args) => {
                self.text.push_str(builtin.name());
                self.text.push('(');
                self.list(args);
                self.text.push(')');
            }
            Node::Comprehension { slot, over, condition, body } => {
                self.text.push('[');
                self.node(*body, LOOSEST);
                self.text.push_str(" for ");
                self.local(*slot);
                self.text.push_str(" in ");
                self.node(*over, DISJUNCTION);
                if let Some(condition) = condition {
                    self.text.push_str(" if ");
                    self.node(*condition, DISJUNCTION);
                }
                self.text.push(']');
            }
        }
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }

    fn list(&mut self, items: &[NodeId]) {
        for (position, &item) in items.iter().enumerate() {
            if position > 0 {
                self.text.push_str(", ");
            }
            self.node(item, LOOSEST);
        }
    }

    fn local(&mut self, slot: u32) {
        let variable = std::mem::take(&mut self.variable);
        self.add(format_args!("{variable}{slot}"));
        self.variable = variable;
    }

    fn tensor(&mut self, tensor: u32) {
        match self.names.tensor(tensor) {
            Some(name) => self.text.push_str(name),
            None => self.add(format_args!("tensor{tensor}")),
        }
    }

    fn string(&mut self, value: &str) {
        self.text.push('"');
        for c in value.chars() {
            match c {
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                '"' | '\\' => {
                    self.text.push('\\');
                    self.text.push(c);
                }
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}

fn level(node: &Node) -> u8 {
    match node {
        Node::Conditional { .. } => CONDITIONAL,
        Node::Binary(op, ..) => binary_level(*op),
        Node::Unary(UnaryOp::Not, _) => NOT,
        Node::Unary(UnaryOp::Neg, _) => NEGATE,
        Node::Int(value) if *value < 0 => NEGATE,
        Node::Float(value) if value.is_sign_negative() => NEGATE,
        _ => PRIMARY,
    }
}

fn binary_level(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 3,
        BinaryOp::And => 5,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => COMPARISON,
        BinaryOp::Add | BinaryOp::Sub => 11,
        BinaryOp::Mul | BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::Div => MULTIPLIED,
    }
}
