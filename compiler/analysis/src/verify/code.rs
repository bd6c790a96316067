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

/// Inputs of a check.
#[derive(Debug, Clone, Copy)]
pub struct CodeCheck<'a> {
    /// Compiled unit.
    pub unit: &'a Unit,
    /// Launch.
    pub launch: &'a Launch,
    /// Arguments from [`super::bind_args`].
    pub args: &'a [Arg],
    /// Signature of these arguments.
    pub signature: &'a Signature,
    /// Target of the code.
    pub target: Target,
    /// Kernel facts in the code.
    pub kernel: &'a KernelFacts,
    /// Launch rules.
    pub rules: LaunchRules,
}

/// Bytes per block (ptxas of NVRTC 13.0, compute capabilities 7.5 to 12.1: "0xc000 max").
const MAX_STATIC_SHARED_BYTES: u32 = 48 * 1024;
/// Bytes below compute capability 7.0 (release notes of CUDA 12.1), and since (NVRTC 13.0, 7.5 to 12.1: "max 32764
/// bytes allowed").
const MAX_PARAM_BYTES: (u32, u32) = (4096, 32_764);

/// Returns all mismatches with arguments and launch, at the kernel's name.
pub fn check_code(check: &CodeCheck<'_>) -> Result<(), Vec<Diagnostic>> {
    let checks = [parameters, parameter_bytes, shared, cluster, cluster_rank, threads];
    let problems: Vec<Diagnostic> = checks.into_iter().filter_map(|of| of(check)).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

impl CodeCheck<'_> {
    /// Omits the target, for [`crate::nvrtc::merge_targets`].
    fn problem(&self, finding: impl Into<Diagnostic>) -> Diagnostic {
        let label = self.wording("compiled for this kernel", "this code");
        let mut diagnostic = finding.into().at(self.unit.kernel_span.clone(), label);
        diagnostic.notes.insert(0, format!("the kernel is `{}`", self.signature));
        diagnostic
    }

    /// Whether precompiled: users cannot change it, and its terms are PTX's.
    fn is_foreign(&self) -> bool {
        self.unit.foreign.is_some()
    }

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

/// Launches need no offsets.
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

fn shared(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    // The driver compiles PTX, so only declared memory is known.
    let fixed = check.kernel.shared_bytes.unwrap_or(check.rules.shared_bytes);
    if fixed > MAX_STATIC_SHARED_BYTES {
        return Some(check.problem(StaticSharedMemory { fixed, limit: MAX_STATIC_SHARED_BYTES }));
    }
    // PTX also runs on larger GPUs.
    let fixed = check.kernel.shared_bytes?;
    let dynamic = check.launch.shared_bytes.constant()?;
    let limit = max_shared_bytes(check.target.arch)?;
    let is_too_much = i64::from(fixed).saturating_add(dynamic) > i64::from(limit);
    is_too_much.then(|| check.problem(TooMuchSharedMemory { fixed, dynamic, limit }))
}

/// Warns about dynamic shared memory that the launch omits.
#[must_use]
pub fn no_shared(unit: &Unit, launch: &Launch, rules: LaunchRules) -> Option<Diagnostic> {
    let is_missing = launch.shared_bytes.constant() == Some(0) && rules.dynamic_shared == Dynamic::Yes;
    is_missing.then(|| NoDynamicSharedMemory { kernel: &unit.kernel, span: unit.kernel_span.clone() }.into())
}

/// With `__block_size__` the grid would count clusters, which launches never do.
fn cluster(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let launched = check.launch.cluster.as_ref().map(|cluster| cluster.each_ref().map(Expr::constant));
    match (check.rules.cluster?, launched) {
        (Cluster::Of(size), _) if counts_clusters(check) => {
            let source = check.wording(
                "set by the second part of `__block_size__` in the kernel",
                "set by `.blocksareclusters` in the code",
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
                "set by `__cluster_dims__` in the kernel",
                "set by the code (`.reqnctapercluster` in PTX)",
            );
            let other_fix = check.wording(", or `__cluster_dims__` from the kernel", "");
            Some(check.problem(OtherClusters { launched, size, source, other_fix }))
        }
        (Cluster::AtLaunch, Some(_)) => None,
        (Cluster::AtLaunch, None) => Some(check.problem(ClustersWithoutSize {})),
    }
}

fn cluster_rank(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let most = check.rules.max_cluster?;
    let axes = check.launch.cluster.as_ref()?.each_ref().map(Expr::constant);
    let blocks = axes.into_iter().try_fold(1_i64, |all, axis| all.checked_mul(axis?))?;
    let source = check.wording(
        "set by the third argument of `__launch_bounds__` in the kernel",
        "set by the code (`.maxclusterrank` in PTX, the third argument of `__launch_bounds__` in CUDA)",
    );
    let other_fix = check.wording(" or raise the bound", "");
    (blocks > i64::from(most)).then(|| check.problem(ClusterAboveBound { blocks, most, source, other_fix }))
}

/// NVRTC combines a required block with clusters only for `__block_size__`; Triton also does otherwise, and PTX has a directive.
fn counts_clusters(check: &CodeCheck<'_>) -> bool {
    if check.is_foreign() { check.rules.blocks_are_clusters } else { check.rules.block.is_some() }
}

fn shown<T: ToString>(axes: [Option<T>; 3]) -> String {
    axes.map(|axis| axis.map_or_else(|| "?".to_owned(), |axis| axis.to_string())).join(" x ")
}

fn threads(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let axes = check.launch.block.each_ref().map(Expr::constant);
    let required = check.rules.block.filter(|required| axes != required.map(|axis| Some(i64::from(axis))));
    if let Some(required) = required {
        let source = check.wording(
            "set by `__block_size__` in the kernel",
            "set by the code (`.reqntid` in PTX, the number of warps in Triton)",
        );
        let block = required.map(|axis| axis.to_string()).join(", ");
        let other_fix = check.wording(", or use `__launch_bounds__` in the kernel", "");
        let (launched, required) = (shown(axes), shown(required.map(Some)));
        let unknown = axes.contains(&None).then_some("is unknown until the engine runs");
        let found = OtherBlock { launched, required, source, unknown, block, other_fix };
        return Some(check.with_block(check.problem(found)));
    }
    let threads = axes.into_iter().try_fold(1_i64, |all, axis| all.checked_mul(axis?))?;
    if let Some(most) = check.kernel.max_threads.filter(|most| threads > i64::from(*most)) {
        let source = check.wording(
            "set by `__launch_bounds__` in the kernel",
            "set by the code (`.maxntid` in PTX, `__launch_bounds__` in CUDA)",
        );
        return Some(check.with_block(check.problem(TooManyThreads { threads, most, source })));
    }
    let registers = check.kernel.registers?;
    let all = block_registers(threads, registers)?;
    let help = check.wording(
        format!("add `__launch_bounds__({threads})` to the kernel, or reduce the block size"),
        "reduce the block size, or compile the code for larger blocks".to_owned(),
    );
    let found = TooManyRegisters { threads, registers, all, limit: MAX_BLOCK_REGISTERS, help };
    (all > MAX_BLOCK_REGISTERS).then(|| check.problem(found))
}
