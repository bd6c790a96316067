//! Validates measured times. Limits bound the search for the nearest point.

use super::at_most;
use crate::model::{MAX_RANK, Plugin, TunedDevice, TunedPoint, Variant};

/// Maximum measured kinds of GPUs.
pub const MAX_TUNED_DEVICES: usize = 64;
/// Maximum points of a plugin.
pub const MAX_TUNED_POINTS: usize = 4096;
/// Maximum number of extents of all points.
pub const MAX_TUNED_EXTENTS: usize = 1 << 16;
/// Maximum bytes of attributes of all points, by [`TunedPoint::attribute_bytes`].
pub const MAX_TUNED_BYTES: usize = 1 << 20;
/// Maximum ranked variants of a point.
pub const MAX_RANKED: usize = 64;

pub(super) fn validate_tuning(plugin: &Plugin) -> Result<(), String> {
    let tuning = &plugin.tuning;
    let points = || tuning.iter().flat_map(|device| &device.points);
    let extents =
        points().flat_map(|point| &point.shapes).fold(0, |sum: usize, it| sum.saturating_add(it.len()));
    let bytes = points().map(TunedPoint::attribute_bytes).fold(0, usize::saturating_add);
    for (what, found, most) in [
        ("GPU models with measurements", tuning.len(), MAX_TUNED_DEVICES),
        ("measured nodes", points().count(), MAX_TUNED_POINTS),
        ("extents of measured nodes", extents, MAX_TUNED_EXTENTS),
        ("bytes of attributes of measured nodes", bytes, MAX_TUNED_BYTES),
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
            "duplicate measurements for compute capability {} with {} multiprocessors",
            device.capability, device.sms
        ));
    }
    let mut kinds = Kinds::new(&plugin.variants);
    points().try_for_each(|point| validate_point(plugin, &mut kinds, point))
}

/// Groups of rows for the same nodes.
struct Kinds<'p> {
    variants: &'p [Variant],
    representatives: Vec<usize>,
}

impl Kinds<'_> {
    fn new(variants: &[Variant]) -> Kinds<'_> {
        Kinds { variants, representatives: (0..variants.len()).collect() }
    }

    fn representative(&mut self, row: u32) -> Option<usize> {
        let mut row = row as usize;
        loop {
            let next = *self.representatives.get(row)?;
            if next == row {
                return Some(row);
            }
            // Path halving keeps paths short.
            let beyond = *self.representatives.get(next)?;
            *self.representatives.get_mut(row)? = beyond;
            row = beyond;
        }
    }

    fn are_alike(&mut self, one: u32, other: u32) -> Option<bool> {
        let (one, other) = (self.representative(one)?, self.representative(other)?);
        if one != other {
            let (first, second) = (self.variants.get(one)?, self.variants.get(other)?);
            if (&first.types, &first.formats, &first.specialized)
                != (&second.types, &second.formats, &second.specialized)
            {
                return Some(false);
            }
            *self.representatives.get_mut(other)? = one;
        }
        Some(true)
    }
}

fn validate_point(plugin: &Plugin, kinds: &mut Kinds<'_>, point: &TunedPoint) -> Result<(), String> {
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
    let is_there = |row: &&u32| (**row as usize) < plugin.variants.len();
    let Some(first) = point.ranking.first().filter(is_there) else { return wrong("ranks no variant") };
    for (place, ranked) in point.ranking.iter().enumerate() {
        let is_new = !point.ranking.iter().take(place).any(|known| known == ranked);
        if !is_new || kinds.are_alike(*first, *ranked) != Some(true) {
            return wrong(&format!("ranks variant {ranked} of {}", plugin.variants.len()));
        }
    }
    Ok(())
}
