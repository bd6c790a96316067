//! Whether measurements are of the plugin that they stand in. What is read bounds the work of whoever looks for the nearest point.

use super::at_most;
use crate::model::{MAX_RANK, Plugin, TunedDevice, TunedPoint, Variant};

/// The most kinds of GPUs on which a plugin was measured.
pub const MAX_TUNED_DEVICES: usize = 64;
/// The most points of a plugin, on all of them.
pub const MAX_TUNED_POINTS: usize = 4096;
/// The most extents of all its points.
pub const MAX_TUNED_EXTENTS: usize = 1 << 16;
/// The most bytes of attributes of all its points, as [`TunedPoint::attribute_bytes`] counts them.
pub const MAX_TUNED_BYTES: usize = 1 << 20;
/// The most variants that a point ranks.
pub const MAX_RANKED: usize = 64;

/// Checks what was measured of a plugin; the error says what is wrong.
pub(super) fn validate_tuning(plugin: &Plugin) -> Result<(), String> {
    let tuning = &plugin.tuning;
    let points = || tuning.iter().flat_map(|device| &device.points);
    let extents =
        points().flat_map(|point| &point.shapes).fold(0, |sum: usize, it| sum.saturating_add(it.len()));
    let bytes = points().map(TunedPoint::attribute_bytes).fold(0, usize::saturating_add);
    for (what, found, most) in [
        ("kinds of GPUs with measurements", tuning.len(), MAX_TUNED_DEVICES),
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
            "measurements for compute capability {} with {} multiprocessors are there twice",
            device.capability, device.sms
        ));
    }
    let mut kinds = Kinds::new(&plugin.variants);
    points().try_for_each(|point| validate_point(plugin, &mut kinds, point))
}

/// Which rows of the table are for the same nodes, as far as that was asked.
///
/// What a row is for may be as long as a file. Of rows that were found to be alike only one is compared again, and rows that are not
/// alike end the check, so all that is compared takes no longer than reading it did.
struct Kinds<'p> {
    variants: &'p [Variant],
    /// For each row a row that is alike and stands for it; itself where none is known.
    representatives: Vec<usize>,
}

impl Kinds<'_> {
    fn new(variants: &[Variant]) -> Kinds<'_> {
        Kinds { variants, representatives: (0..variants.len()).collect() }
    }

    /// The row that stands for this one; none where there is no such row.
    fn representative(&mut self, row: u32) -> Option<usize> {
        let mut row = row as usize;
        loop {
            let next = *self.representatives.get(row)?;
            if next == row {
                return Some(row);
            }
            // Every other step is left out the next time, so that ways stay short.
            let beyond = *self.representatives.get(next)?;
            *self.representatives.get_mut(row)? = beyond;
            row = beyond;
        }
    }

    /// Whether there are such rows, and they are for the same nodes.
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
