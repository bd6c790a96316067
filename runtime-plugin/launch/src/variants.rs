//! Which variants may run: the order in which they are asked, what their guards come to, and what to say where none may.
//!
//! A guard is correctness and the order preference. So whatever was chosen, by TensorRT or by nobody, a variant runs only where its
//! guard is true, and where that of the chosen one is not, the next in order whose is takes its place.

use super::choice::{GuardDecision, UndecidedGuards};
use super::facts::{Facts, describe};
use super::signature::{Signature, no_variant, serving};
use super::steps::{Steps, weight};
use super::tuned::{nearest_point, put_in_order};
use cubinder_expr::value::Value;
use cubinder_expr::{BinaryOp, EvalError, Expr, Node};
use cubinder_model::attribute_check::Unmet;
use cubinder_model::model::{AUTO_TACTIC, Guard, Plugin, Variant};

/// Whether a tactic leaves the choice to the shapes and addresses of each run.
#[must_use]
pub const fn is_automatic(tactic: i32) -> bool {
    tactic == 0 || tactic == AUTO_TACTIC
}

/// The indices of the variants that serve a node, in the order in which they are asked: from the one that was chosen on, then from
/// the first. Where the choice is left open and variants were measured on the device of `facts`, those stand as fast as they were for the shapes nearest
/// to those of `facts` ([`put_in_order`]).
///
/// # Errors
/// No variant serves the node, or the chosen one does not.
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
            Unmet(format!("there is no variant {tactic} for the node's {what}"))
        })?;
        order.rotate_left(chosen);
    }
    Ok(order)
}

/// Which of the variants `order` run for the shapes in `facts`, and which of them for which addresses; addresses that are in
/// `facts` are not looked at.
///
/// How much guards ask for is a matter of the order too: those behind one that holds are not looked at. So where `tactic` leaves the
/// choice open and guards ask for too much in the order of times, the manifest's order counts, as where nothing was measured.
///
/// # Errors
/// No guard can hold, they ask too much about addresses, or they take too many steps.
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
            let mut by_manifest = order.to_vec();
            by_manifest.sort_unstable();
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

/// Whether a guard is false whatever is not known yet: one of the conditions that all have to hold is.
#[must_use]
pub fn is_excluded(guard: Option<&Guard>, facts: &Facts<'_>, steps: &mut Steps) -> bool {
    let Some(expr) = guard.map(|guard| &guard.expr) else { return false };
    let Some(mut open) = expr.nodes.len().checked_sub(1).map(|root| vec![root]) else { return false };
    while let Some(root) = open.pop() {
        // Parts may be shared, so there can be more places than nodes.
        if steps.charge(1).is_err() {
            return false;
        }
        match expr.nodes.get(root) {
            Some(Node::Binary(BinaryOp::And, left, right)) => open.extend([*left as usize, *right as usize]),
            // Operands come before what they are operands of, so that what leads up to a node is an expression.
            Some(_) => {
                let end = root.saturating_add(1);
                // A copy of what leads up to it, with its text.
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

/// Whether something about a variant depends on the device that it runs on.
#[must_use]
pub fn asks_for_device(variant: &Variant) -> bool {
    variant.exprs().flat_map(|expr| &expr.nodes).any(|node| matches!(node, Node::Device(_)))
}

/// Whether a variant may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardVerdict {
    /// Its guard holds, or it has none.
    Holds,
    /// Its guard is false.
    Fails,
    /// Its guard has no value; the variant is not run.
    NoValue(EvalError),
}

/// Whether a guard holds with everything in `facts`: only what is plainly true does. It is what [`decide`] comes to, for one
/// variant by itself.
#[must_use]
pub fn verdict(guard: Option<&Guard>, facts: &Facts<'_>, steps: &mut Steps) -> GuardVerdict {
    match guard.map(|guard| steps.value(&guard.expr, facts)) {
        None | Some(Ok(Value::Bool(true))) => GuardVerdict::Holds,
        Some(Ok(_)) => GuardVerdict::Fails,
        Some(Err(error)) => GuardVerdict::NoValue(error),
    }
}

/// The error for shapes, and addresses where they are known, for which none of the variants `order` may run.
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
                Ok(value) => format!("is `{value}`, which is no boolean"),
                Err(error) => format!("has no value ({})", steps.why(&error)),
            };
            Some(format!("variant {}: guard `{}` {outcome}", variant.id, guard.text))
        })
        .collect();
    Unmet(format!("no variant can run: {}{}", guards.join("; "), describe(plugin, facts)))
}
