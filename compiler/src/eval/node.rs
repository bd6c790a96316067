//! One node with its shapes, from names to launches.
//!
//! Owns the order of the steps; what is checked and computed comes from [`cubinder_bundle::launch`].

use cubinder_bundle::launch::{
    self, Facts, GuardVerdict, Unmet, check_attribute, check_limits, check_ranks, check_requirement,
    missing_attribute, output_shapes,
};
use cubinder_bundle::{DataType, Plugin, Value, Variant};

use super::code::{Compiler, LaunchCode};
use super::guard::reasons;
use super::launches::{Step, finish};
use super::query::{DEFAULT_ALIGNMENT, Mistake, Part, Query, attribute};
use super::report::{
    AttributeReport, Check, Evaluation, GuardReport, Origin, TensorReport, TypeReport, VariantReport,
};
use super::subject::{self, Subject};
use super::types;
use crate::diagnostic::{Diagnostic, suggest};
use crate::resolve::ArgDraft;

/// What an evaluation came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The report.
    pub evaluation: Evaluation,
    /// What the compiler found wrong with the kernels, where they were compiled.
    pub diagnostics: Vec<Diagnostic>,
}

/// Evaluates a node of `subject` with what `query` says.
///
/// # Errors
/// Every name that the plugin does not have, every value that is none of its type, and what is missing. That a node
/// would be refused at run time is no error: the report says so.
pub fn evaluate(subject: &Subject, query: &Query, compiler: &Compiler) -> Result<Outcome, Vec<Mistake>> {
    let asked = Asked::new(subject, query)?;
    let plugin = &subject.plugin;
    let mut report = report(subject, &asked);
    let mut diagnostics = Vec::new();
    report.refused =
        run(subject, &asked, compiler, &mut report, &mut diagnostics).err().map(|Unmet(why)| why);
    if matches!(subject.origin, subject::Origin::Manifest(_)) {
        report.notes.dedup();
    }
    debug_assert!(report.tensors.len() <= plugin.tensor_count());
    Ok(Outcome { evaluation: report, diagnostics })
}

/// A query whose names are the plugin's.
struct Asked {
    attributes: Vec<Value>,
    origins: Vec<Origin>,
    inputs: Vec<Vec<i64>>,
    types: Vec<DataType>,
    type_reports: Vec<TypeReport>,
    alignments: Vec<u64>,
}

impl Asked {
    fn new(subject: &Subject, query: &Query) -> Result<Asked, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let plugin = &subject.plugin;
        let (attributes, origins) = attributes(subject, query, &mut mistakes);
        let inputs = inputs(plugin, query, &mut mistakes);
        let types = types::choose(plugin, query, &mut mistakes);
        let alignments = alignments(plugin, query, &mut mistakes);
        match types {
            Some((types, type_reports)) if mistakes.is_empty() => {
                Ok(Asked { attributes, origins, inputs, types, type_reports, alignments })
            }
            _ => Err(mistakes),
        }
    }
}

/// The error for a name that the plugin does not have.
pub(super) fn unknown(part: Part, what: &str, name: &str, known: &[&str]) -> Mistake {
    let list = match known {
        [] => format!("the plugin has no {what}s"),
        known => format!("the plugin has `{}`", known.join("`, `")),
    };
    let diagnostic = Diagnostic::error(format!("there is no {what} `{name}`")).note(list);
    let diagnostic = match suggest(name, known.iter().copied()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    Mistake { part, name: name.to_owned(), diagnostic }
}

fn attributes(subject: &Subject, query: &Query, mistakes: &mut Vec<Mistake>) -> (Vec<Value>, Vec<Origin>) {
    let plugin = &subject.plugin;
    let mistake =
        |name: &str, diagnostic| Mistake { part: Part::Attribute, name: name.to_owned(), diagnostic };
    let names: Vec<&str> = plugin.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    for (name, _) in query.attributes.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        mistakes.push(unknown(Part::Attribute, "attribute", name, &names));
    }
    if let Some(fixed) = &subject.attributes {
        if let Some((name, _)) = query.attributes.iter().find(|(name, _)| names.contains(&name.as_str())) {
            let error =
                Diagnostic::error(format!("the attribute `{name}` of a node in an engine cannot be changed"))
                    .help("evaluate the manifest or the library to try other values");
            mistakes.push(mistake(name, error));
        }
        return (fixed.clone(), vec![Origin::Engine; fixed.len()]);
    }
    let mut values = Vec::new();
    for declared in &plugin.attributes {
        let given = query.attributes.iter().find(|(name, _)| *name == declared.name);
        match (given, &declared.default) {
            (Some((name, given)), _) => match attribute(declared.ty, given) {
                Ok(value) => values.push((value, Origin::Given)),
                Err(why) => {
                    mistakes.push(mistake(name, Diagnostic::error(format!("the attribute `{name}`: {why}"))));
                }
            },
            (None, Some(default)) => values.push((default.clone(), Origin::Default)),
            (None, None) => {
                let error = Diagnostic::error(missing_attribute(declared).to_string())
                    .help(format!("say what it is: `--attr {}=...`", declared.name));
                mistakes.push(mistake(&declared.name, error));
            }
        }
    }
    values.into_iter().unzip()
}

fn inputs(plugin: &Plugin, query: &Query, mistakes: &mut Vec<Mistake>) -> Vec<Vec<i64>> {
    let names: Vec<&str> = plugin.inputs.iter().map(|input| input.name.as_str()).collect();
    for (name, _) in query.shapes.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        let is_output = plugin.outputs.iter().any(|output| output.name == *name);
        let mut mistake = unknown(Part::Shape, "input", name, &names);
        if is_output {
            mistake.diagnostic =
                Diagnostic::error(format!("`{name}` is an output: its shape follows from the inputs'"));
        }
        mistakes.push(mistake);
    }
    let mut shapes = Vec::new();
    for input in &plugin.inputs {
        match query.shapes.iter().find(|(name, _)| *name == input.name) {
            Some((_, shape)) => shapes.push(shape.clone()),
            None => {
                let rank = if input.rank_min == input.rank_max {
                    format!("rank {}", input.rank_min)
                } else {
                    format!("rank {} to {}", input.rank_min, input.rank_max)
                };
                let example = match input.rank_max.min(input.rank_min.max(2)) {
                    0 => "scalar".to_owned(),
                    rank => vec!["32"; usize::from(rank)].join("x"),
                };
                let error = Diagnostic::error(format!(
                    "the shape of the input `{}` ({rank}) is not given",
                    input.name
                ))
                .help(format!("say what it is: `--shape {}={example}`", input.name));
                mistakes.push(Mistake { part: Part::Shape, name: input.name.clone(), diagnostic: error });
            }
        }
    }
    shapes
}

fn alignments(plugin: &Plugin, query: &Query, mistakes: &mut Vec<Mistake>) -> Vec<u64> {
    let names: Vec<&str> = (0..plugin.tensor_count()).filter_map(|index| plugin.tensor_name(index)).collect();
    for (name, _) in query.aligned.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        mistakes.push(unknown(Part::Aligned, "tensor", name, &names));
    }
    let of = |name: &&str| query.aligned.iter().find(|(aligned, _)| aligned == name).map(|(_, bytes)| *bytes);
    names.iter().map(|name| of(name).unwrap_or(DEFAULT_ALIGNMENT)).collect()
}

/// What is known before anything is evaluated.
fn report(subject: &Subject, asked: &Asked) -> Evaluation {
    let plugin = &subject.plugin;
    let values = plugin.attributes.iter().zip(&asked.attributes).zip(&asked.origins);
    let attributes = values.map(|((attribute, value), from)| AttributeReport {
        name: attribute.name.clone(),
        ty: attribute.ty.name(),
        value: value.clone(),
        from: *from,
    });
    Evaluation {
        node: subject.number,
        plugin: launch::full_name(plugin),
        version: plugin.version.clone(),
        types: asked.type_reports.clone(),
        attributes: attributes.collect(),
        tensors: tensors(plugin, asked, 0, &asked.inputs),
        checks: Vec::new(),
        variants: Vec::new(),
        launches: Vec::new(),
        workspace_bytes: 0,
        refused: None,
        notes: Vec::new(),
    }
}

/// The tensors from `first` on, which have these shapes.
fn tensors(plugin: &Plugin, asked: &Asked, first: usize, shapes: &[Vec<i64>]) -> Vec<TensorReport> {
    let tensor = |(index, shape): (usize, &Vec<i64>)| {
        let ty = *asked.types.get(index)?;
        let product = |start: u64| {
            let factor = |product: u64, extent: &i64| product.checked_mul(u64::try_from(*extent).ok()?);
            if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(start, factor) }
        };
        Some(TensorReport {
            name: plugin.tensor_name(index)?.to_owned(),
            role: if index < plugin.inputs.len() { "input" } else { "output" },
            ty: ty.name(),
            shape: shape.clone(),
            elements: product(1),
            bytes: product(u64::from(ty.size())),
            alignment: *asked.alignments.get(index)?,
        })
    };
    (first..).zip(shapes).filter_map(tensor).collect()
}

/// Fills the report step by step.
///
/// # Errors
/// The first thing for which the run time would refuse the node.
fn run(
    subject: &Subject,
    asked: &Asked,
    compiler: &Compiler,
    report: &mut Evaluation,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<(), Unmet> {
    let plugin = &subject.plugin;
    let inputs: Vec<&[i64]> = asked.inputs.iter().map(Vec::as_slice).collect();
    let facts = Facts { attributes: &asked.attributes, shapes: &inputs, ..Facts::default() };
    report.checks = checks(subject, asked, &facts);
    if let Some(why) = report.checks.iter().find_map(|check| check.why.clone()) {
        return Err(Unmet(why));
    }
    let outputs = output_shapes(plugin, &facts)?;
    report.tensors.extend(tensors(plugin, asked, plugin.inputs.len(), &outputs));
    let shapes: Vec<&[i64]> = asked.inputs.iter().chain(&outputs).map(Vec::as_slice).collect();
    let facts = Facts {
        attributes: &asked.attributes,
        shapes: &shapes,
        alignments: &asked.alignments,
        ..Facts::default()
    };
    report.variants = variants(plugin, asked, &facts);
    let Some((index, variant)) = launch::choose(plugin, &asked.types, &facts) else {
        return Err(Unmet("no variant can run: the guard of every variant of these types fails".to_owned()));
    };
    for (number, launch) in variant.launches.iter().enumerate() {
        let code = match &subject.origin {
            subject::Origin::Compiled(objects) => compiler.of_compiled(launch, objects),
            subject::Origin::Manifest(resolved) => {
                let unit =
                    resolved.draft.units.iter().find(|unit| unit.variant == index && unit.launch == number);
                let code = unit.map_or_else(LaunchCode::default, |unit| compiler.of_manifest(resolved, unit));
                let draft: &[ArgDraft] = unit.map_or(&[], |unit| &unit.args);
                let step = Step { plugin, launch, draft, code: &code, asked_arch: compiler.arch().is_some() };
                finish(&step, &facts, report, diagnostics)?;
                continue;
            }
        };
        let step = Step { plugin, launch, draft: &[], code: &code, asked_arch: compiler.arch().is_some() };
        finish(&step, &facts, report, diagnostics)?;
    }
    Ok(())
}

/// Everything that must hold of the node before shapes are computed, in the order in which the runtime looks at it.
fn checks(subject: &Subject, asked: &Asked, facts: &Facts<'_>) -> Vec<Check> {
    let plugin = &subject.plugin;
    let check = |text: String, result: Result<(), Unmet>| Check {
        text,
        holds: result.is_ok(),
        why: result.err().map(|Unmet(why)| why),
    };
    let mut list = Vec::new();
    for (attribute, value) in plugin.attributes.iter().zip(facts.attributes) {
        let limits = constraints(attribute);
        if !limits.is_empty() {
            list.push(check(format!("`{}` {limits}", attribute.name), check_attribute(attribute, value)));
        }
    }
    let ranks = || asked.inputs.iter().map(Vec::len);
    for (index, input) in plugin.inputs.iter().enumerate() {
        let allowed = if input.rank_min == input.rank_max {
            input.rank_min.to_string()
        } else {
            format!("{} to {}", input.rank_min, input.rank_max)
        };
        // One input at a time: the others are given a rank that they may have.
        let others = plugin.inputs.iter().zip(ranks()).enumerate();
        let ranks =
            others.map(|(other, (input, rank))| if other == index { rank } else { input.rank_min.into() });
        list.push(check(format!("`{}` has rank {allowed}", input.name), check_ranks(plugin, ranks)));
        if let Some(shape) = facts.shapes.get(index)
            && input.limits != cubinder_bundle::ShapeLimits::default()
        {
            let text = format!("`{}` {}", input.name, limits_text(&input.limits));
            list.push(check(text, check_limits(&input.name, shape, &input.limits)));
        }
        let built = subject.input_ranks.as_ref().and_then(|ranks| ranks.get(index));
        if let (Some(built), Some(shape)) = (built, facts.shapes.get(index)) {
            let result = if usize::from(*built) == shape.len() {
                Ok(())
            } else {
                Err(Unmet(format!(
                    "input `{}` has rank {}, and the engine was built for rank {built}",
                    input.name,
                    shape.len()
                )))
            };
            list.push(check(
                format!("`{}` has rank {built}, for which the engine was built", input.name),
                result,
            ));
        }
    }
    // What a rank out of bounds does to a rule says nothing.
    if list.iter().all(|check| check.holds) {
        for require in &plugin.require {
            let result = check_requirement(plugin, require, facts).map(drop);
            list.push(check(format!("`{}`", require.text), result));
        }
    }
    list
}

/// What an attribute may be beside its type, in words; empty where it may be anything.
fn constraints(attribute: &cubinder_bundle::Attribute) -> String {
    let mut parts = Vec::new();
    if let Some(length) = attribute.length {
        parts.push(format!("has length {length}"));
    }
    match (&attribute.minimum, &attribute.maximum) {
        (Some(least), Some(most)) => parts.push(format!("is from {least} to {most}")),
        (Some(least), None) => parts.push(format!("is at least {least}")),
        (None, Some(most)) => parts.push(format!("is at most {most}")),
        (None, None) => {}
    }
    if !attribute.one_of.is_empty() {
        let choices: Vec<String> = attribute.one_of.iter().map(ToString::to_string).collect();
        parts.push(format!("is one of {}", choices.join(", ")));
    }
    parts.join(", ")
}

fn limits_text(limits: &cubinder_bundle::ShapeLimits) -> String {
    let any = cubinder_bundle::Interval::ANY_SIZE;
    let mut parts = Vec::new();
    if limits.dims.is_empty() {
        if limits.every != any {
            parts.push(format!("has dimensions of {}", limits.every));
        }
    } else {
        let dims: Vec<String> = limits.dims.iter().map(ToString::to_string).collect();
        parts.push(format!("has dimensions of {}", dims.join(", ")));
    }
    if limits.numel != any {
        parts.push(format!("has {} elements", limits.numel));
    }
    parts.join(", ")
}

/// The variants of these types, with their guards' verdicts.
fn variants(plugin: &Plugin, asked: &Asked, facts: &Facts<'_>) -> Vec<VariantReport> {
    let chosen = launch::choose(plugin, &asked.types, facts).map(|(index, _)| index);
    let alignment = |tensor: u32| asked.alignments.get(tensor as usize).copied();
    let row = |(index, variant): (usize, &Variant)| {
        let guard = variant.guard.as_ref();
        let verdict = match (guard, launch::verdict(guard, facts)) {
            (None, _) => GuardReport::None,
            (_, GuardVerdict::Holds) => GuardReport::Holds,
            (_, GuardVerdict::Fails) => GuardReport::Fails,
            (_, GuardVerdict::NoValue(error)) => GuardReport::NoValue(error.to_string()),
        };
        VariantReport {
            id: variant.id,
            label: variant.label.clone(),
            guard: guard.map(|guard| guard.text.clone()),
            chosen: chosen == Some(index),
            verdict,
            reasons: guard.map(|guard| reasons(&guard.expr, facts, plugin, &alignment)).unwrap_or_default(),
        }
    };
    let of_types = plugin.variants.iter().enumerate().filter(|(_, variant)| variant.types == asked.types);
    of_types.map(row).collect()
}
