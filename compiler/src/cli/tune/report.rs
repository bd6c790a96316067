use cubinder_gpu::DeviceInfo;
use cubinder_gpu::measure::Timing;
use cubinder_gpu::timing::Spread;
use cubinder_launch::shape_text;
use cubinder_node::tuning::Point;
use cubinder_source::diagnostic::{Diagnostic, harmless};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::words::{counted, quoted};
use serde_json::{Value, json};

use super::notes::{self, MeasuredCase, ranking};
use super::output::Written;
use super::project::Unpacked;
use super::selection::point_json;
use crate::cli::gpu::Opened;
use crate::cli::gpu::protocol::heading;
use crate::cli::obligations::failed_json;
use crate::cli::output::print;

/// The written file, or why none; `None` in a dry run.
pub(super) type TuningResult = Option<Result<Written, &'static str>>;

pub(super) struct Report<'a> {
    json: bool,
    is_whole: bool,
    opened: &'a Opened,
    gpu: DeviceInfo,
    /// Bytes per second.
    copies: Option<f64>,
    done: Vec<MeasuredCase>,
}

impl<'a> Report<'a> {
    pub(super) fn new(json: bool, is_whole: bool, opened: &'a Opened, gpu: DeviceInfo) -> Report<'a> {
        Report { json, is_whole, opened, gpu, copies: None, done: Vec::new() }
    }

    pub(super) fn begin(&self) {
        self.show(&heading(&self.gpu, &self.opened.path));
    }

    pub(super) fn copies(&mut self, rate: Option<f64>) {
        self.copies = rate;
        if let Some(rate) = rate {
            self.show(&format!("copies in device memory: {:.0} GB/s, reads plus writes\n", rate / 1e9));
        }
    }

    pub(super) fn add(&mut self, done: MeasuredCase) {
        self.show(&table(&done));
        self.done.push(done);
    }

    /// Skips measurements without launches.
    pub(super) fn points(&self) -> Vec<Point> {
        let time = |timed: &Timing| (timed.variant, timed.microseconds.median);
        let point = |done: &MeasuredCase| Point {
            microseconds: done.measured.variants.iter().map(time).collect(),
            ..done.point.clone()
        };
        self.done.iter().map(point).filter(|point| !point.microseconds.is_empty()).collect()
    }

    /// `errors` are already shown.
    pub(super) fn end(&self, of_cases: &[String], outcome: &TuningResult, errors: &[Diagnostic]) {
        let is_whole = self.is_whole && errors.is_empty();
        let mut notes = notes::of_all(&self.opened.subject, &self.done, is_whole);
        let written = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
        notes.extend(outcome_notes(outcome));
        for note in of_cases.iter().chain(&notes) {
            self.show(&format!("note: {note}\n"));
        }
        written.into_iter().for_each(|written| self.show(&summary(written)));
        if self.json {
            let DeviceInfo { name, capability, sms, driver, .. } = &self.gpu;
            let mut report = if errors.is_empty() { json!({"result": "tuned"}) } else { failed_json(errors) };
            report["file"] = json!(ReportedPath::from(&self.opened.path));
            report["device"] =
                json!({"name": name, "capability": capability.to_string(), "sms": sms, "driver": driver});
            report["copy_gigabytes_per_second"] = self.copies.map(|rate| (rate / 1e8).round() / 10.0).into();
            report["cases"] = self.done.iter().map(done_json).collect();
            report["written"] = json!(written.map(|written| ReportedPath::from(&written.path)));
            report["notes"] = of_cases.iter().chain(&notes).cloned().collect();
            print(&(report.to_string() + "\n"));
        }
    }

    fn show(&self, text: &str) {
        if !self.json {
            print(&harmless(text, false));
        }
    }
}

fn done_json(done: &MeasuredCase) -> Value {
    let mut case = point_json(&done.point);
    case["bytes"] = done.measured.bytes.into();
    case["automatic"] = done.measured.automatic.into();
    case["variants"] = json!(done.measured.variants);
    case
}

fn table(done: &MeasuredCase) -> String {
    let MeasuredCase { point, measured } = done;
    let mut words: Vec<String> = point
        .query
        .types
        .iter()
        .chain(&point.query.formats)
        .map(|(name, it)| format!("{name}={it}"))
        .collect();
    words.extend(point.query.shapes.iter().map(|(name, shape)| format!("{name} {}", shape_text(shape))));
    let mut text = format!("\n{}: {}\n", point.case.as_deref().unwrap_or_default(), words.join(", "));
    let ranking = ranking(measured);
    let Some(best) = ranking.first().map(|timed| timed.microseconds.median) else {
        return text + "  no launches\n";
    };
    text.push_str(&format!("  {:>7}  {:>11}  {:>6}  {:>7}\n", "variant", "us", "ratio", "GB/s"));
    for timed in ranking {
        let Timing { variant, label, microseconds: Spread { median: microseconds, .. }, .. } = timed;
        #[allow(clippy::cast_precision_loss)] // far below 2^52
        let rate = measured.bytes as f64 / microseconds / 1000.0;
        let taken = if *variant == measured.automatic { "  <- current choice" } else { "" };
        let ratio = microseconds / best;
        text.push_str(
            format!("  {variant:>7}  {microseconds:>11.3}  {ratio:>6.2}  {rate:>7.0}  {label}{taken}")
                .trim_end(),
        );
        text.push('\n');
    }
    text
}

pub(super) fn outcome_notes(outcome: &TuningResult) -> Vec<String> {
    match outcome {
        Some(Ok(written)) => written_notes(written).collect(),
        Some(Err(why)) => vec![format!("no file was written: {why}")],
        None => Vec::new(),
    }
}

pub(super) fn summary(Written { path, points, others, .. }: &Written) -> String {
    let (points, others) = (counted(*points, "point"), counted(*others, "other"));
    format!("wrote {} ({points}; kept {others})\n", path.display())
}

fn written_notes(written: &Written) -> impl Iterator<Item = String> {
    let alike = written.alike.iter().map(|(path, name)| {
        format!(
            "`{}` is for {name}, which matches this GPU: of equally near points, those of the first listed file are used",
            path.display()
        )
    });
    gone_note(written).into_iter().chain(unpacked_note(written)).chain(alike)
}

fn gone_note(written: &Written) -> Option<String> {
    let plural = if written.gone.len() == 1 { "" } else { "s" };
    let what = format!("removed the times of version{plural} {}", quoted(&written.gone));
    (!written.gone.is_empty()).then(|| format!("{what}: no longer in a manifest"))
}

fn unpacked_note(written: &Written) -> Option<String> {
    let path = written.path.display();
    Some(match written.unpacked.as_ref()? {
        Unpacked::Unnamed { config, patterns } => {
            let patterns: Vec<String> = patterns.iter().map(|pattern| format!("\"{pattern}\"")).collect();
            format!(
                "`{}` does not list the file: embed it with `tuning = [{}]` in `[library]`",
                config.display(),
                patterns.join(", ")
            )
        }
        Unpacked::Alone(Some(manifest)) => format!(
            "no `cubinder.toml` lists the file: embed it with `cubinder compile {} ... --tuning {path}`",
            manifest.display()
        ),
        Unpacked::Alone(None) => {
            format!("no `cubinder.toml` lists the file: embed it with `cubinder compile ... --tuning {path}`")
        }
    })
}
