//! Which tensors there are, and where they come from: the inputs and weights of a graph, what its nodes give, and what graphs around it
//! have.

use std::collections::{HashMap, HashSet};

use crate::{Model, Node, NodeId, Owner};

use super::check::Finding;
use super::list::{node_name, short};
use super::tensors::{Dim, Tensor, Tensors};

/// Looks up what makes tensors.
pub(super) struct Makers<'a> {
    model: &'a Model,
    /// What each graph has, by the model's graphs; looked through when it is first asked for.
    graphs: Vec<Option<HashSet<&'a str>>>,
}

impl<'a> Makers<'a> {
    pub(super) fn new(model: &'a Model) -> Makers<'a> {
        Makers { model, graphs: vec![None; model.graphs.len()] }
    }

    /// What is to be said of inputs of a node of a graph that are no tensors of the model.
    pub(super) fn missing(&mut self, graph: usize, node: &Node) -> Vec<Finding> {
        let names = node.proto.input.iter().filter(|name| !name.is_empty());
        let mut told: Vec<&str> = Vec::new();
        for name in names {
            if !told.contains(&name.as_str()) && !self.has(graph, name) {
                told.push(name);
            }
        }
        let finding = |name: &str| {
            let name = short(name);
            Finding::error("input_unmade", format!("there is no tensor `{name}`"))
                .note("it is no input and no weight of the model, and no node gives it")
        };
        told.into_iter().map(finding).collect()
    }

    fn has(&mut self, graph: usize, name: &str) -> bool {
        let mut at = Some(graph);
        while let Some(graph) = at {
            let Some(found) = self.model.graphs.get(graph) else { return false };
            let Some(known) = self.graphs.get_mut(graph) else { return false };
            if known.get_or_insert_with(|| tensors(found)).contains(name) {
                return true;
            }
            at = match &found.owner {
                Owner::Node { node, .. } => Some(node.graph),
                _ => None,
            };
        }
        false
    }
}

fn tensors(graph: &crate::Graph) -> HashSet<&str> {
    let inputs = graph.inputs.iter().map(|input| input.name.as_str());
    let weights = graph.initializers.iter().map(crate::proto::TensorProto::name);
    let given = graph.nodes.iter().flat_map(|node| node.proto.output.iter().map(String::as_str));
    inputs.chain(weights).chain(given).collect()
}

/// Where tensors that are not known come from.
pub(super) struct Origins<'a> {
    model: &'a Model,
    /// The node that gives each tensor, by the model's graphs; looked through when it is first asked for.
    makers: Vec<Option<HashMap<&'a str, usize>>>,
}

impl<'a> Origins<'a> {
    pub(super) fn new(model: &'a Model) -> Origins<'a> {
        Origins { model, makers: vec![None; model.graphs.len()] }
    }

    /// The first node on the way to a tensor that gives what is not known from what is, for messages.
    pub(super) fn of(&mut self, tensors: &Tensors, graph: usize, name: &str) -> Option<String> {
        let found = self.model.graphs.get(graph)?;
        let makers = self.makers.get_mut(graph)?.get_or_insert_with(|| {
            let nodes = found.nodes.iter().enumerate();
            nodes
                .flat_map(|(index, node)| {
                    node.proto.output.iter().map(move |output| (output.as_str(), index))
                })
                .collect()
        });
        let mut node = *makers.get(name)?;
        let mut seen = HashSet::new();
        while seen.insert(node) {
            let inputs = found.nodes.get(node)?.proto.input.iter().filter(|input| !input.is_empty());
            let mut open = inputs.filter(|input| !tensors.get(graph, input).is_some_and(is_whole));
            match open.find_map(|input| makers.get(input.as_str())) {
                Some(before) => node = *before,
                None => {
                    let op = short(found.nodes.get(node)?.op_type());
                    return Some(format!(
                        "the node `{}` (`{op}`)",
                        node_name(self.model, NodeId { graph, node })
                    ));
                }
            }
        }
        None
    }
}

/// Whether all that others could need is known: the dimensions, and of a few integers, which may be a shape, what they are.
fn is_whole(tensor: &Tensor) -> bool {
    let known: Option<Vec<i64>> = tensor.dims.as_ref().and_then(|dims| dims.iter().map(Dim::known).collect());
    let may_be_shape = |dims: &[i64]| dims.len() <= 1 && tensor.is_integer();
    known.is_some_and(|dims| tensor.values.is_some() || !may_be_shape(&dims))
}
