//! Claims that grids, blocks, clusters and shared memory fit all GPUs or the targets.

use cubinder_expr::{BinaryOp, DeviceFact, Expr, Interval, Node};
use cubinder_launch::native::SHARED_BYTES;
use cubinder_model::Target;
use cubinder_model::cuda_limits::{MAX_BLOCK, MAX_CLUSTER, MAX_GRID, MAX_THREADS};

use super::claim::{Claim, Must, Predicate, Remedy, Term, When};
use super::draft_view::{AXES, DraftView, LaunchView};
use super::formula::{binary, device, divides, int, is_multiple};
use super::remedy::ROUND_UP;
use crate::block_limits::max_shared_bytes;
use crate::diagnostic::Code;
use crate::rules;

/// With `shapes_are_known`, the grid must not be empty while outputs are not.
pub(super) fn grid(launch: &LaunchView<'_>, shapes_are_known: bool) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (index, (axis, max)) in launch.grid().into_iter().zip(MAX_GRID).enumerate() {
        let beside = Term { when: When::Beside(launch.step, index), ..axis };
        claims.extend(beside.limit(rules::GRID_LIMIT, Interval { min: 0, max }, ""));
        let written = Term { when: When::Written(launch.step), ..beside };
        let some = Interval { min: 1, max: i64::MAX };
        let written = written.limit(rules::GRID_LIMIT, some, " for nonempty outputs and arguments");
        claims.extend(written.filter(|_| shapes_are_known).map(|claim| match divides(&claim.term.expr) {
            true => Claim { remedy: Remedy::Fix(ROUND_UP), ..claim },
            false => claim,
        }));
    }
    claims
}

pub(super) fn block(launch: &LaunchView<'_>) -> Vec<Claim> {
    let axes = launch.block();
    let threads = launch.product("the number of threads per block", &axes, 2);
    axes_and_product(rules::BLOCK_LIMIT, &axes, MAX_BLOCK, threads.map(|all| (all, MAX_THREADS)))
}

pub(super) fn cluster(launch: &LaunchView<'_>) -> Vec<Claim> {
    let max = i64::from(MAX_CLUSTER);
    let axes = launch.cluster();
    let blocks = launch.product("the number of blocks per cluster", &axes, 2);
    let mut claims = axes_and_product(rules::CLUSTER_LIMIT, &axes, [max; 3], blocks.map(|all| (all, max)));
    claims.extend(launch.launch.cluster.iter().flat_map(|cluster| whole_clusters(launch, cluster)));
    claims
}

fn axes_and_product(rule: Code, axes: &[Term], max: [i64; 3], product: Option<(Term, i64)>) -> Vec<Claim> {
    let axes = axes.iter().zip(max).filter_map(|(axis, max)| axis.limit(rule, Interval { min: 1, max }, ""));
    axes.chain(product.map(|(all, max)| all.within(rule, Interval { min: i64::MIN, max }, ""))).collect()
}

const WHOLE_CLUSTERS: &str =
    "launch entire clusters: `CLUSTER * ceil_div(n, CLUSTER)` for `n` blocks; let surplus blocks do nothing";

const CODE_CLUSTERS: &str = "if the code counts clusters, as Triton's does with `num_ctas`, multiply by the blocks per cluster: `2 * ceil_div(n, 1024)`; if it counts blocks, launch `CLUSTER * ceil_div(n, CLUSTER)`";

pub(super) fn whole_clusters(launch: &LaunchView<'_>, cluster: &[Expr; 3]) -> Vec<Claim> {
    let remedy = Remedy::Fix(if launch.decl.is_of_code { CODE_CLUSTERS } else { WHOLE_CLUSTERS });
    let claim = |((grid, cluster), axis): ((Term, &Expr), &str)| {
        let factor = match cluster.constant() {
            Some(size) => format!("{size} (cluster {axis})"),
            None => format!("cluster {axis}"),
        };
        let is_kept = match (grid.expr.constant(), cluster.constant()) {
            (_, Some(1)) => true,
            (Some(grid), Some(cluster)) => grid.checked_rem(cluster) == Some(0),
            _ => false,
        };
        let must = Must::Be(format!("a multiple of {factor}"));
        let is_multiple = Predicate::Holds(is_multiple(&grid.expr, cluster));
        (!is_kept).then(|| Claim { remedy, ..grid.claim(rules::CLUSTER_LIMIT, must, is_multiple) })
    };
    launch.every_axis_of_grid().into_iter().zip(cluster).zip(AXES).filter_map(claim).collect()
}

/// 227 KiB (9.0 and 10.0, the table behind [`max_shared_bytes`]).
const MOST_SHARED: i64 = 227 * 1024;

pub(super) const LIBRARY: Remedy = Remedy::Limit(", or launch the kernel from a plugin library");

pub(super) const FEWER_TARGETS: Remedy = Remedy::Limit(", or remove targets with less");

/// Static memory is unknown before the compile; the native route has no opt-in.
pub(super) fn shared_memory(view: &DraftView<'_>, launch: &LaunchView<'_>) -> Vec<Claim> {
    const RULE: Code = rules::SHARED_MEMORY_LIMIT;
    let Some(term) = launch.shared_bytes("the dynamic shared memory") else { return Vec::new() };
    // Both values are then of the same device.
    if reads(&term.expr, DeviceFact::SharedBytes) {
        let at_least = binary(BinaryOp::Ge, &term.expr, &int(0));
        let at_most = binary(BinaryOp::Le, &term.expr, &device(DeviceFact::SharedBytes));
        let both = Predicate::Holds(binary(BinaryOp::And, &at_least, &at_most));
        let remedy = if view.is_native() { LIBRARY } else { Remedy::Limit("") };
        let must = Must::Be("from 0 to `device.shared_bytes`".to_owned());
        return vec![Claim { remedy, ..term.claim(RULE, must, both) }];
    }
    let claim = |expr: Expr, targets: &[Target]| {
        let known = targets.iter().filter_map(|target| Some((max_shared_bytes(target.arch)?, *target)));
        let (max, holder, remedy) = match known.min_by_key(|(bytes, _)| *bytes) {
            _ if view.is_native() => (SHARED_BYTES, "a launch without opt-in".to_owned(), LIBRARY),
            Some((bytes, target)) => (i64::from(bytes), format!("`{target}`"), FEWER_TARGETS),
            None => (MOST_SHARED, "any GPU".to_owned(), Remedy::Limit("")),
        };
        let limit = format!(" bytes, the maximum of {holder}");
        let claim = Term { expr, ..term.clone() }.limit(RULE, Interval { min: 0, max }, &limit)?;
        Some(Claim { remedy, ..claim })
    };
    if reads(&term.expr, DeviceFact::Capability) && !view.targets.is_empty() {
        return view.targets.iter().filter_map(|target| claim(on(&term.expr, *target), &[*target])).collect();
    }
    claim(term.expr.clone(), &view.targets).into_iter().collect()
}

pub(super) fn reads(expr: &Expr, fact: DeviceFact) -> bool {
    expr.nodes.contains(&Node::Device(fact))
}

pub(super) fn on(expr: &Expr, target: Target) -> Expr {
    let capability = i64::from(target.arch.major) * 10 + i64::from(target.arch.minor);
    let on = |node: &Node| match node {
        Node::Device(DeviceFact::Capability) => Node::Int(capability),
        other => other.clone(),
    };
    Expr { nodes: expr.nodes.iter().map(on).collect() }
}
