//! Finds tensors' producers: inputs, weights and nodes, also of enclosing graphs.

use std::collections::{HashMap, HashSet};

use crate::{Model, Node, NodeId};

use super::errors::MissingTensor;
use super::finding::Finding;
use super::names::{node_name, short};
use super::tensors::{Tensor, Tensors};

pub(super) struct Producers<'a> {
    model: &'a Model,
    /// Tensors with their nodes (`None`: inputs, weights) per graph. Filled on demand.
    graphs: Vec<Option<HashMap<&'a str, Option<usize>>>>,
}

impl<'a> Producers<'a> {
    pub(super) fn new(model: &'a Model) -> Producers<'a> {
        Producers { model, graphs: vec![None; model.graphs.len()] }
    }

    fn graph(&mut self, graph: usize) -> Option<&HashMap<&'a str, Option<usize>>> {
        let found = self.model.graphs.get(graph)?;
        let all = || {
            let inputs = found.inputs.iter().map(|input| input.name.as_str());
            let weights = found.initializers.iter().map(crate::proto::TensorProto::name);
            let given = found.nodes.iter().enumerate().flat_map(|(index, node)| {
                node.proto.output.iter().map(move |output| (output.as_str(), Some(index)))
            });
            inputs.chain(weights).map(|name| (name, None)).chain(given).collect()
        };
        Some(self.graphs.get_mut(graph)?.get_or_insert_with(all))
    }

    pub(super) fn missing(&mut self, graph: usize, node: &Node) -> Vec<Finding> {
        let model = self.model;
        let mut missing: Vec<&str> = Vec::new();
        for name in node.proto.input.iter().map(String::as_str).filter(|name| !name.is_empty()) {
            let mut has = |graph| self.graph(graph).is_some_and(|known| known.contains_key(name));
            if !missing.contains(&name) && !model.enclosing(graph).any(&mut has) {
                missing.push(name);
            }
        }
        missing.into_iter().map(|name| MissingTensor { name: short(name) }.into()).collect()
    }

    /// Describes the first upstream node with known inputs and unknown outputs.
    pub(super) fn origin(&mut self, tensors: &Tensors, graph: usize, name: &str) -> Option<String> {
        let model = self.model;
        let producers = self.graph(graph)?;
        let mut node = (*producers.get(name)?)?;
        let mut seen = HashSet::new();
        while seen.insert(node) {
            let found = model.node(NodeId { graph, node })?;
            let inputs = found.proto.input.iter().filter(|input| !input.is_empty());
            let mut open = inputs.filter(|input| !tensors.get(graph, input).is_some_and(is_whole));
            match open.find_map(|input| *producers.get(input.as_str())?) {
                Some(before) => node = before,
                None => {
                    let (name, op) = (node_name(model, NodeId { graph, node }), short(found.op_type()));
                    return Some(format!("the node `{name}` (`{op}`)"));
                }
            }
        }
        None
    }
}

fn is_whole(tensor: &Tensor) -> bool {
    let may_be_shape = tensor.rank().is_some_and(|rank| rank <= 1) && tensor.is_integer();
    tensor.has_known_shape() && (tensor.values.is_some() || !may_be_shape)
}
