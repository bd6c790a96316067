//! Whether the types of a node's inputs, and the values that its code is compiled for, decide the types of its outputs.
//!
//! TensorRT asks for the types of outputs before it settles formats and before a variant is chosen, so nothing else can decide them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cubinder_expr::DataType;

use super::rows::Row;
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::{Manifest, OutputDecl};
use crate::rules;

/// What is told of each type parameter of an output that two of the `rows` with the same inputs and values take for different types. Where no
/// attribute has such values it was told before (`choices`). Nothing is told of parameters of which it
/// is not known what they are.
pub(super) fn check(
    manifest: &Manifest,
    rows: &[&Row],
    is_unclear: impl Fn(&str) -> bool,
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    if !manifest.attributes.iter().any(|decl| decl.specialize.is_some()) {
        return Vec::new();
    }
    let inputs = manifest.inputs.len();
    if manifest.inputs.iter().any(|input| is_unclear(&input.ty.value)) {
        return Vec::new();
    }
    let mut told = BTreeSet::new();
    let mut is_new = |name: &'_ str| !is_unclear(name) && told.insert(name.to_owned());
    let outputs = manifest.outputs.iter().enumerate().filter(|(_, output)| is_new(&output.ty.value));
    let found = outputs.filter_map(|(index, output)| {
        let (row, types) = open(rows, inputs, inputs + index)?;
        Some(undecided(manifest, output, row, types, source))
    });
    found.collect()
}

/// A row for which the type of tensor `number` is open, with two types that it can be.
fn open<'r>(rows: &[&'r Row], inputs: usize, number: usize) -> Option<(&'r Row, [DataType; 2])> {
    let mut known: BTreeMap<(String, &[DataType]), DataType> = BTreeMap::new();
    rows.iter().find_map(|row| {
        let (of_inputs, ty) = (row.tensor_types.get(..inputs)?, *row.tensor_types.get(number)?);
        let values = format!("{:?}", row.specialized);
        let first = *known.entry((values, of_inputs)).or_insert(ty);
        (first != ty).then_some((*row, [first, ty]))
    })
}

fn undecided(
    manifest: &Manifest,
    output: &OutputDecl,
    row: &Row,
    [first, other]: [DataType; 2],
    source: &Arc<Source>,
) -> Diagnostic {
    let name = &output.ty.value;
    let parameter = manifest.types.iter().find(|parameter| parameter.name.value == *name);
    let place = parameter.map_or(&output.ty.range, |parameter| &parameter.name.range);
    let (node, first, other) = (row.of_nodes(manifest), first.name(), other.name());
    Diagnostic::error(format!("nothing decides what `{name}` is: it is the type of no input"))
        .code(rules::UNDECIDED_TYPE)
        .at(Span::new(source, place.clone()), format!("of nodes with {node} it can be `{first}` and `{other}`"))
        .related(Span::new(source, output.ty.range.clone()), "the type of an output must not depend on the variant")
        .note("the types of a node's inputs decide it, and the values of `specialize` where guards leave one type for each")
        .help("let the guards of the variants say for which value each of them is, or give an input this type")
}
