//! Checks that input types and specialized values determine output types, which TensorRT queries before formats and variants.

use std::collections::{BTreeMap, BTreeSet};

use cubinder_expr::DataType;

use super::declarations::Declarations;
use super::errors::TwoOutputTypes;
use super::rows::Row;
use crate::diagnostic::Diagnostic;

/// Without specialized attributes, `choices` reports them.
pub(super) fn check(
    declared: Declarations<'_>,
    rows: &[&Row],
    is_unclear: impl Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let manifest = declared.manifest;
    if !manifest.attributes.iter().any(|decl| decl.specialize.is_some())
        || manifest.inputs.iter().any(|input| is_unclear(&input.ty.value))
    {
        return Vec::new();
    }
    let inputs = manifest.inputs.len();
    let mut seen = BTreeSet::new();
    let mut is_new = |name: &str| !is_unclear(name) && seen.insert(name.to_owned());
    let outputs = manifest.outputs.iter().enumerate().filter(|(_, output)| is_new(&output.ty.value));
    let found = outputs.filter_map(|(index, output)| {
        let (row, [first, other]) = undetermined_row(rows, inputs, inputs + index)?;
        let name = output.ty.value.as_str();
        let parameter = manifest.types.iter().find(|parameter| parameter.name.value == *name);
        let range = parameter.map_or(&output.ty.range, |parameter| &parameter.name.range);
        let error = TwoOutputTypes {
            name,
            span: declared.span(range),
            node: row.of_nodes(manifest),
            first: first.name(),
            other: other.name(),
            output: declared.span(&output.ty.range),
        };
        Some(error.into())
    });
    found.collect()
}

fn undetermined_row<'r>(rows: &[&'r Row], inputs: usize, number: usize) -> Option<(&'r Row, [DataType; 2])> {
    let mut known: BTreeMap<(String, &[DataType]), DataType> = BTreeMap::new();
    rows.iter().find_map(|row| {
        let (of_inputs, ty) = (row.tensor_types.get(..inputs)?, *row.tensor_types.get(number)?);
        let values = format!("{:?}", row.specialized);
        let first = *known.entry((values, of_inputs)).or_insert(ty);
        (first != ty).then_some((*row, [first, ty]))
    })
}
