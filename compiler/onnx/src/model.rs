use std::collections::BTreeSet;
use std::ops::Range;

use crate::proto::{NodeProto, OperatorSetIdProto, TensorProto, TypeProto};

/// Model without its weights.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Format version.
    pub ir_version: i64,
    /// Operator sets that it imports.
    pub opsets: Vec<OperatorSetIdProto>,
    /// Network, graphs of node attributes, and functions.
    pub graphs: Vec<Graph>,
    /// External weight files, relative to the model's folder.
    pub external_files: BTreeSet<String>,
    pub(crate) spans: Vec<Span>,
    pub(crate) imports_end: u64,
    pub(crate) length: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// Enclosing message's index; `None` directly in the model.
    pub(crate) parent: Option<usize>,
    pub(crate) prefix: u64,
    pub(crate) payload: Range<u64>,
}

/// Owner of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Owner {
    /// Network.
    #[default]
    Model,
    /// Node attribute: a branch of `If`, the body of `Loop` or `Scan`.
    Node {
        /// Node.
        node: NodeId,
        /// Attribute name.
        attribute: String,
    },
    /// Function, which replaces nodes of its name.
    Function {
        /// Domain.
        domain: String,
        /// Its name, the op type of its calls.
        name: String,
        /// Distinguishes functions of one name; usually empty.
        overload: String,
        /// Operator sets that it imports.
        opsets: Vec<OperatorSetIdProto>,
    },
}

impl Owner {
    pub(crate) fn graph(&self) -> Option<usize> {
        if let Owner::Node { node, .. } = self { Some(node.graph) } else { None }
    }
}

/// Nodes and their described tensors.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Graph owner.
    pub owner: Owner,
    /// Name.
    pub name: String,
    /// Nodes, in file order.
    pub nodes: Vec<Node>,
    /// Inputs, which may include weights.
    pub inputs: Vec<Value>,
    /// Outputs.
    pub outputs: Vec<Value>,
    /// Other tensors with a type or shape.
    pub values: Vec<Value>,
    /// Weights: name, type, dimensions, and data up to 4 KiB.
    pub initializers: Vec<TensorProto>,
    pub(crate) span: usize,
    pub(crate) imports_end: u64,
}

/// Tensor with its description.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Name.
    pub name: String,
    /// Type and shape, when known.
    pub ty: Option<TypeProto>,
}

/// Node.
#[derive(Debug, Clone)]
pub struct Node {
    /// Message, without graphs, sparse tensors and large data.
    pub proto: NodeProto,
    pub(crate) places: Box<Places>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) span: usize,
    pub(crate) domain: Option<Range<u64>>,
    pub(crate) op_type: Option<Range<u64>>,
    /// Byte ranges, in order.
    pub(crate) attributes: Vec<Range<u64>>,
}

/// Identifies a node in [`Model::graphs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// Index of the graph.
    pub graph: usize,
    /// Index of the node in the graph.
    pub node: usize,
}

impl Model {
    /// Returns a node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.graphs.get(id.graph)?.nodes.get(id.node)
    }

    /// Returns every node of every graph.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.graphs.iter().enumerate().flat_map(|(graph, found)| {
            found.nodes.iter().enumerate().map(move |(index, node)| (NodeId { graph, node: index }, node))
        })
    }

    /// Returns the operator sets of a graph's function, else the model's.
    #[must_use]
    pub fn opsets_of(&self, graph: usize) -> &[OperatorSetIdProto] {
        match self.root_of(graph).map(|root| &self.graphs[root].owner) {
            Some(Owner::Function { opsets, .. }) => opsets,
            _ => &self.opsets,
        }
    }

    /// Returns the network or function that a graph is or belongs to.
    #[must_use]
    pub fn root_of(&self, graph: usize) -> Option<usize> {
        // Terminates: indices exceed enclosing graphs'.
        self.enclosing(graph).last().filter(|root| *root < self.graphs.len())
    }

    /// Includes the graph; innermost first.
    pub(crate) fn enclosing(&self, graph: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(graph), |graph| self.graphs.get(*graph)?.owner.graph())
    }
}

impl Node {
    /// Returns the op type, or an empty string.
    #[must_use]
    pub fn op_type(&self) -> &str {
        self.proto.op_type()
    }

    /// Returns the domain; empty for ONNX's default domain, which has two names.
    #[must_use]
    pub fn domain(&self) -> &str {
        match self.proto.domain() {
            "ai.onnx" => "",
            domain => domain,
        }
    }

    /// Returns an attribute by name: the first of several, as TensorRT-RTX 1.7.1 does.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&crate::proto::AttributeProto> {
        self.proto.attribute.iter().find(|attribute| attribute.name() == name)
    }
}
