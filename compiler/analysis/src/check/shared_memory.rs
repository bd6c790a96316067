//! Dynamic shared memory against what a block can have. What the kernel has of static memory is known after the compile only.
//!
//! Where TensorRT launches itself that is what a block gets of which nobody asks for more. An amount that follows `device.capability` is held against each target on its own: what it is on other GPUs is no matter there.

use cubinder_expr::Interval;
use cubinder_expr::{BinaryOp, DeviceFact, Expr, Node};
use cubinder_launch::native::SHARED_BYTES;
use cubinder_model::Target;

use super::claim::{Claim, What, When};
use super::formula::joined;
use super::site::{LaunchSite, Site};
use crate::block_limits::max_shared_bytes;
use crate::manifest::Text;
use crate::rules;

/// The most that a block of any known GPU can have: 227 KiB (9.0 and 10.0, the table behind [`max_shared_bytes`]).
const MOST: u32 = 227 * 1024;

/// The fix for an amount that a launch by TensorRT itself does not allow.
pub(super) const LIBRARY: &str = ", or let a plugin library launch the kernel";

/// The fix for an amount that one of the targets does not allow.
pub(super) const FEWER_TARGETS: &str = ", or leave out the targets that have less";

/// A claim for each launch with dynamic shared memory.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    site.launches().flat_map(|launch| of_launch(site, &launch)).collect()
}

fn of_launch(site: &Site<'_>, launch: &LaunchSite<'_>) -> Vec<Claim> {
    let Some(text) = launch.decl.shared_bytes.as_ref() else { return Vec::new() };
    let expr = &launch.launch.shared_bytes;
    if reads(expr, DeviceFact::SharedBytes) {
        return vec![of_device(site, launch, text)];
    }
    if reads(expr, DeviceFact::Capability) && !site.targets.is_empty() {
        let of = |target: &Target| claim(site, launch, text, &on(expr, *target), &[*target]);
        return site.targets.iter().filter_map(of).collect();
    }
    claim(site, launch, text, expr, &site.targets).into_iter().collect()
}

/// Whether an expression follows something of the device.
pub(super) fn reads(expr: &Expr, fact: DeviceFact) -> bool {
    expr.nodes.contains(&Node::Device(fact))
}

/// An expression as it is on the GPU of a target.
pub(super) fn on(expr: &Expr, target: Target) -> Expr {
    let capability = i64::from(target.arch.major) * 10 + i64::from(target.arch.minor);
    let on = |node: &Node| match node {
        Node::Device(DeviceFact::Capability) => Node::Int(capability),
        other => other.clone(),
    };
    Expr { nodes: expr.nodes.iter().map(on).collect() }
}

/// That an amount is no more than any of these targets has.
fn claim(
    site: &Site<'_>,
    launch: &LaunchSite<'_>,
    text: &Text,
    expr: &Expr,
    targets: &[Target],
) -> Option<Claim> {
    let (least, of, otherwise) = if site.is_native() {
        (SHARED_BYTES, "a launch for which nobody asks the driver for more".to_owned(), LIBRARY)
    } else {
        match least(targets) {
            (least, Some(target)) => (i64::from(least), format!("`{target}`"), FEWER_TARGETS),
            (least, None) => (i64::from(least), "any GPU".to_owned(), ""),
        }
    };
    let allowed = Interval { min: 0, max: least };
    if expr.constant().is_some_and(|bytes| allowed.contains(bytes)) {
        return None;
    }
    Some(Claim {
        rule: rules::SHARED_MEMORY_LIMIT,
        subject: launch.of("the dynamic shared memory"),
        must: format!("is from 0 to {least} bytes, the most of {of}"),
        otherwise,
        what: What::Within(allowed),
        expr: expr.clone(),
        span: site.span(text),
        when: When::Running(launch.at),
    })
}

/// What follows the device is held against what that has, whatever others have.
fn of_device(site: &Site<'_>, launch: &LaunchSite<'_>, text: &Text) -> Claim {
    let expr = &launch.launch.shared_bytes;
    let most = Expr { nodes: vec![Node::Device(DeviceFact::SharedBytes)] };
    let none = Expr { nodes: vec![Node::Int(0)] };
    let kept = [joined(BinaryOp::Ge, [expr, &none]), joined(BinaryOp::Le, [expr, &most])];
    Claim {
        rule: rules::SHARED_MEMORY_LIMIT,
        subject: launch.of("the dynamic shared memory"),
        must: "is from 0 to `device.shared_bytes`".to_owned(),
        otherwise: if site.is_native() { LIBRARY } else { "" },
        what: joined(BinaryOp::And, kept.iter().flatten()).map_or(What::HasValue, What::Holds),
        expr: expr.clone(),
        span: site.span(text),
        when: When::Running(launch.at),
    }
}

/// The least that one of the targets has, and which that is.
fn least(targets: &[Target]) -> (u32, Option<Target>) {
    let known = targets.iter().filter_map(|target| Some((max_shared_bytes(target.arch)?, *target)));
    known.min_by_key(|(bytes, _)| *bytes).map_or((MOST, None), |(bytes, target)| (bytes, Some(target)))
}
