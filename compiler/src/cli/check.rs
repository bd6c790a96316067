//! `cubinder check`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use cubinder_bundle::Target;
use cubinder_compiler::check::{self, Obligation, Verdict};
use cubinder_compiler::config;
use cubinder_compiler::cuda::{self, Unsure};
use cubinder_compiler::diagnostic::{Diagnostic, Severity, has_errors, place};
use cubinder_compiler::project::{Asked, Project};
use cubinder_compiler::resolve::{self, Resolved};
use serde_json::json;

use super::output::{MessageFormat, print, show};

pub(super) const LONG_ABOUT: &str = "\
Check plugin manifests without compiling anything: names, types, expressions, guards, the limits of launches and shapes, and \
whether TensorRT can express the shapes of the outputs.

Without manifests those that cubinder.toml names are checked. What must hold for every launch is proved over all nodes and \
shapes that the manifest allows, refuted by the smallest case, or left to the runtime, which checks it when shapes are known; \
--proofs shows which. Neither NVRTC nor a GPU is needed.";

#[derive(Args)]
pub(super) struct Arguments {
    /// Manifests to check; without any, those that cubinder.toml names
    manifests: Vec<PathBuf>,
    /// The cubinder.toml to use
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What is compiled for: sm_89, compute_80; repeat it or separate with commas
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',')]
    targets: Vec<Target>,
    /// List everything that must hold, with its place and whether it is proved
    #[arg(long, short = 'v')]
    proofs: bool,
    /// Fail where there are warnings
    #[arg(long)]
    deny_warnings: bool,
    /// Who reads the messages
    #[arg(long, value_enum, default_value = "human")]
    message_format: MessageFormat,
    /// Say nothing where nothing is wrong
    #[arg(long, short)]
    quiet: bool,
}

/// What came of all manifests.
#[derive(Default)]
struct Report {
    diagnostics: Vec<Diagnostic>,
    obligations: Vec<Obligation>,
    /// Kernels about which only a compile can tell.
    unsure: Vec<Unsure>,
    manifests: usize,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let mut report = match open_project(arguments) {
        Ok(project) => check_all(&project),
        Err(diagnostics) => Report { diagnostics, ..Report::default() },
    };
    if arguments.deny_warnings {
        deny(&mut report.diagnostics);
    }
    let is_right = !has_errors(&report.diagnostics);
    show(&mut report.diagnostics, arguments.message_format);
    match arguments.message_format {
        MessageFormat::Json => print(&(summary_json(&report, started).to_string() + "\n")),
        MessageFormat::Human => {
            if arguments.proofs {
                print(&report.obligations.iter().map(line).collect::<String>());
            }
            if is_right && !arguments.quiet {
                print(&summary(&report));
            }
        }
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The manifests, found as `compile` finds them.
fn open_project(arguments: &Arguments) -> Result<Project, Vec<Diagnostic>> {
    let here = std::env::current_dir()
        .map_err(|error| vec![Diagnostic::error(format!("cannot tell which folder this is: {error}"))])?;
    let asked = Asked {
        manifests: arguments.manifests.clone(),
        config: arguments.config.clone(),
        targets: arguments.targets.clone(),
        ..Asked::default()
    };
    Project::open(asked, &here)
}

fn check_all(project: &Project) -> Report {
    let mut report = Report { manifests: project.manifests.len(), ..Report::default() };
    let mut plugins: Vec<Resolved> = Vec::new();
    for read in project.read_each() {
        match read {
            Ok(resolved) => {
                check_one(project, &resolved, &mut report);
                plugins.push(resolved);
            }
            Err(found) => report.diagnostics.extend(found),
        }
    }
    report.diagnostics.extend(resolve::check_unique(&plugins));
    report
}

fn check_one(project: &Project, resolved: &Resolved, report: &mut Report) {
    // A manifest can be checked without saying what for: then no architecture's limits are known.
    let is_asked = project.config.is_some() || project.asks_for_targets(resolved);
    let targets: Vec<Target> = match project.plan(resolved) {
        Ok(plan) => plan.targets.iter().map(|planned| planned.target).collect(),
        Err(found) => {
            report.diagnostics.extend(found.into_iter().filter(|_| is_asked));
            Vec::new()
        }
    };
    let checked = check::check_for(resolved, &targets);
    report.diagnostics.extend(resolved.warnings.iter().cloned());
    report.diagnostics.extend(checked.diagnostics);
    report.obligations.extend(checked.obligations);
    let kernels = cuda::check(resolved, &config::open);
    if !has_errors(&kernels.diagnostics) {
        let checked = check::check_arguments(resolved, &kernels.args);
        report.diagnostics.extend(checked.diagnostics);
        report.obligations.extend(checked.obligations);
        report.diagnostics.extend(cuda::unused_names(resolved, &config::open));
    }
    report.diagnostics.extend(kernels.diagnostics);
    report.unsure.extend(kernels.unsure);
}

/// Warnings stay what they are, and an error says why that is one.
fn deny(diagnostics: &mut Vec<Diagnostic>) {
    let warnings = count_of(diagnostics, Severity::Warning);
    if warnings > 0 {
        let message = format!("there {}, and `--deny-warnings` was given", are(warnings, "warning"));
        diagnostics.push(Diagnostic::error(message));
    }
}

fn summary(report: &Report) -> String {
    let warnings = match count_of(&report.diagnostics, Severity::Warning) {
        0 => String::new(),
        warnings => format!(", with {}", counted(warnings, "warning")),
    };
    let (proved, left) = verdicts(&report.obligations);
    let manifests = match report.manifests {
        1 => "1 manifest is right".to_owned(),
        manifests => format!("{manifests} manifests are right"),
    };
    let things = match proved {
        1 => "1 thing proved".to_owned(),
        proved => format!("{proved} things proved"),
    };
    let left = match left {
        1 => "1 is checked at run time".to_owned(),
        left => format!("{left} are checked at run time"),
    };
    let mut text = format!("{manifests}{warnings}; {things}, {left}\n");
    for unsure in &report.unsure {
        text.push_str(&format!("only a compile can tell about `{}`: {}\n", unsure.kernel, unsure.doubt));
    }
    text
}

/// How many are proved, and how many are not.
fn verdicts(obligations: &[Obligation]) -> (usize, usize) {
    let proved = obligations.iter().filter(|obligation| obligation.verdict == Verdict::Proved).count();
    (proved, obligations.len() - proved)
}

/// One obligation for a person.
fn line(obligation: &Obligation) -> String {
    let verdict = match &obligation.verdict {
        Verdict::Proved => "proved",
        Verdict::Open => "at run time",
        Verdict::Refuted(_) if obligation.is_beyond => "at run time",
        Verdict::Refuted(_) => "not always",
    };
    let only = if obligation.is_beyond { "; only tensors that TensorRT does not take break it" } else { "" };
    let source = &obligation.span.source;
    let at = place(&source.text, obligation.span.range.start);
    let found = obligation.found.as_ref().map(|found| format!(": {found}")).unwrap_or_default();
    let statement = &obligation.statement;
    format!("{verdict:<11}  {}:{}:{}: {statement}{only}{found}\n", source.path.display(), at.line, at.column)
}

fn summary_json(report: &Report, started: Instant) -> serde_json::Value {
    let obligations: Vec<_> = report.obligations.iter().map(obligation_json).collect();
    let (proved, left) = verdicts(&report.obligations);
    json!({
        "result": "checked",
        "manifests": report.manifests,
        "errors": count_of(&report.diagnostics, Severity::Error),
        "warnings": count_of(&report.diagnostics, Severity::Warning),
        "proved": proved,
        "at_run_time": left,
        "obligations": obligations,
        "unsure": report.unsure.iter().map(|unsure| unsure.kernel.as_str()).collect::<Vec<_>>(),
        "wall_ms": started.elapsed().as_secs_f64() * 1e3,
    })
}

fn obligation_json(obligation: &Obligation) -> serde_json::Value {
    let source = &obligation.span.source;
    let (start, end) = (obligation.span.range.start, obligation.span.range.end);
    let at = place(&source.text, start);
    let (verdict, shapes) = match &obligation.verdict {
        Verdict::Proved => ("proved", None),
        Verdict::Open => ("open", None),
        Verdict::Refuted(case) => ("refuted", Some(&case.shapes)),
    };
    json!({
        "code": obligation.rule.0,
        "statement": obligation.statement,
        "verdict": verdict,
        "beyond_tensorrt": obligation.is_beyond,
        "found": obligation.found,
        "shapes": shapes,
        "path": source.path.display().to_string(),
        "byte_start": start,
        "byte_end": end,
        "line": at.line,
        "column": at.column,
    })
}

fn count_of(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn are(number: usize, what: &str) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{verb} {}", counted(number, what))
}
