//! Expands the table: variants times types, formats and specialized values.

use std::collections::BTreeSet;

use cubinder_expr::{DataType, Format, Value};
use cubinder_model::Guard;

use super::choices::{self, Choice, product};
use super::declarations::{Declarations, Tensor, is_declared, nearest, tensors};
use super::errors::{TooManyVariants, UnknownElementType, VariantIdTwice};
use super::restrict;
use crate::diagnostic::{Diagnostic, lacking_type, suggest_type};
use crate::manifest::toml_reader::list;
use crate::manifest::{Alternative, Manifest, no_tensors_of, unknown_format};

/// Each is compiled for each target.
const MAX_ROWS: usize = 1024;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) index: usize,
    pub(super) variant: usize,
    pub(super) id: i32,
    pub(super) types: Vec<(String, DataType)>,
    pub(super) formats: Vec<(String, Format)>,
    pub(super) specialized: Vec<Specialized>,
    pub(super) constants: Vec<(String, Value)>,
    /// Number of shared constants.
    shared: usize,
    /// Inputs, then outputs; unknown types are `f32`.
    pub(super) tensor_types: Vec<DataType>,
    /// Inputs, then outputs; unknown formats are row major.
    pub(super) tensor_formats: Vec<Format>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Specialized {
    pub(super) attribute: u32,
    pub(super) name: String,
    pub(super) value: Value,
}

pub(super) struct Candidate {
    pub(super) row: Row,
    pub(super) guard: Option<Guard>,
    pub(super) exclusion: Option<Exclusion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exclusion {
    Requirement,
    Guard,
}

impl Row {
    pub(super) fn label(&self) -> String {
        let types = self.types.iter().map(|(name, ty)| format!("{name}={}", ty.name()));
        let formats = self.formats.iter().map(|(name, format)| format!("{name}={}", format.name()));
        let constants = self.constants.iter().skip(self.shared);
        let constants = constants.map(|(name, value)| format!("{name}={value}"));
        types.chain(formats).chain(self.specialized_labels()).chain(constants).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn of_nodes(&self, manifest: &Manifest) -> String {
        let is_of_input = |name: &str| manifest.inputs.iter().any(|input| input.ty.value == name);
        let types = self.types.iter().filter(|(name, _)| is_of_input(name));
        let types = types.map(|(name, ty)| format!("{name}={}", ty.name()));
        types.chain(self.specialized_labels()).collect::<Vec<_>>().join(" ")
    }

    fn specialized_labels(&self) -> impl Iterator<Item = String> {
        self.specialized.iter().map(|it| format!("{}={}", it.name, it.value))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        let specialized = self.specialized.iter().map(|it| (it.name.as_str(), &it.value));
        specialized.chain(self.constants.iter().map(|(name, value)| (name.as_str(), value)))
    }

    #[cfg(test)]
    pub(super) fn for_test(types: &[(&str, DataType)], constants: &[(&str, Value)]) -> Row {
        Row {
            index: 0,
            variant: 0,
            id: 1,
            types: types.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect(),
            formats: Vec::new(),
            specialized: Vec::new(),
            constants: constants.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            shared: 0,
            tensor_types: Vec::new(),
            tensor_formats: Vec::new(),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self.label().as_str() {
            "" => format!("variant {}", self.id),
            label => format!("variant {} ({label})", self.id),
        }
    }
}

pub(super) fn types<'r>(rows: impl Iterator<Item = &'r Row>) -> Vec<DataType> {
    let of_row = |row: &'_ Row| -> Vec<DataType> {
        row.types.iter().map(|(_, ty)| *ty).chain(row.tensor_types.iter().copied()).collect()
    };
    let all: BTreeSet<DataType> = rows.flat_map(of_row).collect();
    all.into_iter().collect()
}

/// After errors, rows only serve to find more.
pub(super) fn expand(
    declared: Declarations<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Row>, BTreeSet<String>) {
    let manifest = declared.manifest;
    unique_ids(declared, diagnostics);
    diagnostics.extend(tensors(manifest).filter_map(|tensor| unknown_type(declared, tensor)));
    diagnostics.extend(tensors(manifest).filter_map(|tensor| unknown_format_of(declared, tensor)));
    let (wrong, mut unclear) = restrict::check(declared);
    let is_clear = wrong.is_empty();
    diagnostics.extend(wrong);
    let choices = choices::of_variants(manifest);
    let specialized = (0..).zip(&manifest.attributes);
    let specialized: Vec<Vec<Specialized>> = specialized
        .filter_map(|(attribute, decl)| {
            let one = |value: &Value| Specialized {
                attribute,
                name: decl.name.value.clone(),
                value: value.clone(),
            };
            Some(decl.specialize.as_ref()?.value.iter().map(one).collect())
        })
        .collect();
    let values = specialized.iter().map(Vec::len).fold(1, usize::saturating_mul);
    let count = choices.as_ref().map_or_else(|count| *count, |choices| choices.iter().map(Vec::len).sum());
    let count = count.saturating_mul(values);
    let Some(choices) = choices.ok().filter(|_| count <= MAX_ROWS) else {
        diagnostics.push(too_many(declared, count));
        return (Vec::new(), unclear);
    };
    let specialized = if values <= MAX_ROWS { product(specialized.into_iter()) } else { Vec::new() };
    unclear.extend(choices::check(declared, &choices, is_clear, diagnostics));
    let mut rows = Vec::new();
    for (variant, choices) in choices.iter().enumerate() {
        for (choice, values) in
            choices.iter().flat_map(|choice| specialized.iter().map(move |it| (choice, it)))
        {
            rows.push(row(manifest, rows.len(), variant, choice, values));
        }
    }
    (rows, unclear)
}

fn too_many(declared: Declarations<'_>, count: usize) -> Diagnostic {
    let manifest = declared.manifest;
    let has_formats = !manifest.formats.is_empty();
    let specialized = manifest.attributes.iter().find(|decl| decl.specialize.is_some());
    let mut names = manifest.types.iter().map(|ty| &ty.name);
    let first = names.next().or(manifest.formats.first().map(|format| &format.name));
    let first = first.or(specialized.map(|decl| &decl.name));
    let error = TooManyVariants {
        count,
        most: MAX_ROWS,
        span: declared.span(first.map_or(&(0..0), |name| &name.range)),
        choices: if specialized.is_some() || has_formats { "types and formats" } else { "types" },
        values: if specialized.is_some() { " and every value of `specialize`" } else { "" },
        keys: match has_formats {
            true => "use `types = { ... }` and `formats = { ... }` in `[[variants]]`",
            false => "use `types = { ... }` in `[[variants]]`",
        },
    };
    error.into()
}

fn row(
    manifest: &Manifest,
    index: usize,
    variant: usize,
    choice: &Choice,
    specialized: &[Specialized],
) -> Row {
    let decl = manifest.variants.get(variant);
    let of_variant = decl.iter().flat_map(|decl| &decl.constants);
    let constants = manifest.constants.iter().chain(of_variant);
    let ty = |tensor: Tensor<'_>| alternative(&tensor.ty.value, &choice.types).unwrap_or(DataType::F32);
    let format = |tensor: Tensor<'_>| alternative(&tensor.format?.value, &choice.formats);
    Row {
        index,
        variant,
        id: decl.map_or(0, |decl| decl.id.value),
        types: choice.types.clone(),
        formats: choice.formats.clone(),
        specialized: specialized.to_vec(),
        constants: constants.map(|decl| (decl.name.value.clone(), decl.value.clone())).collect(),
        shared: manifest.constants.len(),
        tensor_types: tensors(manifest).map(ty).collect(),
        tensor_formats: tensors(manifest).map(|tensor| format(tensor).unwrap_or_default()).collect(),
    }
}

fn alternative<T: Alternative>(name: &str, chosen: &[(String, T)]) -> Option<T> {
    let parameter = chosen.iter().find(|(parameter, _)| parameter == name).map(|(_, chosen)| *chosen);
    parameter.or_else(|| T::EACH.iter().copied().find(|known| known.word() == name))
}

pub(super) fn known_type<'m>(manifest: &'m Manifest, row: &Row, tensor: usize) -> Option<&'m str> {
    let ty = tensors(manifest).nth(tensor)?.ty;
    alternative(&ty.value, &row.types).map(|_| ty.value.as_str())
}

pub(super) fn has_formats(manifest: &Manifest) -> bool {
    !manifest.formats.is_empty() || tensors(manifest).any(|tensor| tensor.format.is_some())
}

fn unique_ids(declared: Declarations<'_>, diagnostics: &mut Vec<Diagnostic>) {
    let ids = declared.manifest.variants.iter().map(|variant| &variant.id);
    for (index, second) in ids.clone().enumerate() {
        if let Some(first) = ids.clone().take(index).find(|first| first.value == second.value) {
            let (span, first) = (declared.span(&second.range), declared.span(&first.range));
            diagnostics.push(VariantIdTwice { id: second.value, span, first }.into());
        }
    }
}

fn unknown_type(declared: Declarations<'_>, tensor: Tensor<'_>) -> Option<Diagnostic> {
    let (manifest, name) = (declared.manifest, tensor.ty.value.as_str());
    if is_declared(&manifest.types, name) || declared.is_broken(name) {
        return None;
    }
    let parameters = manifest.types.iter().map(|parameter| &parameter.name);
    let words = parameters.clone().map(|name| name.value.as_str());
    let all: Vec<&str> = words.chain(DataType::ALL.iter().map(|ty| ty.name())).collect();
    let lacking = lacking_type(name, all.iter().copied());
    let near = suggest_type(name, all.iter().copied()).filter(|_| lacking.is_none());
    let first = parameters.clone().find(|parameter| Some(parameter.value.as_str()) == near);
    let error = UnknownElementType {
        name,
        span: declared.span(&tensor.ty.range),
        known: list(&all),
        lacking: lacking.map(|lacking| no_tensors_of(&lacking)),
        near,
        first: first.map(|parameter| declared.span(&parameter.range)),
    };
    Some(error.into())
}

fn unknown_format_of(declared: Declarations<'_>, tensor: Tensor<'_>) -> Option<Diagnostic> {
    let (manifest, format) = (declared.manifest, tensor.format?);
    let name = format.value.as_str();
    if is_declared(&manifest.formats, name) || declared.is_broken(name) {
        return None;
    }
    let parameters = manifest.formats.iter().map(|parameter| &parameter.name);
    let words = parameters.clone().map(|name| name.value.as_str());
    let all: Vec<&str> = words.chain(Format::ALL.map(Format::name)).collect();
    let error = unknown_format(name, &all)
        .at(declared.span(&format.range), "neither a format parameter nor a format");
    Some(match nearest(name, parameters) {
        Some(near) => error.related(declared.span(&near.range), "declared here"),
        None => error,
    })
}
