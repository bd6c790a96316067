//! A node with its shapes: everything that depends neither on a variant nor on what tensors hold.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch as launch;
use cubinder_launch::{Device, Facts, Steps, UNKNOWN_EXTENT};
use cubinder_model::Plugin;
use cubinder_model::attribute_check::Unmet;
pub(in crate::cli) use cubinder_node::eval::slices;
use cubinder_node::eval::{self, ResolvedQuery, Subject};
use cubinder_node::query::Query;
use cubinder_source::diagnostic::Diagnostic;

/// A node with its shapes.
pub(in crate::cli) struct Shaped<'a> {
    pub(in crate::cli) plugin: &'a Plugin,
    pub(in crate::cli) resolved: ResolvedQuery,
    pub(in crate::cli) device: Device,
    /// The outputs' shapes; a dimension that the kernels decide is [`UNKNOWN_EXTENT`].
    pub(in crate::cli) outputs: Vec<Vec<i64>>,
    /// The outputs' shapes where the kernels write as much as they may.
    pub(in crate::cli) largest: Vec<Vec<i64>>,
    /// What each size tensor holds at most; none for other outputs.
    pub(in crate::cli) bounds: Vec<Option<i64>>,
}

/// Why there is no such node.
pub(in crate::cli) enum Unshaped {
    /// The runtime would refuse it.
    Refused(String),
    /// A person's mistakes.
    Mistaken(Vec<Diagnostic>),
}

impl<'a> Shaped<'a> {
    /// The node that `query` describes, on this device.
    pub(in crate::cli) fn new(
        subject: &'a Subject,
        query: &Query,
        device: Device,
    ) -> Result<Shaped<'a>, Unshaped> {
        let plugin = &subject.plugin;
        let resolved = eval::resolve_query(subject, query).map_err(|mistakes| {
            Unshaped::Mistaken(mistakes.into_iter().map(|mistake| mistake.diagnostic).collect())
        })?;
        if let Some(why) = resolved.unmet(subject) {
            return Err(Unshaped::Refused(why.to_string()));
        }
        let refused = |why: Unmet| Unshaped::Refused(why.to_string());
        let (shapes, values) = (slices(&resolved.inputs), slices(&resolved.values));
        let facts =
            Facts { attributes: &resolved.attributes, shapes: &shapes, values: &values, ..Facts::default() };
        let mut steps = Steps::default();
        let outputs = launch::output_shapes(plugin, &facts, &mut steps).map_err(refused)?;
        let bounds = bounds(plugin, &facts, &mut steps).map_err(Unshaped::Refused)?;
        let largest = with_sizes(plugin, &facts, &bounds).map_err(Unshaped::Refused)?;
        Ok(Shaped { plugin, device, outputs, largest, bounds, resolved })
    }

    pub(in crate::cli) fn ty(&self, tensor: usize) -> DataType {
        self.resolved.types.get(tensor).copied().unwrap_or(DataType::U8)
    }

    pub(in crate::cli) fn format(&self, tensor: usize) -> Format {
        self.resolved.formats.get(tensor).copied().unwrap_or_default()
    }

    /// The index of an output over inputs, then outputs.
    pub(in crate::cli) fn tensor_of(&self, output: usize) -> usize {
        self.plugin.inputs.len().saturating_add(output)
    }

    /// The shapes of the outputs once the size tensors hold these.
    pub(in crate::cli) fn shapes_for(&self, sizes: &[Option<i64>]) -> Result<Vec<Vec<i64>>, String> {
        let (shapes, values) = (slices(&self.resolved.inputs), slices(&self.resolved.values));
        let facts = Facts {
            attributes: &self.resolved.attributes,
            shapes: &shapes,
            values: &values,
            ..Facts::default()
        };
        with_sizes(self.plugin, &facts, sizes)
    }
}

/// What the size tensors hold at most.
fn bounds(plugin: &Plugin, facts: &Facts<'_>, steps: &mut Steps) -> Result<Vec<Option<i64>>, String> {
    let bound = |output: &cubinder_model::Output| {
        let Some(size) = &output.size else { return Ok(None) };
        match steps.value(&size.upper, facts) {
            Ok(Value::Int(upper)) => Ok(Some(upper)),
            Ok(other) => Err(format!("the bound of `{}` is {other}, which is no integer", output.name)),
            Err(error) => Err(format!("the bound of `{}`: {error}", output.name)),
        }
    };
    plugin.outputs.iter().map(bound).collect()
}

/// The outputs' shapes where size tensors hold `sizes`.
fn with_sizes(plugin: &Plugin, facts: &Facts<'_>, sizes: &[Option<i64>]) -> Result<Vec<Vec<i64>>, String> {
    let mut all: Vec<Option<i64>> = vec![None; plugin.inputs.len()];
    all.extend(sizes);
    let facts = Facts { sizes: &all, ..*facts };
    let shapes =
        launch::output_shapes(plugin, &facts, &mut Steps::default()).map_err(|why| why.to_string())?;
    match shapes.iter().zip(&plugin.outputs).find(|(shape, _)| shape.contains(&UNKNOWN_EXTENT)) {
        Some((_, output)) => Err(format!("the shape of `{}` is not known", output.name)),
        None => Ok(shapes),
    }
}
