//! What the compiled kernel allows: threads by its launch bounds and its registers, dynamic shared memory beside the static one.
//!
//! Constants are held against each code object by [`crate::verify::check_code`]. What cannot be proved the runtime holds against
//! the driver's own numbers before each launch (`CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`, and what is left of the shared memory).

use cubinder_expr::Interval;
use cubinder_expr::{BinaryOp, DeviceFact, Expr, Node};
use cubinder_launch::native::SHARED_BYTES;
use cubinder_model::cuda_limits::MAX_THREADS;
use cubinder_model::{KernelFacts, Target};

use super::Compiled;
use super::claim::{Claim, What, When};
use super::cluster::multiples;
use super::formula::joined;
use super::shared_memory::{FEWER_TARGETS, LIBRARY, on, reads};
use super::site::{At, Site};
use crate::block_limits::{max_shared_bytes, max_threads_with};
use crate::diagnostic::{Code, Span};
use crate::resolve::Unit;
use crate::rules;

/// Something that the code of a kernel can have at most, and the targets for which that is so.
struct Limit {
    rule: Code,
    /// See [`Claim::otherwise`].
    otherwise: &'static str,
    most: Most,
    /// Where it comes from: `the `__launch_bounds__` of `scale<T>``.
    reason: String,
    targets: Vec<Target>,
}

/// The most that something can be.
#[derive(Clone, Copy, PartialEq)]
enum Most {
    /// So much, whatever the device.
    Is(i64),
    /// So many bytes less than a block of the device can have of shared memory.
    AllBut(i64),
}

impl Most {
    /// That an expression is no more.
    fn holds_for(self, expr: &Expr) -> What {
        let less = match self {
            Most::Is(max) => return What::Within(Interval { min: i64::MIN, max }),
            Most::AllBut(less) => Expr { nodes: vec![Node::Int(less)] },
        };
        let all = Expr { nodes: vec![Node::Device(DeviceFact::SharedBytes)] };
        let most = joined(BinaryOp::Sub, [&all, &less]);
        most.and_then(|most| joined(BinaryOp::Le, [expr, &most])).map_or(What::HasValue, What::Holds)
    }
}

impl std::fmt::Display for Most {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Most::Is(most) => write!(f, "{most}"),
            Most::AllBut(less) => write!(f, "`device.shared_bytes - {less}`"),
        }
    }
}

/// A claim for each limit of each unit's code that is not known to be kept.
pub(super) fn claims(site: &Site<'_>, compiled: &[Compiled<'_>]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (unit, compiled) in site.units().iter().zip(compiled) {
        claims.extend(threads(site, unit, compiled));
        claims.extend(shared_memory(site, unit, compiled));
        if let (Some(cluster), Some(launch)) = (compiled.cluster, site.launch_of(unit)) {
            let cluster = cluster.map(|axis| Expr { nodes: vec![Node::Int(i64::from(axis))] });
            claims.extend(multiples(site, &launch, &cluster));
        }
    }
    claims
}

fn threads(site: &Site<'_>, unit: &Unit, compiled: &Compiled<'_>) -> Vec<Claim> {
    let Some(here) = site.launch_of(unit) else { return Vec::new() };
    let (launch, decl) = (here.launch, here.decl);
    let (Some(first), Some(last)) = (decl.block.first(), decl.block.last()) else { return Vec::new() };
    if launch.block.iter().all(|axis| axis.constant().is_some()) {
        return Vec::new();
    }
    let axes = launch.block.iter().filter(|axis| axis.constant() != Some(1));
    let Some(expr) = joined(BinaryOp::Mul, axes) else { return Vec::new() };
    let span = Span::new(&site.resolved.source, first.range.start..last.range.end);
    let limits = limits(compiled, |target, kernel| thread_limit(unit, target, kernel));
    claims_of(limits, compiled, here.at, &here.of("the number of threads of a block"), &expr, &span)
}

/// Launch bounds, or what the registers leave room for where that is less.
fn thread_limit(unit: &Unit, target: Target, kernel: &KernelFacts) -> Option<Limit> {
    let by_bounds = kernel.max_threads.map(i64::from);
    let by_registers = kernel.registers.and_then(|registers| Some((max_threads_with(registers)?, registers)));
    let name = &unit.kernel;
    let (rule, most, reason, otherwise) = match (by_bounds, by_registers) {
        (Some(bounds), registers) if registers.is_none_or(|(most, _)| bounds <= most) => {
            let reason = format!("the `__launch_bounds__` of `{name}`");
            (rules::LAUNCH_BOUNDS, bounds, reason, ", or make the kernel's `__launch_bounds__` larger")
        }
        (_, Some((most, registers))) => {
            let reason = format!("as `{name}` has {registers} registers a thread");
            let otherwise = ", or say the largest block with `__launch_bounds__` in the kernel";
            (rules::REGISTERS, most, reason, otherwise)
        }
        _ => return None,
    };
    // The limit of every GPU is another rule's.
    let limit = Limit { rule, otherwise, most: Most::Is(most), reason, targets: vec![target] };
    (most < MAX_THREADS).then_some(limit)
}

fn shared_memory(site: &Site<'_>, unit: &Unit, compiled: &Compiled<'_>) -> Vec<Claim> {
    let Some(here) = site.launch_of(unit) else { return Vec::new() };
    let launch = here.launch;
    let Some(text) = here.decl.shared_bytes.as_ref() else { return Vec::new() };
    // Constants are held against what the targets have, which is more than there is where nobody asks for it.
    if launch.shared_bytes.constant().is_some() && !site.is_native() {
        return Vec::new();
    }
    let expr = &launch.shared_bytes;
    // What follows the device is held against what that has, whatever others have.
    let follows = reads(expr, DeviceFact::SharedBytes);
    let limits = limits(compiled, |target, kernel| {
        // Without static memory the limit was known before the compile: another rule's.
        let fixed = kernel.shared_bytes.filter(|fixed| *fixed > 0)?;
        let (most, otherwise) = match (site.is_native(), follows) {
            (true, _) => (Most::Is(SHARED_BYTES - i64::from(fixed)), LIBRARY),
            (false, true) => (Most::AllBut(fixed.into()), ""),
            (false, false) => {
                (Most::Is(i64::from(max_shared_bytes(target.arch)?) - i64::from(fixed)), FEWER_TARGETS)
            }
        };
        let reason = format!("what `{}` leaves beside {fixed} bytes of static shared memory", unit.kernel);
        Some(Limit { rule: rules::SHARED_MEMORY_LIMIT, otherwise, most, reason, targets: vec![target] })
    });
    let subject = here.of("the dynamic shared memory in bytes");
    let span = site.span(text);
    if !reads(expr, DeviceFact::Capability) {
        return claims_of(limits, compiled, here.at, &subject, expr, &span);
    }
    let of_target = |(limit, target): (&Limit, Target)| {
        let limit = Limit { reason: limit.reason.clone(), targets: vec![target], ..*limit };
        claims_of(vec![limit], compiled, here.at, &subject, &on(expr, target), &span)
    };
    let each = limits.iter().flat_map(|limit| limit.targets.iter().map(move |target| (limit, *target)));
    each.flat_map(of_target).collect()
}

/// The limits of the codes, those that several targets share once.
fn limits(compiled: &Compiled<'_>, limit: impl Fn(Target, &KernelFacts) -> Option<Limit>) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for (target, kernel) in &compiled.codes {
        let Some(limit) = limit(*target, kernel) else { continue };
        match limits.iter_mut().find(|known| (known.rule, known.most) == (limit.rule, limit.most)) {
            Some(known) => known.targets.push(*target),
            None => limits.push(limit),
        }
    }
    limits
}

fn claims_of(
    limits: Vec<Limit>,
    compiled: &Compiled<'_>,
    at: At,
    subject: &str,
    expr: &Expr,
    span: &Span,
) -> Vec<Claim> {
    let claim = |limit: Limit| {
        let names: Vec<String> = limit.targets.iter().map(|target| format!("`{target}`")).collect();
        let only = match limit.targets.len() == compiled.codes.len() {
            true => String::new(),
            false => format!(" for {}", names.join(", ")),
        };
        Claim {
            rule: limit.rule,
            subject: subject.to_owned(),
            must: format!("is at most {}, {}{only}", limit.most, limit.reason),
            otherwise: limit.otherwise,
            what: limit.most.holds_for(expr),
            expr: expr.clone(),
            span: span.clone(),
            when: When::Running(at),
        }
    };
    limits.into_iter().map(claim).collect()
}
