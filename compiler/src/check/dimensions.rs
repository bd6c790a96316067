//! The dimensions of outputs are not below zero.

use cubinder_bundle::Interval;
use cubinder_bundle::expr::{Expr, Node};

use super::claim::{Claim, What, When};
use super::site::Site;
use crate::rules;

/// A claim for each output whose shape is computed.
pub(super) fn claims(site: &Site<'_>, inexpressible: &[usize]) -> Vec<Claim> {
    let outputs = site.plugin.outputs.iter().zip(&site.resolved.manifest.outputs).enumerate();
    let sound = outputs.filter(|(index, _)| !inexpressible.contains(index));
    let computed = sound.filter(|(_, (output, _))| !is_copied(&output.shape));
    computed
        .map(|(_, (output, decl))| Claim {
            rule: rules::NEGATIVE_DIMENSION,
            subject: format!("the shape of `{}`", output.name),
            must: "has no dimension below 0".to_owned(),
            what: What::Within(Interval::ANY_SIZE),
            expr: output.shape.clone(),
            span: site.span(&decl.shape),
            when: When::BeforeOutputs,
        })
        .collect()
}

/// Whether it is the shape of another tensor, or without dimensions.
fn is_copied(shape: &Expr) -> bool {
    match shape.nodes.as_slice() {
        [Node::Shape(_)] => true,
        [Node::Array(items)] => items.is_empty(),
        _ => false,
    }
}
