//! What is shown, to people as it comes and to programs at the end.

use std::collections::BTreeSet;

use cubinder_bundle::Plugin;
use cubinder_bundle::launch::shape_text;
use cubinder_compiler::diagnostic::{Diagnostic, harmless};
use cubinder_compiler::tuning::Point;
use serde_json::{Value, json};

use super::around::Unpacked;
use super::kept::Written;
use super::listed::point_json;
use super::protocol::{Measurement, Timed};
use crate::cli::gpu::Opened;
use crate::cli::gpu::protocol::Gpu;
use crate::cli::obligations::failed_json;
use crate::cli::output::print;

/// How far behind the fastest a variant may be and still count as one of the fastest: what is less is noise.
const ALIKE: f64 = 1.01;

/// How far the upper quartile of the times of a variant may be above the lower one, before something else seems to use the device.
const STEADY: f64 = 1.05;

/// A case that was measured.
pub(super) struct Done {
    pub(super) point: Point,
    pub(super) measured: Measurement,
}

/// What became of what was measured.
pub(super) enum Outcome {
    /// No file was asked for.
    Unasked,
    Written(Written),
    /// Nothing was written, and why.
    Nothing(&'static str),
}

impl Outcome {
    fn written(&self) -> Option<&Written> {
        match self {
            Outcome::Written(written) => Some(written),
            Outcome::Unasked | Outcome::Nothing(_) => None,
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Outcome::Unasked => Vec::new(),
            Outcome::Nothing(why) => vec![format!("nothing was written: {why}")],
            Outcome::Written(written) => {
                let notes = gone_note(written).into_iter().chain(unpacked_note(written));
                notes.chain(alike_notes(written)).collect()
            }
        }
    }
}

/// What is shown of a run of the command.
pub(super) struct Report<'a> {
    json: bool,
    /// Whether all cases are measured.
    is_whole: bool,
    opened: &'a Opened,
    gpu: Gpu,
    /// Bytes a second.
    copies: Option<f64>,
    done: Vec<Done>,
}

impl<'a> Report<'a> {
    pub(super) fn new(json: bool, is_whole: bool, opened: &'a Opened, gpu: Gpu) -> Report<'a> {
        Report { json, is_whole, opened, gpu, copies: None, done: Vec::new() }
    }

    pub(super) fn begin(&self) {
        let Gpu { name, capability, driver, .. } = &self.gpu;
        let path = self.opened.path.display();
        self.show(&format!("{path} on {name} ({capability}, driver for CUDA {driver})\n"));
    }

    pub(super) fn copies(&mut self, rate: Option<f64>) {
        self.copies = rate;
        if let Some(rate) = rate {
            self.show(&format!("it copies {:.0} GB/s within its memory, read and written\n", rate / 1e9));
        }
    }

    pub(super) fn add(&mut self, done: Done) {
        self.show(&table(&done));
        self.done.push(done);
    }

    /// What was measured, as a file of tuning keeps it. Where nothing is launched there is nothing to keep.
    pub(super) fn points(&self) -> Vec<Point> {
        let times = |done: &Done| {
            done.measured.variants.iter().map(|timed| (timed.variant, timed.microseconds)).collect()
        };
        let point = |done: &Done| Point {
            microseconds: times(done),
            code: Some(done.measured.code.clone()),
            ..done.point.clone()
        };
        self.done.iter().map(point).filter(|point| !point.microseconds.is_empty()).collect()
    }

    /// What there is to say of all together; `errors` have been told.
    pub(super) fn end(&self, notes: &[String], outcome: &Outcome, errors: &[Diagnostic]) {
        let is_whole = self.is_whole && errors.is_empty();
        let mut told = told(&self.opened.subject.plugin, &self.done, is_whole);
        told.extend(outcome.notes());
        for note in notes.iter().chain(&told) {
            self.show(&format!("note: {note}\n"));
        }
        let written = outcome.written();
        if let Some(Written { path, points, others, .. }) = written {
            self.show(&format!("wrote {} ({points} points; {others} others stay)\n", path.display()));
        }
        if self.json {
            let Gpu { name, capability, sms, driver_number, .. } = &self.gpu;
            let mut report = if errors.is_empty() { json!({"result": "tuned"}) } else { failed_json(errors) };
            report["file"] = self.opened.path.display().to_string().into();
            report["device"] =
                json!({"name": name, "capability": capability, "sms": sms, "driver": driver_number});
            report["copy_gigabytes_per_second"] = self.copies.map(|rate| (rate / 1e8).round() / 10.0).into();
            report["cases"] = self.done.iter().map(done_json).collect();
            report["written"] = written.map(|written| written.path.display().to_string()).into();
            report["notes"] = notes.iter().chain(&told).cloned().collect();
            print(&(report.to_string() + "\n"));
        }
    }

    fn show(&self, text: &str) {
        if !self.json {
            print(&harmless(text, false));
        }
    }
}

fn done_json(done: &Done) -> Value {
    let mut case = point_json(&done.point);
    case.insert("bytes".to_owned(), done.measured.bytes.into());
    case.insert("automatic".to_owned(), done.measured.automatic.into());
    case.insert("variants".to_owned(), json!(done.measured.variants));
    Value::Object(case)
}

/// A case for people: its variants, the fastest first.
fn table(done: &Done) -> String {
    let Done { point, measured } = done;
    let mut words: Vec<String> =
        point.types.iter().chain(&point.formats).map(|(name, it)| format!("{name}={it}")).collect();
    words.extend(point.shapes.iter().map(|(name, shape)| format!("{name} {}", shape_text(shape))));
    let mut text = format!("\n{}: {}\n", point.case.as_deref().unwrap_or_default(), words.join(", "));
    let ranking = measured.ranking();
    let Some(best) = ranking.first().map(|timed| timed.microseconds) else {
        return text + "  nothing is launched\n";
    };
    text.push_str(&format!("  {:>7}  {:>11}  {:>6}  {:>7}\n", "variant", "us", "ratio", "GB/s"));
    for timed in ranking {
        let Timed { variant, label, microseconds, .. } = timed;
        #[allow(clippy::cast_precision_loss)] // far below 2^52
        let rate = measured.bytes as f64 / microseconds / 1000.0;
        let taken = if *variant == measured.automatic { "  <- taken now" } else { "" };
        let ratio = microseconds / best;
        text.push_str(
            format!("  {variant:>7}  {microseconds:>11.3}  {ratio:>6.2}  {rate:>7.0}  {label}{taken}")
                .trim_end(),
        );
        text.push('\n');
    }
    text
}

/// That points went which nothing could pack any more.
fn gone_note(written: &Written) -> Option<String> {
    let versions: Vec<String> = written.gone.iter().map(|version| format!("`{version}`")).collect();
    let plural = if versions.len() == 1 { "" } else { "s" };
    let what = format!("what was measured of version{plural} {} went", versions.join(", "));
    (!versions.is_empty()).then(|| format!("{what}: no manifest has it any more"))
}

/// How what was written is packed, where nothing does so yet.
fn unpacked_note(written: &Written) -> Option<String> {
    let path = written.path.display();
    Some(match written.unpacked.as_ref()? {
        Unpacked::Unnamed { config, patterns } => {
            let patterns: Vec<String> = patterns.iter().map(|pattern| format!("\"{pattern}\"")).collect();
            format!(
                "`{}` does not name the file, so that nothing packs it: `tuning = [{}]` in its `[library]` does",
                config.display(),
                patterns.join(", ")
            )
        }
        Unpacked::Alone(Some(manifest)) => format!(
            "no `cubinder.toml` names the file: `cubinder compile {} ... --tuning {path}` packs it",
            manifest.display()
        ),
        Unpacked::Alone(None) => {
            format!("no `cubinder.toml` names the file: `cubinder compile ... --tuning {path}` packs it")
        }
    })
}

/// That what was written is packed together with what was measured on other GPUs.
fn alike_notes(written: &Written) -> impl Iterator<Item = String> {
    written.alike.iter().map(|(path, name)| {
        format!(
            "`{}` is of {name}, which counts as this GPU: of points that are as near, those of the file that is named first are taken",
            path.display()
        )
    })
}

/// What all cases together tell; some of them, which variants could go, do not.
fn told(plugin: &Plugin, done: &[Done], is_whole: bool) -> Vec<String> {
    let mut notes: Vec<String> = taken_note(done).into_iter().chain(spread_note(done)).collect();
    let measured = |id: i32| {
        done.iter().filter(move |done| done.measured.variants.iter().any(|timed| timed.variant == id))
    };
    if !is_whole {
        return notes;
    }
    // An id has a row for each type.
    let ids: BTreeSet<i32> = plugin.variants.iter().map(|variant| variant.id).collect();
    for id in ids {
        let is_never = measured(id).next().is_some() && measured(id).all(|done| !is_among_fastest(done, id));
        if is_never && !is_last_resort(plugin, id) {
            notes.push(format!("variant {id} is never the fastest: consider removing it"));
        }
    }
    notes
}

/// How good is what is taken now.
fn taken_note(done: &[Done]) -> Option<String> {
    let ratio = |done: &Done| {
        let best = done.measured.ranking().first()?.microseconds;
        let taken = done.measured.variants.iter().find(|timed| timed.variant == done.measured.automatic)?;
        Some(taken.microseconds / best)
    };
    let ratios: Vec<(f64, &Done)> = done.iter().filter_map(|done| Some((ratio(done)?, done))).collect();
    let right = ratios.iter().filter(|(ratio, _)| *ratio <= ALIKE).count();
    let (worst, case) = ratios.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let mut note = format!("what is taken now is one of the fastest in {right} of {} cases", ratios.len());
    if *worst > ALIKE {
        let name = case.point.case.as_deref().unwrap_or_default();
        note.push_str(&format!("; at worst, in `{name}`, it lasts {worst:.2} times as long"));
    }
    Some(note)
}

/// That times are far apart.
fn spread_note(done: &[Done]) -> Option<String> {
    let spread = |timed: &Timed| timed.upper_quartile / timed.lower_quartile;
    let worst = |done: &Done| done.measured.variants.iter().map(spread).max_by(f64::total_cmp);
    let all: Vec<(f64, &Done)> = done.iter().filter_map(|done| Some((worst(done)?, done))).collect();
    let unsteady = all.iter().filter(|(spread, _)| *spread > STEADY).count();
    let (worst, case) = all.iter().max_by(|one, other| one.0.total_cmp(&other.0)).filter(|_| unsteady > 0)?;
    Some(format!(
        "in {unsteady} of {} cases half of a variant's times are more than {:.0} % apart, at most {:.0} %, in `{}`: something else may use the GPU",
        all.len(),
        (STEADY - 1.0) * 100.0,
        (worst - 1.0) * 100.0,
        case.point.case.as_deref().unwrap_or_default()
    ))
}

fn is_among_fastest(done: &Done, id: i32) -> bool {
    let best = done.measured.ranking().first().map(|timed| timed.microseconds);
    let own = done.measured.variants.iter().find(|timed| timed.variant == id).map(|timed| timed.microseconds);
    best.zip(own).is_some_and(|(best, own)| own <= best * ALIKE)
}

/// Whether a variant is the last that its types, formats and attributes have: it serves what the guards of the others refuse.
fn is_last_resort(plugin: &Plugin, id: i32) -> bool {
    let Some(own) = plugin.variants.iter().find(|variant| variant.id == id) else { return false };
    let alike = |other: &&cubinder_bundle::Variant| {
        other.types == own.types && other.formats == own.formats && other.specialized == own.specialized
    };
    plugin.variants.iter().rfind(alike).is_some_and(|last| last.id == id)
}
