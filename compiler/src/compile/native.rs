//! Native-route kernels: wrappers that take TensorRT's arguments.
//!
//! [`cubinder_analysis::check::check_route`] has accepted the plugin, and the author's kernel compiled before.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use cubinder_analysis::check::can_be_chosen;
use cubinder_code_object::cubin::{self, LaunchRules};
use cubinder_expr::{BinaryOp, joined};
use cubinder_import::foreign;
use cubinder_launch::native;
use cubinder_launch::proof::{Domain, Greatest};
use cubinder_manifest::resolve::{Resolved, Unit};
use cubinder_model::{CodeObject, Digest, KernelFacts, Launch, Plugin, Target, TargetKind, Variant};
use cubinder_nvrtc::codegen::{self, LaunchBounds};
use cubinder_nvrtc::nvrtc::{CompiledKernel, Session, diagnostics};
use cubinder_source::diagnostic::Diagnostic;
use rayon::prelude::*;

use super::jobs::{CompileJobs, Job, PluginJobs, UnitJob};
use super::provenance;
use crate::check_plugins::CheckedPlugin;
use crate::errors::{LostAttribute, NotADeviceFunction, RenamedPtx};
use crate::pack::{CompiledCode, CompiledUnit};
use crate::project::Plan;

/// Replaces code by wrappers; removes it if TensorRT cannot choose the variant. Precompiled code stays unwrapped.
pub(super) fn replace_code(
    all: &CompileJobs<'_>,
    jobs: &PluginJobs<'_>,
    units: &mut [CompiledUnit],
) -> Result<(), Vec<Diagnostic>> {
    let CheckedPlugin { resolved, plan } = jobs.plugin;
    let plugin = &resolved.draft.plugin;
    let mut tasks: Vec<Task<'_>> = Vec::new();
    let mut around: Vec<(usize, usize)> = Vec::new();
    let mut known: HashMap<(usize, String), usize> = HashMap::new();
    for (index, (UnitJob { unit, job }, compiled)) in jobs.units.iter().zip(units.iter_mut()).enumerate() {
        compiled.code.clear();
        let variant = plugin.variants.get(unit.variant).filter(|_| can_be_chosen(plugin, unit.variant));
        let launch = variant.and_then(|variant| Some((variant, variant.launch(unit.step)?)));
        let Some((variant, launch)) = launch else { continue };
        let Some((of_unit, job)) = job.and_then(|job| Some((job, all.jobs.get(job)?))) else {
            compiled.code = vec![precompiled(&all.project.root, plugin, unit, plan)?];
            continue;
        };
        let launch = Launch { args: compiled.bound.args.clone(), ..launch.clone() };
        // Launches with equal packing and blocks share a wrapper.
        let threads = largest_block(plugin, variant, &launch);
        let bounds = LaunchBounds { max_threads: Some(threads), min_blocks: None };
        let text = codegen::native_unit(&job.prepared.unit, plugin, &launch, bounds).text;
        let next = tasks.len();
        let task = *known.entry((of_unit, text)).or_insert(next);
        if task == next {
            tasks.push(Task { job, launch, threads });
        }
        around.push((index, task));
    }
    let compiled = all.session.map(|session| {
        let each = tasks.par_iter().map(|task| task.perform(session, resolved));
        each.collect::<Vec<Result<CompiledCode, Vec<Diagnostic>>>>()
    });
    let (compiled, errors): (Vec<_>, Vec<_>) = compiled.into_iter().flatten().partition(Result::is_ok);
    let errors: Vec<Diagnostic> = errors.into_iter().filter_map(Result::err).flatten().collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let compiled: Vec<CompiledCode> = compiled.into_iter().flatten().collect();
    for (index, task) in around {
        if let Some(unit) = units.get_mut(index) {
            unit.code.extend(compiled.get(task).cloned());
        }
    }
    Ok(())
}

/// Renames the kernel in precompiled PTX, which identifies the plugin in engines.
fn precompiled(
    root: &Path,
    plugin: &Plugin,
    unit: &Unit,
    plan: &Plan,
) -> Result<CompiledCode, Vec<Diagnostic>> {
    let found = unit.foreign.as_ref().zip(plan.lowest_ptx()).and_then(|(code, target)| {
        let file = foreign::serving(code, target, true)?;
        Some((provenance::of_foreign(root, code, file), code.files.get(file)?.loaded.as_ref()?))
    });
    // `check_route` rejected kernels without PTX.
    let (origin, loaded) = found.ok_or_else(Vec::new)?;
    let symbol = native::own_symbol(&plugin.namespace, &plugin.name);
    let bytes = cubin::renamed(&loaded.bytes, &unit.kernel, &symbol);
    let unreadable = |error: cubin::CubinError| RenamedPtx {
        kernel: unit.kernel.clone(),
        error: error.to_string(),
        span: unit.kernel_span.clone(),
    };
    let (mut kernels, rules) = cubin::kernels(loaded.target, &bytes).map_err(unreadable)?;
    say_shared(&mut kernels, &symbol, &rules.get(&symbol).copied().unwrap_or_default());
    let target = Target { kind: TargetKind::Native, arch: loaded.target.arch };
    let object = CodeObject { target, digest: Digest::compute(&bytes), kernels, bytes: bytes.into() };
    Ok(CompiledCode { object: Arc::new(object), symbol, origin })
}

/// Records static shared memory, which limits dynamic memory; the plugin route asks the driver.
fn say_shared(kernels: &mut [KernelFacts], symbol: &str, rules: &LaunchRules) {
    for kernel in kernels.iter_mut().filter(|kernel| kernel.symbol == symbol) {
        kernel.shared_bytes = Some(rules.shared_bytes);
    }
}

fn largest_block(plugin: &Plugin, variant: &Variant, launch: &Launch) -> u32 {
    let mut domain = Domain::new(plugin);
    if let Some(guard) = &variant.guard {
        domain = domain.assuming(&guard.expr);
    }
    let threads = joined(BinaryOp::Mul, &launch.block);
    let greatest = threads.map_or(Greatest::Unknown, |threads| domain.greatest(&threads));
    match greatest {
        Greatest::Value(greatest) => u32::try_from(greatest).unwrap_or(MAX_THREADS).clamp(1, MAX_THREADS),
        Greatest::Nothing | Greatest::Unknown => MAX_THREADS,
    }
}

/// Maximum threads per block (CUDA Programming Guide 13.0, "Compute Capabilities").
const MAX_THREADS: u32 = 1024;

struct Task<'j> {
    job: &'j Job<'j>,
    launch: Launch,
    threads: u32,
}

impl Task<'_> {
    fn perform(&self, session: &Session, plugin: &Resolved) -> Result<CompiledCode, Vec<Diagnostic>> {
        let Some(target) = self.job.plan.lowest_ptx() else { return Err(Vec::new()) };
        let bounds = self.bounds(session, target)?;
        let author = &self.job.prepared.unit;
        let unit = codegen::native_unit(author, &plugin.draft.plugin, &self.launch, bounds);
        let prepared = session.prepare_with(unit, self.job.plan.settings.clone());
        let compiled = session
            .compile(&prepared, target)
            .map_err(|errors| self.not_a_device_function(diagnostics(errors)))?;
        let CompiledKernel { object, symbol, rules, .. } = compiled;
        let mut object = Arc::unwrap_or_clone(object);
        say_shared(&mut object.kernels, &symbol, &rules);
        object.target.kind = TargetKind::Native;
        Ok(CompiledCode { object: Arc::new(object), symbol, origin: Some(self.job.origin.clone()) })
    }

    fn bounds(&self, session: &Session, target: Target) -> Result<LaunchBounds, Vec<Diagnostic>> {
        let compiled = session.compile(&self.job.prepared, target).map_err(diagnostics)?;
        let rules = compiled.rules;
        let lost = [
            (rules.block.is_some(), "`__block_size__`"),
            (rules.cluster.is_some(), "`__cluster_dims__`"),
            (rules.max_cluster.is_some(), "the third argument of `__launch_bounds__`"),
            (rules.max_registers.is_some(), "`__maxnreg__`"),
        ];
        if let Some((_, attribute)) = lost.into_iter().find(|(is_there, _)| *is_there) {
            let Unit { kernel, kernel_span, .. } = self.job.unit;
            return Err(LostAttribute { kernel: kernel.clone(), span: kernel_span.clone(), attribute }.into());
        }
        let facts = compiled.object.kernels.iter().find(|kernel| kernel.symbol == compiled.symbol);
        Ok(LaunchBounds {
            // Without this bound, another GPU's driver may assign too many registers for such a block.
            max_threads: facts.and_then(|facts| facts.max_threads).or(Some(self.threads)),
            min_blocks: rules.min_blocks,
        })
    }

    fn not_a_device_function(&self, errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let Unit { kernel, kernel_span, .. } = self.job.unit;
        let first = NotADeviceFunction { kernel: kernel.clone(), span: kernel_span.clone() };
        std::iter::once(first.into()).chain(errors).collect()
    }
}
