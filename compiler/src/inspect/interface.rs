use cubinder_expr::print;
use cubinder_expr::{Format, Interval, Value};
use cubinder_model::{Attribute, Output, Plugin, ShapeLimits};
use cubinder_node::eval::value_json;
use serde::Serialize;

report! {
    /// A declared attribute or tensor; unconstrained parts are absent.
    #[derive(Default)]
    DeclaredReport {
        /// `attribute`, `input` or `output`.
        role: &'static str,
        /// Its name.
        name: String,
        /// Types: one of an attribute, or all of a tensor.
        types: Vec<&'static str>,
        /// ONNX attribute kind: `INT`, `FLOATS` ...
        [optional] onnx: Option<&'static str>,
        /// Formats, unless only row major.
        [optional] formats: Vec<&'static str>,
        /// A node's attribute value.
        [optional] value: Option<serde_json::Value>,
        /// Default of an attribute.
        [optional] default: Option<serde_json::Value>,
        /// Range of list elements, or of bytes.
        [optional] length: Option<Range>,
        /// Range of (each) number.
        [optional] range: Option<Range>,
        /// Allowed values of (each) element.
        [optional] one_of: Vec<serde_json::Value>,
        /// Values with variants of their own.
        [optional] specialize: Vec<serde_json::Value>,
        /// Range of an input's rank.
        [optional] rank: Option<Range>,
        /// Limits of a tensor's shape.
        [optional] limits: Option<LimitsReport>,
        /// Range of a shape input's values.
        [optional] values: Option<Range>,
        /// Shape expression of an output.
        [optional] shape: Option<String>,
        /// Input whose memory an output shares.
        [optional] alias: Option<String>,
        /// Bounds of a size output.
        [optional] size: Option<SizeReport>,
        /// Whether kernels determine an output's shape.
        [optional] depends_on_data: bool,
        /// Author's description.
        [optional] doc: String,
    }

    /// An inclusive range.
    Range {
        /// Minimum.
        [optional] min: Option<serde_json::Value>,
        /// Maximum.
        [optional] max: Option<serde_json::Value>,
    }
}

impl Range {
    /// Returns the bounds tighter than `widest`.
    fn within(range: Interval, widest: Interval) -> Range {
        Range {
            min: (range.min > widest.min).then(|| range.min.into()),
            max: (range.max < widest.max).then(|| range.max.into()),
        }
    }

    /// Returns `None` if unlimited.
    fn of_size(range: Interval) -> Option<Range> {
        Some(Range::within(range, Interval::ANY_SIZE)).filter(|range| !range.is_open())
    }

    fn is_open(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }
}

impl std::fmt::Display for Range {
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
    /// Limits of a shape.
    LimitsReport {
        /// Limits of dimensions.
        [optional] dims: Option<DimsReport>,
        /// Limits of the number of elements.
        [optional] numel: Option<Range>,
    }
}

/// Limits of dimensions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DimsReport {
    /// One for all dimensions.
    Every(Range),
    /// One per dimension.
    Each(Vec<Range>),
}

report! {
    /// A data-dependent size.
    SizeReport {
        /// Upper bound.
        upper: String,
        /// Value that TensorRT tunes for.
        opt: String,
    }
}

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

pub(super) fn each_once<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}
