//! What the compiled kernel allows: threads by its launch bounds and its registers, dynamic shared memory beside the static one.
//!
//! Constants are held against each code object by [`crate::verify::check_code`]. What cannot be proved the runtime holds against
//! the driver's own numbers before each launch (`CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`, and what is left of the shared memory).

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

/// The most that the code of a kernel allows, and the targets for which that is so.
struct Limit {
    rule: Code,
    remedy: Remedy,
    bound: Maximum,
    /// Where it comes from: `the `__launch_bounds__` of `scale<T>``.
    reason: String,
    targets: Vec<Target>,
}

/// The most that something can be.
#[derive(Clone, Copy, PartialEq)]
enum Maximum {
    /// On every device.
    Fixed(i64),
    /// So many bytes less than a block of the device can have of shared memory.
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

/// A claim for each limit of each unit's code that is not known to be kept.
pub(super) fn claims(view: &DraftView<'_>, compiled: &[UnitCode<'_>]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (unit, compiled) in view.units().iter().zip(compiled) {
        let Some(launch) = view.launch_of(unit) else { continue };
        let threads = launch.product("the number of threads of a block", &launch.block(), 1);
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

/// Launch bounds, or what the registers leave room for where that is less.
fn thread_limit(name: &str, kernel: &KernelFacts) -> Option<Limit> {
    let by_bounds = kernel.max_threads.map(i64::from);
    let by_registers = kernel.registers.and_then(|registers| Some((max_threads_with(registers)?, registers)));
    let (rule, most, reason, other_fix) = match (by_bounds, by_registers) {
        (Some(bounds), registers) if registers.is_none_or(|(most, _)| bounds <= most) => {
            let reason = format!("the `__launch_bounds__` of `{name}`");
            (rules::LAUNCH_BOUNDS, bounds, reason, ", or make the kernel's `__launch_bounds__` larger")
        }
        (_, Some((most, registers))) => {
            let reason = format!("as `{name}` has {registers} registers a thread");
            let other_fix = ", or say the largest block with `__launch_bounds__` in the kernel";
            (rules::REGISTERS, most, reason, other_fix)
        }
        _ => return None,
    };
    let (remedy, bound) = (Remedy::Limit(other_fix), Maximum::Fixed(most));
    // The limit of every GPU is another rule's.
    (most < MAX_THREADS).then_some(Limit { rule, remedy, bound, reason, targets: Vec::new() })
}

fn shared_memory(
    view: &DraftView<'_>,
    launch: &LaunchView<'_>,
    kernel_name: &str,
    compiled: &UnitCode<'_>,
) -> Vec<Claim> {
    let Some(term) = launch.shared_bytes("the dynamic shared memory in bytes") else { return Vec::new() };
    // Constants are held against what the targets have, which is more than there is where nobody asks for it.
    if term.expr.constant().is_some() && !view.is_native() {
        return Vec::new();
    }
    // What follows the device is held against what that has, whatever others have.
    let follows = reads(&term.expr, DeviceFact::SharedBytes);
    let limits = limits(compiled, |target, kernel| {
        // Without static memory the limit was known before the compile: another rule's.
        let fixed = i64::from(kernel.shared_bytes.filter(|fixed| *fixed > 0)?);
        let (bound, remedy) = match (view.is_native(), follows) {
            (true, _) => (Maximum::Fixed(SHARED_BYTES - fixed), LIBRARY),
            (false, true) => (Maximum::SharedBytesBut(fixed), Remedy::Limit("")),
            (false, false) => {
                (Maximum::Fixed(i64::from(max_shared_bytes(target.arch)?) - fixed), FEWER_TARGETS)
            }
        };
        let reason = format!("what `{kernel_name}` leaves beside {fixed} bytes of static shared memory");
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

/// The limits of the codes, those that several targets share once.
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
