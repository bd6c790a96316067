//! The dimensions of outputs are not below zero, and no more than tensors have.

use cubinder_bundle::Interval;
use cubinder_bundle::expr::{Expr, Node};

use super::claim::{Claim, What, When};
use super::formula::length;
use super::site::Site;
use crate::manifest::Text;
use crate::rules;

/// The most dimensions of a tensor.
const MOST_DIMENSIONS: i64 = cubinder_bundle::model::MAX_RANK as i64;

/// Claims for each output whose shape is computed.
pub(super) fn claims(site: &Site<'_>, inexpressible: &[usize]) -> Vec<Claim> {
    let outputs = site.plugin.outputs.iter().zip(&site.resolved.manifest.outputs).enumerate();
    let sound = outputs.filter(|(index, _)| !inexpressible.contains(index));
    let computed = sound.filter(|(_, (output, _))| !is_copied(&output.shape));
    computed
        .flat_map(|(_, (output, decl))| {
            let claim = |rule, subject: String, must: String, what, expr| Claim {
                rule,
                subject,
                must,
                what,
                expr,
                span: site.span(&decl.shape),
                when: When::BeforeOutputs,
            };
            let dimensions = claim(
                rules::NEGATIVE_DIMENSION,
                format!("the shape of `{}`", output.name),
                "has no dimension below 0".to_owned(),
                What::Within(Interval::ANY_SIZE),
                output.shape.clone(),
            );
            let most = Interval { min: 0, max: MOST_DIMENSIONS };
            let rank = claim(
                rules::INEXPRESSIBLE_SHAPE,
                format!("the number of dimensions of `{}`", output.name),
                format!("is at most {MOST_DIMENSIONS}"),
                What::Within(most),
                length(&output.shape),
            );
            let is_plain = literal_length(&output.shape).is_some_and(|length| most.contains(length));
            [Some(dimensions), (!is_plain).then_some(rank)].into_iter().flatten()
        })
        .collect()
}

/// Claims for each size that the kernels find out: what is said of it beforehand is not below zero.
pub(super) fn sizes(site: &Site<'_>) -> Vec<Claim> {
    let outputs = site.plugin.outputs.iter().zip(&site.resolved.manifest.outputs);
    let bounds =
        outputs.filter_map(|(output, decl)| Some((output, output.size.as_ref()?, decl.size.as_ref()?)));
    bounds
        .flat_map(|(output, bound, decl)| {
            let claim = |subject: String, expr: &Expr, text: &Text| Claim {
                rule: rules::NEGATIVE_DIMENSION,
                subject,
                must: "is at least 0".to_owned(),
                what: What::Within(Interval::ANY_SIZE),
                expr: expr.clone(),
                span: site.span(text),
                when: When::BeforeOutputs,
            };
            let upper = claim(format!("the upper bound of `{}`", output.name), &bound.upper, &decl.upper);
            let opt = decl.opt.as_ref();
            let opt = opt.map(|text| claim(format!("the usual size in `{}`", output.name), &bound.opt, text));
            std::iter::once(upper).chain(opt)
        })
        .collect()
}

/// How many elements an array has that is written out.
fn literal_length(shape: &Expr) -> Option<i64> {
    match shape.nodes.last()? {
        Node::Array(items) => i64::try_from(items.len()).ok(),
        _ => None,
    }
}

/// Whether it is the shape of another tensor, or without dimensions.
fn is_copied(shape: &Expr) -> bool {
    match shape.nodes.as_slice() {
        [Node::Shape(_)] => true,
        [Node::Array(items)] => items.is_empty(),
        _ => false,
    }
}
