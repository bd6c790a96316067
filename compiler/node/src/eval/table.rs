use std::fmt::Write as _;

use cubinder_expr::Value;
use cubinder_launch::shape_text;
use cubinder_source::words::{counted, size};

use super::guard::Reason;
use super::report::{
    ArgReport, AttributeReport, Check, Evaluation, FactOrigin, FactReport, GuardReport, LaunchReport,
    OccupancyReport, Origin, Report, ScratchReport, StepDoes, StepReport, TensorReport, VariantReport,
};
use crate::columns::columns;
use crate::diagnostic::harmless;

/// Elements per value.
const SHOWN: usize = 16;

/// Formats the report, escaping control characters.
#[must_use]
pub fn table(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.file, report.kind);
    for evaluation in &report.evaluations {
        text.push('\n');
        text.push_str(&evaluation_table(evaluation));
    }
    harmless(&text, false)
}

fn evaluation_table(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    if let Some((number, count)) = evaluation.node {
        let _ = write!(text, "node {number} of {count}, ");
    }
    let _ = writeln!(text, "plugin {}, version {}", evaluation.plugin, evaluation.version);
    let of_types = evaluation.types.iter().map(|it| parameter(&it.name, it.ty, &it.others));
    section(&mut text, "types", of_types);
    let of_formats = evaluation.formats.iter().map(|it| parameter(&it.name, it.format, &it.others));
    section(&mut text, "formats", of_formats);
    section(&mut text, "attributes", evaluation.attributes.iter().map(attribute));
    section(&mut text, "device", evaluation.device.iter().map(fact));
    section(&mut text, "tensors", evaluation.tensors.iter().map(tensor));
    let check =
        |check: &Check| vec![if check.holds { "holds" } else { "fails" }.to_owned(), check.text.clone()];
    section(&mut text, "checks", evaluation.checks.iter().map(check));
    section(&mut text, "variants", evaluation.variants.iter().flat_map(variant));
    section(&mut text, "scratch", scratch(evaluation));
    section(&mut text, "steps", evaluation.steps.iter().enumerate().map(step));
    for (index, found) in evaluation.launches.iter().enumerate() {
        let number = if evaluation.launches.len() > 1 { format!(" {}", index + 1) } else { String::new() };
        let _ = writeln!(text, "  launch{number}: {}", found.kernel);
        text.push_str(&launch(found, &evaluation.tensors));
    }
    for note in &evaluation.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    if let Some(why) = &evaluation.refused {
        let _ = writeln!(text, "  rejected: {}", why.replace('\n', "\n    "));
    }
    text
}

fn section(text: &mut String, title: &str, rows: impl IntoIterator<Item = Vec<String>>) {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    if !rows.is_empty() {
        let _ = writeln!(text, "  {title}");
        text.push_str(&columns(&rows, 4, &[]));
    }
}

fn parameter(name: &str, is: &str, others: &[&str]) -> Vec<String> {
    let others = if others.is_empty() { String::new() } else { format!("or {}", others.join(", ")) };
    vec![name.to_owned(), is.to_owned(), others]
}

fn attribute(attribute: &AttributeReport) -> Vec<String> {
    let from = match attribute.from {
        Origin::Given => "given",
        Origin::Default => "default",
        Origin::Engine => "from the node",
    };
    vec![attribute.name.clone(), attribute.ty.to_owned(), value(&attribute.value), from.to_owned()]
}

fn fact(fact: &FactReport) -> Vec<String> {
    let from = match fact.from {
        FactOrigin::Given => "specified",
        FactOrigin::Arch => "from the architecture",
    };
    vec![fact.name.to_owned(), fact.value.to_string(), from.to_owned()]
}

fn tensor(tensor: &TensorReport) -> Vec<String> {
    let shape = if tensor.shape.is_empty() { "scalar".to_owned() } else { shape_text(&tensor.shape) };
    let unknown = match tensor.shape.iter().any(|extent| *extent < 0) {
        true => "data-dependent",
        false => "2^64 elements or more",
    };
    let elements = tensor.elements.map_or_else(|| unknown.to_owned(), |n| counted(n, "element"));
    let held = tensor.values.iter().map(|values| {
        let shown = values.iter().take(SHOWN).map(i64::to_string).collect::<Vec<_>>().join(", ");
        let more = if values.len() > SHOWN { ", ..." } else { "" };
        format!("values [{shown}{more}]")
    });
    let shares = tensor.alias.iter().map(|alias| format!("in the memory of {alias}"));
    let more: Vec<String> = held.chain(shares).collect();
    vec![
        tensor.name.clone(),
        tensor.role.to_owned(),
        if tensor.format == "linear" {
            tensor.ty.to_owned()
        } else {
            format!("{} {}", tensor.ty, tensor.format)
        },
        shape,
        elements,
        tensor.bytes.map_or_else(|| "-".to_owned(), size),
        format!("aligned to {}", tensor.alignment),
        more.join(", "),
    ]
}

fn variant(variant: &VariantReport) -> Vec<Vec<String>> {
    let name = format!("{} {}", variant.id, variant.label).trim_end().to_owned();
    let guard = variant.guard.as_deref().unwrap_or_default();
    let verdict = match (&variant.verdict, variant.chosen) {
        (GuardReport::None, true) => "selected: no guard".to_owned(),
        (GuardReport::None, false) => "can run, but an earlier variant is selected".to_owned(),
        (GuardReport::Holds, true) => format!("selected: `{guard}` is true"),
        (GuardReport::Holds, false) => {
            format!("can run, but an earlier variant is selected: `{guard}` is true")
        }
        (GuardReport::Fails, _) => format!("rejected: `{guard}` is false"),
        (GuardReport::NoValue(why), _) => format!("rejected: `{guard}` is undefined: {why}"),
    };
    let mut rows = vec![vec![name, verdict]];
    if !matches!(variant.verdict, GuardReport::None | GuardReport::NoValue(_)) {
        let reason =
            |reason: &Reason| vec![String::new(), format!("  `{}` is {}", reason.text, reason.found)];
        rows.extend(variant.reasons.iter().map(reason));
    }
    rows
}

fn scratch(evaluation: &Evaluation) -> Vec<Vec<String>> {
    let row = |scratch: &ScratchReport| {
        vec![scratch.name.clone(), size(scratch.bytes), format!("at {}", scratch.offset)]
    };
    let all = (evaluation.workspace_bytes > 0)
        .then(|| vec!["total".to_owned(), size(evaluation.workspace_bytes), "of workspace".to_owned()]);
    evaluation.scratch.iter().map(row).chain(all).collect()
}

fn step((index, step): (usize, &StepReport)) -> Vec<String> {
    let when = step.when.as_ref().map(|when| when.split_whitespace().collect::<Vec<_>>().join(" "));
    let (what, verdict) = match &step.does {
        StepDoes::Launch { launch } => (format!("launch {}", launch + 1), "is true"),
        StepDoes::Fill { memory, bytes, byte } => {
            (format!("fill {memory} with {byte}, {}", size(*bytes)), "is true")
        }
        StepDoes::LeftOut { what } => (format!("skipped: {what}"), "is false"),
    };
    let when = when.map_or_else(String::new, |when| format!("`{when}` {verdict}"));
    vec![format!("{}", index + 1), what, when]
}

fn launch(launch: &LaunchReport, tensors: &[TensorReport]) -> String {
    let mut rows = Vec::new();
    if launch.empty {
        rows.push(vec!["nothing".to_owned(), why_nothing(launch, tensors)]);
    } else if let (Some(grid), Some(block)) = (launch.grid, launch.block) {
        let threads: u64 = block.into_iter().map(u64::from).product();
        rows.push(vec!["grid".to_owned(), extents(grid), counted(launch.blocks, "block")]);
        let all = format!("{} per block, {} in total", counted(threads, "thread"), launch.threads);
        rows.push(vec!["block".to_owned(), extents(block), all]);
        rows.push(vec![
            "shared".to_owned(),
            size(launch.shared_bytes.into()),
            "dynamic, per block".to_owned(),
        ]);
    }
    if let Some(cluster) = launch.cluster {
        let blocks: u64 = cluster.into_iter().map(u64::from).product();
        rows.push(vec!["cluster".to_owned(), extents(cluster), counted(blocks, "block")]);
    }
    if launch.cooperative {
        rows.push(vec!["cooperative".to_owned(), "all blocks run simultaneously".to_owned()]);
    }
    if launch.programmatic {
        rows.push(vec!["programmatic".to_owned(), "may start before the previous step ends".to_owned()]);
    }
    let mut text = columns(&rows, 4, &[]);
    let args: Vec<_> = launch.args.iter().map(arg).collect();
    let occupancy: Vec<_> = launch.occupancy.iter().map(occupancy).collect();
    for (title, rows) in [("arguments", args), ("occupancy", occupancy)] {
        if !rows.is_empty() {
            text.push_str(&format!("    {title}\n{}", columns(&rows, 6, &[])));
        }
    }
    text
}

fn why_nothing(launch: &LaunchReport, tensors: &[TensorReport]) -> String {
    let grid = launch.grid.unwrap_or_default();
    let zero = ["x", "y", "z"].into_iter().zip(grid).find(|(_, extent)| *extent == 0);
    let is_empty = |tensor: &&TensorReport| tensor.role == "output" && tensor.elements == Some(0);
    let because = tensors.iter().find(is_empty).map(|tensor| format!(", and `{}` is empty", tensor.name));
    let axis = zero.map_or("x", |(axis, _)| axis);
    format!("grid {axis} is 0{}: nothing is launched", because.unwrap_or_default())
}

fn arg(arg: &ArgReport) -> Vec<String> {
    let shown = match (&arg.tensor, &arg.value) {
        (Some(tensor), _) => tensor.clone(),
        (None, Some(found)) => value(found),
        (None, None) => "no value".to_owned(),
    };
    vec![arg.name.clone(), arg.ty.clone().unwrap_or_else(|| "?".to_owned()), shown]
}

fn occupancy(report: &OccupancyReport) -> Vec<String> {
    let found = &report.occupancy;
    let limits: Vec<&str> = found.limited_by.iter().map(|limiter| limiter.name()).collect();
    let code =
        if report.code == report.arch { String::new() } else { format!(" (code for {})", report.code) };
    vec![
        format!("{}{code}", report.arch),
        format!("{} per multiprocessor", counted(found.blocks, "block")),
        format!("{} of {} warps", found.warps, found.most_warps),
        format!("limited by {}", limits.join(", ")),
        format!(
            "{}, {} static shared",
            counted(report.registers, "register"),
            size(report.static_shared_bytes.into())
        ),
    ]
}

fn extents([x, y, z]: [u32; 3]) -> String {
    format!("{x} x {y} x {z}")
}

fn value(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() > SHOWN => {
            let shown: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
            format!("[{}, ... {} more]", shown.join(", "), items.len() - SHOWN)
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;
    use crate::eval::{Compiler, Environment, evaluate, manifest};
    use crate::query::{Part, Query};

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = include_str!("../../../../manifests/elemwise_add_plugin.toml");
        let mut subject = manifest(&Source::new("add.toml", text)).unwrap().list.swap_remove(0);
        subject.plugin.version = "1\u{1b}[2J\0\u{9b}31m".to_owned();
        let (shapes, attributes) = (["inp0=2x3".to_owned()], ["block_size=256".to_owned()]);
        let query = Query::parse(&[(Part::Shape, &shapes), (Part::Attribute, &attributes)]).unwrap();
        let outcome = evaluate(&subject, &query, &Compiler::new(Environment::default())).unwrap();
        let evaluations = vec![outcome.evaluation];
        let text = super::table(&Report {
            file: crate::reported_path::ReportedPath::from("engine"),
            kind: "engine",
            evaluations,
        });
        assert!(text.contains("version 1\\u{1b}[2J\\u{0}\\u{9b}31m\n"), "{text:?}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}
