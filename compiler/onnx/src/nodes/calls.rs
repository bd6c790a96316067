//! Resolves `ref_attr_name` from a function's calls; it stays a reference if they differ or omit it.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::proto::AttributeProto;
use crate::{Model, Node, NodeId, Owner};

use super::plugin_fields::reference;

type Name<'m> = (&'m str, &'m str, &'m str);

pub(super) struct Calls<'m> {
    model: &'m Model,
    agreed: HashMap<Name<'m>, HashMap<&'m str, &'m AttributeProto>>,
}

impl<'m> Calls<'m> {
    pub(super) fn new(model: &'m Model) -> Calls<'m> {
        let mut calls: HashMap<Name<'m>, Vec<&'m Node>> =
            model.graphs.iter().filter_map(|graph| Some((function(&graph.owner)?, Vec::new()))).collect();
        if !calls.is_empty() {
            for (_, node) in model.nodes() {
                let name = (node.proto.domain(), node.op_type(), node.proto.overload());
                if let Some(calls) = calls.get_mut(&name) {
                    calls.push(node);
                }
            }
        }
        let agreed = calls.into_iter().map(|(name, calls)| (name, agreed(&calls))).collect();
        Calls { model, agreed }
    }

    pub(super) fn resolved(&self, id: NodeId, node: &'m Node) -> Cow<'m, Node> {
        let is_reference = |stated: &AttributeProto| reference(stated).is_some();
        if !node.proto.attribute.iter().any(is_reference) {
            return Cow::Borrowed(node);
        }
        let mut resolved = node.clone();
        for stated in &mut resolved.proto.attribute {
            if let Some(value) = reference(stated).and_then(|name| self.value(id, name)) {
                let name = stated.name.take();
                *stated = AttributeProto { name, ..value.clone() };
            }
        }
        Cow::Owned(resolved)
    }

    fn value(&self, id: NodeId, name: &str) -> Option<&'m AttributeProto> {
        let root = self.model.root_of(id.graph).and_then(|root| self.model.graphs.get(root))?;
        self.agreed.get(&function(&root.owner)?)?.get(name).copied()
    }
}

fn agreed<'m>(calls: &[&'m Node]) -> HashMap<&'m str, &'m AttributeProto> {
    let mut agreed: Option<HashMap<&str, Option<&'m AttributeProto>>> = None;
    for node in calls {
        let mut own = HashMap::new();
        for value in &node.proto.attribute {
            // Unknown if a reference or repeated.
            let stated = Some(value).filter(|value| reference(value).is_none());
            own.entry(value.name()).and_modify(|known| *known = None).or_insert(stated);
        }
        match &mut agreed {
            None => agreed = Some(own),
            Some(agreed) => agreed.retain(|name, value| own.get(name) == Some(value)),
        }
    }
    agreed.into_iter().flatten().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn function(owner: &Owner) -> Option<Name<'_>> {
    match owner {
        Owner::Function { domain, name, overload, .. } => Some((domain, name, overload)),
        _ => None,
    }
}
