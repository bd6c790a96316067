//! Known types, shapes and values: the model's descriptions, merged with inferred facts.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::proto::tensor_proto::DataType as Element;
use crate::proto::tensor_shape_proto::dimension;
use crate::proto::type_proto::Value as Kind;
use crate::proto::{TensorProto, TypeProto};
use crate::{Graph, Model};
use cubinder_expr::DataType;
use serde::Serialize;

use super::plugin_fields::{element_name, elements};

/// Known values per tensor. TensorRT allows 8 dimensions.
pub(super) const MOST_VALUES: usize = 64;

/// In bytes: names are copied between tensors.
pub(super) const MOST_NAME_BYTES: usize = 64;

/// One extent: in JSON a number, a name, or null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Dim {
    /// Number.
    Known(i64),
    /// Named extent: `batch`.
    Named(String),
    /// No value is known.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tensor {
    pub(super) element: Option<Element>,
    /// Shape; `None` if the rank is unknown.
    pub(super) dims: Option<Vec<Dim>>,
    /// Values of a small integer tensor.
    pub(super) values: Option<Vec<Dim>>,
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Known(extent) => write!(f, "{extent}"),
            Dim::Named(name) => write!(f, "{name}"),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

impl Dim {
    pub(super) fn extent(&self) -> Option<i64> {
        if let Dim::Known(extent) = self { Some(*extent) } else { None }
    }
}

impl Tensor {
    pub(super) fn new(element: Option<Element>, dims: Option<Vec<Dim>>) -> Tensor {
        Tensor { element, dims, values: None }
    }

    pub(super) fn rank(&self) -> Option<usize> {
        Some(self.dims.as_ref()?.len())
    }

    pub(super) fn has_known_shape(&self) -> bool {
        self.dims.as_ref().is_some_and(|dims| dims.iter().all(|dim| dim.extent().is_some()))
    }

    /// TensorRT passes -1 for unknown extents.
    pub(super) fn announced(&self) -> Option<Vec<i64>> {
        Some(self.dims.as_ref()?.iter().map(|dim| dim.extent().unwrap_or(-1)).collect())
    }

    pub(super) fn known_values(&self) -> Option<Vec<i64>> {
        self.values.as_ref()?.iter().map(Dim::extent).collect()
    }

    /// TensorRT converts doubles to floats (observed with TensorRT-RTX 1.7.1).
    pub(super) fn data_type(&self) -> Option<DataType> {
        data_type(self.element?)
    }

    /// Prefers the manifest's name to ONNX's.
    pub(super) fn type_text(&self) -> Option<String> {
        let element = self.element?;
        Some(match data_type(element) {
            Some(ty) if element != Element::Double => ty.name().to_owned(),
            _ => element_name(element),
        })
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(self.element, Some(Element::Int32 | Element::Int64))
    }

    pub(super) fn shape_text(&self) -> Option<String> {
        let dims = self.dims.as_ref()?;
        if dims.is_empty() {
            return Some("scalar".to_owned());
        }
        Some(dims.iter().map(Dim::to_string).collect::<Vec<_>>().join("x"))
    }

    fn learn(&mut self, other: Tensor) {
        self.element = self.element.or(other.element);
        self.values = self.values.take().or(other.values);
        match (&mut self.dims, other.dims) {
            (None, dims) => self.dims = dims,
            (Some(known), Some(dims)) if known.len() == dims.len() => {
                for (known, dim) in known.iter_mut().zip(dims) {
                    // Numbers replace names; the model's names replace inferred ones.
                    let is_number = matches!(dim, Dim::Known(_)) && !matches!(known, Dim::Known(_));
                    if is_number || *known == Dim::Unknown {
                        *known = dim;
                    }
                }
            }
            _ => {}
        }
    }

    /// Inferred facts take precedence: TensorRT ignores stated ones.
    fn over(self, stated: Tensor) -> Tensor {
        let is_same = |found: &Element| stated.element.is_some_and(|stated| !is_other_type(stated, *found));
        let element = if self.element.as_ref().is_some_and(is_same) { stated.element } else { self.element };
        let dims = match (self.dims, stated.dims) {
            (Some(found), Some(stated)) if found.len() == stated.len() => {
                let one = |(found, stated): (Dim, Dim)| match (&found, &stated) {
                    // Users can bind only the model's names.
                    (Dim::Unknown, _) | (Dim::Named(_), Dim::Named(_)) => stated,
                    _ => found,
                };
                Some(found.into_iter().zip(stated).map(one).collect())
            }
            (found, stated) => found.or(stated),
        };
        Tensor { element: element.or(stated.element), dims, values: self.values.or(stated.values) }
    }

    pub(super) fn is_other_type(&self, other: &Tensor) -> bool {
        matches!((self.element, other.element), (Some(one), Some(other)) if is_other_type(one, other))
    }

    pub(super) fn is_other_shape(&self, other: &Tensor) -> bool {
        let (Some(one), Some(other)) = (&self.dims, &other.dims) else { return false };
        let is_other = |(one, other): (&Dim, &Dim)| matches!((one, other), (Dim::Known(one), Dim::Known(other)) if one != other);
        one.len() != other.len() || one.iter().zip(other).any(is_other)
    }
}

fn is_other_type(one: Element, other: Element) -> bool {
    let (as_one, as_other) = (data_type(one), data_type(other));
    one != other && (as_one.is_none() || as_one != as_other)
}

/// TensorRT's types with ONNX's; plugins return the first of several.
const TYPES: [(DataType, Element); 11] = [
    (DataType::F32, Element::Float),
    (DataType::F32, Element::Double),
    (DataType::F16, Element::Float16),
    (DataType::Bf16, Element::Bfloat16),
    (DataType::F8, Element::Float8e4m3fn),
    (DataType::I4, Element::Int4),
    (DataType::I8, Element::Int8),
    (DataType::I32, Element::Int32),
    (DataType::I64, Element::Int64),
    (DataType::U8, Element::Uint8),
    (DataType::Bool, Element::Bool),
];

/// `None` if plugins cannot receive it.
pub(super) fn data_type(element: Element) -> Option<DataType> {
    TYPES.into_iter().find(|(_, onnx)| *onnx == element).map(|(ty, _)| ty)
}

pub(super) fn element(ty: DataType) -> Option<Element> {
    TYPES.into_iter().find(|(known, _)| *known == ty).map(|(_, onnx)| onnx)
}

#[derive(Debug, Default)]
pub(super) struct Tensors {
    graphs: Vec<HashMap<String, Tensor>>,
    parents: Vec<Option<usize>>,
    /// Descriptions that differ from inferred ones.
    stale: HashMap<(usize, String), Tensor>,
    given: HashSet<(usize, String)>,
    /// Wrong user-supplied facts: name, supplied, inferred.
    pub(super) denied: Vec<(String, Tensor, Tensor)>,
}

impl Tensors {
    pub(super) fn new(model: &Model) -> Tensors {
        let mut tensors = Tensors::default();
        for graph in &model.graphs {
            tensors.graphs.push(described(graph));
            tensors.parents.push(graph.owner.graph());
        }
        tensors
    }

    pub(super) fn get(&self, graph: usize, name: &str) -> Option<&Tensor> {
        self.graphs.get(self.home(graph, name)?)?.get(name)
    }

    pub(super) fn stale(&self, graph: usize, name: &str) -> Option<&Tensor> {
        if self.stale.is_empty() {
            return None;
        }
        self.stale.get(&(self.home(graph, name)?, name.to_owned()))
    }

    fn home(&self, graph: usize, name: &str) -> Option<usize> {
        let mut around = std::iter::successors(Some(graph), |graph| *self.parents.get(*graph)?);
        around.find(|graph| self.graphs.get(*graph).is_some_and(|known| known.contains_key(name)))
    }

    /// Prefers the network.
    pub(super) fn find(&self, model: &Model, name: &str) -> Option<usize> {
        (0..self.graphs.len()).find(|graph| {
            let is_known = self.graphs.get(*graph).is_some_and(|known| known.contains_key(name));
            let nodes = model.graphs.get(*graph).map(|graph| graph.nodes.as_slice()).unwrap_or_default();
            is_known || nodes.iter().any(|node| node.proto.output.iter().any(|known| known == name))
        })
    }

    pub(super) fn dim_names(&self) -> BTreeSet<String> {
        let dims =
            self.graphs.iter().flat_map(HashMap::values).filter_map(|tensor| tensor.dims.as_ref()).flatten();
        let name = |dim: &Dim| if let Dim::Named(name) = dim { Some(name.clone()) } else { None };
        dims.filter_map(name).collect()
    }

    pub(super) fn give(&mut self, graph: usize, name: &str, tensor: Tensor) {
        if let Some(known) = self.graphs.get_mut(graph) {
            known.insert(name.to_owned(), tensor);
            self.given.insert((graph, name.to_owned()));
        }
    }

    pub(super) fn rename(&mut self, change: &dyn Fn(&str) -> Option<Dim>) {
        // Names repeat, and parsing is slow.
        let mut changed: HashMap<String, Option<Dim>> = HashMap::new();
        for tensor in self.graphs.iter_mut().flat_map(HashMap::values_mut) {
            for dim in tensor.dims.iter_mut().flatten() {
                if let Dim::Named(name) = dim {
                    let new = changed.entry(name.clone()).or_insert_with(|| change(name));
                    if let Some(new) = new.clone() {
                        *dim = new;
                    }
                }
            }
        }
    }

    /// Overrides the model's description; checks user-supplied facts.
    pub(super) fn found(&mut self, graph: usize, name: &str, mut tensor: Tensor) {
        tensor.dims = tensor.dims.filter(|dims| dims.len() <= MOST_VALUES);
        tensor.values = tensor.values.filter(|values| values.len() <= MOST_VALUES);
        let Some(known) = self.graphs.get_mut(graph).filter(|_| !name.is_empty()) else { return };
        let Some(stated) = known.get_mut(name) else {
            known.insert(name.to_owned(), tensor);
            return;
        };
        let place = (graph, name.to_owned());
        let (is_shape, is_type) = (stated.is_other_shape(&tensor), stated.is_other_type(&tensor));
        if self.given.contains(&place) {
            if is_shape {
                self.denied.push((place.1, stated.clone(), tensor));
            } else {
                stated.learn(tensor);
            }
            return;
        }
        let mut old = std::mem::take(stated);
        if is_shape || is_type {
            self.stale.insert(place, old.clone());
            // Discards partly wrong shapes.
            old.dims = old.dims.filter(|_| !is_shape);
        }
        *stated = tensor.over(old);
    }
}

fn described(graph: &Graph) -> HashMap<String, Tensor> {
    let mut known: HashMap<String, Tensor> = HashMap::new();
    for initializer in &graph.initializers {
        known.insert(initializer.name().to_owned(), constant(initializer));
    }
    for value in graph.inputs.iter().chain(&graph.outputs).chain(&graph.values) {
        let stated = value.ty.as_ref().map(of_type).unwrap_or_default();
        match known.get_mut(&value.name) {
            Some(known) => known.learn(stated),
            None => {
                known.insert(value.name.clone(), stated);
            }
        }
    }
    known
}

/// Empty for non-tensors.
pub(super) fn of_type(ty: &TypeProto) -> Tensor {
    let Some(Kind::TensorType(tensor)) = &ty.value else { return Tensor::default() };
    let dim = |dim: &crate::proto::tensor_shape_proto::Dimension| match &dim.value {
        Some(dimension::Value::DimValue(extent)) if *extent >= 0 => Dim::Known(*extent),
        Some(dimension::Value::DimParam(name)) if !name.is_empty() && name.len() <= MOST_NAME_BYTES => {
            Dim::Named(name.clone())
        }
        _ => Dim::Unknown,
    };
    let shape = tensor.shape.as_ref().filter(|shape| shape.dim.len() <= MOST_VALUES);
    let dims = shape.map(|shape| shape.dim.iter().map(dim).collect());
    Tensor::new(known_element(tensor.elem_type()), dims)
}

pub(super) fn known_element(number: i32) -> Option<Element> {
    Element::try_from(number).ok().filter(|element| *element != Element::Undefined)
}

pub(super) fn constant(tensor: &TensorProto) -> Tensor {
    let dims = tensor.dims.iter().map(|extent| if *extent >= 0 { Dim::Known(*extent) } else { Dim::Unknown });
    let dims = (tensor.dims.len() <= MOST_VALUES).then(|| dims.collect());
    let element = known_element(tensor.data_type());
    let values = integers(tensor).filter(|values| values.len() <= MOST_VALUES);
    let values = values.map(|values| values.into_iter().map(Dim::Known).collect());
    Tensor { element, dims, values }
}

fn integers(tensor: &TensorProto) -> Option<Vec<i64>> {
    let raw = tensor.raw_data();
    let values: Vec<i64> = match known_element(tensor.data_type())? {
        Element::Int64 if !raw.is_empty() => {
            raw.as_chunks::<8>().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect()
        }
        Element::Int32 if !raw.is_empty() => {
            raw.as_chunks::<4>().0.iter().map(|chunk| i32::from_le_bytes(*chunk).into()).collect()
        }
        Element::Int64 => tensor.int64_data.clone(),
        Element::Int32 => tensor.int32_data.iter().map(|value| (*value).into()).collect(),
        _ => return None,
    };
    (Some(values.len()) == elements(tensor)).then_some(values)
}

/// In dataflow order, like TensorRT, else file order; cycles come last.
pub(super) fn in_order(graph: &Graph) -> Vec<usize> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        for output in node.proto.output.iter().filter(|output| !output.is_empty()) {
            makers.entry(output).or_insert(index);
        }
    }
    let needs = |index: usize| {
        let inputs = graph.nodes.get(index).map_or(&[][..], |node| node.proto.input.as_slice());
        inputs.iter().filter_map(|input| makers.get(input.as_str()).copied())
    };
    let count = graph.nodes.len();
    if (0..count).all(|index| needs(index).all(|maker| maker < index)) {
        return (0..count).collect();
    }
    let mut waiting: Vec<usize> = (0..count).map(|index| needs(index).count()).collect();
    let mut takers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for index in 0..count {
        needs(index).for_each(|maker| takers[maker].push(index));
    }
    let mut ready: VecDeque<usize> = (0..count).filter(|index| waiting[*index] == 0).collect();
    let mut order = Vec::with_capacity(count);
    let mut is_done = vec![false; count];
    while let Some(index) = ready.pop_front() {
        order.push(index);
        is_done[index] = true;
        for taker in std::mem::take(&mut takers[index]) {
            waiting[taker] -= 1;
            if waiting[taker] == 0 {
                ready.push_back(taker);
            }
        }
    }
    order.extend((0..count).filter(|index| !is_done[*index]));
    order
}
