use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr as _;

use clap::Args;
use cubinder_compiler::project::ProjectOptions;
use cubinder_manifest::file_kind::{self, Kind};
use cubinder_manifest::manifest::Route;
use cubinder_manifest::resolve::Resolved;
use cubinder_model::{Arch, Target, TargetKind};
use cubinder_node::eval::{Compiler, Environment, Report, Subject, SubjectOrigin, Subjects};
use cubinder_node::query::Mistake;
use cubinder_node::{cases, eval, tuning};
use cubinder_nvrtc::nvrtc::Settings;
use cubinder_source::diagnostic::{Diagnostic, Sink, has_errors};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::source;
use serde::Serialize;

use super::node::{NodeArguments, WhichNode};
use super::nvrtc;
use super::output::{MessageFormat, finish, open_project, print, print_report, show};
use super::suggestions;

/// Simulate a launch without a GPU. Shows checks, output shapes, the selected variant and why others were rejected, grid, block, shared memory, the
/// value of each argument, and the number of resident blocks per multiprocessor.
///
/// FILE is a manifest, a plugin library, a bundle or an engine; all nodes of an engine are shown unless --plugin or --node selects some. If NVRTC is
/// available, a manifest's kernel is compiled to find parameter types and occupancy: for --arch, else for the first sm_* target of its [compile] or of
/// the nearest cubinder.toml above it, which also supplies include folders and options, as in `cubinder check` and `cubinder compile`.
///
/// With --cases, evaluates each case of a test file and compares the result with the expected one.
///
/// Exit code 0 if all nodes can be launched, or all cases are as expected; 1 otherwise.
#[derive(Args)]
pub(super) struct Arguments {
    /// Manifest, plugin library, bundle or engine
    #[arg(required_unless_present = "cases")]
    file: Option<PathBuf>,
    #[command(flatten)]
    like: NodeArguments,
    /// Alignment of a tensor's address, in bytes: x=4 [default: 256]
    #[arg(long, value_name = "NAME=BYTES")]
    aligned: Vec<String>,
    /// GPU property: sms=132, shared_bytes=232448 or capability=90 [default: from --arch]
    #[arg(long, value_name = "NAME=INTEGER")]
    device: Vec<String>,
    /// GPU architecture: sm_90
    #[arg(long, value_name = "ARCH", value_parser = suggestions::gpu(Target::from_str), hide_possible_values = true)]
    arch: Option<Target>,
    /// Override the route in the manifest: a plugin library (`plugin`) or TensorRT (`native`: experimental, full TensorRT only) launches the kernels
    #[arg(long, value_name = "ROUTE", value_parser = super::project_arguments::route)]
    route: Option<Route>,
    #[command(flatten)]
    which: WhichNode,
    /// File of cases with their expected results
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "shapes", "values", "attributes", "types", "formats", "aligned", "device"])]
    cases: Option<PathBuf>,
    /// Library, bundle or manifest to use instead of the one that the cases name
    #[arg(long, value_name = "FILE", requires = "cases")]
    on: Option<PathBuf>,
    /// NVRTC library or its folder [default: CUBINDER_NVRTC, else CUDA_HOME, else NVIDIA's Python packages]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
    /// Print JSON Lines: messages, then the report
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let done = match (&arguments.cases, &arguments.file) {
        (Some(path), _) => run_cases(arguments, path),
        (None, Some(path)) => run_file(arguments, path),
        (None, None) => Err(Diagnostic::error("missing `FILE` or `--cases`").into()),
    };
    finish(done, MessageFormat::new(arguments.json))
}

fn run_file(arguments: &Arguments, path: &Path) -> Result<bool, Vec<Diagnostic>> {
    let query = arguments.like.query(&arguments.aligned, &arguments.device)?;
    let subjects = open(path, arguments.route)?;
    let kind = subjects.kind;
    let mut diagnostics = subjects.warnings;
    let chosen = arguments.which.choose(subjects.list)?;
    let compiler = compiler(arguments, path, &chosen)?;
    let mut report =
        Report { file: ReportedPath::from(path), kind, evaluations: Vec::with_capacity(chosen.len()) };
    for subject in &chosen {
        match eval::evaluate(subject, &query, &compiler) {
            Ok(outcome) => {
                diagnostics.extend(outcome.diagnostics);
                report.evaluations.push(outcome.evaluation);
            }
            Err(mistakes) => diagnostics.extend(with_node(mistakes, subject.number)),
        }
    }
    if report.evaluations.is_empty() {
        return Err(diagnostics);
    }
    show(&mut diagnostics, MessageFormat::new(arguments.json));
    let refused = report.evaluations.iter().any(|evaluation| evaluation.refused.is_some());
    let result = match (has_errors(&diagnostics), refused) {
        (true, _) => "failed",
        (false, true) => "refused",
        (false, false) => "evaluated",
    };
    output(arguments.json, result, &report, &eval::table(&report))?;
    Ok(result == "evaluated")
}

/// Manifests get the route and the project's measurements.
fn open(path: &Path, route: Option<Route>) -> Result<Subjects, Vec<Diagnostic>> {
    let mut subjects = eval::open(path)?;
    let is_manifest = |subject: &Subject| matches!(subject.origin, SubjectOrigin::Manifest(_));
    if route.is_some() && !subjects.list.iter().any(is_manifest) {
        let what = format!("`--route` requires a manifest: the route of `{}` is fixed", path.display());
        return Err(Diagnostic::error(what).help("remove the option, or pass the manifest").into());
    }
    for subject in subjects.list.iter_mut().filter(|subject| is_manifest(subject)) {
        subject.route = route;
        let Some(project) =
            open_project(ProjectOptions { manifests: vec![path.to_owned()], ..ProjectOptions::default() })?
        else {
            continue;
        };
        let (files, mut told) = project.read_tuning();
        told.extend(tuning::pack(&files, &mut subject.plugin));
        if has_errors(&told) {
            return Err(told);
        }
        subjects.warnings.extend(told);
    }
    Ok(subjects)
}

fn with_node(mistakes: Vec<Mistake>, number: Option<(usize, usize)>) -> impl Iterator<Item = Diagnostic> {
    mistakes.into_iter().map(move |mistake| match number {
        Some((number, count)) if count > 1 => mistake.diagnostic.note(format!("in node {number} of {count}")),
        _ => mistake.diagnostic,
    })
}

fn run_cases(arguments: &Arguments, path: &Path) -> Result<bool, Vec<Diagnostic>> {
    let source = source::text(path)?;
    file_kind::expect(Kind::Cases, path, &source.text)?;
    let cases = cases::read(&source)?;
    let path = arguments.on.as_ref().unwrap_or(&cases.subject);
    let mut subjects = open(path, arguments.route)?;
    let subject = arguments.which.choose_one(subjects.list, path)?;
    let verdicts = cases::run(&cases, &subject, &compiler(arguments, path, std::slice::from_ref(&subject))?);
    show(&mut subjects.warnings, MessageFormat::new(arguments.json));
    let is_right = verdicts.iter().all(|verdict| verdict.differences.is_empty());
    let result = if is_right { "as_expected" } else { "not_as_expected" };
    let report = serde_json::json!({"cases": verdicts});
    output(arguments.json, result, &report, &cases::table(&verdicts))?;
    Ok(is_right)
}

fn output(json: bool, result: &'static str, report: &impl Serialize, table: &str) -> Result<(), Diagnostic> {
    if json {
        return print_report(result, report);
    }
    print(table);
    Ok(())
}

/// Configures compiles as `cubinder compile` does, to share its cache.
fn compiler(arguments: &Arguments, file: &Path, chosen: &[Subject]) -> Result<Compiler, Vec<Diagnostic>> {
    let arch = arch(arguments.arch)?;
    let manifest = chosen.iter().find_map(|subject| match &subject.origin {
        SubjectOrigin::Manifest(resolved) => Some(resolved),
        SubjectOrigin::Compiled(_) => None,
    });
    // Compiled subjects need no project.
    let environment = match manifest {
        Some(resolved) => planned(resolved, file, arch)?,
        None => Environment::default(),
    };
    let overrides = nvrtc::overrides(arguments.nvrtc.clone());
    Ok(Compiler::new(Environment { arch, overrides, ..environment }))
}

fn planned(resolved: &Resolved, file: &Path, arch: Option<Arch>) -> Result<Environment, Vec<Diagnostic>> {
    let asked = ProjectOptions {
        manifests: vec![file.to_owned()],
        targets: arch.map(|arch| Target { kind: TargetKind::Cubin, arch }).into_iter().collect(),
        ..ProjectOptions::default()
    };
    let Some(project) = open_project(asked)? else { return Ok(Environment::default()) };
    let root = project.root.clone();
    let errors = Sink::default();
    // Without a project or target, the report says that nothing was compiled.
    let plan = project.plan(resolved, project.config.is_some(), &errors);
    errors.into_result()?;
    Ok(Environment {
        targets: plan.targets(),
        settings: Settings::clone(&plan.settings),
        root,
        ..Environment::default()
    })
}

pub(super) fn arch(target: Option<Target>) -> Result<Option<Arch>, Diagnostic> {
    match target {
        Some(target) if target.kind != TargetKind::Cubin => {
            Err(Diagnostic::error(format!("`{target}` is not a GPU: it is a target for PTX"))
                .help(format!("specify a GPU: `--arch sm_{}`", target.arch)))
        }
        target => Ok(target.map(|target| target.arch)),
    }
}
