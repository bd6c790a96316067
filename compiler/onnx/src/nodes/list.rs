//! Lists plugin nodes: owns the walk in dataflow order, the report ([`Report`]) and its text ([`table()`]).

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::{Model, Node, NodeId};
use cubinder_model::Plugin;
use serde::Serialize;

use super::calls::Calls;
use super::check::{self, Checked};
use super::errors::{OutputShapeDiffers, OutputTypeDiffers, StaleShape, StaleType};
use super::find::{Finder, MatchKind, NodeOwner, UNSUPPORTED, UnmatchedNode};
use super::finding::Finding;
use super::names::{counted, full_op, graph_name, node_name, short};
use super::plugins::Plugins;
use super::producers::Producers;
use super::standard;
use super::tensors::{Dim, Tensor, Tensors, in_order};
use crate::columns::columns;
use crate::diagnostic::{Diagnostic, harmless};
use crate::eval::Subject;
use crate::reported_path::ReportedPath;

/// Plugin nodes of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Model path, as the user wrote it.
    pub file: ReportedPath,
    /// Number of nodes, including inner graphs and functions.
    pub nodes_in_all: usize,
    /// Plugin nodes and nodes without an owner, in file order.
    pub nodes: Vec<NodeReport>,
    /// External weight files, which are not opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external_files: Vec<String>,
}

/// Node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeReport {
    /// Name; `#3` for an unnamed third node of its graph.
    pub node: String,
    /// Graph, unless that is the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Op type.
    pub op_type: String,
    /// Domain.
    pub domain: String,
    /// Plugin to check against: `sample::circ_pad_plugin`; `None` without a similar one.
    pub plugin: Option<String>,
    /// Plugin version.
    pub version: Option<String>,
    /// Inputs.
    pub inputs: Vec<TensorReport>,
    /// Outputs.
    pub outputs: Vec<TensorReport>,
    /// Problems.
    pub findings: Vec<Finding>,
}

/// Tensor of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorReport {
    /// Name in the model; empty if omitted.
    pub name: String,
    /// Name in the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Element type: a manifest's name, else ONNX's.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// Shape, `10x3x?xwidth`; `None` if the rank is unknown.
    pub shape: Option<String>,
    /// Dimensions.
    pub dims: Option<Vec<Dim>>,
}

impl Report {
    /// Returns all findings; merges an op type's equal ones.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        folded(&self.nodes)
    }

    /// Returns whether TensorRT would fail or compute wrong results.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.nodes.iter().flat_map(|node| &node.findings).any(Finding::is_error)
    }
}

/// Merges at least [`MANY`] equal findings of one op type.
pub(super) fn folded<'r>(nodes: impl IntoIterator<Item = &'r NodeReport>) -> Vec<Diagnostic> {
    let mut places: HashMap<(String, &Finding), usize> = HashMap::new();
    let mut alike: Vec<(&Finding, Vec<&NodeReport>)> = Vec::new();
    for node in nodes {
        for finding in &node.findings {
            let place = *places.entry((node.op(), finding)).or_insert(alike.len());
            match alike.get_mut(place) {
                Some((_, nodes)) => nodes.push(node),
                None => alike.push((finding, vec![node])),
            }
        }
    }
    let of = |(finding, nodes): (&Finding, Vec<&NodeReport>)| match nodes.as_slice() {
        [first, rest @ ..] if nodes.len() >= MANY => {
            let title = format!("node `{}` and {} more ({})", first.node, rest.len(), first.op());
            vec![finding.diagnostic(&title)]
        }
        _ => nodes.iter().map(|node| finding.diagnostic(&node.title())).collect(),
    };
    alike.into_iter().flat_map(of).collect()
}

const MANY: usize = 4;

impl NodeReport {
    /// Returns the node as in messages: ``node `pad_1` (sample::circ_pad_plugin)``.
    #[must_use]
    pub fn title(&self) -> String {
        let place = self.graph.as_ref().map_or_else(String::new, |graph| format!(" in {graph}"));
        format!("node `{}` ({}){place}", self.node, self.op())
    }

    fn op(&self) -> String {
        full_op(&self.domain, &self.op_type)
    }
}

pub(super) struct VisitedNode<'a> {
    pub(super) id: NodeId,
    pub(super) whose: NodeOwner,
    pub(super) subject: Option<&'a Subject>,
    pub(super) inputs: Vec<Tensor>,
    pub(super) checked: Checked,
}

/// Adds outputs to `tensors` in dataflow order. Returns plugin and unowned nodes in file order.
pub(super) fn walk<'a>(
    model: &'a Model,
    plugins: &'a Plugins,
    tensors: &mut Tensors,
) -> Vec<VisitedNode<'a>> {
    let finder = Finder::new(model, plugins);
    let calls = Calls::new(model);
    let mut producers = Producers::new(model);
    let mut met = Vec::new();
    let mut of_plugins: HashSet<(usize, String)> = HashSet::new();
    for (graph, found) in model.graphs.iter().enumerate() {
        for node in in_order(found) {
            let id = NodeId { graph, node };
            let Some(node) = found.nodes.get(node) else { continue };
            let node = calls.resolved(id, node);
            let node = node.as_ref();
            let input = |name: &String| tensors.get(graph, name).cloned().unwrap_or_default();
            let inputs: Vec<Tensor> = node.proto.input.iter().map(input).collect();
            let whose = finder.whose(node);
            let subject = match whose {
                NodeOwner::Plugin(place) => plugins.get(place),
                _ => None,
            };
            let mut checked = match (&whose, subject) {
                (_, Some(subject)) => check::check(&subject.plugin, node, &inputs),
                (NodeOwner::Standard, _) if node.domain().is_empty() => {
                    Checked { outputs: standard::outputs(node, &inputs), ..Checked::default() }
                }
                (NodeOwner::Unmatched(nobody), _) => of_nobody(nobody, plugins, node, &inputs),
                _ => Checked::default(),
            };
            if let Some(subject) = subject {
                checked.findings.extend(producers.missing(graph, node));
                // Plugin outputs are reported with their nodes.
                let stale = |name: &String| {
                    let is_plugins = of_plugins.contains(&(graph, name.clone()));
                    tensors.stale(graph, name).filter(|_| !is_plugins)
                };
                let names = node.proto.input.iter().zip(&inputs);
                let stale: Vec<Finding> = names
                    .filter_map(|(name, input)| {
                        Some(match difference(stale(name)?, input)? {
                            Difference::Type(known, ty) => StaleType { name, known, ty }.into(),
                            Difference::Shape(known, shape) => StaleShape { name, known, shape }.into(),
                        })
                    })
                    .collect();
                checked.findings.extend(stale);
                let given = node.proto.output.iter().zip(&checked.outputs);
                let differing: Vec<Finding> = given
                    .filter_map(|(name, tensor)| {
                        let plugin = subject.plugin.full_name();
                        Some(match difference(tensors.get(graph, name)?, tensor)? {
                            Difference::Type(known, ty) => {
                                OutputTypeDiffers { name, known, ty, plugin }.into()
                            }
                            Difference::Shape(known, shape) => {
                                OutputShapeDiffers { name, known, shape, plugin }.into()
                            }
                        })
                    })
                    .collect();
                checked.findings.extend(differing);
                of_plugins.extend(node.proto.output.iter().map(|name| (graph, name.clone())));
            }
            for (name, tensor) in node.proto.output.iter().zip(&checked.outputs) {
                tensors.found(graph, name, tensor.clone());
            }
            if !matches!(whose, NodeOwner::Standard | NodeOwner::Function) {
                met.push(VisitedNode { id, whose, subject, inputs, checked });
            }
        }
    }
    met.sort_by_key(|met| met.id);
    met
}

enum Difference {
    Type(String, String),
    Shape(String, String),
}

fn difference(described: &Tensor, given: &Tensor) -> Option<Difference> {
    if described.is_other_type(given) {
        return Some(Difference::Type(described.type_text()?, given.type_text()?));
    }
    let is_other = described.is_other_shape(given);
    is_other.then(|| Some(Difference::Shape(described.shape_text()?, given.shape_text()?))).flatten()
}

/// Uses the probable plugin; outputs stay unknown.
fn of_nobody(nobody: &UnmatchedNode, plugins: &Plugins, node: &Node, inputs: &[Tensor]) -> Checked {
    let mut findings = vec![nobody.finding.clone()];
    let near = nobody.near.filter(|_| nobody.finding.is_error());
    if let Some((near, subject)) = near.and_then(|near| Some((near, plugins.get(near.place)?))) {
        let plugin = &subject.plugin;
        let held = format!("compared with `{}`, version {}", plugin.full_name(), plugin.version);
        let more = check::check(plugin, node, inputs).findings;
        let more = more.into_iter().filter(|_| near.kin != MatchKind::Several);
        findings.extend(
            more.map(
                |finding| if near.kin == MatchKind::Lacks { finding } else { finding.note(held.clone()) },
            ),
        );
    }
    // The standard applies even if TensorRT lacks the operator.
    let is_standard = nobody.finding.problem == UNSUPPORTED && node.domain().is_empty();
    let outputs = if is_standard { standard::outputs(node, inputs) } else { Vec::new() };
    Checked { findings, outputs, ..Checked::default() }
}

/// Lists a model's plugin nodes and nodes without an owner.
#[must_use]
pub fn list(file: impl AsRef<Path>, model: &Model, plugins: &Plugins) -> Report {
    let mut tensors = Tensors::new(model);
    let met = walk(model, plugins, &mut tensors);
    let nodes = met.into_iter().filter_map(|met| report(model, plugins, &tensors, met)).collect();
    Report {
        file: ReportedPath::from(&file),
        nodes_in_all: model.graphs.iter().map(|graph| graph.nodes.len()).sum(),
        nodes,
        external_files: model.external_files.iter().cloned().collect(),
    }
}

pub(super) fn report(
    model: &Model,
    plugins: &Plugins,
    tensors: &Tensors,
    met: VisitedNode<'_>,
) -> Option<NodeReport> {
    let node = model.node(met.id)?;
    let near = match met.whose {
        NodeOwner::Unmatched(nobody) => {
            let near = nobody.near.filter(|near| near.kin != MatchKind::Like);
            near.and_then(|near| plugins.get(near.place))
        }
        _ => met.subject,
    };
    let plugin = near.map(|subject| &subject.plugin);
    let tensor = |name: &String, index: usize, known: Option<&Tensor>| TensorReport {
        name: name.clone(),
        parameter: plugin.and_then(|plugin| plugin.tensor_name(index)).map(str::to_owned),
        ty: known.and_then(Tensor::type_text),
        shape: known.and_then(Tensor::shape_text),
        dims: known.and_then(|tensor| tensor.dims.clone()),
    };
    let inputs = node.proto.input.iter().enumerate();
    let inputs = inputs.map(|(index, name)| tensor(name, index, met.inputs.get(index))).collect();
    let first_output = plugin.map_or(usize::MAX / 2, |plugin| plugin.inputs.len());
    let outputs = node.proto.output.iter().enumerate();
    let outputs = outputs
        .map(|(index, name)| tensor(name, first_output + index, tensors.get(met.id.graph, name)))
        .collect();
    Some(NodeReport {
        node: node_name(model, met.id),
        graph: graph_name(model, met.id.graph),
        op_type: short(node.op_type()),
        domain: short(node.domain()),
        plugin: plugin.map(Plugin::full_name),
        version: plugin.map(|plugin| plugin.version.clone()),
        inputs,
        outputs,
        findings: met.checked.findings,
    })
}

/// Formats the report with a final newline. Escapes control characters.
#[must_use]
pub fn table(report: &Report) -> String {
    let count = report.nodes.len();
    let nobodys = report.nodes.iter().filter(|node| node.plugin.is_none()).count();
    let mut text = format!("{}: {}, ", report.file, counted(report.nodes_in_all, "node"));
    text.push_str(&match count - nobodys {
        0 => "no plugin nodes".to_owned(),
        count => counted(count, "plugin node"),
    });
    if nobodys > 0 {
        text.push_str(&format!(", {}", counted(nobodys, "unresolved node")));
    }
    text.push('\n');
    if count > 0 {
        text.push('\n');
        let head = ["node", "plugin", "version", "inputs", "outputs"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(report.nodes.iter().map(row)).collect();
        text.push_str(&columns(&rows, 0, &[]));
    }
    harmless(&text, false)
}

pub(super) fn tensor_list(all: &[TensorReport]) -> String {
    all.iter().map(TensorReport::to_string).collect::<Vec<_>>().join(", ")
}

fn row(node: &NodeReport) -> Vec<String> {
    let is_wrong = node.findings.iter().any(Finding::is_error);
    let mark = if is_wrong { "! " } else { "  " };
    let plugin = match (&node.plugin, node.op()) {
        (Some(plugin), op) if *plugin == op => op,
        (Some(plugin), op) => format!("{op} (near {plugin})"),
        (None, op) => format!("{op} (none)"),
    };
    let plugin = if is_wrong { plugin } else { node.plugin.clone().unwrap_or(plugin) };
    vec![
        format!("{mark}{}", node.node),
        plugin,
        node.version.clone().unwrap_or_else(|| "-".to_owned()),
        tensor_list(&node.inputs),
        tensor_list(&node.outputs),
    ]
}

impl std::fmt::Display for TensorReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.is_empty() {
            return f.write_str("(omitted)");
        }
        let (ty, shape) = (self.ty.as_deref().unwrap_or("?"), self.shape.as_deref().unwrap_or("?"));
        write!(f, "{} {ty} {shape}", self.name)
    }
}
