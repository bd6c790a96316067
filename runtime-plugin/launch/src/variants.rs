//! Guards are correctness, order is preference: the first true guard wins.

use super::choice::{GuardDecision, UndecidedGuards};
use super::facts::{Facts, describe};
use super::signature::{Signature, no_variant, serving};
use super::steps::{Steps, weight};
use super::tuned::{nearest_point, put_in_order};
use cubinder_expr::sorted;
use cubinder_expr::value::Value;
use cubinder_expr::{BinaryOp, EvalError, Expr, Node};
use cubinder_model::attribute_check::Unmet;
use cubinder_model::model::{AUTO_TACTIC, Guard, Plugin, Variant};

/// Returns whether each run chooses.
#[must_use]
pub const fn is_automatic(tactic: i32) -> bool {
    tactic == 0 || tactic == AUTO_TACTIC
}

/// Returns a node's variants: from the chosen one on, then from the first. Automatic tactics use measurements.
pub fn in_order(
    plugin: &Plugin,
    node: &Signature<'_>,
    tactic: i32,
    facts: &Facts<'_>,
) -> Result<Vec<usize>, Unmet> {
    let mut order = serving(plugin, node);
    if order.is_empty() {
        return Err(no_variant(plugin, node));
    }
    if is_automatic(tactic) {
        if let Some(point) = nearest_point(plugin, node, &order, facts) {
            put_in_order(&mut order, &point.ranking);
        }
    } else {
        let is_chosen =
            |index: &usize| plugin.variants.get(*index).is_some_and(|variant| variant.id == tactic);
        let chosen = order.iter().position(is_chosen).ok_or_else(|| {
            let what = if node.has_special_formats() { "types and formats" } else { "types" };
            Unmet(format!("no variant {tactic} exists for the node's {what}"))
        })?;
        order.rotate_left(chosen);
    }
    Ok(order)
}

/// Decides which variants of `order` run for which addresses, ignoring addresses in `facts`. If an automatic
/// `tactic`'s guards exceed limits in measured order, uses the manifest's.
pub fn decide(
    plugin: &Plugin,
    order: &[usize],
    tactic: i32,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<GuardDecision, Unmet> {
    let facts = Facts { alignments: &[], ..*facts };
    let before = steps.clone();
    let decided = match decide_in(plugin, order, &facts, steps) {
        Err(_) if is_automatic(tactic) && !order.is_sorted() => {
            let by_manifest = sorted(order.to_vec());
            *steps = before;
            decide_in(plugin, &by_manifest, &facts, steps)
        }
        decided => decided,
    };
    let decided = decided.map_err(|error| Unmet(error.to_string()))?;
    if decided.candidates.is_empty() {
        return Err(none_holds(plugin, order, &facts));
    }
    Ok(decided)
}

fn decide_in(
    plugin: &Plugin,
    order: &[usize],
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<GuardDecision, UndecidedGuards> {
    let guards = order.iter().filter_map(|index| {
        let variant = plugin.variants.get(*index)?;
        Some((*index, variant.guard.as_ref().map(|guard| &guard.expr)))
    });
    let mut decided = GuardDecision::from_guards(guards, facts, steps)?;
    if let Some(choice) = &mut decided.choice {
        choice.resolve(|tensor| plugin.storage_of(tensor));
    }
    Ok(decided)
}

/// Returns whether a guard or conjunct is false whatever is unknown.
#[must_use]
pub fn is_excluded(guard: Option<&Guard>, facts: &Facts<'_>, steps: &mut Steps) -> bool {
    let Some(expr) = guard.map(|guard| &guard.expr) else { return false };
    let Some(mut open) = expr.nodes.len().checked_sub(1).map(|root| vec![root]) else { return false };
    while let Some(root) = open.pop() {
        // Shared parts are visited repeatedly.
        if steps.charge(1).is_err() {
            return false;
        }
        match expr.nodes.get(root) {
            Some(Node::Binary(BinaryOp::And, left, right)) => open.extend([*left as usize, *right as usize]),
            // Operands precede operators, so each prefix is an expression.
            Some(_) => {
                let end = root.saturating_add(1);
                if steps.charge(weight(expr.nodes.iter().take(end))).is_err() {
                    return false;
                }
                let part = Expr { nodes: expr.nodes.iter().take(end).cloned().collect() };
                if steps.value(&part, facts) == Ok(Value::Bool(false)) {
                    return true;
                }
            }
            None => {}
        }
    }
    false
}

/// Returns whether a variant depends on the device.
#[must_use]
pub fn asks_for_device(variant: &Variant) -> bool {
    variant.exprs().flat_map(|expr| &expr.nodes).any(|node| matches!(node, Node::Device(_)))
}

/// Whether a variant may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardVerdict {
    /// True or absent.
    Holds,
    /// False.
    Fails,
    /// No value: must not run.
    NoValue(EvalError),
}

/// Evaluates a guard with all `facts`.
#[must_use]
pub fn verdict(guard: Option<&Guard>, facts: &Facts<'_>, steps: &mut Steps) -> GuardVerdict {
    match guard.map(|guard| steps.value(&guard.expr, facts)) {
        None | Some(Ok(Value::Bool(true))) => GuardVerdict::Holds,
        Some(Ok(_)) => GuardVerdict::Fails,
        Some(Err(error)) => GuardVerdict::NoValue(error),
    }
}

/// Returns the error if no variant of `order` may run.
#[must_use]
pub fn none_holds(plugin: &Plugin, order: &[usize], facts: &Facts<'_>) -> Unmet {
    let mut steps = Steps::default();
    let guards: Vec<String> = order
        .iter()
        .filter_map(|index| {
            let variant = plugin.variants.get(*index)?;
            let guard = variant.guard.as_ref()?;
            let outcome = match steps.value(&guard.expr, facts) {
                Ok(Value::Bool(value)) => format!("is {value}"),
                Ok(value) => format!("is `{value}`, not a boolean"),
                Err(error) => format!("has no value ({})", steps.why(&error)),
            };
            Some(format!("variant {}: guard `{}` {outcome}", variant.id, guard.text))
        })
        .collect();
    Unmet(format!("no variant can run: {}{}", guards.join("; "), describe(plugin, facts)))
}
