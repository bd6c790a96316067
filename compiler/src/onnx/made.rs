//! Which tensors there are: the inputs and weights of a graph, what its nodes give, and what graphs around it have.

use std::collections::HashSet;

use cubinder_onnx::{Model, Node, Owner};

use super::check::Finding;

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
            let name = super::list::short(name);
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

fn tensors(graph: &cubinder_onnx::Graph) -> HashSet<&str> {
    let inputs = graph.inputs.iter().map(|input| input.name.as_str());
    let weights = graph.initializers.iter().map(cubinder_onnx::proto::TensorProto::name);
    let given = graph.nodes.iter().flat_map(|node| node.proto.output.iter().map(String::as_str));
    inputs.chain(weights).chain(given).collect()
}
