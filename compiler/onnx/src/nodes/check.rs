//! Checks a node against its plugin. The runtime's code decides what a plugin rejects; this module adds TensorRT's parser.

use std::collections::BTreeMap;

use crate::Node;
use crate::proto::attribute_proto::AttributeType;
use cubinder_expr as expr;
use cubinder_expr::{DataType, Value};
use cubinder_launch as launch;
use cubinder_launch::{
    AnyValues, Facts, Rule, Signature, Steps, check_limits, rules_of_attributes, rules_of_shapes,
};
use cubinder_model::attribute_check::Unmet;
use cubinder_model::field::attribute_value;
use cubinder_model::{Attribute, Input, Plugin, Requirement, Variant};

use super::errors::*;
use super::find::{AOT, NAMESPACE, SHAPE_INPUTS, VERSION};
use super::finding::Finding;
use super::names::{counted, quoted};
use super::plugin_fields::{Loss, kind, parsed_field, reference};
use super::tensors::Tensor;
use crate::diagnostic::suggest;

#[derive(Debug, Clone, Default)]
pub(super) struct Checked {
    pub(super) findings: Vec<Finding>,
    /// Values, one per attribute, if all are known and valid.
    pub(super) attributes: Option<Vec<Value>>,
    pub(super) outputs: Vec<Tensor>,
}

/// `inputs` has known facts.
pub(super) fn check(plugin: &Plugin, node: &Node, inputs: &[Tensor]) -> Checked {
    let mut findings = Vec::new();
    unknown_attributes(plugin, node, &mut findings);
    findings.extend(repeated(node));
    findings.extend(unread_own_attributes(node));
    let attributes = attributes(plugin, node, &mut findings);
    outputs_named(plugin, node, &mut findings);
    if !inputs_fit(plugin, node, &mut findings) {
        return Checked { findings, attributes, outputs: Vec::new() };
    }
    shape_inputs(plugin, node, &mut findings);
    let mut steps = Steps::default();
    if let Some(attributes) = &attributes {
        let alone = Facts { attributes, ..Facts::default() };
        let rules = rules_of_attributes(plugin).filter(|rule| !matches!(rule, Rule::Attribute(..)));
        let unmet = rules.filter_map(|rule| rule.check(plugin, &alone, &mut steps).err());
        findings.extend(unmet.map(|Unmet(why)| InvalidAttribute { why, kinds: None }.into()));
    }
    let types = types(plugin, attributes.as_deref(), inputs, &mut findings);
    let fits = shapes(plugin, attributes.as_deref(), inputs, &mut steps, &mut findings);
    let outputs = match fits {
        true => {
            super::infer::plugin_outputs(plugin, attributes.as_deref(), inputs, types.as_deref(), &mut steps)
        }
        false => Vec::new(),
    };
    Checked { findings, attributes, outputs }
}

fn unknown_attributes(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) {
    for name in unknown(plugin, node).take(MOST_REPORTED) {
        let Some(near) = meant(plugin, node, name) else {
            findings.push(UnknownAttribute { name }.into());
            continue;
        };
        let known = plugin.attributes.iter().find(|known| known.name == near);
        let default = known.and_then(|known| known.default.as_ref());
        let default =
            default.map_or_else(String::new, |value| format!(", and uses the default `{near}` = {value}"));
        findings.push(MistakenAttribute { name, near, default }.into());
    }
}

pub(super) const MOST_REPORTED: usize = 16;

pub(super) fn unknown<'n>(plugin: &Plugin, node: &'n Node) -> impl Iterator<Item = &'n str> {
    let names = node.proto.attribute.iter().map(crate::proto::AttributeProto::name);
    names.filter(|name| !meaningful_attributes(plugin).any(|known| known == *name))
}

const OWN: [&str; 4] = [NAMESPACE, VERSION, AOT, SHAPE_INPUTS];

fn meaningful_attributes(plugin: &Plugin) -> impl Iterator<Item = &str> {
    plugin.attributes.iter().map(|attribute| attribute.name.as_str()).chain(OWN)
}

/// ONNX forbids repeated attributes; TensorRT-RTX 1.7.1 silently uses the first.
fn repeated(node: &Node) -> impl Iterator<Item = Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for attribute in &node.proto.attribute {
        *counts.entry(attribute.name()).or_default() += 1;
    }
    let repeated = counts.into_iter().filter(|(_, count)| *count > 1).take(MOST_REPORTED);
    repeated.map(|(name, _)| RepeatedAttribute { name }.into())
}

/// [`OWN`] attributes that refer to unknown values of a call.
fn unread_own_attributes(node: &Node) -> impl Iterator<Item = Finding> {
    OWN.into_iter().filter_map(|name| {
        let loss = Loss::OfCalls(reference(node.attribute(name)?)?.to_owned());
        Some(UncheckedAttribute { name, loss }.into())
    })
}

pub(super) fn meant<'p>(plugin: &'p Plugin, node: &Node, name: &str) -> Option<&'p str> {
    suggest(name, meaningful_attributes(plugin).filter(|known| node.attribute(known).is_none()))
}

fn attributes(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) -> Option<Vec<Value>> {
    let mut values = Vec::with_capacity(plugin.attributes.len());
    for attribute in &plugin.attributes {
        match one_attribute(attribute, node) {
            Ok(value) => values.push(value),
            Err(finding) => findings.push(finding),
        }
    }
    (values.len() == plugin.attributes.len()).then_some(values)
}

fn one_attribute(attribute: &Attribute, node: &Node) -> Result<Value, Finding> {
    let Some(stated) = node.attribute(&attribute.name) else {
        let kind = attribute.ty.onnx_kind();
        return attribute_value(attribute, None).map_err(|Unmet(why)| MissingAttribute { why, kind }.into());
    };
    let field = parsed_field(stated).map_err(|loss| lost(attribute, loss))?;
    attribute_value(attribute, Some(&field.field())).map_err(|Unmet(why)| {
        let (found, expected) = (kind(stated).as_str_name(), attribute.ty.onnx_kind());
        let kinds = (found != expected).then(|| {
            format!("the node has type {found}, but ONNX's type for `{}` is {expected}", attribute.ty.name())
        });
        InvalidAttribute { why, kinds }.into()
    })
}

fn lost(attribute: &Attribute, loss: Loss) -> Finding {
    let name = &attribute.name;
    match loss {
        Loss::Cut { element, value } => {
            let element = element.map_or_else(String::new, |index| format!("[{index}]"));
            CutAttribute { name, element, value, passed: value as i32 }.into()
        }
        Loss::OfCalls(_) | Loss::UnreadData(_) => UncheckedAttribute { name, loss }.into(),
        _ => {
            let (ty, kind) = (attribute.ty.name(), attribute.ty.onnx_kind());
            RejectedAttribute { name, loss, ty, kind }.into()
        }
    }
}

fn outputs_named(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) {
    let found = node.proto.output.iter().filter(|output| !output.is_empty()).count();
    let expected = plugin.outputs.len();
    if found == expected && node.proto.output.len() == expected {
        return;
    }
    let names = quoted(plugin.outputs.iter().map(|output| &output.name));
    findings.push(OutputCount { found: counted(found, "output"), expected, names }.into());
}

fn inputs_fit(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) -> bool {
    let found = &node.proto.input;
    let expected = plugin.inputs.len();
    let mut fits = true;
    for (index, _) in found.iter().enumerate().filter(|(_, name)| name.is_empty()).take(MOST_REPORTED) {
        fits = false;
        let input = plugin.inputs.get(index);
        let which =
            input.map_or_else(|| format!("input {index}"), |input| format!("the input `{}`", input.name));
        findings.push(InputLeftOut { which }.into());
    }
    if found.len() != expected {
        fits = false;
        let names = quoted(plugin.inputs.iter().map(|input| &input.name));
        let list = if names.is_empty() {
            "the plugin has no inputs".to_owned()
        } else {
            format!("the inputs are {names}")
        };
        findings.push(InputCount { found: counted(found.len(), "input"), expected, list }.into());
    }
    fits
}

fn shape_inputs(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) {
    let expected = shape_input_indices(plugin);
    let stated = node.attribute(SHAPE_INPUTS);
    if stated.and_then(reference).is_some() {
        return;
    }
    let inputs = plugin.inputs.len() as i64;
    let found = stated.map(|stated| {
        let indices = stated.ints.iter().map(|index| if *index < 0 { index + inputs } else { *index });
        let mut indices: Vec<i64> = indices.collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    });
    let is_ints = stated.is_none_or(|stated| kind(stated) == AttributeType::Ints);
    if is_ints && found.unwrap_or_default() == expected {
        return;
    }
    let help = match expected.is_empty() {
        true => "remove it, or run `cubinder onnx annotate`".to_owned(),
        false => format!("set it to the INTS {expected:?}, or run `cubinder onnx annotate`"),
    };
    let (name, expected) = (SHAPE_INPUTS, expected.as_slice());
    findings.push(match stated {
        None => ShapeInputsMissing { name, expected, help }.into(),
        Some(stated) if is_ints => ShapeInputsDiffer { name, found: &stated.ints, expected, help }.into(),
        Some(stated) => ShapeInputsOfKind { name, kind: kind(stated).as_str_name(), help }.into(),
    });
}

pub(super) fn shape_input_indices(plugin: &Plugin) -> Vec<i64> {
    let inputs = (0_i64..).zip(&plugin.inputs);
    inputs.filter(|(_, input)| input.values.is_some()).map(|(index, _)| index).collect()
}

/// Returns all types if only one signature fits.
fn types(
    plugin: &Plugin,
    attributes: Option<&[Value]>,
    inputs: &[Tensor],
    findings: &mut Vec<Finding>,
) -> Option<Vec<DataType>> {
    let before = findings.len();
    for (index, (input, tensor)) in plugin.inputs.iter().zip(inputs).enumerate() {
        let Some(ty) = tensor.type_text() else { continue };
        let taken = distinct(plugin.variants.iter().filter_map(|variant| variant.types.get(index)));
        if tensor.data_type().is_some_and(|ty| taken.contains(&&ty)) {
            continue;
        }
        let taken = taken.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
        findings.push(InputType { name: &input.name, ty, taken }.into());
    }
    if findings.len() > before {
        return None;
    }
    let suits = |variant: &&Variant| {
        let known = inputs.iter().map(Tensor::data_type).zip(&variant.types);
        known.into_iter().all(|(known, ty)| known.is_none_or(|known| known == *ty))
            && attributes.is_none_or(|attributes| launch::is_compiled_for(variant, attributes))
    };
    let rows = distinct(plugin.variants.iter().filter(suits).map(|variant| &variant.types));
    match rows.as_slice() {
        [] => {
            let known: Option<Vec<DataType>> = inputs.iter().map(Tensor::data_type).collect();
            // Attribute errors were reported.
            let types = known
                .filter(|_| launch::check_specialized(plugin, attributes.unwrap_or_default()).is_ok())?;
            let signature =
                Signature { attributes: attributes.unwrap_or_default(), types: &types, formats: &[] };
            findings.push(NoVariant { why: launch::no_variant(plugin, &signature).to_string() }.into());
            None
        }
        [row] => Some(row.to_vec()),
        _ => None,
    }
}

fn distinct<'a, T: PartialEq>(items: impl Iterator<Item = &'a T>) -> Vec<&'a T> {
    let mut list: Vec<&T> = Vec::new();
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
    list
}

fn shapes(
    plugin: &Plugin,
    attributes: Option<&[Value]>,
    inputs: &[Tensor],
    steps: &mut Steps,
    findings: &mut Vec<Finding>,
) -> bool {
    let before = findings.len();
    for (index, input) in plugin.inputs.iter().enumerate() {
        let Some(tensor) = inputs.get(index) else { continue };
        let Some(rank) = tensor.rank() else { continue };
        // Ignores earlier tensors' ranks.
        let mut ranks = vec![0; index];
        ranks.push(rank);
        let facts = Facts { ranks: &ranks, ..Facts::default() };
        match Rule::Rank(index, input).check(plugin, &facts, steps) {
            Ok(_) => findings.extend(limits(input, tensor)),
            Err(Unmet(why)) => {
                let shape = tensor.shape_text().unwrap_or_default();
                findings.push(InputRank { why, shape }.into());
            }
        }
        if let Some(values) = tensor.known_values().filter(|_| input.values.is_some()) {
            let mut all: Vec<&[i64]> = vec![&[]; index];
            all.push(&values);
            let facts = Facts { values: &all, ..Facts::default() };
            let unmet = Rule::Values(index, input).check(plugin, &facts, steps).err();
            findings.extend(unmet.map(|Unmet(why)| InputValues { why }.into()));
        }
    }
    let ranks: Option<Vec<usize>> = inputs.iter().map(Tensor::rank).collect();
    if findings.len() > before {
        return false;
    }
    let (Some(attributes), Some(ranks)) = (attributes, ranks) else { return true };
    let shapes: Vec<Vec<i64>> = inputs.iter().filter_map(Tensor::announced).collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let facts = Facts { attributes, ranks: &ranks, shapes: &shapes, ..Facts::default() };
    let rules = rules_of_shapes(plugin).filter(|rule| matches!(rule, Rule::Require(_)));
    // Attribute rules were reported.
    let alone = Facts { attributes, ..Facts::default() };
    let rules = rules.filter(|rule| rule.check(plugin, &alone, &mut Steps::default()) == Ok(None));
    for rule in rules {
        let Rule::Require(require) = rule else { continue };
        findings.extend(match rule.check(plugin, &facts, steps) {
            Ok(Some(())) => None,
            Ok(None) => never_holds(plugin, require, &facts, inputs),
            Err(Unmet(why)) => Some(UnmetRequirement { why }.into()),
        });
    }
    findings.len() == before
}

/// Fails for all values of unknown dimensions.
fn never_holds(
    plugin: &Plugin,
    require: &Requirement,
    facts: &Facts<'_>,
    inputs: &[Tensor],
) -> Option<Finding> {
    let bounds = expr::bounds(&require.expr, &AnyValues { plugin, facts }).ok()?;
    if bounds.max != 0 {
        return None;
    }
    let shape =
        |(input, tensor): (&Input, &Tensor)| Some(format!("{} is {}", input.name, tensor.shape_text()?));
    let shapes = plugin.inputs.iter().zip(inputs).filter_map(shape).collect::<Vec<_>>().join(", ");
    let Requirement { message, text, .. } = require;
    Some(NeverMetRequirement { message, text, shapes }.into())
}

fn limits(input: &Input, tensor: &Tensor) -> Option<Finding> {
    let dims = tensor.dims.as_ref()?;
    let wrong = (0..)
        .zip(dims)
        .any(|(axis, dim)| dim.extent().is_some_and(|extent| !input.limits.dim(axis).contains(extent)));
    let is_known = tensor.has_known_shape();
    if !wrong && !is_known {
        return None;
    }
    // Unknown dimensions pass.
    let shape: Vec<i64> =
        (0..).zip(dims).map(|(axis, dim)| dim.extent().unwrap_or(input.limits.dim(axis).min)).collect();
    let why = check_limits(&input.name, &shape, &input.limits, "").err()?;
    Some(InputLimits { why: why.to_string() }.into())
}
