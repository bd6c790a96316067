//! The kernels that TensorRT launches itself: around each of a plugin's kernels one that takes what TensorRT passes.
//!
//! Owns what such a kernel is compiled for and with which launch bounds, and what is told where a kernel cannot become a part of another.
//! That the plugin can go that way at all [`cubinder_analysis::check::check_route`] has said; the author's kernel was compiled and checked by itself.

use std::collections::HashMap;

use cubinder_analysis::check::can_be_chosen;
use cubinder_code_object::cubin::{self, LaunchRules};
use cubinder_expr::{BinaryOp, joined};
use cubinder_import::foreign;
use cubinder_launch::native;
use cubinder_launch::proof::{Domain, Greatest};
use cubinder_manifest::resolve::{Resolved, Unit};
use cubinder_model::provenance::Origin;
use cubinder_model::{CodeObject, Digest, KernelFacts, Launch, Plugin, Target, TargetKind, Variant};
use cubinder_nvrtc::codegen::{self, LaunchBounds};
use cubinder_nvrtc::nvrtc::Session;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::rules;
use rayon::prelude::*;

use super::Context;
use super::jobs::{Job, PluginJobs, UnitJob};
use super::provenance::{self, CodeOrigin};
use crate::checkup::CheckedPlugin;
use crate::pack::{CompiledCode, CompiledUnit};
use crate::project::Plan;

/// Puts the code of the kernels around a plugin's into the place of its own; none where TensorRT could not choose the variant. Code that another
/// compiler made is launched as it is. Returns the inputs of the code, in the order of the units.
///
/// # Errors
/// What NVRTC says of a kernel that cannot become a part of another, and what such a kernel cannot keep.
pub(super) fn around(
    Context { project, session, jobs: all, .. }: Context<'_>,
    jobs: &PluginJobs<'_>,
    units: &mut [CompiledUnit],
) -> Result<Vec<CodeOrigin>, Vec<Diagnostic>> {
    let CheckedPlugin { resolved, plan } = jobs.plugin;
    let plugin = &resolved.draft.plugin;
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut tasks: Vec<Task<'_>> = Vec::new();
    let mut known: HashMap<(usize, String), usize> = HashMap::new();
    for (UnitJob { unit, job }, compiled) in jobs.units.iter().zip(&*units) {
        let variant = plugin.variants.get(unit.variant);
        let launch = variant.and_then(|variant| Some((variant, variant.launch(unit.step)?)));
        let launch = launch.filter(|_| can_be_chosen(plugin, unit.variant));
        kernels.push(match (launch, job.and_then(|job| Some((job, all.jobs.get(job)?)))) {
            (None, _) => Kernel::None,
            (Some(_), None) => {
                let (file, code) = precompiled(plugin, unit, plan)?;
                let made_by = unit.foreign.as_ref();
                let origin = made_by.and_then(|code| provenance::of_foreign(&project.root, code, file));
                Kernel::Precompiled(Box::new((code, origin)))
            }
            (Some((variant, launch)), Some((of_unit, job))) => {
                let launch = Launch { args: compiled.args.clone(), ..launch.clone() };
                let author = job.prepared.unit();
                // Kernels around one kernel are one where they put arguments together alike and have blocks alike.
                let threads = largest_block(plugin, variant, &launch);
                let bounds = LaunchBounds { max_threads: Some(threads), min_blocks: None };
                let text = codegen::native_unit(author, plugin, &launch, bounds).text;
                let next = tasks.len();
                let task = *known.entry((of_unit, text)).or_insert(next);
                if task == next {
                    tasks.push(Task { job, launch, threads });
                }
                Kernel::Around(task)
            }
        });
    }
    let compiled: Vec<Result<CompiledCode, Vec<Diagnostic>>> = match session {
        Some(session) => tasks.par_iter().map(|task| task.perform(session, resolved)).collect(),
        // Without one there is no job.
        None => Vec::new(),
    };
    let (compiled, errors): (Vec<_>, Vec<_>) = compiled.into_iter().partition(Result::is_ok);
    let errors: Vec<Diagnostic> = errors.into_iter().filter_map(Result::err).flatten().collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let compiled: Vec<CompiledCode> = compiled.into_iter().flatten().collect();
    let mut origins = Vec::new();
    for (unit, kernel) in units.iter_mut().zip(kernels) {
        let (code, origin) = match kernel {
            Kernel::None => (None, None),
            Kernel::Precompiled(precompiled) => (Some(precompiled.0), precompiled.1),
            Kernel::Around(task) => {
                (compiled.get(task).cloned(), tasks.get(task).map(|task| task.job.origin.clone()))
            }
        };
        origins.extend(code.as_ref().map(CompiledCode::key).zip(origin));
        unit.code = code.into_iter().collect();
    }
    Ok(origins)
}

/// The kernel that TensorRT launches for a unit.
enum Kernel {
    /// TensorRT could not choose its variant.
    None,
    /// Precompiled code and its origin.
    Precompiled(Box<(CompiledCode, Option<Origin>)>),
    /// The kernel of the task with this index.
    Around(usize),
}

/// The PTX of a unit that another compiler made, and which of its files it is. It keeps all but the kernel's name: by that an engine tells whose it is.
fn precompiled(plugin: &Plugin, unit: &Unit, plan: &Plan) -> Result<(usize, CompiledCode), Vec<Diagnostic>> {
    let found = unit.foreign.as_ref().zip(plan.lowest_ptx()).and_then(|(code, target)| {
        let file = foreign::serving(code, target, true)?;
        Some((file, code.files.get(file)?.loaded.as_ref()?))
    });
    // `check_route` has refused what there is no PTX of.
    let (file, loaded) = found.ok_or_else(Vec::new)?;
    let symbol = native::own_symbol(&plugin.namespace, &plugin.name);
    let bytes = cubin::renamed(&loaded.bytes, &unit.kernel, &symbol);
    let unreadable = |error: cubin::CubinError| {
        vec![
            Diagnostic::error(format!(
                "the PTX of `{}` cannot be read with another name: {error}",
                unit.kernel
            ))
            .at(unit.kernel_span.clone(), "this kernel"),
        ]
    };
    let mut kernels = cubin::kernels(loaded.target, &bytes).map_err(unreadable)?;
    let rules = cubin::launch_rules(loaded.target, &bytes, &symbol).map_err(unreadable)?;
    say_shared(&mut kernels, &symbol, &rules);
    let target = Target { kind: TargetKind::Native, arch: loaded.target.arch };
    let object = CodeObject { target, digest: Digest::of(&bytes), kernels, bytes: bytes.into() };
    Ok((file, CompiledCode { object, symbol }))
}

/// Says what shared memory a kernel declares, of which its dynamic one has to leave room: PTX of a plugin library has the driver to ask.
fn say_shared(kernels: &mut [KernelFacts], symbol: &str, rules: &LaunchRules) {
    for kernel in kernels.iter_mut().filter(|kernel| kernel.symbol == symbol) {
        kernel.shared_bytes = Some(rules.shared_bytes);
    }
}

/// The most threads of a block of this launch, as far as it is proved.
fn largest_block(plugin: &Plugin, variant: &Variant, launch: &Launch) -> u32 {
    let mut domain = Domain::of(plugin);
    if let Some(guard) = &variant.guard {
        domain = domain.assuming(&guard.expr);
    }
    let threads = joined(BinaryOp::Mul, &launch.block);
    let most = threads.map_or(Greatest::Unknown, |threads| domain.greatest(&threads));
    match most {
        Greatest::Value(most) => u32::try_from(most).unwrap_or(MAX_THREADS).clamp(1, MAX_THREADS),
        Greatest::Nothing | Greatest::Unknown => MAX_THREADS,
    }
}

/// The most threads of any block (CUDA Programming Guide 13.0, "Compute Capabilities").
const MAX_THREADS: u32 = 1024;

/// One kernel to be made.
struct Task<'j> {
    job: &'j Job<'j>,
    /// The launch with its arguments.
    launch: Launch,
    /// The most threads of its blocks.
    threads: u32,
}

impl Task<'_> {
    fn perform(&self, session: &Session, plugin: &Resolved) -> Result<CompiledCode, Vec<Diagnostic>> {
        let Some(target) = self.job.plan.lowest_ptx() else { return Err(Vec::new()) };
        let bounds = self.bounds(session, target)?;
        let author = self.job.prepared.unit();
        let unit = codegen::native_unit(author, &plugin.draft.plugin, &self.launch, bounds);
        let prepared = session.prepare_with(unit, self.job.plan.settings.clone());
        let compiled = session.compile(&prepared, target).map_err(|errors| self.explained(errors))?;
        let mut object = compiled.object;
        let raw = object.raw().map_err(|error| self.unreadable(target, &error))?;
        let rules = cubin::launch_rules(target, &raw, &compiled.symbol);
        let rules = rules.map_err(|error| self.unreadable(target, &error))?;
        drop(raw);
        say_shared(&mut object.kernels, &compiled.symbol, &rules);
        object.target.kind = TargetKind::Native;
        Ok(CompiledCode { object, symbol: compiled.symbol })
    }

    /// What the author's kernel says of its launches.
    fn bounds(&self, session: &Session, target: Target) -> Result<LaunchBounds, Vec<Diagnostic>> {
        let compiled = session.compile(&self.job.prepared, target)?;
        let raw = compiled.object.raw().map_err(|error| self.unreadable(target, &error))?;
        let rules = cubin::launch_rules(target, &raw, &compiled.symbol);
        let rules = rules.map_err(|error| self.unreadable(target, &error))?;
        let lost = [
            (rules.block.is_some(), "__block_size__"),
            (rules.cluster.is_some(), "__cluster_dims__"),
            (rules.max_cluster.is_some(), "the third number of `__launch_bounds__`"),
            (rules.max_registers.is_some(), "__maxnreg__"),
        ];
        if let Some((_, what)) = lost.into_iter().find(|(is_there, _)| *is_there) {
            return Err(vec![self.lost(what)]);
        }
        let facts = compiled.object.kernels.iter().find(|kernel| kernel.symbol == compiled.symbol);
        Ok(LaunchBounds {
            // For other GPUs the driver may take more registers than a block of this size has, where nothing tells it.
            max_threads: facts.and_then(|facts| facts.max_threads).or(Some(self.threads)),
            min_blocks: rules.min_blocks,
        })
    }

    fn unreadable(&self, target: Target, error: &dyn std::fmt::Display) -> Vec<Diagnostic> {
        vec![self.at_kernel(Diagnostic::error(format!("the code for `{target}` cannot be read: {error}")))]
    }

    /// What the kernel says and the one around it cannot.
    fn lost(&self, what: &str) -> Diagnostic {
        let what = if what.contains(' ') { what.to_owned() } else { format!("`{what}`") };
        let message =
            format!("TensorRT cannot launch `{}` itself: the kernel has {what}", self.job.unit.kernel);
        self.at_kernel(Diagnostic::error(message).code(rules::NO_NATIVE_ROUTE))
            .note("it becomes a part of a kernel that takes its arguments as TensorRT passes them, and that one would not have it")
            .help("take it out, or let a plugin library launch the kernel: leave `route` out")
    }

    /// What NVRTC says of the two kernels in one.
    fn explained(&self, errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let message = format!(
            "TensorRT cannot launch `{}` itself: the kernel does not become a part of another",
            self.job.unit.kernel
        );
        let first = self
            .at_kernel(Diagnostic::error(message).code(rules::NO_NATIVE_ROUTE))
            .note("the kernel compiles by itself; here it must compile when it is called as a function of the device, which does not allow all that a kernel does: NVRTC says what is wrong")
            .help("mend that, or let a plugin library launch the kernel: leave `route` out");
        std::iter::once(first).chain(errors).collect()
    }

    fn at_kernel(&self, diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.at(self.job.unit.kernel_span.clone(), "this kernel")
    }
}
