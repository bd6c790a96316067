//! Compiles expressions in scopes, recording used names; `diagnose` reports errors.

mod diagnose;
mod functions;
mod plugin;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

use cubinder_expr as expr;
use cubinder_expr::{ErrorClass, Expr, Function, Kind, Node, Scope, Syntax, TensorKind, Typed};

use super::declaration_labels;
use super::declarations::{Declarations, is_declared, tensors};
use super::free_names::free_names;
use super::messages::Messages;
use super::names::{declared_twice, invalid_names};
use super::rows::Row;
use super::tensor_kinds::kind_of;
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::{FunctionDecl, MAX_RANK, Manifest, OutputDecl, Text};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Expected {
    Bool,
    Int,
    Ints,
    Argument,
    Elements,
}

/// Usable names, and the row's index.
pub(super) struct RowScope {
    scope: Rc<Scope>,
    pub(super) row: Option<usize>,
    key: ScopeKey,
}

/// First row of equal types and constants, and extra names.
type ScopeKey = (Option<usize>, ExtraNames);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ExtraNames {
    None,
    Sizes,
    Addresses,
}

type CompiledExpression = (Option<Typed>, Vec<Diagnostic>);

pub(super) struct Compiler<'m> {
    pub(super) declared: Declarations<'m>,
    functions: Vec<(&'m FunctionDecl, Function)>,
    /// Errors in calls are consequences.
    broken_functions: BTreeSet<&'m str>,
    /// They call a broken function.
    unchecked_functions: BTreeSet<&'m str>,
    /// Declared twice: errors may be consequences.
    ambiguous: BTreeSet<&'m str>,
    /// Invalid names: errors are consequences.
    invalid_names: Vec<&'m str>,
    /// Other variants' constants, each reported once.
    missing_constants: BTreeSet<(usize, String)>,
    /// Outputs with invalid shapes.
    broken_outputs: BTreeSet<&'m str>,
    /// Outputs whose memory is unknown.
    unshared_outputs: BTreeSet<&'m str>,
    /// Parameters with unknown types.
    unclear_types: BTreeSet<String>,
    formats_are_known: bool,
    pub(super) used: BTreeSet<String>,
    pub(super) used_in_rows: BTreeSet<String>,
    pub(super) messages: Messages,
    variants: Vec<usize>,
    first_alike: Vec<usize>,
    scopes: RefCell<HashMap<ScopeKey, Rc<Scope>>>,
    compiled: HashMap<(ScopeKey, Range<usize>, Expected), CompiledExpression>,
    reported: Vec<Diagnostic>,
}

const OF_FORMATS: [&str; 3] = ["format", "vector", "padded"];

/// `false` for unclear parameters, which any tensor may use.
fn formats_are_known(manifest: &Manifest, unclear: &BTreeSet<String>) -> bool {
    manifest.formats.iter().all(|parameter| !unclear.contains(&parameter.name.value))
        && tensors(manifest)
            .filter_map(|tensor| tensor.format)
            .all(|format| is_declared(&manifest.formats, &format.value))
}

impl<'m> Compiler<'m> {
    pub(super) fn new(
        declared: Declarations<'m>,
        rows: &[Row],
        unclear_types: BTreeSet<String>,
    ) -> Compiler<'m> {
        let mut compiler = Compiler {
            declared,
            functions: Vec::new(),
            broken_functions: BTreeSet::new(),
            unchecked_functions: BTreeSet::new(),
            ambiguous: declared_twice(declared),
            invalid_names: invalid_names(declared),
            missing_constants: BTreeSet::new(),
            broken_outputs: BTreeSet::new(),
            unshared_outputs: BTreeSet::new(),
            formats_are_known: formats_are_known(declared.manifest, &unclear_types),
            unclear_types,
            used: BTreeSet::new(),
            used_in_rows: BTreeSet::new(),
            messages: Messages::default(),
            variants: rows.iter().map(|row| row.variant).collect(),
            first_alike: first_alike(rows),
            scopes: RefCell::default(),
            compiled: HashMap::new(),
            reported: Vec::new(),
        };
        compiler.add_functions(rows);
        compiler
    }

    pub(super) fn shared_scope(&self) -> RowScope {
        self.scope_with(None, ExtraNames::None)
    }

    pub(super) fn row_scope(&self, row: &Row) -> RowScope {
        self.scope_with(Some(row), ExtraNames::None)
    }

    pub(super) fn guard_scope(&self, row: &Row) -> RowScope {
        self.scope_with(Some(row), ExtraNames::Addresses)
    }

    fn scope_with(&self, row: Option<&Row>, extra: ExtraNames) -> RowScope {
        let first = row.map(|row| self.first_alike.get(row.index).copied().unwrap_or(row.index));
        let key = (first, extra);
        let mut scopes = self.scopes.borrow_mut();
        let scope = scopes.entry(key).or_insert_with(|| {
            let scope = self.scope(row);
            // Shapes and rules must not depend on the device.
            let scope = if row.is_some() { scope } else { scope.without_device() };
            Rc::new(match extra {
                ExtraNames::None => scope.without_addresses(),
                ExtraNames::Sizes => self.with_sizes(scope.without_addresses()),
                ExtraNames::Addresses => scope,
            })
        });
        RowScope { scope: Rc::clone(scope), row: row.map(|row| row.index), key }
    }

    pub(super) fn expression(
        &mut self,
        text: &Text,
        key: &str,
        expected: Expected,
        scope: &RowScope,
    ) -> Option<Typed> {
        let place = (scope.key, text.range.clone(), expected);
        // Other texts lack a position as a cache key.
        let is_placed = !text.range.is_empty();
        if let Some((typed, reported)) = self.compiled.get(&place).filter(|_| is_placed).cloned() {
            reported.into_iter().for_each(|diagnostic| self.report(diagnostic, scope.row));
            return typed;
        }
        self.reported.clear();
        let typed = self.compile(text, key, expected, scope);
        let reported = std::mem::take(&mut self.reported);
        self.compiled.insert(place, (typed.clone(), reported));
        typed
    }

    pub(super) fn condition(&mut self, text: &str, scope: &RowScope) -> Option<Typed> {
        self.expression(&Text::stands_for(0..0, text.to_owned()), "guard", Expected::Bool, scope)
    }

    fn compile(&mut self, text: &Text, key: &str, expected: Expected, scope: &RowScope) -> Option<Typed> {
        let syntax = match expr::parse(&text.value) {
            Ok(syntax) => syntax,
            Err(error) => {
                self.report_error(text, &error, scope.row);
                return None;
            }
        };
        self.use_names(&syntax, &[], scope.row.is_some());
        if mentions(&syntax, &mut Vec::new(), &self.unchecked_functions) {
            return None;
        }
        let is_ambiguous = mentions(&syntax, &mut Vec::new(), &self.ambiguous);
        let typed = match expr::compile_syntax(&syntax, &scope.scope) {
            Ok(typed) => typed,
            Err(mut errors) => {
                errors.retain(|error| {
                    let part = text.value.get(error.span.clone()).unwrap_or_default();
                    let is_consequence =
                        error.class == ErrorClass::WrongKind || self.ambiguous.contains(part);
                    !(is_ambiguous && is_consequence)
                });
                for error in errors {
                    let error = match expected {
                        Expected::Argument => self.offer_scratch(text, error),
                        _ => error,
                    };
                    self.report_error(text, &error, scope.row);
                }
                return None;
            }
        };
        if !expected.admits(&typed.kind) {
            if !is_ambiguous {
                self.report(self.wrong_kind(text, key, expected, &typed.kind), scope.row);
            }
            return None;
        }
        (!self.is_doubtful(text)).then_some(typed)
    }

    pub(super) fn is_unclear(&self, name: &str) -> bool {
        self.ambiguous.contains(name)
            || self.unclear_types.contains(name)
            || self.unshared_outputs.contains(name)
            || self.declared.is_broken(name)
    }

    fn with_sizes(&self, scope: Scope) -> Scope {
        let sizes = self.numbered_outputs().filter(|(_, decl)| decl.size.is_some());
        let add = |scope: Scope, (index, decl): (u32, &OutputDecl)| {
            scope.tensor_of_kind(&decl.name.value, index, (0, 0), TensorKind::Size)
        };
        sizes.fold(scope, add).with_sizes()
    }

    fn numbered_outputs(&self) -> impl Iterator<Item = (u32, &'m OutputDecl)> {
        let first = u32::try_from(self.declared.manifest.inputs.len()).unwrap_or(u32::MAX);
        (first..).zip(&self.declared.manifest.outputs)
    }

    fn scope(&self, row: Option<&Row>) -> Scope {
        let manifest = self.declared.manifest;
        let mut scope = Scope::new();
        for (index, decl) in (0..).zip(&manifest.attributes) {
            scope = scope.attribute(&decl.name.value, index, decl.ty.value.kind());
        }
        for (index, decl) in (0..).zip(&manifest.inputs) {
            let kind = match (&decl.values, row) {
                (None, _) => TensorKind::Plain,
                (Some(_), None) => TensorKind::ShapeInput,
                (Some(_), Some(_)) => TensorKind::UnseenShapeInput,
            };
            scope = scope.tensor_of_kind(&decl.name.value, index, decl.rank, kind);
        }
        for (decl, function) in &self.functions {
            scope = scope.function(decl.name.value.as_str(), function.clone());
        }
        let Some(row) = row else {
            let shared = manifest.constants.iter();
            return shared.fold(scope, |scope, decl| scope.constant(&decl.name.value, decl.value.clone()));
        };
        for (index, decl) in self.numbered_outputs() {
            let ranks = (0, if decl.size.is_some() { 0 } else { MAX_RANK });
            scope = scope.tensor_of_kind(&decl.name.value, index, ranks, kind_of(self.declared, decl));
        }
        for (name, ty) in &row.types {
            scope = scope.ty(name, *ty);
        }
        scope = scope.formats((0..).zip(row.tensor_formats.iter().copied()));
        // Specialized values replace the attribute.
        row.values().fold(scope, |scope, (name, value)| scope.constant(name, value.clone()))
    }

    pub(super) fn with_values(&self, diagnostic: Diagnostic, text: &Text, row: Option<usize>) -> Diagnostic {
        let labels = declaration_labels::of_value(self.declared, text, self.variant_of(row));
        self.with_labels(diagnostic, labels)
    }

    fn variant_of(&self, row: Option<usize>) -> Option<usize> {
        row.and_then(|row| self.variants.get(row).copied())
    }

    pub(super) fn report(&mut self, diagnostic: impl Into<Diagnostic>, row: Option<usize>) {
        let diagnostic = diagnostic.into();
        self.reported.push(diagnostic.clone());
        self.messages.add(diagnostic, row);
    }

    pub(super) fn span(&self, range: &Range<usize>) -> Span {
        self.declared.span(range)
    }

    pub(super) fn use_name(&mut self, name: &str) {
        self.used.insert(name.to_owned());
        self.used_in_rows.insert(name.to_owned());
    }

    fn use_names(&mut self, syntax: &Syntax, params: &[String], in_rows: bool) {
        let mut bound: Vec<&str> = params.iter().map(String::as_str).collect();
        free_names(syntax, &mut bound, &mut |name| {
            self.used.insert(name.to_owned());
            if in_rows {
                self.used_in_rows.insert(name.to_owned());
            }
        });
    }
}

pub(super) fn constant(value: i64) -> Expr {
    Expr { nodes: vec![Node::Int(value)] }
}

fn first_alike(rows: &[Row]) -> Vec<usize> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let first = |row: &Row| {
        let names = format!("{:?} {:?} {:?} {:?}", row.types, row.formats, row.specialized, row.constants);
        *known.entry(names).or_insert(row.index)
    };
    rows.iter().map(first).collect()
}

fn mentions<'s>(syntax: &'s Syntax, bound: &mut Vec<&'s str>, names: &BTreeSet<&str>) -> bool {
    let mut found = false;
    free_names(syntax, bound, &mut |name| found |= names.contains(name));
    found
}

impl Expected {
    fn admits(self, kind: &Kind) -> bool {
        let number = |kind: &Kind| matches!(kind, Kind::Int | Kind::Float | Kind::Bool);
        match (self, kind) {
            (Expected::Bool, Kind::Bool) | (Expected::Int, Kind::Int) => true,
            (Expected::Ints, Kind::Array(item)) => **item == Kind::Int,
            (Expected::Argument | Expected::Elements, Kind::Array(item)) => number(item),
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
            Expected::Elements => "an array of numbers or booleans",
        }
    }
}
