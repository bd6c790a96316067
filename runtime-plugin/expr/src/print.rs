//! Prints a tree with minimal parentheses. [`super::compile`] restores its own trees from the text and names; other
//! trees print approximately.

use super::node::level::{COMPARISON, CONDITIONAL, DISJUNCTION, LOOSEST, NEGATE, PRIMARY};
use super::node::{Expr, Node, NodeId, UnaryOp};

/// Names of indices.
pub trait Names {
    /// Returns an attribute's name.
    fn attribute(&self, index: u32) -> Option<&str>;
    /// Returns a tensor's name, indexed over inputs, then outputs.
    fn tensor(&self, index: u32) -> Option<&str>;
}

pub(super) struct Anonymous;

impl Names for Anonymous {
    fn attribute(&self, _: u32) -> Option<&str> {
        None
    }

    fn tensor(&self, _: u32) -> Option<&str> {
        None
    }
}

/// Prints `expr`.
#[must_use]
pub fn print(expr: &Expr, names: &dyn Names) -> String {
    print_node(expr, expr.root(), names)
}

/// Prints the part of `expr` at `node`.
#[must_use]
pub fn print_node(expr: &Expr, node: NodeId, names: &dyn Names) -> String {
    print_part(&expr.nodes, node, names, LOOSEST)
}

/// Uses parentheses if the part binds more loosely than `loosest`.
pub(super) fn print_part(nodes: &[Node], node: NodeId, names: &dyn Names, loosest: u8) -> String {
    // Lists with shared nodes are cut.
    let left = nodes.len();
    let (variable, text) = (variable(nodes, names), String::new());
    let mut printer = Printer { nodes, names, variable, text, depth: 0, left };
    printer.node(node, loosest);
    printer.text
}

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
    text: String,
    depth: usize,
    left: usize,
}

impl Printer<'_> {
    fn node(&mut self, id: NodeId, loosest: u8) {
        let nodes = self.nodes;
        let node = nodes.get(id as usize).filter(|_| self.depth < Expr::DEPTH_LIMIT);
        let (Some(node), Some(left)) = (node, self.left.checked_sub(1)) else {
            return self.text.push_str("...");
        };
        self.left = left;
        self.depth += 1;
        let [open, close] = if level_of(node) < loosest { ["(", ")"] } else { ["", ""] };
        self.text.push_str(open);
        self.bare(node);
        self.text.push_str(close);
        self.depth -= 1;
    }

    fn parts(&mut self, parts: &[(&str, NodeId, u8)], end: &str) {
        for &(text, node, loosest) in parts {
            self.text.push_str(text);
            self.node(node, loosest);
        }
        self.text.push_str(end);
    }

    fn bare(&mut self, node: &Node) {
        match node {
            Node::Array(items) => self.list("[", items, "]"),
            Node::Unary(op, operand) => {
                let space = if *op == UnaryOp::Not { " " } else { "" };
                self.parts(&[(&format!("{}{space}", op.symbol()), *operand, op.level())], "");
            }
            Node::Binary(op, left, right) => {
                let level = op.level();
                let left_level = if level == COMPARISON { level + 1 } else { level };
                let operator = format!(" {} ", op.symbol());
                self.parts(&[("", *left, left_level), (&operator, *right, level + 1)], "");
            }
            Node::Conditional { condition, then, otherwise } => {
                let sides = [("", *then, DISJUNCTION), (" if ", *condition, DISJUNCTION)];
                self.parts(&sides, " else ");
                self.node(*otherwise, CONDITIONAL);
            }
            Node::Index { array, index } => {
                self.parts(&[("", *array, PRIMARY), ("[", *index, LOOSEST)], "]");
            }
            Node::Call(builtin, args) => self.list(&format!("{}(", builtin.name()), args, ")"),
            Node::Comprehension { slot, over, condition, body } => {
                let variable = format!(" for {}{slot} in ", self.variable);
                self.parts(&[("[", *body, LOOSEST), (&variable, *over, DISJUNCTION)], "");
                self.parts(condition.map(|condition| (" if ", condition, DISJUNCTION)).as_slice(), "]");
            }
            leaf => self.text += &self.leaf(leaf),
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

    fn list(&mut self, open: &str, items: &[NodeId], close: &str) {
        self.text.push_str(open);
        for (index, &item) in items.iter().enumerate() {
            self.parts(&[(if index > 0 { ", " } else { "" }, item, LOOSEST)], "");
        }
        self.text.push_str(close);
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
