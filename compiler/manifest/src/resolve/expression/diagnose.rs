//! Reports errors in expressions; suppresses consequences.

use cubinder_expr as expr;
use cubinder_expr::{ErrorClass, ExprError, Kind};

use super::{Compiler, Expected, OF_FORMATS};
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::manifest::toml_reader::{is_identifier, list};
use crate::manifest::{ConstantDecl, Text};
use crate::resolve::declaration_labels::{self, DeclarationLabel};
use crate::resolve::declarations::{has_word, tensors};
use crate::resolve::errors::{
    FormatAsValue, NameOutOfPlace, ScratchAsValue, TableAsValue, VariantLacksConstant, WrongKind,
};
use crate::resolve::names::with_article;
use crate::rules;

impl<'m> Compiler<'m> {
    /// Suggests scratch buffers, which must be whole arguments.
    pub(super) fn offer_scratch(&self, text: &Text, error: ExprError) -> ExprError {
        let name = text.value.trim();
        let is_name = text.value.get(error.span.clone()) == Some(name) && is_identifier(name);
        let is_open = error.class == ErrorClass::UnknownName && error.about.is_empty();
        if !is_open || !is_name || self.declared.function(name).is_some() || expr::is_function_reserved(name)
        {
            return error;
        }
        let scratch = &self.declared.manifest.scratch;
        let buffers: Vec<&str> = scratch.iter().map(|decl| decl.name.value.as_str()).collect();
        let (help, about) = match suggest(name, buffers.iter().copied()) {
            Some(near) => (Some(format!("did you mean `{near}`?")), vec![near.to_owned()]),
            None if buffers.is_empty() => return error,
            None => {
                let add = |help| format!("{help}; the scratch buffers are {}", list(&buffers));
                (error.help.map(add), error.about)
            }
        };
        ExprError { help, about, ..error }
    }

    pub(super) fn is_doubtful(&self, text: &Text) -> bool {
        let reads_format = |text: &Text| OF_FORMATS.iter().any(|field| has_word(&text.value, field));
        let mut is_doubtful = !self.formats_are_known && reads_format(text);
        self.declared.reachable_names(text, &mut |name| {
            let function = self.declared.function(name).filter(|_| !self.formats_are_known);
            is_doubtful |= self.is_unclear(name)
                || self.broken_outputs.contains(name)
                || function.is_some_and(|decl| reads_format(&decl.body));
        });
        is_doubtful
    }

    pub(super) fn wrong_kind(&self, text: &Text, key: &str, expected: Expected, kind: &Kind) -> Diagnostic {
        let advice = match (expected, kind) {
            (Expected::Int, Kind::Float) if !TENSORRT_COMPUTES.contains(&key) => {
                Some("divide integers with `//` or `ceil_div`, or use `int(...)`")
            }
            (Expected::Int, Kind::Float) => Some(DIVIDE_INTEGERS),
            (Expected::Ints, Kind::Array(item)) if **item == Kind::Float => Some(DIVIDE_INTEGERS),
            (Expected::Ints, Kind::Int) => Some("write it in square brackets: `[...]`"),
            _ => None,
        };
        let (expected, found) = (expected.describe(), with_article(&kind.to_string()));
        WrongKind { key, expected, span: self.span(&text.range), found, advice }.into()
    }

    /// Skips names of invalid declarations.
    pub(super) fn report_error(&mut self, text: &Text, error: &ExprError, row: Option<usize>) {
        let part = text.value.get(error.span.clone()).unwrap_or_default();
        let is_broken = |function: &str| self.broken_functions.contains(function);
        if self.declared.is_broken(part)
            || is_broken(part)
            || error.function.as_deref().is_some_and(is_broken)
            || self.invalid_names.iter().any(|name| has_word(&text.value, name))
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
        let diagnostic = match missing {
            Some((row, declared)) => self.lacks_constant(text, error, row, declared),
            None => self.diagnostic(text, error, part, row),
        };
        let labels = declaration_labels::of_error(self.declared, text, error, self.variant_of(row));
        self.report(self.with_labels(diagnostic, labels), row);
    }

    fn lacks_constant(
        &self,
        text: &Text,
        error: &ExprError,
        row: usize,
        declared: &ConstantDecl,
    ) -> Diagnostic {
        let variants = &self.declared.manifest.variants;
        let variant = self.variant_of(Some(row)).and_then(|variant| variants.get(variant));
        let error = VariantLacksConstant {
            message: &error.message,
            label: &error.label,
            span: self.span(&text.locate(error.span.clone())),
            name: &declared.name.value,
            value: &declared.value,
            declared: self.span(&declared.name.range),
            variant: variant.map(|variant| self.span(&variant.range)),
        };
        error.into()
    }

    fn diagnostic(&self, text: &Text, error: &ExprError, name: &str, row: Option<usize>) -> Diagnostic {
        let manifest = self.declared.manifest;
        let (message, label) = (error.message.as_str(), error.label.as_str());
        let span = self.span(&text.locate(error.span.clone()));
        let is_unknown = error.class == ErrorClass::UnknownName;
        if let Some(reason) = self.out_of_place(name).filter(|_| is_unknown && row.is_none()) {
            let sized = Some(name).filter(|_| self.is_meant_as_size(text, name));
            return NameOutOfPlace { name, label, span, reason, sized }.into();
        }
        if is_unknown && row.is_some() && manifest.formats.iter().any(|format| format.name.value == name) {
            let has_it = |format: &String| format == name;
            let tensor = tensors(manifest).find(|it| it.format.is_some_and(|format| has_it(&format.value)));
            let tensor = tensor.map_or("x", |tensor| tensor.name.value.as_str());
            return FormatAsValue { name, span, tensor }.into();
        }
        if manifest.tables.iter().any(|decl| decl.name.value == name) {
            return TableAsValue { message, label, span, name }.into();
        }
        if manifest.scratch.iter().any(|decl| decl.name.value == name) {
            return ScratchAsValue { message, label, span, name }.into();
        }
        let diagnostic = Diagnostic::error(message).code(code_of(error)).at(span, label);
        Diagnostic { help: error.help.clone(), ..diagnostic }
    }

    fn constant_of_another_variant(&self, name: &str, row: usize) -> Option<&'m ConstantDecl> {
        let variant = self.variant_of(Some(row))?;
        let variants = self.declared.manifest.variants.iter().enumerate();
        let others = variants.filter(|(index, _)| *index != variant);
        others.flat_map(|(_, other)| &other.constants).find(|decl| decl.name.value == name)
    }

    fn is_meant_as_size(&self, text: &Text, name: &str) -> bool {
        let outputs = &self.declared.manifest.outputs;
        outputs.iter().any(|output| output.shape.range == text.range)
            && outputs.iter().find(|it| it.name.value == name && it.size.is_none()).is_some_and(|used| {
                let is_number = used.shape.value.split_whitespace().collect::<String>() == "[]";
                is_number && matches!(used.ty.value.as_str(), "i32" | "i64")
            })
    }

    fn out_of_place(&self, name: &str) -> Option<&'static str> {
        let manifest = self.declared.manifest;
        if manifest.outputs.iter().any(|output| output.name.value == name) {
            return Some("an output: only guards and launches can use outputs");
        }
        if manifest.types.iter().any(|ty| ty.name.value == name) {
            return Some("a type parameter: only guards and launches can use them");
        }
        if manifest.formats.iter().any(|format| format.name.value == name) {
            return Some("a format parameter: only guards and launches can use formats");
        }
        self.declared.variant_constants().any(|constant| constant.name.value == name).then_some(
            "a constant of variants: only guards and launches can use it, because all variants compute one operator",
        )
    }

    pub(super) fn with_labels(&self, diagnostic: Diagnostic, labels: Vec<DeclarationLabel>) -> Diagnostic {
        let add = |diagnostic: Diagnostic, (range, label)| diagnostic.related(self.span(&range), label);
        labels.into_iter().fold(diagnostic, add)
    }
}

/// TensorRT has no floats for these.
const TENSORRT_COMPUTES: [&str; 3] = ["shape", "upper", "opt"];

const DIVIDE_INTEGERS: &str = "divide integers with `//` or `ceil_div`";

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
