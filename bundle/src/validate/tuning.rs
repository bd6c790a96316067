//! Whether measurements are of the plugin that they stand in. What is read bounds the work of whoever looks for the nearest point.

use super::at_most;
use crate::model::{MAX_RANK, Plugin, TunedDevice, TunedPoint, Variant};

/// The most kinds of GPUs on which a plugin was measured.
pub const MAX_TUNED_DEVICES: usize = 64;
/// The most points of a plugin, on all of them.
pub const MAX_TUNED_POINTS: usize = 4096;
/// The most extents of all its points.
pub const MAX_TUNED_EXTENTS: usize = 1 << 16;
/// The most variants that a point ranks.
pub const MAX_RANKED: usize = 64;

/// Checks what was measured of a plugin; the error says what is wrong.
pub(super) fn validate_tuning(plugin: &Plugin) -> Result<(), String> {
    let tuning = &plugin.tuning;
    let points = || tuning.iter().flat_map(|device| &device.points);
    let extents =
        points().flat_map(|point| &point.shapes).fold(0, |sum: usize, it| sum.saturating_add(it.len()));
    for (what, found, most) in [
        ("kinds of GPUs with measurements", tuning.len(), MAX_TUNED_DEVICES),
        ("measured nodes", points().count(), MAX_TUNED_POINTS),
        ("extents of measured nodes", extents, MAX_TUNED_EXTENTS),
    ] {
        at_most(what, found, most)?;
    }
    let is_alike =
        |one: &TunedDevice, other: &TunedDevice| (one.capability, one.sms) == (other.capability, other.sms);
    let mut earlier = tuning.iter().enumerate();
    if let Some((_, device)) =
        earlier.find(|(at, it)| tuning.iter().take(*at).any(|known| is_alike(known, it)))
    {
        return Err(format!(
            "measurements for compute capability {} with {} multiprocessors are there twice",
            device.capability, device.sms
        ));
    }
    points().try_for_each(|point| validate_point(plugin, point))
}

fn validate_point(plugin: &Plugin, point: &TunedPoint) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("a measured node {what}"));
    if point.shapes.len() != plugin.tensor_count() {
        return wrong(&format!(
            "has {} tensors, the plugin has {}",
            point.shapes.len(),
            plugin.tensor_count()
        ));
    }
    if point.shapes.iter().any(|shape| shape.len() > usize::from(MAX_RANK)) {
        return wrong("has a tensor with too many dimensions");
    }
    let mut least = 0;
    for (index, value) in &point.attributes {
        let attribute = plugin.attributes.get(*index as usize).filter(|_| *index >= least);
        let Some(attribute) = attribute else { return wrong(&format!("has attribute {index}")) };
        attribute.check(value).map_err(|error| error.to_string())?;
        least = index.saturating_add(1);
    }
    at_most("ranked variants", point.ranking.len(), MAX_RANKED)?;
    let row = |row: &u32| plugin.variants.get(*row as usize);
    let Some(first) = point.ranking.first().and_then(row) else { return wrong("ranks no variant") };
    let is_of_its_kind = |variant: &Variant| {
        (&variant.types, &variant.formats, &variant.specialized)
            == (&first.types, &first.formats, &first.specialized)
    };
    for (place, ranked) in point.ranking.iter().enumerate() {
        let is_new = !point.ranking.iter().take(place).any(|known| known == ranked);
        if !is_new || !row(ranked).is_some_and(is_of_its_kind) {
            return wrong(&format!("ranks variant {ranked} of {}", plugin.variants.len()));
        }
    }
    Ok(())
}
