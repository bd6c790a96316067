//! How to mend what a case refutes. A limit is proposed only where the proof succeeds with it.

use cubinder_bundle::expr::{BinaryOp, Node};
use cubinder_bundle::proof::{Case, Verdict};
use cubinder_bundle::{Interval, Plugin};

use super::claim::{Claim, What, When, verdict};
use super::formula::reads;
use super::site::Site;
use super::witness::{depends_on, outside};
use crate::diagnostic::Code;
use crate::rules;

/// Each limit that is tried is a proof: enough for two or three tensors.
const MOST_TRIED: usize = 8;

/// What would mend a claim that no case meets.
pub(super) fn change(claim: &Claim) -> String {
    if is_rounded_down(claim) {
        return ROUND_UP.to_owned();
    }
    format!("change the expression{}", in_the_kernel(claim.rule))
}

const ROUND_UP: &str = "write `ceil_div(n, d)` for `n // d`: what is left over needs a block, too";

/// Whether it is about too few blocks, and what counts them leaves out the rest of a division.
fn is_rounded_down(claim: &Claim) -> bool {
    let divides = |node: &Node| matches!(node, Node::Binary(BinaryOp::FloorDiv, ..));
    matches!(claim.when, When::Written(_)) && claim.expr.nodes.iter().any(divides)
}

/// What would mend a claim that a case refutes.
pub(super) fn help(site: &Site<'_>, claim: &Claim, case: &Case) -> String {
    let wider = in_the_kernel(claim.rule);
    if is_rounded_down(claim) {
        return ROUND_UP.to_owned();
    }
    if let Some(limit) = proposal(site, claim, case) {
        return format!("if such shapes are not meant, say so: {limit} would prove it{wider}");
    }
    let (attributes, inputs) = depends_on(site.plugin, &[&claim.expr]);
    let tensors = inputs.iter().filter_map(|&tensor| site.plugin.inputs.get(tensor));
    let key = if reads(&claim.expr).shapes.is_empty() { "rank" } else { "limits" };
    let attributes = attributes.iter().filter_map(|&index| site.plugin.attributes.get(index));
    let mut names: Vec<String> = tensors.map(|input| format!("`{key}` of `{}`", input.name)).collect();
    names.extend(attributes.map(|attribute| match attribute.ty.list {
        true => format!("`length` or `range` of `{}`", attribute.name),
        false => format!("`range` or `one_of` of `{}`", attribute.name),
    }));
    names.truncate(3);
    match names.as_slice() {
        [] => change(claim),
        names => format!("say what is meant, with {} or with `require`{wider}", names.join(", ")),
    }
}

/// What else would mend it, beside limits of shapes.
fn in_the_kernel(rule: Code) -> &'static str {
    match rule {
        rules::ARGUMENT_OVERFLOW => ", or take a wider type in the kernel",
        rules::LAUNCH_BOUNDS => ", or make the kernel's `__launch_bounds__` larger",
        rules::REGISTERS => ", or say the largest block with `__launch_bounds__` in the kernel",
        rules::SHARED_MEMORY_LIMIT => ", or leave out the targets that have less",
        _ => "",
    }
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
    let candidates = limits.into_iter().flat_map(|limit| tensors.iter().map(move |&tensor| (tensor, limit)));
    // The case is one of the fewest elements: with fewer there may be none.
    let fewer = |&tensor: &usize| {
        let shape = case.shapes.get(tensor)?;
        let elements = shape.iter().try_fold(1_i64, |all, &dim| all.checked_mul(dim))?;
        (elements > 1).then(|| (tensor, Limit::Numel(Interval { min: 0, max: elements - 1 })))
    };
    candidates.chain(tensors.iter().filter_map(fewer)).take(MOST_TRIED).find_map(|(tensor, limit)| {
        let (plugin, limit) = limited(&claim.plugin(site), tensor, limit)?;
        let name = site.plugin.tensor_name(tensor)?;
        (verdict(&claim.domain(site, &plugin), claim) == Verdict::Proved)
            .then(|| format!("`limits = {{ {limit} }}` of `{name}`"))
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
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (key, range) = match self {
            Limit::Numel(range) => ("numel", range),
            Limit::Dims(range) => ("dims", range),
        };
        match range {
            Interval { min: 0, max } if *max != i64::MAX => write!(f, "{key} = \"..={max}\""),
            range => write!(f, "{key} = \"{range}\""),
        }
    }
}

/// The plugin with a limit more; nothing where the tensor has such a limit already.
/// The plugin with a limit beside those that it has, and the limit that comes of both; none where it adds nothing.
fn limited(plugin: &Plugin, tensor: usize, limit: Limit) -> Option<(Plugin, Limit)> {
    let mut plugin = plugin.clone();
    let outputs = plugin.inputs.len();
    let limits = match tensor.checked_sub(outputs) {
        None => &mut plugin.inputs.get_mut(tensor)?.limits,
        Some(output) => &mut plugin.outputs.get_mut(output)?.limits,
    };
    let known = match limit {
        Limit::Numel(_) => &mut limits.numel,
        Limit::Dims(_) if !limits.dims.is_empty() => return None,
        Limit::Dims(_) => &mut limits.every,
    };
    let (Limit::Numel(range) | Limit::Dims(range)) = limit;
    let both = Interval { min: known.min.max(range.min), max: known.max.min(range.max) };
    if both == *known || both.min > both.max {
        return None;
    }
    *known = both;
    let limit = match limit {
        Limit::Numel(_) => Limit::Numel(both),
        Limit::Dims(_) => Limit::Dims(both),
    };
    Some((plugin, limit))
}
