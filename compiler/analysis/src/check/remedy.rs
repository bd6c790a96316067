//! Suggests limits that make a refuted claim provable.

use cubinder_expr::{EvalError, Interval};
use cubinder_launch::proof::{Case, Verdict};
use cubinder_model::Plugin;
use cubinder_model::model::{MAX_RANK, MAX_SHAPE_VALUES};

use super::claim::{Claim, Predicate, Remedy};
use super::draft_view::DraftView;
use super::formula::{reads, truth};
use super::witness::{depends_on, outside, value};

/// Each costs a proof.
const MOST_TRIED: usize = 8;

const ADVICE_LEAST: usize = 2048;

pub(super) const ROUND_UP: &str =
    "use `ceil_div(n, d)` instead of `n // d`: the remainder also needs a block";

pub(super) const A_FEW: &str = "launch at most a few blocks per multiprocessor, and loop in each: `min(device.sms * 2, ceil_div(n, 256))`";

pub(super) fn change(claim: &Claim) -> String {
    match claim.remedy {
        Remedy::Fix(fix) => fix.to_owned(),
        Remedy::Limit(otherwise) => format!("change the expression{otherwise}"),
    }
}

pub(super) fn help(view: &DraftView<'_>, claim: &Claim, case: &Case) -> String {
    let Remedy::Limit(otherwise) = claim.remedy else { return change(claim) };
    let expr = &claim.term.expr;
    if let Some(longer) = longer(view, claim, case) {
        return format!("if such nodes are invalid, {longer}{otherwise}");
    }
    if let Some(limit) = proposal(view, claim, case) {
        return format!("if such shapes are invalid, prove this with {limit}{otherwise}");
    }
    let (attributes, inputs) = depends_on(view.plugin, &[expr]);
    let is_index = is_index(claim, case);
    let tensors = inputs.iter().filter_map(|&tensor| view.plugin.inputs.get(tensor));
    let is_rank = is_index || matches!(claim.predicate, Predicate::Holds(_)) || reads(expr).shapes.is_empty();
    let attributes = attributes.iter().filter_map(|&index| view.plugin.attributes.get(index));
    let mut names: Vec<String> = tensors
        .map(|input| {
            let key = if is_rank && input.values.is_none() { "rank" } else { "limits" };
            format!("`{key}` of `{}`", input.name)
        })
        .collect();
    names.extend(attributes.map(|attribute| {
        let keys = if attribute.ty.list { "`length` or `range`" } else { "`range` or `one_of`" };
        format!("{keys} of `{}`", attribute.name)
    }));
    if is_index {
        names.sort_by_key(|name| !name.starts_with("`length`"));
    }
    names.truncate(3);
    match names.as_slice() {
        [] => change(claim),
        names => {
            format!("exclude invalid nodes and shapes with {}, or `require`{otherwise}", names.join(", "))
        }
    }
}

fn is_index(claim: &Claim, case: &Case) -> bool {
    let is_wrong = |error| matches!(error, EvalError::IndexOutOfRange { .. });
    matches!(claim.predicate, Predicate::HasValue) && value(&claim.term.expr, case).is_err_and(is_wrong)
}

/// Returns the minimum rank or length for indices: `rank = "2.."` of `x`.
fn longer(view: &DraftView<'_>, claim: &Claim, case: &Case) -> Option<String> {
    if !is_index(claim, case) {
        return None;
    }
    let (attributes, inputs) = depends_on(view.plugin, &[&claim.term.expr]);
    let inputs = || inputs.iter().filter_map(|&index| Some((index, view.plugin.inputs.get(index)?)));
    let ranks = inputs().flat_map(|(index, input)| {
        let ranks = input.rank_min.saturating_add(1)..=input.rank_max;
        ranks.map(move |rank| (index, Limit::LeastRank(rank)))
    });
    let counts = inputs().filter(|(_, input)| input.values.is_some()).flat_map(|(index, _)| {
        let counts = (1..=MAX_SHAPE_VALUES).take(MOST_TRIED);
        counts.map(move |count| (index, Limit::Dims(Interval { min: count, max: count })))
    });
    let lists = attributes.iter().take(MOST_TRIED).filter_map(|&index| {
        let attribute = view.plugin.attributes.get(index).filter(|attribute| attribute.ty.list)?;
        Some((index, attribute.length.unwrap_or(Interval::ANY_SIZE)))
    });
    let lengths = lists.flat_map(|(index, length)| {
        let lengths = (length.min.saturating_add(1)..=length.max).take(MOST_TRIED);
        lengths.map(move |length| (index, Limit::LeastLength(length)))
    });
    ranks.take(MOST_TRIED).chain(counts).chain(lengths).find_map(|(index, limit)| {
        let (plugin, limit) = limited(view.plugin, index, limit)?;
        let domain = view.narrow(claim, view.domain_of(&plugin).sharing(&view.pools.advice));
        match claim.verdict(&domain) {
            Verdict::Proved => Some(format!("prove this with {limit}")),
            Verdict::Refuted(case) if is_index(claim, &case) => None,
            Verdict::Refuted(_) | Verdict::Open => Some(format!("exclude them with {limit}")),
        }
    })
}

fn proposal(view: &DraftView<'_>, claim: &Claim, case: &Case) -> Option<String> {
    let (_, inputs) = depends_on(view.plugin, &[&claim.term.expr]);
    let first = view.plugin.inputs.len();
    let read = reads(&claim.term.expr).shapes.into_iter().map(|tensor| tensor as usize);
    // Limits of inputs are clearer.
    let tensors: Vec<usize> = inputs.into_iter().chain(read.filter(|&tensor| tensor >= first)).collect();
    let mut limits = vec![Limit::Dims(Interval { min: 1, max: i64::MAX })];
    if let Predicate::Within(allowed) = claim.predicate {
        limits.push(Limit::Dims(Interval { min: 0, max: allowed.max }));
        limits.push(Limit::Dims(Interval { min: 1, max: allowed.max }));
    }
    limits.extend(least(claim, case).map(|min| Limit::Dims(Interval { min, max: i64::MAX })));
    let is_shape_input = |tensor: usize| view.plugin.inputs.get(tensor).is_some_and(|it| it.values.is_some());
    let of = |tensor: usize, limit: Limit| match limit {
        Limit::Dims(range) if is_shape_input(tensor) => (tensor, Limit::Values(range)),
        limit => (tensor, limit),
    };
    let candidates =
        limits.into_iter().flat_map(|limit| tensors.iter().map(move |&tensor| of(tensor, limit)));
    // Smaller tensors may have no counterexample.
    let fewer = |&tensor: &usize| {
        let shape = case.shapes.get(tensor)?;
        let elements = shape.iter().try_fold(1_i64, |all, &dim| all.checked_mul(dim))?;
        (elements > 1).then(|| (tensor, Limit::Numel(Interval { min: 0, max: elements - 1 })))
    };
    if view.pools.advice.left() < ADVICE_LEAST {
        return None;
    }
    candidates.chain(tensors.iter().filter_map(fewer)).take(MOST_TRIED).find_map(|(tensor, limit)| {
        let (plugin, limit) = limited(view.slim(), tensor, limit)?;
        let domain = view.narrow(claim, view.domain_of(&plugin).sharing(&view.pools.advice).hasty());
        // Impossible limits prove everything.
        let is_met = || domain.never(&truth()) != Verdict::Proved;
        (claim.verdict(&domain) == Verdict::Proved && is_met()).then_some(limit)
    })
}

/// Assumes that the shortfall grows with the smallest dimension.
fn least(claim: &Claim, case: &Case) -> Option<i64> {
    let Predicate::Within(allowed) = claim.predicate else { return None };
    let (_, found) = outside(&claim.term.expr, case, allowed)?;
    let smallest = case.shapes.iter().flatten().filter(|&&dim| dim >= 0).min()?;
    let missing = allowed.min.checked_sub(found).filter(|&missing| missing > 0)?;
    smallest.checked_add(missing)
}

#[derive(Clone, Copy)]
enum Limit {
    LeastRank(u8),
    LeastLength(i64),
    Numel(Interval),
    Dims(Interval),
    /// Values of a shape input.
    Values(Interval),
}

/// Also returns the manifest notation; `None` if the limit adds no restriction.
fn limited(plugin: &Plugin, index: usize, limit: Limit) -> Option<(Plugin, String)> {
    let mut plugin = plugin.clone();
    let shown = |range: Interval| match range.min == range.max {
        true => range.to_string(),
        false => format!("\"{range}\""),
    };
    if let Limit::LeastLength(min) = limit {
        let attribute = plugin.attributes.get_mut(index)?;
        let length = Interval { min, max: attribute.length.map_or(i64::MAX, |length| length.max) };
        attribute.length = Some(length);
        let text = format!("`length = {}` of `{}`", shown(length), attribute.name);
        return Some((plugin, text));
    }
    let name = plugin.tensor_name(index)?.to_owned();
    let limits = match index.checked_sub(plugin.inputs.len()) {
        None => &mut plugin.inputs.get_mut(index)?.limits,
        Some(output) => &mut plugin.outputs.get_mut(output)?.limits,
    };
    let (key, known, range) = match limit {
        Limit::LeastRank(rank) => {
            let input = plugin.inputs.get_mut(index)?;
            input.rank_min = rank;
            let max =
                if input.rank_max == MAX_RANK && rank < MAX_RANK { i64::MAX } else { input.rank_max.into() };
            let text = format!("`rank = {}` of `{name}`", shown(Interval { min: rank.into(), max }));
            return Some((plugin, text));
        }
        Limit::Dims(_) if !limits.dims.is_empty() => return None,
        Limit::Dims(range) => ("dims", &mut limits.every, range),
        Limit::Numel(range) => ("numel", &mut limits.numel, range),
        Limit::Values(range) => ("values", plugin.inputs.get_mut(index)?.values.as_mut()?, range),
        Limit::LeastLength(_) => return None,
    };
    let both = Interval { min: known.min.max(range.min), max: known.max.min(range.max) };
    if both == *known || both.min > both.max {
        return None;
    }
    *known = both;
    let text = match (key, both) {
        ("values", both) => format!("`values = {}` of `{name}`", shown(both)),
        (key, Interval { min: 0, max }) if max != i64::MAX => {
            format!("`limits = {{ {key} = \"..={max}\" }}` of `{name}`")
        }
        (key, both) => format!("`limits = {{ {key} = {} }}` of `{name}`", shown(both)),
    };
    Some((plugin, text))
}
