//! What is said about an expression that is wrong, or is not what its place needs.
//!
//! Owns the words, the rule and the places of such a mistake, and when nothing is said because it follows from one that was told.

use std::collections::BTreeSet;

use cubinder_expr as expr;
use cubinder_expr::{ErrorClass, ExprError, Kind, Syntax, Typed};

use super::{Compiler, Expected, OF_FORMATS, has_word};
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::manifest::form::{is_identifier, list};
use crate::manifest::{ConstantDecl, Text};
use crate::resolve::names::with_article;
use crate::resolve::origin;
use crate::resolve::rows::tensors;
use crate::resolve::usage::free_names;
use crate::rules;

impl<'m> Compiler<'m> {
    /// An argument that is one unknown name may be meant to be a scratch buffer, which no larger expression can have.
    pub(super) fn offer_scratch(&self, text: &Text, error: ExprError) -> ExprError {
        let (name, manifest) = (text.value.trim(), self.manifest);
        let is_function = manifest.functions.iter().any(|function| function.name.value == name);
        let is_name = text.value.get(error.span.clone()) == Some(name) && is_identifier(name);
        let is_open = error.class == ErrorClass::UnknownName && error.about.is_empty();
        if !is_open || !is_name || is_function || expr::is_function_reserved(name) {
            return error;
        }
        let buffers: Vec<&str> = manifest.scratch.iter().map(|decl| decl.name.value.as_str()).collect();
        match suggest(name, buffers.iter().copied()) {
            Some(near) => {
                let help = Some(format!("did you mean `{near}`?"));
                ExprError { help, about: vec![near.to_owned()], ..error }
            }
            None if buffers.is_empty() => error,
            None => {
                let help =
                    error.help.map(|help| format!("{help}; the scratch buffers are {}", list(&buffers)));
                ExprError { help, ..error }
            }
        }
    }

    /// Whether what an expression comes to depends on a mistake elsewhere; what the functions that it calls come to counts as well.
    pub(super) fn is_doubtful(&self, text: &Text, syntax: &Syntax) -> bool {
        let mut called = BTreeSet::new();
        let mut left = vec![(text, syntax, Vec::new())];
        while let Some((text, syntax, mut params)) = left.pop() {
            let mut names = Vec::new();
            free_names(syntax, &mut params, &mut |name| names.push(name.to_owned()));
            let is_doubtful =
                |name: &String| self.is_unclear(name) || self.broken_outputs.contains(name.as_str());
            let reads_format = || OF_FORMATS.iter().any(|field| has_word(&text.value, field));
            if names.iter().any(is_doubtful) || !self.formats_are_known && reads_format() {
                return true;
            }
            for name in names {
                let function = self.functions.iter().find(|(decl, _)| decl.name.value == name);
                if let Some((decl, function)) = function
                    && called.insert(name)
                {
                    left.push((
                        &decl.body,
                        &function.body,
                        function.params.iter().map(String::as_str).collect(),
                    ));
                }
            }
        }
        false
    }

    /// What is wrong with an expression that is right by itself, in its place.
    pub(super) fn misfit(
        &self,
        text: &Text,
        key: &str,
        expected: Expected,
        typed: &Typed,
    ) -> Option<Diagnostic> {
        if !expected.admits(&typed.kind) {
            let diagnostic = Diagnostic::error(format!("`{key}` must be {}", expected.describe()))
                .code(rules::WRONG_KIND)
                .at(self.span_of(text), format!("this is {}", with_article(&typed.kind.to_string())));
            return Some(match (expected, &typed.kind) {
                (Expected::Int, Kind::Float) if TENSORRT_COMPUTES.contains(&key) => {
                    diagnostic.help(DIVIDE_INTEGERS)
                }
                (Expected::Int, Kind::Float) => diagnostic.help(format!("{DIVIDE_INTEGERS}, or `int(...)`")),
                (Expected::Ints, Kind::Array(item)) if **item == Kind::Float => {
                    diagnostic.help(DIVIDE_INTEGERS)
                }
                (Expected::Ints, Kind::Int) => diagnostic.help("write it in square brackets: `[...]`"),
                _ => diagnostic,
            });
        }
        None
    }

    /// Reports a mistake inside an expression, unless the name it is about could not be read: that was reported.
    pub(super) fn mistake(&mut self, text: &Text, error: &ExprError, row: Option<usize>) {
        let part = text.value.get(error.span.clone()).unwrap_or_default();
        let is_broken = |function: &str| self.broken_functions.contains(function);
        if self.manifest.broken.iter().any(|broken| broken == part)
            || is_broken(part)
            || error.function.as_deref().is_some_and(is_broken)
            || self.no_names.iter().any(|name| has_word(&text.value, name))
        {
            return;
        }
        let missing = row.filter(|_| error.class == ErrorClass::UnknownName).and_then(|row| {
            let declared = self.constant_of_another_variant(part, row)?;
            Some((row, declared))
        });
        if missing.is_some_and(|(row, _)| !self.missing_constants.insert((row, part.to_owned()))) {
            return;
        }
        let span = self.span(text.locate(error.span.clone()));
        let mut diagnostic =
            Diagnostic::error(error.message.clone()).code(code_of(error)).at(span, error.label.clone());
        if let Some(help) = &error.help {
            diagnostic = diagnostic.help(help.clone());
        }
        let is_unknown = row.is_none() && error.class == ErrorClass::UnknownName;
        if let Some(note) = is_unknown.then(|| self.out_of_place(part)).flatten() {
            // Other names are not what was meant.
            diagnostic = Diagnostic {
                message: format!("`{part}` cannot be used here"),
                help: self.as_size(text, part),
                ..diagnostic.code(rules::OUT_OF_PLACE).note(note)
            };
        }
        let format = self.manifest.formats.iter().find(|format| format.name.value == part);
        if row.is_some() && error.class == ErrorClass::UnknownName && format.is_some() {
            let tensor = tensors(self.manifest)
                .find(|tensor| tensor.format.is_some_and(|format| format.value == part))
                .map_or("x", |tensor| tensor.name.value.as_str());
            diagnostic = Diagnostic::error(format!("`{part}` is a format parameter"))
                .code(rules::WRONG_KIND)
                .at(self.span(text.locate(error.span.clone())), "not a value")
                .help(format!(
                    "the format of a tensor is `{tensor}.format`, a string: `{tensor}.format == 'linear'`"
                ));
        }
        if self.manifest.tables.iter().any(|decl| decl.name.value == part) {
            let note =
                format!("`{part}` is a table: kernels read it as `manifest::{part}`, expressions cannot");
            diagnostic = Diagnostic { help: None, ..diagnostic.code(rules::OUT_OF_PLACE).note(note) };
        }
        if self.manifest.scratch.iter().any(|decl| decl.name.value == part) {
            let note = format!(
                "`{part}` is a scratch buffer: an argument can pass it as it is, and a `memset` fill it"
            );
            diagnostic = Diagnostic { help: None, ..diagnostic.code(rules::OUT_OF_PLACE).note(note) };
        }
        if let Some((row, declared)) = missing {
            let variant = self.variant_of(Some(row)).and_then(|variant| self.manifest.variants.get(variant));
            let span = self.span(declared.name.range.clone());
            diagnostic = diagnostic.related(span, "another variant has it").help(format!(
                "give every variant this constant, or declare it in `[constants]`: `{part} = {}`",
                declared.value
            ));
            if let Some(variant) = variant {
                diagnostic = diagnostic.related(self.span(variant.range.clone()), "this variant has not");
            }
        }
        let origins = origin::of_mistake(self.manifest, text, error, self.variant_of(row));
        diagnostic = self.with_origins(diagnostic, origins);
        self.report(diagnostic, row);
    }

    /// A constant that the row's variant lacks and another one has.
    fn constant_of_another_variant(&self, name: &str, row: usize) -> Option<&'m ConstantDecl> {
        let variant = self.variant_of(Some(row))?;
        let others = self.manifest.variants.iter().enumerate().filter(|(index, _)| *index != variant);
        others.flat_map(|(_, other)| &other.constants).find(|decl| decl.name.value == name)
    }

    /// How an output without dimensions becomes a size, where a shape uses it as one.
    fn as_size(&self, text: &Text, name: &str) -> Option<String> {
        let outputs = &self.manifest.outputs;
        let is_of_shape = outputs.iter().any(|output| output.shape.range == text.range);
        let used = outputs.iter().find(|output| output.name.value == name && output.size.is_none())?;
        let is_number = used.shape.value.split_whitespace().collect::<String>() == "[]";
        let is_integer = matches!(used.ty.value.as_str(), "i32" | "i64");
        (is_of_shape && is_number && is_integer).then(|| {
            format!(
                "where the kernels write it, say `size = {{ upper = \"...\" }}` of `{name}` in the place of its `shape`, with the most that it can be"
            )
        })
    }

    /// Why a name that the manifest declares is unknown to an expression that belongs to no row.
    fn out_of_place(&self, name: &str) -> Option<String> {
        let manifest = self.manifest;
        if manifest.outputs.iter().any(|output| output.name.value == name) {
            return Some(format!("`{name}` is an output: only guards and launches can use outputs"));
        }
        if manifest.types.iter().any(|ty| ty.name.value == name) {
            return Some(format!("`{name}` is a type parameter: only guards and launches can use them"));
        }
        if manifest.formats.iter().any(|format| format.name.value == name) {
            return Some(format!(
                "`{name}` is a format parameter: only guards and launches can look at formats"
            ));
        }
        let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
        let is_constant = of_variants.into_iter().any(|constant| constant.name.value == name);
        is_constant.then(|| {
            format!(
                "`{name}` is a constant of the variants: all of them compute one operator, so only guards and launches can use it"
            )
        })
    }

    pub(super) fn with_origins(&self, diagnostic: Diagnostic, origins: Vec<origin::Origin>) -> Diagnostic {
        let with = |diagnostic: Diagnostic, (range, label)| diagnostic.related(self.span(range), label);
        origins.into_iter().fold(diagnostic, with)
    }
}

/// The keys whose expressions TensorRT computes, which has no floats for them.
const TENSORRT_COMPUTES: [&str; 3] = ["shape", "upper", "opt"];

/// What helps where a float stands in the place of an integer.
const DIVIDE_INTEGERS: &str = "use `//` or `ceil_div` where integers are divided";

/// The rule that a mistake in an expression breaks.
const fn code_of(error: &ExprError) -> Code {
    match error.class {
        ErrorClass::UnknownName => rules::UNKNOWN_NAME,
        ErrorClass::Syntax => rules::NOT_AN_EXPRESSION,
        ErrorClass::WrongKind => rules::WRONG_KIND,
        ErrorClass::NoValue => rules::NO_VALUE,
        ErrorClass::OutOfPlace => rules::OUT_OF_PLACE,
        ErrorClass::BadCall => rules::BAD_CALL,
    }
}
