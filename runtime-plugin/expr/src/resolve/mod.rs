//! Resolves syntax to a typed tree. Integers convert to floats by `float(...)`, which rounds beyond 2^53.

mod calls;
mod errors;
mod forms;
mod layout;
mod names;
mod operators;
mod types;

use crate::bind::{self, Facts};
use crate::error::ExprError;
use crate::error::Span;
use crate::eval::Environment;
use crate::node::{BinaryOp, Builtin, Expr, Node, NodeId, UnaryOp, height_of};
use crate::ops::STEP_LIMIT;
use crate::parser::{parse, too_deep};
use crate::print::Names;
use crate::scope::{BindingTime, Entity, Function, Kind, Scope};
use crate::sizes;
use crate::syntax::{Syntax, SyntaxKind};
use errors::{AlwaysFails, DifferentKinds, WrongType};
use types::Type;

/// A resolved expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed {
    /// Folded tree.
    pub expr: Expr,
    /// Kind of the value.
    pub kind: Kind,
    /// When its value is known, after folding.
    pub time: BindingTime,
}

/// Compiles an expression. Returns the first syntax error, or all independent errors.
pub fn compile(text: &str, scope: &Scope) -> Result<Typed, Vec<ExprError>> {
    let syntax = parse(text).map_err(|error| vec![error])?;
    compile_syntax(&syntax, scope)
}

/// Compiles parsed text.
pub fn compile_syntax(syntax: &Syntax, scope: &Scope) -> Result<Typed, Vec<ExprError>> {
    let mut resolver = Resolver::new(scope);
    let root = resolver.value(syntax);
    let Resolver { nodes, spans, mut errors, .. } = resolver;
    if !errors.is_empty() {
        return Err(errors);
    }
    let source = Expr { nodes };
    let folded = bind::fold(&source, &ScopeFacts(scope));
    if !sizes::sizes_are_dimensions(&folded.expr) {
        return Err(vec![sizes::misplaced(&source, &spans, &syntax.span, scope)]);
    }
    for (node, error) in folded.failures {
        let span = spans.get(node as usize).cloned().unwrap_or_else(|| syntax.span.clone());
        let error = AlwaysFails { error: error.to_string() }.with_span(&span);
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let time = binding_time(&folded.expr);
    Ok(Typed { expr: folded.expr, kind: root.ty.kind(), time })
}

/// Checks a helper function's body for any arguments; spans are its own.
#[must_use]
pub fn check_function(name: &str, function: &Function, scope: &Scope) -> Vec<ExprError> {
    let mut resolver = Resolver::new(scope);
    resolver.addresses = true;
    resolver.device = true;
    resolver.sizes = true;
    resolver.inlining.push(name.to_owned());
    resolver.params = function.params.iter().map(|param| (param.clone(), Argument::Anything)).collect();
    resolver.value(&function.body);
    resolver.errors
}

/// Returns when a tree's value is known.
#[must_use]
pub fn binding_time(expr: &Expr) -> BindingTime {
    let time = |node: &Node| match node {
        Node::Size(_) => BindingTime::Run,
        Node::Aligned { .. } | Node::Device(_) => BindingTime::Launch,
        Node::Shape(_) | Node::Numel(_) | Node::Values(_) => BindingTime::Shape,
        Node::Attribute(_) | Node::Rank(_) => BindingTime::Node,
        _ => BindingTime::Compile,
    };
    expr.nodes.iter().map(time).max().unwrap_or(BindingTime::Compile)
}

struct ScopeFacts<'a>(&'a Scope);

impl Facts for ScopeFacts<'_> {
    fn environment(&self) -> &dyn Environment {
        self
    }

    fn ranks(&self, tensor: u32) -> Option<(usize, usize)> {
        self.0.ranks(tensor).map(|(lowest, highest)| (usize::from(lowest), usize::from(highest)))
    }

    fn names(&self) -> &dyn Names {
        self.0
    }
}

impl Environment for ScopeFacts<'_> {
    fn rank(&self, tensor: u32) -> Option<usize> {
        let (lowest, highest) = self.0.ranks(tensor)?;
        (lowest == highest).then_some(usize::from(lowest))
    }
}

struct Local {
    name: String,
    span: Span,
    slot: u32,
    ty: Type,
}

const ERROR_LIMIT: usize = 32;

#[derive(Debug, Clone)]
struct Operand {
    id: NodeId,
    ty: Type,
    span: Span,
}

impl Operand {
    fn wrong_type(&self, rule: &str) -> ExprError {
        WrongType { rule, found: &self.ty }.with_span(&self.span)
    }
}

#[derive(Debug, Clone)]
enum Argument {
    /// Copied at each use.
    Value { nodes: Vec<Node>, spans: Vec<Span>, heights: Vec<usize>, ty: Type },
    /// A tensor or a type.
    Entity(Entity),
    /// Any kind, for separately checked functions.
    Anything,
}

struct Resolver<'a> {
    scope: &'a Scope,
    nodes: Vec<Node>,
    spans: Vec<Span>,
    heights: Vec<usize>,
    /// Innermost last.
    locals: Vec<Local>,
    slots: u32,
    params: Vec<(String, Argument)>,
    /// Innermost last.
    inlining: Vec<String>,
    /// Outermost call: a body's own spans are in another text.
    call_span: Option<Span>,
    depth: usize,
    errors: Vec<ExprError>,
    /// Too large: no nodes are added.
    full: bool,
    addresses: bool,
    device: bool,
    sizes: bool,
    alignment_steps: usize,
}

impl<'a> Resolver<'a> {
    fn new(scope: &'a Scope) -> Resolver<'a> {
        Resolver {
            scope,
            nodes: Vec::new(),
            spans: Vec::new(),
            heights: Vec::new(),
            locals: Vec::new(),
            slots: 0,
            params: Vec::new(),
            inlining: Vec::new(),
            call_span: None,
            depth: 0,
            errors: Vec::new(),
            full: false,
            addresses: !scope.no_addresses,
            device: !scope.no_device,
            sizes: scope.has_sizes,
            alignment_steps: STEP_LIMIT,
        }
    }

    /// Reports an error, for inlined bodies at the call.
    fn error(&mut self, mut error: ExprError) {
        if let Some(span) = &self.call_span {
            error.span = span.clone();
            // It refers to the function's text.
            error.also = None;
            // Size errors belong to the outermost function.
            let function = if error.is_about_size { self.inlining.first() } else { self.inlining.last() };
            if let Some(function) = function {
                error.message = format!("in `{function}`: {}", error.message);
                "in this call".clone_into(&mut error.label);
                error.function = Some(function.clone());
            }
        }
        if self.errors.len() < ERROR_LIMIT && !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn emit(&mut self, node: Node, ty: Type, span: &Span) -> Operand {
        let span = self.call_span.clone().unwrap_or_else(|| span.clone());
        let height = height_of(&node, &self.heights);
        if height > Expr::DEPTH_LIMIT && !self.full {
            self.full = true;
            self.error(too_deep(span.clone()));
        }
        self.push(node, height, span, ty)
    }

    fn push(&mut self, node: Node, height: usize, span: Span, ty: Type) -> Operand {
        if self.nodes.len() >= Expr::NODE_LIMIT && !self.full {
            self.full = true;
            let message = format!(
                "the expression has more than {} parts after functions are inlined",
                Expr::NODE_LIMIT
            );
            self.error(ExprError::too_large(span.clone(), message, "too large"));
        }
        if self.full {
            return Operand { id: 0, ty, span };
        }
        // Below the limit on nodes.
        let id = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        self.nodes.push(node);
        self.spans.push(span.clone());
        self.heights.push(height);
        Operand { id, ty, span }
    }

    fn shape_of(&self, id: NodeId) -> Option<u32> {
        match self.nodes.get(id as usize) {
            Some(Node::Shape(tensor)) => Some(*tensor),
            _ => None,
        }
    }

    fn replace(&mut self, id: NodeId, node: Node, ty: Type, span: &Span) -> Operand {
        if let Some(place) = self.nodes.get_mut(id as usize) {
            *place = node;
        }
        Operand { id, ty, span: span.clone() }
    }

    fn nothing(&mut self, span: &Span) -> Operand {
        self.anything(Type::Unknown, span)
    }

    fn reject(&mut self, error: ExprError, span: &Span) -> Operand {
        self.error(error);
        self.nothing(span)
    }

    fn anything(&mut self, ty: Type, span: &Span) -> Operand {
        self.emit(Node::Local(Node::ANYTHING), ty, span)
    }

    fn value(&mut self, syntax: &Syntax) -> Operand {
        if self.full {
            return Operand { id: 0, ty: Type::Unknown, span: syntax.span.clone() };
        }
        if self.depth >= Expr::DEPTH_LIMIT {
            self.full = true;
            self.error(too_deep(syntax.span.clone()));
            return Operand { id: 0, ty: Type::Unknown, span: syntax.span.clone() };
        }
        self.depth += 1;
        let operand = self.dispatch(syntax);
        self.depth -= 1;
        operand
    }

    fn dispatch(&mut self, syntax: &Syntax) -> Operand {
        let span = &syntax.span;
        match &syntax.kind {
            SyntaxKind::Int(value) => self.emit(Node::Int(*value), Type::Int, span),
            SyntaxKind::Float(value) => self.emit(Node::Float(*value), Type::Float, span),
            SyntaxKind::Bool(value) => self.emit(Node::Bool(*value), Type::Bool, span),
            SyntaxKind::Str(value) => self.emit(Node::Str(value.clone()), Type::Str, span),
            SyntaxKind::Name(name) => self.name(name, span),
            SyntaxKind::Array(items) => self.array(items, span),
            SyntaxKind::Unary(op, operand) => self.unary(*op, operand, span),
            SyntaxKind::Binary(op, left, right) => self.binary(*op, left, right, span),
            SyntaxKind::Conditional { condition, then, otherwise } => {
                self.conditional(condition, then, otherwise, span)
            }
            SyntaxKind::Index { array, index } => self.index(array, index, span),
            SyntaxKind::Field { object, name, name_span } => self.field(object, name, name_span, span),
            SyntaxKind::Call { function, function_span, args } => {
                self.call(function, function_span, args, span)
            }
            SyntaxKind::Comprehension { body, variable, variable_span, over, condition } => {
                let variable = (variable.as_str(), variable_span);
                self.comprehension(body, variable, over, condition.as_deref(), span)
            }
        }
    }

    fn slot(&mut self) -> u32 {
        let slot = self.slots;
        self.slots = self.slots.saturating_add(1);
        slot
    }

    fn array(&mut self, items: &[Syntax], span: &Span) -> Operand {
        let items: Vec<Operand> = items.iter().map(|item| self.value(item)).collect();
        let (items, element) = self.unified(items, "elements of an array");
        let ids = items.iter().map(|item| item.id).collect();
        self.emit(Node::Array(ids), Type::array(element), span)
    }

    /// Integers become floats beside floats.
    fn unified(&mut self, operands: Vec<Operand>, what: &str) -> (Vec<Operand>, Type) {
        let mut common = Type::Unknown;
        for operand in &operands {
            match common.unify(&operand.ty) {
                Some(ty) => common = ty,
                None => {
                    let error = DifferentKinds { what, common: &common, found: &operand.ty };
                    self.error(error.with_span(&operand.span));
                    return (operands, Type::Unknown);
                }
            }
        }
        let operands = operands.into_iter().map(|operand| self.converted(operand, &common)).collect();
        (operands, common)
    }

    fn converted(&mut self, operand: Operand, wanted: &Type) -> Operand {
        if operand.ty == Type::Int && *wanted == Type::Float {
            let span = operand.span.clone();
            return self.emit(Node::Call(Builtin::Float, vec![operand.id]), Type::Float, &span);
        }
        operand
    }

    fn wanted(&mut self, operand: Operand, wanted: &Type, by: &str) -> Operand {
        match wanted.unify(&operand.ty) {
            Some(ty) if ty == *wanted || operand.ty.is_unknown() => self.converted(operand, wanted),
            _ => {
                let error = operand.wrong_type(&format!("{by} must be {}", wanted.with_article()));
                self.error(match (wanted, &operand.ty) {
                    (Type::Bool, Type::Int) => error.help("write `a != 0`"),
                    (Type::Int, Type::Float) => error.help("write `int(a)`, which rounds toward zero"),
                    (Type::Int, Type::Bool) => error.help("write `1 if a else 0`"),
                    _ => error,
                });
                operand
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Syntax, span: &Span) -> Operand {
        let operand = self.value(operand);
        let (operand, ty) = match op {
            UnaryOp::Not => (self.wanted(operand, &Type::Bool, "the operand of `not`"), Type::Bool),
            UnaryOp::Neg => {
                if !operand.ty.is_number() {
                    self.error(operand.wrong_type("the operand of `-` must be a number"));
                }
                let ty = operand.ty.clone();
                (operand, ty)
            }
        };
        self.emit(Node::Unary(op, operand.id), ty, span)
    }

    fn binary(&mut self, op: BinaryOp, left: &Syntax, right: &Syntax, span: &Span) -> Operand {
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        if equality && (self.is_type(left) || self.is_type(right)) {
            return self.types_compared(left, right, span);
        }
        let (first, second) = (left, right);
        let (left, right) = (self.value(left), self.value(right));
        if equality {
            self.missing_quotes(first, &right);
            self.missing_quotes(second, &left);
        }
        let (left, right, ty) = self.operands(op, left, right, span);
        self.emit(Node::Binary(op, left.id, right.id), ty, span)
    }

    fn conditional(&mut self, condition: &Syntax, then: &Syntax, otherwise: &Syntax, span: &Span) -> Operand {
        let condition = self.value(condition);
        let condition = self.wanted(condition, &Type::Bool, "the condition of `if`");
        let sides = vec![self.value(then), self.value(otherwise)];
        let (sides, ty) = self.unified(sides, "both sides of `if`");
        let mut ids = sides.iter().map(|side| side.id);
        let (then, otherwise) = (ids.next().unwrap_or(0), ids.next().unwrap_or(0));
        self.emit(Node::Conditional { condition: condition.id, then, otherwise }, ty, span)
    }

    fn index(&mut self, array: &Syntax, index: &Syntax, span: &Span) -> Operand {
        let array = self.value(array);
        let index = self.value(index);
        let index = self.wanted(index, &Type::Int, "an index");
        if !array.ty.is_array() {
            self.error(array.wrong_type("only arrays have elements"));
        }
        let ty = array.ty.element();
        self.emit(Node::Index { array: array.id, index: index.id }, ty, span)
    }

    fn comprehension(
        &mut self,
        body: &Syntax,
        (variable, variable_span): (&str, &Span),
        over: &Syntax,
        condition: Option<&Syntax>,
        span: &Span,
    ) -> Operand {
        let over = self.value(over);
        if !over.ty.is_array() {
            let error = over.wrong_type("`for` expects an array");
            self.error(if over.ty == Type::Int { error.help("write `range(n)`") } else { error });
        }
        let slot = self.slot();
        let ty = over.ty.element();
        self.locals.push(Local { name: variable.to_owned(), span: variable_span.clone(), slot, ty });
        let condition = condition.map(|condition| {
            let condition = self.value(condition);
            self.wanted(condition, &Type::Bool, "the condition of a comprehension").id
        });
        let body = self.value(body);
        self.locals.pop();
        let node = Node::Comprehension { slot, over: over.id, condition, body: body.id };
        self.emit(node, Type::array(body.ty), span)
    }
}
