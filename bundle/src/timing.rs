//! On what the time of a node depends, apart from its tensors.

use serde::Serialize;

use crate::code::Target;
use crate::container::encode;
use crate::digest::Digest;
use crate::model::{Node, Plugin};
use crate::value::Value;

#[derive(Serialize)]
struct Depends<'a> {
    plugin: &'a Plugin,
    attributes: Vec<(u32, &'a Value)>,
    code: Vec<(Target, Digest)>,
}

/// A digest of everything on which the time of a node depends: its model, its code, and of its attributes those with the indices
/// `attributes` (none: all). Nodes with equal digests take equal times for tensors of equal types, formats and shapes, if the
/// author of `attributes` is right; where anything else differs, so do the digests.
#[must_use]
pub fn digest(node: &Node, attributes: Option<&[u32]>) -> Digest {
    let depends = |index: &u32| attributes.is_none_or(|attributes| attributes.contains(index));
    let depends = Depends {
        plugin: &node.plugin,
        attributes: (0..).zip(&node.attributes).filter(|(index, _)| depends(index)).collect(),
        code: node.code.iter().map(|code| (code.target, code.digest)).collect(),
    };
    Digest::of(&encode(&depends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::tests::node;

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
}
