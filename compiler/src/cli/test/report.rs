use cubinder_gpu::DeviceInfo;
use cubinder_node::trial::Mismatch;
use cubinder_source::columns::{Align, columns};
use cubinder_source::diagnostic::harmless;
use cubinder_source::reported_path::ReportedPath;
use serde_json::{Value, json};

use super::protocol::{Fault, VariantResult};
use super::supervise::TrialReport;
use super::{Arguments, Opened};
use crate::cli::gpu::protocol::heading;
use crate::cli::output::print;

pub(super) struct Case {
    pub(super) name: String,
    pub(super) outcome: TrialReport,
    pub(super) expects_refusal: bool,
    /// Command-line options of a random node.
    pub(super) found: Option<String>,
}

impl Case {
    fn is_wrong(&self) -> bool {
        self.outcome.is_wrong() || (!self.expects_refusal && self.outcome.ran.is_empty())
    }
}

pub(super) struct Report<'a> {
    json: bool,
    tested: &'a Opened,
    gpu: DeviceInfo,
    cases: Vec<Case>,
    notes: Vec<String>,
    failures: Vec<String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(arguments: &Arguments, tested: &'a Opened, gpu: DeviceInfo) -> Report<'a> {
        Report {
            json: arguments.json,
            tested,
            gpu,
            cases: Vec::new(),
            notes: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn begin(&self) {
        self.show(&heading(&self.gpu, &self.tested.path));
    }

    pub(super) fn add(&mut self, case: Case) {
        self.show(&text(&case, &self.unheld(&case)));
        self.cases.push(case);
    }

    pub(super) fn note(&mut self, note: String) {
        self.show(&format!("note: {note}\n"));
        self.notes.push(note);
    }

    pub(super) fn fail(&mut self, why: String) {
        self.failures.push(why);
    }

    /// Returns outputs without expected values. Other shapes verify size tensors.
    fn unheld(&self, case: &Case) -> Vec<&str> {
        if case.expects_refusal || case.is_wrong() {
            return Vec::new();
        }
        let is_held = |name: &str| {
            case.outcome.ran.iter().flat_map(|ran| &ran.held_against).any(|(held, _)| held == name)
        };
        let outputs = self.tested.subject.plugin.outputs.iter().filter(|output| output.size.is_none());
        outputs.map(|output| output.name.as_str()).filter(|name| !is_held(name)).collect()
    }

    pub(super) fn end(&mut self) -> bool {
        if self.cases.is_empty() && self.failures.is_empty() {
            self.fail("nothing was run; specify a node with `--shape`, or remove `--random 0`".to_owned());
        }
        let wrong = self.cases.iter().filter(|case| case.is_wrong()).count();
        let right = self.cases.len() - wrong;
        let is_unheld = |case: &&Case| {
            !case.is_wrong()
                && !case.expects_refusal
                && case.outcome.ran.iter().all(|ran| ran.held_against.is_empty())
        };
        let unheld = self.cases.iter().filter(is_unheld).count();
        self.show(&format!("{right} passed, {wrong} failed\n"));
        for failure in &self.failures {
            self.show(&format!("error: {failure}\n"));
        }
        let is_right = wrong == 0 && self.failures.is_empty();
        if unheld > 0 {
            self.show(&format!(
                "note: the values of {unheld} of them were not compared; specify `reference` or `outputs`\n"
            ));
        }
        if self.json {
            let result = if is_right { "passed" } else { "failed" };
            let report = json!({
                "result": result,
                "file": ReportedPath::from(&self.tested.path),
                "gpu": gpu_json(&self.gpu),
                "passed": right,
                "failed": wrong,
                "not_held_against_anything": unheld,
                "cases": self.cases.iter().map(|case| case_json(case, &self.unheld(case))).collect::<Vec<_>>(),
                "notes": self.notes,
                "errors": self.failures,
            });
            print(&(report.to_string() + "\n"));
        }
        is_right
    }

    fn show(&self, text: &str) {
        if !self.json {
            print(&harmless(text, false));
        }
    }
}

fn gpu_json(gpu: &DeviceInfo) -> Value {
    json!({
        "name": gpu.name,
        "capability": gpu.capability.to_string(),
        "sms": gpu.sms,
        "shared_bytes": gpu.shared_bytes,
        "number": gpu.facts().capability,
        "driver": gpu.driver_cuda(),
        "driver_number": gpu.driver,
    })
}

fn case_json(case: &Case, unheld: &[&str]) -> Value {
    json!({
        "name": case.name,
        "passed": !case.is_wrong(),
        "node": case.found,
        "differs": case.outcome.differs,
        "refused": case.outcome.refused,
        "variants": case.outcome.ran,
        "not_held_against_anything": unheld,
    })
}

fn text(case: &Case, unheld: &[&str]) -> String {
    let verdict = if case.is_wrong() { "FAILED" } else { "ok" };
    let ran: Vec<String> = case.outcome.ran.iter().filter(|ran| ran.id != 0).map(variant_text).collect();
    let with = match ran.len() {
        0 => String::new(),
        1 => format!(" (variant {})", ran.join(", ")),
        _ => format!(" (variants {})", ran.join(", ")),
    };
    let mut text = format!("{verdict:<7} {}{with}\n", case.name);
    let mut line = |words: &str| text.push_str(&format!("        {words}\n"));
    if case.is_wrong()
        && let Some(found) = &case.found
    {
        line(&format!("the node: {found}"));
    }
    for differs in &case.outcome.differs {
        line(differs);
    }
    if let Some(why) = &case.outcome.refused {
        line(&format!("rejected: {why}"));
    } else if case.is_wrong() && case.outcome.ran.is_empty() && case.outcome.differs.is_empty() {
        line("no variant's guard is satisfied");
    }
    let is_any_held = case.outcome.ran.iter().any(|ran| !ran.held_against.is_empty());
    if is_any_held && !unheld.is_empty() {
        line(&format!("note: not compared: `{}`", unheld.join("`, `")));
    }
    for ran in &case.outcome.ran {
        for fault in &ran.faults {
            for words in fault_lines(ran, fault) {
                line(&words);
            }
        }
        for note in &ran.notes {
            line(&format!("note: variant {}: {note}", ran.id));
        }
    }
    text
}

fn variant_text(ran: &VariantResult) -> String {
    match ran.addresses {
        0 | 1 => ran.id.to_string(),
        several => format!("{} at {several} alignments", ran.id),
    }
}

fn fault_lines(ran: &VariantResult, fault: &Fault) -> Vec<String> {
    let addresses = fault.addresses.as_ref().map(|addresses| format!(", {addresses}")).unwrap_or_default();
    let label = if ran.label.is_empty() { String::new() } else { format!(" ({})", ran.label) };
    let variant = if ran.id == 0 { String::new() } else { format!("variant {}{label}{addresses}: ", ran.id) };
    let mut lines = vec![format!("{variant}{}", fault.text)];
    lines.extend(fault.elements.iter().flat_map(element_lines));
    lines
}

fn element_lines(mismatch: &Mismatch) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:?}"));
    let mut rows = vec![["at", "found", "expected", "difference"].map(str::to_owned)];
    for element in &mismatch.first {
        rows.push([
            format!("{:?}", element.index),
            element.found.clone(),
            element.expected.clone(),
            number(element.difference),
        ]);
    }
    let table = columns(&rows, 2, &[Align::Left, Align::Right, Align::Right, Align::Right]);
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    if mismatch.count > mismatch.first.len() {
        let largest = mismatch.largest.map(|largest| format!("; the largest difference is {largest:?}"));
        lines.push(format!(
            "  ... and {} more{}",
            mismatch.count - mismatch.first.len(),
            largest.unwrap_or_default()
        ));
    }
    lines
}
