//! Writes TensorRT's attributes into plugin nodes: namespace, version, `aot`, shape input indices, domain, and defaults.
//!
//! Keeps existing values and, unless the user overrides (`Mapping`, `AnnotationScope`), other plugins' nodes.
//! Never changes references to a function's call, or nodes with an ambiguous plugin.

use std::collections::{BTreeSet, HashMap};

use crate::proto::AttributeProto;
use crate::proto::attribute_proto::AttributeType;
use crate::{Edits, Model, Node, NodeId, Owner, operators};
use cubinder_expr::Value;
use cubinder_model::{Attribute, AttributeElement, Plugin};
use serde::Serialize;

use super::calls::Calls;
use super::check::{MOST_REPORTED, meant, shape_input_indices, unknown};
use super::errors::{MappedTwice, NoMappedNode, NoMappedPlugin, NoMapping, SeveralMappedPlugins};
use super::find::{AOT, Finder, MatchKind, NAMESPACE, Near, NodeOwner, SHAPE_INPUTS, UnmatchedNode, VERSION};
use super::names::{counted, domain_text, full_op, graph_name, node_name, quoted};
use super::plugin_fields::{kind, reference};
use super::plugins::Plugins;
use crate::diagnostic::{Diagnostic, harmless, suggest};

/// Edits of a model, with their description.
#[derive(Debug)]
pub struct Annotated<'m> {
    /// Edits.
    pub edits: Edits<'m>,
    /// Changed nodes, in file order.
    pub nodes: Vec<NodeChanges>,
    /// Domains newly imported by the model or a function.
    pub imports: Vec<Import>,
}

/// Changes of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeChanges {
    /// Name; `#3` if it has none.
    pub node: String,
    /// Graph, unless that is the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// Changes, in display order.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `domain`, `op_type`, or an attribute.
    pub what: String,
    /// Old value; `None` if absent.
    pub before: Option<String>,
    /// New value.
    pub after: String,
}

/// Added operator set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Import {
    /// Function; `None` for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Domain.
    pub domain: String,
    /// Version.
    pub version: i64,
}

/// Maps nodes, by domain and op type, to plugins.
#[derive(Debug, Clone, Default)]
pub struct Mapping(HashMap<(String, String), usize>);

impl Mapping {
    /// Parses `DOMAIN::OP=PLUGIN`; domain and namespace are optional. Rejects unknown or ambiguous plugins.
    pub fn parse(texts: &[String], plugins: &Plugins) -> Result<Mapping, Vec<Diagnostic>> {
        let mut mapping = Mapping::default();
        let mut errors = Vec::new();
        for text in texts {
            match parse_one(text, plugins) {
                Ok((key, place)) => {
                    if mapping.0.insert(key, place).is_some() {
                        errors.push(MappedTwice { text }.into());
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(mapping) } else { Err(errors) }
    }

    /// Reports entries that match no node of a model.
    #[must_use]
    pub fn unused(&self, model: &Model) -> Vec<Diagnostic> {
        let known: BTreeSet<(String, String)> = model.nodes().map(|(_, node)| key(node)).collect();
        let unused: BTreeSet<_> = self.0.keys().filter(|name| !known.contains(*name)).collect();
        unused.into_iter().map(|name| no_node(name, &known)).collect()
    }
}

fn key(node: &Node) -> (String, String) {
    (node.domain().to_owned(), node.op_type().to_owned())
}

fn no_node((domain, op): &(String, String), known: &BTreeSet<(String, String)>) -> Diagnostic {
    let full = |(domain, op): &(String, String)| full_op(domain, op);
    let name = full_op(domain, op);
    let same = known.iter().filter(|(_, other)| other == op).take(4).map(full);
    let same = Some(quoted(same)).filter(|same| !same.is_empty());
    let foreign: Vec<String> =
        known.iter().filter(|(domain, _)| !operators::is_domain(domain)).map(full).collect();
    let near = suggest(&name, foreign.iter().map(String::as_str)).filter(|_| same.is_none());
    NoMappedNode { name: name.clone(), op, place: domain_text(domain), same, near }.into()
}

fn parse_one(text: &str, plugins: &Plugins) -> Result<((String, String), usize), Diagnostic> {
    let pair = text.split_once('=').map(|(from, to)| (from.trim(), to.trim()));
    let Some((from, to)) = pair.filter(|(from, to)| !from.is_empty() && !to.is_empty()) else {
        return Err(NoMapping { text }.into());
    };
    let (domain, op) = from.rsplit_once("::").unwrap_or(("", from));
    let domain = if domain == "ai.onnx" { "" } else { domain };
    let name = to.rsplit("::").next().unwrap_or(to);
    let is_meant = |plugin: &Plugin| to == name || plugin.full_name() == to;
    let found: Vec<usize> =
        plugins.named(name).filter(|(_, known)| is_meant(&known.plugin)).map(|(place, _)| place).collect();
    match found.as_slice() {
        [place] => Ok(((domain.to_owned(), op.to_owned()), *place)),
        [] => Err(NoMappedPlugin { text, plugin: to, near: suggest(name, plugins.names()) }.into()),
        _ => Err(SeveralMappedPlugins { text, plugin: to }.into()),
    }
}

/// Nodes to assign to a plugin, besides those in a [`Mapping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnnotationScope {
    /// Nodes that lack attributes and contradict none.
    #[default]
    Lacking,
    /// Also nodes that have the plugin's name, but another namespace, domain or version.
    Named,
}

impl AnnotationScope {
    fn takes(self, near: Near) -> bool {
        near.kin == MatchKind::Lacks || self == AnnotationScope::Named && near.kin == MatchKind::Same
    }
}

/// Computes the edits.
#[must_use]
pub fn annotate<'m>(
    model: &'m Model,
    plugins: &Plugins,
    mapping: &Mapping,
    takes: AnnotationScope,
) -> Annotated<'m> {
    let finder = Finder::new(model, plugins);
    let calls = Calls::new(model);
    let mut done = Annotated { edits: Edits::new(model), nodes: Vec::new(), imports: Vec::new() };
    let mut imports: BTreeSet<(usize, String)> = BTreeSet::new();
    for (id, node) in model.nodes() {
        let mapped = mapping.0.get(&key(node)).copied();
        let resolved = calls.resolved(id, node);
        let whose = if mapped.is_some() { NodeOwner::Standard } else { finder.whose(&resolved) };
        let (found, becomes) = match (mapped, whose) {
            (Some(place), _) => (place, true),
            (_, NodeOwner::Plugin(place)) => (place, false),
            (_, NodeOwner::Unmatched(UnmatchedNode { near: Some(near), .. })) if takes.takes(near) => {
                (near.place, true)
            }
            _ => continue,
        };
        let Some(plugin) = plugins.get(found).map(|subject| &subject.plugin) else { continue };
        if is_of_calls(node, &resolved, plugin) {
            continue;
        }
        let changes = change(&mut done.edits, id, node, (plugin, becomes));
        if !changes.is_empty() {
            let (name, graph) = (node_name(model, id), graph_name(model, id.graph));
            done.nodes.push(NodeChanges { node: name, graph, plugin: plugin.full_name(), changes });
        }
        let is_imported = model.opsets_of(id.graph).iter().any(|known| known.domain() == plugin.namespace);
        let is_there = is_imported || plugin.namespace.is_empty();
        let is_of = becomes || node.domain() == plugin.namespace;
        if let Some(root) = model.root_of(id.graph).filter(|_| is_of && !is_there) {
            imports.insert((root, plugin.namespace.clone()));
        }
    }
    for (root, domain) in imports {
        let function = match model.graphs.get(root).map(|graph| &graph.owner) {
            Some(Owner::Function { domain, name, .. }) => Some(format!("{domain}::{name}")),
            _ => None,
        };
        done.edits.import(root, &domain, 1);
        done.imports.push(Import { function, domain, version: 1 });
    }
    done
}

fn is_of_calls(node: &Node, resolved: &Node, plugin: &Plugin) -> bool {
    let own = [(NAMESPACE, &plugin.namespace), (VERSION, &plugin.version)];
    own.into_iter().any(|(name, value)| is_reference(node, name) && !is_text(resolved, name, value))
}

fn is_reference(node: &Node, name: &str) -> bool {
    node.proto.attribute.iter().any(|stated| stated.name() == name && reference(stated).is_some())
}

fn is_text(node: &Node, name: &str, value: &str) -> bool {
    let is_right = |stated: &AttributeProto| {
        reference(stated).is_none() && kind(stated) == AttributeType::String && stated.s() == value.as_bytes()
    };
    node.attribute(name).is_some_and(is_right)
}

/// New assignments (`becomes`) also set namespace, version and domain.
fn change(edits: &mut Edits<'_>, id: NodeId, node: &Node, (plugin, becomes): (&Plugin, bool)) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut add = |what: &str, before: Option<String>, after: String| {
        changes.push(Change { what: what.to_owned(), before, after });
    };
    let text = |text: &str| format!("{text:?}");
    if node.op_type() != plugin.name {
        edits.set_op_type(id, &plugin.name);
        add("op_type", Some(text(node.op_type())), text(&plugin.name));
    }
    if becomes && node.domain() != plugin.namespace {
        edits.set_domain(id, &plugin.namespace);
        add("domain", node.proto.domain.as_deref().map(text), text(&plugin.namespace));
    }
    for wanted in wanted(node, plugin) {
        edits.set_attribute(id, &wanted);
        add(wanted.name(), node.attribute(wanted.name()).map(shown), shown(&wanted));
    }
    changes
}

fn wanted(node: &Node, plugin: &Plugin) -> Vec<AttributeProto> {
    let mut wanted = Vec::new();
    for (name, value) in [(NAMESPACE, &plugin.namespace), (VERSION, &plugin.version)] {
        if !is_reference(node, name) && !is_text(node, name, value) {
            wanted.push(AttributeProto {
                s: Some(value.clone().into_bytes()),
                ..attribute_of(name, AttributeType::String)
            });
        }
    }
    // 0 is a valid choice.
    let is_kept = |stated: &AttributeProto| kind(stated) == AttributeType::Int;
    if !is_reference(node, AOT) && !node.attribute(AOT).is_some_and(is_kept) {
        wanted.push(AttributeProto { i: Some(1), ..attribute_of(AOT, AttributeType::Int) });
    }
    let indices = shape_input_indices(plugin);
    let is_right = match node.attribute(SHAPE_INPUTS) {
        None => indices.is_empty(),
        Some(_) if is_reference(node, SHAPE_INPUTS) => true,
        Some(stated) => kind(stated) == AttributeType::Ints && stated.ints == indices,
    };
    if !is_right {
        wanted.push(AttributeProto { ints: indices, ..attribute_of(SHAPE_INPUTS, AttributeType::Ints) });
    }
    // Defaults would hide misspelled attributes.
    let unknown = unknown(plugin, node).take(MOST_REPORTED);
    let mistaken: Vec<&str> = unknown.filter_map(|name| meant(plugin, node, name)).collect();
    let is_missing = |attribute: &&Attribute| {
        node.attribute(&attribute.name).is_none() && !mistaken.contains(&attribute.name.as_str())
    };
    wanted.extend(plugin.attributes.iter().filter(is_missing).filter_map(default));
    wanted
}

fn attribute_of(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind as i32), ..AttributeProto::default() }
}

/// `None` if TensorRT's parser would change it.
fn default(attribute: &Attribute) -> Option<AttributeProto> {
    let value = attribute.default.as_ref()?;
    let name = attribute.name.as_str();
    if attribute.ty.element == AttributeElement::Bytes {
        let bytes: Option<Vec<u8>> = value
            .as_ints()?
            .into_iter()
            .map(|byte| u8::try_from(byte).ok().filter(|byte| *byte != 0))
            .collect();
        return Some(AttributeProto { s: Some(bytes?), ..attribute_of(name, AttributeType::String) });
    }
    let values = match value {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let is_list = attribute.ty.list;
    let kind = |list, one| attribute_of(name, if is_list { list } else { one });
    Some(match attribute.ty.element {
        AttributeElement::String => {
            let (s, strings) = one_or_list(values, is_list, text)?;
            AttributeProto { s, strings, ..kind(AttributeType::Strings, AttributeType::String) }
        }
        element if element.is_float() => {
            let (f, floats) = one_or_list(values, is_list, float)?;
            AttributeProto { f, floats, ..kind(AttributeType::Floats, AttributeType::Float) }
        }
        _ => {
            let (i, ints) = one_or_list(values, is_list, integer)?;
            AttributeProto { i, ints, ..kind(AttributeType::Ints, AttributeType::Int) }
        }
    })
}

fn one_or_list<T>(
    values: &[Value],
    is_list: bool,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<(Option<T>, Vec<T>)> {
    let all: Vec<T> = values.iter().map(read).collect::<Option<_>>()?;
    Some(if is_list { (None, all) } else { (all.into_iter().next(), Vec::new()) })
}

fn text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Str(text) if !text.contains('\0') => Some(text.clone().into_bytes()),
        _ => None,
    }
}

#[allow(clippy::float_cmp)] // Exactness is the test.
fn float(value: &Value) -> Option<f32> {
    match value {
        Value::Float(value) => Some(*value as f32).filter(|rounded| f64::from(*rounded) == *value),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(value) => i32::try_from(*value).ok().map(i64::from),
        Value::Bool(value) => Some((*value).into()),
        _ => None,
    }
}

fn shown(attribute: &AttributeProto) -> String {
    const MOST: usize = 16;
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let short: String = text.chars().take(64).collect();
        if short.len() < text.len() { format!("{short:?}...") } else { format!("{short:?}") }
    };
    if let Some(name) = reference(attribute) {
        return format!("(`{name}` of each call)");
    }
    let float = |value: f32| format!("{value:?}");
    let items: Vec<String> = match kind(attribute) {
        AttributeType::Int => return attribute.i().to_string(),
        AttributeType::Float => return float(attribute.f()),
        AttributeType::String => return text(attribute.s()),
        AttributeType::Ints => attribute.ints.iter().take(MOST + 1).map(i64::to_string).collect(),
        AttributeType::Floats => attribute.floats.iter().take(MOST + 1).copied().map(float).collect(),
        AttributeType::Strings => attribute.strings.iter().take(MOST + 1).map(|value| text(value)).collect(),
        other => return format!("({})", other.as_str_name()),
    };
    let more = if items.len() > MOST { ", ..." } else { "" };
    let shown = items.get(..MOST).unwrap_or(&items);
    format!("[{}{more}]", shown.join(", "))
}

/// Formats a diff with a final newline. Escapes control characters.
#[must_use]
pub fn diff(annotated: &Annotated<'_>, is_written: bool) -> String {
    let mut text = String::new();
    for node in &annotated.nodes {
        let place = node.graph.as_ref().map_or_else(String::new, |graph| format!(" in {graph}"));
        text.push_str(&format!("node `{}` ({}){place}\n", node.node, node.plugin));
        for change in &node.changes {
            if let Some(before) = &change.before {
                text.push_str(&format!("  - {} = {before}\n", change.what));
            }
            text.push_str(&format!("  + {} = {}\n", change.what, change.after));
        }
    }
    let mut last = None;
    for import in &annotated.imports {
        if last.replace(&import.function) != Some(&import.function) {
            let place = import.function.as_ref();
            let place = place.map_or_else(|| "the model".to_owned(), |name| format!("the function {name}"));
            text.push_str(&format!("operator sets of {place}\n"));
        }
        text.push_str(&format!("  + {} = {}\n", import.domain, import.version));
    }
    let summary = match annotated.nodes.len() {
        0 if annotated.imports.is_empty() => "nothing to change".to_owned(),
        count if is_written => format!("{} changed", counted(count, "node")),
        count => format!("{} would change", counted(count, "node")),
    };
    harmless(&format!("{text}{summary}\n"), false)
}

#[cfg(test)]
mod tests {
    use cubinder_model::AttributeType;

    use super::*;

    /// The parser would change omitted defaults; the plugin has them.
    #[test]
    fn defaults_are_written_where_they_arrive_as_they_are() {
        use AttributeElement as E;
        let ints = |values: &[i64]| Value::Array(values.iter().copied().map(Value::Int).collect());
        let text = |text: &str| Value::Str(text.to_owned());
        let shown = |element, list, value: Value| {
            let ty = AttributeType { element, list };
            let attribute = Attribute { default: Some(value), ..Attribute::new("a", ty) };
            super::default(&attribute).map(|attribute| super::shown(&attribute))
        };
        let least = i64::from(i32::MIN);
        for (element, list, value, expected) in [
            (E::I64, false, Value::Int(least), Some("-2147483648")),
            (E::I64, false, Value::Int(least - 1), None),
            (E::I64, false, Value::Int(-least), None),
            (E::I64, true, ints(&[1, -least - 1]), Some("[1, 2147483647]")),
            (E::I64, true, ints(&[1, -least]), None),
            (E::Bool, false, Value::Bool(true), Some("1")),
            (E::F32, false, Value::Float(f64::from(0.1_f32)), Some("0.1")),
            (E::F64, false, Value::Float(0.5), Some("0.5")),
            (E::F64, false, Value::Float(0.1), None),
            (E::F64, true, Value::Array(vec![Value::Float(0.5), Value::Float(1e300)]), None),
            (E::String, false, text("wrap"), Some("\"wrap\"")),
            (E::String, false, text("a\0b"), None),
            (E::String, true, Value::Array(vec![text("a"), text("b\0")]), None),
            (E::Bytes, false, ints(&[1, 255]), Some("\"\\u{1}\u{fffd}\"")),
            (E::Bytes, false, ints(&[1, 0, 2]), None),
        ] {
            let place = format!("{element:?} {value:?}");
            assert_eq!(shown(element, list, value).as_deref(), expected, "{place}");
        }
        assert!(super::default(&Attribute::new("a", AttributeType::I32)).is_none());
    }
}
