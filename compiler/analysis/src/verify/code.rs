//! A code object against what the manifest launches.

use cubinder_expr::Expr;
use cubinder_model::cuda_limits::MAX_CLUSTER;
use cubinder_model::{Arg, ArgValue, KernelFacts, Launch, Target};

use super::bytes;
use crate::block_limits::{MAX_BLOCK_REGISTERS, block_registers, max_shared_bytes};
use crate::cubin::{Cluster, Dynamic, LaunchRules};
use crate::diagnostic::{Code, Diagnostic};
use crate::kernel_signature::Signature;
use crate::nvrtc::{MAKE_IT_DYNAMIC, PASS_LESS};
use crate::resolve::Unit;
use crate::rules;

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
    let problems: Vec<Diagnostic> = [parameters, parameter_bytes, shared, cluster, cluster_rank, threads]
        .into_iter()
        .filter_map(|of| of(check))
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// One disagreement. It does not name the target: what is the same for several is then said once
/// ([`crate::nvrtc::merge_targets`]), with the targets where it is not all of them.
fn problem(check: &CodeCheck<'_>, code: Code, message: String) -> Diagnostic {
    Diagnostic::error(message)
        .code(code)
        .at(
            check.unit.kernel_span.clone(),
            if is_foreign(check) { "this code" } else { "compiled for this kernel" },
        )
        .note(format!("the kernel is `{}`", check.signature))
}

/// Whether another compiler made the code: then nothing in it can be changed here, and its own words are those of PTX.
fn is_foreign(check: &CodeCheck<'_>) -> bool {
    check.unit.foreign.is_some()
}

/// What is said of a kernel of CUDA C++, and what of code that is there already.
fn said(check: &CodeCheck<'_>, of_source: &str, of_code: &str) -> String {
    if is_foreign(check) { of_code.to_owned() } else { of_source.to_owned() }
}

/// Number, order and widths of the parameters. Where they lie is the code's own affair, because a launch passes each
/// by its address: `alignas(16)` moves a struct without changing what is passed.
fn parameters(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let found = &check.kernel.params;
    if check.args.len() != found.len() {
        let message =
            format!("the code has {} and the manifest passes {} parameters", found.len(), check.args.len());
        return Some(problem(check, rules::PARAMETERS_DIFFER, message).help(SAME_EVERYWHERE));
    }
    let mut end = 0_u32;
    for (arg, found) in check.args.iter().zip(found) {
        let (alignment, size) = alignment_and_size(&arg.value);
        if found.size != size || found.offset < end || !found.offset.is_multiple_of(alignment) {
            let message = format!(
                "the code takes the parameter `{}` as {} at offset {}, the manifest passes {}",
                arg.name,
                bytes(found.size),
                found.offset,
                bytes(size)
            );
            return Some(problem(check, rules::PARAMETERS_DIFFER, message).help(SAME_EVERYWHERE));
        }
        end = found.offset.saturating_add(found.size);
    }
    None
}

/// A launch passes the same arguments whichever of the code objects runs.
pub(super) const SAME_EVERYWHERE: &str = "the kernel's parameters must be the same for every target: look for `#if` around them, on `__CUDA_ARCH__` for instance";

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
    (bytes > limit).then(|| {
        let message = format!("the parameters take {bytes} bytes, the limit is {limit}");
        problem(check, rules::PARAMETER_BYTES, message).help(PASS_LESS)
    })
}

/// Shared memory: static alone, and with dynamic where the manifest gives it as a constant.
fn shared(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    // Of PTX the driver makes the code, and its facts are not known before; what it declares is.
    let fixed = check.kernel.shared_bytes.unwrap_or(check.rules.shared_bytes);
    if fixed > MAX_STATIC_SHARED_BYTES {
        let message = format!(
            "the kernel has {fixed} bytes of static shared memory, the limit is {MAX_STATIC_SHARED_BYTES}"
        );
        return Some(problem(check, rules::STATIC_SHARED_MEMORY, message).help(MAKE_IT_DYNAMIC));
    }
    // PTX runs on GPUs that have more than the one that it is for.
    let fixed = check.kernel.shared_bytes?;
    let dynamic = check.launch.shared_bytes.constant()?;
    let limit = max_shared_bytes(check.target.arch)?;
    (i64::from(fixed).saturating_add(dynamic) > i64::from(limit)).then(|| {
        problem(
            check,
            rules::SHARED_MEMORY_LIMIT,
            "the launch needs more shared memory than a block can have".to_owned(),
        )
        .note(format!("{fixed} bytes static and {dynamic} dynamic, of at most {limit} a block"))
        .help("lower `shared_bytes`, or leave out the targets that have less")
    })
}

/// The warning about dynamic shared memory that the code uses and the launch does not provide. Whether every run accesses it is unknown.
#[must_use]
pub fn no_shared(unit: &Unit, launch: &Launch, rules: LaunchRules) -> Option<Diagnostic> {
    let is_missing = launch.shared_bytes.constant() == Some(0) && rules.dynamic_shared == Dynamic::Yes;
    is_missing.then(|| {
        Diagnostic::warning(format!(
            "`{}` uses dynamic shared memory, but is launched with 0 bytes of it",
            unit.kernel
        ))
        .code(rules::NO_DYNAMIC_SHARED_MEMORY)
        .at(unit.kernel_span.clone(), "its `shared_bytes` is 0 or absent")
        .note("the GPU stops the kernel at the first access")
        .help("say in `shared_bytes` how many bytes a block needs")
    })
}

/// Clusters: those that the kernel says and those that the launch says must be the same. Where the launch says nothing, it is made as the
/// kernel says. With `__block_size__` the grid would count clusters instead of blocks, which no launch of ours does.
fn cluster(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let wanted = check.rules.cluster?;
    let launched = check.launch.cluster.as_ref().map(|cluster| cluster.each_ref().map(Expr::constant));
    let report = |message: String| problem(check, rules::CLUSTER, message);
    match (wanted, launched) {
        (Cluster::Of(size), _) if counts_clusters(check) => Some(
            report(format!("the grid of this kernel counts clusters of {} blocks", shown(size)))
                .note(said(check, "the kernel says so with the second half of `__block_size__`", "the code says so with `.blocksareclusters`"))
                .help("say `__cluster_dims__` in the kernel, or `cluster` in the launch: then the grid counts blocks"),
        ),
        (Cluster::Of(size), None) => too_large(check, size),
        (Cluster::Of(size), Some(launched)) if launched == size.map(|axis| Some(i64::from(axis))) => None,
        (Cluster::Of(size), Some(launched)) => {
            let axis = |axis: Option<i64>| axis.map_or_else(|| "?".to_owned(), |blocks| blocks.to_string());
            let launched = launched.map(axis).join(" x ");
            Some(
                report(format!("the launch has clusters of {launched} blocks, the kernel takes {} and nothing else", shown(size)))
                    .note(said(check, "the kernel says so with `__cluster_dims__`", "the code says so (`.reqnctapercluster` in PTX)"))
                    .help(said(
                        check,
                        "leave `cluster` out of the launch, or `__cluster_dims__` out of the kernel",
                        "leave `cluster` out of the launch",
                    )),
            )
        }
        (Cluster::AtLaunch, Some(_)) => None,
        (Cluster::AtLaunch, None) => Some(
            report("the kernel runs in clusters of a size that the launch gives, and it gives none".to_owned())
                .help("say `cluster` in the launch"),
        ),
    }
}

/// The clusters of the launch against the most blocks that the kernel was made for.
fn cluster_rank(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let most = check.rules.max_cluster?;
    let axes = check.launch.cluster.as_ref()?.each_ref().map(Expr::constant);
    let blocks = axes.into_iter().try_fold(1_i64, |all, axis| all.checked_mul(axis?))?;
    (blocks > i64::from(most)).then(|| {
        let message = format!("the launch has clusters of {blocks} blocks, the kernel allows {most}");
        let note = said(
            check,
            "the kernel says so with the third number of `__launch_bounds__`",
            "the code says so (`.maxclusterrank` in PTX, the third number of `__launch_bounds__` in CUDA)",
        );
        problem(check, rules::CLUSTER, message).note(note).help(said(
            check,
            "make the clusters smaller or the bound larger",
            "make the clusters smaller",
        ))
    })
}

/// Whether the grid of a kernel counts clusters. NVRTC writes a required block together with clusters for `__block_size__` alone; other compilers
/// write them side by side (Triton with several CTAs), and PTX says it with a word of its own.
fn counts_clusters(check: &CodeCheck<'_>) -> bool {
    if is_foreign(check) { check.rules.blocks_are_clusters } else { check.rules.block.is_some() }
}

/// What the launch says is held against the limit before there is code; what the kernel says is known here.
fn too_large(check: &CodeCheck<'_>, size: [u32; 3]) -> Option<Diagnostic> {
    let blocks = size.into_iter().fold(1_u64, |all, axis| all.saturating_mul(u64::from(axis)));
    (blocks > u64::from(MAX_CLUSTER)).then(|| {
        let message =
            format!("the kernel runs in clusters of {blocks} blocks, and a launch has at most {MAX_CLUSTER}");
        problem(check, rules::CLUSTER_LIMIT, message)
            .note(format!(
                "the kernel says {} of {}",
                said(check, "`__cluster_dims__`", "clusters"),
                shown(size)
            ))
            .help("make its clusters smaller")
    })
}

fn shown(axes: [u32; 3]) -> String {
    axes.map(|axis| axis.to_string()).join(" x ")
}

/// With the block of the launch.
fn at_block(check: &CodeCheck<'_>, diagnostic: Diagnostic) -> Diagnostic {
    match &check.unit.block_span {
        Some(block) => diagnostic.related(block.clone(), "the block"),
        None => diagnostic,
    }
}

/// The block against what the kernel allows and against the registers.
fn threads(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let axes = check.launch.block.each_ref().map(Expr::constant);
    match check.rules.block {
        Some(required) if axes != required.map(|axis| Some(i64::from(axis))) => {
            return Some(another_block(check, required, axes));
        }
        _ => {}
    }
    let threads = axes.into_iter().try_fold(1_i64, |all, axis| all.checked_mul(axis?))?;
    if let Some(max) = check.kernel.max_threads.filter(|max| threads > i64::from(*max)) {
        let message = format!("the launch has blocks of {threads} threads, the kernel allows {max}");
        let note = said(
            check,
            "the kernel says so with `__launch_bounds__`",
            "the code says so (`.maxntid` in PTX, `__launch_bounds__` in CUDA)",
        );
        let diagnostic = at_block(check, problem(check, rules::LAUNCH_BOUNDS, message).note(note));
        return Some(diagnostic.help("make the block smaller or the bound larger"));
    }
    let registers = check.kernel.registers?;
    let all = block_registers(threads, registers)?;
    (all > MAX_BLOCK_REGISTERS).then(|| {
        let message = format!("blocks of {threads} threads need more registers than there are");
        problem(check, rules::REGISTERS, message)
            .note(format!(
                "{registers} registers a thread make {all} a block, of at most {MAX_BLOCK_REGISTERS}: they are handed out \
                 to four warps of 32 threads at a time"
            ))
            .help(said(
                check,
                &format!("say `__launch_bounds__({threads})` in the kernel, or make the block smaller"),
                "make the block smaller, or have the code made for so large a block",
            ))
    })
}

/// The kernel takes blocks of one size only. One that is computed is refused as well: it could not vary anyway.
fn another_block(check: &CodeCheck<'_>, required: [u32; 3], axes: [Option<i64>; 3]) -> Diagnostic {
    let axis = |axis: Option<i64>| axis.map_or_else(|| "?".to_owned(), |threads| threads.to_string());
    let message = format!(
        "the launch has blocks of {} threads, the kernel takes {} and nothing else",
        axes.map(axis).join(" x "),
        shown(required)
    );
    let note = said(
        check,
        "the kernel says so with `__block_size__`",
        "the code says so (`.reqntid` in PTX, a number of warps in Triton)",
    );
    let diagnostic = at_block(check, problem(check, rules::LAUNCH_BOUNDS, message).note(note));
    let diagnostic = match axes.iter().any(Option::is_none) {
        true => diagnostic.note("`?` is not known before the engine runs"),
        false => diagnostic,
    };
    let block = required.map(|axis| axis.to_string()).join(", ");
    diagnostic.help(said(
        check,
        &format!("say `block = [{block}]` in the launch, or `__launch_bounds__` in the kernel"),
        &format!("say `block = [{block}]` in the launch"),
    ))
}
