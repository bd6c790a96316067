//! The table of variants: every variant with every choice of its types.

use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_bundle::{DataType, Value};

use super::restrict;
use crate::diagnostic::{Diagnostic, Source, Span, lacking_type, suggest_type};
use crate::manifest::form::list;
use crate::manifest::{Located, Manifest, TypeDecl, VariantDecl};
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
    /// The shared constants, then the variant's own.
    pub(super) constants: Vec<(String, Value)>,
    /// How many of the constants are shared.
    shared: usize,
    /// The types of the inputs, then of the outputs. For an unknown type, which was told, another stands.
    pub(super) tensor_types: Vec<DataType>,
}

/// Stands for the type of a tensor that is not known.
const STAND_IN: DataType = DataType::F32;

impl Row {
    /// Types and the variant's own constants, for people.
    pub(super) fn label(&self) -> String {
        let types = self.types.iter().map(|(name, ty)| format!("{name}={}", ty.name()));
        let constants =
            self.constants.iter().skip(self.shared).map(|(name, value)| format!("{name}={value}"));
        types.chain(constants).collect::<Vec<_>>().join(" ")
    }

    /// A row of nothing but types and constants.
    #[cfg(test)]
    pub(super) fn of(types: &[(&str, DataType)], constants: &[(&str, Value)]) -> Row {
        Row {
            variant: 0,
            id: 1,
            types: types.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect(),
            constants: constants.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            shared: 0,
            tensor_types: Vec::new(),
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
pub(super) fn types(rows: &[Row]) -> Vec<DataType> {
    let of_row = |row: &'_ Row| -> Vec<DataType> {
        row.types.iter().map(|(_, ty)| *ty).chain(row.tensor_types.iter().copied()).collect()
    };
    let all: BTreeSet<DataType> = rows.iter().flat_map(of_row).collect();
    all.into_iter().collect()
}

/// The rows, and the type parameters of which it is not known what they are in each: that was told.
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
    pub(super) unclear: BTreeSet<String>,
}

/// Expands the table. Where there are errors the rows serve only to look for more.
pub(super) fn expand(manifest: &Manifest, source: &Arc<Source>, diagnostics: &mut Vec<Diagnostic>) -> Table {
    unique_ids(&manifest.variants, source, diagnostics);
    tensor_types_are_known(manifest, source, diagnostics);
    diagnostics.extend(restrict::check(manifest, source));
    let served: Vec<Vec<TypeDecl>> =
        manifest.variants.iter().map(|variant| restrict::served(manifest, variant)).collect();
    let mut unclear = choices_are_decided(manifest, &served, source, diagnostics);
    unclear.extend(restrict::unclear(manifest));
    let choices =
        |types: &Vec<TypeDecl>| types.iter().map(|ty| ty.alternatives.len()).fold(1, usize::saturating_mul);
    let count = served.iter().map(choices).fold(0, usize::saturating_add);
    if count > MAX_ROWS {
        let span = manifest.types.first().map_or(0..0, |ty| ty.name.range.clone());
        diagnostics.push(
            Diagnostic::error(format!("the manifest expands to {count} variants, more than {MAX_ROWS}"))
                .code(rules::TOO_MANY_VARIANTS)
                .at(Span::new(source, span), "every choice of types is multiplied by every variant")
                .help("`types = { ... }` in `[[variants]]` says which choices a variant serves"),
        );
        return Table { rows: Vec::new(), unclear };
    }
    let rows_of = |(variant, types): (usize, &Vec<TypeDecl>)| -> Vec<Row> {
        product(types).iter().map(|types| row(manifest, variant, types)).collect()
    };
    Table { rows: served.iter().enumerate().flat_map(rows_of).collect(), unclear }
}

fn row(manifest: &Manifest, variant: usize, types: &[(String, DataType)]) -> Row {
    let decl = manifest.variants.get(variant);
    let of_variant = decl.iter().flat_map(|decl| &decl.constants);
    let constants = manifest.constants.iter().chain(of_variant);
    let constants = constants.map(|decl| (decl.name.value.clone(), decl.value.clone()));
    let tensor_types = tensors(manifest).map(|(_, ty)| type_of(&ty.value, types).unwrap_or(STAND_IN));
    let tensor_types = tensor_types.collect();
    Row {
        variant,
        id: decl.map_or(0, |decl| decl.id.value),
        types: types.to_vec(),
        constants: constants.collect(),
        shared: manifest.constants.len(),
        tensor_types,
    }
}

fn type_of(name: &str, types: &[(String, DataType)]) -> Option<DataType> {
    let parameter = types.iter().find(|(parameter, _)| parameter == name).map(|(_, ty)| *ty);
    parameter.or_else(|| DataType::from_name(name))
}

/// The name of the type of a tensor, over inputs, then outputs; nothing where no such type is known.
pub(super) fn known_type<'m>(manifest: &'m Manifest, row: &Row, tensor: usize) -> Option<&'m str> {
    let (_, ty) = tensors(manifest).nth(tensor)?;
    type_of(&ty.value, &row.types).map(|_| ty.value.as_str())
}

/// The names and types of the inputs, then of the outputs.
fn tensors(manifest: &Manifest) -> impl Iterator<Item = (&Located<String>, &Located<String>)> {
    let inputs = manifest.inputs.iter().map(|input| (&input.name, &input.ty));
    inputs.chain(manifest.outputs.iter().map(|output| (&output.name, &output.ty)))
}

/// Every choice of the type parameters; the last parameter changes fastest.
fn product(types: &[TypeDecl]) -> Vec<Vec<(String, DataType)>> {
    let mut rows: Vec<Vec<(String, DataType)>> = vec![Vec::new()];
    for parameter in types {
        let extended = rows.iter().flat_map(|row| {
            parameter.alternatives.iter().map(move |ty| {
                let mut row = row.clone();
                row.push((parameter.name.value.clone(), *ty));
                row
            })
        });
        rows = extended.collect();
    }
    rows
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
    for (_, ty) in tensors(manifest) {
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
            // TensorRT has `f8`; Cubinder has not.
            diagnostics.push(match lacking.as_str() {
                "f8" => diagnostic,
                _ => diagnostic.note(format!("TensorRT has no tensors of `{lacking}`")),
            });
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

/// What a type parameter is must follow from the types of a node's inputs, and for what is no output's type it may follow from
/// the variant: nothing else tells which alternative is meant. The names of those for which nothing does.
fn choices_are_decided(
    manifest: &Manifest,
    served: &[Vec<TypeDecl>],
    source: &Arc<Source>,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeSet<String> {
    let mut undecided = BTreeSet::new();
    for (index, parameter) in manifest.types.iter().enumerate() {
        let name = parameter.name.value.as_str();
        let decided = manifest.inputs.iter().any(|input| input.ty.value == name);
        let is_known = |ty: &str| {
            DataType::from_name(ty).is_some() || manifest.types.iter().any(|known| known.name.value == ty)
        };
        let input_is_broken =
            !manifest.broken.is_empty() || manifest.inputs.iter().any(|input| !is_known(&input.ty.value));
        if decided || input_is_broken {
            continue;
        }
        let of_variants = || served.iter().filter_map(|types| types.get(index));
        let most_in_one = of_variants().map(|ty| ty.alternatives.len()).max().unwrap_or(0);
        let mut all: Vec<DataType> = of_variants().flat_map(|ty| ty.alternatives.clone()).collect();
        all.sort_unstable();
        all.dedup();
        let output = manifest.outputs.iter().find(|output| output.ty.value == name);
        let count = if output.is_some() { all.len() } else { most_in_one };
        if count < 2 {
            continue;
        }
        undecided.insert(name.to_owned());
        let message = format!("nothing decides what `{name}` is: it is the type of no input");
        let span = Span::new(source, parameter.name.range.clone());
        let diagnostic = Diagnostic::error(message)
            .code(rules::UNDECIDED_TYPE)
            .at(span, format!("has {count} alternatives"))
            .note("a node's input types choose between the alternatives of a type parameter");
        diagnostics.push(match output {
            Some(output) => diagnostic.related(
                Span::new(source, output.ty.range.clone()),
                "the type of an output must not depend on the variant",
            ),
            None => diagnostic.help(format!(
                "where each variant has a type of its own, say so: `types = {{ {name} = [\"{}\"] }}` in `[[variants]]`",
                parameter.alternatives.first().map_or("f32", |ty| ty.name())
            )),
        });
    }
    undecided
}
