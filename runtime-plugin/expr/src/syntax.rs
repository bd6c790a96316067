use super::node::{BinaryOp, UnaryOp};
use crate::error::Span;

/// Words that cannot be names.
pub const KEYWORDS: [&str; 11] =
    ["and", "or", "not", "if", "else", "for", "in", "true", "false", "inf", "nan"];

/// An expression or a part, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Syntax {
    /// Position in bytes of the parsed text.
    pub span: Span,
    /// Kind and parts.
    pub kind: SyntaxKind,
    /// At most the depth limit: recursion is safe.
    pub(super) height: usize,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum SyntaxKind {
    /// Includes the sign only in `-9223372036854775808`.
    Int(i64),
    /// `0.5`, `1e-5`, `inf`, `nan`.
    Float(f64),
    /// `true`, `false`.
    Bool(bool),
    /// `"text"`, `'text'`.
    Str(String),
    /// Attribute, tensor, constant, type, parameter or variable.
    Name(String),
    /// `[a, b]`.
    Array(Vec<Syntax>),
    /// `-a`, `not a`.
    Unary(UnaryOp, Box<Syntax>),
    /// `a + b`.
    Binary(BinaryOp, Box<Syntax>, Box<Syntax>),
    /// `then if condition else otherwise`.
    Conditional {
        /// Condition.
        condition: Box<Syntax>,
        /// Value if true.
        then: Box<Syntax>,
        /// Value if false.
        otherwise: Box<Syntax>,
    },
    /// `array[index]`.
    Index {
        /// Array.
        array: Box<Syntax>,
        /// Index.
        index: Box<Syntax>,
    },
    /// `object.name`.
    Field {
        /// Object.
        object: Box<Syntax>,
        /// Field.
        name: String,
        /// Position of the name.
        name_span: Span,
    },
    /// `function(args)`.
    Call {
        /// The function's name.
        function: String,
        /// Position of the function's name.
        function_span: Span,
        /// Arguments.
        args: Vec<Syntax>,
    },
    /// `[body for variable in over if condition]`.
    Comprehension {
        /// Evaluated for each element.
        body: Box<Syntax>,
        /// The variable's name.
        variable: String,
        /// Position of the variable's name.
        variable_span: Span,
        /// Array.
        over: Box<Syntax>,
        /// Filter.
        condition: Option<Box<Syntax>>,
    },
}

impl Syntax {
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
