//! Cooperative launches, of which all blocks must be on the device at once.

use cubinder_expr::{BinaryOp, DeviceFact, Expr, Node};
use cubinder_launch::proof::Verdict;

use super::Obligation;
use super::claim::{Claim, What, When};
use super::formula::{is_at_most, joined};
use super::site::{LaunchSite, Site};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::manifest::Text;
use crate::rules;

/// The most resident threads and blocks of a multiprocessor, of any architecture (CUDA C++ programming guide 13.0, "technical
/// specifications per compute capability").
const MOST_THREADS: i64 = 2048;
const MOST_BLOCKS: i64 = 32;

/// Cooperative launches that may not fit, or that are meant to begin early and must wait for room for all of their blocks. The driver takes both
/// attributes together (seen: 580.159 on an H100).
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    const CODE: Code = rules::COOPERATIVE_GRID;
    let decls = site.resolved.manifest.launches.iter().filter_map(|decl| decl.launch());
    let both = decls.filter_map(|decl| {
        let (cooperative, programmatic) = (decl.cooperative.as_ref()?, decl.programmatic.as_ref()?);
        (cooperative.value && programmatic.value).then(|| {
            let place = |range: &std::ops::Range<usize>| Span::new(&site.resolved.source, range.clone());
            Diagnostic::warning("a cooperative launch hardly begins early")
                .code(CODE)
                .at(place(&programmatic.range), "it would begin while other kernels hold the device")
                .related(place(&cooperative.range), "all of its blocks must run at once")
                .help("take `programmatic` out, or let the kernel do without the whole grid")
        })
    });
    both.chain(of_shapes(site)).chain(too_many(site)).collect()
}

/// How to keep to what fits.
pub(super) const A_FEW: &str = "launch no more than a few blocks for each multiprocessor, and let each loop: `min(device.sms * 2, ceil_div(n, 256))`";

/// The most blocks of a launch that a multiprocessor of any architecture holds, and the threads of each as far as they are known.
fn most_resident(launch: &LaunchSite<'_>) -> (i64, i64) {
    let mut axes = launch.launch.block.iter().map(Expr::constant);
    let threads = axes.try_fold(1_i64, |all, axis| Some(all.saturating_mul(axis?))).unwrap_or(1).max(1);
    ((MOST_THREADS / threads).min(MOST_BLOCKS), threads)
}

/// Claims for each cooperative launch whose grid follows the device: that a device of any architecture could hold it.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    let is_sms = |node: &Node| matches!(node, Node::Device(DeviceFact::Sms));
    let cooperative = site.launches().filter(|launch| launch.launch.cooperative);
    let claim = |launch: LaunchSite<'_>| {
        let grid = &launch.launch.grid;
        let text = launch.decl.grid.first()?;
        let expr = joined(BinaryOp::Mul, grid.iter().filter(|axis| axis.constant() != Some(1)))?;
        if !expr.nodes.iter().any(is_sms) {
            return None;
        }
        let (most, threads) = most_resident(&launch);
        let of_device =
            vec![Node::Device(DeviceFact::Sms), Node::Int(most), Node::Binary(BinaryOp::Mul, 0, 1)];
        Some(Claim {
            rule: rules::COOPERATIVE_GRID,
            subject: launch.of("the number of blocks of a cooperative launch"),
            must: format!(
                "is at most {most} for each multiprocessor, which holds no more blocks of {threads} threads"
            ),
            otherwise: "",
            what: What::Holds(is_at_most(&expr, &Expr { nodes: of_device })),
            expr,
            span: site.span(text),
            when: When::Running(launch.at),
        })
    };
    cooperative.filter_map(claim).collect()
}

/// What only the device can tell of each cooperative launch.
pub(super) fn obligations(site: &Site<'_>) -> Vec<Obligation> {
    let mut all: Vec<Obligation> = Vec::new();
    for launch in site.launches().filter(|launch| launch.launch.cooperative) {
        let Some(text) = launch.decl.grid.first() else { continue };
        let span = site.span(text);
        if all.iter().all(|known| known.span != span) {
            all.push(Obligation {
                rule: rules::COOPERATIVE_GRID,
                statement: launch.of("the grid of a cooperative launch") + " fits on the device at once",
                span,
                verdict: Verdict::Open,
                is_beyond: false,
                found: None,
                case: None,
                route: site.route,
            });
        }
    }
    all
}

/// Cooperative launches of more blocks than any device runs at once.
fn too_many<'s>(site: &'s Site<'_>) -> impl Iterator<Item = Diagnostic> + 's {
    let mut told: Vec<&Text> = Vec::new();
    site.launches().filter(|launch| launch.launch.cooperative).filter_map(move |launch| {
        let constant = |axes: &[Expr; 3]| {
            axes.iter().map(Expr::constant).try_fold(1_i64, |all, axis| Some(all.saturating_mul(axis?)))
        };
        let blocks = constant(&launch.launch.grid)?;
        let (resident, threads) = most_resident(&launch);
        let most = DeviceFact::Sms.range().1 * resident;
        let text = launch.decl.grid.first().filter(|text| blocks > most && !told.contains(text))?;
        told.push(text);
        Some(
            Diagnostic::error(format!(
                "{} fits on no device at once",
                launch.of("the grid of a cooperative launch")
            ))
            .code(rules::COOPERATIVE_GRID)
            .at(
                site.span(text),
                format!("{blocks} blocks of {threads} threads, and no device runs more than {most} at once"),
            )
            .help(A_FEW),
        )
    })
}

/// Cooperative launches whose grids follow the shapes and not the device.
fn of_shapes<'s>(site: &'s Site<'_>) -> impl Iterator<Item = Diagnostic> + 's {
    let mut told: Vec<&Text> = Vec::new();
    let is_sms = |node: &Node| matches!(node, Node::Device(DeviceFact::Sms));
    let reads_device = move |expr: &Expr| expr.nodes.iter().any(is_sms);
    site.launches().filter(|launch| launch.launch.cooperative).filter_map(move |launch| {
        let grid = &launch.launch.grid;
        let computed = grid.iter().zip(&launch.decl.grid).find(|(axis, _)| axis.constant().is_none());
        let (_, text) = computed.filter(|_| !grid.iter().any(reads_device))?;
        if told.contains(&text) {
            return None;
        }
        told.push(text);
        Some(
            Diagnostic::warning(launch.of("the grid of a cooperative launch") + " follows the shapes alone")
                .code(rules::COOPERATIVE_GRID)
                .at(site.span(text), "nothing keeps it to what fits on the device at once")
                .note("a cooperative launch whose blocks do not all fit is refused at run time")
                .help(A_FEW),
        )
    })
}
