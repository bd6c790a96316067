//! Which alternatives of the type parameters a variant serves: `types` of `[[variants]]`.

use std::sync::Arc;

use cubinder_bundle::DataType;

use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::manifest::form::list;
use crate::manifest::{Manifest, TypeDecl, VariantDecl};
use crate::rules;

/// Reports restrictions that name nothing of `[types]`, and alternatives that no variant is left for.
pub(super) fn check(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for restriction in manifest.variants.iter().flat_map(|variant| &variant.types) {
        let name = restriction.name.value.as_str();
        match manifest.types.iter().find(|parameter| parameter.name.value == name) {
            Some(parameter) => diagnostics.extend(alternatives(restriction, parameter, source)),
            None if manifest.broken.iter().any(|broken| broken == name) => {}
            None => diagnostics.push(unknown(restriction, manifest, source)),
        }
    }
    if diagnostics.is_empty() {
        diagnostics.extend(unserved(manifest, source));
    }
    diagnostics
}

/// The type parameters with the alternatives that a variant serves. Where the restriction is wrong it does not count.
pub(super) fn served(manifest: &Manifest, variant: &VariantDecl) -> Vec<TypeDecl> {
    let restricted = |parameter: &TypeDecl| {
        let restriction = variant.types.iter().find(|ty| ty.name.value == parameter.name.value);
        let is_served =
            |ty: &DataType| restriction.is_none_or(|restriction| restriction.alternatives.contains(ty));
        let alternatives: Vec<DataType> = parameter.alternatives.iter().copied().filter(is_served).collect();
        match alternatives.is_empty() {
            true => parameter.clone(),
            false => TypeDecl { alternatives, ..parameter.clone() },
        }
    };
    manifest.types.iter().map(restricted).collect()
}

/// The type parameters with restrictions that name other types: which rows are meant is not known.
pub(super) fn unclear(manifest: &Manifest) -> impl Iterator<Item = String> {
    let restrictions = manifest.variants.iter().flat_map(|variant| &variant.types);
    let is_wrong = |restriction: &&TypeDecl| {
        let parameter = manifest.types.iter().find(|ty| ty.name.value == restriction.name.value);
        let has = |ty: &DataType| parameter.is_some_and(|parameter| parameter.alternatives.contains(ty));
        !restriction.alternatives.iter().all(has)
    };
    restrictions.filter(is_wrong).map(|restriction| restriction.name.value.clone())
}

fn unknown(restriction: &TypeDecl, manifest: &Manifest, source: &Arc<Source>) -> Diagnostic {
    let name = restriction.name.value.as_str();
    let known: Vec<&str> = manifest.types.iter().map(|parameter| parameter.name.value.as_str()).collect();
    let diagnostic = Diagnostic::error(format!("unknown type parameter `{name}`"))
        .code(rules::UNKNOWN_NAME)
        .at(Span::new(source, restriction.name.range.clone()), "`[types]` does not declare it");
    let diagnostic = match known.as_slice() {
        [] => diagnostic.note("the manifest has no type parameters"),
        known => diagnostic.note(format!("the type parameters are {}", list(known))),
    };
    match suggest(name, known.iter().copied()) {
        Some(near) => {
            let declared = manifest.types.iter().find(|parameter| parameter.name.value == near);
            let diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            declared.into_iter().fold(diagnostic, |diagnostic, parameter| {
                diagnostic.related(Span::new(source, parameter.name.range.clone()), "declared here")
            })
        }
        None => diagnostic,
    }
}

/// Every type of a restriction that its parameter does not have.
fn alternatives(restriction: &TypeDecl, parameter: &TypeDecl, source: &Arc<Source>) -> Vec<Diagnostic> {
    let name = parameter.name.value.as_str();
    let known: Vec<&str> = parameter.alternatives.iter().map(|ty| ty.name()).collect();
    let wrong = restriction.alternatives.iter().filter(|ty| !parameter.alternatives.contains(ty));
    let message = |ty: &DataType| {
        let ty = ty.name();
        let diagnostic = Diagnostic::error(format!("`{name}` cannot be `{ty}`"))
            .code(rules::UNKNOWN_TYPE)
            .at(Span::new(source, restriction.range.clone()), format!("this lists `{ty}`"))
            .related(Span::new(source, parameter.range.clone()), format!("`{name}` can be {}", list(&known)));
        match suggest(ty, known.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("add `{ty}` to the alternatives of `{name}`, or leave it out")),
        }
    };
    wrong.map(message).collect()
}

/// Alternatives that every variant leaves out: no node can have them.
fn unserved(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let tables: Vec<Vec<TypeDecl>> =
        manifest.variants.iter().map(|variant| served(manifest, variant)).collect();
    for (index, parameter) in manifest.types.iter().enumerate() {
        let name = parameter.name.value.as_str();
        let is_served = |ty: &DataType| {
            tables.iter().filter_map(|types| types.get(index)).any(|types| types.alternatives.contains(ty))
        };
        for ty in parameter.alternatives.iter().filter(|ty| !is_served(ty)) {
            diagnostics.push(
                Diagnostic::warning(format!("no variant serves `{name}` = `{}`", ty.name()))
                    .code(rules::UNUSED)
                    .at(Span::new(source, parameter.name.range.clone()), "declared here")
                    .help("leave the alternative out, or add it to the `types` of a variant"),
            );
        }
    }
    diagnostics
}
