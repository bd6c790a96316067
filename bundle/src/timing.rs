//! On what the time of a node depends, apart from its tensors.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::code::Target;
use crate::container::encode;
use crate::digest::Digest;
use crate::expr::Node as Part;
use crate::model::{Node, Plugin};
use crate::value::Value;

#[derive(Serialize)]
struct Depends<'a> {
    plugin: &'a Plugin,
    attributes: Vec<(u32, &'a Value)>,
    code: Vec<(Target, Digest)>,
}

/// A digest of everything on which the time of a node depends: its model, its code, and of its attributes those with the indices
/// `attributes` (none: all) and those that guards read. Nodes with equal digests take equal times for tensors of equal types, formats and
/// shapes, if the author of `attributes` is right; where anything else differs, so do the digests.
///
/// Guards decide which tactics a node has, so that nodes with one digest have the same. Requirements are not in it: they decide nothing of a
/// node that is there, and which of them a node keeps depends on its attributes.
#[must_use]
pub fn digest(node: &Node, attributes: Option<&[u32]>) -> Digest {
    let guards = node.plugin.variants.iter().filter_map(|variant| variant.guard.as_ref());
    let read: BTreeSet<u32> = guards.flat_map(|guard| &guard.expr.nodes).filter_map(attribute).collect();
    let depends =
        |index: &u32| attributes.is_none_or(|attributes| attributes.contains(index)) || read.contains(index);
    let depends = Depends {
        plugin: &Plugin { require: Vec::new(), ..node.plugin.clone() },
        attributes: (0..).zip(&node.attributes).filter(|(index, _)| depends(index)).collect(),
        code: node.code.iter().map(|code| (code.target, code.digest)).collect(),
    };
    Digest::of(&encode(&depends))
}

fn attribute(node: &Part) -> Option<u32> {
    match node {
        Part::Attribute(index) => Some(*index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::tests::node;
    use crate::expr::{BinaryOp, Expr};
    use crate::model::Guard;

    #[test]
    fn what_a_time_does_not_depend_on_is_not_in_it() {
        let node = node();
        let of = |change: &dyn Fn(&mut Node), attributes: Option<&[u32]>| {
            let mut changed = node.clone();
            change(&mut changed);
            digest(&changed, attributes)
        };
        let same = |change: &dyn Fn(&mut Node)| of(change, None) == digest(&node, None);
        assert!(same(&|node| node.producer.push('x')));
        assert!(same(&|node| node.input_ranks = None));
        assert!(same(&|node| node.workspace_bytes = Some(1)));
        assert!(!same(&|node| node.plugin.version.push('x')));
        assert!(!same(&|node| node.plugin.variants[0].id += 1));
        assert!(!same(&|node| node.code[0].digest.0[0] ^= 1));
        assert!(!same(&|node| node.attributes[0] = Value::Int(77)));
        let other = |node: &mut Node| node.attributes[0] = Value::Int(77);
        assert_eq!(of(&other, Some(&[])), digest(&node, Some(&[])));
        assert_ne!(of(&other, Some(&[0])), digest(&node, Some(&[0])));
        assert_ne!(digest(&node, Some(&[])), digest(&node, None));
    }

    #[test]
    fn nodes_of_one_digest_have_the_same_tactics() {
        let mut node = node();
        let other = |node: &Node| Node { attributes: vec![Value::Int(77)], ..node.clone() };
        node.plugin.variants[0].guard = None;
        assert_eq!(digest(&other(&node), Some(&[])), digest(&node, Some(&[])));
        // `attribute 0 <= 4`
        let nodes = vec![Part::Attribute(0), Part::Int(4), Part::Binary(BinaryOp::Le, 0, 1)];
        node.plugin.variants[0].guard = Some(Guard { expr: Expr { nodes }, text: String::new() });
        assert_ne!(digest(&other(&node), Some(&[])), digest(&node, Some(&[])));
        // A node whose attributes decide a requirement keeps none of it.
        let mut decided = node.clone();
        decided.plugin.require.clear();
        assert_ne!(decided, node);
        assert_eq!(digest(&decided, Some(&[])), digest(&node, Some(&[])));
    }
}
