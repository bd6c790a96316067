//! Cooperative launches, of which all blocks must be on the device at once.

use cubinder_bundle::expr::{DeviceFact, Expr, Node};

use super::site::Site;
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

/// Cooperative launches of more blocks than any device runs at once.
fn too_many<'s>(site: &'s Site<'_>) -> impl Iterator<Item = Diagnostic> + 's {
    let mut told: Vec<&Text> = Vec::new();
    site.launches().filter(|launch| launch.launch.cooperative).filter_map(move |launch| {
        let constant = |axes: &[Expr; 3]| {
            axes.iter().map(Expr::constant).try_fold(1_i64, |all, axis| Some(all.saturating_mul(axis?)))
        };
        let blocks = constant(&launch.launch.grid)?;
        let threads = constant(&launch.launch.block).unwrap_or(1).max(1);
        let most = DeviceFact::Sms.range().1 * (MOST_THREADS / threads).min(MOST_BLOCKS);
        let text = launch.decl.grid.first().filter(|text| blocks > most && !told.contains(text))?;
        told.push(text);
        Some(
            Diagnostic::error(format!("{} fits on no device at once", launch.of("the grid of a cooperative launch")))
                .code(rules::COOPERATIVE_GRID)
                .at(site.span(text), format!("{blocks} blocks of {threads} threads, and no device runs more than {most} at once"))
                .help("launch no more than a few blocks for each multiprocessor, and let each loop: `min(device.sms * 2, ceil_div(n, 256))`"),
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
                .help("launch no more than a few blocks for each multiprocessor, and let each loop: `min(device.sms * 2, ceil_div(n, 256))`"),
        )
    })
}
