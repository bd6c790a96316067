//! One name, one thing: attributes, tensors, types, constants and functions share the names of expressions.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cubinder_expr::{is_function_reserved, is_name_reserved};

use super::cpp_names;
use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::manifest::form::{is_identifier, list};
use crate::manifest::{Located, Manifest};
use crate::rules;

/// Reports names that are declared twice or that the expression language or C++ keeps for itself.
pub(super) fn check(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let shared = declared(manifest);
    let mut first: HashMap<&str, &Declared<'_>> = HashMap::new();
    let specialized = manifest.attributes.iter().filter(|decl| decl.specialize.is_some());
    let specialized: BTreeSet<usize> = specialized.map(|decl| decl.name.range.start).collect();
    for declared in &shared {
        let (what, name) = declared;
        diagnostics.extend(reserved(what, name, source));
        if ["constant", "type parameter", "format parameter", "table"].contains(what) {
            diagnostics.extend(reserved_in_cpp(what, name, source));
        }
        if specialized.contains(&name.range.start) {
            diagnostics.extend(reserved_in_cpp(what, name, source));
        }
        diagnostics.extend(twice(name, what, &first, source));
        first.entry(&name.value).or_insert(declared);
    }
    let mut of_variants = BTreeSet::new();
    // The constants of two variants are two values of one thing, so they are compared with what is shared only.
    for variant in &manifest.variants {
        for constant in &variant.constants {
            diagnostics.extend(reserved("constant", &constant.name, source));
            // One for each variant would say one thing over and over.
            if of_variants.insert(&constant.name.value) {
                diagnostics.extend(reserved_in_cpp("constant", &constant.name, source));
            }
            diagnostics.extend(twice(&constant.name, "constant", &first, source));
        }
    }
    diagnostics.extend(timing(manifest, source));
    for function in &manifest.functions {
        for param in &function.params {
            diagnostics.extend(reserved("parameter", param, source));
        }
    }
    diagnostics
}

/// What `timing` names must be attributes, each once.
fn timing(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let names = manifest.plugin.timing.as_ref().map_or(&[][..], |timing| timing.value.as_slice());
    let known: Vec<&str> = manifest.attributes.iter().map(|decl| decl.name.value.as_str()).collect();
    for (index, name) in names.iter().enumerate() {
        let span = Span::new(source, name.range.clone());
        if let Some(first) = names.iter().take(index).find(|first| first.value == name.value) {
            let diagnostic = Diagnostic::error(format!("`timing` names `{}` twice", name.value));
            diagnostics.push(
                diagnostic
                    .code(rules::DECLARED_TWICE)
                    .at(span, "the second time")
                    .related(Span::new(source, first.range.clone()), "the first time"),
            );
        } else if !known.contains(&name.value.as_str()) && !manifest.broken.contains(&name.value) {
            let diagnostic = Diagnostic::error(format!("there is no attribute `{}`", name.value))
                .code(rules::UNKNOWN_NAME)
                .at(span, "`timing` names attributes");
            let diagnostic = match known.as_slice() {
                [] => diagnostic.note("the manifest has no attributes"),
                known => diagnostic.note(format!("the attributes are {}", list(known))),
            };
            diagnostics.push(match suggest(&name.value, known.iter().copied()) {
                Some(near) => {
                    let diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                    let declared = manifest.attributes.iter().find(|decl| decl.name.value == near);
                    declared.into_iter().fold(diagnostic, |diagnostic, decl| {
                        diagnostic.related(Span::new(source, decl.name.range.clone()), "declared here")
                    })
                }
                None => diagnostic,
            });
        }
    }
    diagnostics
}

/// Names that are declared twice. What an expression with such a name is depends on which of the two was meant.
pub(super) fn declared_twice(manifest: &Manifest) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    let shared = declared(manifest);
    let mut twice: BTreeSet<&str> =
        shared.iter().map(|(_, name)| name.value.as_str()).filter(|name| !seen.insert(*name)).collect();
    let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
    twice.extend(of_variants.map(|decl| decl.name.value.as_str()).filter(|name| seen.contains(name)));
    twice
}

/// What is declared as a name and can be none.
pub(super) fn no_names(manifest: &Manifest) -> Vec<&str> {
    let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
    let all = declared(manifest).into_iter().map(|(_, name)| name).chain(of_variants.map(|decl| &decl.name));
    let all = all.map(|name| name.value.as_str());
    all.filter(|name| !is_identifier(name) || is_name_reserved(name)).collect()
}

type Declared<'m> = (&'static str, &'m Located<String>);

fn declared(manifest: &Manifest) -> Vec<Declared<'_>> {
    let mut names: Vec<Declared<'_>> = Vec::new();
    names.extend(manifest.attributes.iter().map(|decl| ("attribute", &decl.name)));
    names.extend(manifest.inputs.iter().map(|decl| ("input", &decl.name)));
    names.extend(manifest.outputs.iter().map(|decl| ("output", &decl.name)));
    names.extend(manifest.types.iter().map(|decl| ("type parameter", &decl.name)));
    names.extend(manifest.formats.iter().map(|decl| ("format parameter", &decl.name)));
    names.extend(manifest.constants.iter().map(|decl| ("constant", &decl.name)));
    names.extend(manifest.functions.iter().map(|decl| ("function", &decl.name)));
    names.extend(manifest.tables.iter().map(|decl| ("table", &decl.name)));
    names.extend(manifest.scratch.iter().map(|decl| ("scratch buffer", &decl.name)));
    // The reader has complained about names that are no identifiers.
    names.retain(|(_, name)| !name.value.is_empty());
    names.sort_by_key(|(_, name)| name.range.start);
    names
}

/// Built-in functions are looked up apart from values: an attribute may be called `len`.
fn reserved(what: &str, name: &Located<String>, source: &Arc<Source>) -> Option<Diagnostic> {
    let taken =
        if what == "function" { is_function_reserved(&name.value) } else { is_name_reserved(&name.value) };
    taken.then(|| {
        Diagnostic::error(format!("{} cannot be called `{}`", with_article(what), name.value))
            .code(rules::BAD_NAME)
            .at(Span::new(source, name.range.clone()), "the expression language gives this name a meaning")
    })
}

/// Type parameters and constants are declared in the header that kernels see.
fn reserved_in_cpp(what: &str, name: &Located<String>, source: &Arc<Source>) -> Option<Diagnostic> {
    // The expression language has said no already.
    let why = cpp_names::reserved(&name.value).filter(|_| !is_name_reserved(&name.value))?;
    Some(
        Diagnostic::error(format!("{} cannot be called `{}`", with_article(what), name.value))
            .code(rules::BAD_NAME)
            .at(Span::new(source, name.range.clone()), why)
            .note(format!("kernels see it as `manifest::{}`", name.value))
            .help("choose another name"),
    )
}

fn twice(
    name: &Located<String>,
    what: &str,
    before: &HashMap<&str, &Declared<'_>>,
    source: &Arc<Source>,
) -> Option<Diagnostic> {
    let (first_what, first) = before.get(name.value.as_str())?;
    Some(
        Diagnostic::error(format!("the name `{}` is declared twice", name.value))
            .code(rules::DECLARED_TWICE)
            .at(Span::new(source, name.range.clone()), format!("as {}", with_article(what)))
            .related(
                Span::new(source, first.range.clone()),
                format!("first as {}", with_article(first_what)),
            ),
    )
}

/// `an input`, `a constant`.
pub(super) fn with_article(what: &str) -> String {
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {what}")
}
