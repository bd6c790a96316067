//! What expressions can see of a node, and the rules that a node must keep.

use cubinder_bundle::Value;
use cubinder_bundle::expr::{self, Environment, EvalError};
use trt_abi::Error;

use super::NodeData;

/// A node's attributes with as much of its tensors' shapes as is known.
pub(super) struct NodeEnvironment<'a> {
    pub(super) attributes: &'a [Value],
    /// The ranks of the inputs, then of the outputs as far as they are known.
    pub(super) ranks: &'a [usize],
    /// The shapes of the inputs, then of the outputs; empty while they are not known.
    pub(super) shapes: &'a [&'a [i64]],
}

impl Environment for NodeEnvironment<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(index as usize)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.shapes.get(tensor as usize).copied()
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.ranks.get(tensor as usize).copied().or_else(|| self.shape(tensor).map(<[i64]>::len))
    }
}

/// Holds the node against the plugin's requirements, as far as `known` lets them be decided.
///
/// # Errors
/// The first requirement that does not hold, with the author's message and the node's attributes.
pub(super) fn check_requirements(node: &NodeData, known: Option<&NodeEnvironment<'_>>) -> Result<(), Error> {
    let attributes_only = NodeEnvironment { attributes: &node.attributes, ranks: &[], shapes: &[] };
    let environment = known.unwrap_or(&attributes_only);
    for require in &node.definition.plugin().require {
        let why = match expr::evaluate(&require.expr, environment) {
            Ok(Value::Bool(true)) => continue,
            Ok(_) => String::new(),
            Err(EvalError::UnknownAttribute(_) | EvalError::UnknownTensor(_)) => continue,
            Err(error) => format!(" ({error})"),
        };
        return Err(Error::invalid(format!(
            "{}: {}: `{}` does not hold{why}{}",
            node.title,
            require.message,
            require.text,
            describe(node, environment)
        )));
    }
    Ok(())
}

/// The error for a rank that no tensor of TensorRT has.
pub(super) fn impossible_rank(node: &NodeData, rank: i32) -> Error {
    Error::invalid(format!("{}: a tensor of rank {rank}, expected 0 to 8", node.title))
}

/// Holds the inputs' ranks against those that the plugin takes; what `ranks` gives beyond the inputs is left alone.
pub(super) fn check_ranks(node: &NodeData, ranks: impl Iterator<Item = usize>) -> Result<(), Error> {
    for (input, rank) in node.definition.plugin().inputs.iter().zip(ranks) {
        let (min, max) = (usize::from(input.rank_min), usize::from(input.rank_max));
        if !(min..=max).contains(&rank) {
            let expected = if min == max { format!("{min}") } else { format!("{min} to {max}") };
            return Err(Error::invalid(format!(
                "{}: input `{}` has rank {rank}, expected {expected}",
                node.title, input.name
            )));
        }
    }
    Ok(())
}

/// The attributes and shapes that an error is about, for its end.
pub(super) fn describe(node: &NodeData, environment: &NodeEnvironment<'_>) -> String {
    let plugin = node.definition.plugin();
    let attributes = plugin.attributes.iter().zip(environment.attributes);
    let mut facts: Vec<String> =
        attributes.map(|(attribute, value)| format!("{} = {value}", attribute.name)).collect();
    for (index, shape) in environment.shapes.iter().enumerate() {
        facts.push(format!("{} is {}", plugin.tensor_name(index).unwrap_or("?"), shape_text(shape)));
    }
    if environment.shapes.is_empty() {
        for (index, rank) in environment.ranks.iter().enumerate() {
            facts.push(format!("{} has rank {rank}", plugin.tensor_name(index).unwrap_or("?")));
        }
    }
    if facts.is_empty() { String::new() } else { format!("; {}", facts.join(", ")) }
}

/// A shape as people write it: `10x3x32x32`, `scalar` for rank 0.
pub(super) fn shape_text(shape: &[i64]) -> String {
    if shape.is_empty() {
        return "a scalar".to_owned();
    }
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}
