//! Chooses types and formats. TensorRT decides inputs'; the variant must determine others.

use std::collections::{BTreeSet, HashMap};

use cubinder_expr::Kind;
use cubinder_expr::{DataType, Format};

use super::declarations::{Declarations, has_word, is_declared, tensors};
use super::errors::{AlternativeUnserved, ServesNothing, UndecidedOutputType, UndecidedParameter};
use super::restrict::{allows, served};
use crate::diagnostic::Diagnostic;
use crate::manifest::{Alternative, Manifest, Parameter, VariantDecl};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) types: Vec<(String, DataType)>,
    pub(super) formats: Vec<(String, Format)>,
}

const MAX_CHOICES: usize = 1 << 16;

/// Returns each variant's choices (last parameter fastest, types before formats), or their excessive number.
pub(super) fn of_variants(manifest: &Manifest) -> Result<Vec<Vec<Choice>>, usize> {
    let parameters = manifest.variants.iter().map(|variant| {
        (served(&manifest.types, &variant.types), served(&manifest.formats, &variant.formats))
    });
    let parameters: Vec<_> = parameters.collect();
    let counts = parameters.iter().map(|(types, formats)| size(types).saturating_mul(size(formats)));
    let count = counts.fold(0, usize::saturating_add);
    if count > MAX_CHOICES {
        return Err(count);
    }
    let is_allowed = |choice: &Choice| {
        manifest.combinations.is_empty()
            || manifest.combinations.iter().any(|combination| {
                allows(&combination.types, &choice.types) && allows(&combination.formats, &choice.formats)
            })
    };
    let choices = |(types, formats): &(Vec<_>, Vec<_>)| -> Vec<Choice> {
        let formats = product(named_alternatives(formats));
        let pairs = product(named_alternatives(types)).into_iter().flat_map(|types| {
            formats.iter().map(move |formats| Choice { types: types.clone(), formats: formats.clone() })
        });
        pairs.filter(is_allowed).collect()
    };
    Ok(parameters.iter().map(choices).collect())
}

fn size<T>(parameters: &[Parameter<T>]) -> usize {
    parameters.iter().map(|parameter| parameter.alternatives.len()).fold(1, usize::saturating_mul)
}

fn named_alternatives<T: Copy>(parameters: &[Parameter<T>]) -> impl Iterator<Item = Vec<(String, T)>> {
    parameters.iter().map(|Parameter { name, alternatives, .. }| {
        alternatives.iter().map(|alternative| (name.value.clone(), *alternative)).collect()
    })
}

/// The last list changes fastest.
pub(super) fn product<T: Clone>(lists: impl Iterator<Item = Vec<T>>) -> Vec<Vec<T>> {
    lists.fold(vec![Vec::new()], |all, list| {
        let extended = |chosen: &Vec<T>| -> Vec<Vec<T>> {
            list.iter().map(|one| [chosen.as_slice(), std::slice::from_ref(one)].concat()).collect()
        };
        all.iter().flat_map(extended).collect()
    })
}

/// If `is_clear`, also reports unserved variants and alternatives.
pub(super) fn check(
    declared: Declarations<'_>,
    choices: &[Vec<Choice>],
    is_clear: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeSet<String> {
    let manifest = declared.manifest;
    let decided = Decided::by(manifest);
    let mut undecided = BTreeSet::new();
    for parameter in &manifest.types {
        if let Some(diagnostic) = undecided_type(declared, parameter, choices, &decided) {
            diagnostics.push(diagnostic);
            undecided.insert(parameter.name.value.clone());
        }
    }
    for parameter in &manifest.formats {
        let name = parameter.name.value.as_str();
        let value = |choice: &Choice| value_of(&choice.formats, name);
        let is_open = choices.iter().any(|choices| decided.leaves_open(choices, true, &value));
        // Unknown formats may be this one.
        let is_broken = !manifest.broken.is_empty()
            || !decided.formats.iter().all(|name| is_declared(&manifest.formats, name));
        if is_open && !decided.formats.contains(name) && !is_broken {
            diagnostics.push(undecided_parameter(declared, parameter, parameter.alternatives.len()));
            undecided.insert(name.to_owned());
        }
    }
    if is_clear && undecided.is_empty() && diagnostics.is_empty() {
        unserved(declared, choices, diagnostics);
    }
    undecided
}

fn value_of<T: Copy>(chosen: &[(String, T)], name: &str) -> Option<T> {
    chosen.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| *value)
}

fn undecided_parameter<T: Alternative>(
    declared: Declarations<'_>,
    parameter: &Parameter<T>,
    count: usize,
) -> Diagnostic {
    let (reason, note) = match T::WHAT {
        "type" => ("input has this type", "a node's input types select the alternative of a type parameter"),
        _ => ("tensor has this format", "TensorRT chooses the formats of a node's tensors"),
    };
    let (name, span) = (parameter.name.value.as_str(), declared.span(&parameter.name.range));
    let first = parameter.alternatives.first().map_or("", |first| first.word());
    UndecidedParameter { kind: T::WHAT, name, span, count, reason, note, first }.into()
}

struct Decided<'m> {
    types: BTreeSet<&'m str>,
    formats: BTreeSet<&'m str>,
}

impl<'m> Decided<'m> {
    fn by(manifest: &'m Manifest) -> Decided<'m> {
        let formats = tensors(manifest).filter_map(|tensor| tensor.format);
        Decided {
            types: manifest.inputs.iter().map(|input| input.ty.value.as_str()).collect(),
            formats: formats.map(|name| name.value.as_str()).collect(),
        }
    }

    /// Output types precede formats, which then do not count.
    fn leaves_open<'c, T: PartialEq>(
        &self,
        choices: impl IntoIterator<Item = &'c Choice>,
        with_formats: bool,
        value: &dyn Fn(&Choice) -> Option<T>,
    ) -> bool {
        let mut known: HashMap<(Vec<DataType>, Vec<Format>), Option<T>> = HashMap::new();
        choices.into_iter().any(|choice| {
            let types = choice.types.iter().filter(|(name, _)| self.types.contains(name.as_str()));
            let formats = choice.formats.iter().filter(|(name, _)| self.formats.contains(name.as_str()));
            let formats = formats.filter(|_| with_formats);
            let key = (types.map(|(_, ty)| *ty).collect(), formats.map(|(_, format)| *format).collect());
            *known.entry(key).or_insert_with(|| value(choice)) != value(choice)
        })
    }
}

/// Types that no output has may follow from formats and the variant.
fn undecided_type(
    declared: Declarations<'_>,
    parameter: &Parameter<DataType>,
    choices: &[Vec<Choice>],
    decided: &Decided<'_>,
) -> Option<Diagnostic> {
    let (manifest, name) = (declared.manifest, parameter.name.value.as_str());
    let value = |choice: &Choice| value_of(&choice.types, name);
    let input_is_broken = !manifest.broken.is_empty()
        || !manifest.inputs.iter().all(|input| is_declared(&manifest.types, &input.ty.value));
    if decided.types.contains(name) || input_is_broken {
        return None;
    }
    let count =
        |choices: &mut dyn Iterator<Item = &Choice>| choices.filter_map(value).collect::<BTreeSet<_>>().len();
    let Some(output) = manifest.outputs.iter().find(|output| output.ty.value == name) else {
        let is_open = choices.iter().any(|choices| decided.leaves_open(choices, true, &value));
        let count = choices.iter().map(|choices| count(&mut choices.iter())).max().unwrap_or(0);
        return is_open.then(|| undecided_parameter(declared, parameter, count));
    };
    // Specialized values may decide it (`output_types`).
    if manifest.attributes.iter().any(|decl| decl.specialize.is_some())
        || !decided.leaves_open(choices.iter().flatten(), false, &value)
    {
        return None;
    }
    // An attribute in a guard probably decides it.
    let guards = manifest.variants.iter().filter_map(|variant| variant.guard.as_ref());
    let is_guarding = |name: &str| guards.clone().any(|guard| has_word(&guard.value, name));
    let guarding = manifest.attributes.iter().find(|decl| is_guarding(&decl.name.value));
    let is_countable = guarding
        .is_some_and(|decl| !decl.ty.value.list && matches!(decl.ty.value.kind(), Kind::Int | Kind::Bool));
    let attribute = guarding.map(|decl| &decl.name.value);
    let error = UndecidedOutputType {
        name,
        span: declared.span(&parameter.name.range),
        count: count(&mut choices.iter().flatten()),
        output: declared.span(&output.ty.range),
        countable: attribute.filter(|_| is_countable),
        uncountable: attribute.filter(|_| !is_countable),
    };
    Some(error.into())
}

fn unserved(declared: Declarations<'_>, choices: &[Vec<Choice>], diagnostics: &mut Vec<Diagnostic>) {
    let manifest = declared.manifest;
    let without = manifest.variants.iter().zip(choices).filter(|(_, choices)| choices.is_empty());
    diagnostics.extend(without.map(|(variant, _)| serves_nothing(declared, variant)));
    if diagnostics.is_empty() {
        diagnostics.extend(unserved_alternatives(declared, &manifest.types, choices, |choice| &choice.types));
        diagnostics
            .extend(unserved_alternatives(declared, &manifest.formats, choices, |choice| &choice.formats));
    }
}

fn serves_nothing(declared: Declarations<'_>, variant: &VariantDecl) -> Diagnostic {
    let (manifest, id) = (declared.manifest, variant.id.value);
    let range = if variant.id.range.is_empty() { &manifest.plugin.name.range } else { &variant.id.range };
    let own = variant.types.iter().map(|it| &it.range).chain(variant.formats.iter().map(|it| &it.range));
    let types = manifest.combinations.iter().flat_map(|it| it.types.iter().map(|ty| &ty.range));
    let formats = manifest.combinations.iter().flat_map(|it| it.formats.iter().map(|format| &format.range));
    let combinations = declared.spans(types.chain(formats));
    ServesNothing { id, span: declared.span(range), own: declared.spans(own), combinations }.into()
}

fn unserved_alternatives<T: Alternative>(
    declared: Declarations<'_>,
    parameters: &[Parameter<T>],
    choices: &[Vec<Choice>],
    chosen: impl Fn(&Choice) -> &[(String, T)],
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for parameter in parameters {
        let (kind, name) = (T::WHAT, parameter.name.value.as_str());
        let served: BTreeSet<T> =
            choices.iter().flatten().filter_map(|choice| value_of(chosen(choice), name)).collect();
        for unserved in parameter.alternatives.iter().filter(|alternative| !served.contains(alternative)) {
            let span = declared.span(&parameter.name.range);
            found.push(AlternativeUnserved { kind, name, word: unserved.word(), span }.into());
        }
    }
    found
}
