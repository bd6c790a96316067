//! Which variants may run: the order in which they are asked, what their guards come to, and what to say where none may.
//!
//! A guard is correctness and the order preference. So whatever was chosen, by TensorRT or by nobody, a variant runs only where its
//! guard is true, and where that of the chosen one is not, the next in order whose is takes its place.

use std::ffi::c_void;

use cubinder_bundle::expr::{self, Environment};
use cubinder_bundle::proof::Domain;
use cubinder_bundle::{AUTO_TACTIC, DataType, Value, Variant};
use trt_abi::{Error, Severity, logger};

use super::NodeData;
use super::environment::{NodeEnvironment, describe};
use super::limits::Profile;
use crate::launch::Decided;

/// The tactics that a plugin offers: first the one that leaves the choice to the shapes of each run, because TensorRT-RTX takes
/// the first, then the variants that may run for every shape of the profile, in their order. A plugin with a single variant offers no
/// choice, so it has no tactics.
pub(super) fn tactics<'a>(
    node: &NodeData,
    reachable: impl Iterator<Item = &'a Variant>,
    profile: Option<&Profile>,
) -> Vec<i32> {
    let mut domain = Domain::of(node.definition.plugin()).with_attributes(&node.attributes);
    if let Some(profile) = profile {
        domain = domain.with_profile(&profile.inputs);
    }
    let always = |variant: &Variant| variant.guard.as_ref().is_none_or(|guard| domain.proves(&guard.expr));
    // Rows that differ in types alone share an id; before types are settled all of them have to hold.
    let mut ids: Vec<(i32, bool)> = Vec::new();
    for variant in reachable {
        match ids.iter_mut().find(|(id, _)| *id == variant.id) {
            Some((_, holds)) => *holds = *holds && always(variant),
            None => ids.push((variant.id, always(variant))),
        }
    }
    if ids.len() < 2 {
        return Vec::new();
    }
    let proved = ids.into_iter().filter(|(_, holds)| *holds).map(|(id, _)| id);
    std::iter::once(AUTO_TACTIC).chain(proved).collect()
}

/// Whether a tactic can be set: 0, a variant's id, or [`AUTO_TACTIC`] where there is a choice to leave.
pub(super) fn is_tactic(node: &NodeData, tactic: i32) -> bool {
    let mut ids = node.definition.plugin().variants.iter().map(|variant| variant.id);
    match tactic {
        0 => true,
        AUTO_TACTIC => ids.next().is_some_and(|first| ids.any(|id| id != first)),
        tactic => ids.any(|id| id == tactic),
    }
}

/// Whether a tactic leaves the choice to the shapes and addresses of each run.
pub(super) fn is_automatic(tactic: i32) -> bool {
    tactic == 0 || tactic == AUTO_TACTIC
}

/// The indices of the variants that take these types, in the order in which they are asked: from the one that was chosen on, then
/// from the first.
///
/// # Errors
/// No variant takes the types, or the chosen one does not.
pub(super) fn in_order(node: &NodeData, types: &[DataType], tactic: i32) -> Result<Vec<usize>, Error> {
    let variants = &node.definition.plugin().variants;
    let fitting = variants.iter().enumerate().filter(|(_, variant)| variant.types == types);
    let mut order: Vec<usize> = fitting.map(|(index, _)| index).collect();
    if order.is_empty() {
        return Err(node.no_variant(types));
    }
    if !is_automatic(tactic) {
        let chosen = order.iter().position(|index| variants[*index].id == tactic).ok_or_else(|| {
            Error::invalid(format!("{}: there is no variant {tactic} for the node's types", node.title))
        })?;
        order.rotate_left(chosen);
    }
    Ok(order)
}

/// What the guards of the variants `order` come to for the shapes in `environment`. The candidates are places in `order`.
///
/// # Errors
/// No guard can hold, or they ask too much about addresses.
pub(super) fn decide(
    node: &NodeData,
    order: &[usize],
    environment: &NodeEnvironment<'_>,
) -> Result<Decided, Error> {
    let plugin = node.definition.plugin();
    let guards = order.iter().map(|index| plugin.variants[*index].guard.as_ref().map(|guard| &guard.expr));
    let decided = Decided::of(guards, environment, plugin.inputs.len())
        .map_err(|error| Error::invalid(format!("{}: {error}", node.title)))?;
    if decided.candidates.is_empty() {
        return Err(none_holds(node, order, environment, None));
    }
    Ok(decided)
}

/// The error for shapes, and addresses where they are known, for which no variant may run.
#[cold]
pub(super) fn none_holds(
    node: &NodeData,
    order: &[usize],
    environment: &NodeEnvironment<'_>,
    addresses: Option<&[usize]>,
) -> Error {
    let plugin = node.definition.plugin();
    let placed = Placed { environment, addresses: addresses.unwrap_or_default() };
    let guards: Vec<String> = order
        .iter()
        .filter_map(|index| {
            let variant = &plugin.variants[*index];
            let guard = variant.guard.as_ref()?;
            let outcome = match expr::evaluate(&guard.expr, &placed) {
                Ok(Value::Bool(value)) => format!("is {value}"),
                Ok(value) => format!("is `{value}`, which is no boolean"),
                Err(error) => format!("has no value ({error})"),
            };
            Some(format!("variant {}: guard `{}` {outcome}", variant.id, guard.text))
        })
        .collect();
    let mut facts = describe(node, environment);
    for (index, address) in addresses.unwrap_or_default().iter().enumerate() {
        let name = plugin.tensor_name(index).unwrap_or("?");
        match address.trailing_zeros() {
            _ if *address == 0 => facts.push_str(&format!(", {name} is null")),
            // No kernel needs more, and nobody wants to read it.
            zeros => facts.push_str(&format!(", {name} is aligned to {}", 1_u32 << zeros.min(12))),
        }
    }
    Error::invalid(format!("{}: no variant can run: {}{facts}", node.title, guards.join("; ")))
}

/// Says, where somebody asked to be told everything, that another variant runs than the one that was chosen.
pub(super) fn say_replaced(
    node: &NodeData,
    chosen: usize,
    running: usize,
    environment: &NodeEnvironment<'_>,
) {
    let variants = &node.definition.plugin().variants;
    let (chosen, running) = (&variants[chosen], &variants[running]);
    let guard = chosen.guard.as_ref().map_or("", |guard| &guard.text);
    logger::log(
        Severity::VERBOSE,
        &format!(
            "cubinder: {}: variant {} runs in place of variant {}, whose guard `{guard}` does not hold{}",
            node.title,
            running.id,
            chosen.id,
            describe(node, environment)
        ),
    );
}

/// Says that guards have no value; their variants do not run, which is safe and surely not what was meant.
pub(super) fn say_without_value(
    node: &NodeData,
    order: &[usize],
    decided: &Decided,
    environment: &NodeEnvironment<'_>,
) {
    let variants = &node.definition.plugin().variants;
    for (place, error) in &decided.without_value {
        let Some(variant) = order.get(*place).and_then(|index| variants.get(*index)) else { continue };
        let guard = variant.guard.as_ref().map_or("", |guard| &guard.text);
        logger::log(
            Severity::WARNING,
            &format!(
                "cubinder: {}: variant {} does not run, because its guard `{guard}` has no value: {error}{}",
                node.title,
                variant.id,
                describe(node, environment)
            ),
        );
    }
}

/// The addresses of the inputs, then the outputs, as numbers.
pub(super) fn addresses(inputs: &[*const c_void], outputs: &[*mut c_void]) -> Vec<usize> {
    let inputs = inputs.iter().map(|address| address.addr());
    inputs.chain(outputs.iter().map(|address| address.addr())).collect()
}

/// A node's environment with the addresses of its tensors.
struct Placed<'a> {
    environment: &'a NodeEnvironment<'a>,
    addresses: &'a [usize],
}

impl Environment for Placed<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.environment.attribute(index)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.environment.shape(tensor)
    }

    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        let address = self.addresses.get(tensor as usize)?;
        Some(address & bytes.saturating_sub(1) as usize == 0)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.environment.rank(tensor)
    }
}
