//! The tensors that TensorRT announces at run time, mapped to the plugin's.
//!
//! TensorRT-RTX 1.7.1 hides shape inputs (seen). Only output shapes depend on their values; the compiler rejects other
//! launches.

use cubinder_expr::Node;
use cubinder_expr::{DataType, Format, Interval};
use cubinder_launch as launch;
use cubinder_launch::{
    Facts, Rule, Steps, UNKNOWN_EXTENT, check_output_limits, describe, output_shape, rules_of_shapes,
    shape_text,
};
use cubinder_model::{Input, Output, Plugin};
use trt_abi::{Dims, Error, PluginTensorDesc, Result, TensorFormat};

use super::node::NamedNode;
use super::profile;
use crate::definition::TensorKinds;
use crate::launch::Positions;

#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct TensorDescs {
    /// The given inputs, then the outputs.
    tensors: Vec<(Dims, trt_abi::DataType, TensorFormat)>,
    inputs: usize,
}

impl TensorDescs {
    #[inline]
    pub(super) fn is(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> bool {
        self.inputs == inputs.len()
            && self.tensors.len() == inputs.len() + outputs.len()
            && self.tensors.iter().zip(inputs.iter().chain(outputs)).all(|((dims, ty, format), tensor)| {
                *ty == tensor.data_type
                    && *format == tensor.format
                    && dims.nb_dims == tensor.dims.nb_dims
                    && dims.as_slice() == tensor.dims.as_slice()
            })
    }

    pub(super) fn set(&mut self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) {
        let announced =
            |tensor: &PluginTensorDesc| (without_tail(tensor.dims), tensor.data_type, tensor.format);
        self.tensors.clear();
        self.tensors.extend(inputs.iter().chain(outputs).map(announced));
        self.inputs = inputs.len();
    }

    pub(super) fn positions(&self, node: &NamedNode) -> Result<Positions> {
        let plugin = node.definition.plugin();
        let outputs = self.tensors.len().saturating_sub(self.inputs);
        if self.inputs != node.counted_inputs() || outputs != plugin.outputs.len() {
            let shape_inputs = plugin.inputs.len().saturating_sub(node.counted_inputs());
            let beside =
                if shape_inputs == 0 { String::new() } else { format!(" plus {shape_inputs} shape inputs") };
            return Err(node.invalid(format_args!(
                "TensorRT passes {} inputs and {outputs} outputs, the plugin has {} and {}{beside}",
                self.inputs,
                node.counted_inputs(),
                plugin.outputs.len()
            )));
        }
        let mut places = 0..self.inputs;
        let place = |input: &Input| if input.values.is_none() { places.next() } else { None };
        Ok(Positions::new(plugin.inputs.iter().map(place).collect(), self.inputs))
    }

    fn tensor(
        &self,
        plugin: &Plugin,
        positions: &Positions,
        index: usize,
    ) -> Option<&(Dims, trt_abi::DataType, TensorFormat)> {
        let place = match index.checked_sub(plugin.inputs.len()) {
            None => positions.position(index)?,
            Some(output) => self.inputs.checked_add(output)?,
        };
        self.tensors.get(place)
    }

    fn are(&self, plugin: &Plugin, positions: &Positions, kinds: &TensorKinds) -> bool {
        let tensors = kinds.types.iter().zip(&kinds.formats).enumerate();
        let matches = |(index, (ty, format)): (usize, (&DataType, &Format))| {
            self.tensor(plugin, positions, index).is_none_or(|(_, found_type, found_format)| {
                found_type.0 == ty.tensorrt() && found_format.0 == format.tensorrt()
            })
        };
        tensors.into_iter().all(matches)
    }

    /// Returns the announced types and formats in `facts`' order. Hidden tensors match any type.
    pub(super) fn in_order(
        &self,
        node: &NamedNode,
        positions: &Positions,
        tactic: i32,
        facts: &Facts<'_>,
    ) -> Result<Vec<usize>> {
        let plugin = node.definition.plugin();
        let known = node.kinds.iter().find(|kinds| self.are(plugin, positions, kinds));
        let (types, formats) = match known {
            Some(kinds) => (kinds.types.clone(), kinds.formats.clone()),
            None => (0..plugin.tensor_count())
                .filter_map(|index| {
                    let (_, ty, format) = self.tensor(plugin, positions, index)?;
                    Some((DataType::from_tensorrt(ty.0)?, Format::from_tensorrt(format.0)?))
                })
                .unzip(),
        };
        let order = launch::in_order(plugin, &node.signature(&types, &formats), tactic, facts);
        order.map_err(|unmet| node.invalid(unmet))
    }

    /// Returns the checked shapes as the build knew them: for others a kernel would write out of bounds. Hidden shape
    /// inputs have only ranks.
    ///
    /// TensorRT-RTX 1.7 announces a 0-d tensor as `[1]`; undone by the build's rank or the plugin's output shape.
    pub(super) fn shapes<'a>(
        &'a self,
        node: &NamedNode,
        input_ranks: Option<&[u8]>,
        positions: &Positions,
        steps: &mut Steps,
    ) -> Result<Vec<&'a [i64]>> {
        let plugin = node.definition.plugin();
        let announced = |index: usize| {
            let tensor = self.tensor(plugin, positions, index);
            tensor.map(|(dims, ..)| profile::announced(node, dims)).transpose()
        };
        let mut shapes: Vec<&[i64]> = Vec::with_capacity(plugin.tensor_count());
        for (index, input) in plugin.inputs.iter().enumerate() {
            let is_scalar = profile::was_scalar(input, index, input_ranks);
            shapes.push(match announced(index)? {
                Some([1]) if is_scalar => &[],
                Some(shape) => shape,
                None if is_scalar => &[],
                None => &[UNKNOWN_EXTENT],
            });
        }
        let facts = Facts { shapes: &shapes, ..node.facts() };
        let is_described = |rule: &Rule<'_>| match rule {
            Rule::Rank(index, _) | Rule::Limits(index, _) => positions.position(*index).is_some(),
            Rule::Attribute(..) | Rule::Specialized | Rule::Require(_) | Rule::Values(..) => true,
        };
        launch::check(plugin, rules_of_shapes(plugin).filter(is_described), &facts, steps)
            .map_err(|unmet| node.invalid(unmet))?;
        // Undefined shapes first, as in `cubinder eval`.
        let mut expected = Vec::with_capacity(plugin.outputs.len());
        for output in &plugin.outputs {
            expected.push(expected_shape(node, output, &facts, steps)?);
        }
        let mut outputs: Vec<&[i64]> = Vec::with_capacity(plugin.outputs.len());
        for (index, (output, expected)) in (plugin.inputs.len()..).zip(plugin.outputs.iter().zip(&expected)) {
            let found = announced(index)?.unwrap_or_default();
            outputs.push(true_output(node, output, found, expected.as_deref(), &facts, steps)?);
        }
        shapes.extend(outputs);
        Ok(shapes)
    }
}

/// Zeroes the unspecified extents, which `==` compares.
fn without_tail(mut dims: Dims) -> Dims {
    let rank = dims.as_slice().len();
    dims.d.iter_mut().skip(rank).for_each(|extent| *extent = 0);
    dims
}

/// Empty if it depends on hidden values.
fn expected_shape(
    node: &NamedNode,
    output: &Output,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<Option<Vec<i64>>> {
    if output.shape.nodes.iter().any(|node| matches!(node, Node::Values(_))) {
        return Ok(None);
    }
    let invalid = |unmet| node.invalid(unmet);
    let expected = output_shape(node.definition.plugin(), output, facts, steps).map_err(invalid)?;
    check_output_limits(output, &expected, "").map_err(invalid)?;
    Ok(Some(expected))
}

fn true_output<'a>(
    node: &NamedNode,
    output: &Output,
    found: &'a [i64],
    expected: Option<&[i64]>,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<&'a [i64]> {
    let plugin = node.definition.plugin();
    let invalid = |unmet| node.invalid(unmet);
    let Some(expected) = expected else {
        check_output_limits(output, found, "").map_err(invalid)?;
        let possible = launch::extents_for_any_values(plugin, output, facts, steps);
        return match possible.filter(|possible| !holds(possible, found)) {
            Some(possible) => {
                let possible: Vec<String> = possible.iter().map(Interval::to_string).collect();
                Err(other_shape(node, output, found, &possible.join("x"), facts))
            }
            None => Ok(found),
        };
    };
    match expected {
        [] if *found == [1] => Ok(&[]),
        expected if fits(expected, found) => Ok(found),
        expected => Err(other_shape(node, output, found, &shape_text(expected), facts)),
    }
}

fn other_shape(node: &NamedNode, output: &Output, found: &[i64], expected: &str, facts: &Facts<'_>) -> Error {
    let found = shape_text(found);
    node.invalid(format_args!(
        "the shape of `{}`: found {found}, expected {expected}{}",
        output.name,
        describe(node.definition.plugin(), facts)
    ))
}

fn holds(possible: &[Interval], found: &[i64]) -> bool {
    match (possible, found) {
        // A 0-d tensor.
        ([], [1]) => true,
        _ => {
            let mut extents = possible.iter().zip(found);
            possible.len() == found.len() && extents.all(|(possible, found)| possible.contains(*found))
        }
    }
}

/// TensorRT-RTX 1.7 announces a data-dependent dimension as -1, or 0 if that is its maximum (seen).
fn fits(expected: &[i64], found: &[i64]) -> bool {
    let fits = |(expected, found): (&i64, &i64)| {
        expected == found || (*expected == UNKNOWN_EXTENT && *found >= UNKNOWN_EXTENT)
    };
    expected.len() == found.len() && expected.iter().zip(found).all(fits)
}
