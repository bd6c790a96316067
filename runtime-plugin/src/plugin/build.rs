//! What TensorRT's builder asks: types, shapes, formats. No call of the CUDA driver is made here.

use cubinder_bundle::DataType;
use cubinder_bundle::expr::{self, ShapeBuilder, ShapeOp};
use cubinder_bundle::launch::{self, Facts, Steps};
use trt_abi::{DimensionOperation, DynamicPluginTensorDesc, Error, Expr, ExprBuilder, Shape, TensorFormat};

use super::NodeData;

/// The types of the outputs, by the first variant that takes the inputs' types.
pub(super) fn output_types(
    node: &NodeData,
    inputs: &[trt_abi::DataType],
    outputs: &mut [trt_abi::DataType],
) -> Result<(), Error> {
    check_input_count(node, inputs.len())?;
    check_output_count(node, outputs.len())?;
    let types = known_types(node, inputs)?;
    let signature = node.signatures.iter().find(|signature| signature.starts_with(&types));
    let signature = signature.ok_or_else(|| node.no_variant(&types))?;
    for (output, ty) in outputs.iter_mut().zip(&signature[types.len()..]) {
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
    check_input_count(node, inputs.len())?;
    check_output_count(node, outputs.len())?;
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

/// Linear layouts only, and types that some variant takes together.
pub(super) fn supports(
    node: &NodeData,
    position: usize,
    in_out: &[DynamicPluginTensorDesc],
    input_count: usize,
) -> bool {
    if input_count != node.definition.plugin().inputs.len() {
        return false;
    }
    let Some(known) = in_out.get(..=position) else { return false };
    let linear = known.iter().all(|tensor| tensor.desc.format == TensorFormat::LINEAR);
    let types: Option<Vec<DataType>> =
        known.iter().map(|tensor| DataType::from_tensorrt(tensor.desc.data_type.0)).collect();
    linear && types.is_some_and(|types| node.signatures.iter().any(|signature| signature.starts_with(&types)))
}

/// The types that TensorRT settled on, which must be those of a variant.
pub(super) fn configured_types(
    node: &NodeData,
    inputs: &[DynamicPluginTensorDesc],
    outputs: &[DynamicPluginTensorDesc],
) -> Result<Vec<DataType>, Error> {
    check_input_count(node, inputs.len())?;
    check_output_count(node, outputs.len())?;
    let types: Vec<_> = inputs.iter().chain(outputs).map(|tensor| tensor.desc.data_type).collect();
    known_types(node, &types)
}

fn check_input_count(node: &NodeData, found: usize) -> Result<(), Error> {
    let expected = node.definition.plugin().inputs.len();
    if found == expected {
        return Ok(());
    }
    Err(node.invalid(format_args!("the node has {found} inputs, the plugin takes {expected}")))
}

fn check_output_count(node: &NodeData, found: usize) -> Result<(), Error> {
    let expected = node.definition.plugin().outputs.len();
    if found == expected {
        return Ok(());
    }
    Err(node.invalid(format_args!("the node has {found} outputs, the plugin gives {expected}")))
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
