use super::facts::Facts;
use super::facts::UNKNOWN_EXTENT;
use super::rules::size_at;
use super::steps::Steps;
use cubinder_expr::value::Value;
use cubinder_expr::{Bounds, Environment as _, RangeEnvironment};
use cubinder_model::model::{Interval, Output, Plugin};

/// Returns extents' ranges over all shape inputs' values; `None` if the rank is unknown or `steps` run out.
/// Data-dependent dimensions may be [`UNKNOWN_EXTENT`].
#[must_use]
pub fn extents_for_any_values(
    plugin: &Plugin,
    output: &Output,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Option<Vec<Interval>> {
    let bounds = steps.bounds_each(&output.shape, &AnyValues { plugin, facts }).ok()??;
    let least = |axis: usize, min: i64| if size_at(output, axis).is_some() { UNKNOWN_EXTENT } else { min };
    let extent = |(axis, bounds): (usize, Bounds)| Interval { min: least(axis, bounds.min), max: bounds.max };
    Some(bounds.into_iter().enumerate().map(extent).collect())
}

/// Unknown extents and values are within their limits.
pub struct AnyValues<'a> {
    /// The plugin, which has the limits.
    pub plugin: &'a Plugin,
    /// Shapes have -1 for unknown extents.
    pub facts: &'a Facts<'a>,
}

impl RangeEnvironment for AnyValues<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.facts.attribute(index)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.facts.shapes.get(tensor as usize).map(|shape| shape.len())
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        let extent = *self.facts.shapes.get(tensor as usize)?.get(axis)?;
        if extent >= 0 {
            return Some((extent, extent));
        }
        let allowed = self.plugin.inputs.get(tensor as usize)?.limits.dim(axis);
        Some((allowed.min, allowed.max))
    }

    fn values(&self, tensor: u32) -> (i64, i64) {
        let allowed = self.plugin.inputs.get(tensor as usize).and_then(|input| input.values);
        allowed.map_or((i64::MIN, i64::MAX), |allowed| (allowed.min, allowed.max))
    }
}
