//! One name, one thing: attributes, tensors, types, constants and functions share the names of expressions.

use std::sync::Arc;

use cubinder_bundle::expr::{is_function_reserved, is_name_reserved};

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::{Located, Manifest};

/// Reports names that are declared twice or that the expression language keeps for itself.
pub(super) fn check(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let shared = declared(manifest);
    for (index, (what, name)) in shared.iter().enumerate() {
        diagnostics.extend(reserved(what, name, source));
        diagnostics.extend(twice(name, what, shared.iter().take(index), source));
    }
    // The constants of two variants are two values of one thing, so they are compared with what is shared only.
    for variant in &manifest.variants {
        for constant in &variant.constants {
            diagnostics.extend(reserved("constant", &constant.name, source));
            diagnostics.extend(twice(&constant.name, "constant", shared.iter(), source));
        }
    }
    for function in &manifest.functions {
        for param in &function.params {
            diagnostics.extend(reserved("parameter", param, source));
        }
    }
    diagnostics
}

type Declared<'m> = (&'static str, &'m Located<String>);

fn declared(manifest: &Manifest) -> Vec<Declared<'_>> {
    let mut names: Vec<Declared<'_>> = Vec::new();
    names.extend(manifest.attributes.iter().map(|decl| ("attribute", &decl.name)));
    names.extend(manifest.inputs.iter().map(|decl| ("input", &decl.name)));
    names.extend(manifest.outputs.iter().map(|decl| ("output", &decl.name)));
    names.extend(manifest.types.iter().map(|decl| ("type parameter", &decl.name)));
    names.extend(manifest.constants.iter().map(|decl| ("constant", &decl.name)));
    names.extend(manifest.functions.iter().map(|decl| ("function", &decl.name)));
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
            .at(Span::new(source, name.range.clone()), "the expression language gives this name a meaning")
    })
}

fn twice<'m>(
    name: &Located<String>,
    what: &str,
    mut before: impl Iterator<Item = &'m Declared<'m>>,
    source: &Arc<Source>,
) -> Option<Diagnostic> {
    let (first_what, first) = before.find(|(_, first)| first.value == name.value)?;
    Some(
        Diagnostic::error(format!("the name `{}` is declared twice", name.value))
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
