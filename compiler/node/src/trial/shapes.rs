//! Random and smaller shapes, attributes and types of a plugin.

use cubinder_expr::{Interval, Value};
use cubinder_launch as launch;
use cubinder_launch::{
    Device, Facts, Signature, Steps, UNKNOWN_EXTENT, output_shapes, rules_of_attributes, rules_of_shapes,
};
use cubinder_model::{AUTO_TACTIC, Attribute, AttributeElement, Plugin, ShapeLimits, Variant};
use fastrand::Rng;

use super::array::count;
use crate::query::{DEFAULT_ALIGNMENT, Query, RawAttributeValue};

/// Node without its data.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Input shapes.
    pub shapes: Vec<Vec<i64>>,
    /// Values of shape inputs; empty for others.
    pub values: Vec<Vec<i64>>,
    /// Attributes, in the plugin's order.
    pub attributes: Vec<Value>,
    /// Variant with the tensors' types and formats.
    pub row: usize,
}

/// Maximum elements of a tensor.
pub const MOST_ELEMENTS: usize = 1 << 20;
const ATTEMPTS: usize = 20_000;
/// Around powers of two and block sizes.
const EXTENTS: [i64; 26] =
    [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 255, 257, 1000, 1025];

/// Returns random allowed sizes, if found; reuses `known` attributes and ranks.
#[must_use]
pub fn random(plugin: &Plugin, device: Device, known: &[Sizes], seed: u64) -> Option<Sizes> {
    let mut source = Rng::with_seed(seed);
    (0..ATTEMPTS).map(|_| draw(plugin, known, &mut source)).find(|sizes| is_allowed(plugin, device, sizes))
}

fn draw(plugin: &Plugin, known: &[Sizes], source: &mut Rng) -> Sizes {
    let template = source.choice(known).filter(|_| source.u8(..4) != 0);
    let row = source.usize(..plugin.variants.len().max(1));
    let resized = template.filter(|_| source.bool()).map(|template| resized(plugin, template, source));
    let mut shapes: Vec<Vec<i64>> = Vec::new();
    let mut values = Vec::new();
    let reach = source.usize(..3);
    for (index, input) in plugin.inputs.iter().enumerate() {
        let like = template.and_then(|template| template.shapes.get(index));
        let ranks = usize::from(input.rank_min)..=usize::from(input.rank_max.max(input.rank_min));
        let rank = like.map_or_else(|| source.usize(ranks), Vec::len);
        if let Some(bounds) = input.values {
            let held = template.and_then(|template| template.values.get(index)).map(Vec::len);
            let number = if input.rank_max == 0 { 1 } else { held.unwrap_or_else(|| source.usize(..5)) };
            let bounds = Interval { min: bounds.min.max(-8), max: bounds.max.min(64) };
            let held: Vec<i64> = (0..number).map(|_| within(bounds, source)).collect();
            shapes.push(if input.rank_max == 0 { Vec::new() } else { vec![held.len() as i64] });
            values.push(held);
            continue;
        }
        values.push(Vec::new());
        if let Some(shape) = resized.as_ref().and_then(|shapes| shapes.get(index)) {
            shapes.push(shape.clone());
            continue;
        }
        // Tensors often have equal dimensions.
        let former = shapes.iter().rev().find(|shape| shape.len() == rank).cloned();
        let former = former.filter(|_| source.u8(..4) != 0);
        shapes.push(match former {
            Some(former) if source.bool() => former,
            former => {
                (0..rank).map(|axis| extent(&input.limits, axis, reach, former.as_ref(), source)).collect()
            }
        });
    }
    let served = plugin.variants.get(row);
    let rank = shapes.first().map_or(0, Vec::len);
    let attributes = plugin.attributes.iter().enumerate().map(|(index, attribute)| {
        let wanted = served.and_then(|variant| specialized(variant, index));
        let like =
            template.and_then(|template| template.attributes.get(index)).filter(|_| source.u8(..4) != 0);
        wanted.or(like).cloned().unwrap_or_else(|| value(attribute, rank, source))
    });
    let attributes = attributes.collect();
    Sizes { shapes, values, attributes, row }
}

/// Equal extents often must stay equal.
fn resized(plugin: &Plugin, template: &Sizes, source: &mut Rng) -> Vec<Vec<i64>> {
    let reach = source.usize(..3);
    let mut others: Vec<(i64, i64)> = Vec::new();
    let inputs = plugin.inputs.iter().zip(&template.shapes);
    let shapes = inputs.map(|(input, shape)| {
        let one = |(axis, extent): (usize, &i64)| {
            let allowed = input.limits.dim(axis);
            if allowed.min == allowed.max {
                return *extent;
            }
            if let Some((_, other)) = others.iter().find(|(known, _)| known == extent) {
                return *other;
            }
            let other =
                if source.bool() { *extent } else { self::extent(&input.limits, axis, reach, None, source) };
            others.push((*extent, other));
            other
        };
        shape.iter().enumerate().map(one).collect()
    });
    shapes.collect()
}

fn specialized(variant: &Variant, index: usize) -> Option<&Value> {
    variant.specialized.iter().find(|(of, _)| *of as usize == index).map(|(_, value)| value)
}

fn within(bounds: Interval, source: &mut Rng) -> i64 {
    if bounds.min > bounds.max { bounds.min } else { source.i64(bounds.min..=bounds.max) }
}

fn extent(
    limits: &ShapeLimits,
    axis: usize,
    reach: usize,
    former: Option<&Vec<i64>>,
    source: &mut Rng,
) -> i64 {
    if let Some(former) = former.and_then(|former| former.get(axis)).filter(|_| source.u8(..4) != 0) {
        return *former;
    }
    let allowed = limits.dim(axis);
    // Several large extents exceed the limit.
    let most = [9, 17, EXTENTS.len()].get(reach).copied().unwrap_or(EXTENTS.len());
    let fitting: Vec<i64> =
        EXTENTS.iter().take(most).copied().filter(|extent| allowed.contains(*extent)).collect();
    match source.choice(fitting.iter()) {
        Some(extent) => *extent,
        None => within(
            Interval { min: allowed.min, max: allowed.max.min(allowed.min.saturating_add(64)) },
            source,
        ),
    }
}

fn value(attribute: &Attribute, rank: usize, source: &mut Rng) -> Value {
    if let Some(default) = attribute.default.as_ref().filter(|_| source.bool()) {
        return default.clone();
    }
    if !attribute.ty.list && attribute.ty.element != AttributeElement::Bytes {
        return element(attribute, source);
    }
    let lengths = [rank, 2 * rank, source.usize(..5), source.usize(..17)];
    let length = source.choice(lengths).unwrap_or(0);
    Value::Array((0..length).map(|_| element(attribute, source)).collect())
}

fn element(attribute: &Attribute, source: &mut Rng) -> Value {
    if let Some(value) = source.choice(attribute.one_of.iter()) {
        return value.clone();
    }
    let bound = |value: &Option<Value>, other: i64| match value {
        Some(Value::Int(value)) => *value,
        #[allow(clippy::cast_possible_truncation)] // saturates
        Some(Value::Float(value)) => *value as i64,
        _ => other,
    };
    let least = bound(&attribute.minimum, -4);
    let most = bound(&attribute.maximum, least.saturating_add(8)).min(least.saturating_add(64));
    match attribute.ty.element {
        AttributeElement::Bool => Value::Bool(source.bool()),
        AttributeElement::String => Value::Str(String::new()),
        AttributeElement::Bytes => Value::Int(source.i64(0..256)),
        #[allow(clippy::cast_precision_loss)] // small, and quarters are exact
        float if float.is_float() => Value::Float(
            within(Interval { min: least, max: most }, source) as f64 + 0.25 * f64::from(source.u8(..4)),
        ),
        _ => Value::Int(within(Interval { min: least, max: most }, source)),
    }
}

/// Returns whether the runtime accepts the node and tensors are small.
#[must_use]
pub fn is_allowed(plugin: &Plugin, device: Device, sizes: &Sizes) -> bool {
    let Some(row) = plugin.variants.get(sizes.row) else { return false };
    let inputs: Vec<&[i64]> = sizes.shapes.iter().map(Vec::as_slice).collect();
    let values: Vec<&[i64]> = sizes.values.iter().map(Vec::as_slice).collect();
    let small = |shape: &[i64]| count(shape).is_some_and(|count| count <= MOST_ELEMENTS);
    if !inputs.iter().all(|shape| small(shape)) {
        return false;
    }
    let facts = Facts { attributes: &sizes.attributes, shapes: &inputs, values: &values, ..Facts::default() };
    let mut steps = Steps::default();
    let alone = Facts { attributes: &sizes.attributes, ..Facts::default() };
    if rules_of_attributes(plugin).any(|rule| rule.check(plugin, &alone, &mut steps).is_err())
        || rules_of_shapes(plugin).any(|rule| rule.check(plugin, &facts, &mut steps).is_err())
    {
        return false;
    }
    let Ok(outputs) = output_shapes(plugin, &facts, &mut steps) else { return false };
    if !outputs.iter().all(|shape| shape.contains(&UNKNOWN_EXTENT) || small(shape)) {
        return false;
    }
    let shapes: Vec<&[i64]> = sizes.shapes.iter().chain(&outputs).map(Vec::as_slice).collect();
    let short = shapes.iter().zip(&row.formats).any(|(shape, format)| shape.len() < format.min_rank());
    let alignments = vec![DEFAULT_ALIGNMENT; plugin.tensor_count()];
    let facts = Facts { shapes: &shapes, device: Some(device), alignments: &alignments, ..facts };
    let signature = Signature { attributes: &sizes.attributes, types: &row.types, formats: &row.formats };
    let Ok(order) = launch::in_order(plugin, &signature, AUTO_TACTIC, &facts) else { return false };
    let runs = |index: &usize| {
        let variant = plugin.variants.get(*index);
        let guard = variant.and_then(|variant| variant.guard.as_ref());
        variant.is_some() && launch::verdict(guard, &facts, &mut steps) == launch::GuardVerdict::Holds
    };
    !short && order.iter().any(runs)
}

/// Returns smaller sizes, boldest first; some may be invalid.
#[must_use]
pub fn smaller(plugin: &Plugin, sizes: &Sizes) -> Vec<Sizes> {
    let mut all = Vec::new();
    let mut extents: Vec<i64> = sizes.shapes.iter().flatten().copied().filter(|extent| *extent > 1).collect();
    extents.sort_unstable();
    extents.dedup();
    let replaced = |from: i64, to: i64| {
        let shapes = sizes.shapes.iter().map(|shape| {
            shape.iter().map(|extent| if *extent == from { to } else { *extent }).collect::<Vec<i64>>()
        });
        Sizes { shapes: shapes.collect(), ..sizes.clone() }
    };
    for extent in extents.iter().rev() {
        all.extend([1, extent / 2, extent - 1].map(|to| replaced(*extent, to)));
    }
    for (tensor, shape) in sizes.shapes.iter().enumerate() {
        for (axis, extent) in shape.iter().enumerate().filter(|(_, extent)| **extent > 1) {
            for to in [1, extent / 2, extent - 1] {
                let mut changed = sizes.clone();
                let shape = changed.shapes.get_mut(tensor);
                shape.and_then(|shape| shape.get_mut(axis)).into_iter().for_each(|extent| *extent = to);
                all.push(changed);
            }
        }
    }
    for (index, attribute) in plugin.attributes.iter().enumerate() {
        let mut changed = sizes.clone();
        if let Some((value, default)) = changed.attributes.get_mut(index).zip(attribute.default.as_ref()) {
            value.clone_from(default);
            all.push(changed);
        }
    }
    all.retain(|candidate| candidate != sizes);
    all
}

impl Sizes {
    /// Returns the query.
    #[must_use]
    pub fn query(&self, plugin: &Plugin) -> Query {
        let mut query = Query::default();
        for (index, input) in plugin.inputs.iter().enumerate() {
            if input.values.is_some() {
                query.values.push((input.name.clone(), self.values.get(index).cloned().unwrap_or_default()));
            } else if let Some(shape) = self.shapes.get(index) {
                query.shapes.push((input.name.clone(), shape.clone()));
            }
        }
        let attributes = plugin.attributes.iter().zip(&self.attributes);
        query.attributes = attributes
            .map(|(attribute, value)| (attribute.name.clone(), RawAttributeValue::Value(value.clone())))
            .collect();
        let Some(row) = plugin.variants.get(self.row) else { return query };
        let names =
            || (0..plugin.tensor_count()).filter_map(|index| plugin.tensor_name(index)).map(str::to_owned);
        query.types = names().zip(row.types.iter().map(|ty| ty.name().to_owned())).collect();
        query.formats = names().zip(row.formats.iter().map(|format| format.name().to_owned())).collect();
        query
    }
}
