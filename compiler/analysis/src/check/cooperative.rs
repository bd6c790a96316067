//! Checks that all blocks of a cooperative launch can be resident.

use cubinder_expr::{BinaryOp, DeviceFact, Expr};

use super::claim::{Claim, Must, Predicate, Remedy, Term};
use super::draft_view::{DraftView, LaunchView};
use super::errors::{EarlyCooperativeLaunch, GridFitsNoDevice, GridFollowsShapes};
use super::formula::{binary, device, int, is_at_most};
use super::limits::reads;
use super::remedy::A_FEW;
use super::{Obligation, once_per_place};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::Located;
use crate::rules;

/// Maximum of any multiprocessor (CUDA C++ programming guide 13.0, "technical specifications per compute capability").
const MOST_THREADS: i64 = 2048;
const MOST_BLOCKS: i64 = 32;

/// Also reports programmatic ones, which the driver accepts but delays (observed: 580.159 on an H100).
pub(super) fn check(view: &DraftView<'_>, launches: &[LaunchView<'_>]) -> Vec<Diagnostic> {
    let decls = view.resolved.manifest.launches.iter().filter_map(|decl| decl.launch());
    let early = decls.filter_map(|decl| {
        let (cooperative, programmatic) = (decl.cooperative.as_ref()?, decl.programmatic.as_ref()?);
        let place = |key: &Located<bool>| Span::new(&view.resolved.source, key.range.clone());
        (cooperative.value && programmatic.value).then(|| {
            let (programmatic, cooperative) = (place(programmatic), place(cooperative));
            EarlyCooperativeLaunch { programmatic, cooperative }.into()
        })
    });
    let computed = launches.iter().filter_map(|launch| {
        let axes = launch.grid();
        let computed = axes.iter().find(|axis| axis.expr.constant().is_none())?;
        let follows_device = axes.iter().any(|axis| reads(&axis.expr, DeviceFact::Sms));
        (!follows_device).then_some((computed.span.clone(), launch.subject(GRID)))
    });
    let follows_shapes = once_per_place(computed, |span, grid| Some(GridFollowsShapes { grid, span }.into()));
    let grids = launches.iter().filter_map(|launch| Some((launch.grid().first()?.span.clone(), launch)));
    let too_many = once_per_place(grids, |span, launch| {
        let blocks = product(&launch.launch.grid)?;
        let (resident, threads) = most_resident(launch);
        let most = DeviceFact::Sms.range().1 * resident;
        let grid = launch.subject(GRID);
        (blocks > most).then(|| GridFitsNoDevice { grid, blocks, threads, most, span }.into())
    });
    early.chain(follows_shapes).chain(too_many).collect()
}

const GRID: &str = "the grid of a cooperative launch";

fn product(axes: &[Expr; 3]) -> Option<i64> {
    axes.iter().try_fold(1_i64, |all, axis| Some(all.saturating_mul(axis.constant()?)))
}

/// Returns a multiprocessor's maximum blocks, and their threads if constant.
fn most_resident(launch: &LaunchView<'_>) -> (i64, i64) {
    let threads = product(&launch.launch.block).unwrap_or(1).max(1);
    ((MOST_THREADS / threads).min(MOST_BLOCKS), threads)
}

pub(super) fn claim(launch: &LaunchView<'_>) -> Option<Claim> {
    let axes = launch.grid();
    let subject = "the number of blocks of a cooperative launch";
    let blocks = launch.product(subject, &axes, 1).filter(|blocks| reads(&blocks.expr, DeviceFact::Sms))?;
    let blocks = Term { span: axes.first()?.span.clone(), ..blocks };
    let (most, threads) = most_resident(launch);
    let of_device = binary(BinaryOp::Mul, &device(DeviceFact::Sms), &int(most));
    let must = format!("at most {most} per multiprocessor, the limit for blocks of {threads} threads");
    let holds = Predicate::Holds(is_at_most(&blocks.expr, &of_device));
    let claim = blocks.claim(rules::COOPERATIVE_GRID, Must::Be(must), holds);
    Some(Claim { remedy: Remedy::Fix(A_FEW), ..claim })
}

pub(super) fn obligations(view: &DraftView<'_>, launches: &[LaunchView<'_>]) -> Vec<Obligation> {
    let mut all: Vec<Obligation> = Vec::new();
    for launch in launches {
        let Some(Term { span, .. }) = launch.grid().into_iter().next() else { continue };
        if all.iter().all(|known| known.span != span) {
            let statement = launch.subject(GRID) + " fits on the device at once";
            all.push(Obligation::open(rules::COOPERATIVE_GRID, statement, span, view.route));
        }
    }
    all
}
