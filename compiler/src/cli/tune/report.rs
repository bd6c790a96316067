//! What is shown, to people as it comes and to programs at the end.

use cubinder_launch::shape_text;
use cubinder_node::tuning::Point;
use cubinder_source::diagnostic::{Diagnostic, harmless};
use cubinder_source::reported_path::ReportedPath;
use serde_json::{Value, json};

use super::around::Unpacked;
use super::kept::Written;
use super::listed::point_json;
use super::notes;
use super::protocol::{Measurement, Timed};
use crate::cli::gpu::Opened;
use crate::cli::gpu::protocol::Gpu;
use crate::cli::obligations::failed_json;
use crate::cli::output::print;

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
    pub(super) fn end(&self, of_cases: &[String], outcome: &Outcome, errors: &[Diagnostic]) {
        let is_whole = self.is_whole && errors.is_empty();
        let mut told = notes::of_all(&self.opened.subject, &self.done, is_whole);
        told.extend(outcome.notes());
        for note in of_cases.iter().chain(&told) {
            self.show(&format!("note: {note}\n"));
        }
        let written = outcome.written();
        if let Some(Written { path, points, others, .. }) = written {
            self.show(&format!("wrote {} ({points} points; {others} others stay)\n", path.display()));
        }
        if self.json {
            let Gpu { name, capability, sms, driver_number, .. } = &self.gpu;
            let mut report = if errors.is_empty() { json!({"result": "tuned"}) } else { failed_json(errors) };
            report["file"] = json!(ReportedPath::from(&self.opened.path));
            report["device"] =
                json!({"name": name, "capability": capability, "sms": sms, "driver": driver_number});
            report["copy_gigabytes_per_second"] = self.copies.map(|rate| (rate / 1e8).round() / 10.0).into();
            report["cases"] = self.done.iter().map(done_json).collect();
            report["written"] = json!(written.map(|written| ReportedPath::from(&written.path)));
            report["notes"] = of_cases.iter().chain(&told).cloned().collect();
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
    case["bytes"] = done.measured.bytes.into();
    case["automatic"] = done.measured.automatic.into();
    case["variants"] = json!(done.measured.variants);
    case
}

/// A case for people: its variants, the fastest first.
fn table(done: &Done) -> String {
    let Done { point, measured } = done;
    let mut words: Vec<String> = point
        .query
        .types
        .iter()
        .chain(&point.query.formats)
        .map(|(name, it)| format!("{name}={it}"))
        .collect();
    words.extend(point.query.shapes.iter().map(|(name, shape)| format!("{name} {}", shape_text(shape))));
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
