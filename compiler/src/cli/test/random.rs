//! Tests nodes with random shapes and shrinks failures.

use std::time::{Duration, Instant};

use cubinder_launch::{Device, shape_text};
use cubinder_node::eval;
use cubinder_node::trial::shapes::{self, MOST_ELEMENTS, Sizes};
use cubinder_node::trial::{Trial, data};

use super::report::{Case, Report};
use super::supervise::{Supervisor, TrialReport};
use super::{Opened, protocol::Kind};

const SHRINKS: usize = 200;
const SHRINKING: Duration = Duration::from_secs(60);

/// Runs up to `several` nodes, until the first failure.
pub(super) fn run(
    tested: &Opened,
    base: &Trial,
    known: &[Trial],
    several: u32,
    supervisor: &mut Supervisor,
    report: &mut Report<'_>,
) {
    let plugin = &tested.subject.plugin;
    let device = supervisor.gpu().facts();
    let known: Vec<Sizes> = known.iter().filter_map(|trial| sizes(tested, trial)).collect();
    let mut without = 0;
    for number in 1..=several {
        let name = format!("random {number} of seed {}", base.seed);
        let seed = data::seed_of(base.seed, &name);
        let Some(drawn) = shapes::random(plugin, device, &known, seed) else {
            without += 1;
            continue;
        };
        let outcome = supervisor.run(&trial(tested, base, &drawn, &name, seed), None);
        // With a lost GPU these sizes did not run.
        let is_lost = kinds(&outcome).contains(&Some(Kind::GpuLost));
        let is_found = outcome.is_wrong() && !is_lost;
        let (sizes, outcome) = match is_found {
            true => shrink(tested, base, device, (drawn, outcome), (&name, seed), supervisor),
            false => (drawn, outcome),
        };
        let found = (!is_lost).then(|| text(tested, &sizes));
        report.add(Case { name, outcome, expects_refusal: false, found });
        if is_found {
            report.note("random tests end at the first failure".to_owned());
        }
        if is_found || is_lost {
            break;
        }
    }
    if without == several {
        report.fail(format!(
            "found no random shapes that the manifest allows with at most {MOST_ELEMENTS} elements per tensor; specify shapes with \
             `--shape`, or in a file of cases"
        ));
    } else if without > 0 {
        report.note(format!(
            "found no shapes that the manifest allows for {without} of {several} random nodes"
        ));
    }
}

fn sizes(tested: &Opened, trial: &Trial) -> Option<Sizes> {
    let resolved = eval::resolve_query(&tested.subject, &trial.query).ok()?;
    let variants = &tested.subject.plugin.variants;
    let row = variants.iter().position(|it| it.types == resolved.types && it.formats == resolved.formats)?;
    Some(Sizes { shapes: resolved.inputs, values: resolved.values, attributes: resolved.attributes, row })
}

fn trial(tested: &Opened, base: &Trial, sizes: &Sizes, name: &str, seed: u64) -> Trial {
    let mut query = sizes.query(&tested.subject.plugin);
    if tested.subject.attributes.is_some() {
        // Engine nodes have fixed attributes.
        query.attributes.clear();
    }
    Trial { name: name.to_owned(), query, seed, ..base.clone() }
}

fn shrink(
    tested: &Opened,
    base: &Trial,
    device: Device,
    (mut smallest, mut outcome): (Sizes, TrialReport),
    (name, seed): (&str, u64),
    supervisor: &mut Supervisor,
) -> (Sizes, TrialReport) {
    let plugin = &tested.subject.plugin;
    let mut left = SHRINKS;
    let started = Instant::now();
    // Smaller nodes would hit the same limit.
    if kinds(&outcome).iter().any(|kind| matches!(kind, Some(Kind::Timeout | Kind::Memory))) {
        return (smallest, outcome);
    }
    'smaller: loop {
        for candidate in shapes::smaller(plugin, &smallest) {
            if started.elapsed() > SHRINKING {
                return (smallest, outcome);
            }
            if !shapes::is_allowed(plugin, device, &candidate) {
                continue;
            }
            let Some(next) = left.checked_sub(1) else { return (smallest, outcome) };
            left = next;
            let tried = supervisor.run(&trial(tested, base, &candidate, name, seed), None);
            if kinds(&tried).iter().any(|kind| kinds(&outcome).contains(kind)) {
                (smallest, outcome) = (candidate, tried);
                continue 'smaller;
            }
        }
        return (smallest, outcome);
    }
}

fn kinds(outcome: &TrialReport) -> Vec<Option<Kind>> {
    let refused = outcome.refused.iter().map(|_| None);
    outcome.faults().map(|(_, fault)| Some(fault.kind)).chain(refused).collect()
}

fn text(tested: &Opened, sizes: &Sizes) -> String {
    let query = sizes.query(&tested.subject.plugin);
    let mut words: Vec<String> = Vec::new();
    for (name, shape) in &query.shapes {
        let shape = if shape.is_empty() { "scalar".to_owned() } else { shape_text(shape) };
        words.push(format!("--shape {name}={shape}"));
    }
    for (name, values) in &query.values {
        let values: Vec<String> = values.iter().map(i64::to_string).collect();
        words.push(format!("--values {name}={}", values.join(",")));
    }
    let attributes = tested.subject.plugin.attributes.iter().zip(&sizes.attributes);
    for (attribute, value) in
        attributes.filter(|(attribute, value)| attribute.default.as_ref() != Some(*value))
    {
        words.push(format!("--attr '{}={}'", attribute.name, plain(value)));
    }
    for (name, ty) in &query.types {
        words.push(format!("--type {name}={ty}"));
    }
    for (name, format) in query.formats.iter().filter(|(_, format)| format != "linear") {
        words.push(format!("--format {name}={format}"));
    }
    words.join(" ")
}

fn plain(value: &cubinder_expr::Value) -> String {
    match value {
        cubinder_expr::Value::Str(text) => text.clone(),
        other => other.to_string(),
    }
}
