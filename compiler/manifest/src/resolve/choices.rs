//! Which types and formats the parameters of a manifest stand for together, and what decides which.
//!
//! A choice is decided by what TensorRT knows of a node: the types of its inputs, and the formats of its tensors, which TensorRT and the
//! plugin settle between them. What nothing of that decides must follow from the variant.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cubinder_expr::Kind;
use cubinder_expr::{DataType, Format};

use super::restrict::{allows, served};
use super::rows::tensors;
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::{Alternative, Manifest, Parameter, VariantDecl};
use crate::rules;

/// What the parameters stand for, in the manifest's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) types: Vec<(String, DataType)>,
    pub(super) formats: Vec<(String, Format)>,
}

/// The choices that each variant serves.
pub(super) struct Choices {
    /// How many there are; where they are too many to be made, before combinations are taken out.
    pub(super) count: usize,
    /// For each variant; none where they are too many.
    pub(super) each: Option<Vec<Vec<Choice>>>,
}

/// More than this many are not made, whatever combinations would leave.
const MOST: usize = 1 << 16;

/// For each variant its choices: the last parameter changes fastest, types before formats.
pub(super) fn of_variants(manifest: &Manifest) -> Choices {
    let parameters = manifest.variants.iter().map(|variant| {
        (served(&manifest.types, &variant.types), served(&manifest.formats, &variant.formats))
    });
    let parameters: Vec<_> = parameters.collect();
    let counts = parameters.iter().map(|(types, formats)| size(types).saturating_mul(size(formats)));
    let count = counts.fold(0, usize::saturating_add);
    if count > MOST {
        return Choices { count, each: None };
    }
    let is_there = |choice: &Choice| {
        manifest.combinations.is_empty()
            || manifest.combinations.iter().any(|combination| {
                allows(&combination.types, &choice.types) && allows(&combination.formats, &choice.formats)
            })
    };
    let each: Vec<Vec<Choice>> = parameters
        .iter()
        .map(|(types, formats)| {
            both(&product(types), &product(formats)).into_iter().filter(is_there).collect()
        })
        .collect();
    Choices { count: each.iter().map(Vec::len).sum(), each: Some(each) }
}

fn size<T>(parameters: &[Parameter<T>]) -> usize {
    parameters.iter().map(|parameter| parameter.alternatives.len()).fold(1, usize::saturating_mul)
}

/// Every choice of some parameters; the last one changes fastest.
fn product<T: Copy>(parameters: &[Parameter<T>]) -> Vec<Vec<(String, T)>> {
    let mut all: Vec<Vec<(String, T)>> = vec![Vec::new()];
    for parameter in parameters {
        let extended = all.iter().flat_map(|chosen| {
            parameter.alternatives.iter().map(move |alternative| {
                let mut chosen = chosen.clone();
                chosen.push((parameter.name.value.clone(), *alternative));
                chosen
            })
        });
        all = extended.collect();
    }
    all
}

fn both(types: &[Vec<(String, DataType)>], formats: &[Vec<(String, Format)>]) -> Vec<Choice> {
    let pairs = types.iter().flat_map(|types| formats.iter().map(move |formats| (types, formats)));
    pairs.map(|(types, formats)| Choice { types: types.clone(), formats: formats.clone() }).collect()
}

/// Reports parameters that nothing decides and, where `is_clear`, variants and alternatives that are left out everywhere; the names of
/// those that are not decided.
pub(super) fn check(
    manifest: &Manifest,
    choices: &[Vec<Choice>],
    is_clear: bool,
    source: &Arc<Source>,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeSet<String> {
    let decided = Decided::by(manifest);
    let mut undecided = BTreeSet::new();
    for parameter in &manifest.types {
        let value = |choice: &Choice| of(&choice.types, &parameter.name.value);
        if let Some(diagnostic) = undecided_type(manifest, parameter, choices, &decided, &value, source) {
            diagnostics.push(diagnostic);
            undecided.insert(parameter.name.value.clone());
        }
    }
    for parameter in &manifest.formats {
        let value = |choice: &Choice| of(&choice.formats, &parameter.name.value);
        let depends = choices.iter().any(|choices| decided.leaves_open(choices.iter(), true, &value));
        let is_known = decided.formats.contains(parameter.name.value.as_str());
        // A tensor whose format is not known may be the one.
        let is_broken =
            !manifest.broken.is_empty() || !decided.formats.iter().all(|name| is_format(manifest, name));
        if depends && !is_known && !is_broken {
            diagnostics.push(undecided_format(parameter, source));
            undecided.insert(parameter.name.value.clone());
        }
    }
    if is_clear && undecided.is_empty() && diagnostics.is_empty() {
        unserved(manifest, choices, source, diagnostics);
    }
    undecided
}

fn is_format(manifest: &Manifest, name: &str) -> bool {
    Format::from_name(name).is_some() || manifest.formats.iter().any(|known| known.name.value == name)
}

fn of<T: Copy>(chosen: &[(String, T)], name: &str) -> Option<T> {
    chosen.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| *value)
}

/// The names of the parameters that a node decides.
struct Decided<'m> {
    /// The types of inputs.
    types: BTreeSet<&'m str>,
    /// The formats of tensors.
    formats: BTreeSet<&'m str>,
}

impl<'m> Decided<'m> {
    fn by(manifest: &'m Manifest) -> Decided<'m> {
        Decided {
            types: manifest.inputs.iter().map(|input| input.ty.value.as_str()).collect(),
            formats: tensors(manifest)
                .filter_map(|tensor| tensor.format)
                .map(|name| name.value.as_str())
                .collect(),
        }
    }

    /// Whether choices that are alike in what a node decides differ in a value. The formats of tensors are known later than the types
    /// of outputs, so they do not always count.
    fn leaves_open<'c, T: PartialEq>(
        &self,
        choices: impl Iterator<Item = &'c Choice>,
        with_formats: bool,
        value: &dyn Fn(&Choice) -> Option<T>,
    ) -> bool {
        let mut known: HashMap<(Vec<DataType>, Vec<Format>), Option<T>> = HashMap::new();
        for choice in choices {
            let types = choice.types.iter().filter(|(name, _)| self.types.contains(name.as_str()));
            let formats = choice.formats.iter().filter(|(name, _)| self.formats.contains(name.as_str()));
            let formats = formats.filter(|_| with_formats);
            let key = (types.map(|(_, ty)| *ty).collect(), formats.map(|(_, format)| *format).collect());
            if *known.entry(key).or_insert_with(|| value(choice)) != value(choice) {
                return true;
            }
        }
        false
    }
}

/// What a type parameter is must follow from the types of a node's inputs, and for what is no output's type it may follow from
/// formats and the variant: nothing else tells which alternative is meant, but for values of attributes.
fn undecided_type(
    manifest: &Manifest,
    parameter: &Parameter<DataType>,
    choices: &[Vec<Choice>],
    decided: &Decided<'_>,
    value: &dyn Fn(&Choice) -> Option<DataType>,
    source: &Arc<Source>,
) -> Option<Diagnostic> {
    let name = parameter.name.value.as_str();
    let is_known = |ty: &str| {
        DataType::from_name(ty).is_some() || manifest.types.iter().any(|known| known.name.value == ty)
    };
    let input_is_broken =
        !manifest.broken.is_empty() || manifest.inputs.iter().any(|input| !is_known(&input.ty.value));
    if decided.types.contains(name) || input_is_broken {
        return None;
    }
    let output = manifest.outputs.iter().find(|output| output.ty.value == name);
    // Values that the code is compiled for may decide it: which rows they leave is known later (`output_types`).
    if output.is_some() && manifest.attributes.iter().any(|decl| decl.specialize.is_some()) {
        return None;
    }
    let is_open = match output {
        Some(_) => decided.leaves_open(choices.iter().flatten(), false, value),
        None => choices.iter().any(|choices| decided.leaves_open(choices.iter(), true, value)),
    };
    if !is_open {
        return None;
    }
    let each =
        |choices: &mut dyn Iterator<Item = &Choice>| choices.filter_map(value).collect::<BTreeSet<_>>();
    let count = match output {
        Some(_) => each(&mut choices.iter().flatten()).len(),
        None => choices.iter().map(|choices| each(&mut choices.iter()).len()).max().unwrap_or(0),
    };
    let message = format!("nothing decides what `{name}` is: it is the type of no input");
    let span = Span::new(source, parameter.name.range.clone());
    let diagnostic = Diagnostic::error(message)
        .code(rules::UNDECIDED_TYPE)
        .at(span, format!("has {count} alternatives"))
        .note("a node's input types choose between the alternatives of a type parameter");
    Some(match output {
        Some(output) => diagnostic
            .related(
                Span::new(source, output.ty.range.clone()),
                "the type of an output must not depend on the variant",
            )
            .help(decided_by_values(manifest, name)),
        None => diagnostic.help(own_choice(parameter)),
    })
}

/// How an attribute decides the type of an output: one that guards name is likely to be meant.
fn decided_by_values(manifest: &Manifest, parameter: &str) -> String {
    let guards = || manifest.variants.iter().filter_map(|variant| variant.guard.as_ref());
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_named =
        |name: &str| guards().any(|guard| guard.value.split(|c| !is_part(c)).any(|word| word == name));
    let Some(decl) = manifest.attributes.iter().find(|decl| is_named(&decl.name.value)) else {
        return format!(
            "give an input this type; where an attribute says what `{parameter}` is, name its values with `specialize`, and give each variant its \
             type and a guard that says for which value it is"
        );
    };
    let name = &decl.name.value;
    let is_counted = !decl.ty.list && matches!(decl.ty.kind(), Kind::Int | Kind::Bool);
    match is_counted {
        true => format!(
            "if `{name}` decides it: `specialize = [...]` of `{name}`, in place of other constraints, names the values for which code is made, and \
             guards then leave one type for each"
        ),
        false => format!(
            "if `{name}` decides it: take an integer for `{name}` and name its values with `specialize`, which is for integers and booleans; guards \
             then leave one type for each"
        ),
    }
}

fn undecided_format(parameter: &Parameter<Format>, source: &Arc<Source>) -> Diagnostic {
    let name = parameter.name.value.as_str();
    Diagnostic::error(format!("nothing decides what `{name}` is: it is the format of no tensor"))
        .code(rules::UNDECIDED_TYPE)
        .at(
            Span::new(source, parameter.name.range.clone()),
            format!("has {} alternatives", parameter.alternatives.len()),
        )
        .note("TensorRT chooses the formats of a node's tensors")
        .help(own_choice(parameter))
}

fn own_choice<T: Alternative>(parameter: &Parameter<T>) -> String {
    let what = T::WHAT;
    format!(
        "where each variant has a {what} of its own, say so: `{what}s = {{ {} = [\"{}\"] }}` in `[[variants]]`",
        parameter.name.value,
        parameter.alternatives.first().map_or("", |first| first.word())
    )
}

/// Variants without a choice, and alternatives that are in no choice: no node can have them.
fn unserved(
    manifest: &Manifest,
    choices: &[Vec<Choice>],
    source: &Arc<Source>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let without = manifest.variants.iter().zip(choices).filter(|(_, choices)| choices.is_empty());
    diagnostics.extend(without.map(|(variant, _)| serves_nothing(manifest, variant, source)));
    if !diagnostics.is_empty() {
        return;
    }
    let all = || choices.iter().flatten();
    for parameter in &manifest.types {
        let served: BTreeSet<DataType> =
            all().filter_map(|choice| of(&choice.types, &parameter.name.value)).collect();
        diagnostics.extend(left_out(parameter, &served, source));
    }
    for parameter in &manifest.formats {
        let served: BTreeSet<Format> =
            all().filter_map(|choice| of(&choice.formats, &parameter.name.value)).collect();
        diagnostics.extend(left_out(parameter, &served, source));
    }
}

fn serves_nothing(manifest: &Manifest, variant: &VariantDecl, source: &Arc<Source>) -> Diagnostic {
    // Where the manifest has no table of variants there is one.
    let place = if variant.id.range.is_empty() { &manifest.plugin.name.range } else { &variant.id.range };
    let id = variant.id.value;
    let diagnostic = Diagnostic::error("no combination of types and formats is left for this variant")
        .code(rules::UNREACHABLE_VARIANT)
        .at(Span::new(source, place.clone()), format!("variant {id} serves no node"))
        .help("correct its `types` and `formats`, or the `[[combinations]]`");
    let types = variant.types.iter().map(|ty| &ty.range);
    let own = types.chain(variant.formats.iter().map(|format| &format.range));
    let diagnostic = own.fold(diagnostic, |diagnostic, range| {
        diagnostic.related(Span::new(source, range.clone()), "the variant serves these")
    });
    let types = manifest.combinations.iter().flat_map(|it| it.types.iter().map(|ty| &ty.range));
    let formats = manifest.combinations.iter().flat_map(|it| it.formats.iter().map(|format| &format.range));
    types.chain(formats).fold(diagnostic, |diagnostic, range| {
        diagnostic.related(Span::new(source, range.clone()), "there are these")
    })
}

fn left_out<T: Alternative>(
    parameter: &Parameter<T>,
    served: &BTreeSet<T>,
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    let left = parameter.alternatives.iter().filter(|alternative| !served.contains(alternative));
    let warning = |alternative: &T| {
        let name = &parameter.name;
        Diagnostic::warning(format!("no variant serves `{}` = `{}`", name.value, alternative.word()))
            .code(rules::UNUSED)
            .at(Span::new(source, name.range.clone()), "declared here")
            .help(format!("leave the alternative out, or add it to the `{}s` of a variant", T::WHAT))
    };
    left.map(warning).collect()
}
