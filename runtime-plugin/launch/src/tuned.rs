//! The measured order of allowed variants. Never allocates; linear in points.

use super::facts::Facts;
use super::signature::Signature;
use cubinder_model::model::{Plugin, TunedDevice, TunedPoint};

/// Returns measurements on the device in `facts`.
#[must_use]
pub fn tuned_device<'p>(plugin: &'p Plugin, facts: &Facts<'_>) -> Option<&'p TunedDevice> {
    let device = facts.device?;
    let is_it = |tuned: &&TunedDevice| {
        i64::from(tuned.capability) == device.capability && i64::from(tuned.sms) == device.sms
    };
    plugin.tuning.iter().find(is_it)
}

/// Returns a node's point: of its types, formats and ranks, first with its attributes, then with the nearest extents.
/// `None` without a known device, shapes or measurements. `serving`: the node's rows in table order.
#[must_use]
pub fn nearest_point<'p>(
    plugin: &'p Plugin,
    node: &Signature<'_>,
    serving: &[usize],
    facts: &Facts<'_>,
) -> Option<&'p TunedPoint> {
    let mut nearest: Option<(bool, f64, &TunedPoint)> = None;
    for point in &tuned_device(plugin, facts)?.points {
        if !is_served(point, serving) {
            continue;
        }
        let is_other =
            point.attributes.iter().any(|(index, value)| node.attributes.get(*index as usize) != Some(value));
        let below = match nearest {
            Some((known, distance, _)) if known == is_other => Some(distance),
            Some((false, ..)) => continue,
            _ => None,
        };
        if let Some(distance) = distance(plugin, point, facts.shapes, below) {
            nearest = Some((is_other, distance, point));
        }
    }
    nearest.map(|(.., point)| point)
}

/// Returns whether a point ranks rows in the sorted `serving`; its rows serve equal nodes.
#[must_use]
pub fn is_served(point: &TunedPoint, serving: &[usize]) -> bool {
    point.ranking.first().is_some_and(|row| serving.binary_search(&(*row as usize)).is_ok())
}

/// Returns the product of the ratios of extents plus 1; `None` if ranks differ or it reaches `below`. Unlike a sum of
/// logarithms, it is equal on every machine.
fn distance(plugin: &Plugin, point: &TunedPoint, shapes: &[&[i64]], below: Option<f64>) -> Option<f64> {
    // Unknown at run time for shape inputs.
    let has_extents = |tensor: usize| plugin.inputs.get(tensor).is_none_or(|input| input.values.is_none());
    let tensors = point.shapes.iter().enumerate().filter(|(tensor, _)| has_extents(*tensor));
    let ratios = tensors.map(|(tensor, measured)| ratio(shapes.get(tensor)?, measured));
    let mut product = 1.0_f64;
    for ratio in std::iter::once(Some(1.0)).chain(ratios) {
        product *= ratio?;
        // Ratios are at least 1.
        if below.is_some_and(|below| product >= below) {
            return None;
        }
    }
    Some(product)
}

/// Returns one tensor's ratio, without data-dependent extents. 8 extents of 63 bits fit a double.
fn ratio(shape: &[i64], measured: &[i64]) -> Option<f64> {
    if shape.len() != measured.len() {
        return None;
    }
    let (mut larger, mut smaller) = (1.0_f64, 1.0_f64);
    for (extent, measured) in shape.iter().zip(measured) {
        if *extent >= 0 && *measured >= 0 {
            #[allow(clippy::cast_precision_loss)] // approximate is sufficient
            let (extent, measured) = (*extent as f64 + 1.0, *measured as f64 + 1.0);
            larger *= extent.max(measured);
            smaller *= extent.min(measured);
        }
    }
    Some(larger / smaller)
}

/// Orders rows as a point ranks them; unranked rows stay before their successors.
pub fn put_in_order(rows: &mut [usize], ranking: &[u32]) {
    let is_named = |row: usize| ranking.iter().any(|named| *named as usize == row);
    let mut done = 0;
    for named in ranking {
        let Some(rest) = rows.get_mut(done..) else { return };
        let Some(place) = rest.iter().position(|row| *row == *named as usize) else { continue };
        let mut next = 0;
        for index in 0..=place {
            if index == place || rest.get(index).is_some_and(|row| !is_named(*row)) {
                if let Some(moved) = rest.get_mut(next..=index) {
                    moved.rotate_right(1);
                }
                next += 1;
            }
        }
        done += next;
    }
}
