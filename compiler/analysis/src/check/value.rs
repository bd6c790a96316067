//! Expressions have values: no overflow, no division by zero, no index out of range.
//!
//! Rules about nodes are left out: where one has no value the node is refused, as it would be where it does not hold.

use cubinder_expr::{Expr, Node};

use super::claim::{Claim, What, When};
use super::grid::AXES;
use super::site::{At, Site};
use crate::diagnostic::Span;
use crate::resolve::ArgDraftValue;
use crate::rules;

/// A claim for each expression that could have none. `inexpressible` are the outputs whose shape is wrong already.
pub(super) fn claims(site: &Site<'_>, inexpressible: &[usize]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut add = |subject: String, expr: &Expr, span: Span, when: When| {
        if can_fail(expr) {
            claims.push(Claim {
                rule: rules::MAY_HAVE_NO_VALUE,
                subject,
                must: "has a value".to_owned(),
                otherwise: "",
                what: What::HasValue,
                expr: expr.clone(),
                span,
                when,
            });
        }
    };
    let outputs = site.plugin.outputs.iter().zip(&site.resolved.manifest.outputs).enumerate();
    for (_, (output, decl)) in outputs.filter(|(index, _)| !inexpressible.contains(index)) {
        add(
            format!("the shape of `{}`", output.name),
            &output.shape,
            site.span(&decl.shape),
            When::BeforeOutputs,
        );
    }
    for (output, decl) in site.plugin.outputs.iter().zip(&site.resolved.manifest.outputs) {
        let (Some(bound), Some(decl)) = (&output.size, &decl.size) else { continue };
        let subject = format!("the upper bound of `{}`", output.name);
        add(subject, &bound.upper, site.span(&decl.upper), When::BeforeOutputs);
        if let Some(text) = &decl.opt {
            let subject = format!("the usual size in `{}`", output.name);
            add(subject, &bound.opt, site.span(text), When::BeforeOutputs);
        }
    }
    for row in 0..site.plugin.variants.len() {
        if let (Some(guard), Some(span)) = (site.guard(row), site.guard_span(row)) {
            add("the guard".to_owned(), guard, span, When::Asked(row));
        }
        for step in 0..site.variant(row).map_or(0, |variant| variant.steps.len()) {
            let at = At { row, step };
            let text = site.step_decl(at).and_then(|decl| decl.when.as_ref());
            if let (Some(when), Some(text)) = (site.when(at), text) {
                add("the condition of the step".to_owned(), when, site.span(text), When::Chosen(row));
            }
        }
        for (scratch, text) in site.scratch(row) {
            let subject = format!("the size of `{}`", scratch.name);
            add(subject, &scratch.bytes, site.span(text), When::Chosen(row));
        }
    }
    for launch in site.launches() {
        let when = When::Launched(launch.at);
        for (axis, (expr, text)) in launch.launch.grid.iter().zip(&launch.decl.grid).enumerate() {
            add(launch.of(&format!("the grid's {}", AXES[axis])), expr, site.span(text), when);
        }
        let when = When::Running(launch.at);
        for (axis, (expr, text)) in launch.launch.block.iter().zip(&launch.decl.block).enumerate() {
            add(launch.of(&format!("the block's {}", AXES[axis])), expr, site.span(text), when);
        }
        let cluster = launch.launch.cluster.iter().flatten().zip(launch.decl.cluster.iter().flatten());
        for (axis, (expr, text)) in cluster.enumerate() {
            add(launch.of(&format!("the cluster's {}", AXES[axis])), expr, site.span(text), when);
        }
        if let Some(text) = &launch.decl.shared_bytes {
            let subject = launch.of("the dynamic shared memory");
            add(subject, &launch.launch.shared_bytes, site.span(text), when);
        }
    }
    for (unit, launch) in site.units().iter().filter_map(|unit| Some((unit, site.launch_of(unit)?))) {
        for arg in &unit.args {
            if let ArgDraftValue::Expr { expr, .. } = &arg.value {
                let subject = launch.of(&format!("the argument `{}`", arg.name));
                add(subject, expr, arg.value_span.clone(), When::Running(launch.at));
            }
        }
    }
    claims
}

/// Whether anything in it can fail: what only names things, lists them or counts them cannot.
fn can_fail(expr: &Expr) -> bool {
    expr.nodes.iter().any(|node| {
        !matches!(
            node,
            Node::Int(_)
                | Node::Float(_)
                | Node::Bool(_)
                | Node::Str(_)
                | Node::Attribute(_)
                | Node::Shape(_)
                | Node::Numel(_)
                | Node::Rank(_)
                | Node::Aligned { .. }
                | Node::Device(_)
                | Node::Values(_)
                | Node::Size(_)
                | Node::Local(_)
                | Node::Array(_)
        )
    })
}
