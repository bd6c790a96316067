//! A Pratt parser with Python's precedence: from loose to tight, `a if c else b` (right-associative), `or`, `and`,
//! `not`, comparisons, `+ -`, `* / // %`, unary `-`, postfix `[index]`, `.field`, `(arguments)`.

use super::error::ExprError;
use super::foreign;
use super::lexer::{self, Token};
use super::node::level::{COMPARISON, CONDITIONAL, DISJUNCTION, LOOSEST, NEGATE, NOT};
use super::node::{BinaryOp, Expr, UnaryOp};
use super::syntax::{Syntax, SyntaxKind};
use crate::error::Span;

/// Parses an expression, up to the first error.
pub fn parse(text: &str) -> Result<Syntax, ExprError> {
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser { text, tokens, next: 0, depth: 0 };
    if parser.peek() == &Token::End {
        return Err(ExprError::syntax(0..text.len(), "the expression is empty", "expected an expression"));
    }
    let syntax = parser.expression(LOOSEST).map_err(|error| *error)?;
    match parser.peek() {
        Token::End => Ok(*syntax),
        _ => Err(parser.leftover()),
    }
}

/// Boxed for small recursive frames.
type Parsed = Result<Box<Syntax>, Box<ExprError>>;

/// Parentheses use a level; printed trees must be parsable.
const NESTING_LIMIT: usize = 2 * Expr::DEPTH_LIMIT;

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, Span)>,
    next: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        self.tokens.get(self.next).map_or(&Token::End, |(token, _)| token)
    }

    fn span(&self) -> Span {
        self.tokens.get(self.next).map_or(self.text.len()..self.text.len(), |(_, span)| span.clone())
    }

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

    fn expect(&mut self, symbol: &str, help: &str) -> Result<(), Box<ExprError>> {
        if self.accept(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{symbol}`"), Some(help)))
    }

    #[cold]
    #[inline(never)]
    fn unexpected(&self, expected: &str, help: Option<&str>) -> Box<ExprError> {
        let span = self.span();
        let found = match self.peek() {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", self.source(span.clone())),
        };
        let message = format!("expected {expected}, found {found}");
        let error = ExprError::syntax(span, message, format!("expected {expected}"));
        Box::new(ExprError { help: help.map(str::to_owned), ..error })
    }

    #[cold]
    #[inline(never)]
    fn leftover(&self) -> ExprError {
        let before = |back: usize| {
            let at = self.next.checked_sub(back)?;
            self.tokens.get(at).map(|(token, _)| token)
        };
        let help = match (self.peek(), before(1), before(2), before(3)) {
            (Token::Symbol(",") | Token::Symbol("for"), ..) => {
                Some("write an array in brackets: `[a, b]`".to_owned())
            }
            (Token::Symbol("in" | "not"), ..) => {
                Some("`in` is not supported: write `a == 1 or a == 2`".to_owned())
            }
            (Token::Name("is"), ..) => Some("write `==` to compare".to_owned()),
            (_, Some(Token::Symbol(")")), Some(Token::Name(ty)), Some(Token::Symbol("("))) => {
                let operand = self.text.get(self.span().start..).unwrap_or_default();
                let operand = operand.split_whitespace().next().unwrap_or_default();
                foreign::cast(ty).map(|cast| format!("write a conversion as a call: `{cast}({operand})`"))
            }
            (Token::Str(_), ..) | (_, Some(Token::Str(_)), ..) => {
                Some("write strings in the other quotes: `'a'`".to_owned())
            }
            _ => None,
        };
        *self.unexpected("an operator or the end", help.as_deref())
    }

    #[cold]
    #[inline(never)]
    fn too_deep(&self) -> Box<ExprError> {
        Box::new(too_deep(self.span()))
    }

    fn source(&self, span: Span) -> &'t str {
        self.text.get(span).unwrap_or_default()
    }

    /// Chains such as `a + a + a` grow without recursion.
    fn make(&self, span: Span, kind: SyntaxKind) -> Parsed {
        let syntax = Syntax::new(span, kind);
        if syntax.height > Expr::DEPTH_LIMIT {
            return Err(Box::new(too_deep(syntax.span)));
        }
        Ok(Box::new(syntax))
    }

    fn expression(&mut self, loosest: u8) -> Parsed {
        if self.depth >= NESTING_LIMIT {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let syntax = self.operators(loosest);
        self.depth -= 1;
        syntax
    }

    fn operators(&mut self, loosest: u8) -> Parsed {
        let mut left = self.prefix(loosest)?;
        while let Token::Symbol(symbol) = *self.peek() {
            if symbol == "if" && CONDITIONAL >= loosest {
                left = self.conditional(left)?;
                continue;
            }
            let Some(op) = BinaryOp::from_name(symbol).filter(|op| op.level() >= loosest) else { break };
            self.next += 1;
            let right = self.expression(op.level() + 1)?;
            if op.level() == COMPARISON {
                self.refuse_chain(&left, &right)?;
            }
            let span = left.span.start..self.end();
            left = self.make(span, SyntaxKind::Binary(op, left, right))?;
        }
        Ok(left)
    }

    fn conditional(&mut self, then: Box<Syntax>) -> Parsed {
        self.next += 1;
        let condition = self.expression(DISJUNCTION)?;
        self.expect("else", "write `a if condition else b`")?;
        let otherwise = self.expression(CONDITIONAL)?;
        let span = then.span.start..self.end();
        let kind = SyntaxKind::Conditional { condition, then, otherwise };
        self.make(span, kind)
    }

    /// Languages differ in the meaning of `a < b < c`.
    fn refuse_chain(&mut self, left: &Syntax, right: &Syntax) -> Result<(), Box<ExprError>> {
        match *self.peek() {
            Token::Symbol(symbol) if is_comparison(symbol) => Err(self.chain(left, right, symbol)),
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn chain(&mut self, left: &Syntax, right: &Syntax, symbol: &str) -> Box<ExprError> {
        let second = self.span();
        self.next += 1;
        let last = match self.expression(COMPARISON + 1) {
            Ok(last) => last,
            Err(error) => return error,
        };
        let first = self.source(left.span.start..right.span.end);
        let middle = self.source(right.span.clone());
        let last = self.source(last.span);
        let error = ExprError::syntax(second, "comparisons do not chain", "second comparison");
        Box::new(error.help(format!("write `{first} and {middle} {symbol} {last}`")))
    }

    fn prefix(&mut self, loosest: u8) -> Parsed {
        match *self.peek() {
            Token::Symbol("-") => self.negation(),
            Token::Symbol("not") if loosest > NOT => Err(self.loose_not()),
            Token::Symbol("not") => {
                let start = self.span().start;
                self.next += 1;
                let operand = self.expression(NOT)?;
                self.make(start..self.end(), SyntaxKind::Unary(UnaryOp::Not, operand))
            }
            _ => self.postfix(),
        }
    }

    fn negation(&mut self) -> Parsed {
        let start = self.span().start;
        self.next += 1;
        // The minimum integer has no positive counterpart.
        if matches!(self.peek(), Token::Int(value) if *value == i64::MIN.unsigned_abs()) {
            self.next += 1;
            return self.make(start..self.end(), SyntaxKind::Int(i64::MIN));
        }
        let operand = self.expression(NEGATE)?;
        self.make(start..self.end(), SyntaxKind::Unary(UnaryOp::Neg, operand))
    }

    #[cold]
    #[inline(never)]
    fn loose_not(&self) -> Box<ExprError> {
        let message = "`not` has lower precedence than the operator before it";
        Box::new(ExprError::syntax(self.span(), message, "needs parentheses").help("write `(not a)`"))
    }

    fn postfix(&mut self) -> Parsed {
        let start = self.span().start;
        let mut syntax = self.primary()?;
        loop {
            let kind = if self.accept("[") {
                let index = self.expression(LOOSEST)?;
                self.expect("]", "close the index with `]`")?;
                SyntaxKind::Index { array: syntax, index }
            } else if self.accept(".") {
                let name_span = self.span();
                let name = self.name("`shape` or `rank`", None)?;
                if matches!(self.peek(), Token::Symbol("(")) {
                    return Err(self.method(&syntax, &name, name_span));
                }
                SyntaxKind::Field { object: syntax, name, name_span }
            } else {
                return Ok(syntax);
            };
            syntax = self.make(start..self.end(), kind)?;
        }
    }

    #[cold]
    #[inline(never)]
    fn method(&self, object: &Syntax, name: &str, span: Span) -> Box<ExprError> {
        let error =
            ExprError::syntax(span, format!("`{name}` is called as a method"), "methods are not supported");
        Box::new(foreign::method(error, self.source(object.span.clone()), name))
    }

    fn name(&mut self, expected: &str, help: Option<&str>) -> Result<String, Box<ExprError>> {
        let Token::Name(name) = *self.peek() else { return Err(self.unexpected(expected, help)) };
        self.next += 1;
        Ok(name.to_owned())
    }

    fn primary(&mut self) -> Parsed {
        match *self.peek() {
            Token::Symbol("(") => self.parenthesized(),
            Token::Symbol("[") => self.array(),
            Token::Name(name) => self.name_or_call(name),
            _ => self.literal(),
        }
    }

    #[inline(never)]
    fn literal(&mut self) -> Parsed {
        let span = self.span();
        let kind = match self.peek() {
            Token::Int(value) => match i64::try_from(*value) {
                Ok(value) => SyntaxKind::Int(value),
                Err(_) => return Err(Box::new(lexer::too_large(span, &value.to_string()))),
            },
            Token::Float(value) => SyntaxKind::Float(*value),
            Token::Str(value) => SyntaxKind::Str(value.clone()),
            Token::Symbol("true") => SyntaxKind::Bool(true),
            Token::Symbol("false") => SyntaxKind::Bool(false),
            _ => return Err(self.unexpected("an expression", None)),
        };
        self.next += 1;
        self.make(span, kind)
    }

    fn name_or_call(&mut self, name: &str) -> Parsed {
        let span = self.span();
        self.next += 1;
        if self.accept("(") {
            self.call(name, span)
        } else {
            self.make(span, SyntaxKind::Name(name.to_owned()))
        }
    }

    fn parenthesized(&mut self) -> Parsed {
        let start = self.span().start;
        self.next += 1;
        let mut syntax = self.expression(LOOSEST)?;
        let help = match self.peek() {
            Token::Symbol(",") => "tuples are not supported: write an array, `[a, b]`",
            Token::Symbol("for") => "generators are not supported: write `[a for a in array]`",
            _ => "close the parenthesis with `)`",
        };
        self.expect(")", help)?;
        syntax.span = start..self.end();
        Ok(syntax)
    }

    fn call(&mut self, function: &str, function_span: Span) -> Parsed {
        let args = self.items(")", Vec::new())?;
        let span = function_span.start..self.end();
        self.make(span, SyntaxKind::Call { function: function.to_owned(), function_span, args })
    }

    /// Accepts a trailing comma.
    fn items(&mut self, close: &str, mut items: Vec<Syntax>) -> Result<Vec<Syntax>, Box<ExprError>> {
        while !self.accept(close) {
            items.push(*self.expression(LOOSEST)?);
            if !self.accept(",") {
                let help = match self.peek() {
                    Token::Symbol("for") if close == ")" => {
                        "generators are not supported: write `sum([a for a in array])`"
                    }
                    Token::End if close == ")" => "close the parenthesis with `)`",
                    Token::End => "close the array with `]`",
                    _ => "separate with `,`",
                };
                self.expect(close, help)?;
                break;
            }
        }
        Ok(items)
    }

    fn array(&mut self) -> Parsed {
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
            self.items("]", vec![*first])?
        } else {
            let help = match self.peek() {
                Token::End => "close the array with `]`",
                _ => "separate elements with `,`",
            };
            self.expect("]", help)?;
            vec![*first]
        };
        self.make(start..self.end(), SyntaxKind::Array(items))
    }

    fn comprehension(&mut self, start: usize, body: Box<Syntax>) -> Parsed {
        let form = "write `[body for name in array if condition]`; the condition is optional";
        let variable_span = self.span();
        let variable = self.name("the name of a variable", Some(form))?;
        self.expect("in", form)?;
        let over = self.expression(DISJUNCTION)?;
        let condition = if self.accept("if") { Some(self.expression(DISJUNCTION)?) } else { None };
        self.expect("]", form)?;
        let kind = SyntaxKind::Comprehension { body, variable, variable_span, over, condition };
        self.make(start..self.end(), kind)
    }
}

fn is_comparison(symbol: &str) -> bool {
    BinaryOp::from_name(symbol).is_some_and(|op| op.level() == COMPARISON)
}

pub(super) fn too_deep(span: Span) -> ExprError {
    let limit = Expr::DEPTH_LIMIT;
    ExprError::too_large(
        span,
        format!("the expression is nested more than {limit} levels deep"),
        "too deep here",
    )
    .help("use an array with `sum`, `prod`, `min` or `max` instead of a long chain of operators")
}
