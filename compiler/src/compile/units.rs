//! Compiles all kernels and checks them against the manifests. Reports each error once across variants, targets and
//! plugins.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use cubinder_analysis::check::{self, Obligation, has_clusters};
use cubinder_analysis::verify::{self, BoundArgs};
use cubinder_analysis::{kernel_text, precompiled};
use cubinder_code_object::cubin::{self, Dynamic, LaunchRules};
use cubinder_code_object::kernel_signature::Signature;
use cubinder_cuda_text::manifest_names::manifest_names;
use cubinder_import::foreign;
use cubinder_manifest::manifest::Route;
use cubinder_manifest::resolve::{Resolved, Unit};
use cubinder_model::{Arg, CodeObject, Digest, Plugin, Target};
use cubinder_nvrtc::nvrtc::{CompileMessage, CompiledKernel, Session, merge_targets};
use cubinder_source::diagnostic::{Code, Diagnostic, Severity, Sink, dedup, has_errors};
use cubinder_source::{rules, source};
use indicatif::ProgressBar;

use super::inputs::Inputs;
use super::jobs::{self, CompileJobs, CompiledJob, Job, PluginJobs, UnitJob};
use super::{explain, machine_paths, native, provenance};
use crate::check_plugins::CheckedPlugin;
use crate::errors::ClustersDiffer;
use crate::pack::{CompiledCode, CompiledPlugin, CompiledUnit};
use crate::project::Plan;

pub(super) struct CompiledPlugins {
    pub(super) plugins: Vec<CompiledPlugin>,
    pub(super) nvrtc: Option<(i32, i32)>,
    /// Claims that follow from compiled code, once per kernel.
    pub(super) obligations: Vec<Obligation>,
    pub(super) included: Inputs,
}

impl CompileJobs<'_> {
    pub(super) fn compile(
        &self,
        progress: &ProgressBar,
        warnings: &Sink,
    ) -> Result<CompiledPlugins, Vec<Diagnostic>> {
        for plugin in &self.plugins {
            let resolved = &plugin.plugin.resolved;
            warnings.report(match self.session {
                Some(session) => {
                    unused_names(session, resolved, self.jobs.get(plugin.jobs.clone()).unwrap_or_default())
                }
                None => resolved.unused(&BTreeSet::new()),
            });
        }
        let programs = self.programs();
        let run = |session| jobs::run(session, &self.jobs, &programs, progress);
        let results = self.session.map(run).unwrap_or_default();
        let mut included = Inputs::default();
        if let Some(session) = self.session {
            self.jobs.iter().for_each(|job| included.add_included(session, &job.prepared));
        }
        let codes = results.iter().flat_map(|job| &job.codes);
        let nvrtc = codes.filter_map(|(_, code)| code.as_ref().ok()).map(|code| code.nvrtc).next();
        let mut plugins = Vec::new();
        let mut obligations = Vec::new();
        let mut errors = Vec::new();
        let open = |path: &Path| self.sources.get(path).cloned().ok_or_else(Vec::new);
        for plugin in &self.plugins {
            let CheckedPlugin { resolved, plan } = plugin.plugin;
            let text = kernel_text::check(resolved, &plan.targets(), &plan.settings.options, &open);
            let (text_errors, text_warnings): (Vec<_>, Vec<_>) =
                text.diagnostics.into_iter().partition(|found| found.severity == Severity::Error);
            let is_of_text = |found: &Diagnostic| found.code.is_some_and(|code| OF_TEXT.contains(&code));
            warnings.report(text_warnings.into_iter().filter(is_of_text));
            match finish_plugin(self, plugin, &results, warnings) {
                Ok((plugin, of_code)) => {
                    obligations.extend(of_code);
                    plugins.push(plugin);
                }
                Err(found) => errors.extend(explain::with_what_was_read(text_errors, found)),
            }
        }
        dedup(&mut errors);
        if errors.is_empty() {
            Ok(CompiledPlugins { plugins, nvrtc, obligations, included })
        } else {
            Err(errors)
        }
    }
}

/// Warnings decided from kernel text.
const OF_TEXT: [Code; 2] = [rules::NO_DEPENDENCY_WAIT, rules::RESTRICTED_ALIAS];

/// Warns about unused type parameters and constants. Macro-computed includes may use any.
fn unused_names(session: &Session, plugin: &Resolved, jobs: &[Job<'_>]) -> Vec<Diagnostic> {
    if plugin.unused_names.is_empty() {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for job in jobs {
        let unit = &job.prepared.unit;
        if !seen.insert(unit.source.path.as_path()) {
            continue;
        }
        names.extend(manifest_names(&unit.source.text));
        let Some(files) = session.included_files(&job.prepared) else { return Vec::new() };
        for file in files {
            // An unreadable file may use any name.
            let Ok(source) = source::text(file) else { return Vec::new() };
            names.extend(manifest_names(&source.text));
        }
    }
    plugin.unused(&names)
}

fn finish_plugin(
    all: &CompileJobs<'_>,
    jobs: &PluginJobs<'_>,
    results: &[CompiledJob<'_>],
    warnings: &Sink,
) -> Result<(CompiledPlugin, Vec<Obligation>), Vec<Diagnostic>> {
    let CheckedPlugin { resolved, plan } = jobs.plugin;
    let plugin = &resolved.draft.plugin;
    let own = results.get(jobs.jobs.clone()).unwrap_or_default();
    let mut seen = HashSet::new();
    warnings.report(own.iter().filter_map(|job| job.machine_path(&mut seen)));
    let (mut units, mut known) = (Vec::new(), DynamicShared::new());
    let (mut row_errors, mut row_warnings) = (Vec::new(), Vec::new());
    for UnitJob { unit, job } in &jobs.units {
        let row = verify::row_name(plugin, unit);
        let of_row = Sink::default();
        let finished = match job.and_then(|job| results.get(job)) {
            Some(compiled) => finish_unit(all.session, resolved, unit, compiled, &mut known, &of_row),
            None => finish_precompiled(&all.project.root, plugin, unit, plan, &of_row),
        };
        let errors = finished.map(|unit| units.push(unit)).err().unwrap_or_default();
        row_errors.push((row.clone(), errors));
        row_warnings.push((row, of_row.into_diagnostics()));
    }
    warnings.report(verify::merge_rows(&row_warnings));
    let errors = verify::merge_rows(&row_errors);
    if !errors.is_empty() {
        let is_foreign = jobs.units.iter().any(|unit| unit.unit.foreign.is_some());
        let errors = if is_foreign { foreign::fold_file_errors(errors) } else { errors };
        return Err(errors);
    }
    let compiled: Vec<check::UnitCode<'_>> = units.iter().map(facts).collect();
    let checked = check::check_compiled(resolved, &plan.targets(), plan.route.route, &compiled);
    warnings.supersede(&checked.diagnostics);
    if has_errors(&checked.diagnostics) {
        return Err(checked.diagnostics);
    }
    warnings.report(checked.diagnostics);
    drop(compiled);
    if plan.route.route == Route::Native {
        native::replace_code(all, jobs, &mut units)?;
    }
    Ok((CompiledPlugin { plugin: plugin.clone(), units }, checked.obligations))
}

fn finish_precompiled(
    root: &Path,
    plugin: &Plugin,
    unit: &Unit,
    plan: &Plan,
    warnings: &Sink,
) -> Result<CompiledUnit, Vec<Diagnostic>> {
    let held = precompiled::check(plugin, unit);
    let (errors, found): (Vec<_>, Vec<_>) =
        held.diagnostics.into_iter().partition(|found| found.severity == Severity::Error);
    warnings.report(found);
    let (Some(code), Some(bound)) = (&unit.foreign, held.bound) else {
        return Err(errors);
    };
    let mut files: Vec<usize> = Vec::new();
    for target in plan.targets() {
        files.extend(foreign::serving(code, target, plan.ptx_serves).filter(|file| !files.contains(file)));
    }
    let loaded = files.iter().filter_map(|&file| Some((file, code.files.get(file)?.loaded.as_ref()?)));
    let codes = loaded.map(|(file, loaded)| CompiledCode {
        object: Arc::new(loaded.object()),
        symbol: unit.kernel.clone(),
        origin: provenance::of_foreign(root, code, file),
    });
    let (cluster, code) = (held.cluster, codes.collect());
    Ok(CompiledUnit { variant: unit.variant, step: unit.step, bound, cluster, code })
}

impl CompiledJob<'_> {
    fn machine_path(&self, seen: &mut HashSet<Digest>) -> Option<Diagnostic> {
        let Job { prepared, machine_folders, .. } = self.job;
        let codes = self.codes.iter().filter_map(|(_, code)| code.as_ref().ok());
        let mut codes = codes.filter(|code| seen.insert(code.object.digest));
        codes.find_map(|code| machine_paths::warning(&prepared.unit, machine_folders, &code.object))
    }
}

fn finish_unit(
    session: Option<&Session>,
    resolved: &Resolved,
    unit: &Unit,
    results: &CompiledJob<'_>,
    known: &mut DynamicShared,
    warnings: &Sink,
) -> Result<CompiledUnit, Vec<Diagnostic>> {
    let CompiledJob { job, signatures, codes } = results;
    let plugin = &resolved.draft.plugin;
    let compiled: Vec<(Target, &CompiledKernel)> =
        codes.iter().filter_map(|(target, result)| Some((*target, result.as_ref().ok()?))).collect();
    // Targets without errors tell whether all fail.
    let errors = |errors: &Vec<CompileMessage>| explained(resolved, errors);
    let failed: Vec<_> = codes
        .iter()
        .map(|(target, result)| (*target, result.as_ref().err().map(errors).unwrap_or_default()))
        .collect();
    let of_code: Vec<_> = compiled.iter().map(|(target, code)| (*target, code.warnings.clone())).collect();
    warnings.report(merge_targets(&of_code));
    let failed = merge_targets(&failed);
    if !failed.is_empty() {
        return Err(failed);
    }
    let signatures = usable(resolved, unit, signatures)?;
    let bound = verify::bind_targets(plugin, unit, &signatures)
        .map_err(|errors| explain::with_kernel(errors, &job.prepared.unit))?;
    for (_, signature) in &signatures {
        warnings.report(verify::writable_inputs(plugin, unit, signature));
    }
    let check = |(target, code): &(Target, &CompiledKernel)| {
        let checked = check_code(plugin, unit, &signatures, &bound.args, code);
        (*target, checked.err().unwrap_or_default())
    };
    let errors = merge_targets(&compiled.iter().map(check).collect::<Vec<_>>());
    if !errors.is_empty() {
        return Err(errors);
    }
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    let no_shared = |(target, code): &(Target, &CompiledKernel)| {
        let dynamic_shared = dynamic_shared(session, job, *target, code, known);
        let rules = LaunchRules { dynamic_shared, ..code.rules };
        let warning = launch.and_then(|launch| verify::no_shared(unit, launch, rules));
        (*target, warning.into_iter().collect())
    };
    if launch.is_some_and(|launch| launch.shared_bytes.constant() == Some(0)) {
        warnings.report(merge_targets(&compiled.iter().map(no_shared).collect::<Vec<_>>()));
    }
    let rules: Vec<(Target, LaunchRules)> =
        compiled.iter().map(|(target, code)| (*target, code.rules)).collect();
    let needs_cluster = launch.is_some_and(|launch| launch.cluster.is_none());
    let cluster = if needs_cluster { cluster_of(unit, &rules)? } else { None };
    let code = compiled.iter().map(|(_, code)| CompiledCode {
        object: Arc::clone(&code.object),
        symbol: code.symbol.clone(),
        origin: Some(job.origin.clone()),
    });
    let code = code.collect();
    Ok(CompiledUnit { variant: unit.variant, step: unit.step, bound, cluster, code })
}

type DynamicShared = HashMap<(Digest, String), Dynamic>;

/// Returns whether the kernel has dynamic shared memory. If one kernel of a program has some, the cubin lists it for
/// all, so the kernel is compiled alone. Static shared memory always hides it.
fn dynamic_shared(
    session: Option<&Session>,
    job: &Job<'_>,
    target: Target,
    code: &CompiledKernel,
    known: &mut DynamicShared,
) -> Dynamic {
    let found = code.rules.dynamic_shared;
    let CodeObject { kernels, digest, .. } = code.object.as_ref();
    let facts = kernels.iter().find(|kernel| kernel.symbol == code.symbol);
    let has_no_static = facts.is_some_and(|facts| facts.shared_bytes == Some(0));
    let is_listed = found == Dynamic::NotTold && kernels.len() > 1 && has_no_static;
    match session.filter(|_| is_listed) {
        None => found,
        Some(session) => *known.entry((*digest, code.symbol.clone())).or_insert_with(|| {
            session.compile(&job.prepared, target).map_or(found, |alone| alone.rules.dynamic_shared)
        }),
    }
}

fn explained(resolved: &Resolved, errors: &[CompileMessage]) -> Vec<Diagnostic> {
    errors.iter().map(|error| explain::with_places(resolved, error)).collect()
}

fn usable<'s>(
    resolved: &Resolved,
    unit: &Unit,
    signatures: &'s [(Target, jobs::SignatureResult)],
) -> Result<Vec<(Target, &'s Signature)>, Vec<Diagnostic>> {
    let failed = signatures.iter().filter_map(|(target, signature)| match signature {
        Some(Err(found)) => Some((*target, explained(resolved, found))),
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

/// Returns the cluster size, which must be equal for all targets.
fn cluster_of(unit: &Unit, rules: &[(Target, LaunchRules)]) -> Result<Option<[u32; 3]>, Vec<Diagnostic>> {
    let size = |rules: &LaunchRules| match rules.cluster {
        Some(cubin::Cluster::Of(size)) => size,
        Some(cubin::Cluster::AtLaunch) | None => [1; 3],
    };
    let sizes: Vec<(Target, [u32; 3])> = rules.iter().map(|(target, rules)| (*target, size(rules))).collect();
    let Some(&(first, size)) = sizes.first() else { return Ok(None) };
    match sizes.iter().find(|(_, other)| *other != size) {
        None => Ok((size != [1; 3]).then_some(size)),
        Some((other, another)) => {
            let shown = |size: &[u32; 3]| size.map(|axis| axis.to_string()).join(" x ");
            let is_without = |(target, _): &(Target, [u32; 3])| !has_clusters(*target);
            let help = match sizes.iter().any(is_without) {
                true => {
                    "GPUs below 9.0 do not support clusters: remove their targets; or remove `__cluster_dims__`, set `cluster` in the launch of a \
                     variant with the guard `device.capability >= 90`, and add another variant for other GPUs"
                }
                false => "use the same `__cluster_dims__` for all targets",
            };
            let shown_sizes = format!("{} for `{first}`, {} for `{other}`", shown(&size), shown(another));
            Err(ClustersDiffer {
                kernel: unit.kernel.clone(),
                span: unit.kernel_span.clone(),
                sizes: shown_sizes,
                help,
            }
            .into())
        }
    }
}

fn facts(unit: &CompiledUnit) -> check::UnitCode<'_> {
    let codes = unit.code.iter().filter_map(|CompiledCode { object, symbol, .. }| {
        Some((object.target, object.kernels.iter().find(|kernel| kernel.symbol == *symbol)?))
    });
    let CompiledUnit { bound: BoundArgs { args, read_only, number_bytes }, cluster, .. } = unit;
    check::UnitCode { args, read_only, number_bytes, cluster: *cluster, codes: codes.collect() }
}

fn check_code(
    plugin: &Plugin,
    unit: &Unit,
    signatures: &[(Target, &Signature)],
    args: &[Arg],
    code: &CompiledKernel,
) -> Result<(), Vec<Diagnostic>> {
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    let (Some(launch), Some(kernel)) =
        (launch, code.object.kernels.iter().find(|kernel| kernel.symbol == code.symbol))
    else {
        return Err(Diagnostic::error(format!(
            "the code for `{}` has no kernel `{}`",
            code.object.target, code.symbol
        ))
        .at(unit.kernel_span.clone(), "compiled for this kernel")
        .into());
    };
    let target = code.object.target;
    let signature = match signatures {
        [only] => Some(only),
        all => all.iter().find(|(of, _)| of.arch == target.arch),
    };
    let Some((_, signature)) = signature else {
        return Err(Diagnostic::error(format!("`{}` was not compiled", unit.kernel)).into());
    };
    let rules = code.rules;
    verify::check_code(&verify::CodeCheck { unit, launch, args, signature, target, kernel, rules })
}
