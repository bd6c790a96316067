//! Where the names in an expression come from: a mistake at a use is often one in a declaration.
//!
//! Owns finding declarations by name, and the labels that point at them. Never decides what is a mistake.

use std::collections::BTreeSet;
use std::ops::Range;

use cubinder_expr as expr;
use cubinder_expr::{ErrorClass, ExprError};

use super::usage::free_names;
use crate::manifest::{ConstantDecl, FunctionDecl, Manifest, Text};

/// A place in the manifest with a few words.
pub(super) type Origin = (Range<usize>, String);

/// More labels than these explain nothing.
const MOST: usize = 4;

/// The declarations that explain a mistake in `text`, as variant `variant` sees them.
pub(super) fn of_mistake(
    manifest: &Manifest,
    text: &Text,
    error: &ExprError,
    variant: Option<usize>,
) -> Vec<Origin> {
    if error.class == ErrorClass::NoValue {
        return of_value(manifest, text, variant);
    }
    let around = manifest.functions.iter().find(|decl| decl.body.range == text.range);
    let mut origins = Vec::new();
    for name in &error.about {
        if error.class == ErrorClass::BadCall {
            origins.extend(
                function(manifest, name).map(|decl| (decl.params_range.clone(), "its parameters".to_owned())),
            );
            continue;
        }
        let param = around.and_then(|decl| decl.params.iter().find(|param| param.value == *name));
        let declared = param.map(|param| param.range.clone());
        let declared = declared.or_else(|| declaration(manifest, name, variant));
        origins.extend(declared.map(|range| (range, format!("`{name}` is declared here"))));
    }
    if error.about.is_empty() && error.class == ErrorClass::UnknownName {
        let label = |decl: &FunctionDecl| format!("the parameters of `{}`", decl.name.value);
        origins.extend(around.map(|decl| (decl.params_range.clone(), label(decl))));
    }
    if let Some((range, label)) = &error.also {
        origins.push((text.locate(range.clone()), label.clone()));
    }
    origins
}

/// The constants, attributes and functions that decide what an expression comes to.
pub(super) fn of_value(manifest: &Manifest, text: &Text, variant: Option<usize>) -> Vec<Origin> {
    let mut origins = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut texts = vec![(text, Vec::new())];
    while let Some((text, params)) = texts.pop() {
        let Ok(syntax) = expr::parse(&text.value) else { continue };
        let mut names = Vec::new();
        free_names(&syntax, &mut params.clone(), &mut |name| names.push(name.to_owned()));
        for name in names.into_iter().filter(|name| seen.insert(name.clone())) {
            if let Some(decl) = constant(manifest, &name, variant) {
                origins.push((decl.value_range.clone(), format!("`{name}` is {}", decl.value)));
            } else if let (Some(values), Some(_)) = (specialized(manifest, &name), variant) {
                origins.push((values, format!("`{name}` is one of these")));
            } else if let Some(decl) = function(manifest, &name) {
                origins.push((decl.body.range.clone(), format!("what `{name}` is")));
                texts.push((&decl.body, decl.params.iter().map(|param| param.value.as_str()).collect()));
            }
        }
    }
    origins.truncate(MOST);
    origins
}

fn function<'m>(manifest: &'m Manifest, name: &str) -> Option<&'m FunctionDecl> {
    manifest.functions.iter().find(|decl| decl.name.value == name)
}

/// Where the values stand that code is compiled for, of an attribute that is one of them in every row.
fn specialized(manifest: &Manifest, name: &str) -> Option<Range<usize>> {
    let decl = manifest.attributes.iter().find(|decl| decl.name.value == name)?;
    decl.specialize.as_ref().map(|values| values.range.clone())
}

/// A constant as a variant sees it.
fn constant<'m>(manifest: &'m Manifest, name: &str, variant: Option<usize>) -> Option<&'m ConstantDecl> {
    let of_variant = variant.and_then(|variant| manifest.variants.get(variant));
    let mut all =
        manifest.constants.iter().chain(of_variant.into_iter().flat_map(|variant| &variant.constants));
    all.find(|decl| decl.name.value == name)
}

/// Where a name of expressions is declared.
fn declaration(manifest: &Manifest, name: &str, variant: Option<usize>) -> Option<Range<usize>> {
    let names = manifest.attributes.iter().map(|decl| &decl.name);
    let names = names.chain(manifest.inputs.iter().map(|decl| &decl.name));
    let names = names.chain(manifest.outputs.iter().map(|decl| &decl.name));
    let names = names.chain(manifest.types.iter().map(|decl| &decl.name));
    let names = names.chain(manifest.functions.iter().map(|decl| &decl.name));
    let names = names.chain(manifest.scratch.iter().map(|decl| &decl.name));
    let mut names = names.chain(constant(manifest, name, variant).map(|decl| &decl.name));
    names.find(|declared| declared.value == name).map(|declared| declared.range.clone())
}
