pub(super) use cubinder_source::words::{counted, quoted};

use crate::{Model, NodeId, Owner};

pub(super) fn short(name: &str) -> String {
    const MOST: usize = 120;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

pub(super) fn domain_text(domain: &str) -> String {
    if domain.is_empty() { "the default domain".to_owned() } else { format!("the domain `{domain}`") }
}

/// Formats an operator with its domain: `mmcv::RoIAlign`.
pub(super) fn full_op(domain: &str, op: &str) -> String {
    if domain.is_empty() { op.to_owned() } else { format!("{domain}::{op}") }
}

pub(super) fn node_name(model: &Model, id: NodeId) -> String {
    match model.node(id).map(|node| node.proto.name()) {
        Some(name) if !name.is_empty() => short(name),
        _ => format!("#{}", id.node + 1),
    }
}

/// `None` for the network.
pub(super) fn graph_name(model: &Model, graph: usize) -> Option<String> {
    match &model.graphs.get(graph)?.owner {
        Owner::Model => None,
        Owner::Function { domain, name, .. } => {
            Some(format!("the function {}::{}", short(domain), short(name)))
        }
        Owner::Node { node, attribute } => Some(format!("`{attribute}` of `{}`", node_name(model, *node))),
    }
}
