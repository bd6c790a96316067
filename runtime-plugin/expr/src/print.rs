//! A tree back to text, with no more parentheses than it needs.
//!
//! For every tree that [`super::compile`] made, compiling the text over the same names gives the same tree. Any other
//! list of nodes prints as something too, for messages.

use super::node::level::{COMPARISON, CONDITIONAL, DISJUNCTION, LOOSEST, NEGATE, PRIMARY};
use super::node::{Expr, Node, NodeId, UnaryOp};

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
    // Every node once, for a tree; a list in which nodes are shared is cut.
    let left = nodes.len();
    Printer { nodes, names, variable: variable(nodes, names), depth: 0, left }.node(node, loosest)
}

/// What variables start with, so that none looks like a name that the expression uses.
fn variable(nodes: &[Node], names: &dyn Names) -> String {
    let mut prefix = "i".to_owned();
    let taken = |prefix: &str| {
        nodes.iter().any(|node| {
            let name = match node {
                Node::Attribute(index) => names.attribute(*index),
                node => node.tensor().and_then(|tensor| names.tensor(tensor)),
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

struct Printer<'a> {
    nodes: &'a [Node],
    names: &'a dyn Names,
    variable: String,
    depth: usize,
    left: usize,
}

impl Printer<'_> {
    fn node(&mut self, id: NodeId, loosest: u8) -> String {
        let nodes = self.nodes;
        let node = nodes.get(id as usize).filter(|_| self.depth < Expr::DEPTH_LIMIT);
        let (Some(node), Some(left)) = (node, self.left.checked_sub(1)) else { return "...".to_owned() };
        self.left = left;
        self.depth += 1;
        let text = self.bare(node);
        self.depth -= 1;
        if level_of(node) < loosest { format!("({text})") } else { text }
    }

    fn bare(&mut self, node: &Node) -> String {
        match node {
            Node::Array(items) => format!("[{}]", self.list(items)),
            Node::Unary(op, operand) => {
                let space = if *op == UnaryOp::Not { " " } else { "" };
                format!("{}{space}{}", op.symbol(), self.node(*operand, op.level()))
            }
            Node::Binary(op, left, right) => {
                let level = op.level();
                // Comparisons do not chain, so neither side may be one.
                let left = self.node(*left, if level == COMPARISON { level + 1 } else { level });
                format!("{left} {} {}", op.symbol(), self.node(*right, level + 1))
            }
            Node::Conditional { condition, then, otherwise } => {
                let then = self.node(*then, DISJUNCTION);
                let condition = self.node(*condition, DISJUNCTION);
                format!("{then} if {condition} else {}", self.node(*otherwise, CONDITIONAL))
            }
            Node::Index { array, index } => {
                let array = self.node(*array, PRIMARY);
                format!("{array}[{}]", self.node(*index, LOOSEST))
            }
            Node::Call(builtin, args) => format!("{}({})", builtin.name(), self.list(args)),
            Node::Comprehension { slot, over, condition, body } => {
                let body = self.node(*body, LOOSEST);
                let over = self.node(*over, DISJUNCTION);
                let condition = match condition {
                    Some(condition) => format!(" if {}", self.node(*condition, DISJUNCTION)),
                    None => String::new(),
                };
                format!("[{body} for {}{slot} in {over}{condition}]", self.variable)
            }
            leaf => self.leaf(leaf),
        }
    }

    #[inline(never)]
    fn leaf(&self, node: &Node) -> String {
        let index = node.tensor().unwrap_or_default();
        let tensor = self.names.tensor(index).map_or_else(|| format!("tensor{index}"), str::to_owned);
        match node {
            Node::Int(value) => value.to_string(),
            Node::Float(value) if value.is_nan() => "nan".to_owned(),
            Node::Float(value) => format!("{value:?}"),
            Node::Bool(value) => value.to_string(),
            Node::Str(value) => quoted(value),
            Node::Attribute(index) => {
                self.names.attribute(*index).map_or_else(|| format!("attribute{index}"), str::to_owned)
            }
            Node::Shape(_) => format!("{tensor}.shape"),
            Node::Rank(_) => format!("{tensor}.rank"),
            Node::Numel(_) => format!("numel({tensor})"),
            Node::Aligned { bytes, .. } => format!("aligned({tensor}, {bytes})"),
            Node::Values(_) => format!("{tensor}.values"),
            Node::Device(fact) => fact.to_string(),
            Node::Local(slot) => format!("{}{slot}", self.variable),
            _ => tensor,
        }
    }

    fn list(&mut self, items: &[NodeId]) -> String {
        items.iter().map(|&item| self.node(item, LOOSEST)).collect::<Vec<String>>().join(", ")
    }
}

fn quoted(value: &str) -> String {
    let mut text = "\"".to_owned();
    for c in value.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '"' | '\\' => text.extend(['\\', c]),
            c => text.push(c),
        }
    }
    text + "\""
}

fn level_of(node: &Node) -> u8 {
    match node {
        Node::Conditional { .. } => CONDITIONAL,
        Node::Binary(op, ..) => op.level(),
        Node::Unary(op, _) => op.level(),
        Node::Int(value) if *value < 0 => NEGATE,
        Node::Float(value) if value.is_sign_negative() => NEGATE,
        _ => PRIMARY,
    }
}
