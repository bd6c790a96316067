//! Output shapes for TensorRT's builder: values if known, otherwise expressions.
//!
//! TensorRT counts shape inputs apart from others, each in node order (seen with TensorRT-RTX 1.7).

use cubinder_expr as expr;
use cubinder_expr::{LowerError, ShapeBuilder, ShapeOp, sizes_of};
use cubinder_launch as launch;
use cubinder_launch::native;
use cubinder_launch::{Facts, Role, Steps};
use cubinder_model::{Guard, Input, Launch, Output, Requirement};
use trt_abi::{DimensionOperation, Error, Expr, ExprBuilder, Result, Shape};

use super::build::{check_counts, shape_inputs_are_named};
use super::node::NamedNode;

/// Returns the outputs' shapes and the inputs' ranks.
pub(super) fn output_shapes<'b>(
    node: &NamedNode,
    inputs: &[Shape<'b>],
    shape_inputs: &[Shape<'b>],
    builder: &ExprBuilder<'b>,
    outputs: &mut [Shape<'b>],
) -> Result<Vec<u8>> {
    check_counts(node, inputs.len(), outputs.len())?;
    let given = given(node, inputs, shape_inputs)?;
    let plugin = node.definition.plugin();
    let ranks: Vec<usize> = given.iter().map(AnnouncedInput::rank).collect();
    let shapes: Option<Vec<Vec<i64>>> = given.iter().map(AnnouncedInput::constant_shape).collect();
    let values: Option<Vec<Vec<i64>>> = given.iter().map(AnnouncedInput::constant_values).collect();
    let (all_shapes, all_values) = (slices(shapes.as_ref()), slices(values.as_ref()));
    let facts = Facts { ranks: &ranks, shapes: &all_shapes, values: &all_values, ..node.facts() };
    let mut steps = Steps::default();
    launch::check(plugin, launch::rules_of_shapes(plugin), &facts, &mut steps)
        .map_err(|unmet| node.invalid(unmet))?;
    let mut lowering = Lowering { inputs: given, outputs: Vec::new(), builder, sizes: Vec::new() };
    let failed = |output: &Output, what: &str, error: LowerError<Error>| {
        let known = launch::describe(plugin, &facts);
        node.invalid(format_args!("the {what} of `{}`: {error}{known}", output.name))
    };
    for (index, output) in plugin.outputs.iter().enumerate() {
        let Some(bound) = &output.size else { continue };
        let upper = expr::lower_scalar(&bound.upper, &facts, &mut lowering)
            .map_err(|error| failed(output, "greatest size", error))?;
        let opt = expr::lower_scalar(&bound.opt, &facts, &mut lowering)
            .map_err(|error| failed(output, "likely size", error))?;
        // The author's estimate may exceed small shapes' bound.
        let opt = builder.operation(DimensionOperation::MIN, opt, upper)?;
        let size = builder.declare_size_tensor(index, opt, upper)?;
        lowering.sizes.push((plugin.inputs.len() + index, size));
    }
    let checked = if shapes.is_some() && values.is_some() {
        Some(launch::output_shapes(plugin, &facts, &mut steps).map_err(|unmet| node.invalid(unmet))?)
    } else {
        None
    };
    for (index, (output, shape)) in plugin.outputs.iter().zip(outputs).enumerate() {
        let known = checked.as_ref().and_then(|checked| checked.get(index));
        let extents = match known.filter(|_| sizes_of(&output.shape).is_empty()) {
            Some(extents) => {
                extents.iter().map(|extent| builder.constant(*extent)).collect::<Result<_, _>>()?
            }
            None => expr::lower(&output.shape, &facts, &mut lowering)
                .map_err(|error| failed(output, "shape", error))?,
        };
        shape.set(&extents)?;
    }
    // TensorRT's ranks are at most 8.
    Ok(ranks.into_iter().map(|rank| u8::try_from(rank).unwrap_or(u8::MAX)).collect())
}

/// Lowers a launch to TensorRT's expressions ([`cubinder_launch::native`]).
pub(super) fn launch_expressions<'b>(
    node: &NamedNode,
    when: Option<&Guard>,
    required: &[&Requirement],
    launch: &Launch,
    inputs: &[Shape<'b>],
    builder: &ExprBuilder<'b>,
) -> Result<native::Lowered<Expr<'b>>> {
    let plugin = node.definition.plugin();
    let given = given(node, inputs, &[])?;
    let ranks: Vec<usize> = given.iter().map(AnnouncedInput::rank).collect();
    let facts = Facts { ranks: &ranks, ..node.facts() };
    let mut lowering = Lowering { inputs: given, outputs: Vec::new(), builder, sizes: Vec::new() };
    for output in &plugin.outputs {
        let shape = expr::lower(&output.shape, &facts, &mut lowering)
            .map_err(|error| node.invalid(format_args!("the shape of `{}`: {error}", output.name)))?;
        lowering.outputs.push(shape);
    }
    let ranks: Vec<usize> = ranks.into_iter().chain(lowering.outputs.iter().map(Vec::len)).collect();
    let facts = Facts { ranks: &ranks, ..node.facts() };
    native::lower(plugin, when, required, launch, &facts, &mut lowering).map_err(|fault| {
        let is_required = |text: &String| required.iter().any(|requirement| requirement.text == *text);
        let help = match &fault.role {
            Role::Condition(text) if is_required(text) => {
                "; it is not proved for all shapes of the profile: narrow the profile, or use the plugin route, which checks each call"
            }
            _ => "",
        };
        node.invalid(format_args!("`{}`: {fault}{help}", launch.kernel))
    })
}

#[derive(Clone, Copy)]
enum AnnouncedInput<'b> {
    Shape(Shape<'b>),
    /// A shape input and its rank: 0 or 1.
    Values(Shape<'b>, usize),
}

impl AnnouncedInput<'_> {
    fn rank(&self) -> usize {
        match self {
            AnnouncedInput::Shape(shape) => shape.rank(),
            AnnouncedInput::Values(_, rank) => *rank,
        }
    }

    fn constant_shape(&self) -> Option<Vec<i64>> {
        match self {
            AnnouncedInput::Shape(shape) => constants(shape),
            AnnouncedInput::Values(_, 0) => Some(Vec::new()),
            AnnouncedInput::Values(values, _) => Some(vec![i64::try_from(values.rank()).ok()?]),
        }
    }

    fn constant_values(&self) -> Option<Vec<i64>> {
        match self {
            AnnouncedInput::Shape(_) => Some(Vec::new()),
            AnnouncedInput::Values(values, _) => constants(values),
        }
    }
}

fn constants(shape: &Shape<'_>) -> Option<Vec<i64>> {
    (0..shape.rank()).map(|axis| shape.get(axis).ok()?.constant_value()).collect()
}

fn slices(lists: Option<&Vec<Vec<i64>>>) -> Vec<&[i64]> {
    lists.into_iter().flatten().map(Vec::as_slice).collect()
}

fn given<'b>(
    node: &NamedNode,
    inputs: &[Shape<'b>],
    shape_inputs: &[Shape<'b>],
) -> Result<Vec<AnnouncedInput<'b>>> {
    let plugin = node.definition.plugin();
    let expected = plugin.inputs.len() - node.counted_inputs();
    if shape_inputs.len() != expected {
        return Err(node.invalid(format_args!(
            "the node has {} shape inputs, the plugin expects {expected}{}",
            shape_inputs.len(),
            if expected == 0 { String::new() } else { shape_inputs_are_named(plugin) }
        )));
    }
    let impossible = |shape: &&Shape<'_>| usize::try_from(shape.stated_rank()) != Ok(shape.rank());
    if let Some(shape) = inputs.iter().chain(shape_inputs).find(impossible) {
        return Err(node.impossible_rank(shape.stated_rank()));
    }
    let (mut inputs, mut shape_inputs) = (inputs.iter(), shape_inputs.iter());
    let one = |input: &Input| match input.values {
        None => inputs.next().map(|shape| AnnouncedInput::Shape(*shape)),
        Some(_) => {
            shape_inputs.next().map(|values| AnnouncedInput::Values(*values, input.rank_max.min(1).into()))
        }
    };
    let all: Option<Vec<AnnouncedInput<'b>>> = plugin.inputs.iter().map(one).collect();
    all.ok_or_else(|| node.invalid("an input is missing"))
}

struct Lowering<'a, 'b> {
    inputs: Vec<AnnouncedInput<'b>>,
    outputs: Vec<Vec<Expr<'b>>>,
    builder: &'a ExprBuilder<'b>,
    /// Each size with the index of its tensor.
    sizes: Vec<(usize, Expr<'b>)>,
}

impl<'b> Lowering<'_, 'b> {
    fn values(&self, tensor: u32) -> Result<&Shape<'b>> {
        match self.inputs.get(tensor as usize) {
            Some(AnnouncedInput::Values(values, _)) => Ok(values),
            _ => Err(Error::internal(format!("a shape reads the values of tensor {tensor}"))),
        }
    }
}

impl<'b> ShapeBuilder for Lowering<'_, 'b> {
    type Dim = Expr<'b>;
    type Error = Error;

    fn constant(&mut self, value: i64) -> Result<Expr<'b>> {
        self.builder.constant(value)
    }

    fn dim(&mut self, tensor: u32, axis: usize) -> Result<Expr<'b>> {
        match self.inputs.get(tensor as usize) {
            Some(AnnouncedInput::Shape(shape)) => shape.get(axis),
            Some(AnnouncedInput::Values(values, 1)) if axis == 0 => {
                let count = i64::try_from(values.rank());
                self.builder.constant(count.map_err(|error| Error::internal(error.to_string()))?)
            }
            _ => {
                let output = (tensor as usize).checked_sub(self.inputs.len());
                let extent = output.and_then(|output| self.outputs.get(output)?.get(axis)).copied();
                extent.ok_or_else(|| {
                    Error::internal(format!("a shape reads dimension {axis} of tensor {tensor}"))
                })
            }
        }
    }

    fn value_count(&mut self, tensor: u32) -> Result<usize> {
        self.values(tensor).map(Shape::rank)
    }

    fn value(&mut self, tensor: u32, index: usize) -> Result<Expr<'b>> {
        self.values(tensor)?.get(index)
    }

    fn size(&mut self, tensor: u32) -> Result<Expr<'b>> {
        let declared = self.sizes.iter().find(|(of, _)| *of == tensor as usize);
        let declared = declared.map(|(_, size)| *size);
        declared.ok_or_else(|| Error::internal(format!("a shape reads the size in tensor {tensor}")))
    }

    fn operation(&mut self, op: ShapeOp, first: &Expr<'b>, second: &Expr<'b>) -> Result<Expr<'b>> {
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
