//! What is measured: the cases that describe nodes which run.

use cubinder_compiler::cases::{self, Cases};
use cubinder_compiler::diagnostic::Diagnostic;
use cubinder_compiler::eval::{self, SubjectOrigin, value_json};
use cubinder_compiler::query::Query;
use cubinder_compiler::trial::Trial;
use cubinder_compiler::tuning::{self, Point};
use cubinder_launch::Device;

use super::Arguments;
use crate::cli::gpu::Opened;
use crate::cli::gpu::protocol::Gpu;
use crate::cli::gpu::shaped::{Shaped, Unshaped};

/// The cases that are measured, and what there is to say of others.
pub(super) struct All {
    list: Vec<Trial>,
    notes: Vec<String>,
}

/// A case with its node.
pub(super) struct Described {
    pub(super) trial: Trial,
    /// Without times.
    pub(super) point: Point,
}

/// The cases that say the shapes: those of the file, or those that the manifest names.
///
/// # Errors
/// Where there are none, and what is wrong with those that the manifest names.
pub(super) fn cases(arguments: &Arguments, opened: &Opened) -> Result<Cases, Vec<Diagnostic>> {
    if let Some(cases) = &opened.cases {
        return Ok(cases.clone());
    }
    let file = arguments.file.display();
    let nothing = Diagnostic::error(format!("nothing says for which shapes to measure `{file}`"));
    match eval::open(&arguments.file)?.list.first().map(|subject| &subject.origin) {
        Some(SubjectOrigin::Manifest(manifest)) => tuning::cases(manifest).unwrap_or_else(|| {
            Err(vec![nothing.help(
                "name a file of cases (docs/cases.md) in the manifest, `tune = \"FILE\"` in `[plugin]`, or give one itself",
            )])
        }),
        _ => Err(vec![nothing.help(format!("give a file of cases (docs/cases.md), and `--on {file}`"))]),
    }
}

/// Those of the cases that run and that the command line asks for.
///
/// # Errors
/// Every mistake in them, and where none is left.
pub(super) fn all(arguments: &Arguments, opened: &Opened, cases: &Cases) -> Result<All, Vec<Diagnostic>> {
    let is_wanted = |name: &str| arguments.case.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let (mut list, mut notes, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (index, case) in cases.list.iter().enumerate().filter(|(_, case)| is_wanted(&case.name)) {
        if case.is_refusal() {
            notes.push(format!("`{}` is to be refused: there is nothing to measure", case.name));
            continue;
        }
        let mistakes = cases::mistaken(cases, case, &opened.subject);
        if let (true, Some(Ok(trial))) = (mistakes.is_empty(), cases.trial(index)) {
            list.push(without_addresses(trial));
        }
        errors.extend(mistakes.into_iter().map(|it| {
            Diagnostic::error(format!("{}: {}", it.place, it.text))
                .note(format!("in the case `{}`", case.name))
        }));
    }
    if errors.is_empty() && list.is_empty() {
        let names: Vec<String> = cases.list.iter().map(|case| format!("`{}`", case.name)).collect();
        let part = arguments.case.as_ref().map(|part| format!(" whose name contains `{part}`"));
        errors.push(
            Diagnostic::error(format!("there is no case{} to measure", part.unwrap_or_default()))
                .note(format!("the cases are {}", names.join(", "))),
        );
    }
    if errors.is_empty() { Ok(All { list, notes }) } else { Err(errors) }
}

/// Addresses are what memory gives: the best ones. A reference is not asked.
fn without_addresses(trial: Trial) -> Trial {
    let query = Query { aligned: Vec::new(), ..trial.query };
    Trial { query, reference: None, outputs: Vec::new(), ..trial }
}

/// The nodes as a file of tuning describes them, without times. Cases that describe a node once more are left out.
///
/// # Errors
/// What the runtime would refuse.
pub(super) fn described(
    opened: &Opened,
    all: All,
    gpu: &Gpu,
) -> Result<(Vec<Described>, Vec<String>), Vec<Diagnostic>> {
    let device = Device { sms: gpu.sms, shared_bytes: gpu.shared_bytes, capability: gpu.number };
    let All { list, mut notes } = all;
    let (mut described, mut errors) = (Vec::<Described>::new(), Vec::new());
    for trial in list {
        match Shaped::new(&opened.subject, &trial.query, device) {
            Ok(node) => {
                let point = point(&node, &trial.name);
                match described.iter().find(|known| tuning::is_same_node(&known.point, &point)) {
                    Some(known) => {
                        notes.push(format!("`{}` is the same node as `{}`", trial.name, known.trial.name));
                    }
                    None => described.push(Described { trial, point }),
                }
            }
            Err(Unshaped::Mistaken(mistakes)) => errors.extend(mistakes),
            Err(Unshaped::Refused(why)) => {
                let error = format!("the case `{}` cannot be measured: it is refused: {why}", trial.name);
                errors.push(Diagnostic::error(error));
            }
        }
    }
    if errors.is_empty() { Ok((described, notes)) } else { Err(errors) }
}

fn point(node: &Shaped<'_>, case: &str) -> Point {
    let plugin = node.plugin;
    let inputs = || plugin.inputs.iter().map(|input| input.name.clone());
    let attributes = plugin.attributes.iter().map(|attribute| attribute.name.clone());
    let values = plugin.inputs.iter().zip(&node.stated.values);
    Point {
        plugin: plugin.full_name(),
        version: plugin.version.clone(),
        case: Some(case.to_owned()),
        types: node.stated.type_parameters.clone(),
        formats: node.stated.format_parameters.clone(),
        attributes: attributes.zip(node.stated.attributes.iter().cloned()).collect(),
        shapes: inputs().zip(node.stated.inputs.iter().cloned()).collect(),
        values: values
            .filter(|(input, _)| input.values.is_some())
            .map(|(input, held)| (input.name.clone(), held.clone()))
            .collect(),
        code: None,
        microseconds: Vec::new(),
    }
}

/// A point's node for programs.
pub(super) fn point_json(point: &Point) -> serde_json::Map<String, serde_json::Value> {
    let mut node = serde_json::Map::new();
    let strings = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, it)| (name.clone(), it.as_str().into())).collect()
    };
    let lists = |pairs: &[(String, Vec<i64>)]| {
        pairs.iter().map(|(name, list)| (name.clone(), list.as_slice().into())).collect()
    };
    node.insert("case".to_owned(), point.case.clone().into());
    node.insert("plugin".to_owned(), point.plugin.clone().into());
    node.insert("version".to_owned(), point.version.clone().into());
    node.insert("types".to_owned(), serde_json::Value::Object(strings(&point.types)));
    node.insert("formats".to_owned(), serde_json::Value::Object(strings(&point.formats)));
    let attributes = point.attributes.iter().map(|(name, value)| (name.clone(), value_json(value)));
    node.insert("attributes".to_owned(), serde_json::Value::Object(attributes.collect()));
    node.insert("shapes".to_owned(), serde_json::Value::Object(lists(&point.shapes)));
    node.insert("values".to_owned(), serde_json::Value::Object(lists(&point.values)));
    node
}
