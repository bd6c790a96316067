//! Checks unique names: attributes, tensors, types, constants and functions share a namespace.

use std::collections::{BTreeSet, HashMap};

use cubinder_expr::{is_function_reserved, is_name_reserved};

use super::cpp_names;
use super::declarations::{Declarations, DeclaredName, nearest};
use super::errors::{DeclaredTwice, NameReserved, NameReservedInCpp, TimingTwice, UnknownTimingAttribute};
use crate::diagnostic::Diagnostic;
use crate::manifest::Located;
use crate::manifest::toml_reader::{is_identifier, list};

pub(super) fn check(declared: Declarations<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut first: HashMap<&str, (&'static str, &Located<String>)> = HashMap::new();
    for DeclaredName { kind, name, is_in_header } in declared.names() {
        diagnostics.extend(reserved(declared, kind, name, is_in_header));
        diagnostics.extend(twice(declared, kind, name, &first));
        first.entry(&name.value).or_insert((kind, name));
    }
    // Variants may give one constant different values.
    let mut of_variants = BTreeSet::new();
    for constant in declared.variant_constants() {
        let is_new = of_variants.insert(&constant.name.value);
        diagnostics.extend(reserved(declared, "constant", &constant.name, is_new));
        diagnostics.extend(twice(declared, "constant", &constant.name, &first));
    }
    diagnostics.extend(timing(declared));
    let params = declared.manifest.functions.iter().flat_map(|function| &function.params);
    diagnostics.extend(params.filter_map(|param| reserved(declared, "parameter", param, false)));
    diagnostics
}

fn timing(declared: Declarations<'_>) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    let names = declared.manifest.plugin.timing.iter().flat_map(|timing| &timing.value);
    let attributes = declared.manifest.attributes.iter().map(|decl| &decl.name);
    for (index, located) in names.clone().enumerate() {
        let (name, span) = (located.value.clone(), declared.span(&located.range));
        if let Some(first) = names.clone().take(index).find(|first| first.value == name) {
            diagnostics.push(TimingTwice { name, span, first: declared.span(&first.range) }.into());
        } else if declared.attribute(&name).is_none() && !declared.is_broken(&name) {
            let all: Vec<&str> = attributes.clone().map(|name| name.value.as_str()).collect();
            let known = match all.as_slice() {
                [] => "the manifest has no attributes".to_owned(),
                all => format!("the attributes are {}", list(all)),
            };
            let near = nearest(&name, attributes.clone());
            let first = near.map(|near| declared.span(&near.range));
            let near = near.map(|near| &near.value);
            diagnostics.push(UnknownTimingAttribute { name, span, known, near, first }.into());
        }
    }
    diagnostics
}

pub(super) fn declared_twice(declared: Declarations<'_>) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    let names = declared.names();
    let mut twice: BTreeSet<&str> =
        names.iter().map(|it| it.name.value.as_str()).filter(|name| !seen.insert(*name)).collect();
    let of_variants = declared.variant_constants().map(|decl| decl.name.value.as_str());
    twice.extend(of_variants.filter(|name| seen.contains(name)));
    twice
}

pub(super) fn invalid_names(declared: Declarations<'_>) -> Vec<&str> {
    let names = declared.names().into_iter().map(|it| it.name);
    let all = names.chain(declared.variant_constants().map(|decl| &decl.name));
    let all = all.map(|name| name.value.as_str());
    all.filter(|name| !is_identifier(name) || is_name_reserved(name)).collect()
}

/// An attribute may be called like the function `len`.
fn reserved(
    declared: Declarations<'_>,
    kind: &str,
    name: &Located<String>,
    is_in_header: bool,
) -> Option<Diagnostic> {
    let is_reserved = if kind == "function" { is_function_reserved } else { is_name_reserved };
    let (what, span, name) = (with_article(kind), declared.span(&name.range), name.value.as_str());
    if is_reserved(name) {
        return Some(NameReserved { what, name, span }.into());
    }
    let reason = cpp_names::reserved(name).filter(|_| is_in_header)?;
    Some(NameReservedInCpp { what, name, span, reason }.into())
}

fn twice(
    declared: Declarations<'_>,
    kind: &str,
    name: &Located<String>,
    before: &HashMap<&str, (&'static str, &Located<String>)>,
) -> Option<Diagnostic> {
    let (first_kind, first) = before.get(name.value.as_str())?;
    let (what, first_what) = (with_article(kind), with_article(first_kind));
    let (span, first) = (declared.span(&name.range), declared.span(&first.range));
    Some(DeclaredTwice { name: &name.value, what, span, first_what, first }.into())
}

/// Formats `an input`, `a constant`.
pub fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}
