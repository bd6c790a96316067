//! Whether TensorRT has the layouts that rows ask for: by the types of the tensors and by their ranks.

use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_expr::{DataType, Format};

use super::rows::{Row, Tensor, tensors};
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::form::list;
use crate::manifest::{InputDecl, Located, Manifest};
use crate::rules;

/// Reports tensors that some row wants in a format that their type or rank cannot have. Nothing is said of parameters that are not
/// clear.
pub(super) fn check(
    manifest: &Manifest,
    rows: &[Row],
    unclear: &BTreeSet<String>,
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut told: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, tensor) in tensors(manifest).enumerate() {
        let Some(format) = tensor.format else { continue };
        let is_unclear =
            |name: &Located<String>| unclear.contains(&name.value) || manifest.broken.contains(&name.value);
        if is_unclear(format) || is_unclear(tensor.ty) {
            continue;
        }
        let formats = rows.iter().filter_map(|row| row.tensor_formats.get(index));
        let formats: BTreeSet<Format> = formats.copied().collect();
        let pairs = rows
            .iter()
            .filter_map(|row| Some((*row.tensor_types.get(index)?, *row.tensor_formats.get(index)?)));
        let pairs: BTreeSet<(DataType, Format)> = pairs.collect();
        let misfits: Vec<(DataType, Format)> =
            pairs.into_iter().filter(|(ty, format)| !format.suits(*ty)).collect();
        // Tensors that share parameters share what is wrong with them.
        if !misfits.is_empty() && told.insert((&tensor.ty.value, &format.value)) {
            diagnostics.push(no_layout(manifest, tensor, format, &misfits, source));
        }
        if let Some(input) = manifest.inputs.get(index) {
            diagnostics.extend(rank(input, format, &formats, source));
        }
    }
    diagnostics
}

fn no_layout(
    manifest: &Manifest,
    tensor: Tensor<'_>,
    format: &Located<String>,
    misfits: &[(DataType, Format)],
    source: &Arc<Source>,
) -> Diagnostic {
    let (ty, first) = misfits.first().copied().unwrap_or((DataType::F32, Format::Linear));
    let has = |misfits: &[(DataType, Format)]| -> Vec<String> {
        misfits.iter().skip(1).map(|(ty, format)| format!("`{}` as `{}`", ty.name(), format.name())).collect()
    };
    let mut diagnostic = Diagnostic::error(format!(
        "TensorRT has no tensors of `{}` in the format `{}`",
        ty.name(),
        first.name()
    ))
    .code(rules::NO_SUCH_LAYOUT)
    .at(Span::new(source, format.range.clone()), format!("the format of `{}`", tensor.name.value))
    .related(Span::new(source, tensor.ty.range.clone()), "its type");
    for combination in manifest.combinations.iter().filter(|combination| {
        let types = combination.types.iter().find(|it| it.name.value == tensor.ty.value);
        let formats = combination.formats.iter().find(|it| it.name.value == format.value);
        types.is_none_or(|it| it.alternatives.contains(&ty))
            && formats.is_none_or(|it| it.alternatives.contains(&first))
    }) {
        let places = combination.types.iter().map(|it| &it.range);
        let places = places.chain(combination.formats.iter().map(|it| &it.range));
        diagnostic = places.fold(diagnostic, |diagnostic, range| {
            diagnostic.related(Span::new(source, range.clone()), "this combination has it")
        });
    }
    let types: BTreeSet<DataType> = misfits.iter().map(|(ty, _)| *ty).collect();
    for ty in types {
        let formats: Vec<&str> =
            Format::ALL.into_iter().filter(|format| format.suits(ty)).map(Format::name).collect();
        diagnostic = diagnostic.note(format!("the formats of `{}` are {}", ty.name(), list(&formats)));
    }
    if misfits.len() > 1 {
        diagnostic = diagnostic.note(format!("nor is there {}", has(misfits).join(", ")));
    }
    let type_parameter = manifest.types.iter().find(|decl| decl.name.value == tensor.ty.value);
    let format_parameter = manifest.formats.iter().find(|decl| decl.name.value == format.value);
    match (type_parameter, format_parameter) {
        (Some(types), Some(formats)) => {
            let fitting = types.alternatives.iter().find(|ty| first.suits(**ty)).copied();
            diagnostic.help(match fitting {
                Some(fitting) => format!(
                    "say with `[[combinations]]` which there are: one of them `types = {{ {} = [\"{}\"] }}` with `formats = {{ {} = [\"{}\"] }}`",
                    types.name.value,
                    fitting.name(),
                    formats.name.value,
                    first.name()
                ),
                None => format!("leave `{}` out of `{}`", first.name(), formats.name.value),
            })
        }
        (None, Some(formats)) => {
            diagnostic.help(format!("leave `{}` out of `{}`", first.name(), formats.name.value))
        }
        (Some(types), None) => {
            diagnostic.help(format!("leave `{}` out of `{}`", ty.name(), types.name.value))
        }
        (None, None) => diagnostic,
    }
}

/// An input that never has the dimensions that one of its formats needs. Where it may have fewer, TensorRT gives it another format.
fn rank(
    input: &InputDecl,
    format: &Located<String>,
    formats: &BTreeSet<Format>,
    source: &Arc<Source>,
) -> Option<Diagnostic> {
    let most = formats.iter().copied().max_by_key(|format| format.min_rank())?;
    if usize::from(input.rank.1) >= most.min_rank() {
        return None;
    }
    let least = most.min_rank();
    let diagnostic =
        Diagnostic::error(format!("the format `{}` needs at least {least} dimensions", most.name()))
            .code(rules::NO_SUCH_LAYOUT)
            .at(Span::new(source, format.range.clone()), format!("the format of `{}`", input.name.value));
    Some(match &input.rank_range {
        Some(range) => {
            diagnostic.related(Span::new(source, range.clone()), format!("it has at most {}", input.rank.1))
        }
        None => diagnostic,
    })
}
