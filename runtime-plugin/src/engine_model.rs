//! What an engine keeps of a plugin's model.
//!
//! Owns leaving out what only people and builders read, and what a build has decided for good. Everything that keeps a kernel from
//! being launched wrongly stays: ranks, limits, rules of attributes, guards.

use cubinder_bundle::launch::{Facts, Rule, Steps};
use cubinder_bundle::{Attribute, Input, Output, Plugin, Requirement, Value, Variant};

/// The model of a node with these attributes and variants, whose inputs have these ranks where they are known. Its inputs take no
/// other ranks, so a requirement that attributes and ranks decide is decided for good.
pub(crate) fn of_node(
    plugin: &Plugin,
    variants: Vec<Variant>,
    attributes: &[Value],
    input_ranks: Option<&[u8]>,
) -> Plugin {
    let ranks: Vec<usize> = input_ranks.unwrap_or_default().iter().copied().map(usize::from).collect();
    let facts = Facts { attributes, ranks: &ranks, ..Facts::default() };
    let mut steps = Steps::default();
    let mut is_open =
        |require: &&Requirement| Rule::Require(require).check(plugin, &facts, &mut steps) != Ok(Some(()));
    let rank = |index: usize| input_ranks.and_then(|ranks| ranks.get(index).copied());
    Plugin {
        name: plugin.name.clone(),
        namespace: plugin.namespace.clone(),
        version: plugin.version.clone(),
        summary: String::new(),
        attributes: plugin.attributes.iter().map(attribute).collect(),
        inputs: plugin.inputs.iter().enumerate().map(|(index, it)| input(it, rank(index))).collect(),
        outputs: plugin.outputs.iter().map(|it| Output { doc: String::new(), ..it.clone() }).collect(),
        require: plugin.require.iter().filter(&mut is_open).cloned().collect(),
        timing: None,
        variants,
    }
}

/// The node has a value, which is held against the rules when it is read.
fn attribute(attribute: &Attribute) -> Attribute {
    Attribute { default: None, doc: String::new(), ..attribute.clone() }
}

fn input(input: &Input, rank: Option<u8>) -> Input {
    let taken = |rank: &u8| (input.rank_min..=input.rank_max).contains(rank);
    let (rank_min, rank_max) = match rank.filter(taken) {
        Some(rank) => (rank, rank),
        None => (input.rank_min, input.rank_max),
    };
    Input { rank_min, rank_max, doc: String::new(), ..input.clone() }
}
