//! All that can be told of manifests without a compiler: one way through reading, resolving, planning, rules and kernels' texts.
//!
//! Owns which stage is asked what where another has found mistakes: every independent error is told in one run, and what may
//! follow from an error is not. `cubinder check` is this; `cubinder compile` begins with it. Never prints, never compiles.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use cubinder_analysis::check::{self, Obligation};
use cubinder_analysis::kernel_text::{self, Open, Unsure};
use cubinder_analysis::precompiled::Unheld;
use cubinder_import::foreign;
use cubinder_manifest::manifest::Route;
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_manifest::tables;
use cubinder_model::Plugin;
use cubinder_node::tuning;
use cubinder_source::diagnostic::{Diagnostic, Severity, Source, dedup, has_errors, sort};
use cubinder_source::source;
use rayon::prelude::*;

use crate::project::{Plan, Planning, Project};

/// What is told of manifests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkup {
    /// What is wrong and what the author should look at, in order of place.
    pub diagnostics: Vec<Diagnostic>,
    /// What must hold for every launch of the manifests that are right.
    pub obligations: Vec<Obligation>,
    /// Kernels about which only a compile can tell.
    pub unsure: Vec<Unsure>,
    /// What the manifests alone say of pointers of code that is there already.
    pub unheld: Vec<Unheld>,
    /// What the manifests are compiled for.
    pub targets: BTreeSet<String>,
    /// How many manifests there are for which nothing says what they are compiled for.
    pub without_targets: usize,
}

/// A manifest as far as it is known.
struct Subject {
    /// The plugin, or what could be made of it.
    plugin: Option<Resolved>,
    plan: Option<Planning>,
    /// Whether the manifest by itself is right.
    is_right: bool,
}

/// Manifests that were looked at by themselves: without their kernels' texts.
#[derive(Default)]
struct Look {
    subjects: Vec<Subject>,
    checkup: Checkup,
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
    /// The warnings about their manifests.
    pub warnings: Vec<Diagnostic>,
    /// Conditions on every launch.
    pub obligations: Vec<Obligation>,
}

/// Checks all manifests of some projects and their kernels. `open` reads a kernel's file.
#[must_use]
pub fn projects(projects: &[Project], open: &Open<'_>) -> Checkup {
    let manifests: Vec<_> = projects.iter().map(manifests).collect();
    let all = projects.iter().zip(manifests.iter().map(Vec::as_slice));
    side_by_side(manifests.iter().map(Vec::len).sum(), || with_kernels(look(all, For::Check), open))
}

/// [`projects`], of one project and of these texts in the place of the project's manifests: each is there, or why it is not.
#[must_use]
pub fn sources(
    project: &Project,
    sources: &[Result<Arc<Source>, Vec<Diagnostic>>],
    open: &Open<'_>,
) -> Checkup {
    side_by_side(sources.len(), || with_kernels(look([(project, sources)], For::Check), open))
}

/// Checks what can be checked before NVRTC is called. NVRTC reads kernels better than this can, so their texts are looked at only where
/// nothing will be compiled. `open` reads a kernel's file.
///
/// # Errors
/// All that [`projects`] tells, with at least one error.
pub fn before_compile(project: &Project, open: &Open<'_>) -> Result<CheckedPlugins, Vec<Diagnostic>> {
    let manifests = manifests(project);
    side_by_side(manifests.len(), || checked(project, &manifests, open))
}

fn checked(
    project: &Project,
    manifests: Sources<'_>,
    open: &Open<'_>,
) -> Result<CheckedPlugins, Vec<Diagnostic>> {
    let look = look([(project, manifests)], For::Compile);
    if has_errors(&look.checkup.diagnostics) {
        return Err(with_kernels(look, open).diagnostics);
    }
    let Checkup { diagnostics, obligations, .. } = look.checkup;
    let plugins = look.subjects.into_iter().filter_map(Subject::into_checked).collect();
    Ok(CheckedPlugins { plugins, warnings: diagnostics, obligations })
}

/// Does it with a thread for each of so many manifests, or for each processor where these are fewer: with the caller's where the caller has some already,
/// and with none but this one where no thread can be started.
fn side_by_side<T: Send>(manifests: usize, work: impl FnOnce() -> T + Send) -> T {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(processors.min(manifests).max(1)).build();
    match pool.or_else(|_| rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()) {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

fn manifests(project: &Project) -> Vec<Result<Arc<Source>, Vec<Diagnostic>>> {
    let open = |path: &PathBuf| source::text(path);
    project.manifests.iter().map(open).collect()
}

/// What manifests are looked at for.
#[derive(Clone, Copy, PartialEq)]
enum For {
    Check,
    Compile,
}

type Sources<'a> = &'a [Result<Arc<Source>, Vec<Diagnostic>>];

fn look<'a>(projects: impl IntoIterator<Item = (&'a Project, Sources<'a>)>, what_for: For) -> Look {
    let mut look = Look::default();
    for (project, sources) in projects {
        let first = look.subjects.len();
        let (measured, wrong) = project.read_tuning();
        look.checkup.diagnostics.extend(wrong);
        // Side by side, and put together in the order of the manifests.
        let looks = sources.par_iter().map(|source| match source {
            Ok(source) => look_at((project, &measured), source, what_for),
            Err(found) => Look::of_mistakes(found.clone()),
        });
        looks.collect::<Vec<Look>>().into_iter().for_each(|one| look.add(one));
        let all = look.subjects.get(first..).unwrap_or_default().iter();
        let right: Vec<&Plugin> = all.filter_map(Subject::right_plugin).collect();
        if project.is_whole() && right.len() == sources.len() {
            look.checkup.diagnostics.extend(tuning::other_versions(&measured, &right));
        }
    }
    let plugins = look.subjects.iter().filter_map(|subject| subject.plugin.as_ref());
    // What could not be read may be what tells two plugins apart.
    let plugins: Vec<&Resolved> = plugins.filter(|plugin| plugin.is_read).collect();
    look.checkup.diagnostics.extend(resolve::check_unique(&plugins));
    look
}

fn look_at((project, measured): (&Project, &[tuning::File]), source: &Arc<Source>, what_for: For) -> Look {
    let mut look = Look::default();
    // A manifest by itself can be checked without saying what for: then no architecture's limits are known.
    let needs_targets = what_for == For::Compile || project.config.is_some();
    let checkup = &mut look.checkup;
    let (plugin, is_right) = match resolve::read(source) {
        Ok(mut resolved) => {
            checkup.diagnostics.extend(resolved.warnings.iter().cloned());
            checkup.diagnostics.extend(tables::read(&mut resolved));
            let of_files = foreign::read(&mut resolved);
            let is_right = !has_errors(&of_files);
            checkup.diagnostics.extend(of_files);
            if is_right {
                // Of a manifest that is wrong nobody knows what was measured.
                checkup.diagnostics.extend(project.pack_tuning(measured, &mut resolved.draft.plugin));
            }
            (Some(resolved), is_right)
        }
        Err(wrong) => {
            checkup.diagnostics.extend(wrong.errors);
            let mut sketch = wrong.sketch.map(|sketch| *sketch);
            checkup.diagnostics.extend(sketch.iter_mut().flat_map(tables::read));
            checkup.diagnostics.extend(sketch.iter_mut().flat_map(foreign::read));
            (sketch, false)
        }
    };
    let measured = plugin.as_ref().and_then(tuning::cases).and_then(Result::err);
    checkup.diagnostics.extend(measured.into_iter().flatten());
    let plan = plugin.as_ref().map(|plugin| project.planning(plugin));
    if let (Some(plugin), Some(planning)) = (&plugin, &plan) {
        checkup.diagnostics.extend(planning.errors.iter().cloned());
        checkup.diagnostics.extend(planning.no_target.iter().filter(|_| needs_targets).cloned());
        if what_for == For::Check {
            checkup.diagnostics.extend(planning.plan.unknown_targets());
        }
        let targets = planning.plan.targets();
        checkup.targets.extend(targets.iter().map(ToString::to_string));
        checkup.without_targets += usize::from(targets.is_empty());
        let route = &planning.plan.route;
        if route.route == Route::Native {
            let found = check::check_route(plugin, route.span.as_ref(), planning.plan.lowest_ptx());
            checkup.diagnostics.extend(told(found, is_right));
        }
        let checked = check::check_for(plugin, &targets, route.route);
        checkup.diagnostics.extend(told(checked.diagnostics, is_right));
        if is_right {
            checkup.obligations.extend(checked.obligations);
        }
    }
    look.subjects.push(Subject { plugin, plan, is_right });
    look
}

/// What is only a warning may follow from the mistakes of a manifest that is wrong.
fn told(diagnostics: Vec<Diagnostic>, is_right: bool) -> impl Iterator<Item = Diagnostic> {
    diagnostics.into_iter().filter(move |one| is_right || one.severity == Severity::Error)
}

fn with_kernels(look: Look, open: &Open<'_>) -> Checkup {
    let mut checkup = look.checkup;
    let kernels = look.subjects.par_iter().map(|subject| subject.kernels(open));
    for one in kernels.collect::<Vec<Kernels>>() {
        checkup.diagnostics.retain(|earlier| !one.superseded.contains(earlier));
        checkup.add(one.checkup);
    }
    // Manifests share files, and so their mistakes.
    dedup(&mut checkup.diagnostics);
    sort(&mut checkup.diagnostics);
    checkup
}

impl Look {
    fn of_mistakes(diagnostics: Vec<Diagnostic>) -> Look {
        Look { checkup: Checkup { diagnostics, ..Checkup::default() }, ..Look::default() }
    }

    fn add(&mut self, other: Look) {
        self.subjects.extend(other.subjects);
        self.checkup.add(other.checkup);
    }
}

impl Checkup {
    fn add(&mut self, other: Checkup) {
        self.diagnostics.extend(other.diagnostics);
        self.obligations.extend(other.obligations);
        self.unsure.extend(other.unsure);
        self.unheld.extend(other.unheld);
        self.targets.extend(other.targets);
        self.without_targets += other.without_targets;
    }
}

/// What a manifest's kernels tell.
#[derive(Default)]
struct Kernels {
    checkup: Checkup,
    /// What takes the place of something that was told of the manifest alone.
    superseded: Vec<Diagnostic>,
}

impl Subject {
    fn kernels(&self, open: &Open<'_>) -> Kernels {
        let mut found = Kernels::default();
        let Some(plugin) = &self.plugin else { return found };
        let checkup = &mut found.checkup;
        let targets = self.plan.as_ref().map_or_else(Vec::new, |planning| planning.plan.targets());
        let route = self.plan.as_ref().map(|planning| planning.plan.route.route).unwrap_or_default();
        let options = self.plan.as_ref().map_or(&[][..], |planning| &planning.plan.settings.options);
        let kernels = kernel_text::check_for(plugin, &targets, options, open);
        if self.is_right && !has_errors(&kernels.diagnostics) {
            let arguments = check::check_arguments(plugin, &targets, route, &kernels.args);
            found.superseded = arguments.superseded;
            checkup.diagnostics.extend(arguments.diagnostics);
            checkup.obligations.extend(arguments.obligations);
            checkup.diagnostics.extend(kernel_text::unused_names(plugin, open));
        }
        checkup.diagnostics.extend(told(kernels.diagnostics, self.is_right));
        checkup.unsure.extend(kernels.unsure);
        checkup.unheld.extend(kernels.unheld);
        found
    }

    fn right_plugin(&self) -> Option<&Plugin> {
        self.plugin.as_ref().filter(|_| self.is_right).map(|plugin| &plugin.draft.plugin)
    }

    fn into_checked(self) -> Option<CheckedPlugin> {
        Some(CheckedPlugin { resolved: self.plugin?, plan: self.plan?.plan })
    }
}
