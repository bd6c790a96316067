//! From a file to a [`Model`].
//!
//! Owns which messages are gone into: the model, its graphs and functions, nodes and the graphs in their attributes. Everything else is
//! decoded whole or skipped. Each byte is looked at once or twice, however deep graphs lie.

use std::fs::File;
use std::io::{Read, Seek};
use std::ops::Range;
use std::path::Path;

use prost::Message;

use crate::Error;
use crate::model::{Graph, Model, Node, NodeId, Owner, Places, Span, Value};
use crate::proto::{OperatorSetIdProto, TensorProto, ValueInfoProto};
use crate::prune::{self, Found};
use crate::wire::{Content, Source, wrong};

/// How deep graphs may lie in nodes of graphs. Exporters write a few; the rest would only cost stack.
const MAX_DEPTH: usize = 32;

/// Numbers of fields (`onnx.proto`).
mod number {
    pub(super) mod model {
        pub(crate) const IR_VERSION: u32 = 1;
        pub(crate) const PRODUCER_NAME: u32 = 2;
        pub(crate) const PRODUCER_VERSION: u32 = 3;
        pub(crate) const GRAPH: u32 = 7;
        pub(crate) const OPSET_IMPORT: u32 = 8;
        pub(crate) const FUNCTIONS: u32 = 25;
    }
    pub(super) mod graph {
        pub(crate) const NODE: u32 = 1;
        pub(crate) const NAME: u32 = 2;
        pub(crate) const INITIALIZER: u32 = 5;
        pub(crate) const INPUT: u32 = 11;
        pub(crate) const OUTPUT: u32 = 12;
        pub(crate) const VALUE_INFO: u32 = 13;
        pub(crate) const SPARSE_INITIALIZER: u32 = 15;
    }
    pub(super) mod function {
        pub(crate) const NAME: u32 = 1;
        pub(crate) const INPUT: u32 = 4;
        pub(crate) const OUTPUT: u32 = 5;
        pub(crate) const NODE: u32 = 7;
        pub(crate) const OPSET_IMPORT: u32 = 9;
        pub(crate) const DOMAIN: u32 = 10;
        pub(crate) const VALUE_INFO: u32 = 12;
        pub(crate) const OVERLOAD: u32 = 13;
    }
    /// `SparseTensorProto.values`, which has the tensor's name, and `dims`.
    pub(super) const SPARSE_VALUES: u32 = 1;
}

impl Model {
    /// Reads the model in a file, without its weights.
    ///
    /// # Errors
    /// Where it cannot be read, or is no ONNX model.
    pub fn open(path: &Path) -> Result<Model, Error> {
        Model::read(File::open(path)?)
    }

    /// Reads a model from its beginning.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn read(reader: impl Read + Seek) -> Result<Model, Error> {
        let mut reading = Reading { source: Source::new(reader)?, model: Model::default() };
        let read = reading.model();
        let is_begun = reading.model.ir_version > 0;
        read.map_err(|error| match error {
            // What has no beginning either is no model that lost its end.
            Error::CutOff { at, message, what } if !is_begun => Error::Format { at, message, what },
            error => error,
        })?;
        if reading.model.graphs.is_empty() {
            return Err(Error::NoGraph);
        }
        Ok(reading.model)
    }
}

struct Reading<R> {
    source: Source<R>,
    model: Model,
}

impl<R: Read + Seek> Reading<R> {
    fn model(&mut self) -> Result<(), Error> {
        let end = self.source.length();
        self.model.length = end;
        self.model.imports_end = end;
        let (mut graph, mut functions) = (None, Vec::new());
        let (mut name, mut version) = (String::new(), String::new());
        while self.source.at() < end {
            let field = self.source.field(end, "ModelProto")?;
            match (field.number, &field.content) {
                (number::model::IR_VERSION, Content::Varint(version)) => {
                    self.model.ir_version = *version as i64;
                }
                (number::model::PRODUCER_NAME, Content::Bytes { payload, .. }) => {
                    name = self.text(payload)?;
                }
                (number::model::PRODUCER_VERSION, Content::Bytes { payload, .. }) => {
                    version = self.text(payload)?;
                }
                (number::model::OPSET_IMPORT, Content::Bytes { payload, .. }) => {
                    let import = self.decode(payload, "OperatorSetIdProto")?;
                    self.model.opsets.push(import);
                    self.model.imports_end = field.whole.end;
                }
                (number::model::GRAPH, Content::Bytes { .. }) if graph.is_some() => {
                    return Err(wrong(field.whole.start, "ModelProto", "there is a second graph"));
                }
                (number::model::GRAPH, Content::Bytes { prefix, payload }) => {
                    graph = Some((*prefix, payload.clone()));
                }
                (number::model::FUNCTIONS, Content::Bytes { prefix, payload }) => {
                    functions.push((*prefix, payload.clone()));
                }
                _ => {}
            }
            self.source.seek(field.whole.end)?;
        }
        self.model.producer = if version.is_empty() { name } else { format!("{name} {version}") };
        let Some(graph) = graph else { return Err(Error::NoGraph) };
        self.graph(graph, None, Owner::Model, 0)?;
        functions.into_iter().try_for_each(|function| self.function(function))
    }

    fn span(&mut self, parent: Option<usize>, (prefix, payload): (u64, Range<u64>)) -> usize {
        self.model.spans.push(Span { parent, prefix, payload });
        self.model.spans.len() - 1
    }

    /// An empty graph in its place in the list: those in its nodes come after it.
    fn begin(&mut self, owner: Owner, span: usize) -> usize {
        let imports_end = self.model.spans[span].payload.end;
        let empty = Vec::new;
        self.model.graphs.push(Graph {
            owner,
            name: String::new(),
            nodes: Vec::new(),
            inputs: empty(),
            outputs: empty(),
            values: empty(),
            initializers: Vec::new(),
            span,
            imports_end,
        });
        self.model.graphs.len() - 1
    }

    fn graph(
        &mut self,
        place: (u64, Range<u64>),
        parent: Option<usize>,
        owner: Owner,
        depth: usize,
    ) -> Result<(), Error> {
        let payload = place.1.clone();
        if depth > MAX_DEPTH {
            let what = format!("graphs lie in nodes of graphs more than {MAX_DEPTH} deep");
            return Err(Error::Limit { at: payload.start, what });
        }
        let span = self.span(parent, place);
        let index = self.begin(owner, span);
        self.source.seek(payload.start)?;
        while self.source.at() < payload.end {
            let field = self.source.field(payload.end, "GraphProto")?;
            if let Content::Bytes { prefix, payload } = &field.content {
                match field.number {
                    number::graph::NODE => self.node(index, (*prefix, payload.clone()), depth)?,
                    number::graph::NAME => self.model.graphs[index].name = self.text(payload)?,
                    number::graph::INITIALIZER => {
                        let tensor = self.tensor(payload)?;
                        self.model.graphs[index].initializers.push(tensor);
                    }
                    number::graph::SPARSE_INITIALIZER => self.sparse(index, payload)?,
                    number::graph::INPUT => {
                        let value = self.value(payload)?;
                        self.model.graphs[index].inputs.push(value);
                    }
                    number::graph::OUTPUT => {
                        let value = self.value(payload)?;
                        self.model.graphs[index].outputs.push(value);
                    }
                    number::graph::VALUE_INFO => {
                        let value = self.value(payload)?;
                        self.model.graphs[index].values.push(value);
                    }
                    _ => {}
                }
            }
            self.source.seek(field.whole.end)?;
        }
        Ok(())
    }

    fn function(&mut self, place: (u64, Range<u64>)) -> Result<(), Error> {
        let payload = place.1.clone();
        let span = self.span(None, place);
        let index = self.begin(Owner::Model, span);
        let (mut domain, mut overload, mut opsets) = (String::new(), String::new(), Vec::new());
        self.source.seek(payload.start)?;
        while self.source.at() < payload.end {
            let field = self.source.field(payload.end, "FunctionProto")?;
            if let Content::Bytes { prefix, payload } = &field.content {
                match field.number {
                    number::function::NODE => self.node(index, (*prefix, payload.clone()), 0)?,
                    number::function::NAME => self.model.graphs[index].name = self.text(payload)?,
                    number::function::DOMAIN => domain = self.text(payload)?,
                    number::function::OVERLOAD => overload = self.text(payload)?,
                    number::function::INPUT => {
                        let value = Value { name: self.text(payload)?, ty: None };
                        self.model.graphs[index].inputs.push(value);
                    }
                    number::function::OUTPUT => {
                        let value = Value { name: self.text(payload)?, ty: None };
                        self.model.graphs[index].outputs.push(value);
                    }
                    number::function::VALUE_INFO => {
                        let value = self.value(payload)?;
                        self.model.graphs[index].values.push(value);
                    }
                    number::function::OPSET_IMPORT => {
                        opsets.push(self.decode::<OperatorSetIdProto>(payload, "OperatorSetIdProto")?);
                        self.model.graphs[index].imports_end = field.whole.end;
                    }
                    _ => {}
                }
            }
            self.source.seek(field.whole.end)?;
        }
        let name = self.model.graphs[index].name.clone();
        self.model.graphs[index].owner = Owner::Function { domain, name, overload, opsets };
        Ok(())
    }

    fn node(&mut self, graph: usize, place: (u64, Range<u64>), depth: usize) -> Result<(), Error> {
        let payload = place.1.clone();
        let mut found = Found::default();
        let bytes = prune::node(&mut self.source, &payload, &mut found)?;
        let proto = decode::<crate::proto::NodeProto>(&bytes, payload.start, "NodeProto")?;
        let span = self.span(Some(self.model.graphs[graph].span), place);
        let id = NodeId { graph, node: self.model.graphs[graph].nodes.len() };
        let names: Vec<String> =
            proto.attribute.iter().map(|attribute| attribute.name().to_owned()).collect();
        let tensors =
            proto.attribute.iter().flat_map(|attribute| attribute.t.iter().chain(&attribute.tensors));
        let files: Vec<String> = tensors.filter_map(external_file).collect();
        self.model.external_files.extend(files);
        let Found { domain, op_type, attributes, graphs } = found;
        let places = Box::new(Places { span, domain, op_type, attributes });
        self.model.graphs[graph].nodes.push(Node { proto, places });
        for inner in graphs {
            let around = self.span(Some(span), inner.around);
            let attribute = names.get(inner.attribute).cloned().unwrap_or_default();
            self.graph(inner.graph, Some(around), Owner::Node { node: id, attribute }, depth + 1)?;
        }
        Ok(())
    }

    fn tensor(&mut self, payload: &Range<u64>) -> Result<TensorProto, Error> {
        let bytes = prune::tensor(&mut self.source, payload)?;
        let tensor = decode::<TensorProto>(&bytes, payload.start, "TensorProto")?;
        self.model.external_files.extend(external_file(&tensor));
        Ok(tensor)
    }

    /// Of a sparse tensor its name and type; its dimensions are those of the whole, which nobody needs.
    fn sparse(&mut self, graph: usize, payload: &Range<u64>) -> Result<(), Error> {
        self.source.seek(payload.start)?;
        while self.source.at() < payload.end {
            let field = self.source.field(payload.end, "SparseTensorProto")?;
            if let (number::SPARSE_VALUES, Content::Bytes { payload, .. }) = (field.number, &field.content) {
                let values = self.tensor(payload)?;
                let ty = tensor_type(values.data_type());
                let value = Value { name: values.name().to_owned(), ty: Some(ty) };
                self.model.graphs[graph].values.push(value);
            }
            self.source.seek(field.whole.end)?;
        }
        Ok(())
    }

    fn value(&mut self, payload: &Range<u64>) -> Result<Value, Error> {
        let found: ValueInfoProto = self.decode(payload, "ValueInfoProto")?;
        Ok(Value { name: found.name().to_owned(), ty: found.r#type })
    }

    fn bytes(&mut self, payload: &Range<u64>, what: &str) -> Result<Vec<u8>, Error> {
        let count = usize::try_from(payload.end - payload.start).unwrap_or(usize::MAX);
        prune::limit(payload.start, count, what)?;
        let mut bytes = Vec::new();
        self.source.copy(payload, &mut bytes)?;
        Ok(bytes)
    }

    fn decode<M: Message + Default>(&mut self, payload: &Range<u64>, name: &'static str) -> Result<M, Error> {
        let bytes = self.bytes(payload, name)?;
        decode(&bytes, payload.start, name)
    }

    fn text(&mut self, payload: &Range<u64>) -> Result<String, Error> {
        let bytes = self.bytes(payload, "a name")?;
        String::from_utf8(bytes).map_err(|_| wrong(payload.start, "a name", "it is no UTF-8"))
    }
}

fn decode<M: Message + Default>(bytes: &[u8], at: u64, message: &'static str) -> Result<M, Error> {
    M::decode(bytes).map_err(|error| wrong(at, message, &error.to_string()))
}

/// The file in which a tensor's data lie, where they lie in one.
fn external_file(tensor: &TensorProto) -> Option<String> {
    let location = tensor.external_data.iter().find(|entry| entry.key() == "location")?;
    Some(location.value().to_owned())
}

/// A tensor of this element type and any shape.
fn tensor_type(element: i32) -> crate::proto::TypeProto {
    use crate::proto::type_proto::{Tensor, Value};
    let tensor = Tensor { elem_type: Some(element), shape: None };
    crate::proto::TypeProto { denotation: None, value: Some(Value::TensorType(tensor)) }
}
