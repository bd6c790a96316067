//! Owns the order of a node's evaluation; [`cubinder_launch`] computes.

use cubinder_expr::Format;
use cubinder_launch as launch;
use cubinder_launch::{
    Facts, GuardDecision, GuardVerdict, LaunchError, LaunchLimits, Sequencing, Steps, output_shapes,
};
use cubinder_model::attribute_check::Unmet;
use cubinder_model::{AUTO_TACTIC, Plugin, Variant};

use super::checks::checks;
use super::code::{Compiler, LaunchCode};
use super::device::{self, DeviceFacts};
use super::guard::reasons;
use super::launches::{Step, check, finish};
use super::names::check_names;
use super::report::{AttributeReport, Evaluation, GuardReport, Origin, TensorReport, VariantReport};
use super::resolved::{ResolvedQuery, resolve, slices};
use super::subject::{self, Subject};
use super::{steps, tuned};
use crate::diagnostic::Diagnostic;
use crate::errors::AlignmentsDiffer;
use crate::query::{DEFAULT_ALIGNMENT, Mistake, Part, Query};
use crate::resolve::ArgDraft;

/// Evaluated node.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluatedNode {
    /// Report.
    pub evaluation: Evaluation,
    /// Diagnostics of compiled kernels.
    pub diagnostics: Vec<Diagnostic>,
}

/// Evaluates a node; fails for invalid queries. The report has the runtime's refusals.
pub fn evaluate(
    subject: &Subject,
    query: &Query,
    compiler: &Compiler,
) -> Result<EvaluatedNode, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let resolved = resolve(subject, query, &mut mistakes);
    let device = device::device_facts(subject, query, compiler.arch(), &mut mistakes);
    let alignments = alignments(&subject.plugin, query, &mut mistakes);
    let Some(resolved) = resolved.filter(|_| mistakes.is_empty()) else { return Err(mistakes) };
    let node = ResolvedNode { resolved, device, alignments };
    let mut report = report(subject, query, &node);
    let mut diagnostics = Vec::new();
    report.refused = run(subject, &node, compiler, &mut report, &mut diagnostics).err().map(|Unmet(why)| why);
    if matches!(subject.origin, subject::Origin::Manifest(_)) {
        report.notes.dedup();
    }
    Ok(EvaluatedNode { evaluation: report, diagnostics })
}

struct ResolvedNode {
    resolved: ResolvedQuery,
    device: DeviceFacts,
    alignments: Vec<u64>,
}

fn alignments(plugin: &Plugin, query: &Query, mistakes: &mut Vec<Mistake>) -> Vec<u64> {
    let names: Vec<&str> = (0..plugin.tensor_count()).filter_map(|index| plugin.tensor_name(index)).collect();
    check_names(Part::Aligned, "tensor", &query.aligned, &names, mistakes);
    let given =
        |name: &str| query.aligned.iter().find(|(aligned, _)| aligned == name).map(|(_, bytes)| *bytes);
    for (tensor, name) in names.iter().enumerate() {
        let Some(output) = names.get(plugin.storage_of(tensor)).filter(|output| *output != name) else {
            continue;
        };
        if let (Some(one), Some(other)) = (given(name), given(output))
            && one != other
        {
            let error = AlignmentsDiffer { name, output, one, other };
            mistakes.push(Mistake::new(Part::Aligned, name, error));
        }
    }
    let alignment = |tensor| stated_alignment(plugin, &query.aligned, tensor).unwrap_or(DEFAULT_ALIGNMENT);
    (0..names.len()).map(alignment).collect()
}

/// Returns a tensor's alignment, given under any name of its memory.
#[must_use]
pub fn stated_alignment(plugin: &Plugin, given: &[(String, u64)], tensor: usize) -> Option<u64> {
    let storage = plugin.storage_of(tensor);
    let mut names = (0..plugin.tensor_count()).filter(|other| plugin.storage_of(*other) == storage);
    let named =
        |tensor: usize| given.iter().find(|(name, _)| plugin.tensor_name(tensor) == Some(name.as_str()));
    names.find_map(|tensor| named(tensor).map(|(_, bytes)| *bytes))
}

fn report(subject: &Subject, query: &Query, node: &ResolvedNode) -> Evaluation {
    let (plugin, resolved) = (&subject.plugin, &node.resolved);
    let from = |name: &String| match subject.attributes {
        Some(_) => Origin::Engine,
        None if query.attributes.iter().any(|(given, _)| given == name) => Origin::Given,
        None => Origin::Default,
    };
    let values = plugin.attributes.iter().zip(&resolved.attributes);
    let attributes = values.map(|(attribute, value)| AttributeReport {
        name: attribute.name.clone(),
        ty: attribute.ty.name(),
        value: value.clone(),
        from: from(&attribute.name),
    });
    Evaluation {
        node: subject.number,
        plugin: plugin.full_name(),
        version: plugin.version.clone(),
        types: resolved.type_parameters.clone(),
        formats: resolved.format_parameters.clone(),
        attributes: attributes.collect(),
        device: node.device.facts.clone(),
        tensors: tensors(plugin, node, 0, &resolved.inputs),
        checks: Vec::new(),
        variants: Vec::new(),
        scratch: Vec::new(),
        workspace_bytes: 0,
        steps: Vec::new(),
        launches: Vec::new(),
        refused: None,
        notes: subject.is_native().then(|| launched_by_tensorrt(plugin)).into_iter().collect(),
    }
}

fn launched_by_tensorrt(plugin: &Plugin) -> String {
    let mut launches = plugin.variants.iter().flat_map(Variant::launches);
    let in_turn = match launches.any(|launch| launch.programmatic) {
        true => "; `programmatic` has no effect",
        false => "",
    };
    format!(
        "TensorRT launches the kernel (experimental): it chooses a variant when it builds the engine, for all shapes of the profile, and checks nothing when the engine \
         runs{in_turn}"
    )
}

fn tensors(plugin: &Plugin, node: &ResolvedNode, first: usize, shapes: &[Vec<i64>]) -> Vec<TensorReport> {
    let tensor = |(index, shape): (usize, &Vec<i64>)| {
        let (ty, format) = (*node.resolved.types.get(index)?, *node.resolved.formats.get(index)?);
        let factor = |product: u64, extent: &i64| product.checked_mul(u64::try_from(*extent).ok()?);
        let elements = if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1, factor) };
        Some(TensorReport {
            name: plugin.tensor_name(index)?.to_owned(),
            role: if index < plugin.inputs.len() { "input" } else { "output" },
            ty: ty.name(),
            format: format.name(),
            shape: shape.clone(),
            elements,
            bytes: launch::tensor_bytes(ty, format, shape),
            alignment: *node.alignments.get(index)?,
            values: plugin.inputs.get(index).and_then(|input| {
                input.values?;
                node.resolved.values.get(index).cloned()
            }),
            alias: index.checked_sub(plugin.inputs.len()).and_then(|output| {
                let alias = plugin.outputs.get(output)?.alias?;
                plugin.tensor_name(alias as usize).map(str::to_owned)
            }),
        })
    };
    (first..).zip(shapes).filter_map(tensor).collect()
}

/// Stops at the runtime's first rejection.
fn run(
    subject: &Subject,
    node: &ResolvedNode,
    compiler: &Compiler,
    report: &mut Evaluation,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<(), Unmet> {
    let (plugin, resolved) = (&subject.plugin, &node.resolved);
    let (inputs, values) = (slices(&resolved.inputs), slices(&resolved.values));
    let known = Facts { attributes: &resolved.attributes, values: &values, ..Facts::default() };
    let facts = Facts { shapes: &inputs, ..known };
    let mut steps = Steps::default();
    report.checks = checks(subject, &facts, &mut steps);
    if let Some(why) = report.checks.iter().find_map(|check| check.why.clone()) {
        return Err(Unmet(why));
    }
    let outputs = output_shapes(plugin, &facts, &mut steps)?;
    report.tensors.extend(tensors(plugin, node, plugin.inputs.len(), &outputs));
    let shapes = [inputs, slices(&outputs)].concat();
    report.notes.extend(formats_that_need_more(plugin, &resolved.formats, &shapes));
    let facts = Facts { shapes: &shapes, alignments: &node.alignments, device: node.device.device, ..known };
    let signature = resolved.signature();
    let measured_on = Facts { device: node.device.measured_on, ..facts };
    let order = launch::in_order(plugin, &signature, AUTO_TACTIC, &measured_on)?;
    report.notes.extend(tuned::note(plugin, &signature, &measured_on));
    let decided = launch::decide(plugin, &order, AUTO_TACTIC, &facts, &mut steps);
    let alignment = |tensor: usize| node.alignments.get(tensor).copied();
    let chosen = decided.as_ref().ok().and_then(|decided| decided.pick(alignment));
    report.variants = variants(plugin, node, &order, chosen, &facts);
    let sms = node.device.sms;
    let mut prepared = Prepared { subject, compiler, facts: &facts, sms, steps, report, diagnostics };
    prepared.evaluate_candidates(&decided?, chosen)?;
    match chosen {
        Some(_) => Ok(()),
        None => Err(launch::none_holds(plugin, &order, &facts)),
    }
}

fn formats_that_need_more(plugin: &Plugin, formats: &[Format], shapes: &[&[i64]]) -> Vec<String> {
    let tensors = formats.iter().zip(shapes).enumerate();
    let short = tensors.filter(|(_, (format, shape))| shape.len() < format.min_rank());
    let note = |(index, (format, shape)): (usize, (&Format, &&[i64]))| {
        let tensor = plugin.tensor_name(index).unwrap_or_default();
        let (rank, least, format) = (shape.len(), format.min_rank(), format.name());
        format!(
            "TensorRT requires rank {least} or higher for the format `{format}`, but `{tensor}` has rank {rank}"
        )
    };
    short.map(note).collect()
}

/// The runtime prepares variants before it knows addresses.
struct Prepared<'a> {
    subject: &'a Subject,
    compiler: &'a Compiler,
    facts: &'a Facts<'a>,
    sms: Option<i64>,
    steps: Steps,
    report: &'a mut Evaluation,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Prepared<'_> {
    /// Reports those of `chosen`.
    fn evaluate_candidates(&mut self, decided: &GuardDecision, chosen: Option<usize>) -> Result<(), Unmet> {
        let mut first = Ok(());
        for index in &decided.candidates {
            let Some(variant) = self.subject.plugin.variants.get(*index) else { continue };
            let is_chosen = Some(*index) == chosen;
            // After errors, only the chosen variant matters.
            if !is_chosen && first.is_err() {
                continue;
            }
            let result = self.variant(*index, variant, is_chosen);
            if result.is_err() && first.is_ok() && !is_chosen {
                self.report.notes.push(format!(
                    "variant {} is selected for other addresses, so it must be launchable too",
                    variant.id
                ));
            }
            first = first.and(result);
        }
        first
    }

    fn variant(&mut self, index: usize, variant: &Variant, is_chosen: bool) -> Result<(), Unmet> {
        let (subject, compiler) = (self.subject, self.compiler);
        let plugin = &subject.plugin;
        let coded = |number| coded(subject, compiler, (index, variant), number);
        let launches: Vec<Option<Coded<'_>>> = (0..variant.steps.len()).map(coded).collect();
        let step_of = |number: usize| -> Option<Step<'_>> {
            let launch = variant.launch(number)?;
            let (code, draft) = launches.get(number)?.as_ref()?;
            let scratch = variant.scratch.as_slice();
            let (asked_arch, is_native) = (compiler.arch().is_some(), subject.is_native());
            let (sms, facts) = (self.sms, self.facts);
            Some(Step { plugin, launch, scratch, draft, code, asked_arch, sms, facts, is_native })
        };
        let mut typed = variant.clone();
        for number in 0..typed.steps.len() {
            if let (Some(launch), Some(step)) = (typed.launch_mut(number), step_of(number)) {
                *launch = step.typed();
            }
        }
        let refused = |error: Box<LaunchError>| Unmet(error.to_string());
        let budget = &mut self.steps;
        let mut sequencing = Sequencing::new(plugin, &typed, self.facts, budget).map_err(refused)?;
        if is_chosen {
            steps::scratch(variant, sequencing.scratch(), self.report);
        }
        for (number, step) in variant.steps.iter().enumerate() {
            let does = match step_of(number) {
                None => {
                    let doing = sequencing.step(&LaunchLimits::ANYTHING, budget).map_err(refused)?;
                    steps::without_launch(plugin, variant, step, doing)
                }
                Some(launch) if is_chosen => {
                    finish(&launch, &mut sequencing, self.facts, budget, self.report, self.diagnostics)?
                }
                Some(launch) => {
                    check(&launch, &mut sequencing, budget)?;
                    continue;
                }
            };
            if is_chosen {
                steps::add(variant, step, does, self.report);
            }
        }
        let sequence = sequencing.finish().map_err(refused)?;
        if is_chosen {
            self.report.workspace_bytes = sequence.workspace_bytes;
        }
        Ok(())
    }
}

fn coded<'a>(
    subject: &'a Subject,
    compiler: &Compiler,
    (index, variant): (usize, &Variant),
    number: usize,
) -> Option<Coded<'a>> {
    let launch = variant.launch(number)?;
    Some(match &subject.origin {
        subject::Origin::Compiled(objects) => (compiler.of_compiled(launch, objects), &[]),
        subject::Origin::Manifest(resolved) => match resolved.draft.unit_of(index, number) {
            Some((_, unit)) => (compiler.of_manifest(resolved, unit), &unit.args),
            None => (LaunchCode::default(), &[]),
        },
    })
}

type Coded<'a> = (LaunchCode, &'a [ArgDraft]);

fn variants(
    plugin: &Plugin,
    node: &ResolvedNode,
    order: &[usize],
    chosen: Option<usize>,
    facts: &Facts<'_>,
) -> Vec<VariantReport> {
    let alignment = |tensor: u32| node.alignments.get(tensor as usize).copied();
    let (mut steps, mut of_reasons) = (Steps::default(), Steps::default());
    let row = |index: &usize| {
        let variant = plugin.variants.get(*index)?;
        let guard = variant.guard.as_ref();
        let verdict = match (guard, launch::verdict(guard, facts, &mut steps)) {
            (None, _) => GuardReport::None,
            (_, GuardVerdict::Holds) => GuardReport::Holds,
            (_, GuardVerdict::Fails) => GuardReport::Fails,
            (_, GuardVerdict::NoValue(error)) => GuardReport::NoValue(steps.why(&error)),
        };
        Some(VariantReport {
            id: variant.id,
            label: variant.label.clone(),
            guard: guard.map(|guard| guard.text.clone()),
            chosen: chosen == Some(*index),
            verdict,
            reasons: guard.map_or_else(Vec::new, |guard| {
                reasons(&guard.expr, facts, plugin, &alignment, &mut of_reasons)
            }),
        })
    };
    order.iter().filter_map(row).collect()
}
