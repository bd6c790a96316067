//! What a node of a plugin can say and takes: its attributes and tensors as the manifest declares them.

use cubinder_expr::print;
use cubinder_expr::{Format, Interval, Value};
use cubinder_model::{Attribute, Output, Plugin, ShapeLimits};
use cubinder_node::eval::value_json;
use serde::Serialize;

report! {
    /// An attribute or a tensor as the manifest declares it. What the manifest leaves open is not there.
    #[derive(Default)]
    DeclaredReport {
        /// `attribute`, `input` or `output`.
        role: &'static str,
        /// Its name.
        name: String,
        /// The type of an attribute; the element types that a tensor can have.
        types: Vec<&'static str>,
        /// The kind of the ONNX node's attribute: `INT`, `FLOATS` ...
        [optional] onnx: Option<&'static str>,
        /// The formats that a tensor can have, where it has others than row major ones.
        [optional] formats: Vec<&'static str>,
        /// What the attribute is, for a node.
        [optional] value: Option<serde_json::Value>,
        /// What an attribute is where the node does not say.
        [optional] default: Option<serde_json::Value>,
        /// How many elements a list may have, or how many bytes a string or `bytes`.
        [optional] length: Option<Range>,
        /// The least and the greatest number; of a list, for each element.
        [optional] range: Option<Range>,
        /// The only values; of a list, for each element.
        [optional] one_of: Vec<serde_json::Value>,
        /// The values for which there is code: each has variants of its own.
        [optional] specialize: Vec<serde_json::Value>,
        /// How many dimensions an input may have.
        [optional] rank: Option<Range>,
        /// What the shape of a tensor may be.
        [optional] limits: Option<LimitsReport>,
        /// What a shape input may hold: its values are known when shapes are, and it is no memory of the device.
        [optional] values: Option<Range>,
        /// The shape of an output, as an expression.
        [optional] shape: Option<String>,
        /// The input whose memory an output shares.
        [optional] alias: Option<String>,
        /// Of an output that holds a size, which the kernels find: the most that it can be and what TensorRT tunes for, as expressions.
        [optional] size: Option<SizeReport>,
        /// Whether only the kernels find the shape of an output.
        [optional] depends_on_data: bool,
        /// What the author says about it.
        [optional] doc: String,
    }

    /// Numbers from one to another, both included; an end that is open is not there.
    Range {
        /// The least.
        [optional] min: Option<serde_json::Value>,
        /// The greatest.
        [optional] max: Option<serde_json::Value>,
    }
}

impl Range {
    /// The ends of `range` that are further in than those of `widest`.
    fn within(range: Interval, widest: Interval) -> Range {
        Range {
            min: (range.min > widest.min).then(|| range.min.into()),
            max: (range.max < widest.max).then(|| range.max.into()),
        }
    }

    /// What a shape, a dimension or a length may be; none where it may be anything.
    fn of_size(range: Interval) -> Option<Range> {
        Some(Range::within(range, Interval::ANY_SIZE)).filter(|range| !range.is_open())
    }

    fn is_open(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }
}

impl std::fmt::Display for Range {
    /// As manifests write it: `1..=8`, `1..`, `..=8`, `4`; `any` where both ends are open.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.min, &self.max) {
            (None, None) => f.write_str("any"),
            (Some(min), Some(max)) if min == max => write!(f, "{min}"),
            (min, max) => {
                if let Some(min) = min {
                    write!(f, "{min}")?;
                }
                f.write_str("..")?;
                max.as_ref().map_or(Ok(()), |max| write!(f, "={max}"))
            }
        }
    }
}

report! {
    /// What a shape may be.
    LimitsReport {
        /// What every dimension may be, or each of them from the first on.
        [optional] dims: Option<DimsReport>,
        /// How many elements there may be.
        [optional] numel: Option<Range>,
    }
}

/// What dimensions may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DimsReport {
    /// Every dimension.
    Every(Range),
    /// One for each dimension.
    Each(Vec<Range>),
}

report! {
    /// A size that depends on data.
    SizeReport {
        /// The most that it can be.
        upper: String,
        /// What TensorRT tunes for.
        opt: String,
    }
}

/// Attributes, inputs and outputs in the manifest's order; `values` are a node's attributes, none for a whole plugin.
pub(super) fn interface(plugin: &Plugin, values: &[Value]) -> Vec<DeclaredReport> {
    let attributes = plugin.attributes.iter().enumerate();
    let attributes = attributes.map(|(index, it)| attribute(plugin, index, it, values.get(index)));
    let inputs = plugin.inputs.iter().enumerate().map(|(index, input)| DeclaredReport {
        role: "input",
        name: input.name.clone(),
        rank: Some(Range { min: Some(input.rank_min.into()), max: Some(input.rank_max.into()) }),
        limits: limits(&input.limits),
        values: input.values.map(|values| Range::within(values, Interval { min: i64::MIN, max: i64::MAX })),
        doc: input.doc.clone(),
        ..tensor(plugin, index)
    });
    let outputs = (plugin.inputs.len()..).zip(&plugin.outputs);
    let outputs = outputs.map(|(index, it)| output(plugin, index, it));
    attributes.chain(inputs).chain(outputs).collect()
}

fn attribute(plugin: &Plugin, index: usize, attribute: &Attribute, value: Option<&Value>) -> DeclaredReport {
    let range = Range {
        min: attribute.minimum.as_ref().map(value_json),
        max: attribute.maximum.as_ref().map(value_json),
    };
    DeclaredReport {
        role: "attribute",
        name: attribute.name.clone(),
        types: vec![attribute.ty.name()],
        onnx: Some(attribute.ty.onnx_kind()),
        value: value.map(value_json),
        default: attribute.default.as_ref().map(value_json),
        length: attribute.length.and_then(Range::of_size),
        range: Some(range).filter(|range| !range.is_open()),
        one_of: attribute.one_of.iter().map(value_json).collect(),
        specialize: specialized(plugin, index),
        doc: attribute.doc.clone(),
        ..DeclaredReport::default()
    }
}

/// The values of an attribute for which variants are compiled, each once, in the table's order.
fn specialized(plugin: &Plugin, attribute: usize) -> Vec<serde_json::Value> {
    let all = plugin.variants.iter().flat_map(|variant| &variant.specialized);
    let of_it = all.filter(|(index, _)| *index as usize == attribute);
    each_once(of_it.map(|(_, value)| value_json(value)))
}

fn output(plugin: &Plugin, index: usize, output: &Output) -> DeclaredReport {
    let size = output.size.as_ref();
    DeclaredReport {
        role: "output",
        name: output.name.clone(),
        limits: limits(&output.limits),
        shape: Some(print(&output.shape, plugin)),
        alias: output.alias.and_then(|alias| plugin.tensor_name(alias as usize)).map(str::to_owned),
        size: size
            .map(|size| SizeReport { upper: print(&size.upper, plugin), opt: print(&size.opt, plugin) }),
        depends_on_data: output.depends_on_data(),
        doc: output.doc.clone(),
        ..tensor(plugin, index)
    }
}

/// What the table of variants says of a tensor; row major ones alone are not worth a word.
fn tensor(plugin: &Plugin, index: usize) -> DeclaredReport {
    let types = plugin.variants.iter().filter_map(|variant| variant.types.get(index));
    let formats = plugin.variants.iter().filter_map(|variant| variant.formats.get(index));
    let formats = each_once(formats.map(|format| format.name()));
    DeclaredReport {
        types: each_once(types.map(|ty| ty.name())),
        formats: if formats == [Format::Linear.name()] { Vec::new() } else { formats },
        ..DeclaredReport::default()
    }
}

fn limits(limits: &ShapeLimits) -> Option<LimitsReport> {
    let dims = match limits.dims.as_slice() {
        [] => Range::of_size(limits.every).map(DimsReport::Every),
        dims => {
            let each = dims.iter().map(|dim| Range::within(*dim, Interval::ANY_SIZE));
            Some(DimsReport::Each(each.collect()))
        }
    };
    let numel = Range::of_size(limits.numel);
    (dims.is_some() || numel.is_some()).then_some(LimitsReport { dims, numel })
}

/// The items, each where it comes first.
pub(super) fn each_once<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}
