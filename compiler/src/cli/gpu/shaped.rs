use cubinder_expr::{DataType, Format, Value};
use cubinder_gpu::Node;
use cubinder_launch as launch;
use cubinder_launch::{Device, Facts, Steps, UNKNOWN_EXTENT};
use cubinder_model::{Input, Output, Plugin};
use cubinder_node::eval::{self, ResolvedQuery, Subject};
use cubinder_node::query::Query;
use cubinder_node::trial::{Array, InputData, Trial, count, data};
use cubinder_source::diagnostic::Diagnostic;

/// A node with shapes for inputs, then outputs.
pub(in crate::cli) struct Shaped<'a> {
    pub(in crate::cli) plugin: &'a Plugin,
    pub(in crate::cli) resolved: ResolvedQuery,
    device: Device,
    /// Shapes; data-dependent extents are [`UNKNOWN_EXTENT`].
    shapes: Vec<Vec<i64>>,
    /// With data-dependent extents at their maximum.
    largest: Vec<Vec<i64>>,
    /// By output; `None` unless it is a size tensor.
    pub(in crate::cli) bounds: Vec<Option<i64>>,
}

pub(in crate::cli) enum ShapeError {
    Refused(String),
    Mistaken(Vec<Diagnostic>),
}

impl ShapeError {
    pub(in crate::cli) fn text(self) -> String {
        match self {
            ShapeError::Refused(why) => why,
            ShapeError::Mistaken(all) => all.into_iter().map(|it| it.message).collect::<Vec<_>>().join("; "),
        }
    }
}

impl<'a> Shaped<'a> {
    pub(in crate::cli) fn new(
        subject: &'a Subject,
        query: &Query,
        device: Device,
    ) -> Result<Shaped<'a>, ShapeError> {
        let plugin = &subject.plugin;
        let resolved = eval::resolve_query(subject, query).map_err(|mistakes| {
            ShapeError::Mistaken(mistakes.into_iter().map(|mistake| mistake.diagnostic).collect())
        })?;
        let refused = |why: &dyn std::fmt::Display| ShapeError::Refused(why.to_string());
        if let Some(why) = resolved.unmet(subject) {
            return Err(refused(&why));
        }
        let outputs = resolved.outputs(plugin).map_err(|why| refused(&why))?;
        let bounds = resolved.with_facts(|facts| bounds(plugin, &facts)).map_err(ShapeError::Refused)?;
        let largest = with_sizes(plugin, &resolved, &bounds).map_err(ShapeError::Refused)?;
        let (shapes, largest) =
            ([&resolved.inputs[..], &outputs].concat(), [&resolved.inputs[..], &largest].concat());
        Ok(Shaped { plugin, device, shapes, largest, bounds, resolved })
    }

    pub(in crate::cli) fn node(&self) -> Node<'_> {
        Node {
            plugin: self.plugin,
            attributes: &self.resolved.attributes,
            types: &self.resolved.types,
            formats: &self.resolved.formats,
            shapes: &self.shapes,
            largest: &self.largest,
            values: &self.resolved.values,
            device: self.device,
        }
    }

    pub(in crate::cli) fn ty(&self, tensor: usize) -> DataType {
        self.resolved.types.get(tensor).copied().unwrap_or(DataType::U8)
    }

    pub(in crate::cli) fn format(&self, tensor: usize) -> Format {
        self.resolved.formats.get(tensor).copied().unwrap_or_default()
    }

    pub(in crate::cli) fn shape(&self, tensor: usize) -> &[i64] {
        self.shapes.get(tensor).map_or(&[], Vec::as_slice)
    }

    pub(in crate::cli) fn outputs(&self) -> impl Iterator<Item = (usize, &'a Output)> {
        (self.plugin.inputs.len()..).zip(&self.plugin.outputs)
    }

    pub(in crate::cli) fn max_elements(&self, tensor: usize) -> usize {
        self.largest.get(tensor).and_then(|shape| count(shape)).unwrap_or(0)
    }

    pub(in crate::cli) fn shapes_for(&self, sizes: &[Option<i64>]) -> Result<Vec<Vec<i64>>, String> {
        with_sizes(self.plugin, &self.resolved, sizes)
    }

    pub(in crate::cli) fn data(
        &self,
        trial: &Trial,
        (tensor, input): (usize, &Input),
        shape: &[i64],
    ) -> Result<Array, String> {
        let ty = self.ty(tensor);
        let seed = data::seed_of(trial.seed, &input.name);
        match trial_data(trial, input) {
            Some(InputData::File(file)) => {
                let found = file.shape()?;
                if found != shape {
                    let (found, expected) = (launch::shape_text(&found), launch::shape_text(shape));
                    return Err(format!("`{file}` has shape {found}, but the case specifies {expected}"));
                }
                file.array(ty, count(shape).unwrap_or(0))
            }
            Some(InputData::Numbers(numbers)) => {
                Array::of_numbers(ty, shape.to_vec(), numbers.iter().copied())
            }
            Some(InputData::Range(least, most)) => data::random(ty, shape, (*least, *most), seed),
            Some(InputData::Columns(ranges)) => data::columns(ty, shape, ranges, seed),
            None => data::random(ty, shape, data::default_range(ty), seed),
        }
    }
}

pub(in crate::cli) fn trial_data<'t>(trial: &'t Trial, input: &Input) -> Option<&'t InputData> {
    trial.inputs.iter().find(|(name, _)| *name == input.name).map(|(_, data)| data)
}

fn bounds(plugin: &Plugin, facts: &Facts<'_>) -> Result<Vec<Option<i64>>, String> {
    let mut steps = Steps::default();
    let bound = |output: &Output| {
        let Some(size) = &output.size else { return Ok(None) };
        match steps.value(&size.upper, facts) {
            Ok(Value::Int(upper)) => Ok(Some(upper)),
            Ok(other) => Err(format!("the bound of `{}` is {other}, expected an integer", output.name)),
            Err(error) => Err(format!("the bound of `{}`: {error}", output.name)),
        }
    };
    plugin.outputs.iter().map(bound).collect()
}

fn with_sizes(
    plugin: &Plugin,
    resolved: &ResolvedQuery,
    sizes: &[Option<i64>],
) -> Result<Vec<Vec<i64>>, String> {
    let all = [&vec![None; plugin.inputs.len()][..], sizes].concat();
    let shapes = resolved.with_facts(|facts| {
        launch::output_shapes(plugin, &Facts { sizes: &all, ..facts }, &mut Steps::default())
    });
    let shapes = shapes.map_err(|why| why.to_string())?;
    match shapes.iter().zip(&plugin.outputs).find(|(shape, _)| shape.contains(&UNKNOWN_EXTENT)) {
        Some((_, output)) => Err(format!("the shape of `{}` is unknown", output.name)),
        None => Ok(shapes),
    }
}
