//! What keeps a variant from being launched by TensorRT itself.

use std::fmt;

use crate::Role;
use cubinder_expr::data_type::ScalarType;
use cubinder_expr::{BindingTime, Expr, binding_time};
use cubinder_model::model::{ArgValue, Launch, Plugin, Variant, Work};

/// Something that TensorRT's ahead-of-time interface cannot do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// An output whose shape depends on what kernels write.
    SizeOfOutput(String),
    /// An input whose values shapes depend on.
    ShapeInput(String),
    /// So many steps, where there can be one.
    Steps(usize),
    /// The only step fills memory.
    Fill,
    /// A scratch buffer.
    Scratch(String),
    /// The kernel runs in clusters.
    Clusters,
    /// All blocks run at once.
    Cooperative,
    /// The guard asks for what is only known at run time: addresses or the device.
    Guard(String),
    /// A part of the launch asks for that.
    RunTime(Role),
    /// A float that depends on shapes.
    Float(Role),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::SizeOfOutput(name) => {
                write!(f, "the shape of the output `{name}` depends on what kernels write")
            }
            Obstacle::ShapeInput(name) => write!(f, "`{name}` is a shape input"),
            Obstacle::Steps(count) => write!(f, "it has {count} steps, and TensorRT launches one kernel"),
            Obstacle::Fill => f.write_str("it fills memory, and TensorRT launches a kernel"),
            Obstacle::Scratch(name) => {
                write!(f, "it has the scratch buffer `{name}`, and TensorRT gives none")
            }
            Obstacle::Clusters => f.write_str("its kernel runs in clusters"),
            Obstacle::Cooperative => f.write_str("its launch is cooperative"),
            Obstacle::Guard(text) => {
                write!(
                    f,
                    "its guard `{text}` asks for addresses or the device, which are not known when TensorRT chooses"
                )
            }
            Obstacle::RunTime(role) => write!(f, "{role} depends on addresses or the device"),
            Obstacle::Float(role) => {
                write!(f, "{role} is a float that depends on shapes, and TensorRT computes integers alone")
            }
        }
    }
}

/// All that keeps `variant` from being launched by TensorRT itself. Its launch may be one that is not compiled yet: of arguments only those that
/// are there are looked at.
#[must_use]
pub fn obstacles(plugin: &Plugin, variant: &Variant) -> Vec<Obstacle> {
    let sized = plugin.outputs.iter().filter(|output| output.size.is_some() || output.depends_on_data());
    let mut found: Vec<Obstacle> = sized.map(|output| Obstacle::SizeOfOutput(output.name.clone())).collect();
    let shape_inputs = plugin.inputs.iter().filter(|input| input.values.is_some());
    found.extend(shape_inputs.map(|input| Obstacle::ShapeInput(input.name.clone())));
    found.extend(variant.scratch.iter().map(|scratch| Obstacle::Scratch(scratch.name.clone())));
    if let Some(guard) = variant.guard.as_ref().filter(|guard| is_of_run_time(&guard.expr)) {
        found.push(Obstacle::Guard(guard.text.clone()));
    }
    match variant.steps.as_slice() {
        [step] => match &step.work {
            Work::Launch(launch) => of_launch(launch, &mut found),
            Work::Fill(_) => found.push(Obstacle::Fill),
        },
        steps => found.push(Obstacle::Steps(steps.len())),
    }
    found
}

fn of_launch(launch: &Launch, found: &mut Vec<Obstacle>) {
    let flags = [(launch.cluster.is_some(), Obstacle::Clusters), (launch.cooperative, Obstacle::Cooperative)];
    found.extend(flags.into_iter().filter_map(|(is_set, obstacle)| is_set.then_some(obstacle)));
    let axes = ['x', 'y', 'z'];
    let grid = launch.grid.iter().zip(axes).map(|(expr, axis)| (expr, Role::Grid(axis)));
    let block = launch.block.iter().zip(axes).map(|(expr, axis)| (expr, Role::Block(axis)));
    let args =
        launch.args.iter().filter_map(|arg| Some((arg.value.expr()?, Role::Argument(arg.name.clone()))));
    let parts = grid.chain(block).chain([(&launch.shared_bytes, Role::SharedBytes)]).chain(args);
    found.extend(parts.filter(|(expr, _)| is_of_run_time(expr)).map(|(_, role)| Obstacle::RunTime(role)));
    let floats = launch.args.iter().filter(|arg| match &arg.value {
        ArgValue::Scalar { ty: ScalarType::F32 | ScalarType::F64, expr }
        | ArgValue::Array { ty: ScalarType::F32 | ScalarType::F64, expr, .. } => {
            binding_time(expr) == BindingTime::Shape
        }
        _ => false,
    });
    found.extend(floats.map(|arg| Obstacle::Float(Role::Argument(arg.name.clone()))));
}

fn is_of_run_time(expr: &Expr) -> bool {
    binding_time(expr) >= BindingTime::Launch
}
