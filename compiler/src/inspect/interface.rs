//! What a node of a plugin can say and takes: its attributes and tensors as the manifest declares them.

use cubinder_bundle::expr::print;
use cubinder_bundle::{Format, Interval, Plugin};
use serde::Serialize;

/// An attribute or a tensor as the manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredReport {
    /// `attribute`, `input` or `output`.
    pub role: &'static str,
    /// Its name.
    pub name: String,
    /// The type of an attribute; the element types that a tensor can have.
    pub types: Vec<&'static str>,
    /// The formats that a tensor can have, where it has others than row major ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<&'static str>,
    /// What a shape input may hold: its values are known when shapes are, and it is no memory of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Interval>,
    /// The input whose memory an output shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Of an output that holds a size, which the kernels find: the most that it can be and what TensorRT tunes for, as expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeReport>,
    /// What an attribute is where the node does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What the author says about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doc: String,
}

/// A size that depends on data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SizeReport {
    /// The most that it can be.
    pub upper: String,
    /// What TensorRT tunes for.
    pub opt: String,
}

/// Attributes, inputs and outputs in the manifest's order.
pub(super) fn interface(plugin: &Plugin) -> Vec<DeclaredReport> {
    let attributes = plugin.attributes.iter().map(|attribute| DeclaredReport {
        role: "attribute",
        name: attribute.name.clone(),
        types: vec![attribute.ty.name()],
        formats: Vec::new(),
        values: None,
        alias: None,
        size: None,
        default: attribute.default.as_ref().map(ToString::to_string),
        doc: attribute.doc.clone(),
    });
    let tensor = |role, (index, name, doc): (usize, &String, &String)| DeclaredReport {
        role,
        name: name.clone(),
        types: types_of(plugin, index),
        formats: formats_of(plugin, index),
        values: None,
        alias: None,
        size: None,
        default: None,
        doc: doc.clone(),
    };
    let inputs = plugin.inputs.iter().enumerate();
    let inputs = inputs.map(|(index, input)| DeclaredReport {
        values: input.values,
        ..tensor("input", (index, &input.name, &input.doc))
    });
    let outputs = (plugin.inputs.len()..).zip(&plugin.outputs);
    let outputs = outputs.map(|(index, output)| DeclaredReport {
        alias: output.alias.and_then(|alias| plugin.tensor_name(alias as usize)).map(str::to_owned),
        size: output
            .size
            .as_ref()
            .map(|size| SizeReport { upper: print(&size.upper, plugin), opt: print(&size.opt, plugin) }),
        ..tensor("output", (index, &output.name, &output.doc))
    });
    attributes.chain(inputs).chain(outputs).collect()
}

/// The element types that a tensor has in the table of variants, each once, in the table's order.
fn types_of(plugin: &Plugin, tensor: usize) -> Vec<&'static str> {
    let mut types: Vec<&'static str> = Vec::new();
    for ty in plugin.variants.iter().filter_map(|variant| variant.types.get(tensor)) {
        if !types.contains(&ty.name()) {
            types.push(ty.name());
        }
    }
    types
}

/// The formats that a tensor has in the table of variants, each once, in the table's order; none where it is always row major.
fn formats_of(plugin: &Plugin, tensor: usize) -> Vec<&'static str> {
    let mut formats: Vec<&'static str> = Vec::new();
    for format in plugin.variants.iter().filter_map(|variant| variant.formats.get(tensor)) {
        if !formats.contains(&format.name()) {
            formats.push(format.name());
        }
    }
    if formats == [Format::Linear.name()] { Vec::new() } else { formats }
}
