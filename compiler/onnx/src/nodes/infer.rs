//! Infers outputs of plugin nodes. Never guesses: other dimensions stay unknown.

use cubinder_expr as expr;
use cubinder_expr::{BinaryOp, Node as Part};
use cubinder_expr::{DataType, Interval, Value};
use cubinder_launch::{Facts, Steps, extents_for_any_values};
use cubinder_model::{Output, Plugin};

use super::tensors::{Dim, MOST_NAME_BYTES, Tensor, element};

/// The node is valid; `types` are those of all tensors.
pub(super) fn plugin_outputs(
    plugin: &Plugin,
    attributes: Option<&[Value]>,
    inputs: &[Tensor],
    types: Option<&[DataType]>,
    steps: &mut Steps,
) -> Vec<Tensor> {
    let shapes: Option<Vec<Vec<i64>>> = inputs.iter().map(Tensor::announced).collect();
    let values = plugin.inputs.iter().zip(inputs);
    let values = values.map(|(input, tensor)| match input.values {
        Some(_) => tensor.known_values(),
        None => Some(Vec::new()),
    });
    let values: Vec<Vec<i64>> = values.collect::<Option<_>>().unwrap_or_default();
    let shapes_known: Vec<&[i64]> = shapes.iter().flatten().map(Vec::as_slice).collect();
    let values_known: Vec<&[i64]> = values.iter().map(Vec::as_slice).collect();
    let facts = Facts {
        attributes: attributes.unwrap_or_default(),
        shapes: &shapes_known,
        values: &values_known,
        ..Facts::default()
    };
    let is_known = attributes.is_some() && shapes.is_some();
    let one = |(index, output): (usize, &Output)| {
        let ty = types.and_then(|types| types.get(plugin.inputs.len() + index));
        let dims = match output.alias {
            Some(input) => inputs.get(input as usize).and_then(|input| input.dims.clone()),
            None if is_known => shape(plugin, output, inputs, &facts, steps),
            None => None,
        };
        Tensor::new(ty.and_then(|ty| element(*ty)), dims)
    };
    plugin.outputs.iter().enumerate().map(one).collect()
}

fn shape(
    plugin: &Plugin,
    output: &Output,
    inputs: &[Tensor],
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Option<Vec<Dim>> {
    let exact = if facts.values.is_empty() && plugin.inputs.iter().any(|input| input.values.is_some()) {
        None
    } else {
        steps.value(&output.shape, facts).ok().and_then(|value| value.as_ints())
    };
    if let Some(exact) = exact {
        let dim = |extent| if extent < 0 { Dim::Unknown } else { Dim::Known(extent) };
        return Some(exact.into_iter().map(dim).collect());
    }
    let named = named(&expr::bind(&output.shape, facts), inputs);
    let Some(extents) = extents_for_any_values(plugin, output, facts, steps) else { return named };
    let named = named.unwrap_or_else(|| vec![Dim::Unknown; extents.len()]);
    if named.len() != extents.len() {
        return Some(named);
    }
    let both = named.into_iter().zip(extents);
    let dim =
        |(dim, extent): (Dim, Interval)| if extent.min == extent.max { Dim::Known(extent.min) } else { dim };
    Some(both.map(dim).collect())
}

/// Substitutes known numbers.
fn named(bound: &expr::Expr, inputs: &[Tensor]) -> Option<Vec<Dim>> {
    let of_shape = |tensor: u32| inputs.get(tensor as usize)?.dims.as_ref();
    match bound.nodes.last()? {
        Part::Shape(tensor) => of_shape(*tensor).cloned(),
        Part::Array(items) => Some(items.iter().map(|item| dim(bound, *item, inputs, 0)).collect()),
        _ => None,
    }
}

const MOST_DEPTH: usize = 4;

/// Returns an input's dimension, or one plus a number: `width + 2`.
fn dim(bound: &expr::Expr, id: u32, inputs: &[Tensor], depth: usize) -> Dim {
    let part = |id: u32| bound.nodes.get(id as usize);
    let known = |id: u32| match part(id) {
        Some(Part::Int(value)) => Some(*value),
        _ => None,
    };
    match part(id) {
        Some(Part::Int(extent)) if *extent >= 0 => Dim::Known(*extent),
        Some(Part::Index { array, index }) => match (part(*array), known(*index)) {
            (Some(Part::Shape(tensor)), Some(axis)) => {
                let dims = inputs.get(*tensor as usize).and_then(|input| input.dims.as_ref());
                let axis = usize::try_from(axis).ok();
                axis.and_then(|axis| dims?.get(axis).cloned()).unwrap_or(Dim::Unknown)
            }
            _ => Dim::Unknown,
        },
        Some(Part::Binary(BinaryOp::Add, left, right)) if depth < MOST_DEPTH => {
            match (dim(bound, *left, inputs, depth + 1), known(*right)) {
                (Dim::Named(name), Some(0)) => Dim::Named(name),
                (Dim::Named(name), Some(more @ 1..)) if name.len() < MOST_NAME_BYTES / 2 => {
                    Dim::Named(format!("{name} + {more}"))
                }
                (Dim::Known(extent), Some(more)) => extent.checked_add(more).map_or(Dim::Unknown, Dim::Known),
                _ => Dim::Unknown,
            }
        }
        _ => Dim::Unknown,
    }
}
