use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cubinder_compiler::remote::gpu::TUNING;
use cubinder_node::cases::Cases;
use cubinder_node::trial::Trial;
use cubinder_node::tuning::{self, Tuning};
use cubinder_source::diagnostic::{Diagnostic, Source};
use cubinder_source::path;
use cubinder_source::reported_path::ReportedPath;
use serde_json::{Value, json};

use super::output::{Output, Written};
use super::report::{TuningResult, outcome_notes, summary};
use super::{Arguments, Opened, selection};
use crate::cli::output::{MessageFormat, fail};
use crate::cli::workers::{PoolResult, Snapshot, Workers, add_data, exit_code, plugin_arguments};

cubinder_source::diagnostics! {
    struct SameGpu { pool: String, other: String, device: String, path: String }
    error "workers `{pool}` and `{other}` measured the same GPU: {device}" {
        note: "`{path}` has the times of `{other}`; those of `{pool}` were not written";
        help: "name only one of them, or use `--dry-run` to compare them";
    }

    struct OneFile { path: String }
    error "`--output {path}` names one file for several workers" {
        note: "a tuning file has the times of one GPU";
        help: "use `--out-dir` instead, or measure on one of them at a time";
    }

    struct InvalidPoints { pool: String, error: String }
    error "a worker of `{pool}` returned an invalid tuning file: {error}" {
        help: "report this as a bug of cubinder";
    }
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    perform(arguments).unwrap_or_else(|errors| fail(errors, MessageFormat::new(arguments.json)))
}

fn perform(arguments: &Arguments) -> Result<ExitCode, Vec<Diagnostic>> {
    let mut snapshot = Snapshot::new()?;
    let file = snapshot.relative(&arguments.file);
    let on = arguments.on.as_deref().map(|on| snapshot.relative(on));
    let workers = Workers::open(&arguments.remote, &file)?;
    if let Some(path) = arguments.output.as_ref().filter(|_| workers.count() > 1) {
        return Err(OneFile { path: path.display().to_string() }.into());
    }
    let opened = Opened::open(&file, on.as_deref(), &arguments.which)?;
    let cases = selection::cases(&file, &opened)?;
    // Reports errors in cases before anything is sent.
    selection::select(arguments, &opened, &cases)?;
    let mut sent = vec!["tune".to_owned()];
    let path = Some(cases.source.path.as_path());
    sent.extend(plugin_arguments(&opened, path, true, arguments.nvrtc.clone(), &mut snapshot)?);
    // Workers check the cases again, with their references.
    let selected = cases.list.iter().filter(|case| selection::is_wanted(arguments, &case.name));
    let trials: Vec<Trial> = selected.filter_map(|case| cases.trial(case).ok()).collect();
    add_data(&trials, &mut snapshot)?;
    sent.extend(options(arguments));
    let mut merger = Merger { arguments, file: &file, cases: &cases, opened: &opened, done: Vec::new() };
    let results = workers.run(sent, snapshot, arguments.json)?;
    let codes: Vec<u8> = results.iter().map(|result| merger.show(result)).collect();
    Ok(exit_code(&codes))
}

fn options(arguments: &Arguments) -> Vec<String> {
    let mut all = vec![format!("--device={}", arguments.device), format!("--timeout={}", arguments.timeout)];
    all.extend(arguments.case.iter().map(|part| format!("--case={part}")));
    all.push(if arguments.dry_run { "--dry-run".to_owned() } else { format!("--points={TUNING}") });
    all.extend(arguments.json.then(|| "--json".to_owned()));
    all
}

struct Merger<'m> {
    arguments: &'m Arguments,
    file: &'m Path,
    cases: &'m Cases,
    opened: &'m Opened,
    /// Written files with their workers.
    done: Vec<(PathBuf, String)>,
}

impl Merger<'_> {
    fn show(&mut self, result: &PoolResult) -> u8 {
        let mut errors = Vec::new();
        let outcome: TuningResult = result.tuning().and_then(|text| match self.merge(result.name(), text) {
            Ok(written) => written.map(Ok),
            Err(wrong) => {
                errors.extend(wrong);
                Some(Err("the points cannot be added to the file"))
            }
        });
        let notes = outcome_notes(&outcome);
        let written = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
        let mut text: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
        text.extend(written.map(summary));
        let failed = !errors.is_empty();
        result.show(self.arguments.json, errors, &text, |report| amend(report, written, &notes, failed))
    }

    fn merge(&mut self, pool: &str, text: &str) -> Result<Option<Written>, Vec<Diagnostic>> {
        let invalid = |error: String| InvalidPoints { pool: pool.to_owned(), error };
        let read = tuning::read(&Source::new(TUNING, text));
        let read = read.map_err(|mut errors| invalid(errors.pop().map(|it| it.message).unwrap_or_default()));
        let Tuning { device, points } = read?.tuning;
        let plugin = self.opened.subject.plugin.full_name();
        if points.iter().any(|point| point.plugin != plugin) {
            return Err(invalid(format!("it has points of other plugins than `{plugin}`")).into());
        }
        let name = device.to_string();
        let Some(output) = Output::open(self.arguments, self.file, self.cases, device)? else {
            return Ok(None);
        };
        let place = output.path().to_owned();
        if let Some((_, other)) = self.done.iter().find(|(known, _)| path::is_same_file(known, &place)) {
            let (pool, path) = (pool.to_owned(), place.display().to_string());
            return Err(SameGpu { pool, other: other.clone(), device: name, path }.into());
        }
        let written = output.write(points, &self.opened.subject)?;
        self.done.push((place, pool.to_owned()));
        Ok(written)
    }
}

fn amend(report: &mut Value, written: Option<&Written>, notes: &[String], failed: bool) {
    if let Some(Written { path, .. }) = written {
        report["written"] = json!(ReportedPath::from(path));
    }
    if let Some(all) = report.get_mut("notes").and_then(Value::as_array_mut) {
        all.extend(notes.iter().map(|note| note.as_str().into()));
    }
    if failed {
        report["result"] = "failed".into();
    }
}
