//! Tokens to a syntax tree: a Pratt parser with Python's precedences.
//!
//! From loose to tight: `a if c else b` (to the right), `or`, `and`, `not`, comparisons (which do not chain), `+ -`,
//! `* / // %`, unary `-`, then `[index]`, `.field` and `(arguments)`.
//!
//! Never recurses deeper than the depth limit of expressions, whatever the text.

use std::ops::Range;

use super::error::ExprError;
use super::lexer::{self, Token};
use super::node::{BinaryOp, Expr, UnaryOp};
use super::syntax::{Syntax, SyntaxKind};

/// Reads an expression.
///
/// # Errors
/// The first place where `text` is not an expression.
pub fn parse(text: &str) -> Result<Syntax, ExprError> {
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser { text, tokens, next: 0, depth: 0 };
    if parser.peek() == &Token::End {
        return Err(ExprError::new(0..text.len(), "the expression is empty", "expected an expression"));
    }
    let syntax = parser.expression(LOOSEST)?;
    match parser.peek() {
        Token::End => Ok(syntax),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// How tightly operators bind; a larger number binds tighter.
const LOOSEST: u8 = 0;
const CONDITIONAL: u8 = 1;
/// What a comprehension takes for its array and its condition: everything but a bare conditional.
const DISJUNCTION: u8 = 2;
const NOT: u8 = 7;
const COMPARISON: u8 = 9;
const NEGATE: u8 = 15;

/// The operator that a symbol is between two operands, with its binding power.
fn binary(symbol: &str) -> Option<(BinaryOp, u8)> {
    Some(match symbol {
        "or" => (BinaryOp::Or, 3),
        "and" => (BinaryOp::And, 5),
        "==" => (BinaryOp::Eq, COMPARISON),
        "!=" => (BinaryOp::Ne, COMPARISON),
        "<" => (BinaryOp::Lt, COMPARISON),
        "<=" => (BinaryOp::Le, COMPARISON),
        ">" => (BinaryOp::Gt, COMPARISON),
        ">=" => (BinaryOp::Ge, COMPARISON),
        "+" => (BinaryOp::Add, 11),
        "-" => (BinaryOp::Sub, 11),
        "*" => (BinaryOp::Mul, 13),
        "//" => (BinaryOp::FloorDiv, 13),
        "%" => (BinaryOp::Mod, 13),
        "/" => (BinaryOp::Div, 13),
        _ => return None,
    })
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, Range<usize>)>,
    next: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        self.tokens.get(self.next).map_or(&Token::End, |(token, _)| token)
    }

    /// Where the next token is.
    fn span(&self) -> Range<usize> {
        self.tokens.get(self.next).map_or(self.text.len()..self.text.len(), |(_, span)| span.clone())
    }

    /// Where the last token that was taken ends.
    fn end(&self) -> usize {
        self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |(_, span)| span.end)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        if found {
            self.next += 1;
        }
        found
    }

    fn expect(&mut self, symbol: &str, help: &str) -> Result<(), ExprError> {
        if self.accept(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{symbol}`")).help(help))
    }

    fn unexpected(&self, expected: &str) -> ExprError {
        let span = self.span();
        let found = match self.peek() {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", self.text.get(span.clone()).unwrap_or_default()),
        };
        ExprError::new(span, format!("expected {expected}, found {found}"), format!("expected {expected}"))
    }

    fn source(&self, span: Range<usize>) -> &'t str {
        self.text.get(span).unwrap_or_default()
    }

    /// Makes a part, unless the tree would become too high: chains such as `a + a + a` grow without recursion.
    fn make(&self, span: Range<usize>, kind: SyntaxKind) -> Result<Syntax, ExprError> {
        let syntax = Syntax::new(span, kind);
        if syntax.height > Expr::DEPTH_LIMIT {
            return Err(too_deep(syntax.span));
        }
        Ok(syntax)
    }

    /// Everything that binds at least as tightly as `loosest`.
    fn expression(&mut self, loosest: u8) -> Result<Syntax, ExprError> {
        if self.depth >= Expr::DEPTH_LIMIT {
            return Err(too_deep(self.span()));
        }
        self.depth += 1;
        let syntax = self.operators(loosest);
        self.depth -= 1;
        syntax
    }

    fn operators(&mut self, loosest: u8) -> Result<Syntax, ExprError> {
        let mut left = self.prefix(loosest)?;
        while let Token::Symbol(symbol) = *self.peek() {
            if symbol == "if" && CONDITIONAL >= loosest {
                left = self.conditional(left)?;
                continue;
            }
            let Some((op, power)) = binary(symbol).filter(|&(_, power)| power >= loosest) else { break };
            self.next += 1;
            let right = self.expression(power + 1)?;
            if power == COMPARISON {
                self.refuse_chain(&left, &right)?;
            }
            let span = left.span.start..self.end();
            left = self.make(span, SyntaxKind::Binary(op, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn conditional(&mut self, then: Syntax) -> Result<Syntax, ExprError> {
        self.next += 1;
        let condition = self.expression(DISJUNCTION)?;
        self.expect("else", "write `a if condition else b`")?;
        let otherwise = self.expression(CONDITIONAL)?;
        let span = then.span.start..self.end();
        let kind = SyntaxKind::Conditional {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        self.make(span, kind)
    }

    /// `a < b < c` would mean something else to everyone who reads it.
    fn refuse_chain(&mut self, left: &Syntax, right: &Syntax) -> Result<(), ExprError> {
        let second = self.span();
        let Token::Symbol(symbol) = *self.peek() else { return Ok(()) };
        if binary(symbol).is_none_or(|(_, power)| power != COMPARISON) {
            return Ok(());
        }
        self.next += 1;
        let last = self.expression(COMPARISON + 1)?;
        let first = self.source(left.span.start..right.span.end);
        let middle = self.source(right.span.clone());
        let last = self.source(last.span);
        Err(ExprError::new(second, "comparisons do not chain", "second comparison")
            .help(format!("write `{first} and {middle} {symbol} {last}`")))
    }

    fn prefix(&mut self, loosest: u8) -> Result<Syntax, ExprError> {
        let start = self.span().start;
        if let Token::Symbol(symbol @ ("-" | "not")) = *self.peek() {
            if symbol == "not" && loosest > NOT {
                return Err(ExprError::new(
                    self.span(),
                    "`not` binds more loosely than the operator before it",
                    "needs parentheses",
                )
                .help("write `(not a)`"));
            }
            self.next += 1;
            if let (&Token::Int(value), "-") = (self.peek(), symbol) {
                if value == i64::MIN.unsigned_abs() {
                    self.next += 1;
                    return self.make(start..self.end(), SyntaxKind::Int(i64::MIN));
                }
            }
            let (op, power) = if symbol == "-" { (UnaryOp::Neg, NEGATE) } else { (UnaryOp::Not, NOT) };
            let operand = self.expression(power)?;
            return self.make(start..self.end(), SyntaxKind::Unary(op, Box::new(operand)));
        }
        let mut syntax = self.primary()?;
        loop {
            let kind = if self.accept("[") {
                let index = self.expression(LOOSEST)?;
                self.expect("]", "close the index with `]`")?;
                SyntaxKind::Index { array: Box::new(syntax), index: Box::new(index) }
            } else if self.accept(".") {
                let name_span = self.span();
                let Token::Name(name) = *self.peek() else {
                    return Err(self.unexpected("`shape` or `rank`"));
                };
                self.next += 1;
                SyntaxKind::Field { object: Box::new(syntax), name: name.to_owned(), name_span }
            } else {
                return Ok(syntax);
            };
            syntax = self.make(start..self.end(), kind)?;
        }
    }

    fn primary(&mut self) -> Result<Syntax, ExprError> {
        let span = self.span();
        let token = self.peek().clone();
        let kind = match token {
            Token::Int(value) => match i64::try_from(value) {
                Ok(value) => SyntaxKind::Int(value),
                Err(_) => return Err(lexer::too_large(span, &value.to_string())),
            },
            Token::Float(value) => SyntaxKind::Float(value),
            Token::Str(value) => SyntaxKind::Str(value),
            Token::Symbol("true") => SyntaxKind::Bool(true),
            Token::Symbol("false") => SyntaxKind::Bool(false),
            Token::Symbol("(") => return self.parenthesized(),
            Token::Symbol("[") => return self.array(),
            Token::Name(name) => {
                self.next += 1;
                return if self.accept("(") {
                    self.call(name, span)
                } else {
                    self.make(span, SyntaxKind::Name(name.to_owned()))
                };
            }
            _ => return Err(self.unexpected("an expression")),
        };
        self.next += 1;
        self.make(span, kind)
    }

    fn parenthesized(&mut self) -> Result<Syntax, ExprError> {
        let start = self.span().start;
        self.next += 1;
        let mut syntax = self.expression(LOOSEST)?;
        self.expect(")", "close the parenthesis with `)`")?;
        syntax.span = start..self.end();
        Ok(syntax)
    }

    fn call(&mut self, function: &str, function_span: Range<usize>) -> Result<Syntax, ExprError> {
        let args = self.items(")", Vec::new())?;
        let span = function_span.start..self.end();
        self.make(span, SyntaxKind::Call { function: function.to_owned(), function_span, args })
    }

    /// `a, b, c` up to and with `close`; a comma may follow the last.
    fn items(&mut self, close: &str, mut items: Vec<Syntax>) -> Result<Vec<Syntax>, ExprError> {
        while !self.accept(close) {
            items.push(self.expression(LOOSEST)?);
            if !self.accept(",") {
                self.expect(close, "separate with `,`")?;
                break;
            }
        }
        Ok(items)
    }

    fn array(&mut self) -> Result<Syntax, ExprError> {
        let start = self.span().start;
        self.next += 1;
        if self.accept("]") {
            return self.make(start..self.end(), SyntaxKind::Array(Vec::new()));
        }
        let first = self.expression(LOOSEST)?;
        if self.accept("for") {
            return self.comprehension(start, first);
        }
        let items = if self.accept(",") {
            self.items("]", vec![first])?
        } else {
            self.expect("]", "separate elements with `,`")?;
            vec![first]
        };
        self.make(start..self.end(), SyntaxKind::Array(items))
    }

    fn comprehension(&mut self, start: usize, body: Syntax) -> Result<Syntax, ExprError> {
        let form = "write `[body for name in array if condition]`; the condition can be left out";
        let Token::Name(variable) = *self.peek() else {
            return Err(self.unexpected("the name of a variable").help(form));
        };
        self.next += 1;
        self.expect("in", form)?;
        let over = self.expression(DISJUNCTION)?;
        let condition = if self.accept("if") { Some(Box::new(self.expression(DISJUNCTION)?)) } else { None };
        self.expect("]", form)?;
        let kind = SyntaxKind::Comprehension {
            body: Box::new(body),
            variable: variable.to_owned(),
            over: Box::new(over),
            condition,
        };
        self.make(start..self.end(), kind)
    }
}

pub(super) fn too_deep(span: Range<usize>) -> ExprError {
    let limit = Expr::DEPTH_LIMIT;
    ExprError::new(span, format!("the expression is nested more than {limit} levels deep"), "too deep here")
        .help("use an array with `sum`, `prod`, `min` or `max` in place of a long chain of operators")
}
