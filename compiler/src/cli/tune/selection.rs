use std::path::Path;

use cubinder_gpu::DeviceInfo;
use cubinder_node::cases::{self, Cases};
use cubinder_node::eval::{self, SubjectOrigin, value_json};
use cubinder_node::query::{Query, RawAttributeValue};
use cubinder_node::trial::Trial;
use cubinder_node::tuning::{self, Point};
use cubinder_source::diagnostic::Diagnostic;
use serde_json::{Map, Value, json};

use super::Arguments;
use crate::cli::gpu::Opened;
use crate::cli::gpu::shaped::{ShapeError, Shaped};

pub(super) struct Selection {
    list: Vec<Trial>,
    notes: Vec<String>,
}

pub(super) struct DescribedNode {
    pub(super) trial: Trial,
    pub(super) point: Point,
}

pub(super) fn cases(file: &Path, opened: &Opened) -> Result<Cases, Vec<Diagnostic>> {
    if let Some(cases) = &opened.cases {
        return Ok(cases.clone());
    }
    let nothing = Diagnostic::error(format!("no cases with shapes to measure for `{}`", file.display()));
    match eval::open(file)?.list.first().map(|subject| &subject.origin) {
        Some(SubjectOrigin::Manifest(manifest)) => tuning::cases(manifest).unwrap_or_else(|| {
            Err(vec![nothing.help(
                "set `tune = \"FILE\"` in `[plugin]` to a file of cases (docs/cases.md), or pass the file of cases",
            )])
        }),
        _ => Err(vec![nothing.help(format!("pass a file of cases (docs/cases.md), and `--on {}`", file.display()))]),
    }
}

pub(super) fn select(
    arguments: &Arguments,
    opened: &Opened,
    cases: &Cases,
) -> Result<Selection, Vec<Diagnostic>> {
    let (mut list, mut notes, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases.list.iter().filter(|case| is_wanted(arguments, &case.name)) {
        if case.is_refusal() {
            notes.push(format!("`{}` was skipped: it expects a rejection", case.name));
            continue;
        }
        let mistakes = cases::mistaken(cases, case, &opened.subject);
        if let (true, Ok(trial)) = (mistakes.is_empty(), cases.trial(case)) {
            list.push(without_addresses(trial));
        }
        let note = format!("in the case `{}`", case.name);
        errors.extend(mistakes.iter().map(|it| Diagnostic::error(it.to_string()).note(note.clone())));
    }
    if errors.is_empty() && list.is_empty() {
        let part = arguments.case.as_ref().map(|part| format!(" whose name contains `{part}`"));
        errors.push(
            Diagnostic::error(format!("no case{} to measure", part.unwrap_or_default()))
                .note(format!("the cases are {}", cases.names())),
        );
    }
    if errors.is_empty() { Ok(Selection { list, notes }) } else { Err(errors) }
}

pub(super) fn is_wanted(arguments: &Arguments, name: &str) -> bool {
    arguments.case.as_ref().is_none_or(|part| name.contains(part.as_str()))
}

/// Alignments and reference do not affect times.
fn without_addresses(trial: Trial) -> Trial {
    let query = Query { aligned: Vec::new(), ..trial.query };
    Trial { query, reference: None, outputs: Vec::new(), ..trial }
}

/// Removes duplicates; rejects nodes that the runtime would refuse.
pub(super) fn describe_nodes(
    opened: &Opened,
    selected: Selection,
    gpu: &DeviceInfo,
) -> Result<(Vec<DescribedNode>, Vec<String>), Vec<Diagnostic>> {
    let Selection { list, mut notes } = selected;
    let (mut described, mut errors) = (Vec::<DescribedNode>::new(), Vec::new());
    for trial in list {
        match Shaped::new(&opened.subject, &trial.query, gpu.facts()) {
            Ok(node) => {
                let point = point(&node, &trial.name);
                match described.iter().find(|known| tuning::is_same_node(&known.point, &point)) {
                    Some(known) => {
                        notes.push(format!(
                            "`{}` was skipped: its node equals `{}`",
                            trial.name, known.trial.name
                        ));
                    }
                    None => described.push(DescribedNode { trial, point }),
                }
            }
            Err(ShapeError::Mistaken(mistakes)) => errors.extend(mistakes),
            Err(ShapeError::Refused(why)) => {
                let error = format!("cannot measure the case `{}`: rejected: {why}", trial.name);
                errors.push(Diagnostic::error(error));
            }
        }
    }
    if errors.is_empty() { Ok((described, notes)) } else { Err(errors) }
}

fn point(node: &Shaped<'_>, case: &str) -> Point {
    let (plugin, resolved) = (node.plugin, &node.resolved);
    let inputs = || plugin.inputs.iter().map(|input| input.name.clone());
    let attributes = plugin.attributes.iter().zip(&resolved.attributes);
    let values = plugin.inputs.iter().zip(&resolved.values).filter(|(input, _)| input.values.is_some());
    let query = Query {
        types: resolved.type_parameters.iter().map(|it| (it.name.clone(), it.ty.to_owned())).collect(),
        formats: resolved
            .format_parameters
            .iter()
            .map(|it| (it.name.clone(), it.format.to_owned()))
            .collect(),
        attributes: attributes
            .map(|(it, value)| (it.name.clone(), RawAttributeValue::Value(value.clone())))
            .collect(),
        shapes: inputs().zip(resolved.inputs.iter().cloned()).collect(),
        values: values.map(|(input, held)| (input.name.clone(), held.clone())).collect(),
        ..Query::default()
    };
    Point {
        plugin: plugin.full_name(),
        version: plugin.version.clone(),
        case: Some(case.to_owned()),
        query,
        ..Point::default()
    }
}

pub(super) fn point_json(point: &Point) -> Value {
    fn object<T>(pairs: &[(String, T)], value: impl Fn(&T) -> Value) -> Value {
        pairs.iter().map(|(name, it)| (name.clone(), value(it))).collect::<Map<_, _>>().into()
    }
    let Point { plugin, version, case, query, .. } = point;
    let attribute = |given: &RawAttributeValue| match given {
        RawAttributeValue::Text(text) => text.as_str().into(),
        RawAttributeValue::Value(value) => value_json(value),
    };
    json!({
        "case": case,
        "plugin": plugin,
        "version": version,
        "types": object(&query.types, |ty| ty.as_str().into()),
        "formats": object(&query.formats, |format| format.as_str().into()),
        "attributes": object(&query.attributes, attribute),
        "shapes": object(&query.shapes, |shape| shape.as_slice().into()),
        "values": object(&query.values, |values| values.as_slice().into()),
    })
}
