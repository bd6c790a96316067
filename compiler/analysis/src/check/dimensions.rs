//! Claims about output ranks, dimensions and bounds of sizes.

use cubinder_expr::interval::MAX_RANK;
use cubinder_expr::{DataType, Expr, Interval, Node};
use cubinder_model::{Output, Variant};

use super::claim::{Claim, Must, Predicate, Remedy, Term, When};
use super::draft_view::{DraftView, OutputView};
use super::errors::UncheckedLimits;
use super::formula::{is_at_most, length};
use crate::diagnostic::{Diagnostic, Span};
use crate::rules;
use crate::verify::literal_length;

pub(super) fn claims(view: &DraftView<'_>, inexpressible: &[usize]) -> Vec<Claim> {
    let most = Interval { min: 0, max: i64::from(MAX_RANK) };
    let outputs = view.outputs().filter(|it| !inexpressible.contains(&it.index));
    let mut claims = Vec::new();
    let is_copied = |it: &Output| matches!(it.shape.nodes.as_slice(), [Node::Shape(_) | Node::Array(_)]);
    for (output, decl) in outputs.map(|it| (it.output, it.decl)).filter(|(it, _)| !is_copied(it)) {
        let term = |subject, expr: &Expr| view.term(subject, expr, &decl.shape, When::BeforeOutputs);
        claims.extend(without_sizes(view, output).map(|(shape, but_for)| {
            let must = Must::HaveNo("negative dimension");
            let term = term(format!("the shape of `{}`{but_for}", output.name), &shape);
            term.claim(rules::NEGATIVE_DIMENSION, must, Predicate::Within(Interval::ANY_SIZE))
        }));
        if literal_length(&output.shape).is_none_or(|length| length > usize::from(MAX_RANK)) {
            let term = term(format!("the number of dimensions of `{}`", output.name), &length(&output.shape));
            let must = Must::Be(format!("at most {MAX_RANK}"));
            claims.push(term.claim(rules::INEXPRESSIBLE_SHAPE, must, Predicate::Within(most)));
        }
    }
    claims
}

/// Replaces kernel-written sizes by 0, and describes them: `` but for `count` ``. `None` if no other part remains.
fn without_sizes(view: &DraftView<'_>, output: &Output) -> Option<(Expr, String)> {
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
    let mut names: Vec<String> = sizes.iter().map(|(_, size)| quoted(view, *size)).collect();
    names.dedup();
    Some((shape, format!(" except {}", names.join(" and "))))
}

fn quoted(view: &DraftView<'_>, tensor: u32) -> String {
    format!("`{}`", view.plugin.tensor_name(tensor as usize).unwrap_or_default())
}

pub(super) fn sizes(view: &DraftView<'_>) -> Vec<Claim> {
    const OPT_TOO_LARGE: Remedy =
        Remedy::Fix("set `opt` to at most `upper`, or omit it: `upper` is its default");
    let consequence = Some("TensorRT does not check declared sizes");
    let mut claims = Vec::new();
    for it in view.outputs() {
        let parts = it.parts().into_iter().skip(1);
        let terms = parts.map(|(name, expr, text)| view.term(name, expr, text, When::BeforeOutputs));
        let terms: Vec<Term> = terms.collect();
        let Some(upper) = terms.first() else { continue };
        claims.push(upper.within(rules::NEGATIVE_DIMENSION, Interval::ANY_SIZE, ""));
        let tensor = view.plugin.inputs.len() + it.index;
        let is_narrow = |variant: &Variant| variant.types.get(tensor) == Some(&DataType::I32);
        if view.plugin.variants.iter().any(is_narrow) {
            let narrow = Predicate::Within(Interval { min: i64::MIN, max: i32::MAX.into() });
            let fits = upper.claim(rules::SIZE_TENSOR, Must::Fit("`i32`".to_owned()), narrow);
            claims.push(Claim { consequence, ..fits });
        }
        let Some(opt) = terms.get(1) else { continue };
        claims.push(opt.within(rules::NEGATIVE_DIMENSION, Interval::ANY_SIZE, ""));
        let below = Predicate::Holds(is_at_most(&opt.expr, &upper.expr));
        let below = opt.claim(rules::SIZE_TENSOR, Must::Be("at most `upper`".to_owned()), below);
        claims.push(Claim { remedy: OPT_TOO_LARGE, consequence, ..below });
    }
    claims
}

pub(super) fn limits(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let unchecked = view.outputs().filter(|OutputView { output, .. }| {
        let mut of_sizes = sizes_in(output).map(|(axis, _)| output.limits.dim(axis));
        let is_limited = of_sizes.any(|range| range != Interval::ANY_SIZE);
        output.depends_on_data() && (is_limited || output.limits.numel != Interval::ANY_SIZE)
    });
    let report = |OutputView { output, decl, .. }: OutputView<'_>| {
        let sizes: Vec<String> = sizes_in(output).map(|(_, size)| quoted(view, size)).collect();
        let (output, sizes) = (output.name.clone(), sizes.join(" and "));
        UncheckedLimits { output, sizes, span: Span::new(&view.resolved.source, decl.limits.range.clone()) }
    };
    unchecked.map(report).map(Diagnostic::from).collect()
}

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
