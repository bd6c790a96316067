//! Labels declarations of an expression's names, possible causes.

use std::ops::Range;

use cubinder_expr::{ErrorClass, ExprError};

use super::declarations::Declarations;
use crate::manifest::{ConstantDecl, Text};

pub(super) type DeclarationLabel = (Range<usize>, String);

const MAX_LABELS: usize = 4;

pub(super) fn of_error(
    declared: Declarations<'_>,
    text: &Text,
    error: &ExprError,
    variant: Option<usize>,
) -> Vec<DeclarationLabel> {
    if error.class == ErrorClass::NoValue {
        return of_value(declared, text, variant);
    }
    let around = declared.manifest.functions.iter().find(|decl| decl.body.range == text.range);
    let mut labels = Vec::new();
    for name in &error.about {
        if error.class == ErrorClass::BadCall {
            let function = declared.function(name);
            labels.extend(function.map(|decl| (decl.params_range.clone(), "its parameters".to_owned())));
            continue;
        }
        let param = around.and_then(|decl| decl.params.iter().find(|param| param.value == *name));
        let range = param.map(|param| param.range.clone()).or_else(|| declaration(declared, name, variant));
        labels.extend(range.map(|range| (range, format!("`{name}` is declared here"))));
    }
    if let Some(decl) = around.filter(|_| error.about.is_empty() && error.class == ErrorClass::UnknownName) {
        labels.push((decl.params_range.clone(), format!("the parameters of `{}`", decl.name.value)));
    }
    labels.extend(error.also.as_ref().map(|(range, label)| (text.locate(range.clone()), label.clone())));
    labels
}

pub(super) fn of_value(
    declared: Declarations<'_>,
    text: &Text,
    variant: Option<usize>,
) -> Vec<DeclarationLabel> {
    let mut labels = Vec::new();
    declared.reachable_names(text, &mut |name| {
        // Variants with specialized code fix the attribute.
        let specialize = declared.attribute(name).and_then(|decl| decl.specialize.as_ref());
        if let Some(decl) = constant(declared, name, variant) {
            labels.push((decl.value_range.clone(), format!("`{name}` is {}", decl.value)));
        } else if let (Some(values), Some(_)) = (specialize, variant) {
            labels.push((values.range.clone(), format!("`{name}` is one of these")));
        } else if let Some(decl) = declared.function(name) {
            labels.push((decl.body.range.clone(), format!("the body of `{name}`")));
        }
    });
    labels.truncate(MAX_LABELS);
    labels
}

fn constant<'m>(declared: Declarations<'m>, name: &str, variant: Option<usize>) -> Option<&'m ConstantDecl> {
    let manifest = declared.manifest;
    let variant = variant.and_then(|variant| manifest.variants.get(variant));
    let of_variant = variant.into_iter().flat_map(|variant| &variant.constants);
    manifest.constants.iter().chain(of_variant).find(|decl| decl.name.value == name)
}

fn declaration(declared: Declarations<'_>, name: &str, variant: Option<usize>) -> Option<Range<usize>> {
    let is_in_expressions = |kind| !["format parameter", "constant", "table"].contains(&kind);
    let names = declared.names_by_kind().filter(|it| is_in_expressions(it.kind)).map(|it| it.name);
    let mut names = names.chain(constant(declared, name, variant).map(|decl| &decl.name));
    names.find(|declared| declared.value == name).map(|declared| declared.range.clone())
}
