//! Which alternatives of the type and format parameters there are: `[[combinations]]`, and `types` and `formats` of `[[variants]]`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::manifest::form::list;
use crate::manifest::{Alternative, CombinationDecl, Manifest, Parameter, VariantDecl};
use crate::rules;

/// Reports restrictions that name nothing of `[types]` or `[formats]`, and combinations of nothing.
pub(super) fn check(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let types = manifest.variants.iter().flat_map(|variant| &variant.types);
    let types = types.chain(manifest.combinations.iter().flat_map(|combination| &combination.types));
    let formats = manifest.variants.iter().flat_map(|variant| &variant.formats);
    let formats = formats.chain(manifest.combinations.iter().flat_map(|combination| &combination.formats));
    let mut diagnostics = known(types, &manifest.types, manifest, source);
    diagnostics.extend(known(formats, &manifest.formats, manifest, source));
    if manifest.broken.is_empty() {
        diagnostics.extend(manifest.combinations.iter().filter_map(|combination| empty(combination, source)));
    }
    diagnostics
}

fn empty(combination: &CombinationDecl, source: &Arc<Source>) -> Option<Diagnostic> {
    let is_empty = combination.types.is_empty() && combination.formats.is_empty();
    is_empty.then(|| {
        Diagnostic::error("a combination must name types or formats")
            .code(rules::WRONG_VALUE)
            .at(Span::new(source, combination.range.clone()), "this one allows everything")
            .help("write `types = { T = [\"f32\"] }`, or leave the table out")
    })
}

fn known<'m, T: Alternative>(
    restrictions: impl Iterator<Item = &'m Parameter<T>>,
    parameters: &[Parameter<T>],
    manifest: &Manifest,
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let declared = by_name(parameters);
    for restriction in restrictions {
        let name = restriction.name.value.as_str();
        match declared.get(name) {
            Some(parameter) => diagnostics.extend(alternatives(restriction, parameter, source)),
            None if manifest.broken.iter().any(|broken| broken == name) => {}
            None => diagnostics.push(unknown(restriction, parameters, source)),
        }
    }
    diagnostics
}

/// The parameters with the alternatives that `restrictions` leave. One that is wrong does not count.
pub(super) fn served<T: Alternative>(
    parameters: &[Parameter<T>],
    restrictions: &[Parameter<T>],
) -> Vec<Parameter<T>> {
    let restricted = |parameter: &Parameter<T>| {
        let alternatives: Vec<T> = parameter
            .alternatives
            .iter()
            .copied()
            .filter(|it| leaves(restrictions, parameter, *it))
            .collect();
        match alternatives.is_empty() {
            true => parameter.clone(),
            false => Parameter { alternatives, ..parameter.clone() },
        }
    };
    parameters.iter().map(restricted).collect()
}

/// Whether `restrictions` leave a parameter this alternative.
fn leaves<T: Alternative>(restrictions: &[Parameter<T>], parameter: &Parameter<T>, alternative: T) -> bool {
    let restriction = restrictions.iter().find(|it| it.name.value == parameter.name.value);
    restriction.is_none_or(|restriction| restriction.alternatives.contains(&alternative))
}

/// Whether a combination has such a choice: a name and what it stands for, for each parameter. What it says of names that there are
/// not does not count.
pub(super) fn allows<T: Alternative>(restrictions: &[Parameter<T>], choice: &[(String, T)]) -> bool {
    choice.iter().all(|(name, chosen)| {
        let restriction = restrictions.iter().find(|it| it.name.value == *name);
        restriction.is_none_or(|restriction| restriction.alternatives.contains(chosen))
    })
}

/// The parameters with restrictions that name other alternatives: which rows are meant is not known.
pub(super) fn unclear(manifest: &Manifest) -> Vec<String> {
    let (types, formats) = (by_name(&manifest.types), by_name(&manifest.formats));
    let of_variants = |variant: &VariantDecl| {
        let mut names = wrong(&variant.types, &types);
        names.extend(wrong(&variant.formats, &formats));
        names
    };
    let of_combinations = |combination: &CombinationDecl| {
        let mut names = wrong(&combination.types, &types);
        names.extend(wrong(&combination.formats, &formats));
        names
    };
    let names = manifest.variants.iter().flat_map(of_variants);
    names.chain(manifest.combinations.iter().flat_map(of_combinations)).collect()
}

/// The parameters by name; of several with one name the first.
fn by_name<T>(parameters: &[Parameter<T>]) -> HashMap<&str, &Parameter<T>> {
    parameters.iter().rev().map(|parameter| (parameter.name.value.as_str(), parameter)).collect()
}

fn wrong<T: Alternative>(
    restrictions: &[Parameter<T>],
    parameters: &HashMap<&str, &Parameter<T>>,
) -> Vec<String> {
    let is_wrong = |restriction: &&Parameter<T>| {
        let parameter = parameters.get(restriction.name.value.as_str());
        let has = |it: &T| parameter.is_some_and(|parameter| parameter.alternatives.contains(it));
        !restriction.alternatives.iter().all(has)
    };
    restrictions.iter().filter(is_wrong).map(|restriction| restriction.name.value.clone()).collect()
}

fn unknown<T: Alternative>(
    restriction: &Parameter<T>,
    parameters: &[Parameter<T>],
    source: &Arc<Source>,
) -> Diagnostic {
    let (what, name) = (T::WHAT, restriction.name.value.as_str());
    let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name.value.as_str()).collect();
    let diagnostic = Diagnostic::error(format!("unknown {what} parameter `{name}`"))
        .code(rules::UNKNOWN_NAME)
        .at(Span::new(source, restriction.name.range.clone()), format!("`[{what}s]` does not declare it"));
    let diagnostic = match known.as_slice() {
        [] => diagnostic.note(format!("the manifest has no {what} parameters")),
        known => diagnostic.note(format!("the {what} parameters are {}", list(known))),
    };
    match suggest(name, known.iter().copied()) {
        Some(near) => {
            let declared = parameters.iter().find(|parameter| parameter.name.value == near);
            let diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            declared.into_iter().fold(diagnostic, |diagnostic, parameter| {
                diagnostic.related(Span::new(source, parameter.name.range.clone()), "declared here")
            })
        }
        None => diagnostic,
    }
}

/// Every alternative of a restriction that its parameter does not have.
fn alternatives<T: Alternative>(
    restriction: &Parameter<T>,
    parameter: &Parameter<T>,
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    let name = parameter.name.value.as_str();
    let known: Vec<&str> = parameter.alternatives.iter().map(|it| it.word()).collect();
    let wrong = restriction.alternatives.iter().filter(|it| !parameter.alternatives.contains(it));
    let message = |it: &T| {
        let it = it.word();
        let diagnostic = Diagnostic::error(format!("`{name}` cannot be `{it}`"))
            .code(rules::UNKNOWN_TYPE)
            .at(Span::new(source, restriction.range.clone()), format!("this lists `{it}`"))
            .related(Span::new(source, parameter.range.clone()), format!("`{name}` can be {}", list(&known)));
        match suggest(it, known.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("add `{it}` to the alternatives of `{name}`, or leave it out")),
        }
    };
    wrong.map(message).collect()
}
