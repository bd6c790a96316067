//! Applies restrictions: `[[combinations]]`, and variants' `types` and `formats`.

use std::collections::{BTreeSet, HashMap};

use super::declarations::{Declarations, nearest};
use super::errors::{EmptyCombination, NotAnAlternative, UnknownParameter};
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::toml_reader::list;
use crate::manifest::{Alternative, Parameter};

/// Also returns the parameters whose rows are unknown.
pub(super) fn check(declared: Declarations<'_>) -> (Vec<Diagnostic>, BTreeSet<String>) {
    let (mut diagnostics, mut unclear) = (Vec::new(), BTreeSet::new());
    let (variants, combinations) = (&declared.manifest.variants, &declared.manifest.combinations);
    let types = variants.iter().flat_map(|it| &it.types);
    let types = types.chain(combinations.iter().flat_map(|it| &it.types));
    let formats = variants.iter().flat_map(|it| &it.formats);
    let formats = formats.chain(combinations.iter().flat_map(|it| &it.formats));
    check_each(declared, &declared.manifest.types, types, &mut diagnostics, &mut unclear);
    check_each(declared, &declared.manifest.formats, formats, &mut diagnostics, &mut unclear);
    if declared.manifest.broken.is_empty() {
        let all = declared.manifest.combinations.iter();
        let empty = all.filter(|combination| combination.types.is_empty() && combination.formats.is_empty());
        diagnostics.extend(empty.map(|it| EmptyCombination { span: declared.span(&it.range) }.into()));
    }
    (diagnostics, unclear)
}

fn check_each<'m, T: Alternative>(
    declared: Declarations<'m>,
    parameters: &'m [Parameter<T>],
    restrictions: impl Iterator<Item = &'m Parameter<T>>,
    diagnostics: &mut Vec<Diagnostic>,
    unclear: &mut BTreeSet<String>,
) {
    let by_name: HashMap<&str, &Parameter<T>> =
        parameters.iter().rev().map(|parameter| (parameter.name.value.as_str(), parameter)).collect();
    for restriction in restrictions {
        let name = restriction.name.value.as_str();
        let parameter = by_name.get(name).copied();
        let is_unknown = |it: &T| !parameter.is_some_and(|parameter| parameter.alternatives.contains(it));
        let mut unknown = restriction.alternatives.iter().copied().filter(is_unknown).peekable();
        if unknown.peek().is_some() {
            unclear.insert(name.to_owned());
        }
        match parameter {
            Some(parameter) => {
                diagnostics
                    .extend(unknown.map(|it| not_an_alternative(declared, restriction, parameter, it)));
            }
            None if declared.is_broken(name) => {}
            None => diagnostics.push(unknown_parameter(declared, parameters, restriction)),
        }
    }
}

/// Ignores invalid restrictions.
pub(super) fn served<T: Alternative>(
    parameters: &[Parameter<T>],
    restrictions: &[Parameter<T>],
) -> Vec<Parameter<T>> {
    let restricted = |parameter: &Parameter<T>| {
        let mut alternatives = parameter.alternatives.clone();
        alternatives.retain(|it| leaves(restrictions, &parameter.name.value, it));
        match alternatives.is_empty() {
            true => parameter.clone(),
            false => Parameter { alternatives, ..parameter.clone() },
        }
    };
    parameters.iter().map(restricted).collect()
}

pub(super) fn leaves<T: Alternative>(restrictions: &[Parameter<T>], name: &str, alternative: &T) -> bool {
    let restriction = restrictions.iter().find(|it| it.name.value == name);
    restriction.is_none_or(|restriction| restriction.alternatives.contains(alternative))
}

/// Ignores unknown names.
pub(super) fn allows<T: Alternative>(restrictions: &[Parameter<T>], choice: &[(String, T)]) -> bool {
    choice.iter().all(|(name, chosen)| leaves(restrictions, name, chosen))
}

fn unknown_parameter<T: Alternative>(
    declared: Declarations<'_>,
    parameters: &[Parameter<T>],
    restriction: &Parameter<T>,
) -> Diagnostic {
    let (kind, name) = (T::WHAT, restriction.name.value.as_str());
    let names = parameters.iter().map(|parameter| &parameter.name);
    let all: Vec<&str> = names.clone().map(|name| name.value.as_str()).collect();
    let known = match all.as_slice() {
        [] => format!("the manifest has no {kind} parameters"),
        all => format!("the {kind} parameters are {}", list(all)),
    };
    let near = nearest(name, names);
    let first = near.map(|near| declared.span(&near.range));
    let (span, near) = (declared.span(&restriction.name.range), near.map(|near| &near.value));
    UnknownParameter { kind, name, span, known, near, first }.into()
}

fn not_an_alternative<T: Alternative>(
    declared: Declarations<'_>,
    restriction: &Parameter<T>,
    parameter: &Parameter<T>,
    alternative: T,
) -> Diagnostic {
    let (name, word) = (parameter.name.value.as_str(), alternative.word());
    let known: Vec<&str> = parameter.alternatives.iter().map(|it| it.word()).collect();
    let near = suggest(word, known.iter().copied());
    let (span, parameter) = (declared.span(&restriction.range), declared.span(&parameter.range));
    NotAnAlternative { name, word, span, parameter, known: list(&known), near }.into()
}
