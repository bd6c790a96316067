//! Rows of attributes' values for which a variant is not meant: nothing is made for them.
//!
//! Owns which rows are left out before anything but their guards is looked at, so that what would be wrong in them is no mistake, and what is
//! told of values that no row is left for. A variant has no other way than its guard to say for which values it is; a rule of `require`
//! says it for the whole plugin.

use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_expr::{BinaryOp, Environment, Expr, Node, NodeId, bind};
use cubinder_expr::{DataType, Format, Value};
use cubinder_model::{Guard, Requirement};

use super::rows::Row;
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::Manifest;
use crate::rules;

/// The values that a row is compiled for, and nothing else.
struct Specialized<'r>(&'r Row);

impl Environment for Specialized<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.specialized.iter().find(|it| it.attribute == index).map(|it| &it.value)
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        None
    }
}

fn is_false(expr: &Expr) -> bool {
    expr.nodes.as_slice() == [Node::Bool(false)]
}

/// Whether a guard is false whatever a node and its shapes are. One without a value does not hold either, so what stands beside a part that is
/// never true does not matter, whatever the order is.
pub(super) fn never_holds(guard: Option<&Guard>) -> bool {
    guard.is_some_and(|guard| is_never_true(&guard.expr))
}

/// Whether an expression is false or has no value, whatever is asked of it. Children stand before their parents.
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

/// For each row whether no node can have the values that it is compiled for, because of a rule. None where all would be: then the rule is
/// what is wrong.
pub(super) fn by_rules(rows: &[Row], require: &[Requirement]) -> Vec<bool> {
    let refuses = |rule: &Requirement, row: &Row| {
        !is_false(&rule.expr) && is_false(&bind(&rule.expr, &Specialized(row)))
    };
    let is_refused = |row: &Row| !row.specialized.is_empty() && require.iter().any(|rule| refuses(rule, row));
    let all: Vec<bool> = rows.iter().map(is_refused).collect();
    if all.iter().all(|is_refused| *is_refused) { vec![false; rows.len()] } else { all }
}

/// Values of `specialize` that no node can have, because rules take all their rows out.
pub(super) fn excluded(
    manifest: &Manifest,
    rows: &[Row],
    by_rules: &[bool],
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (index, decl) in (0..).zip(&manifest.attributes) {
        let Some(values) = &decl.specialize else { continue };
        let has = |row: &Row, value: &Value| {
            row.specialized.iter().any(|it| it.attribute == index && it.value == *value)
        };
        let is_excluded = |value: &&Value| {
            let mut of_value =
                rows.iter().zip(by_rules).filter(|(row, _)| has(row, value)).map(|it| *it.1).peekable();
            of_value.peek().is_some() && of_value.all(|is_gone| is_gone)
        };
        found.extend(values.value.iter().filter(is_excluded).map(|value| {
            Diagnostic::warning(format!("no node can have `{}` = `{value}`", decl.name.value))
                .code(rules::UNUSED)
                .at(Span::new(source, values.range.clone()), "no code is made for it")
                .help("leave it out, or correct the rule of `require` that excludes it")
        }));
    }
    found
}

/// For each row whether its guard says that the variant is not for its values: one that is left for no value at all is wrong, and stays.
/// `is_gone` are rows that rules left out.
pub(super) fn by_guards(rows: &[Row], guards: &[Option<Guard>], is_gone: &[bool]) -> Vec<bool> {
    let guard_is_false = |guard: &Option<Guard>| never_holds(guard.as_ref());
    let there = || rows.iter().zip(guards).zip(is_gone).filter(|(_, is_gone)| !**is_gone).map(|(it, _)| it);
    let serving: BTreeSet<_> =
        there().filter(|(_, guard)| !guard_is_false(guard)).map(|(row, _)| serves(row)).collect();
    let is_left_out = |((row, guard), is_gone): ((&Row, &Option<Guard>), &bool)| {
        let by_values = !row.specialized.is_empty() && guard_is_false(guard);
        !is_gone && by_values && serving.contains(&serves(row))
    };
    rows.iter().zip(guards).zip(is_gone).map(is_left_out).collect()
}

/// What a row is for beside its values: a variant with types and formats.
fn serves(row: &Row) -> (usize, &[DataType], &[Format]) {
    (row.variant, &row.tensor_types, &row.tensor_formats)
}

/// Values, with types of inputs, that a node can have and no row is left for. `by_rules` and `by_guards` say which rows are left out. Formats do
/// not count, because TensorRT takes those that there are, nor do the types of outputs, which the node does not choose.
pub(super) fn unserved(
    manifest: &Manifest,
    rows: &[Row],
    by_rules: &[bool],
    by_guards: &[bool],
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    let all = || rows.iter().zip(by_rules).zip(by_guards);
    let possible = || all().filter(|((_, is_gone), _)| !**is_gone).map(|((row, _), is_gone)| (row, *is_gone));
    let inputs = manifest.inputs.len();
    let node = |row: &Row| format!("{:?} {:?}", row.tensor_types.get(..inputs), row.specialized);
    let served: BTreeSet<String> =
        possible().filter(|(_, is_gone)| !is_gone).map(|(row, _)| node(row)).collect();
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    let missing: Vec<&Row> = possible()
        .map(|(row, _)| row)
        .filter(|row| !served.contains(&node(row)) && told.insert(node(row)))
        .collect();
    for (index, decl) in (0..).zip(&manifest.attributes) {
        let Some(values) = &decl.specialize else { continue };
        let has = |row: &Row, value: &Value| {
            row.specialized.iter().any(|it| it.attribute == index && it.value == *value)
        };
        let is_missing = |value: &&Value| {
            missing.iter().any(|row| has(row, value))
                && !possible().any(|(row, is_gone)| !is_gone && has(row, value))
        };
        let place = Span::new(source, values.range.clone());
        found.extend(
            values
                .value
                .iter()
                .filter(is_missing)
                .map(|value| {
                    told_of(&format!("`{}` = `{value}`", decl.name.value), place.clone()).help(
                        "add a variant whose guard holds there, leave the value out, or say with `require` what is not meant",
                    )
                }),
        );
    }
    // What a single value tells is not told of each choice of types again.
    let Some(first) = missing.first().filter(|_| found.is_empty()) else { return found };
    let decl = manifest.attributes.iter().find_map(|decl| decl.specialize.as_ref());
    let place = Span::new(source, decl.map_or(0..0, |values| values.range.clone()));
    // No rule can ask for types.
    let diagnostic = told_of(&format!("nodes with {}", first.of_nodes(manifest)), place)
        .help("add a variant whose guard holds there; where such nodes are not meant, that they are refused is right");
    found.push(match missing.len() - 1 {
        0 => diagnostic,
        others => diagnostic.note(format!("nor {others} other choices of types and values")),
    });
    found
}

fn told_of(what: &str, place: Span) -> Diagnostic {
    Diagnostic::warning(format!("no variant serves {what}"))
        .code(rules::NO_VARIANT_WITHOUT_GUARD)
        .at(place, "each guard is false there")
        .note("such a node is refused when the engine is built")
}
