//! Excludes rows for attribute values that a guard or `require` rejects, to avoid later errors; warns about values
//! without rows.

use std::collections::BTreeSet;

use cubinder_expr::{BinaryOp, Environment, Expr, Node, NodeId, Value, bind};
use cubinder_model::{Guard, Requirement};

use super::declarations::Declarations;
use super::errors::{ExcludedValue, UnservedNodes, UnservedValue};
use super::rows::{Candidate, Exclusion, Row, Specialized};
use crate::diagnostic::Diagnostic;

pub(super) struct SpecializedValues<'r>(pub(super) &'r [Specialized]);

impl Environment for SpecializedValues<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.iter().find(|it| it.attribute == index).map(|it| &it.value)
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        None
    }
}

fn is_false(expr: &Expr) -> bool {
    expr.nodes.as_slice() == [Node::Bool(false)]
}

/// Failing counts as false: the order of conjunctions does not matter.
pub(super) fn never_holds(guard: Option<&Guard>) -> bool {
    guard.is_some_and(|guard| is_never_true(&guard.expr))
}

/// Whether false or failing. Children precede parents.
fn is_never_true(expr: &Expr) -> bool {
    let mut never: Vec<bool> = Vec::with_capacity(expr.nodes.len());
    for node in &expr.nodes {
        let is_never = |child: &NodeId| never.get(*child as usize).copied().unwrap_or(false);
        never.push(match node {
            Node::Bool(false) => true,
            Node::Binary(BinaryOp::And, left, right) => is_never(left) || is_never(right),
            Node::Binary(BinaryOp::Or, left, right) => is_never(left) && is_never(right),
            _ => false,
        });
    }
    never.last().copied().unwrap_or(false)
}

/// Ignores a rule that rejects all rows.
pub(super) fn by_requirements(candidates: &mut [Candidate], require: &[Requirement]) {
    let rejects = |rule: &Requirement, row: &Row| {
        !is_false(&rule.expr) && is_false(&bind(&rule.expr, &SpecializedValues(&row.specialized)))
    };
    for Candidate { row, exclusion, .. } in &mut *candidates {
        if !row.specialized.is_empty() && require.iter().any(|rule| rejects(rule, row)) {
            *exclusion = Some(Exclusion::Requirement);
        }
    }
    if candidates.iter().all(|candidate| candidate.exclusion.is_some()) {
        candidates.iter_mut().for_each(|candidate| candidate.exclusion = None);
    }
}

pub(super) fn by_guards(candidates: &mut [Candidate]) {
    let service = |row: &Row| (row.variant, row.tensor_types.clone(), row.tensor_formats.clone());
    let serving = candidates.iter().filter(|it| it.exclusion.is_none() && !never_holds(it.guard.as_ref()));
    let serving: BTreeSet<_> = serving.map(|candidate| service(&candidate.row)).collect();
    for Candidate { row, guard, exclusion } in candidates {
        let by_values = !row.specialized.is_empty() && never_holds(guard.as_ref());
        if exclusion.is_none() && by_values && serving.contains(&service(row)) {
            *exclusion = Some(Exclusion::Guard);
        }
    }
}

/// Ignores output types and formats, which TensorRT chooses.
pub(super) fn check(declared: Declarations<'_>, candidates: &[Candidate]) -> Vec<Diagnostic> {
    let (mut excluded, mut unserved) = (Vec::<Diagnostic>::new(), Vec::<Diagnostic>::new());
    let attributes = (0..).zip(&declared.manifest.attributes);
    let lists =
        attributes.filter_map(|(index, decl)| Some((index, &decl.name.value, decl.specialize.as_ref()?)));
    for (index, name, list) in lists.clone() {
        for value in &list.value {
            let has_it = |row: &Row| SpecializedValues(&row.specialized).attribute(index) == Some(value);
            let rows = candidates.iter().filter(|candidate| has_it(&candidate.row));
            let exclusions: BTreeSet<Option<Exclusion>> = rows.map(|candidate| candidate.exclusion).collect();
            let span = declared.span(&list.range);
            match exclusions.last().copied().flatten().filter(|_| !exclusions.contains(&None)) {
                None => {}
                Some(Exclusion::Guard) => unserved.push(UnservedValue { name, value, span }.into()),
                Some(Exclusion::Requirement) => {
                    excluded.push(ExcludedValue { name, value, span }.into());
                }
            }
        }
    }
    let inputs = declared.manifest.inputs.len();
    let node = |row: &Row| format!("{:?} {:?}", row.tensor_types.get(..inputs), row.specialized);
    let active = candidates.iter().filter(|candidate| candidate.exclusion.is_none());
    let mut seen: BTreeSet<String> = active.map(|candidate| node(&candidate.row)).collect();
    let by_guard = candidates.iter().filter(|candidate| candidate.exclusion == Some(Exclusion::Guard));
    let mut missing = by_guard.map(|candidate| &candidate.row).filter(|row| seen.insert(node(row)));
    if unserved.is_empty()
        && let Some(first) = missing.next()
    {
        let span = declared.span(lists.clone().next().map_or(&(0..0), |(_, _, list)| &list.range));
        let others = Some(missing.count()).filter(|others| *others > 0);
        unserved.push(UnservedNodes { nodes: first.of_nodes(declared.manifest), span, others }.into());
    }
    excluded.append(&mut unserved);
    excluded
}
