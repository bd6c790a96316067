//! The order of variants where they were measured.
//!
//! Owns which of a plugin's points is the nearest to a node with its shapes. Order is preference alone: whether a variant may run its guard
//! says. Works whenever shapes change, so it allocates nothing, and takes a time that grows with the number of points.

use super::facts::Facts;
use super::signature::Signature;
use cubinder_model::model::{Plugin, TunedDevice, TunedPoint};

/// What was measured on the device at hand.
#[must_use]
pub fn tuned_device<'p>(plugin: &'p Plugin, facts: &Facts<'_>) -> Option<&'p TunedDevice> {
    let device = facts.device?;
    let is_it = |tuned: &&TunedDevice| {
        i64::from(tuned.capability) == device.capability && i64::from(tuned.sms) == device.sms
    };
    plugin.tuning.iter().find(is_it)
}

/// The point that decides for a node with the shapes and on the device of `facts`: of those with its types, formats and ranks one whose
/// attributes are the node's before one whose are others, then the one whose extents are the nearest, then the first. None where nothing was
/// measured, or the device or a shape is not known. `serving` are the rows of the table that serve the node, in the table's order: what a row is
/// for may be long, and no point makes it be compared again.
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

/// Whether a point ranks rows among `serving`, which are in the table's order. All rows of a point are for the same nodes.
#[must_use]
pub fn is_served(point: &TunedPoint, serving: &[usize]) -> bool {
    point.ranking.first().is_some_and(|row| serving.binary_search(&(*row as usize)).is_ok())
}

/// How many times larger or smaller the extents are than those of a point, all multiplied: 2 to the sum of the distances of their logarithms.
/// One more than each extent counts, because an extent may be 0. None where the ranks are others, and where it is not less than `below`.
///
/// Products and quotients of doubles are the same on every machine, which logarithms need not be.
fn distance(plugin: &Plugin, point: &TunedPoint, shapes: &[&[i64]], below: Option<f64>) -> Option<f64> {
    // Of shape inputs the run time knows no extents.
    let has_extents = |tensor: usize| plugin.inputs.get(tensor).is_none_or(|input| input.values.is_none());
    let tensors = point.shapes.iter().enumerate().filter(|(tensor, _)| has_extents(*tensor));
    let ratios = tensors.map(|(tensor, measured)| ratio(shapes.get(tensor)?, measured));
    let mut product = 1.0_f64;
    // Where there is no tensor to compare, the distance is 1, which is not less than 1 either.
    for ratio in std::iter::once(Some(1.0)).chain(ratios) {
        product *= ratio?;
        // No tensor brings it nearer.
        if below.is_some_and(|below| product >= below) {
            return None;
        }
    }
    Some(product)
}

/// The same for one tensor. An extent that depends on data is not known to either. It has at most 8 extents of 63 bits, so no product is beyond a double.
fn ratio(shape: &[i64], measured: &[i64]) -> Option<f64> {
    if shape.len() != measured.len() {
        return None;
    }
    let (mut larger, mut smaller) = (1.0_f64, 1.0_f64);
    for (extent, measured) in shape.iter().zip(measured) {
        if *extent >= 0 && *measured >= 0 {
            #[allow(clippy::cast_precision_loss)] // near is near
            let (extent, measured) = (*extent as f64 + 1.0, *measured as f64 + 1.0);
            larger *= extent.max(measured);
            smaller *= extent.min(measured);
        }
    }
    Some(larger / smaller)
}

/// Puts rows, which stand in the table's order, in the order of a point: those that it names as it names them. Those that it does not name could not run
/// there, or are new: they keep their place before the rows that the table has after them, so that a point where little could run says nothing against
/// what can run elsewhere.
pub fn put_in_order(rows: &mut [usize], ranking: &[u32]) {
    let is_named = |row: usize| ranking.iter().any(|named| *named as usize == row);
    let mut done = 0;
    for named in ranking {
        // What is left stands in the table's order still.
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
