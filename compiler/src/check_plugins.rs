//! Checks manifests without a compiler: reading, resolving, planning, rules, and the texts of their kernels.
//!
//! Every independent error is reported in one run; a warning that may follow from an error is not. `cubinder check` runs all of
//! it, `cubinder compile` starts with it. Never prints, never compiles.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use cubinder_analysis::check::{self, Obligation};
use cubinder_analysis::kernel_text::{self, OpenSource, UncheckedKernel};
use cubinder_analysis::precompiled::UncheckedPointers;
use cubinder_import::foreign;
use cubinder_manifest::manifest::Route;
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_manifest::tables;
use cubinder_model::Plugin;
use cubinder_node::tuning;
use cubinder_source::diagnostic::{Diagnostic, Severity, Sink, Source, dedup, has_errors, sort};
use cubinder_source::source;
use rayon::prelude::*;

use crate::project::{Plan, Project};

/// The result of `cubinder check`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckReport {
    /// Errors and warnings, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// Conditions on every launch of the valid manifests.
    pub obligations: Vec<Obligation>,
    /// Kernels that only a compile can check.
    pub unsure: Vec<UncheckedKernel>,
    /// Pointers of precompiled code whose types only the manifest states.
    pub unchecked: Vec<UncheckedPointers>,
    /// The targets of all manifests.
    pub targets: BTreeSet<String>,
    /// The number of manifests without a target.
    pub without_targets: usize,
}

/// Why manifests are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Check,
    Compile,
}

/// The manifests of a project, read and planned.
pub struct Plans<'p> {
    project: &'p Project,
    purpose: Purpose,
    tuning: Vec<tuning::File>,
    tuning_errors: Vec<Diagnostic>,
    manifests: Vec<PlannedManifest>,
}

/// A manifest with its diagnostics; the plugin is missing if the manifest cannot be read.
struct PlannedManifest {
    plugin: Option<PlannedPlugin>,
    sink: Sink,
}

/// A plugin, or a sketch of it if the manifest has errors, and the plan of its compile.
struct PlannedPlugin {
    resolved: Resolved,
    plan: Plan,
    /// Whether the manifest resolved without errors.
    is_valid: bool,
}

/// A plugin whose manifest has no error, and the plan of its compile.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPlugin {
    /// The plugin.
    pub resolved: Resolved,
    /// The targets and options of its kernels.
    pub plan: Plan,
}

impl CheckedPlugin {
    /// Whether a kernel of it is compiled from source.
    #[must_use]
    pub fn has_sources(&self) -> bool {
        self.resolved.draft.units.iter().any(|unit| unit.foreign.is_none())
    }
}

/// The plugins of a project whose manifests have no error.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPlugins {
    /// The plugins, in the project's order.
    pub plugins: Vec<CheckedPlugin>,
    /// The project's tuning files.
    pub tuning: Vec<tuning::File>,
    /// Conditions on every launch.
    pub obligations: Vec<Obligation>,
}

/// The text of a manifest, or the reason that it cannot be read.
pub type ManifestText = Result<Arc<Source>, Vec<Diagnostic>>;

/// Checks all manifests of some projects and their kernels. `open` reads a kernel's file.
#[must_use]
pub fn check(projects: &[Project], open: &OpenSource<'_>) -> CheckReport {
    let plans = projects.iter().map(|project| Plans::read(project, manifests(project), Purpose::Check));
    let (plugins, report) = check_plans(plans.collect());
    check_kernels(&plugins, report, open)
}

/// [`check()`] for one project with these texts instead of its manifests.
#[must_use]
pub fn check_sources(project: &Project, sources: Vec<ManifestText>, open: &OpenSource<'_>) -> CheckReport {
    let (plugins, report) = check_plans(vec![Plans::read(project, sources, Purpose::Check)]);
    check_kernels(&plugins, report, open)
}

impl<'p> Plans<'p> {
    /// Reads and plans the manifests of a project, to compile them.
    #[must_use]
    pub fn for_compile(project: &'p Project) -> Plans<'p> {
        Plans::read(project, manifests(project), Purpose::Compile)
    }

    fn read(project: &'p Project, sources: Vec<ManifestText>, purpose: Purpose) -> Plans<'p> {
        let (tuning, tuning_errors) = project.read_tuning();
        let manifests = in_parallel(sources, |text| plan_manifest(project, &tuning, text, purpose));
        Plans { project, purpose, tuning, tuning_errors, manifests }
    }

    /// Checks everything that needs no compiler. The kernels' texts are checked only if there is an error, because NVRTC reads them
    /// better. `open` reads a kernel's file.
    ///
    /// # Errors
    /// What [`check()`] reports, if it has an error.
    pub fn check(self, open: &OpenSource<'_>, warnings: &Sink) -> Result<CheckedPlugins, Vec<Diagnostic>> {
        let tuning = self.tuning.clone();
        let (plugins, report) = check_plans(vec![self]);
        if has_errors(&report.diagnostics) {
            return Err(check_kernels(&plugins, report, open).diagnostics);
        }
        warnings.report(report.diagnostics);
        let checked = |PlannedPlugin { resolved, plan, .. }| CheckedPlugin { resolved, plan };
        let plugins = plugins.into_iter().map(checked).collect();
        Ok(CheckedPlugins { plugins, tuning, obligations: report.obligations })
    }
}

fn manifests(project: &Project) -> Vec<ManifestText> {
    project.manifests.iter().map(|path| source::text(path)).collect()
}

/// Maps items in parallel, in the caller's thread pool or else in one with at most a thread for each item.
fn in_parallel<T: Send, R: Send>(items: Vec<T>, map: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = processors.min(items.len()).max(1);
    let work = || items.into_par_iter().map(map).collect();
    if rayon::current_thread_index().is_some() {
        return work();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool.or_else(|_| rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()) {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

fn plan_manifest(
    project: &Project,
    tuning: &[tuning::File],
    text: ManifestText,
    purpose: Purpose,
) -> PlannedManifest {
    let sink = Sink::default();
    let resolved = match text {
        Ok(source) => resolve_manifest(project, tuning, &source, &sink),
        Err(errors) => {
            sink.report(errors);
            None
        }
    };
    let plugin = resolved.map(|(resolved, is_valid)| {
        sink.report(tuning::cases(&resolved).and_then(Result::err).into_iter().flatten());
        // A manifest outside of a project can be checked without targets; then no limits are known.
        let needs_targets = purpose == Purpose::Compile || project.config.is_some();
        let plan = project.plan(&resolved, needs_targets, &sink);
        PlannedPlugin { resolved, plan, is_valid }
    });
    PlannedManifest { plugin, sink }
}

/// The plugin, or a sketch of it, and whether it is valid.
fn resolve_manifest(
    project: &Project,
    tuning: &[tuning::File],
    source: &Arc<Source>,
    sink: &Sink,
) -> Option<(Resolved, bool)> {
    let (mut resolved, is_resolved) = match resolve::read(source) {
        Ok(resolved) => {
            sink.report(resolved.warnings.iter().cloned());
            (resolved, true)
        }
        Err(wrong) => {
            sink.report(wrong.errors);
            (*wrong.sketch?, false)
        }
    };
    sink.report(tables::read(&mut resolved));
    let found = foreign::read(&mut resolved);
    let is_valid = is_resolved && !has_errors(&found);
    sink.report(found);
    if is_valid {
        sink.report(project.pack_tuning(tuning, &mut resolved.draft.plugin));
    }
    Some((resolved, is_valid))
}

/// The plugins, and the report without their kernels.
fn check_plans(plans: Vec<Plans<'_>>) -> (Vec<PlannedPlugin>, CheckReport) {
    let mut plugins: Vec<PlannedPlugin> = Vec::new();
    let mut report = CheckReport::default();
    for Plans { project, purpose, tuning, tuning_errors, manifests } in plans {
        report.diagnostics.extend(tuning_errors);
        let (first, count) = (plugins.len(), manifests.len());
        for (plugin, checked) in in_parallel(manifests, |manifest| manifest.check(purpose)) {
            plugins.extend(plugin);
            report.add(checked);
        }
        let valid = plugins.iter().skip(first).filter(|plugin| plugin.is_valid);
        let valid: Vec<&Plugin> = valid.map(|plugin| &plugin.resolved.draft.plugin).collect();
        if project.is_whole() && valid.len() == count {
            report.diagnostics.extend(tuning::other_versions(&tuning, &valid));
        }
    }
    // What could not be read may tell two plugins apart.
    let read = plugins.iter().map(|plugin| &plugin.resolved).filter(|resolved| resolved.is_read);
    report.diagnostics.extend(resolve::check_unique(&read.collect::<Vec<_>>()));
    (plugins, report)
}

impl PlannedManifest {
    fn check(self, purpose: Purpose) -> (Option<PlannedPlugin>, CheckReport) {
        let PlannedManifest { plugin, sink } = self;
        let mut report = CheckReport::default();
        if let Some(PlannedPlugin { resolved, plan, is_valid }) = &plugin {
            if purpose == Purpose::Check {
                sink.report(plan.unknown_targets());
            }
            let targets = plan.targets();
            report.targets.extend(targets.iter().map(ToString::to_string));
            report.without_targets = usize::from(targets.is_empty());
            let route = &plan.route;
            if route.route == Route::Native {
                let found = check::check_route(resolved, route.span.as_ref(), plan.lowest_ptx());
                sink.report(reliable(found, *is_valid));
            }
            let checked = check::check(resolved, &targets, route.route);
            sink.report(reliable(checked.diagnostics, *is_valid));
            if *is_valid {
                report.obligations = checked.obligations;
            }
        }
        report.diagnostics = sink.into_diagnostics();
        (plugin, report)
    }
}

/// Leaves out the warnings about an invalid manifest: they may follow from its errors.
fn reliable(diagnostics: Vec<Diagnostic>, is_valid: bool) -> impl Iterator<Item = Diagnostic> {
    diagnostics.into_iter().filter(move |found| is_valid || found.severity == Severity::Error)
}

fn check_kernels(plugins: &[PlannedPlugin], mut report: CheckReport, open: &OpenSource<'_>) -> CheckReport {
    let kernels = in_parallel(plugins.iter().collect(), |plugin| plugin.check_kernels(open));
    for (kernels, superseded) in kernels {
        report.diagnostics.retain(|earlier| !superseded.contains(earlier));
        report.add(kernels);
    }
    // Manifests share files, and so their errors.
    dedup(&mut report.diagnostics);
    sort(&mut report.diagnostics);
    report
}

impl CheckReport {
    fn add(&mut self, other: CheckReport) {
        self.diagnostics.extend(other.diagnostics);
        self.obligations.extend(other.obligations);
        self.unsure.extend(other.unsure);
        self.unchecked.extend(other.unchecked);
        self.targets.extend(other.targets);
        self.without_targets += other.without_targets;
    }
}

impl PlannedPlugin {
    /// The report on the kernels' texts, and the diagnostics about the manifest alone that it replaces.
    fn check_kernels(&self, open: &OpenSource<'_>) -> (CheckReport, Vec<Diagnostic>) {
        let PlannedPlugin { resolved, plan, is_valid } = self;
        let targets = plan.targets();
        let kernels = kernel_text::check(resolved, &targets, &plan.settings.options, open);
        let mut report = CheckReport::default();
        let mut superseded = Vec::new();
        if *is_valid && !has_errors(&kernels.diagnostics) {
            let arguments = check::check_arguments(resolved, &targets, plan.route.route, &kernels.args);
            superseded = arguments.superseded;
            report.diagnostics.extend(arguments.diagnostics);
            report.obligations = arguments.obligations;
            report.diagnostics.extend(kernel_text::unused_names(resolved, open));
        }
        report.diagnostics.extend(reliable(kernels.diagnostics, *is_valid));
        (CheckReport { unsure: kernels.unsure, unchecked: kernels.unchecked, ..report }, superseded)
    }
}
