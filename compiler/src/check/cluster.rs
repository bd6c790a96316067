//! Clusters: of no more blocks than every GPU with clusters runs, and the grid a multiple of them.

use cubinder_bundle::expr::{BinaryOp, DeviceFact, Expr, Node};
use cubinder_bundle::proof::{Devices, Domain, Verdict};
use cubinder_bundle::{Interval, Target};

use super::claim::{Claim, What, When};
use super::formula::{is_multiple, joined};
use super::grid::AXES;
use super::site::{LaunchSite, Site};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::Text;
use crate::rules;

/// The most blocks of a cluster.
const MAX_CLUSTER: i64 = cubinder_bundle::launch::MAX_CLUSTER as i64;

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
pub(crate) const fn has_clusters(target: Target) -> bool {
    let (major, minor) = WITH_CLUSTERS;
    target.arch.major > major || target.arch.major == major && target.arch.minor >= minor
}

/// A warning for each launch in clusters that is compiled for GPUs without them.
pub(super) fn targets(site: &Site<'_>) -> Vec<Diagnostic> {
    let lacks = |target: &&Target| !has_clusters(**target);
    let lacking: Vec<String> =
        site.targets.iter().filter(lacks).map(|target| format!("`{target}`")).collect();
    let mut told: Vec<&Text> = Vec::new();
    let mut found = Vec::new();
    if lacking.is_empty() {
        return found;
    }
    for launch in site.launches() {
        let (Some(text), Some(kernel)) = (launch.decl.cluster.iter().flatten().next(), &launch.decl.kernel)
        else {
            continue;
        };
        if told.contains(&text) || needs_clusters(site, &launch) {
            continue;
        }
        told.push(text);
        found.push(
            Diagnostic::warning(format!("the code for {} has no clusters", lacking.join(", ")))
                .code(rules::FEATURE_OF_TARGET)
                .at(site.span(text), format!("`{}` is launched in clusters", kernel.value.trim()))
                .note("clusters need compute capability 9.0; on other GPUs the launch is refused at run time")
                .help("leave these targets out, or say `device.capability >= 90` in the variant's `guard` and have another variant for the rest"),
        );
    }
    found
}

/// Whether a launch is made in clusters of more than one block only on GPUs with clusters. Those of one block every GPU has.
fn needs_clusters(site: &Site<'_>, launch: &LaunchSite<'_>) -> bool {
    let least = i64::from(WITH_CLUSTERS.0) * 10 + i64::from(WITH_CLUSTERS.1);
    let capability = Expr { nodes: vec![Node::Device(DeviceFact::Capability)] };
    let conditions = site.guard(launch.at.row).into_iter().chain(site.when(launch.at));
    let domain = conditions.fold(site.domain().hasty(), Domain::assuming);
    let is_within = |domain: &Domain<'_>, expr: &Expr, min: i64, max: i64| {
        domain.within(expr, Interval { min, max }) == Verdict::Proved
    };
    if is_within(&domain, &capability, least, i64::MAX) {
        return true;
    }
    let older = Interval { max: least - 1, ..Devices::ANY.capability };
    let domain = domain.on_devices(Devices { capability: older, ..Devices::ANY });
    let axes = launch.launch.cluster.iter().flatten();
    axes.into_iter().all(|axis| is_within(&domain, axis, 1, 1))
}
