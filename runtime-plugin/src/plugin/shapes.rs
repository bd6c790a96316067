//! Output shapes for TensorRT's builder: values if known, otherwise expressions.
//!
//! TensorRT counts shape inputs separately, in node order (seen with TensorRT-RTX 1.7).

use cubinder_expr as expr;
use cubinder_expr::{LowerError, ShapeOp, sizes_of};
use cubinder_launch as launch;
use cubinder_launch::native;
use cubinder_launch::{Facts, Role, Steps};
use cubinder_model::{Guard, Input, Launch, Output, Requirement};
use trt_abi::{DimensionOperation, Error, Expr, ExprBuilder, Result, Shape};

use super::build::{check_counts, shape_inputs_are_named};
use super::node::NamedNode;
use super::shape_program::{Index, InputPart, Instruction, ShapeProgram};

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
    let mut replay = Replay::new(&given, builder);
    let mut program = replay.program();
    let failed = |output: &Output, what: &str, error: LowerError<Error>| {
        let known = launch::describe(plugin, &facts);
        node.invalid(format_args!("the {what} of `{}`: {error}{known}", output.name))
    };
    for (index, output) in plugin.outputs.iter().enumerate() {
        let Some(bound) = &output.size else { continue };
        let mut scalar = |expr, what| {
            let lowered = expr::lower_scalar(expr, &facts, &mut program);
            let made =
                |index| replay.extend(&program).and_then(|()| replay.at(index)).map_err(LowerError::Builder);
            lowered.and_then(made).map_err(|error| failed(output, what, error))
        };
        let upper = scalar(&bound.upper, "greatest size")?;
        let opt = scalar(&bound.opt, "likely size")?;
        // The author's estimate may exceed small shapes' bound.
        let opt = builder.operation(DimensionOperation::MIN, opt, upper)?;
        let size = builder.declare_size_tensor(index, opt, upper)?;
        replay.sizes.push((index, size));
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
            None => {
                let lowered = expr::lower(&output.shape, &facts, &mut program);
                let made = |indices: Vec<Index>| {
                    replay.extend(&program).and_then(|()| replay.all(&indices)).map_err(LowerError::Builder)
                };
                lowered.and_then(made).map_err(|error| failed(output, "shape", error))?
            }
        };
        shape.set(&extents)?;
    }
    // Ranks are at most 8.
    Ok(ranks.into_iter().map(|rank| u8::try_from(rank).unwrap_or(u8::MAX)).collect())
}

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
    let mut replay = Replay::new(&given, builder);
    let mut program = replay.program();
    for output in &plugin.outputs {
        let shape = expr::lower(&output.shape, &facts, &mut program)
            .map_err(|error| node.invalid(format_args!("the shape of `{}`: {error}", output.name)))?;
        program.outputs.push(shape);
    }
    let ranks: Vec<usize> = ranks.into_iter().chain(program.outputs.iter().map(Vec::len)).collect();
    let facts = Facts { ranks: &ranks, ..node.facts() };
    let lowered = native::lower(plugin, when, required, launch, &facts, &mut program).map_err(|fault| {
        let is_required = |text: &String| required.iter().any(|requirement| requirement.text == *text);
        let help = match &fault.role {
            Role::Condition(text) if is_required(text) => {
                "; it is not proved for all shapes of the profile: narrow the profile, or use the plugin route, which checks each call"
            }
            _ => "",
        };
        node.invalid(format_args!("`{}`: {fault}{help}", launch.kernel))
    })?;
    let made = replay.extend(&program);
    made.map_err(|error| node.invalid(format_args!("`{}`: {error}", launch.kernel)))?;
    let three = |[x, y, z]: [Index; 3]| Ok([replay.at(x)?, replay.at(y)?, replay.at(z)?]);
    Ok(native::Lowered {
        grid: three(lowered.grid)?,
        block: three(lowered.block)?,
        shared_bytes: replay.at(lowered.shared_bytes)?,
        words: replay.all(&lowered.words)?,
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

struct Replay<'a, 'b> {
    inputs: &'a [AnnouncedInput<'b>],
    builder: &'a ExprBuilder<'b>,
    /// With the index of its output.
    sizes: Vec<(usize, Expr<'b>)>,
    /// One for each instruction.
    made: Vec<Expr<'b>>,
}

impl<'a, 'b> Replay<'a, 'b> {
    fn new(inputs: &'a [AnnouncedInput<'b>], builder: &'a ExprBuilder<'b>) -> Replay<'a, 'b> {
        Replay { inputs, builder, sizes: Vec::new(), made: Vec::new() }
    }

    fn program(&self) -> ShapeProgram {
        let part = |input: &AnnouncedInput<'_>| match input {
            AnnouncedInput::Shape(shape) => InputPart { length: shape.rank(), has_values: false },
            AnnouncedInput::Values(values, _) => InputPart { length: values.rank(), has_values: true },
        };
        ShapeProgram::new(self.inputs.iter().map(part).collect())
    }

    fn extend(&mut self, program: &ShapeProgram) -> Result<()> {
        let new = program.instructions.get(self.made.len()..).unwrap_or_default();
        for instruction in new {
            let expr = match *instruction {
                Instruction::Constant(value) => self.builder.constant(value)?,
                Instruction::Extent { input, index } => match self.inputs.get(input) {
                    Some(AnnouncedInput::Shape(shape) | AnnouncedInput::Values(shape, _)) => {
                        shape.get(index)?
                    }
                    None => return Err(Error::internal("a shape reads an unknown input")),
                },
                Instruction::Size { output } => {
                    let declared = self.sizes.iter().find(|(of, _)| *of == output);
                    let missing = || Error::internal(format!("a shape reads the size in output {output}"));
                    declared.map(|(_, size)| *size).ok_or_else(missing)?
                }
                Instruction::Operation(op, first, second) => {
                    self.builder.operation(operation(op), self.at(first)?, self.at(second)?)?
                }
            };
            self.made.push(expr);
        }
        Ok(())
    }

    fn at(&self, index: Index) -> Result<Expr<'b>> {
        self.made.get(index).copied().ok_or_else(|| Error::internal("a shape reads a later instruction"))
    }

    fn all(&self, indices: &[Index]) -> Result<Vec<Expr<'b>>> {
        indices.iter().map(|index| self.at(*index)).collect()
    }
}

fn operation(op: ShapeOp) -> DimensionOperation {
    match op {
        ShapeOp::Sum => DimensionOperation::SUM,
        ShapeOp::Prod => DimensionOperation::PROD,
        ShapeOp::Max => DimensionOperation::MAX,
        ShapeOp::Min => DimensionOperation::MIN,
        ShapeOp::Sub => DimensionOperation::SUB,
        ShapeOp::Equal => DimensionOperation::EQUAL,
        ShapeOp::Less => DimensionOperation::LESS,
        ShapeOp::FloorDiv => DimensionOperation::FLOOR_DIV,
        ShapeOp::CeilDiv => DimensionOperation::CEIL_DIV,
    }
}
