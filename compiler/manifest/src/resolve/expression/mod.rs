//! The manifest's expressions, compiled with the names that each may use; what is said about their mistakes is in `mistakes`.
//!
//! Also keeps count of which names are used, for the warning about those that are not. Never says what follows from a mistake
//! that was told elsewhere.

mod mistakes;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use cubinder_expr as expr;
use cubinder_expr::Format;
use cubinder_expr::{ErrorClass, Expr, ExprError, Function, Kind, Node, Scope, Syntax, TensorKind, Typed};
use cubinder_model::{Guard, Output, Requirement, ShapeLimits, SizeBound};

use super::foreign;
use super::launch;
use super::messages::Messages;
use super::names::{declared_twice, no_names};
use super::origin;
use super::rows::{Row, tensors};
use super::tensor_kinds::kind_of;
use super::usage::{self, Unused, free_names};
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::{FunctionDecl, Located, Manifest, OutputDecl, SizeDecl, StepDecl, Text};
use crate::rules;

/// What an expression must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Expected {
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// An array of integers.
    Ints,
    /// A number, a boolean or an array of them: what a kernel takes by value.
    Argument,
    /// An array of numbers or booleans.
    Elements,
}

/// Where an expression stands: the names it may use and the row it belongs to, by index.
pub(super) struct Place {
    scope: Rc<Scope>,
    row: Option<usize>,
    /// Places of one world know the same names for the same things: the number of a row, none outside of rows.
    world: World,
}

/// The first row with the same types and constants, and what is known beside.
type World = (Option<usize>, Known);

/// What an expression can use beside shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Known {
    /// Nothing.
    Shapes,
    /// The sizes that the kernels find out, as dimensions.
    Sizes,
    /// Addresses.
    Addresses,
}

/// What came of an expression: what it is, and what was said about it.
#[derive(Clone)]
struct Compiled {
    typed: Option<Typed>,
    told: Vec<Diagnostic>,
}

/// Compiles the expressions of one manifest.
pub(super) struct Compiler<'m> {
    pub(super) manifest: &'m Manifest,
    pub(super) source: &'m Arc<Source>,
    functions: Vec<(&'m FunctionDecl, Function)>,
    /// Functions that do not parse or cannot be right: what is wrong with calls of them follows from that.
    broken_functions: BTreeSet<&'m str>,
    /// Those of them that were not looked at: what they call calls a broken one.
    unchecked_functions: BTreeSet<&'m str>,
    /// Names of two things: what is said about expressions with them may follow from that.
    ambiguous: BTreeSet<&'m str>,
    /// What was declared as a name and can be none: what is said about expressions with it follows from that.
    no_names: Vec<&'m str>,
    /// The constants of other variants that a row lacks, each told once.
    missing_constants: BTreeSet<(usize, String)>,
    /// Outputs whose shape is wrong: nothing can be said of what looks at it.
    broken_outputs: BTreeSet<&'m str>,
    /// Outputs in place of what cannot be shared: nothing is known of their memory.
    unshared_outputs: BTreeSet<&'m str>,
    /// Type parameters of which it is not known what they are in each row.
    unclear_types: BTreeSet<String>,
    /// Whether it is known what format each tensor has in each row.
    formats_are_known: bool,
    used: BTreeSet<String>,
    /// Those of the names that guards, launches and functions use.
    used_in_rows: BTreeSet<String>,
    messages: Messages,
    /// The variant of each row.
    variants: Vec<usize>,
    /// The first row with the same types and constants, by row.
    worlds: Vec<usize>,
    scopes: RefCell<HashMap<World, Rc<Scope>>>,
    /// Expressions by place in the manifest: many rows say the same.
    compiled: HashMap<(World, Range<usize>, Expected), Compiled>,
    /// What was said since the last expression began.
    told: Vec<Diagnostic>,
}

/// The fields of a tensor that follow from its format.
const OF_FORMATS: [&str; 3] = ["format", "vector", "padded"];

/// Whether every tensor's format is one, or a parameter of which it is known what it is. A parameter that is unclear may be meant for
/// any tensor.
fn formats_are_known(manifest: &Manifest, unclear: &BTreeSet<String>) -> bool {
    let is_clear = |name: &Located<String>| !unclear.contains(&name.value);
    let parameters = || manifest.formats.iter().map(|decl| &decl.name);
    let is_known = |name: &Located<String>| {
        Format::from_name(&name.value).is_some() || parameters().any(|known| known.value == name.value)
    };
    parameters().all(is_clear) && tensors(manifest).filter_map(|tensor| tensor.format).all(is_known)
}

impl<'m> Compiler<'m> {
    /// Parses the helper functions and checks them as each row sees them.
    pub(super) fn new(
        manifest: &'m Manifest,
        source: &'m Arc<Source>,
        rows: &[Row],
        unclear_types: BTreeSet<String>,
    ) -> Compiler<'m> {
        let mut compiler = Compiler {
            manifest,
            source,
            functions: Vec::new(),
            broken_functions: BTreeSet::new(),
            unchecked_functions: BTreeSet::new(),
            ambiguous: declared_twice(manifest),
            no_names: no_names(manifest),
            missing_constants: BTreeSet::new(),
            broken_outputs: BTreeSet::new(),
            unshared_outputs: BTreeSet::new(),
            formats_are_known: formats_are_known(manifest, &unclear_types),
            unclear_types,
            used: BTreeSet::new(),
            used_in_rows: BTreeSet::new(),
            messages: Messages::default(),
            variants: rows.iter().map(|row| row.variant).collect(),
            worlds: worlds(rows),
            scopes: RefCell::default(),
            compiled: HashMap::new(),
            told: Vec::new(),
        };
        for decl in &manifest.functions {
            match expr::parse(&decl.body.value) {
                Ok(body) => {
                    let params: Vec<String> = decl.params.iter().map(|param| param.value.clone()).collect();
                    compiler.use_names(&body, &params, true);
                    compiler.functions.push((decl, Function { params, body }));
                }
                Err(error) => {
                    compiler.mistake(&decl.body, &error, None);
                    compiler.broken_functions.insert(&decl.name.value);
                }
            }
        }
        let mut sound = BTreeSet::new();
        for (index, row) in rows.iter().enumerate() {
            let world = compiler.worlds.get(index).copied().unwrap_or(index);
            if !sound.contains(&world) && compiler.check_functions(row, index) {
                sound.insert(world);
            }
        }
        compiler
    }

    /// Whether all functions are right in a row.
    fn check_functions(&mut self, row: &Row, index: usize) -> bool {
        // A guard may call it.
        let place = self.with_addresses(row, index);
        let functions = self.functions.clone();
        let (mut mistakes, mut too_large) = (Vec::new(), BTreeSet::new());
        // With mistakes of their own; those that call them; and those that call these, which would come upon each mistake once for every way to it.
        let (mut broken, mut callers, mut unchecked) =
            (self.broken_functions.clone(), BTreeSet::new(), BTreeSet::new());
        let mut is_right = true;
        for (decl, function) in &functions {
            let name = decl.name.value.as_str();
            if calls(function, &callers) || calls(function, &unchecked) {
                unchecked.insert(name);
                continue;
            }
            if calls(function, &broken) {
                callers.insert(name);
            }
            for error in expr::check_function(name, function, &place.scope) {
                is_right = false;
                if error.is_about_size {
                    too_large.insert(name);
                } else if error.function.is_none() {
                    broken.insert(name);
                }
                mistakes.push((*decl, function, error));
            }
        }
        is_right &= callers.is_empty() && unchecked.is_empty();
        // What is wrong with a function by itself is told there, and not again where it is called.
        let is_broken = |function: &String| broken.contains(function.as_str());
        mistakes.retain(|(_, _, error)| !error.function.as_ref().is_some_and(is_broken));
        for (decl, function, error) in &mistakes {
            // What calls a function that is too large is too large itself.
            if !error.is_about_size {
                self.mistake(&decl.body, error, place.row);
            } else if !calls(function, &too_large) {
                self.mistake(&decl.body, error, None);
            }
        }
        // Only now: a mistake in one function says nothing about the next.
        self.broken_functions.extend(broken);
        self.broken_functions.extend(too_large);
        self.broken_functions.extend(callers);
        self.broken_functions.extend(unchecked.iter().copied());
        self.unchecked_functions.extend(unchecked);
        is_right
    }

    /// Where what is the same for all rows stands: it may use that, and the inputs.
    pub(super) fn outside(&self) -> Place {
        let world = (None, Known::Shapes);
        Place { scope: self.scope_of(world, None), row: None, world }
    }

    /// Where the shape of an output stands.
    fn in_shape(&self) -> Place {
        let world = (None, Known::Sizes);
        Place { scope: self.scope_of(world, None), row: None, world }
    }

    /// Where the expressions of a row stand: they may use the row's types and constants and every tensor.
    pub(super) fn in_row(&self, row: &Row, index: usize) -> Place {
        let world = (self.worlds.get(index).copied().or(Some(index)), Known::Shapes);
        Place { scope: self.scope_of(world, Some(row)), row: Some(index), world }
    }

    /// The same for guards, which may ask for addresses too.
    fn with_addresses(&self, row: &Row, index: usize) -> Place {
        let world = (self.worlds.get(index).copied().or(Some(index)), Known::Addresses);
        Place { scope: self.scope_of(world, Some(row)), row: Some(index), world }
    }

    /// The rules about nodes, one for each that is declared, and whether all are right. What stands for a wrong one always holds.
    pub(super) fn require(&mut self) -> (Vec<Requirement>, bool) {
        let manifest = self.manifest;
        let place = self.outside();
        let mut requirements = Vec::new();
        let mut are_right = true;
        for rule in &manifest.plugin.require {
            let (text, message) = (rule.expr.value.clone(), rule.message.clone());
            let mut requirement = Requirement { expr: Expr { nodes: vec![Node::Bool(true)] }, text, message };
            let Some(typed) = self.expression(&rule.expr, "expr", Expected::Bool, &place) else {
                are_right = false;
                requirements.push(requirement);
                continue;
            };
            if let [Node::Bool(holds)] = typed.expr.nodes.as_slice() {
                let diagnostic = if *holds {
                    Diagnostic::warning("this rule always holds")
                        .at(self.span_of(&rule.expr), "always true")
                        .help("take it out, or say what was meant")
                } else {
                    Diagnostic::error("no node can meet this rule")
                        .at(self.span_of(&rule.expr), "always false")
                        .help("correct it, or take it out")
                };
                self.report(diagnostic.code(rules::REQUIRE_IS_CONSTANT), None);
            }
            match typed.expr.nodes.as_slice() {
                [Node::Bool(false)] => are_right = false,
                _ => requirement.expr = typed.expr,
            }
            requirements.push(requirement);
        }
        (requirements, are_right)
    }

    /// The outputs with their shapes, one for each that is declared, and whether all are right. What stands for a wrong shape is
    /// that of a single element, without limits.
    pub(super) fn outputs(&mut self) -> (Vec<Output>, bool) {
        let manifest = self.manifest;
        let place = self.in_shape();
        let mut outputs = Vec::new();
        let mut are_right = true;
        for decl in &manifest.outputs {
            let alias = decl.alias.as_ref().map(|alias| self.shared_input(alias));
            let shape = match alias {
                Some(None) => {
                    self.unshared_outputs.insert(&decl.name.value);
                    None
                }
                Some(Some(_)) | None => self.expression(&decl.shape, "shape", Expected::Ints, &place),
            };
            let (shape, limits) = match shape {
                Some(typed) => (typed.expr, decl.limits.limits.clone()),
                None => {
                    self.broken_outputs.insert(&decl.name.value);
                    (Expr { nodes: vec![Node::Array(Vec::new())] }, ShapeLimits::default())
                }
            };
            let size = decl.size.as_ref().map(|size| self.size(size));
            are_right &= !matches!(size, Some(None));
            let nothing = || SizeBound { upper: launch::constant(0), opt: launch::constant(0) };
            outputs.push(Output {
                name: decl.name.value.clone(),
                shape,
                limits,
                alias: alias.flatten(),
                size: size.map(|size| size.unwrap_or_else(nothing)),
                doc: decl.doc.clone(),
            });
        }
        (outputs, are_right && self.broken_outputs.is_empty())
    }

    /// The input whose memory an output shares, by index; nothing where it is none that can be shared, which was told.
    fn shared_input(&mut self, alias: &Located<String>) -> Option<u32> {
        self.use_name(&alias.value);
        let inputs = &self.manifest.inputs;
        let index =
            inputs.iter().position(|input| input.name.value == alias.value && input.values.is_none())?;
        u32::try_from(index).ok()
    }

    /// What is known of a size beforehand; nothing where that is wrong.
    fn size(&mut self, decl: &SizeDecl) -> Option<SizeBound> {
        let place = self.outside();
        let upper = self.expression(&decl.upper, "upper", Expected::Int, &place);
        let opt = match &decl.opt {
            Some(opt) => self.expression(opt, "opt", Expected::Int, &place),
            None => upper.clone(),
        };
        Some(SizeBound { upper: upper?.expr, opt: opt?.expr })
    }

    /// The guard of a row's variant; nothing where it has none or a wrong one, or where the variant's id is another's too.
    pub(super) fn guard(&mut self, row: &Row, index: usize) -> Option<Guard> {
        let manifest = self.manifest;
        let written = manifest.variants.get(row.variant)?.guard.as_ref();
        let place = self.with_addresses(row, index);
        let guard = match written {
            Some(text) => {
                let typed = self.expression(text, "guard", Expected::Bool, &place)?;
                Some(Guard { expr: typed.expr, text: text.value.clone() })
            }
            None => None,
        };
        let guard = self.with_assumptions(guard, row, index);
        let of_its_id = manifest.variants.iter().filter(|variant| variant.id.value == row.id).count();
        guard.filter(|_| of_its_id == 1)
    }

    /// A guard with what the code of a row was made for. A guard that never holds asks nothing of code.
    fn with_assumptions(&mut self, guard: Option<Guard>, row: &Row, index: usize) -> Option<Guard> {
        let of_code = |step: &StepDecl| step.launch().is_some_and(|launch| launch.is_of_code);
        if super::left_out::never_holds(guard.as_ref()) || !self.manifest.launches.iter().any(of_code) {
            return guard;
        }
        let place = self.in_row(row, index);
        let assumptions = foreign::assumptions(self, row, &place, index);
        let place = self.with_addresses(row, index);
        let mut said = guard.as_ref().map(|guard| foreign::conjuncts(&guard.expr)).unwrap_or_default();
        let mut new: Vec<String> = Vec::new();
        for text in assumptions {
            let typed =
                self.expression(&Text::stands_for(0..0, text.clone()), "guard", Expected::Bool, &place);
            let Some(typed) = typed else { continue };
            if typed.expr.nodes.as_slice() == [Node::Bool(true)] || said.contains(&typed.expr) {
                continue;
            }
            said.push(typed.expr);
            new.push(text);
        }
        if new.is_empty() {
            return guard;
        }
        let written = guard.as_ref().map(|guard| guard.text.as_str());
        let text = foreign::conjoined(written, &new)?;
        let whole = Text::stands_for(0..0, text.clone());
        let typed = self.expression(&whole, "guard", Expected::Bool, &place);
        typed.map(|typed| Guard { expr: typed.expr, text }).or(guard)
    }

    /// Compiles one expression. Nothing where it is wrong, and where it depends on what is: then that was told.
    pub(super) fn expression(
        &mut self,
        text: &Text,
        key: &str,
        expected: Expected,
        place: &Place,
    ) -> Option<Typed> {
        let key_of_it = (place.world, text.range.clone(), expected);
        // What stands nowhere in the manifest has no place of its own.
        let is_placed = !text.range.is_empty();
        if let Some(known) = self.compiled.get(&key_of_it).filter(|_| is_placed).cloned() {
            known.told.into_iter().for_each(|diagnostic| self.report(diagnostic, place.row));
            return known.typed;
        }
        self.told.clear();
        let typed = self.compile(text, key, expected, place);
        let told = std::mem::take(&mut self.told);
        self.compiled.insert(key_of_it, Compiled { typed: typed.clone(), told });
        typed
    }

    fn compile(&mut self, text: &Text, key: &str, expected: Expected, place: &Place) -> Option<Typed> {
        let syntax = match expr::parse(&text.value) {
            Ok(syntax) => syntax,
            Err(error) => {
                self.mistake(text, &error, place.row);
                return None;
            }
        };
        self.use_names(&syntax, &[], place.row.is_some());
        if mentions(&syntax, &mut Vec::new(), &self.unchecked_functions) {
            return None;
        }
        let typed = match expr::compile_syntax(&syntax, &place.scope) {
            Ok(typed) => typed,
            Err(errors) => {
                let ambiguous = self.is_ambiguous(&syntax);
                let follows = |error: &ExprError| {
                    let part = text.value.get(error.span.clone()).unwrap_or_default();
                    ambiguous && (error.class == ErrorClass::WrongKind || self.ambiguous.contains(part))
                };
                let errors: Vec<&ExprError> = errors.iter().filter(|error| !follows(error)).collect();
                for error in errors {
                    let error = match expected {
                        Expected::Argument => self.offer_scratch(text, error.clone()),
                        _ => error.clone(),
                    };
                    self.mistake(text, &error, place.row);
                }
                return None;
            }
        };
        if let Some(diagnostic) = self.misfit(text, key, expected, &typed) {
            if !self.is_ambiguous(&syntax) {
                self.report(diagnostic, place.row);
            }
            return None;
        }
        (!self.is_doubtful(text, &syntax)).then_some(typed)
    }

    /// Whether it is not known what a name is: it is declared twice, its declaration could not be read, or nothing decides it.
    pub(super) fn is_unclear(&self, name: &str) -> bool {
        self.ambiguous.contains(name)
            || self.unclear_types.contains(name)
            || self.unshared_outputs.contains(name)
            || self.manifest.broken.iter().any(|broken| broken == name)
    }

    /// Whether an expression has a name that is declared twice.
    fn is_ambiguous(&self, syntax: &Syntax) -> bool {
        let mut found = false;
        free_names(syntax, &mut Vec::new(), &mut |name| found |= self.ambiguous.contains(name));
        found
    }

    fn scope_of(&self, world: World, row: Option<&Row>) -> Rc<Scope> {
        let mut scopes = self.scopes.borrow_mut();
        let scope = scopes.entry(world).or_insert_with(|| {
            let scope = self.scope(row);
            // Shapes and rules about nodes are the same on every device.
            let scope = if world.0.is_some() { scope } else { scope.without_device() };
            Rc::new(match world.1 {
                Known::Shapes => scope.without_addresses(),
                Known::Sizes => self.with_sizes(scope.without_addresses()),
                Known::Addresses => scope,
            })
        });
        Rc::clone(scope)
    }

    /// The same with the outputs that hold sizes.
    fn with_sizes(&self, scope: Scope) -> Scope {
        let first = u32::try_from(self.manifest.inputs.len()).unwrap_or(u32::MAX);
        let sizes = (first..).zip(&self.manifest.outputs).filter(|(_, decl)| decl.size.is_some());
        let add = |scope: Scope, (index, decl): (u32, &OutputDecl)| {
            scope.tensor_of_kind(&decl.name.value, index, (0, 0), TensorKind::Size)
        };
        sizes.fold(scope, add).with_sizes()
    }

    fn scope(&self, row: Option<&Row>) -> Scope {
        let manifest = self.manifest;
        let mut scope = Scope::new();
        for (index, decl) in (0..).zip(&manifest.attributes) {
            scope = scope.attribute(&decl.name.value, index, decl.ty.kind());
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
        let first = u32::try_from(manifest.inputs.len()).unwrap_or(u32::MAX);
        for (index, decl) in (first..).zip(&manifest.outputs) {
            let ranks = (0, if decl.size.is_some() { 0 } else { super::MAX_RANK });
            scope = scope.tensor_of_kind(&decl.name.value, index, ranks, kind_of(manifest, decl));
        }
        for (name, ty) in &row.types {
            scope = scope.ty(name, *ty);
        }
        scope = scope.formats((0..).zip(row.tensor_formats.iter().copied()));
        // What the row is compiled for takes the place of the attribute.
        row.values().fold(scope, |scope, (name, value)| scope.constant(name, value.clone()))
    }

    /// Adds the constants and functions that decide what an expression comes to.
    pub(super) fn with_values(&self, diagnostic: Diagnostic, text: &Text, row: Option<usize>) -> Diagnostic {
        let origins = origin::of_value(self.manifest, text, self.variant_of(row));
        self.with_origins(diagnostic, origins)
    }

    fn variant_of(&self, row: Option<usize>) -> Option<usize> {
        row.and_then(|row| self.variants.get(row).copied())
    }

    /// Adds a message of a row, or of none.
    pub(super) fn report(&mut self, diagnostic: Diagnostic, row: Option<usize>) {
        self.told.push(diagnostic.clone());
        self.messages.add(diagnostic, row);
    }

    /// The messages so far come from looking at so many rows; later ones may come from fewer.
    pub(super) fn settle(&mut self, rows: usize) {
        self.messages.settle(rows);
    }

    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.source, range)
    }

    pub(super) fn span_of(&self, text: &Text) -> Span {
        self.span(text.range.clone())
    }

    /// Counts a name as used, by a launch.
    pub(super) fn use_name(&mut self, name: &str) {
        self.used.insert(name.to_owned());
        self.used_in_rows.insert(name.to_owned());
    }

    /// Counts the names of an expression as used, but for the parameters of the function that it is the body of.
    fn use_names(&mut self, syntax: &Syntax, params: &[String], in_rows: bool) {
        let mut bound: Vec<&str> = params.iter().map(String::as_str).collect();
        free_names(syntax, &mut bound, &mut |name| {
            self.used.insert(name.to_owned());
            if in_rows {
                self.used_in_rows.insert(name.to_owned());
            }
        });
    }

    /// All messages, those about some rows with the first of these, and what nothing uses. Of the rows so many are not left out.
    pub(super) fn finish(self, rows: &[Row], there: usize) -> (Vec<Diagnostic>, Unused) {
        let unused = usage::unused(self.manifest, self.source, &self.used, &self.used_in_rows);
        let messages = self.messages.finish(there, &|row| rows.get(row).map(Row::describe));
        (messages, unused)
    }
}

/// For each row the first one with the same types and constants.
fn worlds(rows: &[Row]) -> Vec<usize> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let world = |(index, row): (usize, &Row)| {
        let names = format!("{:?} {:?} {:?} {:?}", row.types, row.formats, row.specialized, row.constants);
        *known.entry(names).or_insert(index)
    };
    rows.iter().enumerate().map(world).collect()
}

/// Whether a function calls one of these.
fn calls(function: &Function, names: &BTreeSet<&str>) -> bool {
    mentions(&function.body, &mut function.params.iter().map(String::as_str).collect(), names)
}

/// The same of an expression in which these names are its own.
fn mentions<'s>(syntax: &'s Syntax, bound: &mut Vec<&'s str>, names: &BTreeSet<&str>) -> bool {
    let mut found = false;
    free_names(syntax, bound, &mut |name| found |= names.contains(name));
    found
}

/// Whether a text has a word that is no name, as which it was declared.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
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
