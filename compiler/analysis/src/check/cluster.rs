//! Clusters: of no more blocks than every GPU with clusters runs, and the grid a multiple of them.

use cubinder_expr::Interval;
use cubinder_expr::{BinaryOp, DeviceFact, Expr, Node};
use cubinder_launch::proof::{Devices, Domain, Verdict};
use cubinder_model::Target;
use cubinder_model::fit::{self, ComputeCapability, Fit};

use super::claim::{Claim, What, When};
use super::formula::{is_multiple, joined};
use super::grid::AXES;
use super::site::{LaunchSite, Site};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::Text;
use crate::rules;

/// The most blocks of a cluster.
const MAX_CLUSTER: i64 = cubinder_model::cuda_limits::MAX_CLUSTER as i64;

/// Claims for each launch in clusters.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for launch in site.launches() {
        let Some(cluster) = &launch.launch.cluster else { continue };
        let texts = launch.decl.cluster.as_deref().unwrap_or_default();
        let (Some(first), Some(last)) = (texts.first(), texts.last()) else { continue };
        let whole = Span::new(&site.resolved.source, first.range.start..last.range.end);
        let claim = |subject: &str, must: String, what, expr: &Expr, span: Span| Claim {
            rule: rules::CLUSTER_LIMIT,
            subject: launch.of(subject),
            must,
            what,
            otherwise: "",
            expr: expr.clone(),
            span,
            when: When::Running(launch.at),
        };
        for ((axis, expr), text) in AXES.iter().zip(cluster).zip(texts) {
            let allowed = Interval { min: 1, max: MAX_CLUSTER };
            if expr.constant().is_none_or(|size| !allowed.contains(size)) {
                let must = format!("is from 1 to {MAX_CLUSTER}");
                claims.push(claim(
                    &format!("the cluster's {axis}"),
                    must,
                    What::Within(allowed),
                    expr,
                    site.span(text),
                ));
            }
        }
        let factors: Vec<&Expr> = cluster.iter().filter(|axis| axis.constant() != Some(1)).collect();
        let is_computed = factors.iter().any(|axis| axis.constant().is_none());
        if let Some(blocks) =
            joined(BinaryOp::Mul, factors.iter().copied()).filter(|_| is_computed && factors.len() > 1)
        {
            let most = What::Within(Interval { min: i64::MIN, max: MAX_CLUSTER });
            let must = format!("is at most {MAX_CLUSTER}");
            claims.push(claim("the number of blocks of a cluster", must, most, &blocks, whole));
        }
        claims.extend(multiples(site, &launch, cluster));
    }
    claims
}

/// A claim for each axis of the grid: that it is a multiple of a cluster's.
pub(super) fn multiples<'s>(
    site: &'s Site<'_>,
    launch: &'s LaunchSite<'_>,
    cluster: &'s [Expr; 3],
) -> impl Iterator<Item = Claim> + 's {
    let axes = launch.launch.grid.iter().zip(cluster).zip(AXES);
    axes.enumerate().filter_map(move |(index, ((grid, cluster), axis))| {
        let is_plain = match (grid.constant(), cluster.constant()) {
            (_, Some(1)) => true,
            (Some(grid), Some(cluster)) => grid.checked_rem(cluster) == Some(0),
            _ => false,
        };
        if is_plain {
            return None;
        }
        // What is not given is 1.
        let text = launch.decl.grid.get(index).or(launch.decl.grid.last())?;
        let size = match cluster.constant() {
            Some(size) => format!("{size}, "),
            None => String::new(),
        };
        Some(Claim {
            rule: rules::CLUSTER_LIMIT,
            subject: launch.of(&format!("the grid's {axis}")),
            must: format!("is a multiple of {size}the cluster's {axis}"),
            otherwise: "",
            what: What::Holds(is_multiple(grid, cluster)),
            expr: grid.clone(),
            span: site.span(text),
            when: When::Running(launch.at),
        })
    })
}

/// The least compute capability that has clusters (CUDA C++ programming guide 13.0, "thread block clusters").
const WITH_CLUSTERS: (u8, u8) = (9, 0);

/// Whether GPUs of a target have clusters.
pub const fn has_clusters(target: Target) -> bool {
    let (major, minor) = WITH_CLUSTERS;
    target.arch.major > major || target.arch.major == major && target.arch.minor >= minor
}

/// A warning for each launch in clusters that may run code without them.
pub(super) fn targets(site: &Site<'_>) -> Vec<Diagnostic> {
    let lacks = |target: &&Target| !has_clusters(**target);
    let lacking: Vec<Target> = site.targets.iter().filter(lacks).copied().collect();
    let mut told: Vec<&Text> = Vec::new();
    let mut found = Vec::new();
    if lacking.is_empty() {
        return found;
    }
    let newer = newer_without(&site.targets);
    for launch in site.launches() {
        let (Some(text), Some(kernel)) = (launch.decl.cluster.iter().flatten().next(), &launch.decl.kernel)
        else {
            continue;
        };
        if told.contains(&text) {
            continue;
        }
        let said = if needs_clusters(site, &launch) {
            newer.iter().find_map(|(devices, target)| of_newer(site, &launch, &newer, *devices, *target))
        } else {
            Some(of_older(&lacking))
        };
        let Some(said) = said else { continue };
        told.push(text);
        let label = format!("`{}` is launched in clusters", kernel.value.trim());
        found.push(said.code(rules::FEATURE_OF_TARGET).at(site.span(text), label));
    }
    found
}

/// That GPUs without clusters are compiled for.
fn of_older(lacking: &[Target]) -> Diagnostic {
    let lacking: Vec<String> = lacking.iter().map(|target| format!("`{target}`")).collect();
    Diagnostic::warning(format!("the code for {} has no clusters", lacking.join(", ")))
        .note("clusters need compute capability 9.0; on other GPUs the launch is refused at run time")
        .help("leave these targets out, or say `device.capability >= 90` in the variant's `guard` and have another variant for the rest")
}

/// That `devices`, which have clusters, run code for an older `target`; nothing where the launch is not made there in clusters of more
/// than one block. `newer` are all such devices.
fn of_newer(
    site: &Site<'_>,
    launch: &LaunchSite<'_>,
    newer: &[(Interval, Target)],
    devices: Interval,
    target: Target,
) -> Option<Diagnostic> {
    if is_of_one_block_on(site, launch, devices) {
        return None;
    }
    let least = devices.min;
    let or_later = if devices.max > least { " or later" } else { "" };
    let mut help = format!(
        "compile for such GPUs too, or PTX for GPUs with clusters: `compute_{}{}`",
        WITH_CLUSTERS.0, WITH_CLUSTERS.1
    );
    // A guard must not leave out newer GPUs that have code of their own.
    let has_code = |capability: i64| !newer.iter().any(|(devices, _)| devices.contains(capability));
    if known_with_clusters().any(|capability| capability > least && has_code(capability)) {
        help += &format!("; or leave them out in the variant's `guard`: `device.capability != {least}`");
    } else if least > least_with_clusters() {
        help += &format!("; or leave them out in the variant's `guard`: `device.capability < {least}`");
    }
    Some(
        Diagnostic::warning(format!("the code for `{target}` has no clusters"))
            .note(format!(
                "a GPU of compute capability {}{or_later} has clusters and would run this code, for want of better: the launch is \
                 refused there",
                capability_text(least)
            ))
            .help(help),
    )
}

/// The compute capabilities of GPUs with clusters that there are, least first.
fn known_with_clusters() -> impl Iterator<Item = i64> {
    let number = |known: ComputeCapability| i64::from(known.major) * 10 + i64::from(known.minor);
    fit::KNOWN.into_iter().map(number).filter(|capability| *capability >= least_with_clusters())
}

fn capability_text(capability: i64) -> String {
    format!("{}.{}", capability / 10, capability % 10)
}

/// The devices with clusters that run code for a target without, each with the target whose code is the best there: those that there are,
/// and then whatever may come after the last of them. There are none in between.
fn newer_without(targets: &[Target]) -> Vec<(Interval, Target)> {
    let without = |capability: i64| {
        let part = |number: i64| u8::try_from(number).unwrap_or(u8::MAX);
        let device = ComputeCapability { major: part(capability / 10), minor: part(capability % 10) };
        let first = fit::order(device, targets).first().and_then(|index| targets.get(*index)).copied();
        let fitting = first.filter(|target| fit::fit(device, *target) != Fit::Unlikely);
        fitting.filter(|target| !has_clusters(*target))
    };
    let one = |capability: i64| Interval { min: capability, max: capability };
    let mut found: Vec<(Interval, Target)> = known_with_clusters()
        .filter_map(|capability| Some((one(capability), without(capability)?)))
        .collect();
    let later = known_with_clusters().max().unwrap_or_default() + 1;
    let mut beyond: Vec<(Interval, Target)> = Vec::new();
    for capability in later..=Devices::ANY.capability.max {
        let Some(target) = without(capability) else { continue };
        match beyond.last_mut().filter(|(range, last)| *last == target && range.max + 1 == capability) {
            Some((range, _)) => range.max = capability,
            None => beyond.push((one(capability), target)),
        }
    }
    found.extend(beyond);
    found
}

fn least_with_clusters() -> i64 {
    i64::from(WITH_CLUSTERS.0) * 10 + i64::from(WITH_CLUSTERS.1)
}

/// Whether a launch is made in clusters of more than one block only on GPUs with clusters. Those of one block every GPU has.
fn needs_clusters(site: &Site<'_>, launch: &LaunchSite<'_>) -> bool {
    let least = least_with_clusters();
    let capability = Expr { nodes: vec![Node::Device(DeviceFact::Capability)] };
    let newer = Interval { min: least, max: i64::MAX };
    if running(site, launch).within(&capability, newer) == Verdict::Proved {
        return true;
    }
    is_of_one_block_on(site, launch, Interval { max: least - 1, ..Devices::ANY.capability })
}

/// Whether a launch is made on devices of these compute capabilities in clusters of one block alone, or not at all.
fn is_of_one_block_on(site: &Site<'_>, launch: &LaunchSite<'_>, capability: Interval) -> bool {
    let domain = running(site, launch).on_devices(Devices { capability, ..Devices::ANY });
    let one = Interval { min: 1, max: 1 };
    launch.launch.cluster.iter().flatten().all(|axis| domain.within(axis, one) == Verdict::Proved)
}

/// The cases in which a launch is made.
fn running<'s>(site: &'s Site<'_>, launch: &LaunchSite<'_>) -> Domain<'s> {
    let conditions = site.guard(launch.at.row).into_iter().chain(site.when(launch.at));
    conditions.fold(site.domain().hasty(), Domain::assuming)
}

#[cfg(test)]
mod tests {
    use super::super::check_for;
    use super::*;
    use crate::manifest::Route;
    use crate::test_support::resolved;

    /// What is said of a launch that a guard lets run in clusters, compiled for these.
    fn said(guard: &str, targets: &str) -> Vec<String> {
        told(guard, targets).0
    }

    /// The same, and the help.
    fn told(guard: &str, targets: &str) -> (Vec<String>, Vec<String>) {
        let text = format!(
            "schema = 1\n[plugin]\nname = \"p\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n\
             [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\
             [[variants]]\nid = 1\nguard = \"{guard}\"\nconstants = {{ C = 2 }}\n[[variants]]\nid = 2\nconstants = {{ C = 1 }}\n\
             [[launches]]\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [128]\nblock = [256]\ncluster = [\"C\"]\n\
             args = {{ x = \"x\", y = \"y\" }}\n"
        );
        let targets: Vec<Target> = targets.split_whitespace().map(|text| text.parse().unwrap()).collect();
        let found = check_for(&resolved("m.toml", &text), &targets, Route::Plugin).diagnostics;
        let of_rule = found.iter().filter(|found| found.code == Some(rules::FEATURE_OF_TARGET));
        let of_rule: Vec<_> = of_rule.collect();
        let notes = of_rule.iter().flat_map(|found| found.notes.iter().cloned()).collect();
        (notes, of_rule.iter().flat_map(|found| found.help.iter().cloned()).collect())
    }

    #[test]
    fn a_guard_excuses_code_without_clusters_where_nothing_newer_runs_it() {
        for (guard, targets) in [
            ("device.capability >= 90", "sm_80 sm_90"),
            ("device.capability >= 90", "sm_80 sm_90 compute_80 compute_90"),
            ("device.capability >= 90", "sm_80 compute_80 compute_90"),
            ("device.capability >= 90 and device.capability < 100", "sm_90 compute_80"),
            // PTX for one GPU runs on no other.
            ("device.capability >= 90", "sm_90 compute_89a"),
            // There is no GPU of 9.1 or 10.1, which code for 9.0 or 10.0 alone would leave out.
            ("device.capability >= 90 and device.capability < 110", "sm_80 sm_90a sm_100f compute_80"),
            ("device.capability >= 90 and device.capability < 104", "sm_80 sm_90a sm_100f compute_80"),
            (
                "device.capability == 90 or device.capability >= 100 and device.capability < 110",
                "sm_80 sm_90a sm_100a sm_103a sm_120a compute_80",
            ),
        ] {
            assert_eq!(said(guard, targets), Vec::<String>::new(), "{guard}, {targets}");
        }
        for (guard, targets, whose) in [
            ("device.capability >= 90", "sm_80 compute_80", "capability 9.0 has"),
            ("device.capability >= 90", "sm_90 compute_80", "capability 10.0 has"),
            ("device.capability >= 120", "sm_90 compute_80", "capability 12.0 has"),
            (
                "device.capability >= 90",
                "sm_90 sm_100 sm_110 sm_120 compute_80",
                "capability 13.0 or later has",
            ),
        ] {
            let said = said(guard, targets);
            assert!(said.len() == 1 && said[0].contains(whose), "{guard}, {targets}: {said:?}");
        }
    }

    #[test]
    fn the_guard_that_is_advised_leaves_out_what_the_note_names_alone() {
        for (targets, whose, guard) in [
            ("sm_80 compute_80 compute_90a", "capability 10.0 has", "device.capability < 100`"),
            ("sm_80 sm_90a sm_100f sm_120f compute_80", "capability 11.0 has", "device.capability != 110`"),
            ("sm_80 sm_100f sm_110 sm_120f compute_80", "capability 9.0 has", "device.capability != 90`"),
            (
                "sm_80 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a compute_80",
                "capability 12.2 or later has",
                "device.capability < 122`",
            ),
        ] {
            let (said, help) = told("device.capability >= 90", targets);
            assert!(said.len() == 1 && said[0].contains(whose), "{targets}: {said:?}");
            assert!(help.len() == 1 && help[0].ends_with(guard), "{targets}: {help:?}");
        }
    }
}
