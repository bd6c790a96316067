//! Finds a node's owner (the standard, a function of the model, or a plugin), or why it has none.
//!
//! Owns TensorRT's lookup order (observed with TensorRT-RTX 1.7.1). Plugins match by name, `plugin_version` (default `1`) and namespace:
//!
//! 1. with the attribute `plugin_namespace`: in that namespace (the empty one if it is not text);
//! 2. an operator of TensorRT of that name, in any domain;
//! 3. a function of the model;
//! 4. without `plugin_namespace`: in the empty namespace;
//! 5. in the namespace named like the domain.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::proto::attribute_proto::AttributeType;
use crate::{Model, Node, Owner, operators};
use cubinder_model::Plugin;

use super::errors::{OtherNamespace, OtherVersion, ShadowedOperator, ShadowedPlugin};
use super::errors::{UnknownOperator, UnsupportedOperator};
use super::finding::Finding;
use super::names::{domain_text, full_op, quoted, short};
use super::plugin_fields::{kind, reference};
use super::plugins::Plugins;
use crate::diagnostic::suggest;

/// Attributes that TensorRT reads itself.
pub(super) const NAMESPACE: &str = "plugin_namespace";
pub(super) const VERSION: &str = "plugin_version";
pub(super) const AOT: &str = "aot";
pub(super) const SHAPE_INPUTS: &str = "tensorrt_plugin_shape_input_indices";

pub(super) const UNSUPPORTED: &str = "unsupported_op";

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeOwner {
    Standard,
    Function,
    Plugin(usize),
    Unmatched(UnmatchedNode),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct UnmatchedNode {
    pub(super) finding: Finding,
    pub(super) near: Option<Near>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    pub(super) place: usize,
    pub(super) kin: MatchKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchKind {
    /// The node lacks attributes and contradicts none.
    Lacks,
    /// The name matches; namespace, domain or version differ.
    Same,
    /// Several plugins match as in [`MatchKind::Same`].
    Several,
    Like,
}

pub(super) struct Finder<'a> {
    plugins: &'a Plugins,
    functions: HashSet<(&'a str, &'a str)>,
    operators: HashSet<&'static str>,
    beyond: HashSet<&'static str>,
    lacked: HashSet<&'static str>,
    /// Suggestions for [`MOST_MEANT`] unknown names: the search is slow.
    meant: RefCell<HashMap<(String, bool), Option<Meant>>>,
    names: BTreeSet<&'a str>,
}

#[derive(Debug, Clone)]
struct Meant {
    name: String,
    /// Plugin index, unless it is an operator.
    place: Option<usize>,
}

const MOST_MEANT: usize = 64;

/// TensorRT's operators outside the standard, in any domain (`supportsOperator`, TensorRT-RTX 1.7.1).
const BEYOND_THE_STANDARD: &str = include_str!("operators_of_tensorrt.txt");

/// Standard operators that TensorRT-RTX 1.7.1 lacks: plugins can replace them.
const LACKED: &str = include_str!("operators_tensorrt_lacks.txt");

impl<'a> Finder<'a> {
    pub(super) fn new(model: &'a Model, plugins: &'a Plugins) -> Finder<'a> {
        let functions = model.graphs.iter().filter_map(|graph| match &graph.owner {
            Owner::Function { domain, name, .. } => Some((domain.as_str(), name.as_str())),
            _ => None,
        });
        let default = operators::operators().filter(|(domain, _)| domain.is_empty());
        let operators: HashSet<&str> = default.map(|(_, name)| name).collect();
        Finder {
            plugins,
            functions: functions.collect(),
            names: plugins.names().chain(operators.iter().copied()).collect(),
            operators,
            beyond: BEYOND_THE_STANDARD.lines().collect(),
            lacked: LACKED.lines().collect(),
            meant: RefCell::default(),
        }
    }

    pub(super) fn whose(&self, node: &Node) -> NodeOwner {
        let (op, domain) = (node.op_type(), node.domain());
        let (namespace, version) = (TextAttribute::read(node, NAMESPACE), TextAttribute::read(node, VERSION));
        let named = |wanted: &str| {
            let mut named = self.plugins.named(op);
            let found = named.find(|(_, known)| {
                known.plugin.namespace == wanted && version.is_version(&known.plugin.version)
            });
            found.map(|(place, _)| place)
        };
        let by_attribute = match &namespace {
            TextAttribute::Text(namespace) => named(namespace),
            TextAttribute::Other => named(""),
            // Any such plugin may match.
            TextAttribute::Unknown => {
                let mut named = self.plugins.named(op);
                named.find(|(_, known)| version.is_version(&known.plugin.version)).map(|(place, _)| place)
            }
            TextAttribute::Nothing => None,
        };
        if let Some(place) = by_attribute {
            return NodeOwner::Plugin(place);
        }
        let is_lacked = self.lacked.contains(op);
        let is_operator = self.operators.contains(op) && !is_lacked;
        if is_operator && operators::is_domain(domain) {
            return NodeOwner::Standard;
        }
        if self.functions.contains(&(node.proto.domain(), op)) {
            return NodeOwner::Function;
        }
        if is_operator || self.beyond.contains(op) {
            return self.shadowed(node, is_operator).map_or(NodeOwner::Standard, NodeOwner::Unmatched);
        }
        let without_namespace = if namespace == TextAttribute::Nothing { named("") } else { None };
        if let Some(place) = without_namespace.or_else(|| named(domain)) {
            return NodeOwner::Plugin(place);
        }
        if operators::is_operator(domain, op) && !is_lacked {
            return NodeOwner::Standard;
        }
        NodeOwner::Unmatched(self.nobody(node, &namespace, &version))
    }

    fn near(&self, node: &Node) -> Option<Near> {
        let (namespace, version) = (TextAttribute::read(node, NAMESPACE), TextAttribute::read(node, VERSION));
        let mut named: Vec<(usize, &Plugin)> =
            self.plugins.named(node.op_type()).map(|(place, subject)| (place, &subject.plugin)).collect();
        let lacking: Vec<usize> =
            named.iter().filter(|(_, plugin)| lacks(node, plugin)).map(|(place, _)| *place).collect();
        if let [place] = lacking.as_slice() {
            return Some(Near { place: *place, kin: MatchKind::Lacks });
        }
        // Matching namespaces first, then matching versions.
        named.sort_by_key(|(_, plugin)| {
            let is_near = is_found(node.domain(), &namespace, plugin);
            (!is_near, !version.is_version(&plugin.version))
        });
        let kin = if named.len() > 1 { MatchKind::Several } else { MatchKind::Same };
        named.first().map(|(place, _)| Near { place: *place, kin })
    }

    fn shadowed(&self, node: &Node, is_standard: bool) -> Option<UnmatchedNode> {
        let (op, domain) = (node.op_type(), node.domain());
        let near = self.near(node);
        let found = near.and_then(|near| self.plugins.get(near.place)).map(|subject| &subject.plugin);
        let is_meant = |plugin: &Plugin| {
            plugin.namespace == domain
                || TextAttribute::read(node, NAMESPACE).text() == Some(&plugin.namespace)
        };
        let Some(plugin) = found.filter(|plugin| is_meant(plugin)) else {
            if !is_standard {
                return None;
            }
            let help = match found {
                Some(plugin) => take_over(node, plugin),
                None => format!(
                    "for a plugin, pass its library and add the attribute {NAMESPACE} to the node; for the standard operator, remove the domain"
                ),
            };
            return Some(UnmatchedNode { finding: ShadowedOperator { op, domain, help }.into(), near });
        };
        let is_named = TextAttribute::read(node, NAMESPACE).text() == Some(&plugin.namespace);
        let version = is_named.then_some(plugin.version.as_str());
        let help = match near.map(|near| near.kin) {
            Some(MatchKind::Lacks) => format!(
                "add the attribute {NAMESPACE} = \"{}\" to the node, or run `cubinder onnx annotate`",
                plugin.namespace
            ),
            _ => take_over(node, plugin),
        };
        Some(UnmatchedNode { finding: ShadowedPlugin { op, version, help }.into(), near })
    }

    fn nobody(&self, node: &Node, namespace: &TextAttribute, version: &TextAttribute) -> UnmatchedNode {
        let domain = node.domain();
        let near = self.near(node);
        let found = near.and_then(|near| Some((near, &self.plugins.get(near.place)?.plugin)));
        let Some((kin, plugin)) = found.map(|(near, plugin)| (near.kin, plugin)) else {
            return self.unknown(node);
        };
        let mend = |name: &str, value: &str| match kin {
            MatchKind::Lacks => format!("set {name} = {value:?}, or run `cubinder onnx annotate`"),
            _ => take_over(node, plugin),
        };
        if is_found(domain, namespace, plugin) {
            let found = match version {
                TextAttribute::Nothing => "no version, which means 1".to_owned(),
                TextAttribute::Text(version) => format!("version {version}"),
                TextAttribute::Other | TextAttribute::Unknown => {
                    let given = node.attribute(VERSION).map_or(AttributeType::Undefined, kind);
                    format!("a version with the ONNX type {}, expected STRING", given.as_str_name())
                }
            };
            let help = mend(VERSION, &plugin.version);
            let finding = OtherVersion { found, version: &plugin.version, help }.into();
            return UnmatchedNode { finding, near };
        }
        let place = domain_text(domain);
        let found = match (namespace, node.attribute(NAMESPACE)) {
            (TextAttribute::Text(namespace), _) => format!("the namespace `{namespace}` and {place}"),
            (TextAttribute::Other, Some(given)) => {
                format!("a namespace with the ONNX type {}, and {place}", kind(given).as_str_name())
            }
            _ => format!("{place} and no namespace"),
        };
        let help = mend(NAMESPACE, &plugin.namespace);
        UnmatchedNode { finding: OtherNamespace { found, plugin: plugin.full_name(), help }.into(), near }
    }

    fn unknown(&self, node: &Node) -> UnmatchedNode {
        let (op, domain) = (node.op_type(), node.domain());
        let is_standard = operators::is_domain(domain);
        if self.lacked.contains(op) && operators::is_operator(domain, op) {
            let plugins = match self.plugins.is_empty() {
                true => "`--plugins` is not set",
                false => "no plugin has this name",
            };
            return UnmatchedNode { finding: UnsupportedOperator { op, plugins }.into(), near: None };
        }
        let message = match () {
            () if op.is_empty() => "the node has no op type".to_owned(),
            () if is_standard && self.plugins.is_empty() => format!("unknown ONNX operator `{op}`"),
            () if is_standard => format!("unknown ONNX operator or plugin `{op}`"),
            () if self.plugins.is_empty() => format!("`{op}` requires a plugin, but `--plugins` is not set"),
            () => format!("unknown plugin `{op}`"),
        };
        let meant = self.meant(op, is_standard);
        let near =
            meant.as_ref().and_then(|meant| meant.place).map(|place| Near { place, kin: MatchKind::Like });
        let (mut note, mut help) = (None, None);
        match &meant {
            Some(_) => {}
            None if self.plugins.is_empty() => {
                help = Some("pass the plugin library, such as `--plugins build/lib<name>.so`".to_owned());
            }
            None => {
                note = Some(format!("the plugins are {}", names(self.plugins)));
                help = Some("pass the library with the plugin, too: repeat `--plugins`".to_owned());
            }
        }
        let meant = meant.map(|meant| meant.name);
        UnmatchedNode { finding: UnknownOperator { message, near: meant, note, help }.into(), near }
    }

    /// In the standard's domain, also operators.
    fn meant(&self, op: &str, is_standard: bool) -> Option<Meant> {
        let mut meant = self.meant.borrow_mut();
        let key = (op.to_owned(), is_standard);
        if let Some(known) = meant.get(&key) {
            return known.clone();
        }
        if meant.len() >= MOST_MEANT {
            return None;
        }
        let is_plugins = |name: &&str| self.plugins.named(name).next().is_some();
        let known = self.names.iter().copied().filter(|name| is_standard || is_plugins(name));
        let near = suggest(op, known).map(|name| Meant {
            name: name.to_owned(),
            place: self.plugins.named(name).next().map(|(place, _)| place),
        });
        meant.insert(key, near.clone());
        near
    }
}

fn is_found(domain: &str, stated: &TextAttribute, plugin: &Plugin) -> bool {
    plugin.namespace == domain || plugin.namespace == stated.text().unwrap_or("")
}

/// Whether more attributes would assign the node to the plugin.
fn lacks(node: &Node, plugin: &Plugin) -> bool {
    let is_in = match TextAttribute::read(node, NAMESPACE) {
        TextAttribute::Text(namespace) => namespace == plugin.namespace,
        TextAttribute::Nothing => node.domain().is_empty() || node.domain() == plugin.namespace,
        TextAttribute::Other | TextAttribute::Unknown => false,
    };
    let is_of = match TextAttribute::read(node, VERSION) {
        TextAttribute::Nothing => true,
        // An integer with the version's digits matches.
        TextAttribute::Other => node.attribute(VERSION).is_some_and(|stated| {
            kind(stated) == AttributeType::Int && stated.i().to_string() == plugin.version
        }),
        stated => stated.is_version(&plugin.version),
    };
    is_in && is_of
}

fn take_over(node: &Node, plugin: &Plugin) -> String {
    let (op, domain) = (short(node.op_type()), short(node.domain()));
    let from = full_op(&domain, &op);
    let to = plugin.full_name();
    format!(
        "if the node is for the plugin, run `cubinder onnx annotate --map {from}={to}` with the model, `--plugins` and `--output`"
    )
}

fn names(plugins: &Plugins) -> String {
    let names: BTreeSet<&str> = plugins.names().collect();
    let more = names.len().saturating_sub(16);
    let shown = quoted(names.iter().take(16));
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TextAttribute {
    Nothing,
    Text(String),
    /// Another type, which TensorRT does not read as text.
    Other,
    /// Refers to an unknown value of a function's call.
    Unknown,
}

impl TextAttribute {
    fn read(node: &Node, name: &str) -> TextAttribute {
        match node.attribute(name) {
            None => TextAttribute::Nothing,
            Some(attribute) if reference(attribute).is_some() => TextAttribute::Unknown,
            Some(attribute) if kind(attribute) == AttributeType::String => {
                TextAttribute::Text(String::from_utf8_lossy(attribute.s()).into_owned())
            }
            Some(_) => TextAttribute::Other,
        }
    }

    fn text(&self) -> Option<&str> {
        if let TextAttribute::Text(text) = self { Some(text) } else { None }
    }

    fn is_version(&self, version: &str) -> bool {
        match self {
            TextAttribute::Nothing => version == "1",
            TextAttribute::Text(stated) => stated == version,
            TextAttribute::Other => false,
            TextAttribute::Unknown => true,
        }
    }
}
