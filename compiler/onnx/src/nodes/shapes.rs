//! `cubinder eval` for plugin nodes: binds dimension names, infers node by node ([`super::list`]), evaluates launches
//! ([`crate::eval`]).

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use crate::Model;
use cubinder_model::Plugin;
use serde::Serialize;

use super::bind::{NetworkShapes, bind};
use super::errors::{DeniedTensor, NoNode, Refused, UnknownShape};
use super::finding::Finding;
use super::list::{NodeReport, VisitedNode, folded, report, tensor_list, walk};
use super::names::{counted, node_name, quoted};
use super::plugins::Plugins;
use super::producers::Producers;
use super::tensors::{Dim, Tensor, Tensors, of_type};
use crate::diagnostic::{Diagnostic, harmless, suggest};
use crate::eval::{self, Compiler, Evaluation, Subject};
use crate::query::Query;
use crate::reported_path::ReportedPath;

/// Plugin nodes of a model with their shapes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShapesReport {
    /// Model path, as the user wrote it.
    pub file: ReportedPath,
    /// Extents of dimension names, sorted by name.
    pub dims: Vec<(String, i64)>,
    /// Nodes, in file order.
    pub nodes: Vec<EvaluatedNode>,
}

/// Node with its launches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedNode {
    /// Node with its inferred shapes.
    #[serde(flatten)]
    pub node: NodeReport,
    /// Evaluation; `None` if a finding prevents it.
    pub evaluation: Option<Evaluation>,
}

impl ShapesReport {
    /// Reports everything invalid or unknown.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        folded(self.nodes.iter().map(|found| &found.node))
    }

    /// Returns whether every node can be launched.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.all(|found| !found.node.findings.iter().any(Finding::is_error) && found.evaluation.is_some())
    }
}

/// Evaluates plugin nodes for shapes `given`; `query` has device facts, formats and alignments. Fails for unbound values.
pub fn shapes(
    file: impl AsRef<Path>,
    model: &Model,
    plugins: &Plugins,
    given: &NetworkShapes,
    query: &Query,
    compiler: &Compiler,
) -> Result<ShapesReport, Vec<Diagnostic>> {
    let mut tensors = Tensors::new(model);
    let dims = bind(model, &mut tensors, given)?;
    let met = walk(model, plugins, &mut tensors);
    if !tensors.denied.is_empty() {
        return Err(tensors.denied.iter().map(denied).collect());
    }
    let open = open_text(model, &tensors.dim_names());
    let mut evaluator = Evaluator { compiler, query, open, known: HashMap::new() };
    let mut producers = Producers::new(model);
    let nodes = met.into_iter().filter_map(|met| {
        let (evaluation, more) =
            evaluator.node(model, &met, &mut |name| producers.origin(&tensors, met.id.graph, name));
        let mut node = report(model, plugins, &tensors, met)?;
        node.findings.extend(more);
        Some(EvaluatedNode { node, evaluation })
    });
    Ok(ShapesReport { file: ReportedPath::from(&file), dims, nodes: nodes.collect() })
}

type Outcome = (Option<Evaluation>, Vec<Finding>);

struct Evaluator<'a> {
    compiler: &'a Compiler,
    query: &'a Query,
    open: Option<String>,
    known: HashMap<String, Outcome>,
}

impl Evaluator<'_> {
    fn node(
        &mut self,
        model: &Model,
        met: &VisitedNode<'_>,
        origin: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Outcome {
        let (Some(subject), Some(attributes)) = (met.subject, &met.checked.attributes) else {
            return (None, Vec::new());
        };
        if met.checked.findings.iter().any(Finding::is_error) {
            return (None, Vec::new());
        }
        let names = model.node(met.id).map(|node| node.proto.input.as_slice()).unwrap_or_default();
        let missing = missing(&subject.plugin, &met.inputs, names, self.open.as_deref(), origin);
        if !missing.is_empty() {
            return (None, missing);
        }
        let query = query(&subject.plugin, &met.inputs, self.query);
        let key = format!("{:?} {attributes:?} {query:?}", met.whose);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let subject = Subject { attributes: Some(attributes.clone()), ..subject.clone() };
        let stated = model.node(met.id).map(|node| node.proto.attribute.as_slice()).unwrap_or_default();
        let mut outcome = self.evaluate(&subject, &query);
        if let Some(evaluation) = &mut outcome.0 {
            for attribute in &mut evaluation.attributes {
                let is_stated = stated.iter().any(|stated| stated.name() == attribute.name);
                attribute.from = if is_stated { eval::Origin::Given } else { eval::Origin::Default };
            }
        }
        self.known.insert(key, outcome.clone());
        outcome
    }

    fn evaluate(&self, subject: &Subject, query: &Query) -> Outcome {
        match eval::evaluate(subject, query, self.compiler) {
            Ok(outcome) => {
                let refused = outcome.evaluation.refused.iter();
                let findings = refused.map(|why| Refused { why: why.clone() }.into()).collect();
                (Some(outcome.evaluation), findings)
            }
            Err(mistakes) => {
                let findings = mistakes.into_iter().map(|mistake| Finding::new("query", mistake.diagnostic));
                (None, findings.collect())
            }
        }
    }
}

fn denied((name, given, found): &(String, Tensor, Tensor)) -> Diagnostic {
    let text = |tensor: &Tensor| tensor.shape_text().unwrap_or_default();
    let option = if given.values.is_some() { "values" } else { "shape" };
    DeniedTensor { option, name, given: text(given), found: text(found) }.into()
}

fn open_text(model: &Model, open: &BTreeSet<String>) -> Option<String> {
    let inputs = model.graphs.first()?.inputs.iter();
    let dims: Vec<Dim> = inputs.filter_map(|input| of_type(input.ty.as_ref()?).dims).flatten().collect();
    let is_of_input = |name: &&String| dims.contains(&Dim::Named((*name).clone()));
    let names: Vec<&String> = open.iter().filter(is_of_input).take(16).collect();
    (!names.is_empty()).then(|| format!("{} of the network's inputs is not specified", quoted(names)))
}

/// `origin` names the operator that causes them.
fn missing(
    plugin: &Plugin,
    inputs: &[Tensor],
    names: &[String],
    open: Option<&str>,
    origin: &mut dyn FnMut(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((input, tensor), name) in plugin.inputs.iter().zip(inputs).zip(names) {
        let is_known = match input.values {
            Some(_) => tensor.known_values().is_some(),
            None => tensor.has_known_shape(),
        };
        if is_known {
            continue;
        }
        let (what, option) = match input.values {
            Some(_) => (format!("the values of the shape input `{}` are", input.name), "values"),
            None => (format!("the shape of the input `{}` is", input.name), "shape"),
        };
        let known = tensor.shape_text().filter(|_| input.values.is_none());
        let known = known.map_or_else(String::new, |shape| format!("; known: {shape}"));
        let itself = format!("specify it: `--{option} {name}=...`");
        let (cause, help) = match open {
            Some(open) => {
                (open.to_owned(), format!("specify complete shapes of the network's inputs, or {itself}"))
            }
            None => {
                let from = origin(name).map_or_else(
                    || "it depends on operators whose shapes cannot be inferred".to_owned(),
                    |node| format!("it depends on {node}, whose shape cannot be inferred"),
                );
                (format!("{from}; `onnx.shape_inference` may infer more"), itself)
            }
        };
        findings.push(UnknownShape { what, known, cause, help }.into());
    }
    findings
}

fn query(plugin: &Plugin, inputs: &[Tensor], more: &Query) -> Query {
    let mut query = more.clone();
    for (input, tensor) in plugin.inputs.iter().zip(inputs) {
        match (input.values, tensor.known_values(), tensor.announced()) {
            (Some(_), Some(values), _) => query.values.push((input.name.clone(), values)),
            (None, _, Some(shape)) => query.shapes.push((input.name.clone(), shape)),
            _ => {}
        }
        if let Some(ty) = tensor.data_type() {
            query.types.push((input.name.clone(), ty.name().to_owned()));
        }
    }
    query
}

/// Formats the report with a final newline. Escapes control characters.
#[must_use]
pub fn shapes_table(report: &ShapesReport, verbose: bool) -> String {
    let mut text = format!("{}: {}\n", report.file, counted(report.nodes.len(), "plugin node"));
    let dims: Vec<String> = report.dims.iter().map(|(name, extent)| format!("{name} = {extent}")).collect();
    if !dims.is_empty() {
        let _ = writeln!(text, "with {}", dims.join(", "));
    }
    for found in &report.nodes {
        let node = &found.node;
        let (inputs, outputs) = (tensor_list(&node.inputs), tensor_list(&node.outputs));
        let _ = writeln!(text, "\n{}\n  {inputs} -> {outputs}", node.title());
        match &found.evaluation {
            None => text.push_str(if is_refused(node) { "  rejected\n" } else { "  unknown\n" }),
            Some(evaluation) if verbose => {
                let whole = eval::Report {
                    file: ReportedPath::from(""),
                    kind: "model",
                    evaluations: vec![evaluation.clone()],
                };
                let table = eval::table(&whole);
                text.push_str(table.split_once("\n\n").map_or(table.as_str(), |(_, rest)| rest));
            }
            Some(evaluation) => text.push_str(&launches(evaluation)),
        }
    }
    harmless(&text, false)
}

fn is_refused(node: &NodeReport) -> bool {
    node.findings.iter().any(|finding| finding.is_error() && finding.problem != "unknown_shape")
}

fn launches(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    if let Some(why) = &evaluation.refused {
        let _ = writeln!(text, "  rejected: {}", why.replace('\n', "\n    "));
        return text;
    }
    let extents = |extents: Option<[u32; 3]>| match extents {
        Some([x, y, z]) => format!("{x}x{y}x{z}"),
        None => "?".to_owned(),
    };
    if let Some(variant) = evaluation.variants.iter().find(|variant| variant.chosen) {
        let label = if variant.label.is_empty() { String::new() } else { format!(" ({})", variant.label) };
        let _ = write!(text, "  variant {}{label}", variant.id);
    }
    if evaluation.workspace_bytes > 0 {
        let _ = write!(text, ", {} bytes of workspace", evaluation.workspace_bytes);
    }
    text.push('\n');
    for launch in &evaluation.launches {
        let shared = match launch.shared_bytes {
            0 => String::new(),
            bytes => format!(", {bytes} bytes shared"),
        };
        let (grid, block) = (extents(launch.grid), extents(launch.block));
        // An empty grid has no other launch values.
        let rest = if launch.empty { "no launch".to_owned() } else { format!("block {block}{shared}") };
        let _ = writeln!(text, "  {}: grid {grid}, {rest}", launch.kernel);
    }
    text
}

/// Keeps nodes of that name; fails if none has it.
pub fn only(report: &mut ShapesReport, model: &Model, name: &str) -> Result<(), Diagnostic> {
    let names: Vec<String> = report.nodes.iter().map(|found| found.node.node.clone()).collect();
    report.nodes.retain(|found| found.node.node == name);
    if !report.nodes.is_empty() {
        return Ok(());
    }
    let is_other = model.nodes().any(|(id, _)| node_name(model, id) == name);
    let other = is_other.then_some("the node with this name is not a plugin node");
    Err(NoNode { name, other, near: suggest(name, names.iter().map(String::as_str)) }.into())
}
