//! The manifest's expressions, compiled with the names that each may use, and what is said about their mistakes.
//!
//! Also keeps count of which names are used, for the warning about those that are not.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use cubinder_bundle::expr::{self, ExprError, Function, Kind, Node, Scope, Syntax, SyntaxKind, Typed};
use cubinder_bundle::{AttributeType, Output, Requirement};

use super::names::with_article;
use super::rows::Row;
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::{Manifest, Text};

/// What an expression must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// An array of integers.
    Ints,
    /// A number, a boolean or an array of them: what a kernel takes by value.
    Argument,
}

/// Where an expression stands: the names it may use and the row it belongs to, by index.
pub(super) struct Place {
    scope: Scope,
    row: Option<usize>,
}

/// A mistake and the rows of the table in which it shows; none where the expression belongs to no row.
struct Found {
    diagnostic: Diagnostic,
    rows: Vec<usize>,
}

/// Compiles the expressions of one manifest.
pub(super) struct Compiler<'m> {
    pub(super) manifest: &'m Manifest,
    pub(super) source: &'m Arc<Source>,
    functions: Vec<(&'m str, Function)>,
    /// Functions that do not parse or cannot be right: what is wrong with calls of them follows from that.
    broken_functions: BTreeSet<&'m str>,
    used: BTreeSet<String>,
    found: Vec<Found>,
}

impl<'m> Compiler<'m> {
    /// Parses the helper functions and checks them as each row sees them.
    pub(super) fn new(manifest: &'m Manifest, source: &'m Arc<Source>, rows: &[Row]) -> Compiler<'m> {
        let mut compiler = Compiler {
            manifest,
            source,
            functions: Vec::new(),
            broken_functions: BTreeSet::new(),
            used: BTreeSet::new(),
            found: Vec::new(),
        };
        for decl in &manifest.functions {
            match expr::parse(&decl.body.value) {
                Ok(body) => {
                    compiler.use_names(&body);
                    let params = decl.params.iter().map(|param| param.value.clone()).collect();
                    compiler.functions.push((&decl.name.value, Function { params, body }));
                }
                Err(error) => {
                    compiler.mistake(&decl.body, &error, None);
                    compiler.broken_functions.insert(&decl.name.value);
                }
            }
        }
        for (index, row) in rows.iter().enumerate() {
            compiler.check_functions(row, index);
        }
        compiler
    }

    fn check_functions(&mut self, row: &Row, index: usize) {
        let place = self.in_row(row, index);
        let functions = self.functions.clone();
        let mut broken = Vec::new();
        for (name, function) in &functions {
            let Some(decl) = self.manifest.functions.iter().find(|decl| decl.name.value == *name) else {
                continue;
            };
            for error in expr::check_function(name, function, &place.scope) {
                self.mistake(&decl.body, &error, place.row);
                broken.push(*name);
            }
        }
        // Only now: a mistake in one function says nothing about the next.
        self.broken_functions.extend(broken);
    }

    /// Where what is the same for all rows stands: it may use that, and the inputs.
    pub(super) fn outside(&self) -> Place {
        Place { scope: self.scope(None), row: None }
    }

    /// Where the expressions of a row stand: they may use the row's types and constants and every tensor.
    pub(super) fn in_row(&self, row: &Row, index: usize) -> Place {
        Place { scope: self.scope(Some(row)), row: Some(index) }
    }

    /// The rules about nodes.
    pub(super) fn require(&mut self) -> Vec<Requirement> {
        let manifest = self.manifest;
        let place = self.outside();
        let mut requirements = Vec::new();
        for rule in &manifest.plugin.require {
            let Some(typed) = self.expression(&rule.expr, "expr", Expected::Bool, &place) else { continue };
            if let [Node::Bool(holds)] = typed.expr.nodes.as_slice() {
                let diagnostic = if *holds {
                    Diagnostic::warning("this rule always holds").at(self.span_of(&rule.expr), "always true")
                } else {
                    Diagnostic::error("no node can meet this rule")
                        .at(self.span_of(&rule.expr), "always false")
                };
                self.report(diagnostic, None);
            }
            let (text, message) = (rule.expr.value.clone(), rule.message.clone());
            requirements.push(Requirement { expr: typed.expr, text, message });
        }
        requirements
    }

    /// The outputs with their shapes.
    pub(super) fn outputs(&mut self) -> Vec<Output> {
        let manifest = self.manifest;
        let place = self.outside();
        let mut outputs = Vec::new();
        for decl in &manifest.outputs {
            if let Some(typed) = self.expression(&decl.shape, "shape", Expected::Ints, &place) {
                outputs.push(Output { name: decl.name.value.clone(), shape: typed.expr });
            }
        }
        outputs
    }

    /// Compiles one expression.
    pub(super) fn expression(
        &mut self,
        text: &Text,
        key: &str,
        expected: Expected,
        place: &Place,
    ) -> Option<Typed> {
        let syntax = match expr::parse(&text.value) {
            Ok(syntax) => syntax,
            Err(error) => {
                self.mistake(text, &error, place.row);
                return None;
            }
        };
        self.use_names(&syntax);
        match expr::compile_syntax(&syntax, &place.scope) {
            Ok(typed) if expected.admits(&typed.kind) => Some(typed),
            Ok(typed) => {
                let diagnostic = Diagnostic::error(format!("`{key}` must be {}", expected.describe()))
                    .at(self.span_of(text), format!("this is {}", with_article(&typed.kind.to_string())));
                let diagnostic = match (expected, &typed.kind) {
                    (Expected::Int, Kind::Float) => {
                        diagnostic.help("use `//` or `ceil_div` where integers are divided, or `int(...)`")
                    }
                    (Expected::Ints, Kind::Int) => diagnostic.help("write it in square brackets: `[...]`"),
                    _ => diagnostic,
                };
                self.report(diagnostic, place.row);
                None
            }
            Err(errors) => {
                for error in &errors {
                    self.mistake(text, error, place.row);
                }
                None
            }
        }
    }

    fn scope(&self, row: Option<&Row>) -> Scope {
        let manifest = self.manifest;
        let mut scope = Scope::new();
        for (index, decl) in (0..).zip(&manifest.attributes) {
            scope = scope.attribute(&decl.name.value, index, kind_of(decl.ty));
        }
        for (index, decl) in (0..).zip(&manifest.inputs) {
            scope = scope.tensor(&decl.name.value, index, decl.rank.0, decl.rank.1);
        }
        for (name, function) in &self.functions {
            scope = scope.function(*name, function.clone());
        }
        let Some(row) = row else {
            let shared = manifest.constants.iter();
            return shared.fold(scope, |scope, decl| scope.constant(&decl.name.value, decl.value.clone()));
        };
        let first = u32::try_from(manifest.inputs.len()).unwrap_or(u32::MAX);
        for (index, decl) in (first..).zip(&manifest.outputs) {
            scope = scope.tensor(&decl.name.value, index, 0, super::MAX_RANK);
        }
        for (name, ty) in &row.types {
            scope = scope.ty(name, *ty);
        }
        row.constants.iter().fold(scope, |scope, (name, value)| scope.constant(name, value.clone()))
    }

    /// Reports a mistake inside an expression, unless the name it is about could not be read: that was reported.
    fn mistake(&mut self, text: &Text, error: &ExprError, row: Option<usize>) {
        let part = text.value.get(error.span.clone()).unwrap_or_default();
        let follows =
            |function: &&str| part == *function || error.message.starts_with(&format!("in `{function}`: "));
        if self.manifest.broken.iter().any(|broken| broken == part)
            || self.broken_functions.iter().any(follows)
        {
            return;
        }
        let span = self.span(text.locate(error.span.clone()));
        let mut diagnostic = Diagnostic::error(error.message.clone()).at(span, error.label.clone());
        if let Some(help) = &error.help {
            diagnostic = diagnostic.help(help.clone());
        }
        if let Some(note) = row.is_none().then(|| self.out_of_place(part)).flatten() {
            diagnostic = diagnostic.note(note);
        }
        self.report(diagnostic, row);
    }

    /// Why a name that the manifest declares is unknown to an expression that belongs to no row.
    fn out_of_place(&self, name: &str) -> Option<String> {
        let manifest = self.manifest;
        if manifest.outputs.iter().any(|output| output.name.value == name) {
            return Some(format!("`{name}` is an output: only launches can use outputs"));
        }
        if manifest.types.iter().any(|ty| ty.name.value == name) {
            return Some(format!("`{name}` is a type parameter: only launches can use them"));
        }
        let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
        let is_constant = of_variants.into_iter().any(|constant| constant.name.value == name);
        is_constant.then(|| {
            format!("`{name}` is a constant of the variants: all of them compute one operator, so only launches can use it")
        })
    }

    /// Adds a message; one about another row that says the same is kept once.
    pub(super) fn report(&mut self, diagnostic: Diagnostic, row: Option<usize>) {
        match self.found.iter_mut().find(|found| found.diagnostic == diagnostic) {
            Some(found) => found.rows.extend(row),
            None => self.found.push(Found { diagnostic, rows: row.into_iter().collect() }),
        }
    }

    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.source, range)
    }

    pub(super) fn span_of(&self, text: &Text) -> Span {
        self.span(text.range.clone())
    }

    /// Counts a name as used.
    pub(super) fn use_name(&mut self, name: &str) {
        self.used.insert(name.to_owned());
    }

    fn use_names(&mut self, syntax: &Syntax) {
        walk(syntax, &mut |name| {
            self.used.insert(name.to_owned());
        });
    }

    /// All messages, those about some rows with the first of these, and a warning for each name that nothing uses.
    pub(super) fn finish(self, rows: &[Row]) -> Vec<Diagnostic> {
        let unused = self.unused();
        let messages = self.found.into_iter().map(|found| {
            // What is wrong in every row is not about rows.
            match found.rows.first().and_then(|&first| rows.get(first)) {
                Some(row) if found.rows.len() < rows.len() => {
                    let more = match found.rows.len() - 1 {
                        0 => String::new(),
                        others => format!(" and {others} more"),
                    };
                    found.diagnostic.note(format!("in {}{more}", row.describe()))
                }
                _ => found.diagnostic,
            }
        });
        messages.chain(unused).collect()
    }

    fn unused(&self) -> Vec<Diagnostic> {
        let manifest = self.manifest;
        let tensor_types: BTreeSet<&str> = {
            let inputs = manifest.inputs.iter().map(|input| input.ty.value.as_str());
            inputs.chain(manifest.outputs.iter().map(|output| output.ty.value.as_str())).collect()
        };
        let mut declared: Vec<(&str, &crate::manifest::Located<String>)> = Vec::new();
        declared.extend(manifest.attributes.iter().map(|decl| ("attribute", &decl.name)));
        declared.extend(manifest.constants.iter().map(|decl| ("constant", &decl.name)));
        declared.extend(manifest.functions.iter().map(|decl| ("function", &decl.name)));
        let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
        declared.extend(of_variants.map(|decl| ("constant", &decl.name)));
        let types = manifest.types.iter().filter(|decl| !tensor_types.contains(decl.name.value.as_str()));
        declared.extend(types.map(|decl| ("type parameter", &decl.name)));
        let unused = declared.into_iter().filter(|(_, name)| !self.used.contains(&name.value));
        let warning = |(what, name): (&str, &crate::manifest::Located<String>)| {
            Diagnostic::warning(format!("the {what} `{}` is never used", name.value))
                .at(self.span(name.range.clone()), "declared here")
        };
        unused.map(warning).collect()
    }
}

impl Expected {
    fn admits(self, kind: &Kind) -> bool {
        let number = |kind: &Kind| matches!(kind, Kind::Int | Kind::Float | Kind::Bool);
        match (self, kind) {
            (Expected::Bool, Kind::Bool) | (Expected::Int, Kind::Int) => true,
            (Expected::Ints, Kind::Array(item)) => **item == Kind::Int,
            (Expected::Argument, Kind::Array(item)) => number(item),
            (Expected::Argument, kind) => number(kind),
            _ => false,
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Expected::Bool => "a boolean",
            Expected::Int => "an integer",
            Expected::Ints => "an array of integers",
            Expected::Argument => "a number, a boolean or an array of them",
        }
    }
}

fn kind_of(ty: AttributeType) -> Kind {
    match ty {
        AttributeType::I32 => Kind::Int,
        AttributeType::I32Array => Kind::ints(),
        AttributeType::F32 => Kind::Float,
        AttributeType::F32Array => Kind::Array(Box::new(Kind::Float)),
        AttributeType::Bool => Kind::Bool,
        AttributeType::String => Kind::Str,
    }
}

/// Calls `visit` with every name and every function name. The parser bounds the depth of the tree.
fn walk(syntax: &Syntax, visit: &mut dyn FnMut(&str)) {
    match &syntax.kind {
        SyntaxKind::Int(_) | SyntaxKind::Float(_) | SyntaxKind::Bool(_) | SyntaxKind::Str(_) => {}
        SyntaxKind::Name(name) => visit(name),
        SyntaxKind::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        SyntaxKind::Unary(_, operand) => walk(operand, visit),
        SyntaxKind::Binary(_, left, right) => {
            walk(left, visit);
            walk(right, visit);
        }
        SyntaxKind::Conditional { condition, then, otherwise } => {
            walk(condition, visit);
            walk(then, visit);
            walk(otherwise, visit);
        }
        SyntaxKind::Index { array, index } => {
            walk(array, visit);
            walk(index, visit);
        }
        SyntaxKind::Field { object, .. } => walk(object, visit),
        SyntaxKind::Call { function, args, .. } => {
            visit(function);
            args.iter().for_each(|arg| walk(arg, visit));
        }
        SyntaxKind::Comprehension { body, over, condition, .. } => {
            walk(body, visit);
            walk(over, visit);
            condition.iter().for_each(|condition| walk(condition, visit));
        }
    }
}
