//! What a node's time depends on, apart from its tensors.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::code::Target;
use crate::container::encode;
use crate::digest::Digest;
use crate::model::{Node, Plugin, Requirement};
use cubinder_expr::value::Value;
use cubinder_expr::{Expr, Node as Part};

#[derive(Serialize)]
struct Depends<'a> {
    plugin: &'a Plugin,
    attributes: Vec<(u32, &'a Value)>,
    code: Vec<(Target, Digest)>,
}

/// An expression, by index, that affects which variants are tactics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// Guard of a variant.
    Guard(usize),
    /// Requirement about tensors.
    Requirement(usize),
    /// Shape of an output.
    Shape(usize),
    /// Maximum of an output's size.
    Size(usize),
}

/// Returns a digest of everything that affects a node's time: model, code, and attributes in `attributes` (`None`:
/// all) or read by [`deciders`].
#[must_use]
pub fn digest(node: &Node, attributes: Option<&[u32]>) -> Digest {
    let plugin = &node.plugin;
    let deciders = deciders(plugin);
    let read: BTreeSet<u32> = deciders.iter().flat_map(|(_, expr)| attributes_of(expr)).collect();
    let depends =
        |index: &u32| attributes.is_none_or(|attributes| attributes.contains(index)) || read.contains(index);
    let rule = |(decider, expr): &(Decider, &Expr)| match decider {
        // Texts do not affect which variants are tactics.
        Decider::Requirement(_) => {
            Some(Requirement { expr: (*expr).clone(), text: String::new(), message: String::new() })
        }
        _ => None,
    };
    let depends = Depends {
        plugin: &Plugin { require: deciders.iter().filter_map(rule).collect(), ..plugin.clone() },
        attributes: (0..).zip(&node.attributes).filter(|(index, _)| depends(index)).collect(),
        code: node.code.iter().map(|code| (code.target, code.digest)).collect(),
    };
    Digest::compute(&encode(&depends))
}

/// Returns the expressions that decide which variants are tactics: guards, and rules that restrict shapes for proofs.
/// Empty without guards.
#[must_use]
pub fn deciders(plugin: &Plugin) -> Vec<(Decider, &Expr)> {
    let guards = plugin.variants.iter().enumerate();
    let guards =
        guards.filter_map(|(row, variant)| Some((Decider::Guard(row), &variant.guard.as_ref()?.expr)));
    let guards: Vec<(Decider, &Expr)> = guards.collect();
    if guards.is_empty() {
        return guards;
    }
    let rules = plugin.require.iter().map(|rule| &rule.expr).enumerate();
    let rules = rules.filter(|(_, rule)| depends_on_tensors(rule));
    let shapes = plugin.outputs.iter().map(|output| &output.shape).enumerate();
    let sizes = plugin.outputs.iter().enumerate();
    let sizes = sizes.filter_map(|(index, output)| Some((index, &output.size.as_ref()?.upper)));
    guards
        .into_iter()
        .chain(shapes.map(|(index, shape)| (Decider::Shape(index), shape)))
        .chain(sizes.map(|(index, upper)| (Decider::Size(index), upper)))
        .chain(rules.map(|(index, rule)| (Decider::Requirement(index), rule)))
        .collect()
}

/// Returns the indices of the attributes that an expression reads.
pub fn attributes_of(expr: &Expr) -> impl Iterator<Item = u32> + '_ {
    expr.nodes.iter().filter_map(|node| match node {
        Part::Attribute(index) => Some(*index),
        _ => None,
    })
}

fn depends_on_tensors(expr: &Expr) -> bool {
    let is_of_tensor = |node: &Part| {
        matches!(node, Part::Shape(_) | Part::Rank(_) | Part::Numel(_) | Part::Values(_) | Part::Size(_))
    };
    expr.nodes.iter().any(is_of_tensor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::tests::node;
    use crate::model::{Guard, SizeBound};
    use cubinder_expr::BinaryOp;

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
        // The automatic tactic depends on the measured points.
        assert!(!same(&|node| node.plugin.tuning[0].points[0].shapes[0][0] += 1));
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
        // Nodes drop requirements that attributes decide.
        let mut decided = node.clone();
        decided.plugin.require.clear();
        assert_ne!(decided, node);
        assert_eq!(digest(&decided, Some(&[])), digest(&node, Some(&[])));
    }

    #[test]
    fn what_guards_are_proved_with_is_in_it() {
        let rule = |nodes| Requirement { expr: Expr { nodes }, text: String::new(), message: String::new() };
        // `numel(x) <= attribute 0`
        let of_tensors = || rule(vec![Part::Numel(0), Part::Attribute(0), Part::Binary(BinaryOp::Le, 0, 1)]);
        // `attribute 0 <= 512`
        let of_attributes =
            || rule(vec![Part::Attribute(0), Part::Int(512), Part::Binary(BinaryOp::Le, 0, 1)]);
        type Change<'c> = (&'c str, &'c dyn Fn(&mut Plugin), bool);
        let changes: [Change<'_>; 4] = [
            ("a rule of tensors", &|plugin| plugin.require.push(of_tensors()), true),
            ("a rule of attributes", &|plugin| plugin.require.push(of_attributes()), false),
            (
                "a shape",
                &|plugin| plugin.outputs[0].shape.nodes = vec![Part::Attribute(0), Part::Array(vec![0])],
                true,
            ),
            (
                "the bound of a size",
                &|plugin| {
                    let [upper, opt] = [0; 2].map(|index| Expr { nodes: vec![Part::Attribute(index)] });
                    plugin.outputs[0].size = Some(SizeBound { upper, opt });
                },
                true,
            ),
        ];
        for (what, change, counts) in changes {
            let mut node = node();
            change(&mut node.plugin);
            let other = |node: &Node| Node { attributes: vec![Value::Int(77)], ..node.clone() };
            assert_eq!(digest(&other(&node), Some(&[])), digest(&node, Some(&[])), "{what}, and no guard");
            // `numel(x) == 4`
            let nodes = vec![Part::Numel(0), Part::Int(4), Part::Binary(BinaryOp::Eq, 0, 1)];
            node.plugin.variants[0].guard = Some(Guard { expr: Expr { nodes }, text: String::new() });
            assert_eq!(digest(&other(&node), Some(&[])) != digest(&node, Some(&[])), counts, "{what}");
            let mut without = node.clone();
            without.plugin.require.clear();
            let is_rule_of_tensors = what == "a rule of tensors";
            assert_eq!(
                digest(&without, Some(&[0])) != digest(&node, Some(&[0])),
                is_rule_of_tensors,
                "{what}"
            );
        }
    }
}
