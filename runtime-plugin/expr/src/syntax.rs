//! The tree of an expression as it was written: names are text, every part knows its place.
//!
//! Owns the syntax tree. Never knows what a name means: that is [`super::Scope`]'s business.

use super::node::{BinaryOp, UnaryOp};
use crate::error::Span;

/// Words that cannot be names.
pub const KEYWORDS: [&str; 11] =
    ["and", "or", "not", "if", "else", "for", "in", "true", "false", "inf", "nan"];

/// An expression, or a part of one, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Syntax {
    /// Bytes of the text it was parsed from.
    pub span: Span,
    /// What is there.
    pub kind: SyntaxKind,
    /// Levels of the tree below and including this one; the parser keeps it at or below the depth limit, so walks over
    /// the tree may recurse.
    pub(super) height: usize,
}

/// What a part of an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum SyntaxKind {
    /// `42`; the sign belongs to it only in `-9223372036854775808`.
    Int(i64),
    /// `0.5`, `1e-5`, `inf`, `nan`.
    Float(f64),
    /// `true`, `false`.
    Bool(bool),
    /// `"text"`, `'text'`.
    Str(String),
    /// An attribute, a tensor, a constant, a type, a parameter or a variable.
    Name(String),
    /// `[a, b]`.
    Array(Vec<Syntax>),
    /// `-a`, `not a`.
    Unary(UnaryOp, Box<Syntax>),
    /// `a + b`.
    Binary(BinaryOp, Box<Syntax>, Box<Syntax>),
    /// `then if condition else otherwise`.
    Conditional {
        /// What decides.
        condition: Box<Syntax>,
        /// The value where it holds.
        then: Box<Syntax>,
        /// The value where it does not.
        otherwise: Box<Syntax>,
    },
    /// `array[index]`.
    Index {
        /// The array.
        array: Box<Syntax>,
        /// Which element.
        index: Box<Syntax>,
    },
    /// `object.name`.
    Field {
        /// What the field is of.
        object: Box<Syntax>,
        /// The field.
        name: String,
        /// Where the field's name is.
        name_span: Span,
    },
    /// `function(args)`.
    Call {
        /// The function's name.
        function: String,
        /// Where that name is.
        function_span: Span,
        /// What it is applied to.
        args: Vec<Syntax>,
    },
    /// `[body for variable in over if condition]`.
    Comprehension {
        /// Evaluated for each element.
        body: Box<Syntax>,
        /// The variable's name.
        variable: String,
        /// Where that name is.
        variable_span: Span,
        /// The array.
        over: Box<Syntax>,
        /// Which elements to keep.
        condition: Option<Box<Syntax>>,
    },
}

impl Syntax {
    /// A part over `span`; its height follows from its children's.
    pub(super) fn new(span: Span, kind: SyntaxKind) -> Syntax {
        let height = 1 + match &kind {
            SyntaxKind::Int(_)
            | SyntaxKind::Float(_)
            | SyntaxKind::Bool(_)
            | SyntaxKind::Str(_)
            | SyntaxKind::Name(_) => 0,
            SyntaxKind::Array(items) | SyntaxKind::Call { args: items, .. } => tallest(items),
            SyntaxKind::Unary(_, operand) | SyntaxKind::Field { object: operand, .. } => operand.height,
            SyntaxKind::Binary(_, left, right) => left.height.max(right.height),
            SyntaxKind::Conditional { condition, then, otherwise } => {
                condition.height.max(then.height).max(otherwise.height)
            }
            SyntaxKind::Index { array, index } => array.height.max(index.height),
            SyntaxKind::Comprehension { body, over, condition, .. } => {
                body.height.max(over.height).max(condition.as_ref().map_or(0, |condition| condition.height))
            }
        };
        Syntax { span, kind, height }
    }
}

fn tallest(items: &[Syntax]) -> usize {
    items.iter().map(|item| item.height).max().unwrap_or(0)
}
