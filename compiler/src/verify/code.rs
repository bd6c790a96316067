//! A code object against what the manifest launches.

use cubinder_bundle::expr::{Expr, Node};
use cubinder_bundle::{Arch, Arg, ArgValue, KernelFacts, KernelParam, Launch, Target};

use crate::diagnostic::Diagnostic;
use crate::resolve::Unit;
use crate::signature::Signature;

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
}

/// Static shared memory a block, bytes, on every architecture (CUDA C++ Programming Guide 13.0, technical specifications).
const MAX_STATIC_SHARED_BYTES: u32 = 48 * 1024;
/// 32-bit registers of a block, on every architecture from 7.0 on (the same table).
const MAX_BLOCK_REGISTERS: i64 = 65_536;
/// Bytes of parameters: 4 KiB, and 32,764 from 7.0 on (CUDA 12.1 release notes).
const MAX_PARAM_BYTES: (u32, u32) = (4096, 32_764);

/// The most shared memory a block may have, static and dynamic together, bytes; nothing for an architecture that is not
/// known here. CUDA C++ Programming Guide 13.0, technical specifications.
#[must_use]
pub fn max_shared_bytes(arch: Arch) -> Option<u32> {
    let kib = match (arch.major, arch.minor) {
        (7, 5) => 64,
        (7, 0 | 2) => 96,
        (8, 0 | 7) => 163,
        (8, 6 | 8 | 9) | (12, 0 | 1) => 99,
        (9, 0) | (10, 0 | 1 | 3) | (11, 0) => 227,
        _ => return None,
    };
    Some(kib * 1024)
}

/// Checks that the code takes what the manifest passes, and that the launch can succeed at all.
///
/// # Errors
/// Every disagreement, at the kernel's name in the manifest.
pub fn check_code(check: &CodeCheck<'_>) -> Result<(), Vec<Diagnostic>> {
    let problems: Vec<Diagnostic> =
        [parameters(check), parameter_bytes(check), shared(check), threads(check)]
            .into_iter()
            .flatten()
            .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn problem(check: &CodeCheck<'_>, message: String) -> Diagnostic {
    Diagnostic::error(message)
        .at(check.unit.kernel_span.clone(), format!("compiled for `{}`", check.target))
        .note(format!("the kernel is `{}`", check.signature))
}

/// Number, offsets and widths of the parameters.
fn parameters(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let expected = layout(check.args);
    let found = &check.kernel.params;
    if expected.len() != found.len() {
        let message = format!(
            "the code for `{}` takes {} parameters, the manifest passes {}",
            check.target,
            found.len(),
            expected.len()
        );
        return Some(problem(check, message).help(SAME_EVERYWHERE));
    }
    let differs = expected.iter().zip(found).position(|(expected, found)| expected != found)?;
    let (expected, found) = (expected.get(differs)?, found.get(differs)?);
    let name = check.args.get(differs).map_or("", |arg| &arg.name);
    let message = format!(
        "the code for `{}` takes the parameter `{name}` as {} bytes at offset {}, the manifest passes {} at {}",
        check.target, found.size, found.offset, expected.size, expected.offset
    );
    Some(problem(check, message).help(SAME_EVERYWHERE))
}

const SAME_EVERYWHERE: &str = "the kernel's parameters must be the same for every architecture: look for \
                               `#if __CUDA_ARCH__` around them";

/// Where arguments lie: each at a multiple of its alignment, which is its element's size.
fn layout(args: &[Arg]) -> Vec<KernelParam> {
    let mut end = 0_u32;
    let place = |arg: &Arg| {
        let (element, len) = match &arg.value {
            ArgValue::Tensor(_) => (8, 1),
            ArgValue::Scalar { ty, .. } => (ty.size(), 1),
            ArgValue::Array { ty, len, .. } => (ty.size(), *len),
        };
        let offset = end.checked_next_multiple_of(element.max(1)).unwrap_or(u32::MAX);
        let size = element.saturating_mul(len);
        end = offset.saturating_add(size);
        KernelParam { offset, size }
    };
    args.iter().map(place).collect()
}

fn parameter_bytes(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let last = check.kernel.params.last()?;
    let bytes = last.offset.saturating_add(last.size);
    let limit = if check.target.arch.major < 7 { MAX_PARAM_BYTES.0 } else { MAX_PARAM_BYTES.1 };
    (bytes > limit).then(|| {
        let message = format!("the parameters take {bytes} bytes, `{}` allows {limit}", check.target);
        problem(check, message).help("pass less by value: large tables belong into an input tensor")
    })
}

/// The value of an expression that is known already.
fn constant(expr: &Expr) -> Option<i64> {
    match expr.nodes.as_slice() {
        [Node::Int(value)] => Some(*value),
        _ => None,
    }
}

/// Shared memory: static alone, and with dynamic where the manifest gives it as a constant.
fn shared(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let fixed = check.kernel.shared_bytes?;
    if fixed > MAX_STATIC_SHARED_BYTES {
        let message = format!(
            "the kernel has {fixed} bytes of static shared memory, the limit is {MAX_STATIC_SHARED_BYTES}"
        );
        return Some(
            problem(check, message).help("make it `extern __shared__` and set `shared_bytes` in the launch"),
        );
    }
    let dynamic = constant(&check.launch.shared_bytes)?;
    let limit = max_shared_bytes(check.target.arch)?;
    (i64::from(fixed).saturating_add(dynamic) > i64::from(limit)).then(|| {
        let message = format!("the launch needs more shared memory than `{}` has", check.target);
        problem(check, message)
            .note(format!("{fixed} bytes static and {dynamic} dynamic, of at most {limit} a block"))
            .help("lower `shared_bytes`, or leave this target out")
    })
}

/// The block against `__launch_bounds__` and the registers, where the manifest gives it as constants.
fn threads(check: &CodeCheck<'_>) -> Option<Diagnostic> {
    let threads =
        check.launch.block.iter().map(constant).try_fold(1_i64, |all, axis| all.checked_mul(axis?))?;
    if let Some(max) = check.kernel.max_threads.filter(|max| threads > i64::from(*max)) {
        let message = format!("the launch has blocks of {threads} threads, the kernel allows {max}");
        let diagnostic = problem(check, message).note("the kernel says so with `__launch_bounds__`");
        return Some(diagnostic.help("make the block smaller or the bound larger"));
    }
    let registers = check.kernel.registers?;
    let all = block_registers(threads, registers)?;
    (all > MAX_BLOCK_REGISTERS).then(|| {
        let message = format!("blocks of {threads} threads need more registers than `{}` has", check.target);
        problem(check, message)
            .note(format!(
                "{registers} registers a thread make {all} a block, of at most {MAX_BLOCK_REGISTERS}: they are handed out \
                 to four warps of 32 threads at a time"
            ))
            .help(format!("say `__launch_bounds__({threads})` in the kernel, or make the block smaller"))
    })
}

/// The registers that the hardware asks for before it starts a block: those of a warp in whole units, for the warps of
/// the block rounded up to the sub-partitions of a multiprocessor (`cudaOccMaxBlocksPerSMRegsLimit`, `cuda_occupancy.h`
/// 13.0.96; both numbers are the same for 7.0 to 12.x).
fn block_registers(threads: i64, registers: u32) -> Option<i64> {
    const THREADS_OF_A_WARP: i64 = 32;
    const SUB_PARTITIONS: i64 = 4;
    const UNIT: i64 = 256;
    let round_up = |value: i64, step: i64| Some(value.checked_add(step - 1)? / step * step);
    let of_a_warp = round_up(i64::from(registers).checked_mul(THREADS_OF_A_WARP)?, UNIT)?;
    let warps = round_up(threads, THREADS_OF_A_WARP)? / THREADS_OF_A_WARP;
    round_up(warps, SUB_PARTITIONS)?.checked_mul(of_a_warp)
}
