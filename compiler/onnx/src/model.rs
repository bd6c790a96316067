//! What is read of a model: everything but weights.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::proto::{NodeProto, OperatorSetIdProto, TensorProto, TypeProto};

/// A model without its weights.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// The version of the format.
    pub ir_version: i64,
    /// The versions of the operator sets that it uses.
    pub opsets: Vec<OperatorSetIdProto>,
    /// Its graphs: the network first, then those inside nodes, and the functions of the model.
    pub graphs: Vec<Graph>,
    /// The files that hold weights, as the model names them: relative to its own folder.
    pub external_files: BTreeSet<String>,
    pub(crate) spans: Vec<Span>,
    /// Where another operator set is added.
    pub(crate) imports_end: u64,
    pub(crate) length: u64,
}

/// A message inside a file whose length stands before it.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// The message that it lies in; none for one in the model itself.
    pub(crate) parent: Option<usize>,
    /// Where its length stands.
    pub(crate) prefix: u64,
    /// Where its bytes are.
    pub(crate) payload: Range<u64>,
}

/// Where a graph belongs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Owner {
    /// It is the network.
    #[default]
    Model,
    /// It is an attribute of a node: a branch of `If`, the body of `Loop` or `Scan`.
    Node {
        /// The node.
        node: NodeId,
        /// The attribute's name.
        attribute: String,
    },
    /// It is a function of the model, which takes the place of nodes of its name.
    Function {
        /// Its domain.
        domain: String,
        /// Its name, which is the nodes' op type.
        name: String,
        /// What tells functions of one name apart; usually empty.
        overload: String,
        /// The versions of the operator sets that it uses.
        opsets: Vec<OperatorSetIdProto>,
    },
}

impl Owner {
    /// The graph that one of a node lies in.
    pub(crate) fn graph(&self) -> Option<usize> {
        if let Owner::Node { node, .. } = self { Some(node.graph) } else { None }
    }
}

/// A list of nodes with the tensors that are described.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Where it belongs.
    pub owner: Owner,
    /// Its name.
    pub name: String,
    /// Its nodes, in the file's order.
    pub nodes: Vec<Node>,
    /// Its inputs. Weights may be among them.
    pub inputs: Vec<Value>,
    /// Its outputs.
    pub outputs: Vec<Value>,
    /// Other tensors whose type or shape is described.
    pub values: Vec<Value>,
    /// Its weights: name, type and dimensions. Of small ones (at most 4 KiB) the data too.
    pub initializers: Vec<TensorProto>,
    pub(crate) span: usize,
    /// Where another operator set is added, in a function.
    pub(crate) imports_end: u64,
}

/// A tensor that is described.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Its name.
    pub name: String,
    /// Its type and shape, as far as the model says.
    pub ty: Option<TypeProto>,
}

/// A node.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it says, without graphs and sparse tensors in attributes, and without the data of large tensors.
    pub proto: NodeProto,
    pub(crate) places: Box<Places>,
}

/// Where the parts of a node are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) span: usize,
    pub(crate) domain: Option<Range<u64>>,
    pub(crate) op_type: Option<Range<u64>>,
    /// One for each attribute, in their order.
    pub(crate) attributes: Vec<Range<u64>>,
}

/// A node by its place in [`Model::graphs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// The index of the graph.
    pub graph: usize,
    /// The index in the graph.
    pub node: usize,
}

impl Model {
    /// A node by its place.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.graphs.get(id.graph)?.nodes.get(id.node)
    }

    /// Every node of every graph.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.graphs.iter().enumerate().flat_map(|(graph, found)| {
            found.nodes.iter().enumerate().map(move |(index, node)| (NodeId { graph, node: index }, node))
        })
    }

    /// The versions of the operator sets that a graph uses: the function's that it belongs to, else the model's.
    #[must_use]
    pub fn opsets_of(&self, graph: usize) -> &[OperatorSetIdProto] {
        match self.root_of(graph).map(|root| &self.graphs[root].owner) {
            Some(Owner::Function { opsets, .. }) => opsets,
            _ => &self.opsets,
        }
    }

    /// The network or the function that a graph lies in; itself where it is one.
    #[must_use]
    pub fn root_of(&self, graph: usize) -> Option<usize> {
        // A graph comes after the one that it lies in, so this ends.
        self.enclosing(graph).last().filter(|root| *root < self.graphs.len())
    }

    /// A graph, then those that it lies in, from the innermost on.
    pub(crate) fn enclosing(&self, graph: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(graph), |graph| self.graphs.get(*graph)?.owner.graph())
    }
}

impl Node {
    /// The op type; empty where there is none.
    #[must_use]
    pub fn op_type(&self) -> &str {
        self.proto.op_type()
    }

    /// The domain: empty for that of the ONNX standard, which has two names.
    #[must_use]
    pub fn domain(&self) -> &str {
        match self.proto.domain() {
            "ai.onnx" => "",
            domain => domain,
        }
    }

    /// Returns an attribute by its name: the first of several, as TensorRT-RTX 1.7.1 reads them.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&crate::proto::AttributeProto> {
        self.proto.attribute.iter().find(|attribute| attribute.name() == name)
    }
}
