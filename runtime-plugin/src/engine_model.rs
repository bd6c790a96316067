//! What an engine keeps of a plugin's model.
//!
//! Owns leaving out what only people and builders read, and what a build has decided for good. Everything that keeps a kernel from
//! being launched wrongly stays: ranks, limits, rules of attributes, guards.

use cubinder_bundle::launch::{Facts, Rule, Steps};
use cubinder_bundle::model::tuning;
use cubinder_bundle::{
    Attribute, Input, Output, Plugin, Requirement, TunedDevice, TunedPoint, Value, Variant,
};

/// The model of a node with these attributes and variants, each with its index in the plugin, whose inputs have these ranks where they are known. Its inputs take no
/// other ranks, so a requirement that attributes and ranks decide is decided for good.
pub(crate) fn of_node(
    plugin: &Plugin,
    variants: Vec<(usize, Variant)>,
    attributes: &[Value],
    input_ranks: Option<&[u8]>,
) -> Plugin {
    let ranks: Vec<usize> = input_ranks.unwrap_or_default().iter().copied().map(usize::from).collect();
    let facts = Facts { attributes, ranks: &ranks, ..Facts::default() };
    let mut steps = Steps::default();
    let mut is_open =
        |require: &&Requirement| Rule::Require(require).check(plugin, &facts, &mut steps) != Ok(Some(()));
    let rows: Vec<usize> = variants.iter().map(|(row, _)| *row).collect();
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
        tuning: measured(plugin, &rows, input_ranks),
        variants: variants.into_iter().map(|(_, variant)| variant).collect(),
    }
}

/// What was measured of the variants with these indices, which are in order, for inputs of these ranks. What the GPUs are called is for people.
fn measured(plugin: &Plugin, rows: &[usize], input_ranks: Option<&[u8]>) -> Vec<TunedDevice> {
    let row = |old: u32| u32::try_from(rows.binary_search(&(old as usize)).ok()?).ok();
    let is_of_ranks = |point: &TunedPoint| {
        let mut pairs = input_ranks.unwrap_or_default().iter().zip(&point.shapes);
        pairs.all(|(rank, shape)| usize::from(*rank) == shape.len())
    };
    let kept = tuning::of_rows(&plugin.tuning, row, is_of_ranks);
    kept.into_iter().map(|device| TunedDevice { name: String::new(), ..device }).collect()
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
