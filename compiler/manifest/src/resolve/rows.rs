//! The table of variants: every variant with every choice of its types and formats, and of the values that attributes are
//! specialized for.

use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_expr::{DataType, Format, Value};

use super::choices::{self, Choice};
use super::{layouts, restrict};
use crate::diagnostic::{Diagnostic, Source, Span, lacking_type, suggest, suggest_type};
use crate::manifest::form::list;
use crate::manifest::{Alternative, Located, Manifest, VariantDecl, no_tensors_of, unknown_format};
use crate::rules;

/// The most rows a manifest may expand to; each is a compile for each target.
const MAX_ROWS: usize = 1024;

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Index of its variant in the manifest.
    pub(super) variant: usize,
    /// The tactic id.
    pub(super) id: i32,
    /// The type parameters, in the manifest's order.
    pub(super) types: Vec<(String, DataType)>,
    /// The format parameters, in the manifest's order.
    pub(super) formats: Vec<(String, Format)>,
    /// The attributes that it is compiled for, in the manifest's order.
    pub(super) specialized: Vec<Specialized>,
    /// The shared constants, then the variant's own.
    pub(super) constants: Vec<(String, Value)>,
    /// How many of the constants are shared.
    shared: usize,
    /// The types of the inputs, then of the outputs. For an unknown type, which was told, another stands.
    pub(super) tensor_types: Vec<DataType>,
    /// The formats of the inputs, then of the outputs. For an unknown one, which was told, row major stands.
    pub(super) tensor_formats: Vec<Format>,
}

/// An attribute with the value that a row is compiled for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Specialized {
    /// Index of the attribute.
    pub(super) attribute: u32,
    pub(super) name: String,
    pub(super) value: Value,
}

/// Stands for the type of a tensor that is not known.
const STAND_IN: DataType = DataType::F32;

impl Row {
    /// Types, formats, attributes and the variant's own constants, for people.
    pub(super) fn label(&self) -> String {
        let constants =
            self.constants.iter().skip(self.shared).map(|(name, value)| format!("{name}={value}"));
        self.words_of_nodes().chain(constants).collect::<Vec<_>>().join(" ")
    }

    /// What nodes say that it serves, for people: the types of their inputs, and attributes.
    pub(super) fn of_nodes(&self, manifest: &Manifest) -> String {
        let is_of_input = |name: &str| manifest.inputs.iter().any(|input| input.ty.value == name);
        let types = self.types.iter().filter(|(name, _)| is_of_input(name));
        let types = types.map(|(name, ty)| format!("{name}={}", ty.name()));
        types.chain(self.words_of_values()).collect::<Vec<_>>().join(" ")
    }

    fn words_of_values(&self) -> impl Iterator<Item = String> {
        self.specialized.iter().map(|it| format!("{}={}", it.name, it.value))
    }

    fn words_of_nodes(&self) -> impl Iterator<Item = String> {
        let types = self.types.iter().map(|(name, ty)| format!("{name}={}", ty.name()));
        let formats = self.formats.iter().map(|(name, format)| format!("{name}={}", format.name()));
        types.chain(formats).chain(self.words_of_values())
    }

    /// What it knows by name and value: the constants and the attributes that it is compiled for.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        let specialized = self.specialized.iter().map(|it| (it.name.as_str(), &it.value));
        specialized.chain(self.constants.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// A row of nothing but types and constants.
    #[cfg(test)]
    pub(super) fn of(types: &[(&str, DataType)], constants: &[(&str, Value)]) -> Row {
        Row {
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

    /// How messages call it.
    pub(super) fn describe(&self) -> String {
        match self.label().as_str() {
            "" => format!("variant {}", self.id),
            label => format!("variant {} ({label})", self.id),
        }
    }
}

/// Every type in the table, of tensors and of type parameters, each once.
pub(super) fn types<'r>(rows: impl Iterator<Item = &'r Row>) -> Vec<DataType> {
    let of_row = |row: &'_ Row| -> Vec<DataType> {
        row.types.iter().map(|(_, ty)| *ty).chain(row.tensor_types.iter().copied()).collect()
    };
    let all: BTreeSet<DataType> = rows.flat_map(of_row).collect();
    all.into_iter().collect()
}

/// The rows, and the parameters of which it is not known what they are in each: that was told.
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
    pub(super) unclear: BTreeSet<String>,
}

/// Expands the table. Where there are errors the rows serve only to look for more.
pub(super) fn expand(manifest: &Manifest, source: &Arc<Source>, diagnostics: &mut Vec<Diagnostic>) -> Table {
    unique_ids(&manifest.variants, source, diagnostics);
    tensor_types_are_known(manifest, source, diagnostics);
    tensor_formats_are_known(manifest, source, diagnostics);
    let wrong = restrict::check(manifest, source);
    let is_clear = wrong.is_empty();
    diagnostics.extend(wrong);
    let mut unclear: BTreeSet<String> = restrict::unclear(manifest).into_iter().collect();
    let choices = choices::of_variants(manifest);
    let values = manifest.attributes.iter().filter_map(|decl| decl.specialize.as_ref());
    let values = values.map(|values| values.value.len()).fold(1, usize::saturating_mul);
    let count = choices.count.saturating_mul(values);
    let Some(choices) = choices.each.filter(|_| count <= MAX_ROWS) else {
        diagnostics.push(too_many(manifest, count, source));
        return Table { rows: Vec::new(), unclear };
    };
    // Where no variant has a choice there are no rows, however many values there are.
    let specialized = if values <= MAX_ROWS { specialized(manifest) } else { Vec::new() };
    unclear.extend(choices::check(manifest, &choices, is_clear, source, diagnostics));
    let rows_of = |(variant, choices): (usize, &Vec<Choice>)| -> Vec<Row> {
        let pairs = choices.iter().flat_map(|choice| specialized.iter().map(move |values| (choice, values)));
        pairs.map(|(choice, values)| row(manifest, variant, choice, values)).collect()
    };
    let rows: Vec<Row> = choices.iter().enumerate().flat_map(rows_of).collect();
    diagnostics.extend(layouts::check(manifest, &rows, &unclear, source));
    Table { rows, unclear }
}

fn too_many(manifest: &Manifest, count: usize, source: &Arc<Source>) -> Diagnostic {
    let first = manifest.types.first().map(|ty| &ty.name);
    let first = first.or(manifest.formats.first().map(|format| &format.name));
    let specialized = manifest.attributes.iter().find(|decl| decl.specialize.is_some());
    let first = first.or(specialized.map(|decl| &decl.name));
    let span = first.map_or(0..0, |name| name.range.clone());
    let label = match specialized {
        Some(_) => {
            "every choice of types and formats is multiplied by every variant and every value of `specialize`"
        }
        None if manifest.formats.is_empty() => "every choice of types is multiplied by every variant",
        None => "every choice of types and formats is multiplied by every variant",
    };
    let help = match manifest.formats.is_empty() {
        true => "`types = { ... }` in `[[variants]]` says which choices a variant serves",
        false => {
            "`types = { ... }` and `formats = { ... }` in `[[variants]]` say which choices a variant serves"
        }
    };
    Diagnostic::error(format!("the manifest expands to {count} variants, more than {MAX_ROWS}"))
        .code(rules::TOO_MANY_VARIANTS)
        .at(Span::new(source, span), label)
        .help(help)
}

fn row(manifest: &Manifest, variant: usize, choice: &Choice, specialized: &[Specialized]) -> Row {
    let decl = manifest.variants.get(variant);
    let of_variant = decl.iter().flat_map(|decl| &decl.constants);
    let constants = manifest.constants.iter().chain(of_variant);
    let constants = constants.map(|decl| (decl.name.value.clone(), decl.value.clone()));
    Row {
        variant,
        id: decl.map_or(0, |decl| decl.id.value),
        types: choice.types.clone(),
        formats: choice.formats.clone(),
        specialized: specialized.to_vec(),
        constants: constants.collect(),
        shared: manifest.constants.len(),
        tensor_types: choice.tensor_types(manifest),
        tensor_formats: choice.tensor_formats(manifest),
    }
}

/// Every choice of the values that attributes are specialized for; the last attribute changes fastest.
fn specialized(manifest: &Manifest) -> Vec<Vec<Specialized>> {
    let mut all: Vec<Vec<Specialized>> = vec![Vec::new()];
    for (attribute, decl) in (0..).zip(&manifest.attributes) {
        let Some(values) = &decl.specialize else { continue };
        let name = &decl.name.value;
        let extended = all.iter().flat_map(|chosen| {
            values.value.iter().map(move |value| {
                let mut chosen = chosen.clone();
                chosen.push(Specialized { attribute, name: name.clone(), value: value.clone() });
                chosen
            })
        });
        all = extended.collect();
    }
    all
}

impl Choice {
    /// The types of the inputs, then of the outputs.
    pub(super) fn tensor_types(&self, manifest: &Manifest) -> Vec<DataType> {
        tensors(manifest).map(|tensor| type_of(&tensor.ty.value, &self.types).unwrap_or(STAND_IN)).collect()
    }

    /// The formats of the inputs, then of the outputs.
    pub(super) fn tensor_formats(&self, manifest: &Manifest) -> Vec<Format> {
        let format = |tensor: Tensor<'_>| tensor.format.and_then(|name| found(&name.value, &self.formats));
        tensors(manifest).map(|tensor| format(tensor).unwrap_or_default()).collect()
    }
}

/// What a name stands for: a parameter or itself.
fn found<T: Alternative>(name: &str, chosen: &[(String, T)]) -> Option<T> {
    let parameter = chosen.iter().find(|(parameter, _)| parameter == name).map(|(_, found)| *found);
    parameter.or_else(|| T::EACH.iter().copied().find(|known| known.word() == name))
}

fn type_of(name: &str, types: &[(String, DataType)]) -> Option<DataType> {
    found(name, types)
}

/// The name of the type of a tensor, over inputs, then outputs; nothing where no such type is known.
pub(super) fn known_type<'m>(manifest: &'m Manifest, row: &Row, tensor: usize) -> Option<&'m str> {
    let ty = tensors(manifest).nth(tensor)?.ty;
    type_of(&ty.value, &row.types).map(|_| ty.value.as_str())
}

/// Whether the manifest has formats: parameters, or a tensor's own.
pub(super) fn has_formats(manifest: &Manifest) -> bool {
    !manifest.formats.is_empty() || tensors(manifest).any(|tensor| tensor.format.is_some())
}

/// What an input or an output says of itself.
#[derive(Clone, Copy)]
pub(super) struct Tensor<'m> {
    pub(super) name: &'m Located<String>,
    pub(super) ty: &'m Located<String>,
    pub(super) format: Option<&'m Located<String>>,
}

/// The inputs, then the outputs.
pub(super) fn tensors(manifest: &Manifest) -> impl Iterator<Item = Tensor<'_>> {
    let inputs = manifest.inputs.iter().map(|decl| Tensor {
        name: &decl.name,
        ty: &decl.ty,
        format: decl.format.as_ref(),
    });
    let outputs = manifest.outputs.iter().map(|decl| Tensor {
        name: &decl.name,
        ty: &decl.ty,
        format: decl.format.as_ref(),
    });
    inputs.chain(outputs)
}

fn unique_ids(variants: &[VariantDecl], source: &Arc<Source>, diagnostics: &mut Vec<Diagnostic>) {
    for (index, second) in variants.iter().enumerate() {
        if let Some(first) = variants.iter().take(index).find(|first| first.id.value == second.id.value) {
            diagnostics.push(
                Diagnostic::error(format!("two variants have the id {}", second.id.value))
                    .code(rules::DECLARED_TWICE)
                    .at(Span::new(source, second.id.range.clone()), "the second one")
                    .related(Span::new(source, first.id.range.clone()), "the first one")
                    .note("TensorRT remembers the fastest variant by this number"),
            );
        }
    }
}

fn tensor_types_are_known(manifest: &Manifest, source: &Arc<Source>, diagnostics: &mut Vec<Diagnostic>) {
    let parameters: Vec<&str> = manifest.types.iter().map(|ty| ty.name.value.as_str()).collect();
    for ty in tensors(manifest).map(|tensor| tensor.ty) {
        let name = ty.value.as_str();
        let known = parameters.contains(&name) || DataType::from_name(name).is_some();
        if known || manifest.broken.iter().any(|broken| broken == name) {
            continue;
        }
        let all: Vec<&str> =
            parameters.iter().copied().chain(DataType::ALL.iter().map(|ty| ty.name())).collect();
        let diagnostic = Diagnostic::error(format!("unknown type `{name}`"))
            .code(rules::UNKNOWN_TYPE)
            .at(Span::new(source, ty.range.clone()), "neither a type parameter nor an element type")
            .note(format!("the types are {}", list(&all)));
        if let Some(lacking) = lacking_type(name, all.iter().copied()) {
            diagnostics.push(diagnostic.note(no_tensors_of(&lacking)));
            continue;
        }
        diagnostics.push(match suggest_type(name, all.iter().copied()) {
            Some(near) => {
                let declared = manifest.types.iter().find(|parameter| parameter.name.value == near);
                let diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                declared.into_iter().fold(diagnostic, |diagnostic, parameter| {
                    diagnostic.related(Span::new(source, parameter.name.range.clone()), "declared here")
                })
            }
            None => diagnostic,
        });
    }
}

fn tensor_formats_are_known(manifest: &Manifest, source: &Arc<Source>, diagnostics: &mut Vec<Diagnostic>) {
    let parameters: Vec<&str> = manifest.formats.iter().map(|it| it.name.value.as_str()).collect();
    for format in tensors(manifest).filter_map(|tensor| tensor.format) {
        let name = format.value.as_str();
        let is_known = parameters.contains(&name) || Format::from_name(name).is_some();
        if is_known || manifest.broken.iter().any(|broken| broken == name) {
            continue;
        }
        let all: Vec<&str> = parameters.iter().copied().chain(Format::ALL.map(Format::name)).collect();
        let diagnostic = unknown_format(name, &all)
            .at(Span::new(source, format.range.clone()), "neither a format parameter nor a format");
        let near = suggest(name, parameters.iter().copied());
        let declared = manifest.formats.iter().find(|it| Some(it.name.value.as_str()) == near);
        diagnostics.push(declared.into_iter().fold(diagnostic, |diagnostic, parameter| {
            diagnostic.related(Span::new(source, parameter.name.range.clone()), "declared here")
        }));
    }
}
