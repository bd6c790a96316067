//! What TensorRT's builder asks: types, shapes, formats. No call of the CUDA driver is made here.

use cubinder_bundle::expr::{self, ShapeBuilder, ShapeOp};
use cubinder_bundle::launch::{self, Facts, Steps};
use cubinder_bundle::{DataType, Format};
use trt_abi::{DimensionOperation, DynamicPluginTensorDesc, Error, Expr, ExprBuilder, Shape};

use super::node::NodeData;
use crate::definition::TensorKinds;

/// The types of the outputs, by the first variant that takes the inputs' types.
pub(super) fn output_types(
    node: &NodeData,
    inputs: &[trt_abi::DataType],
    outputs: &mut [trt_abi::DataType],
) -> Result<(), Error> {
    check_counts(node, inputs.len(), outputs.len())?;
    let types = known_types(node, inputs)?;
    let fitting = node.kinds.iter().find(|kinds| fits(node, kinds, &types, None));
    let kinds = fitting.ok_or_else(|| no_variant(node, &types, &[]))?;
    let given = &kinds.types[node.definition.plugin().inputs.len()..];
    for (output, ty) in outputs.iter_mut().zip(given) {
        *output = trt_abi::DataType(ty.tensorrt());
    }
    Ok(())
}

/// The shapes of the outputs: checked values where every input's is constant, expressions otherwise.
pub(super) fn output_shapes<'b>(
    node: &NodeData,
    inputs: &[Shape<'b>],
    builder: &ExprBuilder<'b>,
    outputs: &mut [Shape<'b>],
) -> Result<(), Error> {
    check_counts(node, inputs.len(), outputs.len())?;
    if let Some(shape) = inputs.iter().find(|shape| usize::try_from(shape.stated_rank()) != Ok(shape.rank()))
    {
        return Err(node.impossible_rank(shape.stated_rank()));
    }
    let plugin = node.definition.plugin();
    let ranks: Vec<usize> = inputs.iter().map(Shape::rank).collect();
    let constant: Option<Vec<Vec<i64>>> = inputs.iter().map(constant_shape).collect();
    let shapes: Vec<&[i64]> = constant.iter().flatten().map(Vec::as_slice).collect();
    let facts = Facts { ranks: &ranks, shapes: &shapes, ..node.facts() };
    let mut steps = Steps::default();
    launch::check(plugin, launch::rules_of_shapes(plugin), &facts, &mut steps)
        .map_err(|unmet| node.invalid(unmet))?;
    let mut lowering = Lowering { inputs, builder };
    if constant.is_some() {
        let values =
            launch::output_shapes(plugin, &facts, &mut steps).map_err(|unmet| node.invalid(unmet))?;
        for (extents, shape) in values.into_iter().zip(outputs) {
            let extents: Result<Vec<Expr<'b>>, Error> =
                extents.into_iter().map(|extent| lowering.constant(extent)).collect();
            shape.set(&extents?)?;
        }
        return Ok(());
    }
    for (output, shape) in plugin.outputs.iter().zip(outputs) {
        let extents = expr::lower(&output.shape, &facts, &mut lowering).map_err(|error| {
            let known = launch::describe(plugin, &facts);
            node.invalid(format_args!("the shape of `{}`: {error}{known}", output.name))
        })?;
        shape.set(&extents)?;
    }
    Ok(())
}

/// Types and formats that some variant takes together.
pub(super) fn supports(
    node: &NodeData,
    position: usize,
    in_out: &[DynamicPluginTensorDesc],
    input_count: usize,
) -> bool {
    if input_count != node.counted_inputs() || in_out.len() != node.counted.len() {
        return false;
    }
    let Some(known) = in_out.get(..=position) else { return false };
    let types: Option<Vec<DataType>> =
        known.iter().map(|tensor| DataType::from_tensorrt(tensor.desc.data_type.0)).collect();
    let formats: Option<Vec<Format>> =
        known.iter().map(|tensor| Format::from_tensorrt(tensor.desc.format.0)).collect();
    let (Some(types), Some(formats)) = (types, formats) else { return false };
    node.kinds.iter().any(|kinds| fits(node, kinds, &types, Some(&formats)))
}

/// The types and formats that TensorRT settled on, which must be those of a variant.
pub(super) fn configured_kinds<'n>(
    node: &'n NodeData,
    inputs: &[DynamicPluginTensorDesc],
    outputs: &[DynamicPluginTensorDesc],
) -> Result<&'n TensorKinds, Error> {
    check_counts(node, inputs.len(), outputs.len())?;
    let types: Vec<_> = inputs.iter().chain(outputs).map(|tensor| tensor.desc.data_type).collect();
    let types = known_types(node, &types)?;
    let format = |tensor: &DynamicPluginTensorDesc| {
        let format = tensor.desc.format;
        Format::from_tensorrt(format.0)
            .ok_or_else(|| node.invalid(format_args!("no plugin takes tensors in the format {format:?}")))
    };
    let formats: Vec<Format> = inputs.iter().chain(outputs).map(format).collect::<Result<_, _>>()?;
    let fitting = node.kinds.iter().find(|kinds| fits(node, kinds, &types, Some(&formats)));
    fitting.ok_or_else(|| no_variant(node, &types, &formats))
}

/// Whether the first of the tensors that TensorRT counts can be of these types and formats.
fn fits(node: &NodeData, kinds: &TensorKinds, types: &[DataType], formats: Option<&[Format]>) -> bool {
    let of_types = |(tensor, ty): (&usize, &DataType)| kinds.types.get(*tensor) == Some(ty);
    let of_formats = |(tensor, format): (&usize, &Format)| kinds.formats.get(*tensor) == Some(format);
    node.counted.iter().zip(types).all(of_types)
        && formats.is_none_or(|formats| node.counted.iter().zip(formats).all(of_formats))
}

/// The error for types, and formats where they are known, that no variant takes together.
fn no_variant(node: &NodeData, types: &[DataType], formats: &[Format]) -> Error {
    // Of shape inputs TensorRT does not tell the type: it is the one that they have.
    let Some(first) = node.kinds.first() else { return node.invalid("it has no variant") };
    let end = node.counted.get(types.len()).copied().unwrap_or(first.types.len());
    let (mut all_types, mut all_formats) = (first.types.clone(), first.formats.clone());
    for (tensor, ty) in node.counted.iter().zip(types) {
        all_types[*tensor] = *ty;
    }
    for (tensor, format) in node.counted.iter().zip(formats) {
        all_formats[*tensor] = *format;
    }
    let formats = if formats.is_empty() { &[] } else { &all_formats[..end] };
    node.invalid(launch::no_variant(node.definition.plugin(), &node.signature(&all_types[..end], formats)))
}

fn check_counts(node: &NodeData, inputs: usize, outputs: usize) -> Result<(), Error> {
    let plugin = node.definition.plugin();
    let expected = node.counted_inputs();
    if inputs != expected {
        let shape_inputs = plugin.inputs.len() - expected;
        if shape_inputs == 0 {
            return Err(
                node.invalid(format_args!("the node has {inputs} inputs, the plugin takes {expected}"))
            );
        }
        let all = plugin.inputs.iter().enumerate();
        let indices: Vec<String> =
            all.filter(|(_, input)| input.values.is_some()).map(|(index, _)| index.to_string()).collect();
        return Err(node.invalid(format_args!(
            "the node has {inputs} inputs that are no shape inputs, the plugin takes {expected} and {shape_inputs} shape \
             inputs: the node says which with the attribute `tensorrt_plugin_shape_input_indices` = [{}]",
            indices.join(", ")
        )));
    }
    let expected = plugin.outputs.len();
    if outputs != expected {
        return Err(node.invalid(format_args!("the node has {outputs} outputs, the plugin gives {expected}")));
    }
    Ok(())
}

fn known_types(node: &NodeData, types: &[trt_abi::DataType]) -> Result<Vec<DataType>, Error> {
    types
        .iter()
        .map(|ty| {
            DataType::from_tensorrt(ty.0)
                .ok_or_else(|| node.invalid(format_args!("no plugin takes tensors of type {ty:?}")))
        })
        .collect()
}

fn constant_shape(shape: &Shape<'_>) -> Option<Vec<i64>> {
    (0..shape.rank()).map(|axis| shape.get(axis).ok()?.constant_value()).collect()
}

/// TensorRT's builder as the expressions see it.
struct Lowering<'a, 'b> {
    inputs: &'a [Shape<'b>],
    builder: &'a ExprBuilder<'b>,
}

impl<'b> ShapeBuilder for Lowering<'_, 'b> {
    type Dim = Expr<'b>;
    type Error = Error;

    fn constant(&mut self, value: i64) -> Result<Expr<'b>, Error> {
        self.builder.constant(value)
    }

    fn dim(&mut self, tensor: u32, axis: usize) -> Result<Expr<'b>, Error> {
        let shape = self.inputs.get(tensor as usize);
        shape.ok_or_else(|| Error::internal(format!("a shape reads tensor {tensor}")))?.get(axis)
    }

    fn value_count(&mut self, tensor: u32) -> Result<usize, Error> {
        Err(Error::internal(format!("a shape reads the values of tensor {tensor}")))
    }

    fn value(&mut self, tensor: u32, _: usize) -> Result<Expr<'b>, Error> {
        Err(Error::internal(format!("a shape reads the values of tensor {tensor}")))
    }

    fn size(&mut self, tensor: u32) -> Result<Expr<'b>, Error> {
        Err(Error::internal(format!("a shape reads the size in tensor {tensor}")))
    }

    fn operation(&mut self, op: ShapeOp, first: &Expr<'b>, second: &Expr<'b>) -> Result<Expr<'b>, Error> {
        let op = match op {
            ShapeOp::Sum => DimensionOperation::SUM,
            ShapeOp::Prod => DimensionOperation::PROD,
            ShapeOp::Max => DimensionOperation::MAX,
            ShapeOp::Min => DimensionOperation::MIN,
            ShapeOp::Sub => DimensionOperation::SUB,
            ShapeOp::Equal => DimensionOperation::EQUAL,
            ShapeOp::Less => DimensionOperation::LESS,
            ShapeOp::FloorDiv => DimensionOperation::FLOOR_DIV,
            ShapeOp::CeilDiv => DimensionOperation::CEIL_DIV,
        };
        self.builder.operation(op, *first, *second)
    }
}
