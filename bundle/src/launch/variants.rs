//! Which variants may run: the order in which they are asked, what their guards come to, and what to say where none may.
//!
//! A guard is correctness and the order preference. So whatever was chosen, by TensorRT or by nobody, a variant runs only where its
//! guard is true, and where that of the chosen one is not, the next in order whose is takes its place.

use super::choice::Decided;
use super::facts::{Facts, Unmet, describe};
use super::steps::Steps;
use crate::data_type::DataType;
use crate::expr::EvalError;
use crate::model::{AUTO_TACTIC, Guard, Plugin};
use crate::value::Value;

/// Whether a tactic leaves the choice to the shapes and addresses of each run.
#[must_use]
pub const fn is_automatic(tactic: i32) -> bool {
    tactic == 0 || tactic == AUTO_TACTIC
}

/// The indices of the variants that take these types, in the order in which they are asked: from the one that was chosen on, then
/// from the first.
///
/// # Errors
/// No variant takes the types, or the chosen one does not.
pub fn in_order(plugin: &Plugin, types: &[DataType], tactic: i32) -> Result<Vec<usize>, Unmet> {
    let fitting = plugin.variants.iter().enumerate().filter(|(_, variant)| variant.types == types);
    let mut order: Vec<usize> = fitting.map(|(index, _)| index).collect();
    if order.is_empty() {
        return Err(no_variant(plugin, types));
    }
    if !is_automatic(tactic) {
        let is_chosen =
            |index: &usize| plugin.variants.get(*index).is_some_and(|variant| variant.id == tactic);
        let chosen = order
            .iter()
            .position(is_chosen)
            .ok_or_else(|| Unmet(format!("there is no variant {tactic} for the node's types")))?;
        order.rotate_left(chosen);
    }
    Ok(order)
}

/// The error for types that no variant takes together; they may be those of the first tensors only.
#[must_use]
pub fn no_variant(plugin: &Plugin, types: &[DataType]) -> Unmet {
    /// More than this nobody reads.
    const SHOWN: usize = 32;
    let list = |types: &[DataType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
    let mut offered: Vec<&[DataType]> = Vec::new();
    for variant in &plugin.variants {
        if offered.len() <= SHOWN && !offered.contains(&variant.types.as_slice()) {
            offered.push(&variant.types);
        }
    }
    let mut texts: Vec<String> =
        offered.iter().take(SHOWN).map(|types| format!("({})", list(types))).collect();
    if offered.len() > SHOWN {
        texts.push("...".to_owned());
    }
    Unmet(format!("no variant takes the types ({}); the plugin has {}", list(types), texts.join(", ")))
}

/// Which of the variants `order` run for the shapes in `facts`, and which of them for which addresses; addresses that are in
/// `facts` are not looked at.
///
/// # Errors
/// No guard can hold, they ask too much about addresses, or they take too many steps.
pub fn decide(
    plugin: &Plugin,
    order: &[usize],
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<Decided, Unmet> {
    let facts = Facts { alignments: &[], ..*facts };
    let guards = order.iter().filter_map(|index| {
        let variant = plugin.variants.get(*index)?;
        Some((*index, variant.guard.as_ref().map(|guard| &guard.expr)))
    });
    let decided = Decided::of(guards, &facts, steps).map_err(|error| Unmet(error.to_string()))?;
    if decided.candidates.is_empty() {
        return Err(none_holds(plugin, order, &facts));
    }
    Ok(decided)
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
