//! What is wrong with a node of a plugin.
//!
//! Owns the order in which a node is held against its plugin, and what is told. What the plugin refuses is decided by the code that the runtime
//! decides with; what is added here is what TensorRT's parser does before the plugin sees anything.

use std::collections::BTreeMap;

use crate::Node;
use crate::proto::attribute_proto::AttributeType;
use cubinder_expr as expr;
use cubinder_expr::RangeEnvironment;
use cubinder_expr::{DataType, Value};
use cubinder_launch as launch;
use cubinder_launch::{Facts, Rule, Signature, Steps, check_limits, rules_of_attributes, rules_of_shapes};
use cubinder_model::attribute_check::Unmet;
use cubinder_model::field::attribute_value;
use cubinder_model::{Attribute, Input, Plugin, Requirement, Variant};
use serde::Serialize;

use super::find::{AOT, NAMESPACE, SHAPE_INPUTS, VERSION};
use super::passed::{Loss, kind, passed, reference};
use super::tensors::{Dim, Tensor};
use crate::diagnostic::{Diagnostic, Severity, suggest};

/// Something that is wrong with a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// Whether TensorRT would fail or give wrong results, or it is only odd.
    #[serde(serialize_with = "severity_text")]
    pub severity: Severity,
    /// What kind of thing is wrong, for programs: `attribute`.
    pub problem: &'static str,
    /// What is wrong, lower case, no full stop.
    pub message: String,
    /// Facts that explain it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde gives it so
fn severity_text<S: serde::Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    })
}

impl Finding {
    pub(super) fn error(problem: &'static str, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, problem, message: message.into(), notes: Vec::new(), help: None }
    }

    pub(super) fn warning(problem: &'static str, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(problem, message) }
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Finding {
        self.notes.push(note.into());
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }

    /// The finding as a message about a node.
    #[must_use]
    pub fn diagnostic(&self, node: &str) -> Diagnostic {
        let message = format!("{node}: {}", self.message);
        Diagnostic {
            severity: self.severity,
            notes: self.notes.clone(),
            help: self.help.clone(),
            ..Diagnostic::error(message)
        }
    }
}

/// A node held against its plugin.
#[derive(Debug, Clone, Default)]
pub(super) struct Checked {
    pub(super) findings: Vec<Finding>,
    /// One value for each of the plugin's attributes, where all of them are known and right.
    pub(super) attributes: Option<Vec<Value>>,
    /// What the outputs are, as far as it follows.
    pub(super) outputs: Vec<Tensor>,
}

/// Holds a node against its plugin; `inputs` is what is known of the tensors that it takes, one for each.
pub(super) fn check(plugin: &Plugin, node: &Node, inputs: &[Tensor]) -> Checked {
    let mut findings = Vec::new();
    unknown_attributes(plugin, node, &mut findings);
    findings.extend(repeated(node));
    findings.extend(of_calls(node));
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
        findings.extend(unmet("attribute", rules, plugin, &alone, &mut steps));
    }
    let types = types(plugin, attributes.as_deref(), inputs, &mut findings);
    let fits = shapes(plugin, attributes.as_deref(), inputs, &mut steps, &mut findings);
    let outputs = match fits {
        true => super::infer::of_plugin(plugin, attributes.as_deref(), inputs, types.as_deref(), &mut steps),
        false => Vec::new(),
    };
    Checked { findings, attributes, outputs }
}

// ---- attributes

fn unknown_attributes(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) {
    let unknown: Vec<&str> = unknown(plugin, node).collect();
    for name in unknown.iter().copied().take(MOST_TOLD) {
        let message = format!("the plugin has no attribute `{name}`");
        let drops = "TensorRT leaves it out without a word";
        findings.push(match meant(plugin, node, name) {
            Some(near) => {
                let default = plugin.attributes.iter().find(|known| known.name == near);
                let default = default.and_then(|known| known.default.as_ref());
                let takes =
                    default.map_or_else(String::new, |value| format!(", and `{near}` is {value} then"));
                Finding::error("unknown_attribute", message)
                    .note(format!("{drops}{takes}"))
                    .help(format!("did you mean `{near}`?"))
            }
            None => Finding::warning("unknown_attribute", message).note(drops),
        });
    }
}

/// How many things of one kind are told of a node: nobody reads more.
pub(super) const MOST_TOLD: usize = 16;

/// The attributes of a node that mean nothing to its plugin.
pub(super) fn unknown<'n>(plugin: &Plugin, node: &'n Node) -> impl Iterator<Item = &'n str> {
    let names = node.proto.attribute.iter().map(crate::proto::AttributeProto::name);
    names.filter(|name| !known(plugin).any(|known| known == *name))
}

/// The attributes of a node that are TensorRT's own.
const OWN: [&str; 4] = [NAMESPACE, VERSION, AOT, SHAPE_INPUTS];

/// The attributes that mean something in a node of a plugin.
fn known(plugin: &Plugin) -> impl Iterator<Item = &str> {
    plugin.attributes.iter().map(|attribute| attribute.name.as_str()).chain(OWN)
}

/// The names that several attributes of a node have, whether the plugin has such an attribute or TensorRT does. ONNX does not allow
/// them, and TensorRT-RTX 1.7.1 uses the first one without a warning.
fn repeated(node: &Node) -> impl Iterator<Item = Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for attribute in &node.proto.attribute {
        *counts.entry(attribute.name()).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > 1).take(MOST_TOLD).map(|(name, _)| {
        Finding::error("attribute_twice", format!("the attribute `{name}` occurs more than once"))
            .note("TensorRT uses the first one without a warning")
            .help("leave one of them out")
    })
}

/// Those of [`OWN`] that the calls of a function say, where that is not known.
fn of_calls(node: &Node) -> impl Iterator<Item = Finding> {
    let said = OWN.into_iter().filter_map(|name| Some((name, reference(node.attribute(name)?)?)));
    said.map(|(name, from)| {
        let message = format!(
            "the attribute `{name}` is what each call of the function says in `{from}`; it is not checked"
        );
        Finding::warning("attribute_unread", message)
    })
}

/// The attribute that an [`unknown`] one was meant to be: one that the node does not have.
pub(super) fn meant<'p>(plugin: &'p Plugin, node: &Node, name: &str) -> Option<&'p str> {
    suggest(name, known(plugin).filter(|known| node.attribute(known).is_none()))
}

/// The values of all attributes, as the plugin reads them; none where one is wrong or not known.
fn attributes(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) -> Option<Vec<Value>> {
    let mut values = Some(Vec::with_capacity(plugin.attributes.len()));
    for attribute in &plugin.attributes {
        match one_attribute(attribute, node) {
            Ok(value) => {
                if let Some(values) = &mut values {
                    values.push(value);
                }
            }
            Err(finding) => {
                values = None;
                findings.push(finding);
            }
        }
    }
    values
}

fn one_attribute(attribute: &Attribute, node: &Node) -> Result<Value, Finding> {
    let Some(said) = node.attribute(&attribute.name) else {
        return attribute_value(attribute, None).map_err(|Unmet(why)| {
            let example = format!("it is of the ONNX type {}", attribute.ty.onnx_kind());
            Finding::error("missing_attribute", why).note(example)
        });
    };
    let arrived = passed(said).map_err(|loss| lost(attribute, loss))?;
    attribute_value(attribute, Some(&arrived.field())).map_err(|Unmet(why)| {
        let (found, expected) = (kind(said).as_str_name(), attribute.ty.onnx_kind());
        let finding = Finding::error("attribute", why);
        if found == expected {
            return finding;
        }
        finding.note(format!(
            "the node has it as {found}, and ONNX's type for `{}` is {expected}",
            attribute.ty.name()
        ))
    })
}

fn lost(attribute: &Attribute, loss: Loss) -> Finding {
    let name = &attribute.name;
    match loss {
        Loss::Cut { element, value } => {
            let place = element.map_or_else(String::new, |index| format!("[{index}]"));
            let message = format!("the attribute `{name}{place}` is {value}, which is beyond 32 bits");
            Finding::error("attribute_cut", message)
                .note(format!("TensorRT's parser passes {} in its place, without a word", value as i32))
        }
        Loss::Refused(what) => {
            let expected =
                format!("ONNX's type for `{}` is {}", attribute.ty.name(), attribute.ty.onnx_kind());
            Finding::error("attribute", format!("the attribute `{name}` {what}")).note(expected)
        }
        Loss::Unread(what) => {
            Finding::warning("attribute_unread", format!("the attribute `{name}` {what}; it is not checked"))
        }
    }
}

// ---- tensors

fn outputs_named(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) {
    let found = node.proto.output.iter().filter(|output| !output.is_empty()).count();
    let expected = plugin.outputs.len();
    if found == expected && node.proto.output.len() == expected {
        return;
    }
    let names: Vec<String> = plugin.outputs.iter().map(|output| format!("`{}`", output.name)).collect();
    let message = format!("the node has {}, the plugin gives {expected}", count(found, "output"));
    let note =
        format!("TensorRT wants a name for each, also for those that nobody reads: {}", names.join(", "));
    findings.push(Finding::error("output_count", message).note(note));
}

/// Whether the node has as many inputs as the plugin, and all of them.
fn inputs_fit(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) -> bool {
    let found = &node.proto.input;
    let expected = plugin.inputs.len();
    let list = || {
        let names: Vec<String> = plugin.inputs.iter().map(|input| format!("`{}`", input.name)).collect();
        if names.is_empty() {
            "it takes no inputs".to_owned()
        } else {
            format!("they are {}", names.join(", "))
        }
    };
    let mut fits = true;
    for (index, _) in found.iter().enumerate().filter(|(_, name)| name.is_empty()).take(MOST_TOLD) {
        fits = false;
        let which = plugin
            .inputs
            .get(index)
            .map_or_else(|| format!("input {index}"), |input| format!("the input `{}`", input.name));
        let message = format!("{which} is left out, and TensorRT has no optional inputs of plugins");
        findings.push(
            Finding::error("optional_input", message)
                .help("give it a tensor, if only an empty one that the plugin takes"),
        );
    }
    if found.len() != expected {
        fits = false;
        let message = format!("the node has {}, the plugin takes {expected}", count(found.len(), "input"));
        findings.push(Finding::error("input_count", message).note(list()));
    }
    fits
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Whether the node says which of its inputs are shape inputs.
fn shape_inputs(plugin: &Plugin, node: &Node, findings: &mut Vec<Finding>) {
    let expected = shape_input_indices(plugin);
    let said = node.attribute(SHAPE_INPUTS);
    if said.and_then(reference).is_some() {
        return;
    }
    let inputs = plugin.inputs.len() as i64;
    let found = said.map(|said| {
        let indices = said.ints.iter().map(|index| if *index < 0 { index + inputs } else { *index });
        let mut indices: Vec<i64> = indices.collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    });
    let is_ints = said.is_none_or(|said| kind(said) == AttributeType::Ints);
    if is_ints && found.unwrap_or_default() == expected {
        return;
    }
    let text = |indices: &[i64]| format!("{indices:?}");
    let message = match said {
        None => format!(
            "the node lacks the attribute `{SHAPE_INPUTS}`: the plugin takes the values of inputs {} as shapes",
            text(&expected)
        ),
        Some(said) if is_ints => format!(
            "the node's attribute `{SHAPE_INPUTS}` is {}, and has to be {}",
            text(&said.ints),
            text(&expected)
        ),
        Some(said) => format!(
            "the node's attribute `{SHAPE_INPUTS}` is of the ONNX type {}, expected INTS",
            kind(said).as_str_name()
        ),
    };
    let help = match expected.is_empty() {
        true => "leave it out, or run `cubinder onnx annotate`".to_owned(),
        false => format!("set it to the INTS {}: `cubinder onnx annotate` does", text(&expected)),
    };
    findings.push(Finding::error("shape_inputs", message).help(help));
}

/// The indices of the shape inputs.
pub(super) fn shape_input_indices(plugin: &Plugin) -> Vec<i64> {
    let inputs = (0_i64..).zip(&plugin.inputs);
    inputs.filter(|(_, input)| input.values.is_some()).map(|(index, _)| index).collect()
}

/// Holds the inputs' types against the variants; gives the types of a node whose tensors can have no others.
fn types(
    plugin: &Plugin,
    attributes: Option<&[Value]>,
    inputs: &[Tensor],
    findings: &mut Vec<Finding>,
) -> Option<Vec<DataType>> {
    let before = findings.len();
    for (index, (input, tensor)) in plugin.inputs.iter().zip(inputs).enumerate() {
        let Some(text) = tensor.type_text() else { continue };
        let taken = distinct(plugin.variants.iter().filter_map(|variant| variant.types.get(index)));
        if tensor.data_type().is_some_and(|ty| taken.contains(&&ty)) {
            continue;
        }
        let names: Vec<&str> = taken.iter().map(|ty| ty.name()).collect();
        let message = format!(
            "the input `{}` is of the type {text}, the plugin takes {}",
            input.name,
            names.join(", ")
        );
        findings.push(Finding::error("input_type", message));
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
            // What is wrong with the attributes alone has been said.
            let types = known
                .filter(|_| launch::check_specialized(plugin, attributes.unwrap_or_default()).is_ok())?;
            let signature =
                Signature { attributes: attributes.unwrap_or_default(), types: &types, formats: &[] };
            findings.push(Finding::error("input_type", launch::no_variant(plugin, &signature).to_string()));
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

/// Holds ranks, dimensions and what shape inputs hold against the plugin, as far as they are known; whether nothing is wrong.
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
        // Ranks of the tensors before it are not looked at for this one.
        let mut ranks = vec![0; index];
        ranks.push(rank);
        let facts = Facts { ranks: &ranks, ..Facts::default() };
        match Rule::Rank(index, input).check(plugin, &facts, steps) {
            Ok(_) => findings.extend(limits(input, tensor)),
            Err(Unmet(why)) => {
                let shape = tensor.shape_text().unwrap_or_default();
                findings.push(Finding::error("input_rank", why).note(format!("its shape is {shape}")));
            }
        }
        if let Some(values) = known_values(tensor).filter(|_| input.values.is_some()) {
            let mut all: Vec<&[i64]> = vec![&[]; index];
            all.push(&values);
            let facts = Facts { values: &all, ..Facts::default() };
            let rule = Rule::Values(index, input);
            findings.extend(
                rule.check(plugin, &facts, steps).err().map(|Unmet(why)| Finding::error("input_values", why)),
            );
        }
    }
    let ranks: Option<Vec<usize>> = inputs.iter().map(Tensor::rank).collect();
    if findings.len() > before {
        return false;
    }
    let (Some(attributes), Some(ranks)) = (attributes, ranks) else { return true };
    let shapes: Vec<Vec<i64>> = inputs.iter().filter_map(announced).collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let facts = Facts { attributes, ranks: &ranks, shapes: &shapes, ..Facts::default() };
    let rules = rules_of_shapes(plugin).filter(|rule| matches!(rule, Rule::Require(_)));
    // What attributes alone decide has been said.
    let alone = Facts { attributes, ..Facts::default() };
    let rules = rules.filter(|rule| rule.check(plugin, &alone, &mut Steps::default()) == Ok(None));
    for rule in rules {
        let Rule::Require(require) = rule else { continue };
        findings.extend(match rule.check(plugin, &facts, steps) {
            Ok(Some(())) => None,
            Ok(None) => never_holds(plugin, require, attributes, inputs),
            Err(Unmet(why)) => Some(Finding::error("require", why)),
        });
    }
    findings.len() == before
}

/// What is to be said of a rule that does not hold, whatever the dimensions are that are not known.
fn never_holds(
    plugin: &Plugin,
    require: &Requirement,
    attributes: &[Value],
    inputs: &[Tensor],
) -> Option<Finding> {
    let bounds = expr::bounds(&require.expr, &Announced { plugin, attributes, inputs }).ok()?;
    if bounds.max != 0 {
        return None;
    }
    let shape =
        |(input, tensor): (&Input, &Tensor)| Some(format!("{} is {}", input.name, tensor.shape_text()?));
    let shapes: Vec<String> = plugin.inputs.iter().zip(inputs).filter_map(shape).collect();
    let Requirement { message, text, .. } = require;
    let message = format!("{message}: `{text}` does not hold; {}", shapes.join(", "));
    Some(
        Finding::error("require", message)
            .note("whatever the dimensions are that have names or are not known"),
    )
}

/// What is known of a node before all dimensions are: what is not lies within the limits.
struct Announced<'a> {
    plugin: &'a Plugin,
    attributes: &'a [Value],
    inputs: &'a [Tensor],
}

impl RangeEnvironment for Announced<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(index as usize)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.inputs.get(tensor as usize)?.rank()
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        let dim = self.inputs.get(tensor as usize)?.dims.as_ref()?.get(axis)?;
        let allowed = self.plugin.inputs.get(tensor as usize)?.limits.dim(axis);
        Some(dim.known().map_or((allowed.min, allowed.max), |extent| (extent, extent)))
    }

    fn values(&self, tensor: u32) -> (i64, i64) {
        let allowed = self.plugin.inputs.get(tensor as usize).and_then(|input| input.values);
        allowed.map_or((i64::MIN, i64::MAX), |allowed| (allowed.min, allowed.max))
    }
}

/// A shape as TensorRT announces it, with -1 for what is not known.
pub(super) fn announced(tensor: &Tensor) -> Option<Vec<i64>> {
    Some(tensor.dims.as_ref()?.iter().map(|dim| dim.known().unwrap_or(-1)).collect())
}

/// What a shape input holds, where all of it is known.
pub(super) fn known_values(tensor: &Tensor) -> Option<Vec<i64>> {
    tensor.values.as_ref()?.iter().map(Dim::known).collect()
}

/// Dimensions beyond an input's limits, as far as dimensions are known.
fn limits(input: &Input, tensor: &Tensor) -> Option<Finding> {
    let dims = tensor.dims.as_ref()?;
    let wrong = (0..)
        .zip(dims)
        .any(|(axis, dim)| dim.known().is_some_and(|extent| !input.limits.dim(axis).contains(extent)));
    let is_known = dims.iter().all(|dim| dim.known().is_some());
    if !wrong && !is_known {
        return None;
    }
    // What is not known is taken to be right.
    let shape: Vec<i64> =
        (0..).zip(dims).map(|(axis, dim)| dim.known().unwrap_or(input.limits.dim(axis).min)).collect();
    let why = check_limits(&input.name, &shape, &input.limits, "").err()?;
    Some(Finding::error("input_limits", why.to_string()))
}

fn unmet<'p>(
    problem: &'static str,
    rules: impl Iterator<Item = Rule<'p>>,
    plugin: &Plugin,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules {
        if let Err(Unmet(why)) = rule.check(plugin, facts, steps) {
            findings.push(Finding::error(problem, why));
        }
    }
    findings
}
