//! Checks launches against compiled kernels; [`crate::verify::check_code`] checks constants.

use cubinder_expr::{BinaryOp, DeviceFact, Interval};
use cubinder_launch::native::SHARED_BYTES;
use cubinder_model::cuda_limits::MAX_THREADS;
use cubinder_model::{KernelFacts, Target};

use super::UnitCode;
use super::claim::{Claim, Must, Predicate, Remedy, Term};
use super::draft_view::{DraftView, LaunchView};
use super::formula::{binary, device, int};
use super::limits::{FEWER_TARGETS, LIBRARY, on, reads, whole_clusters};
use crate::block_limits::{max_shared_bytes, max_threads_with};
use crate::diagnostic::Code;
use crate::rules;

struct Limit {
    rule: Code,
    remedy: Remedy,
    bound: Maximum,
    /// `the `__launch_bounds__` of `scale<T>``.
    reason: String,
    targets: Vec<Target>,
}

#[derive(Clone, Copy, PartialEq)]
enum Maximum {
    Fixed(i64),
    /// Device's limit per block, less these bytes.
    SharedBytesBut(i64),
}

impl std::fmt::Display for Maximum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Maximum::Fixed(most) => write!(f, "{most}"),
            Maximum::SharedBytesBut(less) => write!(f, "`device.shared_bytes - {less}`"),
        }
    }
}

pub(super) fn claims(view: &DraftView<'_>, compiled: &[UnitCode<'_>]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (unit, compiled) in view.units().iter().zip(compiled) {
        let Some(launch) = view.launch_of(unit) else { continue };
        let threads = launch.product("the number of threads per block", &launch.block(), 1);
        claims.extend(threads.into_iter().flat_map(|threads| {
            let limits = limits(compiled, |_, kernel| thread_limit(&unit.kernel, kernel));
            limits.into_iter().map(move |limit| limit.claim(compiled, &threads))
        }));
        claims.extend(shared_memory(view, &launch, &unit.kernel, compiled));
        if let Some(cluster) = compiled.cluster {
            claims.extend(whole_clusters(&launch, &cluster.map(|axis| int(i64::from(axis)))));
        }
    }
    claims
}

fn thread_limit(name: &str, kernel: &KernelFacts) -> Option<Limit> {
    let by_bounds = kernel.max_threads.map(i64::from);
    let by_registers = kernel.registers.and_then(|registers| Some((max_threads_with(registers)?, registers)));
    let (rule, most, reason, other_fix) = match (by_bounds, by_registers) {
        (Some(bounds), registers) if registers.is_none_or(|(most, _)| bounds <= most) => {
            let reason = format!("the `__launch_bounds__` of `{name}`");
            (rules::LAUNCH_BOUNDS, bounds, reason, ", or raise the kernel's `__launch_bounds__`")
        }
        (_, Some((most, registers))) => {
            let reason = format!("because `{name}` uses {registers} registers per thread");
            let other_fix = ", or set the largest block with `__launch_bounds__` in the kernel";
            (rules::REGISTERS, most, reason, other_fix)
        }
        _ => return None,
    };
    let (remedy, bound) = (Remedy::Limit(other_fix), Maximum::Fixed(most));
    // Another rule checks the limit of all devices.
    (most < MAX_THREADS).then_some(Limit { rule, remedy, bound, reason, targets: Vec::new() })
}

fn shared_memory(
    view: &DraftView<'_>,
    launch: &LaunchView<'_>,
    kernel_name: &str,
    compiled: &UnitCode<'_>,
) -> Vec<Claim> {
    let Some(term) = launch.shared_bytes("the dynamic shared memory in bytes") else { return Vec::new() };
    // `check_code` compares constants with the targets' opt-in maximum.
    if term.expr.constant().is_some() && !view.is_native() {
        return Vec::new();
    }
    // Both values are then of the same device.
    let follows = reads(&term.expr, DeviceFact::SharedBytes);
    let limits = limits(compiled, |target, kernel| {
        let fixed = i64::from(kernel.shared_bytes.filter(|fixed| *fixed > 0)?);
        let (bound, remedy) = match (view.is_native(), follows) {
            (true, _) => (Maximum::Fixed(SHARED_BYTES - fixed), LIBRARY),
            (false, true) => (Maximum::SharedBytesBut(fixed), Remedy::Limit("")),
            (false, false) => {
                (Maximum::Fixed(i64::from(max_shared_bytes(target.arch)?) - fixed), FEWER_TARGETS)
            }
        };
        let reason = format!("because `{kernel_name}` has {fixed} bytes of static shared memory");
        Some(Limit { rule: rules::SHARED_MEMORY_LIMIT, remedy, bound, reason, targets: Vec::new() })
    });
    if !reads(&term.expr, DeviceFact::Capability) {
        return limits.into_iter().map(|limit| limit.claim(compiled, &term)).collect();
    }
    let on_target = |(limit, target): (&Limit, &Target)| {
        let limit = Limit { reason: limit.reason.clone(), targets: vec![*target], ..*limit };
        limit.claim(compiled, &Term { expr: on(&term.expr, *target), ..term.clone() })
    };
    let each = limits.iter().flat_map(|limit| limit.targets.iter().map(move |target| (limit, target)));
    each.map(on_target).collect()
}

fn limits(compiled: &UnitCode<'_>, limit: impl Fn(Target, &KernelFacts) -> Option<Limit>) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for (target, kernel) in &compiled.codes {
        let Some(limit) = limit(*target, kernel) else { continue };
        match limits.iter_mut().find(|known| (known.rule, known.bound) == (limit.rule, limit.bound)) {
            Some(known) => known.targets.push(*target),
            None => limits.push(Limit { targets: vec![*target], ..limit }),
        }
    }
    limits
}

impl Limit {
    fn claim(self, compiled: &UnitCode<'_>, term: &Term) -> Claim {
        let names: Vec<String> = self.targets.iter().map(|target| format!("`{target}`")).collect();
        let only = match self.targets.len() == compiled.codes.len() {
            true => String::new(),
            false => format!(" for {}", names.join(", ")),
        };
        let must = Must::Be(format!("at most {}, {}{only}", self.bound, self.reason));
        let predicate = match self.bound {
            Maximum::Fixed(max) => Predicate::Within(Interval { min: i64::MIN, max }),
            Maximum::SharedBytesBut(less) => {
                let most = binary(BinaryOp::Sub, &device(DeviceFact::SharedBytes), &int(less));
                Predicate::Holds(binary(BinaryOp::Le, &term.expr, &most))
            }
        };
        Claim { remedy: self.remedy, ..term.claim(self.rule, must, predicate) }
    }
}
