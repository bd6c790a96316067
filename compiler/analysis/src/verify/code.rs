//! A code object against what the manifest launches.

use cubinder_expr::Expr;
use cubinder_model::cuda_limits::MAX_CLUSTER;
use cubinder_model::{Arg, ArgValue, KernelFacts, Launch, Target};

use super::bytes;
use super::errors::{
    ClusterAboveBound, ClusterTooLarge, ClustersWithoutSize, GridOfClusters, NoDynamicSharedMemory,
    OtherBlock, OtherClusters, ParameterCountDiffers, ParameterDiffers, StaticSharedMemory,
    TooManyParameterBytes, TooManyRegisters, TooManyThreads, TooMuchSharedMemory,
};
use crate::block_limits::{MAX_BLOCK_REGISTERS, block_registers, max_shared_bytes};
use crate::cubin::{Cluster, Dynamic, LaunchRules};
use crate::diagnostic::Diagnostic;
use crate::kernel_signature::Signature;
use crate::resolve::Unit;

/// What one check looks at.
#[derive(Debug, Clone, Copy)]
pub struct CodeCheck<'a> {
    /// The unit that was compiled.
    pub unit: &'a Unit,
    /// The launch of the draft that it belongs to.
    pub launch: &'a Launch,
    /// The arguments as [`super::bind_args`] has bound them.
    pub args: &'a [Arg],
    /// The signature that they were bound to.
    pub signature: &'a Signature,
    /// What the code was compiled for.
    pub target: Target,
    /// What the code says about the kernel.
    pub kernel: &'a KernelFacts,
    /// What the code demands of the launch.
    pub rules: LaunchRules,
}

/// Static shared memory a block, bytes: what ptxas takes for every architecture (NVRTC 13.0, 7.5 to 12.1: "0xc000 max").
const MAX_STATIC_SHARED_BYTES: u32 = 48 * 1024;
/// Bytes of parameters below 7.0, and from there on. The second is what NVRTC 13.0 takes for 7.5 to 12.1 ("max 32764 bytes
/// allowed"); the first is from the release notes of CUDA 12.1. No header has either.
const MAX_PARAM_BYTES: (u32, u32) = (4096, 32_764);

/// Checks that the code takes what the manifest passes, and that the launch can succeed at all.
///
/// # Errors
/// Every disagreement, at the kernel's name in the manifest.
pub fn check_code(check: &CodeCheck<'_>) -> Result<(), Vec<Diagnostic>> {
    let checks = [parameters, parameter_bytes, shared, cluster, cluster_rank, threads];
    let problems: Vec<Diagnostic> = checks.into_iter().filter_map(|of| of(check)).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

impl CodeCheck<'_> {
    /// One disagreement. It does not name the target: what is the same for several is then reported once
    /// ([`crate::nvrtc::merge_targets`]), with the targets where it is not all of them.
    fn problem(&self, finding: impl Into<Diagnostic>) -> Diagnostic {
        let label = self.wording("compiled for this kernel", "this code");
        let mut diagnostic = finding.into().at(self.unit.kernel_span.clone(), label);
        diagnostic.notes.insert(0, format!("the kernel is `{}`", self.signature));
        diagnostic
    }

    /// Whether another compiler made the code: then nothing in it can be changed here, and its own words are those of PTX.
    fn is_foreign(&self) -> bool {
        self.unit.foreign.is_some()
    }

    /// The text for a kernel of CUDA C++, or for precompiled code.
    fn wording<T>(&self, of_source: T, of_code: T) -> T {
        if self.is_foreign() { of_code } else { of_source }
    }

    fn with_block(&self, diagnostic: Diagnostic) -> Diagnostic {
        match &self.unit.block_span {
            Some(block) => diagnostic.related(block.clone(), "the block"),
            None => diagnostic,
        }
    }
}

/// Number, order and widths of the parameters. Where they lie is the code's own affair, because a launch passes each
/// by its address: `alignas(16)` moves a struct without changing what is passed.
fn parameters(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let found = &check.kernel.params;
    let (code, manifest) = (found.len(), check.args.len());
    if code != manifest {
        return Some(check.problem(ParameterCountDiffers { code, manifest }));
    }
    let mut end = 0_u32;
    for (arg, found) in check.args.iter().zip(found) {
        let (alignment, size) = alignment_and_size(&arg.value);
        if found.size != size || found.offset < end || !found.offset.is_multiple_of(alignment) {
            let (parameter, offset) = (&arg.name, found.offset);
            let (size, passed) = (bytes(found.size), bytes(size));
            return Some(check.problem(ParameterDiffers { parameter, size, offset, passed }));
        }
        end = found.offset.saturating_add(found.size);
    }
    None
}

/// What an argument's offset is a multiple of, and its bytes.
fn alignment_and_size(value: &ArgValue) -> (u32, u32) {
    let (element, len) = match value {
        ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => (8, 1),
        ArgValue::Scalar { ty, .. } => (ty.size(), 1),
        ArgValue::Array { ty, len, .. } => (ty.size(), *len),
    };
    (element.max(1), element.saturating_mul(len))
}

fn parameter_bytes(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let last = check.kernel.params.last()?;
    let bytes = last.offset.saturating_add(last.size);
    let limit = if check.target.arch.major < 7 { MAX_PARAM_BYTES.0 } else { MAX_PARAM_BYTES.1 };
    (bytes > limit).then(|| check.problem(TooManyParameterBytes { bytes, limit }))
}

/// Shared memory: static alone, and with dynamic where the manifest gives it as a constant.
fn shared(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    // Of PTX the driver makes the code, and its facts are not known before; what it declares is.
    let fixed = check.kernel.shared_bytes.unwrap_or(check.rules.shared_bytes);
    if fixed > MAX_STATIC_SHARED_BYTES {
        return Some(check.problem(StaticSharedMemory { fixed, limit: MAX_STATIC_SHARED_BYTES }));
    }
    // PTX runs on GPUs that have more than the one that it is for.
    let fixed = check.kernel.shared_bytes?;
    let dynamic = check.launch.shared_bytes.constant()?;
    let limit = max_shared_bytes(check.target.arch)?;
    let is_too_much = i64::from(fixed).saturating_add(dynamic) > i64::from(limit);
    is_too_much.then(|| check.problem(TooMuchSharedMemory { fixed, dynamic, limit }))
}

/// The warning about dynamic shared memory that the code uses and the launch does not provide. Whether every run accesses it is unknown.
#[must_use]
pub fn no_shared(unit: &Unit, launch: &Launch, rules: LaunchRules) -> Option<Diagnostic> {
    let is_missing = launch.shared_bytes.constant() == Some(0) && rules.dynamic_shared == Dynamic::Yes;
    is_missing.then(|| NoDynamicSharedMemory { kernel: &unit.kernel, span: unit.kernel_span.clone() }.into())
}

/// Clusters: those that the kernel says and those that the launch says must be the same. Where the launch says nothing, it is made as the
/// kernel says. With `__block_size__` the grid would count clusters instead of blocks, which no launch of ours does.
fn cluster(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let launched = check.launch.cluster.as_ref().map(|cluster| cluster.each_ref().map(Expr::constant));
    match (check.rules.cluster?, launched) {
        (Cluster::Of(size), _) if counts_clusters(check) => {
            let source = check.wording(
                "the kernel says so with the second half of `__block_size__`",
                "the code says so with `.blocksareclusters`",
            );
            Some(check.problem(GridOfClusters { size: shown(size.map(Some)), source }))
        }
        (Cluster::Of(size), None) => {
            let blocks = size.into_iter().fold(1_u64, |all, axis| all.saturating_mul(u64::from(axis)));
            let source = check.wording("`__cluster_dims__`", "clusters");
            let too_large =
                ClusterTooLarge { blocks, limit: MAX_CLUSTER, source, size: shown(size.map(Some)) };
            (blocks > u64::from(MAX_CLUSTER)).then(|| check.problem(too_large))
        }
        (Cluster::Of(size), Some(launched)) if launched == size.map(|axis| Some(i64::from(axis))) => None,
        (Cluster::Of(size), Some(launched)) => {
            let (launched, size) = (shown(launched), shown(size.map(Some)));
            let source = check.wording(
                "the kernel says so with `__cluster_dims__`",
                "the code says so (`.reqnctapercluster` in PTX)",
            );
            let other_fix = check.wording(", or `__cluster_dims__` out of the kernel", "");
            Some(check.problem(OtherClusters { launched, size, source, other_fix }))
        }
        (Cluster::AtLaunch, Some(_)) => None,
        (Cluster::AtLaunch, None) => Some(check.problem(ClustersWithoutSize {})),
    }
}

/// The clusters of the launch against the most blocks that the kernel was made for.
fn cluster_rank(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let most = check.rules.max_cluster?;
    let axes = check.launch.cluster.as_ref()?.each_ref().map(Expr::constant);
    let blocks = axes.into_iter().try_fold(1_i64, |all, axis| all.checked_mul(axis?))?;
    let source = check.wording(
        "the kernel says so with the third number of `__launch_bounds__`",
        "the code says so (`.maxclusterrank` in PTX, the third number of `__launch_bounds__` in CUDA)",
    );
    let other_fix = check.wording(" or the bound larger", "");
    (blocks > i64::from(most)).then(|| check.problem(ClusterAboveBound { blocks, most, source, other_fix }))
}

/// Whether the grid of a kernel counts clusters. NVRTC writes a required block together with clusters for `__block_size__` alone; other compilers
/// write them side by side (Triton with several CTAs), and PTX says it with a word of its own.
fn counts_clusters(check: &CodeCheck<'_>) -> bool {
    if check.is_foreign() { check.rules.blocks_are_clusters } else { check.rules.block.is_some() }
}

/// `2 x 1 x ?`.
fn shown<T: ToString>(axes: [Option<T>; 3]) -> String {
    axes.map(|axis| axis.map_or_else(|| "?".to_owned(), |axis| axis.to_string())).join(" x ")
}

/// The block against what the kernel allows and against the registers.
fn threads(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let axes = check.launch.block.each_ref().map(Expr::constant);
    let required = check.rules.block.filter(|required| axes != required.map(|axis| Some(i64::from(axis))));
    if let Some(required) = required {
        // A computed block is refused as well: it could not vary anyway.
        let source = check.wording(
            "the kernel says so with `__block_size__`",
            "the code says so (`.reqntid` in PTX, a number of warps in Triton)",
        );
        let block = required.map(|axis| axis.to_string()).join(", ");
        let other_fix = check.wording(", or `__launch_bounds__` in the kernel", "");
        let (launched, required) = (shown(axes), shown(required.map(Some)));
        let unknown = axes.contains(&None).then_some("is not known before the engine runs");
        let found = OtherBlock { launched, required, source, unknown, block, other_fix };
        return Some(check.with_block(check.problem(found)));
    }
    let threads = axes.into_iter().try_fold(1_i64, |all, axis| all.checked_mul(axis?))?;
    if let Some(most) = check.kernel.max_threads.filter(|most| threads > i64::from(*most)) {
        let source = check.wording(
            "the kernel says so with `__launch_bounds__`",
            "the code says so (`.maxntid` in PTX, `__launch_bounds__` in CUDA)",
        );
        return Some(check.with_block(check.problem(TooManyThreads { threads, most, source })));
    }
    let registers = check.kernel.registers?;
    let all = block_registers(threads, registers)?;
    let help = check.wording(
        format!("say `__launch_bounds__({threads})` in the kernel, or make the block smaller"),
        "make the block smaller, or have the code made for so large a block".to_owned(),
    );
    let found = TooManyRegisters { threads, registers, all, limit: MAX_BLOCK_REGISTERS, help };
    (all > MAX_BLOCK_REGISTERS).then(|| check.problem(found))
}
