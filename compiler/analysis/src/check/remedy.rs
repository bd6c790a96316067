//! How to mend what a case refutes. A limit is proposed only where the proof succeeds with it.

use cubinder_expr::Interval;
use cubinder_expr::{BinaryOp, EvalError, Expr, Node};
use cubinder_launch::proof::{Case, Verdict};
use cubinder_model::Plugin;
use cubinder_model::model::MAX_SHAPE_VALUES;

use super::claim::{Claim, What, When, verdict};
use super::cooperative::A_FEW;
use super::formula::{reads, truth};
use super::site::Site;
use super::witness::{depends_on, outside, value};
use crate::rules;

/// TensorRT's highest rank, which need not be said.
const HIGHEST_RANK: i64 = cubinder_model::model::MAX_RANK as i64;

/// Each limit that is tried is a proof: enough for two or three tensors.
const MOST_TRIED: usize = 8;

/// With fewer steps left none is tried.
const ADVICE_LEAST: usize = 2048;

/// What would mend a claim that no case meets.
pub(super) fn change(site: &Site<'_>, claim: &Claim) -> String {
    if is_rounded_down(claim) {
        return ROUND_UP.to_owned();
    }
    if is_of_clusters(claim) {
        return whole_clusters(site, claim);
    }
    if is_of_usual_size(claim) {
        return NO_MORE.to_owned();
    }
    if is_of_numbers(claim) {
        return WHOLE_NUMBERS.to_owned();
    }
    if claim.rule == rules::COOPERATIVE_GRID {
        return A_FEW.to_owned();
    }
    format!("change the expression{}", claim.otherwise)
}

pub(super) const ROUND_UP: &str = "write `ceil_div(n, d)` for `n // d`: what is left over needs a block, too";

const WHOLE_CLUSTERS: &str = "launch whole clusters, such as `CLUSTER * ceil_div(n, CLUSTER)` blocks for `n`; those that are too many do nothing";

const CODE_CLUSTERS: &str = "code for clusters may count programs of a whole cluster each, as Triton's with `num_ctas` does: then the grid is their number times the blocks of a cluster, such as `2 * ceil_div(n, 1024)`. Where it counts blocks, launch `CLUSTER * ceil_div(n, CLUSTER)`";

const WHOLE_NUMBERS: &str = "give it the bytes of the type in the kernel, such as `8 * n` for `n` of `double`; for bytes of anything take `void*` in the kernel";

const NO_MORE: &str = "give `opt` no more than `upper`, which is what it is where it is left out";

/// Whether it is about what a size usually is.
fn is_of_usual_size(claim: &Claim) -> bool {
    claim.rule == rules::SIZE_TENSOR && matches!(claim.what, What::Holds(_))
}

/// Whether it is about what a kernel keeps in scratch memory.
pub(super) fn is_of_numbers(claim: &Claim) -> bool {
    claim.rule == rules::SCRATCH_LIMIT && matches!(claim.what, What::Holds(_))
}

/// Whether it is about a grid that is not made of whole clusters.
fn is_of_clusters(claim: &Claim) -> bool {
    claim.rule == rules::CLUSTER_LIMIT && matches!(claim.what, What::Holds(_))
}

/// What would make a grid one of whole clusters.
fn whole_clusters(site: &Site<'_>, claim: &Claim) -> String {
    let is_of_code = site
        .launches()
        .any(|launch| launch.decl.is_of_code && matches!(claim.when, When::Running(at) if at == launch.at));
    if is_of_code { CODE_CLUSTERS } else { WHOLE_CLUSTERS }.to_owned()
}

/// Whether it is about too few blocks, and what counts them leaves out the rest of a division.
fn is_rounded_down(claim: &Claim) -> bool {
    matches!(claim.when, When::Written(_)) && divides(&claim.expr)
}

/// Whether an expression has a division that leaves out the rest.
pub(super) fn divides(expr: &Expr) -> bool {
    expr.nodes.iter().any(|node| matches!(node, Node::Binary(BinaryOp::FloorDiv, ..)))
}

/// What would mend a claim that a case refutes.
pub(super) fn help(site: &Site<'_>, claim: &Claim, case: &Case) -> String {
    let otherwise = claim.otherwise;
    if is_rounded_down(claim) {
        return ROUND_UP.to_owned();
    }
    if is_of_clusters(claim) {
        return whole_clusters(site, claim);
    }
    if is_of_usual_size(claim) {
        return NO_MORE.to_owned();
    }
    if is_of_numbers(claim) {
        return WHOLE_NUMBERS.to_owned();
    }
    if claim.rule == rules::COOPERATIVE_GRID {
        return A_FEW.to_owned();
    }
    if let Some(longer) = longer(site, claim, case) {
        return format!("if such nodes are not meant, say so: {longer}{otherwise}");
    }
    if let Some(limit) = proposal(site, claim, case) {
        return format!("if such shapes are not meant, say so: {limit} would prove it{otherwise}");
    }
    let (attributes, inputs) = depends_on(site.plugin, &[&claim.expr]);
    let is_index = is_index(claim, case);
    let tensors = inputs.iter().filter_map(|&tensor| site.plugin.inputs.get(tensor));
    // Extents change nothing about how long a shape is.
    let is_rank = is_index || matches!(claim.what, What::Holds(_));
    let key = if is_rank || reads(&claim.expr).shapes.is_empty() { "rank" } else { "limits" };
    let attributes = attributes.iter().filter_map(|&index| site.plugin.attributes.get(index));
    let mut names: Vec<String> = tensors
        .map(|input| match input.values {
            Some(_) => format!("`limits` of `{}`", input.name),
            None => format!("`{key}` of `{}`", input.name),
        })
        .collect();
    names.extend(attributes.map(|attribute| match attribute.ty.list {
        true => format!("`length` or `range` of `{}`", attribute.name),
        false => format!("`range` or `one_of` of `{}`", attribute.name),
    }));
    if is_index {
        // Those of lists first.
        names.sort_by_key(|name| !name.starts_with("`length`"));
    }
    names.truncate(3);
    match names.as_slice() {
        [] => change(site, claim),
        names => format!("say what is meant, with {} or with `require`{otherwise}", names.join(", ")),
    }
}

/// Whether the case is one of an index out of range.
fn is_index(claim: &Claim, case: &Case) -> bool {
    let is_wrong = |error| matches!(error, EvalError::IndexOutOfRange { .. });
    matches!(claim.what, What::HasValue) && value(&claim.expr, case).is_err_and(is_wrong)
}

/// The least rank or length with which no index is out of range, where one is: `rank = "2.."` of `x`. Something else may be wrong with
/// it still.
fn longer(site: &Site<'_>, claim: &Claim, case: &Case) -> Option<String> {
    if !is_index(claim, case) {
        return None;
    }
    let mended = |plugin: &Plugin, limit: String| {
        let domain = claim.narrow(site, site.domain_of(plugin).sharing(site.advice));
        match verdict(&domain, claim) {
            Verdict::Proved => Some(format!("{limit} would prove it")),
            Verdict::Refuted(case) if is_index(claim, &case) => None,
            Verdict::Refuted(_) | Verdict::Open => Some(limit),
        }
    };
    let (attributes, inputs) = depends_on(site.plugin, &[&claim.expr]);
    let ranks = inputs.iter().filter_map(|&index| {
        let least = i64::from(site.plugin.inputs.get(index)?.rank_min);
        Some((index, least.saturating_add(1)..=i64::from(site.plugin.inputs.get(index)?.rank_max)))
    });
    let ranks = ranks.flat_map(|(index, ranks)| ranks.map(move |rank| (index, rank)));
    let of_rank = ranks.take(MOST_TRIED).find_map(|(index, rank)| {
        let mut plugin = site.plugin.clone();
        let input = plugin.inputs.get_mut(index)?;
        input.rank_min = u8::try_from(rank).ok()?;
        let (name, most) = (input.name.clone(), input.rank_max);
        let range = match i64::from(most) {
            most if most == rank => format!("{rank}"),
            HIGHEST_RANK.. => format!("\"{rank}..\""),
            most => format!("\"{rank}..={most}\""),
        };
        mended(&plugin, format!("`rank = {range}` of `{name}`"))
    });
    let of_count = || {
        let is_asked = |&&index: &&usize| site.plugin.inputs.get(index).is_some_and(|it| it.values.is_some());
        inputs.iter().filter(is_asked).find_map(|&index| {
            (1..=MAX_SHAPE_VALUES).take(MOST_TRIED).find_map(|count| {
                let limit = Limit::Dims(Interval { min: count, max: count });
                let (plugin, limit) = limited(site.plugin, index, limit)?;
                let name = site.plugin.tensor_name(index)?;
                mended(&plugin, format!("`limits = {{ {limit} }}` of `{name}`"))
            })
        })
    };
    let of_length = || {
        attributes.iter().take(MOST_TRIED).find_map(|&index| {
            let found = site.plugin.attributes.get(index).filter(|attribute| attribute.ty.list)?;
            let least = found.length.map_or(0, |length| length.min);
            let most = found.length.map_or(i64::MAX, |length| length.max);
            (least.saturating_add(1)..=most).take(MOST_TRIED).find_map(|length| {
                let mut plugin = site.plugin.clone();
                let limit = Interval { min: length, max: most };
                plugin.attributes.get_mut(index)?.length = Some(limit);
                let limit = if length == most { format!("{most}") } else { format!("\"{limit}\"") };
                mended(&plugin, format!("`length = {limit}` of `{}`", found.name))
            })
        })
    };
    of_rank.or_else(of_count).or_else(of_length)
}

/// A limit with which the claim is proved, tried from the least to the most restricting.
fn proposal(site: &Site<'_>, claim: &Claim, case: &Case) -> Option<String> {
    let (_, inputs) = depends_on(site.plugin, &[&claim.expr]);
    let first = site.plugin.inputs.len();
    let read = reads(&claim.expr).shapes.into_iter().map(|tensor| tensor as usize);
    // Limits of inputs are the clearer ones: an output's follow.
    let tensors: Vec<usize> = inputs.into_iter().chain(read.filter(|&tensor| tensor >= first)).collect();
    let mut limits = vec![Limit::Dims(Interval { min: 1, max: i64::MAX })];
    if let What::Within(allowed) = claim.what {
        limits.push(Limit::Dims(Interval { min: 0, max: allowed.max }));
        limits.push(Limit::Dims(Interval { min: 1, max: allowed.max }));
    }
    limits.extend(least(claim, case).map(|min| Limit::Dims(Interval { min, max: i64::MAX })));
    let is_shape_input = |tensor: usize| site.plugin.inputs.get(tensor).is_some_and(|it| it.values.is_some());
    let of = |tensor: usize, limit: Limit| match limit {
        Limit::Dims(range) if is_shape_input(tensor) => (tensor, Limit::Values(range)),
        limit => (tensor, limit),
    };
    let candidates =
        limits.into_iter().flat_map(|limit| tensors.iter().map(move |&tensor| of(tensor, limit)));
    // The case is one of the fewest elements: with fewer there may be none.
    let fewer = |&tensor: &usize| {
        let shape = case.shapes.get(tensor)?;
        let elements = shape.iter().try_fold(1_i64, |all, &dim| all.checked_mul(dim))?;
        (elements > 1).then(|| (tensor, Limit::Numel(Interval { min: 0, max: elements - 1 })))
    };
    if site.advice.left() < ADVICE_LEAST {
        return None;
    }
    candidates.chain(tensors.iter().filter_map(fewer)).take(MOST_TRIED).find_map(|(tensor, limit)| {
        let (plugin, limit) = limited(site.slim(), tensor, limit)?;
        let name = site.plugin.tensor_name(tensor)?;
        let domain = claim.narrow(site, site.domain_of(&plugin).sharing(site.advice).hasty());
        // What no node can keep proves everything.
        let is_met = || domain.never(&truth()) != Verdict::Proved;
        (verdict(&domain, claim) == Verdict::Proved && is_met()).then(|| match limit {
            Limit::Values(_) => format!("`{limit}` of `{name}`"),
            limit => format!("`limits = {{ {limit} }}` of `{name}`"),
        })
    })
}

/// The least dimension that would do, if what is too small by some amount grows with the smallest dimension of the case.
fn least(claim: &Claim, case: &Case) -> Option<i64> {
    let What::Within(allowed) = claim.what else { return None };
    let (_, found) = outside(&claim.expr, case, allowed)?;
    let smallest = case.shapes.iter().flatten().filter(|&&dim| dim >= 0).min()?;
    let missing = allowed.min.checked_sub(found).filter(|&missing| missing > 0)?;
    smallest.checked_add(missing)
}

#[derive(Clone, Copy)]
enum Limit {
    Numel(Interval),
    Dims(Interval),
    /// Of what a shape input holds.
    Values(Interval),
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (key, range) = match self {
            Limit::Numel(range) => ("numel", range),
            Limit::Dims(range) => ("dims", range),
            Limit::Values(range) => ("values", range),
        };
        match range {
            Interval { min: 0, max } if *max != i64::MAX && key != "values" => {
                write!(f, "{key} = \"..={max}\"")
            }
            Interval { min, max } if min == max => write!(f, "{key} = {max}"),
            range => write!(f, "{key} = \"{range}\""),
        }
    }
}

/// The plugin with a limit more; nothing where the tensor has such a limit already.
/// The plugin with a limit beside those that it has, and the limit that comes of both; none where it adds nothing.
fn limited(plugin: &Plugin, tensor: usize, limit: Limit) -> Option<(Plugin, Limit)> {
    let mut plugin = plugin.clone();
    let outputs = plugin.inputs.len();
    if let Limit::Values(range) = limit {
        let values = plugin.inputs.get_mut(tensor)?.values.as_mut()?;
        let both = meet(*values, range)?;
        *values = both;
        return Some((plugin, Limit::Values(both)));
    }
    let limits = match tensor.checked_sub(outputs) {
        None => &mut plugin.inputs.get_mut(tensor)?.limits,
        Some(output) => &mut plugin.outputs.get_mut(output)?.limits,
    };
    let known = match limit {
        Limit::Numel(_) => &mut limits.numel,
        Limit::Dims(_) if !limits.dims.is_empty() => return None,
        Limit::Dims(_) | Limit::Values(_) => &mut limits.every,
    };
    let (Limit::Numel(range) | Limit::Dims(range) | Limit::Values(range)) = limit;
    let both = meet(*known, range)?;
    *known = both;
    let limit = match limit {
        Limit::Numel(_) => Limit::Numel(both),
        Limit::Dims(_) | Limit::Values(_) => Limit::Dims(both),
    };
    Some((plugin, limit))
}

/// Both ranges together; none where that is empty, or adds nothing to the first.
fn meet(known: Interval, range: Interval) -> Option<Interval> {
    let both = Interval { min: known.min.max(range.min), max: known.max.min(range.max) };
    (both != known && both.min <= both.max).then_some(both)
}
