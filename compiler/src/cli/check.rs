//! `cubinder check`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use cubinder_analysis::kernel_text::UncheckedKernel;
use cubinder_analysis::precompiled::UncheckedPointers;
use cubinder_compiler::check_plugins::{self, CheckReport};
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_manifest::manifest::Route;
use cubinder_model::Target;
use cubinder_source::diagnostic::{Diagnostic, Severity, Span, has_errors};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::source;
use cubinder_source::words::{counted, quoted};
use serde_json::{Value, json};

use super::obligations::{self, Tally, count_of, failed_json};
use super::output::{MessageFormat, Readers, current_folder, print, show};

/// Check plugin manifests without compiling anything: names, types, expressions, guards, the limits of launches and shapes, and whether TensorRT can
/// express the shapes of the outputs.
///
/// Without manifests those that cubinder.toml names are checked. Manifests that are named are checked for the targets of the nearest cubinder.toml
/// above each of them, as `cubinder eval` does; --target and the manifest's own [compile] take precedence. `cubinder compile FILE` uses the same.
///
/// What must hold for every launch is proved over all nodes and shapes that the manifest allows, refuted by the smallest case, or left to the
/// runtime, which checks it when shapes are known; --proofs shows which. Neither NVRTC nor a GPU is needed.
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
    /// Who launches the kernels, whatever manifests say: a plugin library, or TensorRT itself (experimental, full TensorRT alone)
    #[arg(long, value_name = "ROUTE", value_parser = super::compile::route)]
    route: Option<Route>,
    /// List everything that must hold, with its place and whether it is proved
    #[arg(long, short = 'v')]
    proofs: bool,
    /// Fail where there are warnings
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    readers: Readers,
    /// Say nothing where nothing is wrong
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let projects = open_projects(arguments);
    let manifests = projects.iter().flatten().map(|project| project.manifests.len()).sum();
    let mut report = match projects {
        Ok(projects) => check_plugins::check(&projects, &source::text),
        Err(diagnostics) => CheckReport { diagnostics, ..CheckReport::default() },
    };
    if arguments.deny_warnings {
        deny(&mut report.diagnostics);
    }
    let is_right = !has_errors(&report.diagnostics);
    show(&mut report.diagnostics, arguments.readers.format());
    match arguments.readers.format() {
        MessageFormat::Json => print(&(summary_json(&report, manifests, started).to_string() + "\n")),
        MessageFormat::Human => {
            if arguments.proofs {
                print(&obligations::list(&report.obligations));
            }
            if is_right && !arguments.quiet {
                print(&summary(&report, manifests));
            }
        }
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn open_projects(arguments: &Arguments) -> Result<Vec<Project>, Vec<Diagnostic>> {
    let options = ProjectOptions {
        manifests: arguments.manifests.clone(),
        config: arguments.config.clone(),
        targets: arguments.targets.clone(),
        route: arguments.route,
        ..ProjectOptions::default()
    };
    Project::open_around(options, &current_folder()?)
}

fn deny(diagnostics: &mut Vec<Diagnostic>) {
    let warnings = count_of(diagnostics, Severity::Warning);
    if warnings > 0 {
        let message = format!("there {}, and `--deny-warnings` was given", are(warnings, "warning"));
        diagnostics.push(Diagnostic::error(message));
    }
}

fn summary(report: &CheckReport, manifests: usize) -> String {
    let warnings = match count_of(&report.diagnostics, Severity::Warning) {
        0 => String::new(),
        warnings => format!(", with {}", counted(warnings, "warning")),
    };
    let manifests = match manifests {
        1 => "1 manifest is right".to_owned(),
        manifests => format!("{manifests} manifests are right"),
    };
    let mut text = format!("{manifests}{warnings}; {}\n", Tally::count(&report.obligations));
    if report.without_targets > 0 {
        text.push_str(
            "no architecture's limits were checked: nothing says what is compiled for; `--target sm_89` does\n",
        );
    }
    for unsure in &report.unsure {
        text.push_str(&format!("only a compile can tell about `{}`: {}\n", unsure.kernel, unsure.doubt));
    }
    for UncheckedPointers { code, params, .. } in &report.unchecked {
        let point = if params.len() == 1 { "points" } else { "point" };
        text.push_str(&format!(
            "what {} of `{code}` {point} to is taken from the manifest: its files do not tell\n",
            quoted(params)
        ));
    }
    text
}

fn summary_json(report: &CheckReport, manifests: usize, started: Instant) -> Value {
    let mut result = match has_errors(&report.diagnostics) {
        true => failed_json(&report.diagnostics),
        false => {
            json!({"result": "checked", "errors": 0, "warnings": count_of(&report.diagnostics, Severity::Warning)})
        }
    };
    result["manifests"] = manifests.into();
    result["targets"] = report.targets.iter().map(String::as_str).collect();
    obligations::add_json(&mut result, &report.obligations);
    result["unsure"] = report.unsure.iter().map(unsure_json).collect();
    result["unheld"] = report.unchecked.iter().map(unheld_json).collect();
    result["wall_ms"] = (started.elapsed().as_secs_f64() * 1e3).into();
    result
}

fn unsure_json(unsure: &UncheckedKernel) -> Value {
    let facts = json!({
        "kernel": unsure.kernel,
        "doubt": unsure.doubt.to_string(),
        "source": unsure.source,
    });
    obligations::with_place(facts, &unsure.kernel_span)
}

fn unheld_json(unheld: &UncheckedPointers) -> Value {
    let Span { source, range } = &unheld.code_span;
    let at = source.line_column(range.start);
    json!({
        "code": unheld.code,
        "parameters": unheld.params,
        "path": ReportedPath::from(&source.path),
        "line": at.line,
        "column": at.column,
    })
}

fn are(number: usize, what: &str) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{verb} {}", counted(number, what))
}
