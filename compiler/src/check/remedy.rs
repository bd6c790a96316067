//! How to mend what a case refutes. A limit is proposed only where the proof succeeds with it.

use cubinder_bundle::proof::{Domain, Verdict};
use cubinder_bundle::{Interval, Plugin};

use super::claim::{Claim, What, verdict};
use super::formula::reads;
use super::site::Site;
use super::volume::MOST_ELEMENTS;
use super::witness::depends_on;
use crate::diagnostic::Code;
use crate::rules;

/// Each limit that is tried is a proof: enough for two or three tensors.
const MOST_TRIED: usize = 8;

/// What would mend a claim that some case refutes.
pub(super) fn help(site: &Site<'_>, claim: &Claim) -> String {
    let wider = in_the_kernel(claim.rule);
    if let Some(limit) = proposal(site, claim) {
        return format!("if such shapes are not meant, say so: {limit} would prove it{wider}");
    }
    let (attributes, inputs) = depends_on(site.plugin, &[&claim.expr]);
    let tensors = inputs.iter().filter_map(|&tensor| site.plugin.inputs.get(tensor));
    let attributes = attributes.iter().filter_map(|&index| site.plugin.attributes.get(index));
    let mut names: Vec<String> = tensors.map(|input| format!("`limits` of `{}`", input.name)).collect();
    names.extend(attributes.map(|attribute| format!("`range` or `one_of` of `{}`", attribute.name)));
    names.truncate(3);
    match names.as_slice() {
        [] => format!("change the expression{wider}"),
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
fn proposal(site: &Site<'_>, claim: &Claim) -> Option<String> {
    let (_, inputs) = depends_on(site.plugin, &[&claim.expr]);
    let first = site.plugin.inputs.len();
    let read = reads(&claim.expr).shapes.into_iter().map(|tensor| tensor as usize);
    // Limits of inputs are the clearer ones: an output's follow.
    let tensors: Vec<usize> = inputs.into_iter().chain(read.filter(|&tensor| tensor >= first)).collect();
    let mut limits = vec![
        Limit::Numel(Interval { min: 0, max: MOST_ELEMENTS }),
        Limit::Dims(Interval { min: 1, max: i64::MAX }),
    ];
    if let What::Within(allowed) = claim.what {
        limits.push(Limit::Dims(Interval { min: 0, max: allowed.max }));
        limits.push(Limit::Dims(Interval { min: 1, max: allowed.max }));
    }
    let candidates = limits.into_iter().flat_map(|limit| tensors.iter().map(move |&tensor| (tensor, limit)));
    candidates.take(MOST_TRIED).find_map(|(tensor, limit)| {
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
            Interval { min: 0, max } if *max != i64::MAX => write!(f, "{key} = \"..={max}\""),
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
