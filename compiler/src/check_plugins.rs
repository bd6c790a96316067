//! Checks manifests without a compiler: parsing, resolving, planning, rules, and kernel texts.
//!
//! Reports all independent errors in one run. Never prints or compiles.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::sync::{Arc, LazyLock};

use cubinder_analysis::check::{self, Obligation};
use cubinder_analysis::kernel_text::{self, OpenSource, UncheckedKernel};
use cubinder_analysis::precompiled::UncheckedPointers;
use cubinder_import::foreign;
use cubinder_manifest::manifest::Route;
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_manifest::tables;
use cubinder_model::Plugin;
use cubinder_node::tuning;
use cubinder_source::diagnostic::{Diagnostic, Severity, Sink, Source, dedup, has_errors, sort, supersede};
use rayon::prelude::*;

use crate::project::{ManifestText, Plan, Project};

/// The result of `cubinder check`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckReport {
    /// Errors and warnings, sorted by location.
    pub diagnostics: Vec<Diagnostic>,
    /// Launch conditions of the valid manifests.
    pub obligations: Vec<Obligation>,
    /// Kernels that only a compile can check.
    pub unsure: Vec<UncheckedKernel>,
    /// Pointers of precompiled code with types from the manifest only.
    pub unchecked: Vec<UncheckedPointers>,
    /// Targets of all manifests.
    pub targets: BTreeSet<String>,
    /// Manifests without a target.
    pub without_targets: usize,
}

/// Why manifests are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `cubinder check`.
    Check,
    /// A compile.
    Compile,
}

/// Resolved manifests and tuning files.
pub struct ResolvedManifests<'p> {
    project: &'p Project,
    tuning: Vec<tuning::File>,
    tuning_errors: Vec<Diagnostic>,
    manifests: Vec<ManifestState<ResolvedPlugin>>,
}

/// Manifests with their compile plans.
pub struct Plans<'p> {
    project: &'p Project,
    purpose: Purpose,
    tuning: Vec<tuning::File>,
    tuning_errors: Vec<Diagnostic>,
    manifests: Vec<ManifestState<PlannedPlugin>>,
}

struct ManifestState<P> {
    plugin: Option<P>,
    sink: Sink,
}

/// Partial if the manifest has errors.
struct ResolvedPlugin {
    resolved: Resolved,
    is_valid: bool,
}

struct PlannedPlugin {
    resolved: Resolved,
    plan: Plan,
    is_valid: bool,
}

/// A valid plugin with its compile plan.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPlugin {
    /// The plugin.
    pub resolved: Resolved,
    /// Targets and options.
    pub plan: Plan,
}

impl CheckedPlugin {
    /// Returns whether it has kernels in source form.
    #[must_use]
    pub fn has_sources(&self) -> bool {
        self.resolved.draft.units.iter().any(|unit| unit.foreign.is_none())
    }
}

/// A project's valid plugins.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPlugins {
    /// Plugins in the project's order.
    pub plugins: Vec<CheckedPlugin>,
    /// The project's tuning files.
    pub tuning: Vec<tuning::File>,
    /// Launch conditions.
    pub obligations: Vec<Obligation>,
}

/// Checks all manifests and kernels. `open` reads a kernel's file.
#[must_use]
pub fn check(projects: &[Project], open: &OpenSource<'_>) -> CheckReport {
    check_texts(projects.iter().map(|project| (project, project.read_manifests())).collect(), open)
}

/// Works as [`check()`], with these texts as the project's manifests.
#[must_use]
pub fn check_sources(project: &Project, sources: Vec<ManifestText>, open: &OpenSource<'_>) -> CheckReport {
    check_texts(vec![(project, sources)], open)
}

fn check_texts(projects: Vec<(&Project, Vec<ManifestText>)>, open: &OpenSource<'_>) -> CheckReport {
    in_thread_pool(|| {
        let plans = projects
            .into_iter()
            .map(|(project, sources)| resolve_manifests(project, sources).plan(Purpose::Check));
        let (plugins, _, report) = check_plans(plans.collect());
        check_kernels(&plugins, report, open)
    })
}

/// Runs `work` in the caller's thread pool, else the global one, else on this thread.
pub(crate) fn in_thread_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    // Rayon panics if it starts the global pool on demand and fails.
    static HAS_GLOBAL_POOL: LazyLock<bool> = LazyLock::new(|| {
        let built = rayon::ThreadPoolBuilder::new().build_global();
        // An existing pool is an error without a source.
        built.err().is_none_or(|error| error.source().is_none())
    });
    if rayon::current_thread_index().is_some() || *HAS_GLOBAL_POOL {
        return work();
    }
    match rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Parses and resolves manifests.
#[must_use]
pub fn resolve_manifests(project: &Project, sources: Vec<ManifestText>) -> ResolvedManifests<'_> {
    let (tuning, tuning_errors) = project.read_tuning();
    let resolved = sources.into_par_iter().map(|text| {
        let sink = Sink::default();
        let plugin = match text {
            Ok(source) => resolve_manifest(project, &tuning, &source, &sink),
            Err(errors) => {
                sink.report(errors);
                None
            }
        };
        ManifestState { plugin, sink }
    });
    let manifests = resolved.collect();
    ResolvedManifests { project, tuning, tuning_errors, manifests }
}

impl<'p> ResolvedManifests<'p> {
    /// Plans each compile.
    #[must_use]
    pub fn plan(self, purpose: Purpose) -> Plans<'p> {
        let ResolvedManifests { project, tuning, tuning_errors, manifests } = self;
        // Outside of a project, targets are optional and limits unknown.
        let needs_targets = purpose == Purpose::Compile || project.config.is_some();
        let planned = manifests.into_par_iter().map(|ManifestState { plugin, sink }| {
            let plugin = plugin.map(|ResolvedPlugin { resolved, is_valid }| {
                let plan = project.plan(&resolved, needs_targets, &sink);
                PlannedPlugin { resolved, plan, is_valid }
            });
            ManifestState { plugin, sink }
        });
        Plans { project, purpose, tuning, tuning_errors, manifests: planned.collect() }
    }
}

impl Plans<'_> {
    /// Checks everything that needs no compiler. Checks kernel texts only after an error: NVRTC parses them better.
    ///
    /// # Errors
    /// The errors and warnings of [`check()`].
    pub fn check(self, open: &OpenSource<'_>, warnings: &Sink) -> Result<CheckedPlugins, Vec<Diagnostic>> {
        let (plugins, tuning, report) = check_plans(vec![self]);
        if has_errors(&report.diagnostics) {
            return Err(check_kernels(&plugins, report, open).diagnostics);
        }
        warnings.report(report.diagnostics);
        let checked = |PlannedPlugin { resolved, plan, .. }| CheckedPlugin { resolved, plan };
        let plugins = plugins.into_iter().map(checked).collect();
        Ok(CheckedPlugins { plugins, tuning, obligations: report.obligations })
    }
}

fn resolve_manifest(
    project: &Project,
    tuning: &[tuning::File],
    source: &Arc<Source>,
    sink: &Sink,
) -> Option<ResolvedPlugin> {
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
    sink.report(tuning::cases(&resolved).and_then(Result::err).into_iter().flatten());
    Some(ResolvedPlugin { resolved, is_valid })
}

fn check_plans(plans: Vec<Plans<'_>>) -> (Vec<PlannedPlugin>, Vec<tuning::File>, CheckReport) {
    let (mut plugins, mut files) = (Vec::<PlannedPlugin>::new(), Vec::new());
    let mut report = CheckReport::default();
    for Plans { project, purpose, tuning, tuning_errors, manifests } in plans {
        report.diagnostics.extend(tuning_errors);
        let (first, count) = (plugins.len(), manifests.len());
        let checked = manifests.into_par_iter().map(|manifest| manifest.check(purpose));
        for (plugin, checked) in checked.collect::<Vec<_>>() {
            plugins.extend(plugin);
            report.add(checked);
        }
        let valid = plugins.iter().skip(first).filter(|plugin| plugin.is_valid);
        let valid: Vec<&Plugin> = valid.map(|plugin| &plugin.resolved.draft.plugin).collect();
        if project.is_whole() && valid.len() == count {
            report.diagnostics.extend(tuning::other_versions(&tuning, &valid));
        }
        files.extend(tuning);
    }
    // Unread parts may distinguish plugins.
    let read = plugins.iter().map(|plugin| &plugin.resolved).filter(|resolved| resolved.is_read);
    report.diagnostics.extend(resolve::check_unique(&read.collect::<Vec<_>>()));
    (plugins, files, report)
}

impl ManifestState<PlannedPlugin> {
    fn check(self, purpose: Purpose) -> (Option<PlannedPlugin>, CheckReport) {
        let ManifestState { plugin, sink } = self;
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

/// Drops warnings that manifest errors may cause.
fn reliable(diagnostics: Vec<Diagnostic>, is_valid: bool) -> impl Iterator<Item = Diagnostic> {
    diagnostics.into_iter().filter(move |found| is_valid || found.severity == Severity::Error)
}

fn check_kernels(plugins: &[PlannedPlugin], mut report: CheckReport, open: &OpenSource<'_>) -> CheckReport {
    let kernels = plugins.par_iter().map(|plugin| plugin.check_kernels(open));
    for kernels in kernels.collect::<Vec<_>>() {
        supersede(&mut report.diagnostics, &kernels.diagnostics);
        report.add(kernels);
    }
    // Manifests that share a file share its errors.
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
    fn check_kernels(&self, open: &OpenSource<'_>) -> CheckReport {
        let PlannedPlugin { resolved, plan, is_valid } = self;
        let targets = plan.targets();
        let kernels = kernel_text::check(resolved, &targets, &plan.settings.options, open);
        let mut report = CheckReport::default();
        if *is_valid && !has_errors(&kernels.diagnostics) {
            let arguments = check::check_arguments(resolved, &targets, plan.route.route, &kernels.args);
            report.diagnostics.extend(arguments.diagnostics);
            report.obligations = arguments.obligations;
            report.diagnostics.extend(kernel_text::unused_names(resolved, open));
        }
        report.diagnostics.extend(reliable(kernels.diagnostics, *is_valid));
        CheckReport { unsure: kernels.unsure, unchecked: kernels.unchecked, ..report }
    }
}
