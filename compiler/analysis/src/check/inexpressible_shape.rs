//! Reports output shapes that TensorRT's shape arithmetic cannot express. [`super::expressible`] accepts most by form.
//! Others are lowered for every combination of ranks and one node's attributes, which proves only shapes without
//! attributes.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Range;

use cubinder_expr::Value;
use cubinder_expr::{
    Builtin, Environment, Expr, LowerError, Node, NodeId, ShapeBuilder, ShapeOp, Syntax, SyntaxKind, lower,
    lower_scalar, parse, print_node,
};
use cubinder_launch::proof::{Case, Verdict};
use cubinder_model::Plugin;
use cubinder_model::model::MAX_SHAPE_VALUES;

use super::draft_view::DraftView;
use super::errors::InexpressibleShape;
use super::expressible::is_expressible;
use super::formula::{has_ranks, reads, truth};
use super::syntax::parts;
use super::{CheckedDraft, Obligation};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::{FunctionDecl, Text};
use crate::rules;

/// Three inputs of any rank.
const MOST_COMBINATIONS: usize = 729;

pub(super) fn check(view: &DraftView<'_>, checked: &mut CheckedDraft) -> Vec<usize> {
    let mut inexpressible = Vec::new();
    for output in view.outputs() {
        for (position, (part, expr, text)) in output.parts().into_iter().enumerate() {
            match express(view, expr, position == 0) {
                Ok(verdict) => {
                    let (statement, span) = (format!("TensorRT can express {part}"), view.span(text));
                    let open = Obligation::open(rules::INEXPRESSIBLE_SHAPE, statement, span, view.route);
                    checked.obligations.push(Obligation { verdict, ..open });
                }
                Err(problem) => {
                    checked.diagnostics.push(report(view, part, expr, text, &problem));
                    inexpressible.push(output.index);
                }
            }
        }
    }
    inexpressible
}

struct Problem {
    node: NodeId,
    reason: &'static str,
}

fn express(view: &DraftView<'_>, expr: &Expr, is_shape: bool) -> Result<Verdict, Problem> {
    if is_expressible(expr, view.plugin) {
        return Ok(Verdict::Proved);
    }
    let reads = reads(expr);
    if !view.resolved.cases_are_known && !reads.attributes.is_empty() {
        // The author may exclude the node.
        return Ok(Verdict::Open);
    }
    let tensors: BTreeSet<u32> = &reads.shapes | &reads.ranks;
    let mut is_complete = reads.attributes.is_empty();
    let Some(combinations) = combinations(view.plugin, &tensors) else { return Ok(Verdict::Open) };
    for ranks in combinations {
        let condition = has_ranks(&ranks);
        let domain = view.domain().assuming(&condition);
        let node = if reads.attributes.is_empty() {
            Some(Vec::new())
        } else {
            match domain.never(&truth()) {
                Verdict::Refuted(Case { attributes, .. }) => Some(attributes),
                Verdict::Proved => continue,
                Verdict::Open => None,
            }
        };
        let Some(attributes) = node else {
            is_complete = false;
            continue;
        };
        let node = ShapelessNode { attributes: &attributes, ranks: &ranks };
        let mut builder = StandIn { plugin: view.plugin };
        let lowered = match is_shape {
            true => lower(expr, &node, &mut builder).map(drop),
            false => lower_scalar(expr, &node, &mut builder),
        };
        match lowered {
            Ok(()) => {}
            Err(LowerError::Unsupported { node, reason, .. }) => return Err(Problem { node, reason }),
            // Another rule reports shapes without a value.
            Err(LowerError::Evaluate(_)) => is_complete = false,
            Err(LowerError::Builder(never)) => match never {},
        }
    }
    Ok(if is_complete { Verdict::Proved } else { Verdict::Open })
}

fn combinations(plugin: &Plugin, tensors: &BTreeSet<u32>) -> Option<Vec<Vec<(u32, u8)>>> {
    let mut all: Vec<Vec<(u32, u8)>> = vec![Vec::new()];
    for &tensor in tensors {
        let input = plugin.inputs.get(tensor as usize)?;
        let ranks = input.rank_min..=input.rank_max;
        let count = ranks.clone().count();
        if all.len().saturating_mul(count) > MOST_COMBINATIONS {
            return None;
        }
        let extended = all.iter().flat_map(|known| {
            ranks.clone().map(move |rank| {
                let mut ranks = known.clone();
                ranks.push((tensor, rank));
                ranks
            })
        });
        all = extended.collect();
    }
    Some(all)
}

fn report(view: &DraftView<'_>, part: String, expr: &Expr, text: &Text, problem: &Problem) -> Diagnostic {
    let functions = &view.resolved.manifest.functions;
    let (range, reason) = match locate(text, expr, functions, problem.node) {
        Some(range) => (range, problem.reason.to_owned()),
        None => {
            let node = print_node(expr, problem.node, view.plugin);
            (text.range.clone(), format!("in `{node}`: {}", problem.reason))
        }
    };
    let span = Span::new(&view.resolved.source, range);
    InexpressibleShape { part, span, reason, help: help(expr) }.into()
}

fn help(shape: &Expr) -> &'static str {
    let is_float =
        |node: &Node| matches!(node, Node::Float(_) | Node::Call(Builtin::Int | Builtin::Float, _));
    if shape.nodes.iter().any(is_float) {
        "compute with integers: `n // 2` instead of `int(float(n) * 0.5)`"
    } else {
        "let only attributes and ranks determine the number of dimensions and terms"
    }
}

/// Folding and `functions` change expressions: locates only parts with equal forms.
fn locate(text: &Text, expr: &Expr, functions: &[FunctionDecl], part: NodeId) -> Option<Range<usize>> {
    let syntax = parse(&text.value).ok()?;
    let parts = parts(&syntax);
    let is_inlined = |part: &&Syntax| match &part.kind {
        SyntaxKind::Call { function, .. } => functions.iter().any(|decl| decl.name.value == *function),
        _ => false,
    };
    if parts.iter().any(is_inlined) {
        return None;
    }
    let written: Vec<_> = parts.into_iter().filter(|part| written_form(part).is_some()).collect();
    let nodes = expr.nodes.iter().enumerate().filter(|(_, node)| form(node).is_some());
    let nodes: Vec<_> = nodes.collect();
    let forms_agree = written.len() == nodes.len()
        && written.iter().zip(&nodes).all(|(part, (_, node))| written_form(part) == form(node));
    let position = nodes.iter().position(|(index, _)| *index == part as usize).filter(|_| forms_agree)?;
    Some(text.locate(written.get(position)?.span.clone()))
}

fn form(node: &Node) -> Option<&'static str> {
    match node {
        Node::Call(builtin, _) => Some(builtin.name()),
        Node::Unary(operator, _) => Some(operator.symbol()),
        Node::Binary(operator, ..) => Some(operator.symbol()),
        Node::Conditional { .. } => Some("if"),
        Node::Comprehension { .. } => Some("for"),
        Node::Index { .. } => Some("[]"),
        _ => None,
    }
}

fn written_form(part: &Syntax) -> Option<&'static str> {
    match &part.kind {
        SyntaxKind::Call { function, .. } => Builtin::from_name(function).map(Builtin::name),
        SyntaxKind::Unary(operator, _) => Some(operator.symbol()),
        SyntaxKind::Binary(operator, ..) => Some(operator.symbol()),
        SyntaxKind::Conditional { .. } => Some("if"),
        SyntaxKind::Comprehension { .. } => Some("for"),
        SyntaxKind::Index { .. } => Some("[]"),
        _ => None,
    }
}

struct ShapelessNode<'k> {
    attributes: &'k [Value],
    ranks: &'k [(u32, u8)],
}

impl Environment for ShapelessNode<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(index as usize)
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        None
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.ranks.iter().find(|(known, _)| *known == tensor).map(|(_, rank)| usize::from(*rank))
    }
}

/// Accepts every operation. Shape inputs have their maximum length.
struct StandIn<'p> {
    plugin: &'p Plugin,
}

impl ShapeBuilder for StandIn<'_> {
    type Dim = ();
    type Error = Infallible;

    fn constant(&mut self, _: i64) -> Result<(), Infallible> {
        Ok(())
    }

    fn dim(&mut self, _: u32, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn value_count(&mut self, tensor: u32) -> Result<usize, Infallible> {
        let input = self.plugin.inputs.get(tensor as usize);
        let most = input.map_or(0, |input| if input.rank_max == 0 { 1 } else { input.limits.dim(0).max });
        Ok(usize::try_from(most.clamp(0, MAX_SHAPE_VALUES)).unwrap_or(0))
    }

    fn value(&mut self, _: u32, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn size(&mut self, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn operation(&mut self, _: ShapeOp, (): &(), (): &()) -> Result<(), Infallible> {
        Ok(())
    }
}
