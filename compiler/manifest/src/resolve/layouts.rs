//! Checks that TensorRT supports layouts for the tensors' types and ranks.

use std::collections::BTreeSet;

use cubinder_expr::{DataType, Format};

use super::declarations::{Declarations, Tensor, tensors};
use super::errors::{NoLayout, TooFewDimensions};
use super::restrict::leaves;
use super::rows::Row;
use crate::diagnostic::Diagnostic;
use crate::manifest::toml_reader::list;
use crate::manifest::{CombinationDecl, InputDecl, Located};

pub(super) fn check(declared: Declarations<'_>, rows: &[Row], unclear: &BTreeSet<String>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, tensor) in tensors(declared.manifest).enumerate() {
        let Some(format) = tensor.format else { continue };
        let is_unclear =
            |name: &Located<String>| unclear.contains(&name.value) || declared.is_broken(&name.value);
        if is_unclear(format) || is_unclear(tensor.ty) {
            continue;
        }
        let layouts = rows
            .iter()
            .filter_map(|row| Some((*row.tensor_types.get(index)?, *row.tensor_formats.get(index)?)));
        let layouts: BTreeSet<(DataType, Format)> = layouts.collect();
        let misfits: Vec<(DataType, Format)> =
            layouts.iter().copied().filter(|(ty, format)| !format.suits(*ty)).collect();
        // Equal parameters have equal misfits.
        if !misfits.is_empty() && seen.insert((&tensor.ty.value, &format.value)) {
            diagnostics.push(no_layout(declared, tensor, format, &misfits));
        }
        if let Some(input) = declared.manifest.inputs.get(index) {
            diagnostics.extend(rank(declared, input, format, layouts.into_iter().map(|(_, format)| format)));
        }
    }
    diagnostics
}

fn no_layout(
    declared: Declarations<'_>,
    tensor: Tensor<'_>,
    format: &Located<String>,
    misfits: &[(DataType, Format)],
) -> Diagnostic {
    let manifest = declared.manifest;
    let (ty, first) = misfits.first().copied().unwrap_or((DataType::F32, Format::Linear));
    let others = misfits.iter().skip(1).map(|(ty, format)| format!("`{}` as `{}`", ty.name(), format.name()));
    let others: Vec<String> = others.collect();
    let has_it = |combination: &&CombinationDecl| {
        leaves(&combination.types, &tensor.ty.value, &ty)
            && leaves(&combination.formats, &format.value, &first)
    };
    let combinations = manifest.combinations.iter().filter(has_it).flat_map(|combination| {
        let types = combination.types.iter().map(|it| &it.range);
        types.chain(combination.formats.iter().map(|it| &it.range))
    });
    let types: BTreeSet<DataType> = misfits.iter().map(|(ty, _)| *ty).collect();
    let possible = types.into_iter().map(|ty| {
        let formats: Vec<&str> =
            Format::ALL.into_iter().filter(|format| format.suits(ty)).map(Format::name).collect();
        format!("the formats of `{}` are {}", ty.name(), list(&formats))
    });
    let types = manifest.types.iter().find(|decl| decl.name.value == tensor.ty.value);
    let formats = manifest.formats.iter().find(|decl| decl.name.value == format.value);
    let fitting = types.and_then(|types| types.alternatives.iter().find(|ty| first.suits(**ty)));
    let advice = match (types, formats, fitting) {
        (Some(types), Some(formats), Some(fitting)) => Some(format!(
            "declare allowed combinations with `[[combinations]]`, such as `types = {{ {} = [\"{}\"] }}` with `formats = {{ {} = [\"{}\"] }}`",
            types.name.value,
            fitting.name(),
            formats.name.value,
            first.name()
        )),
        (_, Some(formats), _) => Some(format!("remove `{}` from `{}`", first.name(), formats.name.value)),
        (Some(types), None, _) => Some(format!("remove `{}` from `{}`", ty.name(), types.name.value)),
        (None, None, _) => None,
    };
    let error = NoLayout {
        ty: ty.name(),
        format: first.name(),
        span: declared.span(&format.range),
        tensor: &tensor.name.value,
        ty_span: declared.span(&tensor.ty.range),
        combinations: declared.spans(combinations),
        possible: possible.collect(),
        others: (!others.is_empty()).then(|| others.join(", ")),
        advice,
    };
    error.into()
}

/// If only some inputs lack dimensions, TensorRT uses another format.
fn rank(
    declared: Declarations<'_>,
    input: &InputDecl,
    format: &Located<String>,
    formats: impl Iterator<Item = Format>,
) -> Option<Diagnostic> {
    let formats: BTreeSet<Format> = formats.collect();
    let needy = formats.into_iter().max_by_key(|format| format.min_rank())?;
    (usize::from(input.rank.1) < needy.min_rank()).then(|| {
        let error = TooFewDimensions {
            format: needy.name(),
            least: needy.min_rank(),
            span: declared.span(&format.range),
            tensor: &input.name.value,
            most: input.rank.1,
            rank: input.rank_range.as_ref().map(|range| declared.span(range)),
        };
        error.into()
    })
}
