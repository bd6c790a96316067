use std::collections::BTreeMap;

use cubinder_analysis::check::Obligation;
use cubinder_launch::proof::Verdict;
use cubinder_manifest::manifest::Route;
use cubinder_node::eval::value_json;
use cubinder_source::diagnostic::{Diagnostic, Severity, Span};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::words::counted;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) proved: usize,
    /// Violated by an allowed launch.
    pub(super) refuted: usize,
    /// Checked by the plugin library.
    pub(super) at_run_time: usize,
    /// On the native route.
    pub(super) when_built: usize,
    is_all_native: bool,
}

impl Tally {
    pub(super) fn count(obligations: &[Obligation]) -> Tally {
        let is_native = |obligation: &Obligation| obligation.route == Route::Native;
        let is_all_native = !obligations.is_empty() && obligations.iter().all(is_native);
        let mut tally = Tally { is_all_native, ..Tally::default() };
        for obligation in obligations {
            match obligation.verdict {
                Verdict::Proved => tally.proved += 1,
                Verdict::Refuted(_) if !obligation.is_beyond => tally.refuted += 1,
                Verdict::Refuted(_) | Verdict::Open => match obligation.route {
                    Route::Plugin => tally.at_run_time += 1,
                    Route::Native => tally.when_built += 1,
                },
            }
        }
        tally
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} proved, ", counted(self.proved, "check"))?;
        if self.refuted > 0 {
            write!(f, "{} refuted, ", self.refuted)?;
        }
        if self.is_all_native {
            return write!(f, "{} deferred to engine build", self.when_built);
        }
        write!(f, "{} deferred to run time", self.at_run_time)?;
        if self.when_built > 0 {
            write!(f, ", {} deferred to engine build", self.when_built)?;
        }
        Ok(())
    }
}

pub(super) fn list(obligations: &[Obligation]) -> String {
    obligations.iter().map(line).collect()
}

fn line(obligation: &Obligation) -> String {
    let verdict = match (&obligation.verdict, obligation.route) {
        (Verdict::Proved, _) => "proved",
        (Verdict::Refuted(_), _) if !obligation.is_beyond => "refuted",
        (Verdict::Open | Verdict::Refuted(_), Route::Plugin) => "at run time",
        (Verdict::Open | Verdict::Refuted(_), Route::Native) => "when built",
    };
    let only = match (&obligation.verdict, obligation.is_beyond) {
        (_, false) => "",
        (Verdict::Refuted(_), true) => "; violated only by tensors that TensorRT does not support",
        (_, true) => "; could be violated only by tensors that TensorRT does not support",
    };
    let source = &obligation.span.source;
    let at = source.line_column(obligation.span.range.start);
    let found = obligation.found.as_ref().map(|found| format!(": {found}")).unwrap_or_default();
    let statement = &obligation.statement;
    format!("{verdict:<11}  {}:{}:{}: {statement}{only}{found}\n", source.path.display(), at.line, at.column)
}

pub(super) fn add_json(result: &mut Value, obligations: &[Obligation]) {
    let tally = Tally::count(obligations);
    result["proved"] = tally.proved.into();
    result["refuted"] = tally.refuted.into();
    result["at_run_time"] = tally.at_run_time.into();
    result["when_built"] = tally.when_built.into();
    result["obligations"] = obligations.iter().map(obligation_json).collect();
}

fn obligation_json(obligation: &Obligation) -> Value {
    let verdict = match &obligation.verdict {
        Verdict::Proved => "proved",
        Verdict::Open => "open",
        Verdict::Refuted(_) => "refuted",
    };
    let case = obligation.case.as_ref().map(|case| {
        let attributes = case.attributes.iter().map(|(name, value)| (name, value_json(value)));
        json!({
            "attributes": attributes.collect::<BTreeMap<_, _>>(),
            "shapes": case.shapes.iter().map(|(name, shape)| (name, shape)).collect::<BTreeMap<_, _>>(),
            "values": case.values.iter().map(|(name, values)| (name, values)).collect::<BTreeMap<_, _>>(),
            "device": case.device.iter().map(|(fact, value)| (fact, value)).collect::<BTreeMap<_, _>>(),
        })
    });
    let facts = json!({
        "code": obligation.rule.0,
        "statement": obligation.statement,
        "verdict": verdict,
        "beyond_tensorrt": obligation.is_beyond,
        "found": obligation.found,
        "case": case,
    });
    with_place(facts, &obligation.span)
}

pub(super) fn with_place(mut object: Value, span: &Span) -> Value {
    let start = span.source.line_column(span.range.start);
    object["path"] = json!(ReportedPath::from(&span.source.path));
    object["byte_start"] = span.range.start.into();
    object["byte_end"] = span.range.end.into();
    object["line"] = start.line.into();
    object["column"] = start.column.into();
    object
}

pub(super) fn failed_json(diagnostics: &[Diagnostic]) -> Value {
    json!({
        "result": "failed",
        "errors": count_of(diagnostics, Severity::Error),
        "warnings": count_of(diagnostics, Severity::Warning),
    })
}

pub(super) fn count_of(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
}
