//! The kernels of all plugins, compiled side by side and held against their manifests.
//!
//! Owns the joining of what came of their compiles ([`super::jobs`]). Says each mistake once, whatever number of variants,
//! targets and plugins it shows in.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use cubinder_model::provenance::Origin;
use cubinder_model::{Arg, KernelFacts, Plugin, Target};

use super::inputs::Inputs;
use super::jobs::{self, Job, Jobs, Sources};
use super::{Progress, explain, native, places, provenance};
use crate::check::{self, Obligation, has_clusters};
use crate::cubin;
use crate::diagnostic::{Code, Diagnostic, Severity, dedup, has_errors};
use crate::foreign;
use crate::kernel_signature::Signature;
use crate::kernel_text;
use crate::manifest::Route;
use crate::manifest_names::manifest_names;
use crate::nvrtc::{Compiled, Session, merge_targets};
use crate::pack::{CompiledCode, CompiledPlugin, CompiledUnit};
use crate::precompiled;
use crate::project::{Plan, Project};
use crate::resolve::{Resolved, Unit};
use crate::rules;
use crate::source;
use crate::verify::{self, Bound};

/// All plugins, compiled.
pub(super) struct CompiledPlugins {
    pub(super) plugins: Vec<CompiledPlugin>,
    /// The NVRTC that made the code.
    pub(super) nvrtc: Option<(i32, i32)>,
    /// What had to hold of launches against the code, each once for a kernel.
    pub(super) obligations: Vec<Obligation>,
    /// What the kernels include.
    pub(super) included: Inputs,
    /// What the code objects were made from, in the order in which plugins need them.
    pub(super) made: Vec<provenance::Made>,
}

/// What a plugin is compiled with.
#[derive(Clone, Copy)]
pub(super) struct With<'a> {
    pub(super) project: &'a Project,
    /// None where no kernel has a source.
    pub(super) session: Option<&'a Session>,
    pub(super) plan: &'a Plan,
}

/// Compiles every unit of every plugin; `plans` has one plan for each plugin.
pub(super) fn compile(
    project: &Project,
    session: Option<&Session>,
    plugins: &[Resolved],
    plans: &[Plan],
    progress: &dyn Progress,
    warnings: &mut Vec<Diagnostic>,
) -> Result<CompiledPlugins, Vec<Diagnostic>> {
    let sources = read_sources(plugins)?;
    let jobs_of = |(plugin, plan)| match session {
        Some(session) => jobs::jobs(project, session, plugin, plan, &sources),
        None => Jobs { jobs: Vec::new(), of_units: vec![None; plugin.draft.units.len()] },
    };
    let jobs: Vec<Jobs<'_>> = plugins.iter().zip(plans).map(jobs_of).collect();
    for (plugin, jobs) in plugins.iter().zip(&jobs) {
        match session {
            Some(session) => warnings.extend(unused_names(session, plugin, &jobs.jobs)),
            None => warnings.extend(plugin.unused(&BTreeSet::new())),
        }
    }
    let open = |path: &Path| sources.get(path).cloned().ok_or_else(Vec::new);
    let read = plugins.iter().zip(plans);
    let read: Vec<kernel_text::Checked> = read
        .map(|(plugin, plan)| kernel_text::check_for(plugin, &plan.targets(), &plan.settings.options, &open))
        .collect();
    let results = session.map(|session| jobs::perform(session, &jobs, progress));
    let mut results = results.unwrap_or_default().into_iter();
    let mut compiled = Vec::new();
    let mut nvrtc = None;
    let mut obligations = Vec::new();
    let mut included = Inputs::default();
    let mut made = Vec::new();
    if let Some(session) = session {
        let all = jobs.iter().flat_map(|jobs| &jobs.jobs);
        all.for_each(|job| included.add_included(session, &job.prepared));
    }
    let mut errors = Vec::new();
    for (((plugin, plan), jobs), read) in plugins.iter().zip(plans).zip(&jobs).zip(read) {
        let (mistakes, doubts): (Vec<_>, Vec<_>) =
            read.diagnostics.into_iter().partition(|found| found.severity == Severity::Error);
        // Of the rest the compiler's own facts tell.
        warnings.extend(
            doubts.iter().filter(|found| found.code.is_some_and(|code| OF_TEXT.contains(&code))).cloned(),
        );
        let with = With { project, session, plan };
        let finished = finish_plugin(with, plugin, jobs, &mut results, warnings);
        match finished.map_err(|errors| explain::with_what_was_read(mistakes, errors)) {
            Ok(finished) => {
                nvrtc = nvrtc.or(finished.nvrtc);
                obligations.extend(finished.obligations);
                made.extend(finished.made);
                compiled.push(finished.plugin);
            }
            Err(found) => errors.extend(found),
        }
    }
    dedup(warnings);
    dedup(&mut errors);
    if errors.is_empty() {
        return Ok(CompiledPlugins { plugins: compiled, nvrtc, obligations, included, made });
    }
    errors.append(warnings);
    Err(errors)
}

/// What only the kernels' text tells.
const OF_TEXT: [Code; 2] = [rules::NO_DEPENDENCY_WAIT, rules::RESTRICTED_ALIAS];

/// Reads each kernel file once.
fn read_sources(plugins: &[Resolved]) -> Result<Sources<'_>, Vec<Diagnostic>> {
    let mut sources: Sources<'_> = HashMap::new();
    let mut errors = Vec::new();
    let units = plugins.iter().flat_map(|plugin| &plugin.draft.units);
    for unit in units.filter(|unit| unit.foreign.is_none()) {
        if sources.contains_key(unit.source.as_path()) {
            continue;
        }
        match kernel_text::open_source(unit, &source::text) {
            Ok(source) => {
                sources.insert(&unit.source, source);
            }
            Err(found) => errors.extend(found),
        }
    }
    dedup(&mut errors);
    if errors.is_empty() { Ok(sources) } else { Err(errors) }
}

/// The warnings about type parameters and constants that neither the manifest nor a kernel uses. Where a kernel includes what
/// only the preprocessor can tell, it may use all of them.
fn unused_names(session: &Session, plugin: &Resolved, jobs: &[Job<'_>]) -> Vec<Diagnostic> {
    if plugin.unused_names.is_empty() {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for job in jobs {
        let unit = job.prepared.unit();
        if !seen.insert(unit.source.path.as_path()) {
            continue;
        }
        names.extend(manifest_names(&unit.source.text));
        let Some(files) = session.included_files(&job.prepared) else { return Vec::new() };
        for file in files {
            // What cannot be read now was read a moment ago: it may use all of them.
            let Ok(source) = source::text(file) else { return Vec::new() };
            names.extend(manifest_names(&source.text));
        }
    }
    plugin.unused(&names)
}

/// A plugin, the NVRTC that made its code, and what had to hold of its launches.
struct FinishedPlugin {
    plugin: CompiledPlugin,
    nvrtc: Option<(i32, i32)>,
    obligations: Vec<Obligation>,
    made: Vec<provenance::Made>,
}

/// Joins what came of a plugin's jobs, with the NVRTC that made it.
fn finish_plugin(
    with: With<'_>,
    plugin: &Resolved,
    jobs: &Jobs<'_>,
    results: &mut impl Iterator<Item = jobs::Made>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<FinishedPlugin, Vec<Diagnostic>> {
    let With { project, plan, .. } = with;
    let draft = &plugin.draft;
    let mut units = Vec::new();
    let mut nvrtc = None;
    let (mut wrong, mut doubtful) = (Vec::new(), Vec::new());
    let mut origins = Vec::new();
    let made = jobs.jobs.iter().zip(results).map(|(job, done)| {
        let targets = job.plan.targets.iter().map(|planned| planned.target);
        let signatures = job.plan.architectures().into_iter().zip(done.signatures).collect();
        Made { job, signatures, codes: targets.zip(done.codes).collect() }
    });
    let made: Vec<Made<'_>> = made.collect();
    warnings.extend(made.iter().filter_map(Made::place_of_machine));
    for (unit, job) in draft.units.iter().zip(&jobs.of_units) {
        let row = verify::Row::of(&draft.plugin, unit);
        let mut said = Vec::new();
        let finished = match job.and_then(|job| made.get(job)) {
            Some(made) => finish_unit(&draft.plugin, unit, made, &mut said),
            None => finish_foreign(&project.root, &draft.plugin, unit, plan, &mut said),
        };
        match finished {
            Ok(finished) => {
                nvrtc = nvrtc.or(finished.nvrtc);
                let codes = finished.unit.code.iter().map(|code| (code.object.digest, code.object.target));
                origins.extend(codes.zip(finished.origins));
                units.push(finished.unit);
                wrong.push((row.clone(), Vec::new()));
            }
            Err(found) => wrong.push((row.clone(), found)),
        }
        doubtful.push((row, said));
    }
    warnings.extend(verify::merge_rows(&doubtful));
    let errors = verify::merge_rows(&wrong);
    if !errors.is_empty() {
        let is_foreign = draft.units.iter().any(|unit| unit.foreign.is_some());
        let errors = if is_foreign { foreign::as_one(errors) } else { errors };
        return Err(errors.into_iter().map(|error| explain::with_places(plugin, error)).collect());
    }
    let compiled: Vec<check::Compiled<'_>> = units.iter().map(facts).collect();
    let checked = check::check_compiled(plugin, &plan.targets(), plan.route.route, &compiled);
    check::supersede(warnings, &checked.diagnostics);
    if has_errors(&checked.diagnostics) {
        return Err(checked.diagnostics);
    }
    warnings.extend(checked.diagnostics);
    let obligations = checked.obligations;
    drop(compiled);
    if plan.route.route == Route::Native {
        let made = native::around(with, plugin, jobs, &mut units)?;
        let codes = units.iter().map(|unit| unit.code.first());
        let codes = codes.map(|code| code.map(|code| (code.object.digest, code.object.target)));
        origins = codes.zip(made).filter_map(|(code, origin)| code.zip(origin)).collect();
    }
    Ok(FinishedPlugin {
        plugin: CompiledPlugin { draft: draft.clone(), units },
        nvrtc,
        obligations,
        made: origins,
    })
}

/// A unit whose code another compiler made.
fn finish_foreign(
    root: &Path,
    plugin: &Plugin,
    unit: &Unit,
    plan: &Plan,
    warnings: &mut Vec<Diagnostic>,
) -> Result<FinishedUnit, Vec<Diagnostic>> {
    let held = precompiled::check(plugin, unit);
    let (wrong, doubts): (Vec<_>, Vec<_>) =
        held.diagnostics.into_iter().partition(|found| found.severity == Severity::Error);
    warnings.extend(doubts);
    let (Some(code), Some(Bound { args, read_only, number_bytes })) = (&unit.foreign, held.bound) else {
        return Err(wrong);
    };
    let mut files: Vec<usize> = Vec::new();
    for target in plan.targets() {
        files.extend(foreign::serving(code, target, plan.ptx_serves).filter(|file| !files.contains(file)));
    }
    files.retain(|file| code.files.get(*file).is_some_and(|file| file.loaded.is_some()));
    let origins = files.iter().filter_map(|file| provenance::of_foreign(root, code, *file)).collect();
    let loaded = files.iter().filter_map(|file| code.files.get(*file)?.loaded.as_ref());
    let code = loaded.map(|loaded| CompiledCode { object: loaded.object(), symbol: unit.kernel.clone() });
    let unit = CompiledUnit { args, read_only, number_bytes, cluster: held.cluster, code: code.collect() };
    Ok(FinishedUnit { unit, nvrtc: None, origins })
}

/// What came of a job.
struct Made<'j> {
    job: &'j Job<'j>,
    signatures: Vec<(Target, jobs::SignatureResult)>,
    codes: Vec<(Target, Result<Compiled, Vec<Diagnostic>>)>,
}

impl Made<'_> {
    /// That some of the code holds a path of the machine; said once for a kernel.
    fn place_of_machine(&self) -> Option<Diagnostic> {
        let Job { prepared, of_machine, .. } = self.job;
        self.codes.iter().find_map(|(_, result)| match result {
            Ok(code) => places::told(prepared.unit(), of_machine, &code.object),
            Err(_) => None,
        })
    }
}

/// A unit, and the NVRTC that made its code.
struct FinishedUnit {
    unit: CompiledUnit,
    nvrtc: Option<(i32, i32)>,
    /// What each of its code objects was made from.
    origins: Vec<Origin>,
}

/// Joins what came of a unit's tasks and holds the parts against each other.
fn finish_unit(
    plugin: &Plugin,
    unit: &Unit,
    made: &Made<'_>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<FinishedUnit, Vec<Diagnostic>> {
    let Made { job, signatures, codes } = made;
    let mut compiled: Vec<(Target, &Compiled)> = Vec::new();
    // Of every target, those without errors too: then it can be said where only some have one.
    let mut failed = Vec::new();
    for (target, result) in codes {
        failed.push((*target, result.as_ref().err().cloned().unwrap_or_default()));
        if let Ok(code) = result {
            compiled.push((*target, code));
        }
    }
    let said: Vec<_> = compiled.iter().map(|(target, code)| (*target, code.warnings.clone())).collect();
    warnings.extend(merge_targets(&said));
    let failed = merge_targets(&failed);
    if !failed.is_empty() {
        return Err(failed);
    }
    let signatures = usable(unit, signatures)?;
    let Bound { args, read_only, number_bytes } = verify::bind_targets(plugin, unit, &signatures)
        .map_err(|errors| explain::with_kernel(errors, job.prepared.unit()))?;
    for (_, signature) in &signatures {
        warnings.extend(verify::writable_inputs(plugin, unit, signature));
    }
    let check =
        |code: &Compiled| check_code(plugin, unit, &signatures, &args, code).err().unwrap_or_default();
    let found: Vec<_> = compiled.iter().map(|(target, code)| (*target, check(code))).collect();
    let errors = merge_targets(&found);
    if !errors.is_empty() {
        return Err(errors);
    }
    let shared = |(target, code): &(Target, &Compiled)| Ok((*target, no_shared(plugin, unit, code)?));
    let shared: Vec<_> = compiled.iter().map(shared).collect::<Result<_, Vec<_>>>()?;
    warnings.extend(merge_targets(&shared));
    let nvrtc = compiled.first().map(|(_, code)| code.nvrtc);
    let code = |(_, code): &(Target, &Compiled)| CompiledCode {
        object: code.object.clone(),
        symbol: code.symbol.clone(),
    };
    let code: Vec<CompiledCode> = compiled.iter().map(code).collect();
    let cluster = cluster_of(plugin, unit, &compiled)?;
    let origins = vec![job.origin.clone(); code.len()];
    Ok(FinishedUnit { unit: CompiledUnit { args, read_only, number_bytes, cluster, code }, nvrtc, origins })
}

/// The signatures, each with a target of its architecture.
fn usable<'s>(
    unit: &Unit,
    signatures: &'s [(Target, jobs::SignatureResult)],
) -> Result<Vec<(Target, &'s Signature)>, Vec<Diagnostic>> {
    let failed = signatures.iter().filter_map(|(target, signature)| match signature {
        Some(Err(found)) => Some((*target, found.clone())),
        _ => None,
    });
    let failed = merge_targets(&failed.collect::<Vec<_>>());
    if !failed.is_empty() {
        return Err(failed);
    }
    let read =
        signatures.iter().map(|(target, signature)| Some((*target, signature.as_ref()?.as_ref().ok()?)));
    read.collect::<Option<Vec<_>>>()
        .ok_or_else(|| vec![Diagnostic::error(format!("`{}` was not compiled", unit.kernel))])
}

/// The clusters that the kernel asks for, where the launch does not; the same for every target.
fn cluster_of(
    plugin: &Plugin,
    unit: &Unit,
    compiled: &[(Target, &Compiled)],
) -> Result<Option<[u32; 3]>, Vec<Diagnostic>> {
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    if launch.is_none_or(|launch| launch.cluster.is_some()) {
        return Ok(None);
    }
    let mut asked = Vec::new();
    for (target, code) in compiled {
        let rules = launch_rules(unit, code)?;
        asked.push((
            *target,
            rules.cluster.map_or([1; 3], |cluster| match cluster {
                cubin::Cluster::Of(size) => size,
                cubin::Cluster::AtLaunch => [1; 3],
            }),
        ));
    }
    let Some(&(first, size)) = asked.first() else { return Ok(None) };
    match asked.iter().find(|(_, other)| *other != size) {
        None => Ok((size != [1; 3]).then_some(size)),
        Some((other, another)) => {
            let shown = |size: &[u32; 3]| size.map(|axis| axis.to_string()).join(" x ");
            let message = format!("`{}` runs in clusters of other sizes for other targets", unit.kernel);
            let diagnostic = Diagnostic::error(message)
                .code(rules::CLUSTER)
                .at(unit.kernel_span.clone(), "compiled for this kernel")
                .note(format!("{} for `{first}`, {} for `{other}`", shown(&size), shown(another)));
            let is_without = |(target, _): &(Target, [u32; 3])| !has_clusters(*target);
            Err(vec![match asked.iter().any(is_without) {
                true => diagnostic.help(
                    "GPUs below 9.0 have no clusters: leave their targets out; or take `__cluster_dims__` out, say `cluster` in the launch of a \
                     variant with `device.capability >= 90` in its guard, and have another variant for the rest",
                ),
                false => diagnostic.help("give it the same `__cluster_dims__` for every target"),
            }])
        }
    }
}

/// What the rules that need the code look at.
fn facts(unit: &CompiledUnit) -> check::Compiled<'_> {
    let kernel =
        |code: &'_ CompiledCode| code.object.kernels.iter().position(|kernel| kernel.symbol == code.symbol);
    let codes = unit.code.iter();
    let codes = codes.filter_map(|code| Some((code.object.target, code.object.kernels.get(kernel(code)?)?)));
    let CompiledUnit { args, read_only, number_bytes, cluster, .. } = unit;
    check::Compiled { args, read_only, number_bytes, cluster: *cluster, codes: codes.collect() }
}

/// What a code object says about the unit's kernel.
fn facts_of(code: &Compiled) -> Option<&KernelFacts> {
    code.object.kernels.iter().find(|kernel| kernel.symbol == code.symbol)
}

/// Holds a code object against the launch that it is for.
fn check_code(
    plugin: &Plugin,
    unit: &Unit,
    signatures: &[(Target, &Signature)],
    args: &[Arg],
    code: &Compiled,
) -> Result<(), Vec<Diagnostic>> {
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    let (Some(launch), Some(kernel)) = (launch, facts_of(code)) else {
        return Err(vec![
            Diagnostic::error(format!(
                "the code for `{}` has no kernel `{}`",
                code.object.target, code.symbol
            ))
            .at(unit.kernel_span.clone(), "compiled for this kernel"),
        ]);
    };
    let target = code.object.target;
    let rules = launch_rules(unit, code)?;
    let signature = signatures.iter().find(|(of, _)| of.arch == target.arch);
    let Some((_, signature)) = signature else {
        return Err(vec![Diagnostic::error(format!("`{}` was not compiled", unit.kernel))]);
    };
    verify::check_code(&verify::CodeCheck { unit, launch, args, signature, target, kernel, rules })
}

/// The warning about a launch without dynamic shared memory that the code uses.
fn no_shared(plugin: &Plugin, unit: &Unit, code: &Compiled) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let rules = launch_rules(unit, code)?;
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    Ok(launch.and_then(|launch| verify::no_shared(unit, launch, rules)).into_iter().collect())
}

/// What a code object demands of the launch.
fn launch_rules(unit: &Unit, code: &Compiled) -> Result<cubin::LaunchRules, Vec<Diagnostic>> {
    let target = code.object.target;
    let unreadable = |error: &dyn std::fmt::Display| {
        vec![
            Diagnostic::error(format!("the code for `{target}` cannot be read: {error}"))
                .at(unit.kernel_span.clone(), "compiled for this kernel"),
        ]
    };
    let raw = code.object.raw().map_err(|error| unreadable(&error))?;
    cubin::launch_rules(target, &raw, &code.symbol).map_err(|error| unreadable(&error))
}
