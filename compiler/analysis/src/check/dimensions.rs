//! The dimensions of outputs are not below zero, and no more than tensors have; what is said of sizes that depend on data can be.

use cubinder_expr::{DataType, Interval};
use cubinder_expr::{Expr, Node};
use cubinder_model::Output;

use super::claim::{Claim, What, When};
use super::formula::{is_at_most, length};
use super::site::Site;
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::Text;
use crate::rules;

/// The most dimensions of a tensor.
const MOST_DIMENSIONS: i64 = cubinder_model::model::MAX_RANK as i64;

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
                otherwise: "",
                what,
                expr,
                span: site.span(&decl.shape),
                when: When::BeforeOutputs,
            };
            let dimensions = without_sizes(site, output).map(|(shape, but_for)| {
                claim(
                    rules::NEGATIVE_DIMENSION,
                    format!("the shape of `{}`{but_for}", output.name),
                    "has no dimension below 0".to_owned(),
                    What::Within(Interval::ANY_SIZE),
                    shape,
                )
            });
            let most = Interval { min: 0, max: MOST_DIMENSIONS };
            let rank = claim(
                rules::INEXPRESSIBLE_SHAPE,
                format!("the number of dimensions of `{}`", output.name),
                format!("is at most {MOST_DIMENSIONS}"),
                What::Within(most),
                length(&output.shape),
            );
            let is_plain = literal_length(&output.shape).is_some_and(|length| most.contains(length));
            [dimensions, (!is_plain).then_some(rank)].into_iter().flatten()
        })
        .collect()
}

/// The shape of an output with 0 for each size that the kernels write, because nothing holds these against anything, and what is said
/// of that: `` but for `count` ``. None where nothing is left of which something could be said.
fn without_sizes(site: &Site<'_>, output: &Output) -> Option<(Expr, String)> {
    let sizes: Vec<(usize, u32)> = sizes_in(output).collect();
    let mut shape = output.shape.clone();
    if sizes.is_empty() {
        return Some((shape, String::new()));
    }
    for node in shape.nodes.iter_mut().filter(|node| matches!(node, Node::Size(_))) {
        *node = Node::Int(0);
    }
    let is_plain = |node: &Node| matches!(node, Node::Array(_)) || matches!(node, Node::Int(0..));
    if shape.nodes.iter().all(is_plain) {
        return None;
    }
    let mut names: Vec<String> = sizes.iter().map(|(_, size)| quoted(site, *size)).collect();
    names.dedup();
    Some((shape, format!(" but for {}", names.join(" and "))))
}

/// The name of a tensor in ticks.
fn quoted(site: &Site<'_>, tensor: u32) -> String {
    format!("`{}`", site.plugin.tensor_name(tensor as usize).unwrap_or_default())
}

/// Claims for each size that the kernels find out: what is said of it beforehand is not below zero, its type holds the most that it can
/// be, and what it usually is is no more.
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
                otherwise: "",
                what: What::Within(Interval::ANY_SIZE),
                expr: expr.clone(),
                span: site.span(text),
                when: When::BeforeOutputs,
            };
            let about_upper = format!("the upper bound of `{}`", output.name);
            let about_opt = format!("the usual size in `{}`", output.name);
            let upper = claim(about_upper.clone(), &bound.upper, &decl.upper);
            let narrow = Interval { min: i64::MIN, max: i32::MAX.into() };
            let fits = is_narrow(site, output).then(|| Claim {
                rule: rules::SIZE_TENSOR,
                must: "fits `i32`".to_owned(),
                what: What::Within(narrow),
                ..claim(about_upper, &bound.upper, &decl.upper)
            });
            let opt = decl.opt.as_ref().map(|text| claim(about_opt.clone(), &bound.opt, text));
            let below = decl.opt.as_ref().map(|text| Claim {
                rule: rules::SIZE_TENSOR,
                must: "is at most `upper`".to_owned(),
                what: What::Holds(is_at_most(&bound.opt, &bound.upper)),
                ..claim(about_opt, &bound.opt, text)
            });
            [Some(upper), fits, opt, below].into_iter().flatten()
        })
        .collect()
}

/// Whether an output holds 32-bit numbers in some row.
fn is_narrow(site: &Site<'_>, output: &Output) -> bool {
    let index = site.plugin.outputs.iter().position(|other| other.name == output.name);
    let tensor = index.map(|index| site.plugin.inputs.len() + index);
    let ty = |types: &Vec<DataType>| tensor.and_then(|tensor| types.get(tensor)).copied();
    site.plugin.variants.iter().any(|variant| ty(&variant.types) == Some(DataType::I32))
}

/// Limits of outputs whose shape depends on data that nobody could hold a size against: it is written when the limits have been asked.
pub(super) fn limits(site: &Site<'_>) -> Vec<Diagnostic> {
    let outputs = site.plugin.outputs.iter().zip(&site.resolved.manifest.outputs);
    let dependent = outputs.filter(|(output, _)| output.depends_on_data());
    let broken = dependent.filter(|(output, _)| {
        let of_sizes = sizes_in(output).any(|(axis, _)| output.limits.dim(axis) != Interval::ANY_SIZE);
        of_sizes || output.limits.numel != Interval::ANY_SIZE
    });
    broken
        .map(|(output, decl)| {
            let sizes: Vec<String> = sizes_in(output).map(|(_, size)| quoted(site, size)).collect();
            let sizes = sizes.join(" and ");
            Diagnostic::error(format!("limits of `{}` that nothing keeps", output.name))
                .code(rules::SIZE_TENSOR)
                .at(
                    Span::new(&site.resolved.source, decl.limits.range.clone()),
                    format!("they bound {sizes}, which kernels write"),
                )
                .note("limits are held against shapes before the kernels run")
                .help("say with `upper` how large a size can be, and leave `limits` out")
        })
        .collect()
}

/// The dimensions that are sizes, each with the tensor that holds it.
fn sizes_in(output: &Output) -> impl Iterator<Item = (usize, u32)> {
    let items = match output.shape.nodes.last() {
        Some(Node::Array(items)) => items.as_slice(),
        _ => &[],
    };
    let size = |(axis, item): (usize, &u32)| match output.shape.nodes.get(*item as usize)? {
        Node::Size(tensor) => Some((axis, *tensor)),
        _ => None,
    };
    items.iter().enumerate().filter_map(size)
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
