//! Reads a file into a [`Model`]: descends into graphs, functions and nodes. Reads each byte at most twice, at any depth.

use std::fs::File;
use std::io::{Read, Seek};
use std::ops::Range;
use std::path::Path;

use prost::Message;

use crate::Error;
use crate::model::{Graph, Model, Node, NodeId, Owner, Places, Span, Value};
use crate::proto::{TensorProto, ValueInfoProto};
use crate::prune::{self, Found};
use crate::wire::{Content, Source, wrong};

/// Bounds stack use.
const MAX_DEPTH: usize = 32;

mod number {
    pub(super) const IR_VERSION: u32 = 1;
    pub(super) const GRAPH: u32 = 7;
    pub(super) const OPSET_IMPORT: u32 = 8;
    pub(super) const FUNCTIONS: u32 = 25;
    /// `SparseTensorProto.values`, which has the tensor's name, and `dims`.
    pub(super) const SPARSE_VALUES: u32 = 1;
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Node,
    Name,
    Input,
    Output,
    Value,
    Weight,
    SparseWeight,
    OpsetImport,
    Domain,
    Overload,
}

const GRAPH: &[(u32, Part)] = &[
    (1, Part::Node),
    (2, Part::Name),
    (5, Part::Weight),
    (11, Part::Input),
    (12, Part::Output),
    (13, Part::Value),
    (15, Part::SparseWeight),
];

const FUNCTION: &[(u32, Part)] = &[
    (1, Part::Name),
    (4, Part::Input),
    (5, Part::Output),
    (7, Part::Node),
    (9, Part::OpsetImport),
    (10, Part::Domain),
    (12, Part::Value),
    (13, Part::Overload),
];

impl Model {
    /// Reads a file's model without weights.
    pub fn open(path: &Path) -> Result<Model, Error> {
        Model::read(File::open(path)?)
    }

    /// Reads a model from a stream.
    pub fn read(reader: impl Read + Seek) -> Result<Model, Error> {
        let mut reading = Reading { source: Source::new(reader)?, model: Model::default() };
        let read = reading.model();
        let is_begun = reading.model.ir_version > 0;
        read.map_err(|error| match error {
            // Without a valid start, a file is not a truncated model.
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
        let mut at = 0;
        while let Some(field) = self.source.field(&mut at, end, "ModelProto")? {
            match (field.number, &field.content) {
                (number::IR_VERSION, Content::Varint(version)) => {
                    self.model.ir_version = *version as i64;
                }
                (number::OPSET_IMPORT, Content::Bytes { payload, .. }) => {
                    let import = self.decode(payload, "OperatorSetIdProto")?;
                    self.model.opsets.push(import);
                    self.model.imports_end = field.whole.end;
                }
                (number::GRAPH, Content::Bytes { .. }) if graph.is_some() => {
                    return Err(wrong(field.whole.start, "ModelProto", "duplicate graph"));
                }
                (number::GRAPH, Content::Bytes { prefix, payload }) => {
                    graph = Some((*prefix, payload.clone()));
                }
                (number::FUNCTIONS, Content::Bytes { prefix, payload }) => {
                    functions.push((*prefix, payload.clone()));
                }
                _ => {}
            }
        }
        let Some(graph) = graph else { return Err(Error::NoGraph) };
        self.graph(graph, None, Owner::Model, 0)?;
        functions.into_iter().try_for_each(|function| self.function(function))
    }

    fn span(&mut self, parent: Option<usize>, (prefix, payload): (u64, Range<u64>)) -> usize {
        self.model.spans.push(Span { parent, prefix, payload });
        self.model.spans.len() - 1
    }

    fn graph(
        &mut self,
        place: (u64, Range<u64>),
        parent: Option<usize>,
        owner: Owner,
        depth: usize,
    ) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            let what = format!("graphs are nested more than {MAX_DEPTH} deep");
            return Err(Error::Limit { at: place.1.start, what });
        }
        let span = self.span(parent, place);
        self.body(span, owner, depth)
    }

    fn function(&mut self, place: (u64, Range<u64>)) -> Result<(), Error> {
        let span = self.span(None, place);
        let owner = Owner::Function {
            domain: String::new(),
            name: String::new(),
            overload: String::new(),
            opsets: Vec::new(),
        };
        self.body(span, owner, 0)
    }

    fn body(&mut self, span: usize, owner: Owner, depth: usize) -> Result<(), Error> {
        let Range { start: mut at, end } = self.model.spans[span].payload.clone();
        let is_function = matches!(owner, Owner::Function { .. });
        let (message, parts) = if is_function { ("FunctionProto", FUNCTION) } else { ("GraphProto", GRAPH) };
        let index = self.model.graphs.len();
        self.model.graphs.push(Graph { owner, span, imports_end: end, ..Graph::default() });
        while let Some(field) = self.source.field(&mut at, end, message)? {
            let part = parts.iter().find(|(number, _)| *number == field.number);
            if let (Some((_, part)), Content::Bytes { prefix, payload }) = (part, &field.content) {
                match part {
                    Part::Node => self.node(index, (*prefix, payload.clone()), depth)?,
                    Part::SparseWeight => self.sparse(index, payload)?,
                    Part::Weight => {
                        let tensor = self.tensor(payload)?;
                        self.model.graphs[index].initializers.push(tensor);
                    }
                    Part::Input | Part::Output | Part::Value => {
                        let value = if is_function && *part != Part::Value {
                            Value { name: self.text(payload)?, ty: None }
                        } else {
                            self.value(payload)?
                        };
                        let graph = &mut self.model.graphs[index];
                        match part {
                            Part::Input => graph.inputs.push(value),
                            Part::Output => graph.outputs.push(value),
                            _ => graph.values.push(value),
                        }
                    }
                    Part::OpsetImport => {
                        let import = self.decode(payload, "OperatorSetIdProto")?;
                        let graph = &mut self.model.graphs[index];
                        graph.imports_end = field.whole.end;
                        if let Owner::Function { opsets, .. } = &mut graph.owner {
                            opsets.push(import);
                        }
                    }
                    Part::Name | Part::Domain | Part::Overload => {
                        let text = self.text(payload)?;
                        let graph = &mut self.model.graphs[index];
                        if *part == Part::Name {
                            graph.name.clone_from(&text);
                        }
                        match (part, &mut graph.owner) {
                            (Part::Domain, Owner::Function { domain, .. }) => *domain = text,
                            (Part::Overload, Owner::Function { overload, .. }) => *overload = text,
                            (_, Owner::Function { name, .. }) => *name = text,
                            _ => {}
                        }
                    }
                }
            }
        }
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
        let places = Box::new(Places { span, ..found.places });
        self.model.graphs[graph].nodes.push(Node { proto, places });
        for inner in found.graphs {
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

    fn sparse(&mut self, graph: usize, payload: &Range<u64>) -> Result<(), Error> {
        let mut at = payload.start;
        while let Some(field) = self.source.field(&mut at, payload.end, "SparseTensorProto")? {
            if let (number::SPARSE_VALUES, Content::Bytes { payload, .. }) = (field.number, &field.content) {
                let values = self.tensor(payload)?;
                let ty = tensor_type(values.data_type());
                let value = Value { name: values.name().to_owned(), ty: Some(ty) };
                self.model.graphs[graph].values.push(value);
            }
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
        String::from_utf8(bytes).map_err(|_| wrong(payload.start, "a name", "not UTF-8"))
    }
}

fn decode<M: Message + Default>(bytes: &[u8], at: u64, message: &'static str) -> Result<M, Error> {
    M::decode(bytes).map_err(|error| wrong(at, message, &error.to_string()))
}

fn external_file(tensor: &TensorProto) -> Option<String> {
    let location = tensor.external_data.iter().find(|entry| entry.key() == "location")?;
    Some(location.value().to_owned())
}

fn tensor_type(element: i32) -> crate::proto::TypeProto {
    use crate::proto::type_proto::{Tensor, Value};
    let tensor = Tensor { elem_type: Some(element), shape: None };
    crate::proto::TypeProto { denotation: None, value: Some(Value::TensorType(tensor)) }
}
