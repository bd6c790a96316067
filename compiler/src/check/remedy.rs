//! How to mend what a case refutes. A limit is proposed only where the proof succeeds with it.

use cubinder_bundle::proof::{Case, Domain, Verdict};
use cubinder_bundle::{Interval, Plugin};

use super::claim::{Claim, What, verdict};
use super::formula::reads;
use super::site::Site;
use crate::rules;

/// The most elements that indices of 32 bits reach.
const MANY: i64 = i32::MAX as i64;

/// What would mend a claim that `case` refutes.
pub(super) fn help(site: &Site<'_>, claim: &Claim, _case: &Case) -> Option<String> {
    let reads = reads(&claim.expr);
    if let Some(limit) = proposal(site, claim) {
        return Some(format!("if such shapes are not meant, say so: {limit} would prove it"));
    }
    let tensors = reads
        .shapes
        .iter()
        .chain(&reads.ranks)
        .filter_map(|&tensor| site.plugin.tensor_name(tensor as usize));
    let attributes = reads.attributes.iter().filter_map(|&index| site.plugin.attributes.get(index as usize));
    let mut names: Vec<String> = tensors.map(|name| format!("`limits` of `{name}`")).collect();
    names.dedup();
    names.extend(attributes.map(|attribute| format!("`range` or `one_of` of `{}`", attribute.name)));
    names.truncate(3);
    names.push("`require`".to_owned());
    let wider =
        if claim.rule == rules::ARGUMENT_OVERFLOW { ", or take a wider type in the kernel" } else { "" };
    Some(format!("say what is meant, with {}{wider}", names.join(", ")))
}

/// A limit with which the claim is proved, tried from the least to the most restricting.
fn proposal(site: &Site<'_>, claim: &Claim) -> Option<String> {
    let reads = reads(&claim.expr);
    let inputs = site.plugin.inputs.len();
    // Limits of inputs are the clearer ones: an output's follow.
    let mut tensors: Vec<usize> = reads.shapes.iter().map(|&tensor| tensor as usize).collect();
    if tensors.iter().any(|&tensor| tensor >= inputs) {
        tensors.splice(0..0, 0..inputs);
        tensors.dedup();
    }
    let candidates = tensors.into_iter().flat_map(|tensor| {
        let all = Interval { min: 0, max: MANY };
        let mut limits = vec![Limit::Numel(all), Limit::Dims(Interval { min: 1, max: i64::MAX })];
        if let What::Within(allowed) = claim.what {
            limits.push(Limit::Dims(Interval { min: 0, max: allowed.max }));
        }
        limits.into_iter().map(move |limit| (tensor, limit))
    });
    // Each is a proof: enough are tried for one or two tensors.
    candidates.take(8).find_map(|(tensor, limit)| {
        let plugin = limited(site.plugin, tensor, limit)?;
        let domain = Domain::of(&plugin);
        let domain = match claim.row.and_then(|row| site.guard(row)) {
            Some(guard) => domain.assuming(guard),
            None => domain,
        };
        let name = site.plugin.tensor_name(tensor)?;
        (verdict(&domain, claim) == Verdict::Proved).then(|| format!("`limits = {{ {limit} }}` of `{name}`"))
    })
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
            Interval { min: 0, max } => write!(f, "{key} = \"..={max}\""),
            range => write!(f, "{key} = \"{range}\""),
        }
    }
}

/// The plugin with a limit more; nothing where the tensor has such a limit already.
fn limited(plugin: &Plugin, tensor: usize, limit: Limit) -> Option<Plugin> {
    let mut plugin = plugin.clone();
    let outputs = plugin.inputs.len();
    let limits = match tensor.checked_sub(outputs) {
        None => &mut plugin.inputs.get_mut(tensor)?.limits,
        Some(output) => &mut plugin.outputs.get_mut(output)?.limits,
    };
    let (known, wanted) = match limit {
        Limit::Numel(range) => (&mut limits.numel, range),
        Limit::Dims(_) if !limits.dims.is_empty() => return None,
        Limit::Dims(range) => (&mut limits.every, range),
    };
    if *known != Interval::ANY_SIZE {
        return None;
    }
    *known = wanted;
    Some(plugin)
}
