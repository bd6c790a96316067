//! What tensors are beyond type and shape: shape inputs, outputs in place, sizes that the kernels find out.
//!
//! Owns which output depends on data, and the rules about them that need names. Never compiles an expression.

use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_expr as expr;
use cubinder_expr::TensorKind;

use super::usage::free_names;
use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::manifest::{Located, Manifest, OutputDecl};
use crate::rules;

/// Reports outputs in place of what is no input, or none that can be shared, and sizes that no shape has.
pub(super) fn check(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (index, output) in manifest.outputs.iter().enumerate() {
        let Some(alias) = &output.alias else { continue };
        diagnostics.extend(unshared(manifest, alias, source));
        let before = manifest.outputs.iter().take(index).filter_map(|other| other.alias.as_ref());
        if let Some(first) = before.into_iter().find(|first| first.value == alias.value) {
            diagnostics.push(
                Diagnostic::error(format!("two outputs share the memory of `{}`", alias.value))
                    .code(rules::ALIAS)
                    .at(Span::new(source, alias.range.clone()), "the second one")
                    .related(Span::new(source, first.range.clone()), "the first one")
                    .help("let one of them have memory of its own, with `type` and `shape`"),
            );
        }
    }
    diagnostics.extend(unused_sizes(manifest, source));
    diagnostics
}

/// Why an output cannot share the memory of what it names.
fn unshared(manifest: &Manifest, alias: &Located<String>, source: &Arc<Source>) -> Option<Diagnostic> {
    let name = alias.value.as_str();
    let span = Span::new(source, alias.range.clone());
    if manifest.broken.iter().any(|broken| broken == name) {
        return None;
    }
    let Some(input) = manifest.inputs.iter().find(|input| input.name.value == name) else {
        let diagnostic = Diagnostic::error(format!("no input is called `{name}`"))
            .code(rules::UNKNOWN_NAME)
            .at(span, "an output can share the memory of an input only");
        let known = manifest.inputs.iter().map(|input| input.name.value.as_str());
        return Some(match suggest(name, known) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
    };
    input.values.as_ref()?;
    Some(
        Diagnostic::error(format!("no output can share the memory of `{name}`"))
            .code(rules::ALIAS)
            .at(span, "a shape input lies in the host's memory")
            .related(Span::new(source, input.name.range.clone()), "declared here"),
    )
}

/// Sizes that are no dimension of any output.
fn unused_sizes(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let used: BTreeSet<String> =
        manifest.outputs.iter().flat_map(|output| sizes_of(manifest, output)).collect();
    let is_clear = manifest.outputs.iter().all(|output| expr::parse(&output.shape.value).is_ok());
    let sizes = manifest.outputs.iter().filter(|output| output.size.is_some());
    sizes
        .filter(|output| is_clear && manifest.broken.is_empty() && !used.contains(&output.name.value))
        .map(|output| {
            let name = &output.name.value;
            Diagnostic::error(format!("no output has the size that `{name}` holds"))
                .code(rules::SIZE_TENSOR)
                .at(Span::new(source, output.name.range.clone()), "in no shape")
                .help(format!(
                    "write it as a dimension, `shape = \"[{name}]\"`, or make it a number like any other: `shape = \"[]\"` in place \
                     of `size`"
                ))
        })
        .collect()
}

/// The kind of an output, in guards and launches.
pub(super) fn kind_of(manifest: &Manifest, output: &OutputDecl) -> TensorKind {
    if output.size.is_some() {
        TensorKind::Size
    } else if sizes_of(manifest, output).is_empty() {
        TensorKind::Plain
    } else {
        TensorKind::DataDependent
    }
}

/// The outputs that hold sizes and that a shape names, through functions too. As the text says: what is folded away counts.
fn sizes_of(manifest: &Manifest, output: &OutputDecl) -> BTreeSet<String> {
    let is_size =
        |name: &str| manifest.outputs.iter().any(|other| other.size.is_some() && other.name.value == name);
    let (mut found, mut functions) = (BTreeSet::new(), BTreeSet::new());
    let mut texts = vec![(output.shape.value.as_str(), Vec::new())];
    while let Some((text, params)) = texts.pop() {
        let Ok(syntax) = expr::parse(text) else { continue };
        let mut bound = params;
        free_names(&syntax, &mut bound, &mut |name| {
            if is_size(name) {
                found.insert(name.to_owned());
            }
            let called = manifest.functions.iter().find(|decl| decl.name.value == name);
            if let Some(decl) = called.filter(|decl| functions.insert(decl.name.value.as_str())) {
                texts
                    .push((&decl.body.value, decl.params.iter().map(|param| param.value.as_str()).collect()));
            }
        });
    }
    found
}
