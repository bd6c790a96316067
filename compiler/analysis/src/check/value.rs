//! Claims that expressions have values. Omits rules: they reject nodes without one.

use cubinder_expr::{Expr, Node};

use super::claim::{Claim, Must, Predicate, StepId, Term, When};
use super::draft_view::DraftView;
use crate::resolve::ArgDraftValue;
use crate::rules;

pub(super) fn claims(view: &DraftView<'_>, inexpressible: &[usize]) -> Vec<Claim> {
    let mut terms: Vec<Term> = Vec::new();
    let outputs = view.outputs().map(|output| (output.index, output.parts().into_iter()));
    let (mut shapes, mut sizes) = (Vec::new(), Vec::new());
    for (index, mut parts) in outputs {
        shapes.extend(parts.next().filter(|_| !inexpressible.contains(&index)));
        sizes.extend(parts);
    }
    let parts = shapes.into_iter().chain(sizes);
    terms.extend(parts.map(|(name, expr, text)| view.term(name, expr, text, When::BeforeOutputs)));
    for row in 0..view.plugin.variants.len() {
        let guard = view.variant_decl(row).and_then(|decl| decl.guard.as_ref());
        if let (Some(guard), Some(text)) = (view.guard(row), guard) {
            terms.push(view.term("the guard".to_owned(), guard, text, When::Guarded(row)));
        }
        for step in 0..view.variant(row).map_or(0, |variant| variant.steps.len()) {
            let step = StepId { row, step };
            let text = view.step_decl(step).and_then(|decl| decl.when.as_ref());
            if let (Some(when), Some(text)) = (view.when(step), text) {
                let subject = "the condition of the step".to_owned();
                terms.push(view.term(subject, when, text, When::Chosen(row)));
            }
        }
        terms.extend(view.scratch(row).map(|(scratch, text)| {
            let subject = format!("the size of `{}`", scratch.name);
            view.term(subject, &scratch.bytes, text, When::Chosen(row))
        }));
    }
    for launch in view.launches() {
        terms.extend(launch.grid());
        terms.extend(launch.block());
        terms.extend(launch.cluster());
        terms.extend(launch.shared_bytes("the dynamic shared memory"));
    }
    for (unit, launch) in view.units().iter().filter_map(|unit| Some((unit, view.launch_of(unit)?))) {
        terms.extend(unit.args.iter().filter_map(|arg| {
            let ArgDraftValue::Expr { expr, .. } = &arg.value else { return None };
            let subject = launch.subject(&format!("the argument `{}`", arg.name));
            let (expr, span) = (expr.clone(), arg.value_span.clone());
            Some(Term { subject, expr, span, when: When::Running(launch.step) })
        }));
    }
    let must = || Must::Have("a value".to_owned());
    let terms = terms.iter().filter(|term| can_fail(&term.expr));
    terms.map(|term| term.claim(rules::MAY_HAVE_NO_VALUE, must(), Predicate::HasValue)).collect()
}

fn can_fail(expr: &Expr) -> bool {
    expr.nodes.iter().any(|node| match node {
        Node::Unary(..)
        | Node::Binary(..)
        | Node::Conditional { .. }
        | Node::Index { .. }
        | Node::Call(..)
        | Node::Comprehension { .. } => true,
        Node::Int(_)
        | Node::Float(_)
        | Node::Bool(_)
        | Node::Str(_)
        | Node::Attribute(_)
        | Node::Shape(_)
        | Node::Rank(_)
        | Node::Numel(_)
        | Node::Aligned { .. }
        | Node::Device(_)
        | Node::Values(_)
        | Node::Size(_)
        | Node::Local(_)
        | Node::Array(_) => false,
    })
}
