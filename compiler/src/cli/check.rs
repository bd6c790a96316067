use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr as _;
use std::time::Instant;

use clap::Args;
use cubinder_analysis::kernel_text::UncheckedKernel;
use cubinder_analysis::precompiled::UncheckedPointers;
use cubinder_compiler::WarningsDenied;
use cubinder_compiler::check_plugins::{self, CheckReport};
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_compiler::target_choice::{self, TargetChoice};
use cubinder_manifest::manifest::Route;
use cubinder_source::diagnostic::{Diagnostic, Severity, Span, has_errors};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::source;
use cubinder_source::words::{counted, quoted};
use serde_json::{Value, json};

use super::nvrtc;
use super::obligations::{self, Tally, count_of, failed_json};
use super::output::{MessageFormat, Readers, current_folder, print, show};
use super::suggestions;

/// Check plugin manifests without compiling: names, types, expressions, guards, launch limits, shapes, and whether TensorRT can express the output
/// shapes.
///
/// Without MANIFESTS, checks the manifests listed in cubinder.toml. Each named manifest is checked for the targets of the nearest cubinder.toml above
/// it, as `cubinder eval` and `cubinder compile FILE` do; --target and the manifest's [compile] take precedence.
///
/// Each claim about a launch is proved for all nodes and shapes that the manifest allows, refuted with the smallest counterexample, or deferred to run
/// time, when shapes are known; --verbose lists the claims. Needs neither NVRTC nor a GPU, except for the
/// targets `all-major` and `native`.
#[derive(Args)]
pub(super) struct Arguments {
    /// Manifests to check [default: those in cubinder.toml]
    manifests: Vec<PathBuf>,
    /// The cubinder.toml to use
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override targets in manifests and cubinder.toml: sm_89 for machine code, compute_80 for PTX, native for the GPUs of this machine,
    /// all-major for each major version that NVRTC supports and PTX for the highest; repeat or separate with commas
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',', value_parser = suggestions::target_choice(TargetChoice::from_str), hide_possible_values = true)]
    targets: Vec<TargetChoice>,
    /// Override the route in manifests: a plugin library (`plugin`) or TensorRT (`native`: experimental, full TensorRT only) launches the kernels
    #[arg(long, value_name = "ROUTE", value_parser = super::project_arguments::route)]
    route: Option<Route>,
    /// Also list each claim with its location and whether it is proved
    #[arg(long, short)]
    verbose: bool,
    /// Fail if there are warnings
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    readers: Readers,
    /// Print only warnings and errors
    #[arg(long, short, conflicts_with = "verbose")]
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
    if arguments.deny_warnings && count_of(&report.diagnostics, Severity::Warning) > 0 {
        report.diagnostics.push(WarningsDenied {}.into());
    }
    let is_right = !has_errors(&report.diagnostics);
    show(&mut report.diagnostics, arguments.readers.format());
    match arguments.readers.format() {
        MessageFormat::Json => print(&(summary_json(&report, manifests, started).to_string() + "\n")),
        MessageFormat::Human => {
            if arguments.verbose {
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
        targets: target_choice::resolve(&arguments.targets, &nvrtc::overrides(None))?,
        route: arguments.route,
        ..ProjectOptions::default()
    };
    Project::open_around(options, &current_folder()?)
}

fn summary(report: &CheckReport, manifests: usize) -> String {
    let warnings = match count_of(&report.diagnostics, Severity::Warning) {
        0 => String::new(),
        warnings => format!(", {}", counted(warnings, "warning")),
    };
    let manifests = counted(manifests, "manifest");
    let mut text = format!("no errors in {manifests}{warnings}; {}\n", Tally::count(&report.obligations));
    if report.without_targets > 0 {
        text.push_str(
            "GPU limits were not checked: no target is specified; add one, such as `--target sm_89`\n",
        );
    }
    for unsure in &report.unsure {
        text.push_str(&format!("`{}` can only be checked by compiling: {}\n", unsure.kernel, unsure.doubt));
    }
    for UncheckedPointers { code, params, .. } in &report.unchecked {
        text.push_str(&format!(
            "pointee types of {} in `{code}` are assumed from the manifest: its files do not contain them\n",
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
