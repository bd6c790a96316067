//! Shape inputs, outputs in place, and sizes that kernels compute. Never compiles expressions.

use std::collections::BTreeSet;

use cubinder_expr as expr;
use cubinder_expr::TensorKind;

use super::declarations::{Declarations, nearest};
use super::errors::{SharedShapeInput, SharedTwice, UnknownSharedInput, UnusedSize};
use crate::diagnostic::Diagnostic;
use crate::manifest::{Located, OutputDecl};

pub(super) fn check(declared: Declarations<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let aliases = declared.manifest.outputs.iter().filter_map(|output| output.alias.as_ref());
    for (index, alias) in aliases.clone().enumerate() {
        diagnostics.extend(unshared(declared, alias));
        if let Some(first) = aliases.clone().take(index).find(|first| first.value == alias.value) {
            let (span, first) = (declared.span(&alias.range), declared.span(&first.range));
            diagnostics.push(SharedTwice { name: &alias.value, span, first }.into());
        }
    }
    diagnostics.extend(unused_sizes(declared));
    diagnostics
}

fn unshared(declared: Declarations<'_>, alias: &Located<String>) -> Option<Diagnostic> {
    let (name, span) = (alias.value.as_str(), declared.span(&alias.range));
    if declared.is_broken(name) {
        return None;
    }
    let Some(input) = declared.input(name) else {
        let near = nearest(name, declared.manifest.inputs.iter().map(|input| &input.name));
        return Some(UnknownSharedInput { name, span, near: near.map(|near| &near.value) }.into());
    };
    input.values.as_ref()?;
    Some(SharedShapeInput { name, span, input: declared.span(&input.name.range) }.into())
}

fn unused_sizes(declared: Declarations<'_>) -> Vec<Diagnostic> {
    let outputs = &declared.manifest.outputs;
    let is_clear = outputs.iter().all(|output| expr::parse(&output.shape.value).is_ok());
    if !is_clear || !declared.manifest.broken.is_empty() {
        return Vec::new();
    }
    let used: BTreeSet<String> = outputs.iter().flat_map(|output| sizes_of(declared, output)).collect();
    let sizes = outputs.iter().filter(|output| output.size.is_some()).map(|output| &output.name);
    let unused = sizes.filter(|name| !used.contains(&name.value));
    unused.map(|name| UnusedSize { name: &name.value, span: declared.span(&name.range) }.into()).collect()
}

pub(super) fn kind_of(declared: Declarations<'_>, output: &OutputDecl) -> TensorKind {
    if output.size.is_some() {
        TensorKind::Size
    } else if sizes_of(declared, output).is_empty() {
        TensorKind::Plain
    } else {
        TensorKind::DataDependent
    }
}

/// Includes sizes that folding removes.
fn sizes_of(declared: Declarations<'_>, output: &OutputDecl) -> BTreeSet<String> {
    let is_size = |name: &str| {
        declared.manifest.outputs.iter().any(|other| other.size.is_some() && other.name.value == name)
    };
    let mut found = BTreeSet::new();
    declared.reachable_names(&output.shape, &mut |name| {
        if is_size(name) {
            found.insert(name.to_owned());
        }
    });
    found
}
